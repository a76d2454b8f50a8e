//! Descriptors that the parent process passed to this process, as systemd does for a socket unit.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::OFlags;
use rustix::io::FdFlags;
use rustix::net::{SocketType, sockopt};

use crate::{Address, Fd};

/// The number of the first passed descriptor.
const FIRST: RawFd = 3;
/// More descriptors than any parent passes; a larger number is a mistake.
const COUNT_MAX: RawFd = 10_000;

/// Whether they were taken.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// One passed descriptor.
#[derive(Debug)]
pub struct Inherited {
    /// The name in `LISTEN_FDNAMES`; `unknown` if there is none, as in systemd.
    pub name: String,
    /// The descriptor. It is non-blocking, and closed in programs that are started.
    pub fd: Fd,
    /// The address on which it listens or to which it is bound, if it is a socket and [`Address`] can express its
    /// address.
    pub address: Option<Address>,
    /// How it can be used.
    pub kind: InheritedKind,
}

/// How a passed descriptor can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InheritedKind {
    /// A listening stream socket: [`crate::Context::accept_from`].
    Listener,
    /// A datagram socket: [`crate::Context::datagram`].
    Datagrams,
    /// A stream socket that does not listen, such as a connection.
    Stream,
    /// A socket of another type, or not a socket.
    Other,
}

/// Returns the descriptors that were passed to this process (`LISTEN_PID`, `LISTEN_FDS`, `LISTEN_FDNAMES`), in their
/// order. They are returned once: a second call returns none.
///
/// Call this function early. If this process has opened a descriptor without the close-on-exec flag before, that
/// descriptor cannot be distinguished from a passed one. Descriptors with the flag, which Rust always sets, are
/// detected.
///
/// The variables stay set, because changing them is not safe while other threads run. They name this process, so other
/// processes ignore them.
///
/// # Errors
/// If the variables contradict the open descriptors.
pub fn inherited() -> io::Result<Vec<Inherited>> {
    let variable = |name: &str| std::env::var_os(name);
    let variables = ListenVariables {
        process: variable("LISTEN_PID"),
        count: variable("LISTEN_FDS"),
        names: variable("LISTEN_FDNAMES"),
    };
    let names = variables.names_for(std::process::id())?;
    if names.is_empty() || TAKEN.swap(true, Ordering::Relaxed) {
        return Ok(Vec::new());
    }
    let all: Vec<_> = (FIRST..).zip(names).collect();
    // All descriptors are checked before one is taken: an error in the variables must not close descriptors of this
    // process.
    all.iter().try_for_each(|(number, name)| check_passed(*number, name))?;
    all.into_iter().map(|(number, name)| take(number, name)).collect()
}

/// The values of the variables.
struct ListenVariables<T> {
    process: Option<T>,
    count: Option<T>,
    names: Option<T>,
}

impl<T: AsRef<OsStr>> ListenVariables<T> {
    /// Returns the names of the descriptors for this process, one for each.
    fn names_for(&self, process: u32) -> io::Result<Vec<String>> {
        let (Some(of), Some(count)) = (&self.process, &self.count) else { return Ok(Vec::new()) };
        if number(of.as_ref(), "LISTEN_PID")? != i64::from(process) {
            return Ok(Vec::new());
        }
        let count = number(count.as_ref(), "LISTEN_FDS")?;
        let count = usize::try_from(count)
            .ok()
            .filter(|&count| count <= COUNT_MAX.unsigned_abs() as usize)
            .ok_or_else(|| invalid(format!("LISTEN_FDS is {count}")))?;
        let Some(names) = &self.names else { return Ok(vec!["unknown".to_owned(); count]) };
        let names = names.as_ref().to_string_lossy();
        let names: Vec<String> = names.split(':').map(str::to_owned).collect();
        if names.len() != count {
            let text = format!("LISTEN_FDNAMES has {} names for {count} descriptors", names.len());
            return Err(invalid(text));
        }
        Ok(names)
    }
}

fn number(text: &OsStr, of: &str) -> io::Result<i64> {
    let digits = text.to_str().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let number = digits.and_then(|text| text.parse().ok());
    number.ok_or_else(|| invalid(format!("{of} is no number")))
}

fn invalid(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

/// Checks that a descriptor can have been passed: it is open, and it has survived the start of this process. A
/// descriptor with the close-on-exec flag was opened later by this process, which may own it.
///
/// # Errors
/// If it cannot have been passed.
fn check_passed(number: RawFd, name: &str) -> io::Result<()> {
    let wrong = |why: &dyn std::fmt::Display| {
        invalid(format!("descriptor {number} (`{name}`) was said to be handed over: {why}"))
    };
    let flags = rustix::io::fcntl_getfd(borrowed(number)).map_err(|errno| wrong(&errno))?;
    if flags.contains(FdFlags::CLOEXEC) {
        return Err(wrong(&"this process has opened it itself; is LISTEN_FDS right?"));
    }
    Ok(())
}

#[expect(unsafe_code, reason = "nothing but a number tells of an inherited descriptor")]
fn borrowed(number: RawFd) -> BorrowedFd<'static> {
    // SAFETY: the number is not negative. If no descriptor with this number is open, the system returns an error.
    unsafe { BorrowedFd::borrow_raw(number) }
}

