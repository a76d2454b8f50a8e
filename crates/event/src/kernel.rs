//! The interface between the loop and a kernel.

use std::fmt;
use std::io::{self, IoSlice};
use std::ops::{BitOr, BitOrAssign};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::{Address, DatagramKind, Direction, Fd, Origin, Peer};

/// Whether a [`wait`](Kernel::wait) reported all events that had occurred when it looked for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completeness {
    /// All. If there are none, `timeout` had passed.
    Complete,
    /// There may be more: the maximum was reached, or a signal ended the wait.
    Partial,
}

/// The operations that the loop needs from a kernel. [`crate::Epoll`] is the default implementation.
///
/// Readiness of streams is *edge-triggered*. It is reported when it begins, and again only after
/// [`receive`](Self::receive) or [`send`](Self::send) reached its end, that is, moved fewer bytes than requested or
/// returned `WouldBlock`. A level-triggered kernel can provide this as well, because every such call passes through it.
/// Listeners are *level-triggered*: they are reported while a connection is waiting.
///
/// Only [`wait`](Self::wait) blocks. `Interrupted` is never returned.
#[expect(clippy::missing_errors_doc, reason = "each returns what the system call returns")]
pub trait Kernel {
    /// Reads the clock, which never goes back.
    fn now(&mut self) -> Instant;

    /// Waits until an event occurred or at least `timeout` has passed (`None`: without limit), and appends up to
    /// `events_max` reports to `ready_events`. Events are reported in the order in which they occurred, or descriptors
    /// in turn, so that each is reported after at most as many others as are watched.
    fn wait(
        &mut self,
        timeout: Option<Duration>,
        events_max: usize,
        ready_events: &mut Vec<ReadyEvent>,
    ) -> io::Result<Completeness>;

    /// Returns the handle that wakes this kernel from [`wait`](Self::wait) on another thread. The wake-up is reported
    /// as [`Token::WAKER`]. A wake-up before the wait ends that wait.
    fn waker(&self) -> Arc<dyn Wake>;

    /// Reports events of a stream or a listener under `token` from now on.
    fn watch(&mut self, fd: &Fd, token: Token, interest: Interest) -> io::Result<()>;

    /// Stops reporting events of this descriptor.
    fn unwatch(&mut self, fd: &Fd) -> io::Result<()>;

    /// Accepts the next connection of a listener; it is non-blocking. `ConnectionAborted`: this connection failed, but
    /// the next one may succeed. `QuotaExceeded`, or an error number with this meaning: no descriptor is left.
    fn accept(&mut self, listener: &Fd) -> io::Result<(Fd, Peer)>;

    /// Starts a non-blocking connect. [`connected`](Self::connected) returns the result when the stream is writable.
    fn connect(&mut self, to: &Address) -> io::Result<Fd>;

    /// Returns the result of a `connect`.
    fn connected(&mut self, fd: &Fd) -> io::Result<()>;

    /// Makes a foreign descriptor non-blocking and close-on-exec, and returns its kind.
    fn prepare(&mut self, fd: &Fd) -> io::Result<FdKind>;

    /// Receives into `room`. 0 means that the peer has ended its direction.
    fn receive(&mut self, fd: &Fd, fd_kind: FdKind, room: &mut [u8]) -> io::Result<usize>;

