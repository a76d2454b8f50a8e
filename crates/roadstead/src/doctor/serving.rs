//! Examines a program that serves HTTP: whether it accepts connections, answers, keeps connections open, and ends.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use spawn::{Port, Socket, Stop};
use wire::http1::{Body, HeadScan, Limits, Method, ReplyHead, RequestInfo, Upgrades};

use super::examine::{dead, dies};
use super::finding::Finding;
use super::program_run::{ProgramRun, ProgramRunner, RunSettings};
use crate::private_folder::private_folder;

/// The timeout of one read from a connection.
const LOOK: Duration = Duration::from_millis(10);
/// The maximum number of bytes of an invalid reply in a message.
const SHOWN_MAX: usize = 80;

/// Where the program serves, as in the pool's `socket`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Place {
    Inherited,
    Path,
    Port,
}

/// The program and the parameters of its examination.
pub(super) struct Serving {
    pub(super) runner: ProgramRunner,
    pub(super) settings: RunSettings,
    pub(super) place: Place,
    /// The path of the request.
    pub(super) path: String,
    pub(super) wait: Duration,
}

/// The result of a request.
enum HttpOutcome {
    Whole { status: u16, keep: bool },
    Silent,
    Ended,
    Broken(String),
}

/// The address of the program.
enum Address {
    Unix(PathBuf),
    Port(Port),
}

trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

impl Serving {
    /// Returns all findings, or the reason that the program cannot be examined.
    pub(super) fn findings(&mut self) -> Result<Vec<Finding>, String> {
        let folder = private_folder("roadstead-doctor-").map_err(|error| error.to_string())?;
        self.look(&folder.path().join("socket"))
    }

    fn look(&mut self, path: &std::path::Path) -> Result<Vec<Finding>, String> {
        let mut found = Vec::new();
        let wait = self.wait;
        let (address, settings) = self.choose_address(path).map_err(|error| error.to_string())?;
        let mut running = self.runner.start(&settings)?;
        let Some(mut stream) = connect(&address, &mut running, wait) else {
            found.push(if dead(&running) {
                dies(&mut running, wait)
            } else {
                Finding::NoConnection(wait)
            });
            return Ok(found);
        };
        let asked = Instant::now();
        match ask(&mut *stream, &mut running, &self.path, wait) {
            HttpOutcome::Whole { status, keep } => {
                found.push(Finding::Serves(status, asked.elapsed()));
                let again = keep.then(|| ask(&mut *stream, &mut running, &self.path, wait));
                found.push(match again {
                    Some(HttpOutcome::Whole { .. }) => Finding::Keeps,
                    Some(HttpOutcome::Ended) => Finding::Breaks(
                        "it says that it keeps the connection, and ends it",
                        "nothing more".to_owned(),
                    ),
                    Some(_) => Finding::Stalls,
                    None => Finding::Closes,
                });
            }
            HttpOutcome::Silent | HttpOutcome::Broken(_) | HttpOutcome::Ended
                if !dead(&running) && speaks_fastcgi(&address, &mut running, wait) =>
            {
                found.push(Finding::FastCgi);
            }
            HttpOutcome::Silent => found.push(Finding::Unanswered(wait)),
            HttpOutcome::Broken(said) => found.push(Finding::NotHttp(said)),
            HttpOutcome::Ended if running.listen(wait.min(LOOK * 20), |it| it.exit.is_some()) => {
                found.push(dies(&mut running, wait));
                return Ok(found);
            }
            HttpOutcome::Ended => found.push(Finding::Drops),
        }
        drop(stream);
        running.stop(Stop::Term);
        let ended = running.listen(wait, |it| it.exit.is_some());
        found.push(if ended { Finding::EndsOnTerm } else { Finding::IgnoresTerm(wait) });
        Ok(found)
    }

    /// Chooses the address, and how the program receives it: by an inherited socket, its arguments or its environment.
    fn choose_address(&self, path: &std::path::Path) -> std::io::Result<(Address, RunSettings)> {
        let mut settings = self.settings.clone();
        let mut tell = |word: &str, variable: &str, value: String| {
            for argument in &mut settings.program {
                *argument = argument.replace(word, &value);
            }
            settings.env.push((variable.to_owned(), value));
        };
        let address = match self.place {
            Place::Inherited => {
                let socket = Socket::bind(path)?;
                socket.open();
                settings.socket = Some(socket);
                Address::Unix(path.to_owned())
            }
            Place::Path => {
                tell("{socket}", "ROADSTEAD_SOCKET", path.display().to_string());
                Address::Unix(path.to_owned())
            }
            Place::Port => {
                let port = Port::reserve()?;
                tell("{port}", "PORT", port.number().to_string());
                Address::Port(port)
            }
        };
        Ok((address, settings))
    }
}

