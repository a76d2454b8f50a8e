//! The system calls that all real kernels share: everything except waiting.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use rustix::ioctl::{Getter, Opcode, ioctl};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, SocketAddrAny, SocketFlags,
    SocketType, sockopt,
};

use crate::kernel::{FdKind, SplicePipe, Wake};
use crate::{Address, DatagramKind, Fd, Origin, Peer, refuse_descriptors, unix_datagram};
use rustix::pipe::{PipeFlags, SpliceFlags};

/// The longest single wait. If the loop waits longer, it waits again.
const WAIT_MAX: Duration = Duration::from_secs(24 * 3600);
const NANOS_PER_MS: u32 = 1_000_000;

/// Wakes a loop through an eventfd.
#[derive(Debug)]
pub(crate) struct EventFdWaker(OwnedFd);

impl EventFdWaker {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Resets the counter. A level-triggered kernel would otherwise report it again.
    pub(crate) fn reset(&self) {
        let _ = rustix::io::read(&self.0, &mut [0_u8; 8]);
    }
}

impl Wake for EventFdWaker {
    fn wake(&self) {
        // This can only fail if the counter is full, and then a report is pending anyway.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }
}

/// Accepts the next connection, non-blocking.
pub(crate) fn accept(listener: &Fd) -> io::Result<(Fd, Peer)> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    match retry_interrupted(|| rustix::net::acceptfrom_with(listener, flags)) {
        Ok((fd, address)) => Ok((fd.into(), peer(address))),
        Err(error) => Err(accept_error(error)),
    }
}

/// Starts a non-blocking connect.
pub(crate) fn connect(to: &Address) -> io::Result<Fd> {
    let socket = match to {
        Address::Internet(address) => {
            let socket = stream_socket(family(address))?;
            sockopt::set_tcp_nodelay(&socket, true)?;
            in_progress(rustix::net::connect(&socket, address))?;
            socket
        }
        Address::Unix(path) => {
            let socket = stream_socket(AddressFamily::UNIX)?;
            refuse_descriptors(&socket);
            in_progress(paths::SocketFile::open(path)?.connect(&socket))?;
            socket
        }
    };
    Ok(socket.into())
}

/// Returns the result of a `connect`.
pub(crate) fn connected(fd: &Fd) -> io::Result<()> {
    Ok(sockopt::socket_error(fd)??)
}

/// Prepares a foreign descriptor ([`Fd::prepare`]) and returns its kind.
pub(crate) fn prepare(fd: &Fd) -> io::Result<FdKind> {
    fd.prepare()?;
    match sockopt::socket_type(fd) {
        Ok(SocketType::STREAM) => return Ok(FdKind::Socket),
        Ok(_) => return Err(io::ErrorKind::Unsupported.into()),
        Err(_) => {}
    }
    let kind = rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(fd)?.st_mode);
    Ok(if kind.is_fifo() { FdKind::Pipe } else { FdKind::Other })
}

/// Receives from a socket or a file.
#[inline]
pub(crate) fn receive(fd: &Fd, fd_kind: FdKind, room: &mut [u8]) -> io::Result<usize> {
    if fd_kind != FdKind::Socket {
        return read(fd, fd_kind, room);
    }
    Ok(retry_interrupted(|| {
        rustix::net::recv(fd, &mut *room, RecvFlags::empty()).map(|(count, _)| count)
    })?)
}

#[inline(never)]
fn read(fd: &Fd, fd_kind: FdKind, room: &mut [u8]) -> io::Result<usize> {
    if fd_kind == FdKind::Process {
        return process_end(fd);
    }
    match retry_interrupted(|| rustix::io::read(fd, &mut *room)) {
        // The master end of a terminal returns EIO after the last program has closed its own end.
        Err(Errno::IO) if fd_kind == FdKind::Other && rustix::termios::isatty(fd) => Ok(0),
        result => Ok(result?),
    }
}

/// Returns 0 if a process has ended, as for the end of a stream.
fn process_end(fd: &Fd) -> io::Result<usize> {
    let mut entries = [PollFd::new(fd, PollFlags::IN)];
    match retry_interrupted(|| poll(&mut entries, Some(&Timespec::default())))? {
        0 => Err(io::ErrorKind::WouldBlock.into()),
        _ => Ok(0),
    }
}

