//! `ask`: sends one request to a pool of a running daemon, through its admin address.

use std::fmt;
use std::io::{self, IsTerminal, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use settings::Secret;

use crate::admin::read_secret_of;

/// How long the daemon may take. This is slightly longer than the limit of the daemon itself.
const WAIT_MAX: Duration = Duration::from_secs(130);

/// The maximum size of a response in bytes. Status and metrics of the largest installations have a few MiB.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// Why there is no response.
#[derive(Debug)]
pub enum AskError {
    /// No process listens at the address, or the connection failed.
    Connection(String, io::Error),
    /// The token cannot be read.
    Token(String),
    /// The response is not the HTTP of an admin address.
    NotAdmin(String),
    /// The response is larger than the responses of an admin address.
    TooLong(String),
    /// Another user, or a process of an unknown user, listens at the address and would receive the token or the
    /// request.
    UntrustedUser(String, Option<u32>),
    /// The kernel did not report which user listens at the address.
    Unknown(String, io::Error),
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
            Self::TooLong(admin) => write!(
                f,
                "{admin} is not the admin address of a roadstead: its answer has more than {} MiB",
                ANSWER_BYTES_MAX >> 20
            ),
            Self::UntrustedUser(admin, Some(user)) => write!(
                f,
                "nothing is sent: user {user} listens on the admin address {admin}\nhelp: if \
                 the daemon runs as that user, tell `ctl` or `ask` so with --admin-user {user}, or \
                 name a token in a file of that user"
            ),
            Self::UntrustedUser(admin, None) => {
                write!(f, "nothing is sent: it is unknown who listens on {admin}")
            }
            Self::Unknown(admin, error) => write!(
                f,
                "nothing is sent: the kernel did not say who listens on {admin}: {error}\nhelp: try again"
            ),
        }
    }
}

impl std::error::Error for AskError {}

/// A response of the admin address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
}

impl Response {
    /// Returns the body for a terminal: control characters and invisible characters are escaped.
    pub(crate) fn visible(&self) -> String {
        exchange::visible(&String::from_utf8_lossy(&self.body)).into_owned()
    }
}

/// How to reach the admin address of a daemon.
#[derive(Clone, Debug, Args)]
pub struct AdminArgs {
    /// The admin address of the daemon: HOST:PORT, or unix:/path.
    #[arg(long, default_value = "127.0.0.1:7070", value_name = "ADDRESS", global = true)]
    pub admin: String,
    /// Where to read the token of the admin address: `env:NAME` or `file:PATH`. Not needed for a loopback port without
    /// a configured token, because the daemon stores a token in a file of its user. No token is sent to a Unix socket,
    /// because the daemon gets the user of the caller from the kernel.
    #[arg(long, value_name = "env:NAME|file:PATH", global = true)]
    pub admin_token: Option<String>,
    /// The numeric id of the user that the daemon runs as. On a loopback port, a token or a request that changes
    /// something is sent only if this user, root, the user of this command or the owner of the token's file listens
    /// there. On a Unix socket, the owner of its directory is accepted too.
    #[arg(long, value_name = "UID", global = true)]
    pub admin_user: Option<u32>,
}

/// A token, and the users who may receive it on a loopback port besides root and the user of this process.
pub(crate) struct Token {
    text: String,
    users: Vec<u32>,
}

impl Token {
    /// Reads a token. The owner of its file may receive it, because that user can read the file. Contents that are not
    /// a valid token are rejected, because the token is sent to the process that listens.
    pub(crate) fn read(secret: &Secret) -> Result<Self, String> {
        let (text, owner) = read_secret_of(secret)?;
        control::check_token(&text).map_err(|fault| format!("what is there {fault}"))?;
        Ok(Self { text, users: owner.into_iter().collect() })
    }

    /// Returns the token that the daemon at this address stores in a file of its user.
    fn from_token_file(address: SocketAddr) -> Option<Self> {
        let (text, owner) = control::local_token(address)?;
        Some(Self { text, users: vec![owner] })
    }
}

