//! `ask`: one request to a pool of a running daemon, through its admin address.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use settings::Secret;

use crate::admin::read_secret;

/// How long the daemon may take, a little longer than it allows itself.
const WAIT_MAX: Duration = Duration::from_secs(130);

/// Why there is no answer.
#[derive(Debug)]
pub enum AskError {
    /// Nobody listens there, or the connection broke.
    Connection(String, io::Error),
    /// The token cannot be read.
    Token(String),
    /// What answers there does not speak HTTP as the admin address does.
    NotAdmin(String),
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connection(admin, error) => write!(
                f,
                "the admin address {admin} does not answer: {error}\nhelp: is the daemon running, \
                 and is this its `[admin] listen`? Name another with --admin"
            ),
            Self::Token(why) => write!(f, "the token of the admin address cannot be read: {why}"),
            Self::NotAdmin(admin) => write!(f, "{admin} is not the admin address of a roadstead"),
        }
    }
}

impl std::error::Error for AskError {}

/// What the admin address said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// The HTTP status.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
}

/// How to reach the admin address of a daemon.
#[derive(Clone, Debug, Args)]
pub struct AdminArgs {
    /// The admin address of the daemon: HOST:PORT, or unix:/path.
    #[arg(long, default_value = "127.0.0.1:7070", value_name = "ADDRESS", global = true)]
    pub admin: String,
    /// Where the token of the admin address is: `env:NAME` or `file:PATH`. For a loopback port without a
    /// configured token it is not needed: the daemon keeps one in a file of its user.
    #[arg(long, value_name = "env:NAME|file:PATH", global = true)]
    pub admin_token: Option<String>,
}

impl AdminArgs {
    /// One exchange with the admin address.
    ///
    /// # Errors
    /// When the token cannot be read, or as for [`request`].
    pub fn request(&self, method: &str, path: &str, body: &[u8]) -> Result<Said, AskError> {
        let token = self.admin_token.as_deref().map(token).transpose()?;
        exchange_within(WAIT_MAX, &self.admin, token, (method, path), body)
    }
}

fn token(place: &str) -> Result<String, AskError> {
    let secret = match place.split_once(':') {
        Some(("env", name)) if !name.is_empty() => Secret::Environment(name.to_owned()),
        Some(("file", path)) if !path.is_empty() => Secret::File(path.into()),
        // It may be the token itself, which is not repeated.
        _ => {
            let text = "--admin-token does not name a place; write env:NAME or file:PATH";
            return Err(AskError::Token(text.to_owned()));
        }
    };
    let text = read_secret(&secret).map_err(AskError::Token)?;
    let is_printable = text.bytes().all(|byte| byte.is_ascii_graphic());
    if is_printable { Ok(text) } else { Err(AskError::Token("it is not a token".to_owned())) }
}

/// Sends the line, prints the reply. The exit code is 0 when it was answered, 1 when not.
#[must_use]
pub fn main(admin: &AdminArgs, pool: &str, line: &str) -> ExitCode {
    match admin.request("POST", &format!("/ask/{}", escaped(pool)), line.as_bytes()) {
        Ok(said) if said.status == 200 => {
            let written = io::stdout().lock().write_all(&said.body);
            if written.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Ok(said) => {
            eprint!("{}", String::from_utf8_lossy(&said.body));
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("roadstead: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A name as a part of a path.
pub(crate) fn escaped(name: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
            char::from(byte).to_string()
        }
        other => format!("%{other:02X}"),
    };
    name.bytes().map(byte).collect()
}

/// One exchange with the admin address, which is HOST:PORT or unix:/path, with the token file of its
/// daemon if this user may read it.
///
/// # Errors
/// When it cannot be reached or does not answer as an admin address does.
pub fn request(admin: &str, method: &str, path: &str, body: &[u8]) -> Result<Said, AskError> {
    exchange_within(WAIT_MAX, admin, None, (method, path), body)
}

/// One exchange with the admin address, which may take so long.
pub(crate) fn exchange_within(
    wait: Duration,
    admin: &str,
    token: Option<String>,
    (method, path): (&str, &str),
    body: &[u8],
) -> Result<Said, AskError> {
    let failed = |error| AskError::Connection(admin.to_owned(), error);
    let message = |host: &str, token: Option<String>| {
        let authorization =
            token.map_or_else(String::new, |token| format!("Authorization: Bearer {token}\r\n"));
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{}: 1\r\n\
             {authorization}Content-Length: {}\r\n\r\n",
            control::REQUEST_HEADER,
            body.len()
        );
        [head.as_bytes(), body].concat()
    };
    let answer = match admin.strip_prefix("unix:") {
        Some(path) => {
            let stream = UnixStream::connect(path).map_err(failed)?;
            stream.set_read_timeout(Some(wait)).map_err(failed)?;
            talk(stream, &message("localhost", token))
        }
        None => {
            let stream = connect(admin, wait).map_err(failed)?;
            stream.set_read_timeout(Some(wait)).map_err(failed)?;
            let peer = stream.peer_addr().map_err(failed)?;
            let token = token.or_else(|| control::local_token(peer));
            talk(stream, &message(&peer.to_string(), token))
        }
    };
    understand(&answer.map_err(failed)?).ok_or_else(|| AskError::NotAdmin(admin.to_owned()))
}

/// Connects to the first of the addresses of `HOST:PORT` that takes the connection.
fn connect(admin: &str, wait: Duration) -> io::Result<TcpStream> {
    let mut failed = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in admin.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, wait) {
            Ok(stream) => return Ok(stream),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn talk(mut stream: impl Read + Write, message: &[u8]) -> io::Result<Vec<u8>> {
    stream.write_all(message)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(answer)
}

/// Status and body of an answer that ends with its connection and has no transfer coding.
fn understand(answer: &[u8]) -> Option<Said> {
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&answer[..end]).ok()?;
    let status = head.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    Some(Said { status, body: answer[end + 4..].to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_taken_apart_and_what_is_none_is_refused() {
        let said = understand(b"HTTP/1.1 503 Service Unavailable\r\nX: y\r\n\r\n!full\n");
        assert_eq!(said, Some(Said { status: 503, body: b"!full\n".to_vec() }));
        assert_eq!(understand(b"220 mail.example ESMTP\r\n\r\n"), None);
        assert_eq!(understand(b""), None);
    }

    #[test]
    fn a_closed_port_is_said_with_a_mend() {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let error = request(&port.to_string(), "GET", "/", b"").unwrap_err().to_string();
        assert!(error.contains("--admin"), "{error}");
    }
}