/// Connects to the program as soon as it accepts connections.
fn connect(
    address: &Address,
    running: &mut ProgramRun<'_>,
    wait: Duration,
) -> Option<Box<dyn Stream>> {
    let until = Instant::now() + wait;
    loop {
        let made = match address {
            Address::Unix(path) => UnixStream::connect(path).and_then(|stream| {
                stream.set_read_timeout(Some(LOOK))?;
                Ok(Box::new(stream) as Box<dyn Stream>)
            }),
            Address::Port(port) => {
                TcpStream::connect(("127.0.0.1", port.number())).and_then(|it| {
                    let mut program = spawn::PortProgram::new(port.number(), running.pid());
                    let owner = program.owner_of(it.local_addr()?);
                    if owner != spawn::PortOwner::Program {
                        return Err(ErrorKind::ConnectionRefused.into());
                    }
                    it.set_read_timeout(Some(LOOK))?;
                    Ok(Box::new(it) as Box<dyn Stream>)
                })
            }
        };
        if let Ok(stream) = made {
            return Some(stream);
        }
        running.listen(LOOK, dead);
        if dead(running) || Instant::now() > until {
            return None;
        }
    }
}

/// The record that queries the limits of a FastCGI application (FCGI_GET_VALUES with one name), and the beginning of
/// its answer (FCGI_GET_VALUES_RESULT), both of version 1.
const FASTCGI_ASKS: &[u8] = b"\x01\x09\0\0\0\x11\0\0\x0f\0FCGI_MPXS_CONNS";
const FASTCGI_ANSWERS: [u8; 2] = [1, 10];

/// Returns whether the program answers FastCGI on a new connection.
fn speaks_fastcgi(address: &Address, running: &mut ProgramRun<'_>, wait: Duration) -> bool {
    let Some(mut stream) = connect(address, running, wait) else { return false };
    if stream.write_all(FASTCGI_ASKS).is_err() {
        return false;
    }
    let until = Instant::now() + wait;
    let mut answer = [0; 2];
    let mut filled = 0;
    while filled < answer.len() && Instant::now() < until {
        match stream.read(&mut answer[filled..]) {
            Ok(0) => return false,
            Ok(count) => filled += count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => return false,
        }
        running.listen(Duration::ZERO, |_| false);
    }
    answer == FASTCGI_ANSWERS
}

/// Sends one request and returns the result.
fn ask(
    stream: &mut dyn Stream,
    running: &mut ProgramRun<'_>,
    path: &str,
    wait: Duration,
) -> HttpOutcome {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    if stream.write_all(request.as_bytes()).is_err() {
        return HttpOutcome::Ended;
    }
    let until = Instant::now() + wait;
    let (mut said, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        let ended = match stream.read(&mut buffer) {
            Ok(0) => true,
            Ok(count) => {
                said.extend_from_slice(&buffer[..count]);
                false
            }
            Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
        };
        // Its other output is read meanwhile, because the program might block on a full pipe.
        running.listen(Duration::ZERO, |_| false);
        match read(&said, ended) {
            Some(heard) => return heard,
            None if ended => return HttpOutcome::Ended,
            None if Instant::now() > until => return HttpOutcome::Silent,
            None => {}
        }
    }
}

/// Returns the reply when it is complete.
fn read(said: &[u8], ended: bool) -> Option<HttpOutcome> {
    let limits = Limits::REPLY;
    let broken = |refusal: &dyn std::fmt::Display| {
        let shown = &said[..said.len().min(SHOWN_MAX)];
        Some(HttpOutcome::Broken(format!("{refusal}. It said \"{}\"", shown.escape_ascii())))
    };
    let mut from = 0;
    loop {
        let found = match HeadScan::default().next(&said[from..], &limits) {
            Ok(found) => found?,
            Err(refusal) => return broken(&refusal),
        };
        let asked = RequestInfo { method: Method::Get, upgrades: Upgrades::NONE };
        let end = from + found.head.end;
        let mut head = ReplyHead::default();
        if let Err(refusal) = head.read(&said[from..end], &found, asked, &limits) {
            return broken(&refusal);
        }
        from = end;
        if head.is_interim() {
            continue;
        }
        let mut body = Body::new(head.body, &limits);
        while !body.is_done() {
            match body.run(&said[from..], &limits) {
                Ok(run) if run.pass + run.drop == 0 => break,
                Ok(run) => from += run.pass + run.drop,
                Err(refusal) => return broken(&refusal),
            }
        }
        let whole = body.is_done() || ended && body.end().is_ok();
        let keep = head.connection.keep_alive && !ended;
        return whole.then_some(HttpOutcome::Whole { status: head.status, keep });
    }
}