/// Checks that each user who listens on a loopback address is root, the user of this process or one of `users`.
fn check_users(admin: &str, users: &[u32], listeners: &[u32]) -> Result<(), AskError> {
    let own = rustix::process::geteuid().as_raw();
    let is_known = |user: &&u32| **user == 0 || **user == own || users.contains(user);
    match listeners.iter().find(|user| !is_known(user)) {
        Some(&user) => Err(AskError::UntrustedUser(admin.to_owned(), Some(user))),
        None if listeners.is_empty() => Err(AskError::UntrustedUser(admin.to_owned(), None)),
        None => Ok(()),
    }
}

impl AdminArgs {
    /// Sends one request to the admin address and returns the response.
    ///
    /// # Errors
    /// The token cannot be read, or the request fails as in [`request`].
    pub fn request(&self, method: &str, path: &str, body: &[u8]) -> Result<Response, AskError> {
        let token = self.admin_token.as_deref().map(token).transpose()?;
        exchange_within(WAIT_MAX, &self.admin, (token, self.admin_user), (method, path), body)
    }
}

fn token(place: &str) -> Result<Token, AskError> {
    let secret = match place.split_once(':') {
        Some(("env", name)) if !name.is_empty() => Secret::Environment(name.to_owned()),
        Some(("file", path)) if !path.is_empty() => Secret::File(path.into()),
        // The argument may be the token itself, so the message does not repeat it.
        _ => {
            let text = "--admin-token does not name a place; write env:NAME or file:PATH";
            return Err(AskError::Token(text.to_owned()));
        }
    };
    Token::read(&secret).map_err(AskError::Token)
}

/// Sends the line and prints the reply. The exit code is 0 if the request was answered and 1 otherwise.
#[must_use]
pub fn main(admin: &AdminArgs, pool: &str, line: &str) -> ExitCode {
    match admin.request("POST", &format!("/ask/{}", escaped(pool)), line.as_bytes()) {
        Ok(said) if said.status == 200 => {
            let mut out = io::stdout().lock();
            // A terminal interprets control characters, so they are escaped. A file or a program gets the reply
            // unchanged.
            let written = match out.is_terminal() {
                true => out.write_all(said.visible().as_bytes()),
                false => out.write_all(&said.body),
            };
            if written.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Ok(said) => {
            eprint!("{}", said.visible());
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("roadstead: {}", exchange::visible(&error.to_string()));
            ExitCode::FAILURE
        }
    }
}

/// Escapes a name for use as a part of a path.
pub(crate) fn escaped(name: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
            char::from(byte).to_string()
        }
        other => format!("%{other:02X}"),
    };
    name.bytes().map(byte).collect()
}

/// Sends one request to the admin address, which is HOST:PORT or unix:/path, and returns the response. Uses the token
/// file of the daemon if this user may read it.
///
/// # Errors
/// The address cannot be reached, or does not respond as an admin address does.
pub fn request(admin: &str, method: &str, path: &str, body: &[u8]) -> Result<Response, AskError> {
    exchange_within(WAIT_MAX, admin, (None, None), (method, path), body)
}

/// Sends one request to the admin address and returns the response, all within `wait`. The given `user` of the daemon
/// is trusted like root and the user of this process.
pub(crate) fn exchange_within(
    wait: Duration,
    admin: &str,
    (token, user): (Option<Token>, Option<u32>),
    (method, path): (&str, &str),
    body: &[u8],
) -> Result<Response, AskError> {
    let until = Instant::now() + wait;
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
            let stream = connect_unix(path, until).map_err(failed)?;
            if token.is_some() || method != "GET" {
                let peer = rustix::net::sockopt::socket_peercred(&stream);
                let peer = peer.map_err(|errno| failed(errno.into()))?.uid.as_raw();
                let mut users = token.map(|token| token.users).unwrap_or_default();
                users.extend(user);
                users.extend(owner_of_folder(path));
                check_users(admin, &users, &[peer])?;
            }
            // The kernel reports the user of the caller to the daemon, so no token is needed.
            send_and_read(stream, &message("localhost", None), until)
        }
        None => {
            let is_private = token.is_some() || method != "GET";
            let (stream, token) = connect(admin, until, (token, user), is_private)?;
            let peer = stream.peer_addr().map_err(failed)?;
            send_and_read(stream, &message(&peer.to_string(), token), until)
        }
    };
    match answer {
        Ok(answer) => parse_response(&answer).ok_or_else(|| AskError::NotAdmin(admin.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
            Err(AskError::TooLong(admin.to_owned()))
        }
        Err(error) => Err(failed(error)),
    }
}

