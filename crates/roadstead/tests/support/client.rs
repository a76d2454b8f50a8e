//! A test client of a `lines` listener.

use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::daemon::PATIENCE;

pub(crate) struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    pub(crate) fn connect(address: &str) -> Self {
        Self::new(TcpStream::connect(address).unwrap())
    }

    pub(crate) fn new(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream: BufReader::new(stream) }
    }

    /// On a Unix socket, which is written and read like the other.
    pub(crate) fn local(path: &Path) -> Self {
        let stream = TcpStream::from(OwnedFd::from(UnixStream::connect(path).unwrap()));
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Self { stream: BufReader::new(stream) }
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.get_mut().write_all(bytes.as_ref()).unwrap();
    }

    /// Returns the next line, or an empty string at the end.
    pub(crate) fn line(&mut self) -> String {
        let mut line = Vec::new();
        self.stream.read_until(b'\n', &mut line).unwrap();
        if line.last() == Some(&b'\n') {
            line.pop();
        }
        String::from_utf8_lossy(&line).into_owned()
    }

    pub(crate) fn ask(&mut self, line: &str) -> String {
        self.send(format!("{line}\n"));
        self.line()
    }

    /// Half-closes the connection.
    pub(crate) fn finish(&mut self) {
        self.stream.get_mut().shutdown(Shutdown::Write).unwrap();
    }

    /// Ends its connection by a reset, whether it has read all replies or not.
    pub(crate) fn reset(self) {
        let at_once = Some(std::time::Duration::ZERO);
        rustix::net::sockopt::set_socket_linger(self.stream(), at_once).unwrap();
    }

    /// Returns all lines up to the end.
    pub(crate) fn rest(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut line = Vec::new();
        while self.stream.read_until(b'\n', &mut line).unwrap_or(0) > 0 {
            lines.push(String::from_utf8_lossy(&line).trim_end_matches('\n').to_owned());
            line.clear();
        }
        lines
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        self.stream.get_ref()
    }
}

impl Client {
    /// Returns exactly this number of bytes.
    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        std::io::Read::read_exact(&mut self.stream, &mut bytes).unwrap();
        bytes
    }
}