    /// Sends as much of `parts` as possible.
    fn send(&mut self, fd: &Fd, fd_kind: FdKind, parts: &[IoSlice<'_>]) -> io::Result<usize>;

    /// The number of bytes that a connected socket has accepted and the peer's kernel has not acknowledged.
    /// `Unsupported`: this is not known. For a Unix socket it is the memory of the messages that the peer has not
    /// received completely.
    fn unacknowledged(&mut self, fd: &Fd) -> io::Result<u64> {
        let _ = fd;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// The number of bytes that a pipe has accepted and that were not read, also after its reader has gone.
    /// `Unsupported`: this is not known.
    fn unread(fd: &Fd) -> io::Result<u64>
    where
        Self: Sized,
    {
        let _ = fd;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Ends our direction of a socket.
    fn shutdown_write(&mut self, fd: &Fd) -> io::Result<()>;

    /// Makes a foreign datagram socket non-blocking and close-on-exec, and returns its kind; any other descriptor is
    /// refused.
    fn prepare_datagrams(&mut self, fd: &Fd) -> io::Result<DatagramKind> {
        let _ = fd;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Receives one datagram and returns its full length, which may exceed the length of `room`.
    fn receive_datagram(
        &mut self,
        fd: &Fd,
        kind: DatagramKind,
        room: &mut [u8],
    ) -> io::Result<(usize, Origin)> {
        let _ = (fd, kind, room);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Sends one datagram, completely or not at all.
    fn send_datagram(
        &mut self,
        fd: &Fd,
        kind: DatagramKind,
        to: &Origin,
        bytes: &[u8],
    ) -> io::Result<()> {
        let _ = (fd, kind, to, bytes);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Returns a pipe for splicing. A kernel that cannot splice returns an error, and the relay copies instead.
    fn splice_pipe(&mut self) -> io::Result<SplicePipe> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Takes back an empty pipe for the next relay.
    fn keep_splice_pipe(&mut self, splice_pipe: SplicePipe) {
        drop(splice_pipe);
    }

    /// Moves up to `length` bytes from a stream into an empty pipe. 0 means that the peer has ended its direction.
    /// `InvalidInput`: this stream cannot be spliced.
    fn splice_in(
        &mut self,
        from: &Fd,
        splice_pipe: &SplicePipe,
        length: usize,
    ) -> io::Result<usize> {
        let _ = (from, splice_pipe, length);
        Err(io::ErrorKind::InvalidInput.into())
    }

    /// Moves up to `length` of the bytes in a pipe to a stream.
    fn splice_out(
        &mut self,
        splice_pipe: &SplicePipe,
        to: &Fd,
        length: usize,
    ) -> io::Result<usize> {
        let _ = (splice_pipe, to, length);
        Err(io::ErrorKind::InvalidInput.into())
    }

    /// Makes the close of a network socket a reset. Unsent bytes are discarded, and sent bytes may be lost. It has no
    /// effect on other descriptors.
    fn reset_on_close(&mut self, fd: &Fd);

    /// Asks the peer of a socket, after `after` without traffic, whether it is still connected. A kernel whose peers
    /// never vanish does nothing.
    fn keep_alive(&mut self, fd: &Fd, after: Duration) {
        let _ = (fd, after);
    }

    /// Closes a descriptor.
    fn close(&mut self, fd: Fd) {
        drop(fd);
    }
}

/// A pipe through which bytes are spliced from one stream to another.
#[derive(Debug)]
pub struct SplicePipe {
    pub(crate) reader: OwnedFd,
    pub(crate) writer: OwnedFd,
    /// Counts the existing pipes of its kernel.
    pub(crate) _alive: Arc<()>,
}

/// Wakes a loop from another thread.
pub trait Wake: Send + Sync + fmt::Debug {
    /// Ends the current or the next wait of the loop.
    fn wake(&self);
}

/// The kind of a descriptor, as far as it matters for reading and writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FdKind {
    /// A stream socket. A short read means that it is drained.
    Socket,
    /// A pipe. A short read means that it is drained.
    Pipe,
    /// Any other kind, such as a terminal. A short read has no meaning.
    Other,
    /// A process (pidfd_open(2)): it is readable when the process has ended, and is never read.
    Process,
}

/// What is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Connections that wait to be accepted, level-triggered.
    Listener,
    /// Events of a stream with this direction, edge-triggered.
    Stream(Direction),
}

/// A value that the kernel stores and returns with every report: generation, kind and index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token(u64);

const KIND_SHIFT: u32 = 30;
const PLACE_MASK: u32 = (1 << KIND_SHIFT) - 1;

impl Token {
    /// The loop was woken.
    pub const WAKER: Self = Self(u64::MAX);

    /// The token as a number.
    #[inline]
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }

    /// The token with this number.
    #[inline]
    #[must_use]
    pub const fn of_number(number: u64) -> Self {
        Self(number)
    }

    pub(crate) const fn stream(index: u32, generation: u32) -> Self {
        Self((generation as u64) << 32 | index as u64)
    }

    pub(crate) const fn listener(index: u32, generation: u32) -> Self {
        Self((generation as u64) << 32 | 1 << KIND_SHIFT | index as u64)
    }

    pub(crate) const fn datagrams(index: u32, generation: u32) -> Self {
        Self((generation as u64) << 32 | 2 << KIND_SHIFT | index as u64)
    }

    #[inline]
    pub(crate) fn target(self) -> Target {
        let [a, b, c, d, e, f, g, h] = self.0.to_be_bytes();
        let generation = u32::from_be_bytes([a, b, c, d]);
        let word = u32::from_be_bytes([e, f, g, h]);
        // This is the common case.
        if word <= PLACE_MASK {
            return Target::Stream { index: word, generation };
        }
        let index = word & PLACE_MASK;
        match word >> KIND_SHIFT {
            1 => Target::Listener { index, generation },
            2 => Target::Datagrams { index, generation },
            _ => Target::Waker,
        }
    }
}

/// The decoded content of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Stream { index: u32, generation: u32 },
    Listener { index: u32, generation: u32 },
    Datagrams { index: u32, generation: u32 },
    Waker,
}

/// One report of the kernel.
#[derive(Clone, Copy, Debug)]
pub struct ReadyEvent {
    /// The watched object.
    pub token: Token,
    /// Its readiness.
    pub readiness: Readiness,
}

/// A set of conditions: readable, writable, ended or failed. The bits are those of poll(2), except `READ_END`, because
/// POLLRDHUP does not fit into a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readiness(u8);

impl Readiness {
    /// No condition.
    pub const NONE: Self = Self(0);
    /// There are bytes to receive or connections to accept.
    pub const READ: Self = Self(1);
    /// The peer sends no more: receive until 0.
    pub const READ_END: Self = Self(2);
    /// There is room to send.
    pub const WRITE: Self = Self(4);
    /// There is an error to be received.
    pub const ERROR: Self = Self(8);
    /// Both directions have ended; for a pipe: the other end is closed.
    pub const HANGUP: Self = Self(16);

    /// Converts the bits of poll(2) or epoll_wait(2).
    #[inline]
    pub(crate) const fn of_poll(bits: u32) -> Self {
        let [low, high, ..] = bits.to_le_bytes();
        let same = Self::READ.0 | Self::WRITE.0 | Self::ERROR.0 | Self::HANGUP.0;
        // POLLRDHUP is 0x2000.
        Self(low & same | high >> 4 & Self::READ_END.0)
    }

    /// Whether it contains any condition of `other`.
    #[inline]
    #[must_use]
    pub const fn any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The conditions that are not in `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl BitOr for Readiness {
    type Output = Self;

    #[inline]
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Readiness {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_gives_back_what_was_put_in() {
        let (index, generation) = (PLACE_MASK, u32::MAX - 1);
        let stream = Token::stream(index, generation).target();
        assert_eq!(stream, Target::Stream { index, generation });
        let listener = Token::listener(3, 9).target();
        assert_eq!(listener, Target::Listener { index: 3, generation: 9 });
        let datagrams = Token::datagrams(3, 9).target();
        assert_eq!(datagrams, Target::Datagrams { index: 3, generation: 9 });
        assert_eq!(Token::WAKER.target(), Target::Waker);
    }

    #[test]
    fn what_poll_says_is_what_is_ready() {
        use rustix::event::epoll::EventFlags;
        let table = [
            (EventFlags::IN, Readiness::READ),
            (EventFlags::OUT, Readiness::WRITE),
            (EventFlags::RDHUP, Readiness::READ_END),
            (EventFlags::HUP, Readiness::HANGUP),
            (EventFlags::ERR, Readiness::ERROR),
            (EventFlags::PRI, Readiness::NONE),
        ];
        for (flag, ready) in table {
            assert_eq!(Readiness::of_poll(flag.bits()), ready, "{flag:?}");
        }
        let all = table.iter().fold(Readiness::NONE, |all, (_, ready)| all | *ready);
        assert_eq!(Readiness::of_poll(u32::MAX), all);
    }
}