/// Connects to the first address of `HOST:PORT` that accepts the connection, and returns the token for it. Any user can
/// listen on a loopback port. There, before a token or an `is_private` request is sent, the process that has accepted
/// this connection, or will accept it, must belong to a known user.
fn connect(
    admin: &str,
    until: Instant,
    (token, user): (Option<Token>, Option<u32>),
    is_private: bool,
) -> Result<(TcpStream, Option<String>), AskError> {
    let failed = |error| AskError::Connection(admin.to_owned(), error);
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in admin.to_socket_addrs().map_err(failed)? {
        let address = reached(address);
        let drawn = if token.is_some() { None } else { Token::from_token_file(address) };
        let token = token.as_ref().or(drawn.as_ref());
        let mut users: Vec<u32> = token.map(|token| token.users.clone()).unwrap_or_default();
        users.extend(user);
        let is_local = address.ip().to_canonical().is_loopback();
        let is_checked = is_local && (is_private || token.is_some());
        match left(until).and_then(|wait| TcpStream::connect_timeout(&address, wait)) {
            Ok(stream) => {
                if is_checked {
                    let own = stream.local_addr().map_err(failed)?;
                    check_acceptor(admin, &users, listeners::acceptor(address, own))?;
                }
                return Ok((stream, token.map(|token| token.text.clone())));
            }
            Err(error) => last = error,
        }
    }
    Err(failed(last))
}

/// Calls [`check_users`] for the user of the socket at the other end of a connection, as reported by the kernel. If this
/// kernel can never report it, any user is accepted with a warning.
fn check_acceptor(
    admin: &str,
    users: &[u32],
    found: io::Result<Option<listeners::Acceptor>>,
) -> Result<(), AskError> {
    match found {
        Ok(found) => check_users(admin, users, found.map(|it| it.user).as_slice()),
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            eprintln!("roadstead: the kernel does not say who listens on {admin}: {error}");
            Ok(())
        }
        Err(error) => Err(AskError::Unknown(admin.to_owned(), error)),
    }
}

/// Returns the owner of a socket's directory. The owner can replace the socket, and is therefore trusted.
fn owner_of_folder(socket: &str) -> Option<u32> {
    let folder = Path::new(socket).parent().filter(|folder| !folder.as_os_str().is_empty());
    std::fs::metadata(folder.unwrap_or_else(|| Path::new("."))).ok().map(|found| found.uid())
}

/// Returns the address that a connection reaches: an unspecified address (0.0.0.0 or ::) reaches this machine.
fn reached(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        });
    }
    address
}

/// Connects to a Unix socket that no user can have chosen who may not connect to it. Times out if the backlog of the socket is full and no process accepts connections.
fn connect_unix(path: &str, until: Instant) -> io::Result<UnixStream> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
    let (family, flags) = (AddressFamily::UNIX, SocketFlags::CLOEXEC);
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(left(until)?))?;
    let file = paths::SocketFile::open(Path::new(path))?;
    file.connect(&socket).map_err(|error| match error {
        rustix::io::Errno::AGAIN => too_late(),
        error => error.into(),
    })?;
    Ok(socket.into())
}

/// Returns the remaining time of a request.
fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    // For a socket, a timeout of zero means no timeout.
    if left < Duration::from_micros(1) { Err(too_late()) } else { Ok(left) }
}

