//! The real kernel, by epoll.
//!
//! One `EPOLL_CTL_ADD` a stream for life, edge-triggered, both directions; none to change it.

use std::fmt;
use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, SocketAddrAny,
    SocketAddrUnix, SocketFlags, SocketType, sockopt,
};

use crate::kernel::{Happened, Interest, Kernel, Medium, Readiness, Token, Wake};
use crate::{Address, Direction, Fd, Peer};

/// The longest single wait. A loop that waits longer simply waits again.
const WAIT_MAX: Duration = Duration::from_secs(24 * 3600);
const NANOS_PER_MS: u32 = 1_000_000;

/// Linux, by epoll.
pub struct Epoll {
    epoll: OwnedFd,
    waker: Arc<EventFd>,
    reports: Vec<epoll::Event>,
}

impl fmt::Debug for Epoll {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Epoll").field("epoll", &self.epoll).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct EventFd(OwnedFd);

impl Wake for EventFd {
    fn wake(&self) {
        // It can only fail when the counter is full, and then a report is due anyway.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }
}

impl Epoll {
    /// A new epoll instance with its waker.
    ///
    /// # Errors
    /// When the process or the system has no descriptor left.
    pub fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let waker = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        // Edge-triggered, so that the counter need not be read: every write is a new edge.
        let token = EventData::new_u64(Token::WAKER.number());
        epoll::add(&epoll, &waker, token, EventFlags::IN | EventFlags::ET)?;
        Ok(Self { epoll, waker: Arc::new(EventFd(waker)), reports: Vec::new() })
    }
}

impl Kernel for Epoll {
    fn now(&mut self) -> Instant {
        Instant::now()
    }

    fn wait(
        &mut self,
        timeout: Option<Duration>,
        events_max: usize,
        happened: &mut Vec<Happened>,
    ) -> io::Result<()> {
        self.reports.clear();
        self.reports.reserve(events_max);
        let timeout = timeout.map(timespec);
        match epoll::wait(&self.epoll, spare_capacity(&mut self.reports), timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        happened.extend(self.reports.iter().map(|report| {
            let (data, flags) = (report.data, report.flags);
            Happened { token: Token::of_number(data.u64()), readiness: readiness(flags) }
        }));
        Ok(())
    }

    fn waker(&self) -> Arc<dyn Wake> {
        self.waker.clone()
    }

    fn watch(&mut self, fd: &Fd, token: Token, interest: Interest) -> io::Result<()> {
        let flags = match interest {
            Interest::Listener => EventFlags::IN,
            Interest::Stream(Direction::In) => EventFlags::IN | EventFlags::RDHUP | EventFlags::ET,
            Interest::Stream(Direction::Out) => EventFlags::OUT | EventFlags::ET,
            Interest::Stream(Direction::Both) => {
                EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET
            }
        };
        Ok(epoll::add(&self.epoll, fd, EventData::new_u64(token.number()), flags)?)
    }

    fn unwatch(&mut self, fd: &Fd) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, fd)?)
    }

    fn accept(&mut self, listener: &Fd) -> io::Result<(Fd, Peer)> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        match again(|| rustix::net::acceptfrom_with(listener, flags)) {
            Ok((fd, address)) => Ok((fd.into(), peer(address))),
            Err(error) => Err(accept_error(error)),
        }
    }

    fn connect(&mut self, to: &Address) -> io::Result<Fd> {
        let socket = match to {
            Address::Internet(address) => {
                let socket = stream_socket(family(address))?;
                sockopt::set_tcp_nodelay(&socket, true)?;
                in_progress(rustix::net::connect(&socket, address))?;
                socket
            }
            Address::Unix(path) => {
                let socket = stream_socket(AddressFamily::UNIX)?;
                in_progress(rustix::net::connect(&socket, &SocketAddrUnix::new(path)?))?;
                socket
            }
        };
        Ok(socket.into())
    }

    fn connected(&mut self, fd: &Fd) -> io::Result<()> {
        Ok(sockopt::socket_error(fd)??)
    }

    fn prepare(&mut self, fd: &Fd) -> io::Result<Medium> {
        let flags = rustix::fs::fcntl_getfl(fd)?;
        if !flags.contains(OFlags::NONBLOCK) {
            rustix::fs::fcntl_setfl(fd, flags | OFlags::NONBLOCK)?;
        }
        match sockopt::socket_type(fd) {
            Ok(SocketType::STREAM) => return Ok(Medium::Socket),
            Ok(_) => return Err(io::ErrorKind::Unsupported.into()),
            Err(_) => {}
        }
        let kind = rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(fd)?.st_mode);
        Ok(if kind.is_fifo() { Medium::Pipe } else { Medium::Other })
    }

    fn receive(&mut self, fd: &Fd, medium: Medium, room: &mut [u8]) -> io::Result<usize> {
        Ok(again(|| match medium {
            Medium::Socket => {
                rustix::net::recv(fd, &mut *room, RecvFlags::empty()).map(|(count, _)| count)
            }
            Medium::Pipe | Medium::Other => rustix::io::read(fd, &mut *room),
        })?)
    }

    fn send(&mut self, fd: &Fd, medium: Medium, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        Ok(again(|| match (medium, parts) {
            (Medium::Socket, [part]) => rustix::net::send(fd, part, SendFlags::NOSIGNAL),
            (Medium::Socket, parts) => {
                let mut control = SendAncillaryBuffer::default();
                rustix::net::sendmsg(fd, parts, &mut control, SendFlags::NOSIGNAL)
            }
            (Medium::Pipe | Medium::Other, [part]) => rustix::io::write(fd, part),
            (Medium::Pipe | Medium::Other, parts) => rustix::io::writev(fd, parts),
        })?)
    }

    fn shut(&mut self, fd: &Fd) -> io::Result<()> {
        Ok(rustix::net::shutdown(fd, Shutdown::Write)?)
    }
}