/// Sends to a socket or a file, without a signal if there is no reader.
#[inline]
pub(crate) fn send(fd: &Fd, fd_kind: FdKind, parts: &[IoSlice<'_>]) -> io::Result<usize> {
    match (fd_kind, parts) {
        (FdKind::Socket, [part]) => {
            Ok(retry_interrupted(|| rustix::net::send(fd, part, SendFlags::NOSIGNAL))?)
        }
        _ => send_otherwise(fd, fd_kind, parts),
    }
}

#[inline(never)]
fn send_otherwise(fd: &Fd, fd_kind: FdKind, parts: &[IoSlice<'_>]) -> io::Result<usize> {
    Ok(retry_interrupted(|| match (fd_kind, parts) {
        (FdKind::Socket, parts) => {
            let mut control = SendAncillaryBuffer::default();
            rustix::net::sendmsg(fd, parts, &mut control, SendFlags::NOSIGNAL)
        }
        (_, [part]) => rustix::io::write(fd, part),
        (_, parts) => rustix::io::writev(fd, parts),
    })?)
}

/// Prepares a foreign datagram socket ([`Fd::prepare`]) and returns its kind; refuses any other descriptor.
pub(crate) fn prepare_datagrams(fd: &Fd) -> io::Result<DatagramKind> {
    if sockopt::socket_type(fd)? != SocketType::DGRAM {
        return Err(io::ErrorKind::Unsupported.into());
    }
    fd.prepare()?;
    if sockopt::socket_domain(fd)? != AddressFamily::UNIX {
        return Ok(DatagramKind::Internet);
    }
    // An inherited socket may not have it.
    sockopt::set_socket_passcred(fd, true)?;
    Ok(DatagramKind::Unix { file: unix_datagram::own_file(fd) })
}

/// Receives one datagram. With `TRUNC` the kernel returns its full length.
pub(crate) fn receive_datagram(
    fd: &Fd,
    kind: DatagramKind,
    room: &mut [u8],
) -> io::Result<(usize, Origin)> {
    if matches!(kind, DatagramKind::Unix { .. }) {
        return Ok(retry_interrupted(|| unix_datagram::receive(fd, &mut *room))?);
    }
    let (_, length, from) =
        retry_interrupted(|| rustix::net::recvfrom(fd, &mut *room, RecvFlags::TRUNC))?;
    let from = from.and_then(|from| std::net::SocketAddr::try_from(from).ok());
    // The kernel sends to an IPv4 address from a socket of IPv6 as well.
    Ok((length, from.map_or(Origin::NOWHERE, |from| canonical(from).into())))
}

/// Sends one datagram.
pub(crate) fn send_datagram(
    fd: &Fd,
    kind: DatagramKind,
    to: &Origin,
    bytes: &[u8],
) -> io::Result<()> {
    let flags = SendFlags::NOSIGNAL;
    let sent = retry_interrupted(|| match (to.internet(), to.unix()) {
        (Some(address), _) => rustix::net::sendto(fd, bytes, flags, &address),
        (None, Some(address)) => match to.owner() {
            Some(owner) => unix_datagram::send_to_owner(fd, kind, address, owner, bytes),
            None => rustix::net::sendto(fd, bytes, flags, address),
        },
        (None, None) => Err(Errno::DESTADDRREQ),
    });
    Ok(sent.map(drop)?)
}

/// Unused pipes that are kept for the next relays.
#[derive(Debug, Default)]
pub(crate) struct SplicePipes {
    spare: Vec<SplicePipe>,
    alive: Arc<()>,
}

/// The maximum number of unused pipes that are kept.
const SPLICE_PIPES_SPARE_MAX: usize = 16;
/// The maximum number of pipes at the same time, most of them in relays whose other side accepts nothing at the moment.
/// Further relays copy. An unprivileged user may use 64 MiB in pipes (`pipe-user-pages-soft`).
const SPLICE_PIPES_MAX: usize = 128;
/// The capacity of a pipe in bytes, where the system allows it.
const SPLICE_PIPE_BYTES: usize = 256 << 10;

impl SplicePipes {
    pub(crate) fn take(&mut self) -> io::Result<SplicePipe> {
        if let Some(splice_pipe) = self.spare.pop() {
            return Ok(splice_pipe);
        }
        if Arc::strong_count(&self.alive) > SPLICE_PIPES_MAX {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        let flags = PipeFlags::NONBLOCK | PipeFlags::CLOEXEC;
        let (reader, writer) = rustix::pipe::pipe_with(flags)?;
        // A pipe that stays smaller only needs more calls.
        let _ = rustix::pipe::fcntl_setpipe_size(&writer, SPLICE_PIPE_BYTES);
        Ok(SplicePipe { reader, writer, _alive: Arc::clone(&self.alive) })
    }

    pub(crate) fn keep(&mut self, splice_pipe: SplicePipe) {
        if self.spare.len() < SPLICE_PIPES_SPARE_MAX {
            self.spare.push(splice_pipe);
        }
    }
}

/// Splices from a stream into a pipe. Both must be non-blocking; the flag alone is not sufficient.
pub(crate) fn splice_in(from: &Fd, splice_pipe: &SplicePipe, length: usize) -> io::Result<usize> {
    let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
    Ok(retry_interrupted(|| {
        rustix::pipe::splice(from, None, &splice_pipe.writer, None, length, flags)
    })?)
}

/// Splices from a pipe to a stream.
pub(crate) fn splice_out(splice_pipe: &SplicePipe, to: &Fd, length: usize) -> io::Result<usize> {
    let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
    Ok(retry_interrupted(|| {
        rustix::pipe::splice(&splice_pipe.reader, None, to, None, length, flags)
    })?)
}

/// `SIOCOUTQ` of tcp(7) and unix(7), which equals `TIOCOUTQ`.
const OUTPUT_QUEUE: Opcode = if cfg!(any(target_arch = "mips", target_arch = "mips64")) {
    0x7472
} else if cfg!(any(
    target_arch = "powerpc",
    target_arch = "powerpc64",
    target_arch = "sparc",
    target_arch = "sparc64"
)) {
    0x4004_7473
} else {
    0x5411
};

/// The number of bytes that the peer of a socket has not acknowledged.
#[expect(unsafe_code, reason = "rustix has the call, but not this operation")]
pub(crate) fn unacknowledged(fd: &Fd) -> io::Result<u64> {
    // SAFETY: the operation writes one `int`, which is the type of the getter.
    let call = unsafe { Getter::<OUTPUT_QUEUE, i32>::new() };
    // SAFETY: on any other descriptor the operation fails, or returns the corresponding value of a terminal.
    let count = unsafe { ioctl(fd, call) }?;
    u64::try_from(count).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// The number of bytes in a pipe. Linux reports it at both ends, and unread bytes still count after the reader has
/// closed its end.
pub(crate) fn unread(fd: &Fd) -> io::Result<u64> {
    if cfg!(target_os = "linux") {
        Ok(rustix::io::ioctl_fionread(fd)?)
    } else {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Ends our direction.
pub(crate) fn shutdown_write(fd: &Fd) -> io::Result<()> {
    Ok(rustix::net::shutdown(fd, Shutdown::Write)?)
}

/// Makes the close of a network socket a reset (tcp(7): `SO_LINGER` with zero time). Unix sockets have no reset, and
/// descriptors that are not sockets refuse the option.
pub(crate) fn reset_on_close(fd: &Fd) {
    let _ = sockopt::set_socket_linger(fd, Some(Duration::ZERO));
}

/// The number of probes that a peer may leave unanswered, and the longest time before the first probe that the kernel
/// accepts.
const PROBES: u32 = 4;
const KEEP_ALIVE_MAX: Duration = Duration::from_secs(32_767);

/// Enables keep-alive probes for a peer on the network. After `after` (at least 1 s) without traffic the kernel asks
/// the peer whether it is still connected. If four probes within the same time again stay unanswered, the connection
/// ends as if it were reset. Connections that a listening socket accepts from then on inherit the setting. Unix sockets
/// are not changed, because the kernel reports immediately when their peer closes.
pub fn keep_alive(fd: &Fd, after: Duration) {
    let after = after.clamp(Duration::from_secs(1), KEEP_ALIVE_MAX);
    let between = (after / PROBES).max(Duration::from_secs(1));
    let _ = sockopt::set_tcp_keepidle(fd, after)
        .and_then(|()| sockopt::set_tcp_keepintvl(fd, between))
        .and_then(|()| sockopt::set_tcp_keepcnt(fd, PROBES))
        .and_then(|()| sockopt::set_socket_keepalive(fd, true));
}

/// Repeats the call while a signal interrupts it.
#[inline]
pub(crate) fn retry_interrupted<T>(
    mut call: impl FnMut() -> rustix::io::Result<T>,
) -> rustix::io::Result<T> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

/// Rounds up to whole milliseconds, the unit in which epoll waits, so that a wait never returns before an alarm is due.
pub(crate) fn timespec(timeout: Duration) -> Timespec {
    let timeout = timeout.min(WAIT_MAX);
    let ms = timeout.subsec_nanos().div_ceil(NANOS_PER_MS);
    let secs =
        i64::try_from(timeout.as_secs()).expect("a day of seconds fits") + i64::from(ms / 1000);
    Timespec { tv_sec: secs, tv_nsec: i64::from(ms % 1000 * NANOS_PER_MS) }
}

fn peer(address: Option<SocketAddrAny>) -> Peer {
    let address = address.and_then(|address| std::net::SocketAddr::try_from(address).ok());
    address.map(canonical).map_or(Peer::Local, Peer::Internet)
}

/// An IPv4 client of a socket that listens on IPv6 and IPv4 has an IPv4 address.
fn canonical(address: std::net::SocketAddr) -> std::net::SocketAddr {
    match address.ip().to_canonical() {
        ip if ip == address.ip() => address,
        ip => std::net::SocketAddr::new(ip, address.port()),
    }
}

/// Maps the errors of accept(2): some concern one connection, others the process.
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
    socket(family, SocketType::STREAM)
}

pub(crate) fn socket(family: AddressFamily, kind: SocketType) -> io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    Ok(rustix::net::socket_with(family, kind, flags, None)?)
}

fn in_progress(result: rustix::io::Result<()>) -> io::Result<()> {
    match result {
        // An interrupted non-blocking connect continues.
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