fn too_late() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "it took too long")
}

/// A connection with a timeout for reads and writes.
trait Timed: Read + Write {
    /// Sets the timeout of each following read and write.
    fn limit(&self, time: Duration) -> io::Result<()>;
}

impl Timed for TcpStream {
    fn limit(&self, time: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(time)).and_then(|()| self.set_write_timeout(Some(time)))
    }
}

impl Timed for UnixStream {
    fn limit(&self, time: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(time)).and_then(|()| self.set_write_timeout(Some(time)))
    }
}

/// Sends `message` and reads until the end of the connection, all before `until`. A response that is too long is an
/// error of the kind `FileTooLarge`.
fn send_and_read(mut stream: impl Timed, message: &[u8], until: Instant) -> io::Result<Vec<u8>> {
    let mut rest = message;
    while !rest.is_empty() {
        stream.limit(left(until)?)?;
        match stream.write(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => rest = &rest[count..],
            Err(error) => ignore_transient(error)?,
        }
    }
    let (mut answer, mut block) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        stream.limit(left(until)?)?;
        match stream.read(&mut block) {
            Ok(0) => return Ok(answer),
            Ok(count) if answer.len() + count > ANSWER_BYTES_MAX => {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            Ok(count) => answer.extend_from_slice(&block[..count]),
            Err(error) => ignore_transient(error)?,
        }
    }
}

/// Ignores errors after which the same operation is tried again.
fn ignore_transient(error: io::Error) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::Interrupted => Ok(()),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Err(too_late()),
        _ => Err(error),
    }
}