/// Calls until no signal interrupts.
fn again<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

/// Rounded up to what epoll can wait for, so that it never returns before an alarm can ring.
fn timespec(timeout: Duration) -> Timespec {
    let timeout = timeout.min(WAIT_MAX);
    let ms = timeout.subsec_nanos().div_ceil(NANOS_PER_MS);
    let secs =
        i64::try_from(timeout.as_secs()).expect("a day of seconds fits") + i64::from(ms / 1000);
    Timespec { tv_sec: secs, tv_nsec: i64::from(ms % 1000 * NANOS_PER_MS) }
}

fn readiness(flags: EventFlags) -> Readiness {
    let mut readiness = Readiness::NONE;
    for (flag, ready) in [
        (EventFlags::IN, Readiness::READ),
        (EventFlags::OUT, Readiness::WRITE),
        (EventFlags::RDHUP, Readiness::READ_END),
        (EventFlags::HUP, Readiness::HANGUP),
        (EventFlags::ERR, Readiness::ERROR),
    ] {
        if flags.contains(flag) {
            readiness |= ready;
        }
    }
    readiness
}

fn peer(address: Option<SocketAddrAny>) -> Peer {
    let address = address.and_then(|address| std::net::SocketAddr::try_from(address).ok());
    address.map_or(Peer::Local, Peer::Internet)
}

/// Which errors of accept(2) are about one connection, and which about the process.
fn accept_error(error: Errno) -> io::Error {
    match error {
        Errno::NETDOWN
        | Errno::PROTO
        | Errno::NOPROTOOPT
        | Errno::HOSTDOWN
        | Errno::NONET
        | Errno::HOSTUNREACH
        | Errno::OPNOTSUPP
        | Errno::NETUNREACH
        | Errno::TIMEDOUT
        | Errno::PERM => io::ErrorKind::ConnectionAborted.into(),
        Errno::MFILE | Errno::NFILE => io::ErrorKind::QuotaExceeded.into(),
        Errno::NOBUFS => io::ErrorKind::OutOfMemory.into(),
        error => error.into(),
    }
}

pub(crate) const fn family(address: &std::net::SocketAddr) -> AddressFamily {
    match address {
        std::net::SocketAddr::V4(_) => AddressFamily::INET,
        std::net::SocketAddr::V6(_) => AddressFamily::INET6,
    }
}

pub(crate) fn stream_socket(family: AddressFamily) -> io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    Ok(rustix::net::socket_with(family, SocketType::STREAM, flags, None)?)
}

fn in_progress(result: rustix::io::Result<()>) -> io::Result<()> {
    match result {
        // An interrupted non-blocking connect goes on all the same.
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