#[expect(unsafe_code, reason = "nothing but a number tells of an inherited descriptor")]
fn take(number: RawFd, name: String) -> io::Result<Inherited> {
    // SAFETY: the descriptor was passed to this process, as was just checked, so it has no other owner. The swap in
    // `inherited` ensures that it is taken only once.
    let fd = unsafe { OwnedFd::from_raw_fd(number) };
    rustix::io::fcntl_setfd(&fd, FdFlags::CLOEXEC)?;
    let flags = rustix::fs::fcntl_getfl(&fd)?;
    rustix::fs::fcntl_setfl(&fd, flags | OFlags::NONBLOCK)?;
    let (address, kind) = (address(&fd), kind(&fd));
    if kind == InheritedKind::Listener && matches!(address, Some(Address::Internet(_))) {
        // As for our own listeners: accepted sockets inherit it.
        let _ = sockopt::set_tcp_nodelay(&fd, true);
    }
    Ok(Inherited { name, fd: fd.into(), address, kind })
}

fn kind(fd: &impl AsFd) -> InheritedKind {
    match sockopt::socket_type(fd) {
        Ok(SocketType::STREAM) => match sockopt::socket_acceptconn(fd) {
            Ok(true) => InheritedKind::Listener,
            Ok(false) | Err(_) => InheritedKind::Stream,
        },
        Ok(SocketType::DGRAM) => InheritedKind::Datagrams,
        Ok(_) | Err(_) => InheritedKind::Other,
    }
}

/// The local address of a socket.
pub(crate) fn address(fd: &OwnedFd) -> Option<Address> {
    use std::os::unix::ffi::OsStrExt;
    let any = rustix::net::getsockname(fd).ok()?;
    if let Ok(internet) = std::net::SocketAddr::try_from(any.clone()) {
        return Some(Address::Internet(internet));
    }
    let unix = rustix::net::SocketAddrUnix::try_from(any).ok()?;
    let path = OsStr::from_bytes(unix.path_bytes()?);
    Some(Address::Unix(path.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables<'a>(
        process: &'a str,
        count: &'a str,
        names: Option<&'a str>,
    ) -> ListenVariables<&'a str> {
        ListenVariables { process: Some(process), count: Some(count), names }
    }

    #[test]
    fn names_are_those_of_this_process_only() {
        assert_eq!(variables("7", "2", Some("web:admin")).names_for(7).unwrap(), ["web", "admin"]);
        assert_eq!(variables("7", "2", None).names_for(7).unwrap(), ["unknown", "unknown"]);
        assert!(variables("7", "2", None).names_for(8).unwrap().is_empty());
        let nothing: ListenVariables<&str> =
            ListenVariables { process: None, count: None, names: None };
        assert!(nothing.names_for(7).unwrap().is_empty());
    }

    #[test]
    fn what_a_descriptor_is_follows_from_its_type_and_whether_it_listens() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("it is bound");
        let stream = std::net::TcpStream::connect(address).expect("it listens");
        let datagrams = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
        let folder = tempfile::tempdir().expect("a folder");
        let unix = std::os::unix::net::UnixListener::bind(folder.path().join("socket"));
        let file = std::fs::File::open("/dev/null").expect("a file");
        assert_eq!(kind(&listener), InheritedKind::Listener);
        assert_eq!(kind(&unix.expect("a socket")), InheritedKind::Listener);
        assert_eq!(kind(&stream), InheritedKind::Stream);
        assert_eq!(kind(&datagrams), InheritedKind::Datagrams);
        assert_eq!(kind(&file), InheritedKind::Other);
    }

    #[test]
    fn contradictions_are_errors() {
        for (count, names) in [("2", Some("web")), ("-1", None), ("x", None), ("99999", None)] {
            assert!(variables("7", count, names).names_for(7).is_err(), "{count} {names:?}");
        }
        for odd in ["me", "+7", " 7", "-7", "", "7 "] {
            assert!(variables(odd, "1", None).names_for(7).is_err(), "{odd:?}");
            assert!(variables("7", odd, None).names_for(7).is_err(), "{odd:?}");
        }
    }

    #[test]
    fn what_this_process_has_opened_itself_is_not_taken() {
        use std::os::fd::AsRawFd;
        let own = std::fs::File::open("/dev/null").expect("a file");
        let error = check_passed(own.as_raw_fd(), "web").expect_err("it is ours");
        assert!(error.to_string().contains("LISTEN_FDS"), "{error}");
        own.metadata().expect("it is still open");
        let kept = rustix::io::fcntl_dupfd_cloexec(&own, 800).expect("a number");
        rustix::io::fcntl_setfd(&kept, FdFlags::empty()).expect("it is open");
        check_passed(kept.as_raw_fd(), "web").expect("it would survive an exec");
        let number = kept.as_raw_fd();
        drop(kept);
        assert!(check_passed(number, "web").is_err(), "it is closed");
    }
}