/// Parses the status and body of a response that ends with its connection and has no transfer coding.
fn parse_response(answer: &[u8]) -> Option<Response> {
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&answer[..end]).ok()?;
    let status = head.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    Some(Response { status, body: answer[end + 4..].to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_taken_apart_and_what_is_none_is_refused() {
        let said = parse_response(b"HTTP/1.1 503 Service Unavailable\r\nX: y\r\n\r\n!full\n");
        assert_eq!(said, Some(Response { status: 503, body: b"!full\n".to_vec() }));
        assert_eq!(parse_response(b"220 mail.example ESMTP\r\n\r\n"), None);
        assert_eq!(parse_response(b""), None);
    }

    /// Returns this number of bytes for each read, without end.
    struct Endless(usize);

    impl Read for Endless {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            Ok(into.len().min(self.0))
        }
    }

    impl Write for Endless {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Timed for Endless {
        fn limit(&self, _: Duration) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn an_answer_without_end_is_given_up() {
        let said =
            send_and_read(Endless(usize::MAX), b"", Instant::now() + Duration::from_secs(600));
        assert_eq!(said.unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        // A byte now and then must not extend the wait.
        let said = send_and_read(Endless(1), b"", Instant::now() + Duration::from_millis(1));
        assert_eq!(said.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn a_message_that_is_not_read_is_given_up() {
        let (near, _far) = UnixStream::pair().unwrap();
        let until = Instant::now() + Duration::from_millis(20);
        let said = send_and_read(near, &vec![0; 16 << 20], until);
        assert_eq!(said.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn a_unix_socket_that_nobody_accepts_at_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("full.sock");
        let (listener, path) = (bound(&path), path.to_str().unwrap());
        rustix::net::listen(&listener, 0).unwrap();
        let soon = || Instant::now() + Duration::from_millis(20);
        let waiting: Vec<_> = (0..9).map(|_| connect_unix(path, soon())).collect();
        let error = waiting.into_iter().find_map(Result::err).expect("its queue is full");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn a_link_of_another_user_does_not_lead_to_a_socket() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let [real, link] = ["real.sock", "link.sock"].map(|name| folder.path().join(name));
        let _listener = std::os::unix::net::UnixListener::bind(&real).unwrap();
        symlink(&real, &link).unwrap();
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o777)).unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        let error = connect_unix(link.to_str().unwrap(), until).unwrap_err().to_string();
        assert!(error.contains("is a symbolic link that another user can change"), "{error}");
    }

    /// Creates a Unix socket that does not listen yet.
    fn bound(path: &Path) -> std::os::fd::OwnedFd {
        use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};
        let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        rustix::net::bind(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
        socket
    }

    #[test]
    fn an_answer_does_nothing_to_a_terminal() {
        let said = Response {
            status: 200,
            body: b"{\"a\":\"\x1b[2J\xc2\x9b\xe2\x80\xae\"}\n\xff".to_vec(),
        };
        assert_eq!(said.visible(), "{\"a\":\"\\u001b[2J\\u009b\\u202e\"}\n\u{fffd}");
    }

    #[test]
    fn a_token_is_for_root_the_caller_and_whoever_owns_its_file() {
        let own = rustix::process::geteuid().as_raw();
        for listeners in [&[0][..], &[own], &[7], &[0, own, 7]] {
            assert!(check_users("here", &[7], listeners).is_ok(), "{listeners:?}");
        }
        let told =
            |listeners: &[u32]| check_users("here", &[7], listeners).unwrap_err().to_string();
        assert!(told(&[0, 60_003]).contains("user 60003 listens"), "{}", told(&[0, 60_003]));
        assert!(told(&[]).contains("unknown who listens"));
    }

    #[test]
    fn nothing_is_sent_where_the_kernel_fails_to_say_who_listens() {
        let said = |kind: io::ErrorKind| check_acceptor("here", &[], Err(kind.into()));
        for kind in [io::ErrorKind::FileTooLarge, io::ErrorKind::WouldBlock] {
            assert!(said(kind).unwrap_err().to_string().contains("nothing is sent"), "{kind}");
        }
        assert!(said(io::ErrorKind::Unsupported).is_ok());
        assert!(matches!(
            check_acceptor("here", &[], Ok(None)),
            Err(AskError::UntrustedUser(_, None))
        ));
    }

    #[test]
    fn no_token_is_sent_to_a_unix_socket_and_nothing_to_one_of_a_stranger() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("admin.sock");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let admin = format!("unix:{}", path.display());
        let answering = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut heard = vec![0; 4096];
            let count = stream.read(&mut heard).unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nok").unwrap();
            String::from_utf8(heard[..count].to_vec()).unwrap()
        });
        let token = Token { text: "0123456789abcdef".to_owned(), users: Vec::new() };
        let wait = Duration::from_secs(60);
        let said = exchange_within(wait, &admin, (Some(token), None), ("POST", "/x"), b"").unwrap();
        assert_eq!(said.body, b"ok");
        let heard = answering.join().unwrap();
        assert!(heard.starts_with("POST /x ") && !heard.contains("0123"), "{heard}");
        let own = rustix::process::geteuid().as_raw();
        assert_eq!(owner_of_folder(path.to_str().unwrap()), Some(own));
        assert_eq!(owner_of_folder("/tmp/admin.sock"), Some(0), "not who made the socket");
    }

    #[test]
    fn nothing_but_a_token_is_read_as_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            Token::read(&Secret::File(path.clone())).map(|token| token.text)
        };
        assert_eq!(read("0123456789abcdef\n").unwrap(), "0123456789abcdef");
        // A head that contains one of these characters would be split into two fields, or would end early.
        for odd in
            ["first line of it\nroot:$6$:1:2\n", "0123456789abcdef\r\nX: y", "0123456789 bcdef"]
        {
            let said = read(odd).unwrap_err();
            assert!(said.contains("character that no token has"), "{said}");
        }
        assert!(read("short\n").unwrap_err().contains("fewer than 16 characters"));
        assert!(Token::read(&Secret::File("/dev/zero".into())).is_err());
    }

    #[test]
    fn a_closed_port_is_said_with_a_fix() {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let error = request(&port.to_string(), "GET", "/", b"").unwrap_err().to_string();
        assert!(error.contains("--admin"), "{error}");
    }
}
