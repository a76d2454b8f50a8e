//! `ask`: one request to a pool of a running daemon, through its admin address.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Duration;

/// How long the daemon may take, a little longer than it allows itself.
const WAIT_MAX: Duration = Duration::from_secs(130);

/// Why there is no answer.
#[derive(Debug)]
pub enum AskError {
    /// Nobody listens there, or the connection broke.
    Connection(String, io::Error),
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

/// Sends the line, prints the reply. The exit code is 0 when it was answered, 1 when not.
#[must_use]
pub fn main(admin: &str, pool: &str, line: &str) -> ExitCode {
    match request(admin, "POST", &format!("/ask/{pool}"), line.as_bytes()) {
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

/// One exchange with the admin address, which is HOST:PORT or unix:/path.
///
/// # Errors
/// When it cannot be reached or does not answer as an admin address does.
pub fn request(admin: &str, method: &str, path: &str, body: &[u8]) -> Result<Said, AskError> {
    let failed = |error| AskError::Connection(admin.to_owned(), error);
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: roadstead\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let message = [head.as_bytes(), body].concat();
    let answer = match admin.strip_prefix("unix:") {
        Some(path) => {
            let stream = UnixStream::connect(path).map_err(failed)?;
            stream.set_read_timeout(Some(WAIT_MAX)).map_err(failed)?;
            talk(stream, &message)
        }
        None => {
            let stream = TcpStream::connect(admin).map_err(failed)?;
            stream.set_read_timeout(Some(WAIT_MAX)).map_err(failed)?;
            talk(stream, &message)
        }
    };
    understand(&answer.map_err(failed)?).ok_or_else(|| AskError::NotAdmin(admin.to_owned()))
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
