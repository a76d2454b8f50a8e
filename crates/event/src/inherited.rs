//! Descriptors that whoever started the process handed over, as systemd does for a socket unit.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::OFlags;
use rustix::io::FdFlags;
use rustix::net::{SocketType, sockopt};

use crate::{Address, Fd};

/// The first descriptor that is handed over.
const FIRST: RawFd = 3;
/// More than anybody hands over; a larger number is a mistake.
const COUNT_MAX: RawFd = 10_000;

/// Whether they were taken.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// One descriptor that was handed over.
#[derive(Debug)]
pub struct Inherited {
    /// Its name in `LISTEN_FDNAMES`; `unknown` when it has none, as systemd has it.
    pub name: String,
    /// The descriptor, non-blocking, and closed in programs that are started.
    pub fd: Fd,
    /// Where it listens or is bound, when it is a socket of a kind that [`Address`] knows.
    pub address: Option<Address>,
    /// What it can be used for.
    pub kind: InheritedKind,
}

/// What a descriptor that was handed over can be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InheritedKind {
    /// A socket of streams that listens: [`crate::Context::accept_from`].
    Listener,
    /// A socket of datagrams: [`crate::Context::datagram`].
    Datagrams,
    /// A socket of streams that does not listen, such as a connection.
    Stream,
    /// A socket of another type, or no socket.
    Other,
}

/// The descriptors that were handed over to this process (`LISTEN_PID`, `LISTEN_FDS`,
/// `LISTEN_FDNAMES`), in their order. They are handed out once: a second call finds none.
///
/// Call it early: a descriptor without the close-on-exec flag that this process opened before cannot be told from one
/// that was handed over. Those with the flag, as Rust opens all, are found out.
///
/// The variables stay set, for changing them is not safe beside other threads; they name this
/// process, so that no other takes them for its own.
///
/// # Errors
/// When the variables contradict what is open.
pub fn inherited() -> io::Result<Vec<Inherited>> {
    let variable = |name: &str| std::env::var_os(name);
    let said = Said {
        process: variable("LISTEN_PID"),
        count: variable("LISTEN_FDS"),
        names: variable("LISTEN_FDNAMES"),
    };
    let names = said.names_for(std::process::id())?;
    if names.is_empty() || TAKEN.swap(true, Ordering::Relaxed) {
        return Ok(Vec::new());
    }
    let all: Vec<_> = (FIRST..).zip(names).collect();
    // All are looked at before one is taken: what is wrong with the variables must not close what is ours.
    all.iter().try_for_each(|(number, name)| was_handed_over(*number, name))?;
    all.into_iter().map(|(number, name)| take(number, name)).collect()
}

/// What the variables say.
struct Said<T> {
    process: Option<T>,
    count: Option<T>,
    names: Option<T>,
}

impl<T: AsRef<OsStr>> Said<T> {
    /// The names of the descriptors that are for this process, one each.
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

/// Whether a descriptor can have been handed over: it is open, and it has survived the start of this process.
/// One that would be closed then was opened since, by this process, which may own it.
///
/// # Errors
/// When it cannot.
fn was_handed_over(number: RawFd, name: &str) -> io::Result<()> {
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
    // SAFETY: it is not negative. Whoever asks about one that is not open is told so by the system.
    unsafe { BorrowedFd::borrow_raw(number) }
}

#[expect(unsafe_code, reason = "nothing but a number tells of an inherited descriptor")]
fn take(number: RawFd, name: String) -> io::Result<Inherited> {
    // SAFETY: it was handed over to this process, as was just found, and so is ours alone: the swap above
    // lets it be taken once.
    let fd = unsafe { OwnedFd::from_raw_fd(number) };
    rustix::io::fcntl_setfd(&fd, FdFlags::CLOEXEC)?;
    let flags = rustix::fs::fcntl_getfl(&fd)?;
    rustix::fs::fcntl_setfl(&fd, flags | OFlags::NONBLOCK)?;
    let (address, kind) = (address(&fd), kind(&fd));
    if kind == InheritedKind::Listener && matches!(address, Some(Address::Internet(_))) {
        // As for our own listeners: what is accepted inherits it.
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

/// Where a socket is bound.
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

    fn said<'a>(process: &'a str, count: &'a str, names: Option<&'a str>) -> Said<&'a str> {
        Said { process: Some(process), count: Some(count), names }
    }

    #[test]
    fn names_are_those_of_this_process_only() {
        assert_eq!(said("7", "2", Some("web:admin")).names_for(7).unwrap(), ["web", "admin"]);
        assert_eq!(said("7", "2", None).names_for(7).unwrap(), ["unknown", "unknown"]);
        assert!(said("7", "2", None).names_for(8).unwrap().is_empty());
        let nothing: Said<&str> = Said { process: None, count: None, names: None };
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
            assert!(said("7", count, names).names_for(7).is_err(), "{count} {names:?}");
        }
        for odd in ["me", "+7", " 7", "-7", "", "7 "] {
            assert!(said(odd, "1", None).names_for(7).is_err(), "{odd:?}");
            assert!(said("7", odd, None).names_for(7).is_err(), "{odd:?}");
        }
    }

    #[test]
    fn what_this_process_has_opened_itself_is_not_taken() {
        use std::os::fd::AsRawFd;
        let own = std::fs::File::open("/dev/null").expect("a file");
        let error = was_handed_over(own.as_raw_fd(), "web").expect_err("it is ours");
        assert!(error.to_string().contains("LISTEN_FDS"), "{error}");
        own.metadata().expect("it is still open");
        let kept = rustix::io::fcntl_dupfd_cloexec(&own, 800).expect("a number");
        rustix::io::fcntl_setfd(&kept, FdFlags::empty()).expect("it is open");
        was_handed_over(kept.as_raw_fd(), "web").expect("it would survive an exec");
        let number = kept.as_raw_fd();
        drop(kept);
        assert!(was_handed_over(number, "web").is_err(), "it is closed");
    }
}
