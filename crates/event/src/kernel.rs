//! The seam under the loop: the few things it asks of a kernel.

use std::fmt;
use std::io::{self, IoSlice};
use std::ops::{BitOr, BitOrAssign};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::{Address, Direction, Fd, Origin, Peer};

/// What the loop asks of a kernel. [`crate::Epoll`] is the real one.
///
/// Readiness of streams is *edge*: it is reported when it comes and again only after
/// [`receive`](Self::receive) or [`send`](Self::send) found an end of it, that is, moved fewer
/// bytes than asked or reported `WouldBlock`. A level-triggered kernel can keep that promise, for
/// every such call passes through it. Listeners are *level*: reported as long as one waits.
///
/// Nothing here blocks but [`wait`](Self::wait). `Interrupted` is never returned.
#[expect(clippy::missing_errors_doc, reason = "each returns what the system call returns")]
pub trait Kernel {
    /// The clock; it never goes back.
    fn now(&mut self) -> Instant;

    /// Waits until something happened or at least `timeout` has passed (none: for ever), and adds
    /// up to `events_max` reports to `happened`. A wake-up or a signal may end it without any.
    fn wait(
        &mut self,
        timeout: Option<Duration>,
        events_max: usize,
        happened: &mut Vec<ReadyEvent>,
    ) -> io::Result<()>;

    /// What wakes this kernel out of [`wait`](Self::wait) from another thread; it is reported as
    /// [`Token::WAKER`]. A wake-up that comes before the wait ends that wait.
    fn waker(&self) -> Arc<dyn Wake>;

    /// Reports what happens to a stream or a listener under `token` from now on.
    fn watch(&mut self, fd: &Fd, token: Token, interest: Interest) -> io::Result<()>;

    /// Reports it no longer.
    fn unwatch(&mut self, fd: &Fd) -> io::Result<()>;

    /// Takes the next connection of a listener, non-blocking. `ConnectionAborted`: that one was
    /// not to be had, the next one may be. `QuotaExceeded`: no descriptor is left.
    fn accept(&mut self, listener: &Fd) -> io::Result<(Fd, Peer)>;

    /// Begins to connect, non-blocking. The answer comes by [`connected`](Self::connected) once
    /// the stream is writable.
    fn connect(&mut self, to: &Address) -> io::Result<Fd>;

    /// How a `connect` ended.
    fn connected(&mut self, fd: &Fd) -> io::Result<()>;

    /// Makes a descriptor from elsewhere non-blocking and tells what it is.
    fn prepare(&mut self, fd: &Fd) -> io::Result<FdKind>;

    /// Receives into `room`; 0 is the end of what the peer sends.
    fn receive(&mut self, fd: &Fd, medium: FdKind, room: &mut [u8]) -> io::Result<usize>;

    /// Sends as much of `parts` as goes.
    fn send(&mut self, fd: &Fd, medium: FdKind, parts: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Bytes that a connected socket has accepted and its peer's kernel has not acknowledged. `Unsupported`:
    /// that is not known. A Unix socket counts the memory of the messages that its peer has not received
    /// wholly.
    fn unacknowledged(&mut self, fd: &Fd) -> io::Result<u64> {
        let _ = fd;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Bytes that a pipe has accepted and nobody has read, also once its reader has gone. `Unsupported`: that is not
    /// known.
    fn unread(fd: &Fd) -> io::Result<u64>
    where
        Self: Sized,
    {
        let _ = fd;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Ends our direction of a socket.
    fn shut(&mut self, fd: &Fd) -> io::Result<()>;

    /// Makes a datagram socket from elsewhere non-blocking; any other descriptor is refused.
    fn prepare_datagrams(&mut self, fd: &Fd) -> io::Result<()> {
        let _ = fd;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Receives one datagram and tells its whole length, which may be more than there was room.
    fn receive_datagram(&mut self, fd: &Fd, room: &mut [u8]) -> io::Result<(usize, Origin)> {
        let _ = (fd, room);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Sends one datagram, whole or not at all.
    fn send_datagram(&mut self, fd: &Fd, to: &Origin, bytes: &[u8]) -> io::Result<()> {
        let _ = (fd, to, bytes);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Something to splice through. A kernel that cannot splice has none, and relays by a copy.
    fn conduit(&mut self) -> io::Result<SplicePipe> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Takes back an empty conduit, for the next who needs one.
    fn keep_conduit(&mut self, conduit: SplicePipe) {
        drop(conduit);
    }

    /// Moves up to `length` bytes from a stream into an empty conduit; 0 is the end of what the
    /// peer sends. `InvalidInput`: this stream cannot be spliced.
    fn splice_in(&mut self, from: &Fd, conduit: &SplicePipe, length: usize) -> io::Result<usize> {
        let _ = (from, conduit, length);
        Err(io::ErrorKind::InvalidInput.into())
    }

    /// Moves up to `length` of the bytes in a conduit to a stream.
    fn splice_out(&mut self, conduit: &SplicePipe, to: &Fd, length: usize) -> io::Result<usize> {
        let _ = (conduit, to, length);
        Err(io::ErrorKind::InvalidInput.into())
    }

    /// Lets the close of a socket of the network be a reset: what was not sent is forgotten, and what
    /// was may be. Of anything else the close stays as it is.
    fn reset_on_close(&mut self, fd: &Fd);

    /// Has the peer of a socket be asked, after so long without a word, whether it is still there. A
    /// kernel whose peers never vanish does nothing.
    fn keep_alive(&mut self, fd: &Fd, after: Duration) {
        let _ = (fd, after);
    }

    /// Gives a descriptor back.
    fn close(&mut self, fd: Fd) {
        drop(fd);
    }
}

/// A pipe through which bytes are spliced from one stream to another.
#[derive(Debug)]
pub struct SplicePipe {
    pub(crate) reader: OwnedFd,
    pub(crate) writer: OwnedFd,
    /// Counts those of its kernel that are there.
    pub(crate) _alive: Arc<()>,
}

/// Wakes a loop from another thread.
pub trait Wake: Send + Sync + fmt::Debug {
    /// Ends the present or the next wait of the loop.
    fn wake(&self);
}

/// What a descriptor is, as far as reading and writing it differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FdKind {
    /// A stream socket. A short read means that it is drained.
    Socket,
    /// A pipe. A short read means that it is drained.
    Pipe,
    /// Anything else, such as a terminal: a short read means nothing.
    Other,
}

/// What shall be reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Connections that wait to be accepted, level-triggered.
    Listener,
    /// What happens to a stream that flows this way, edge-triggered.
    Stream(Direction),
}

/// What the kernel carries for us and gives back with every report: generation, kind and place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token(u64);

const KIND_SHIFT: u32 = 30;
const PLACE_MASK: u32 = (1 << KIND_SHIFT) - 1;

impl Token {
    /// Somebody woke the loop.
    pub const WAKER: Self = Self(u64::MAX);

    /// The token as one number.
    #[inline]
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }

    /// The token of this number.
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
        // Nearly always.
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

/// What a token names.
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
    /// To what.
    pub token: Token,
    /// And what.
    pub readiness: Readiness,
}

/// What can be done, or has come to an end. Its bits are those of poll(2), but for `READ_END`, which
/// a byte has no room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readiness(u8);

impl Readiness {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// There is something to receive or to accept.
    pub const READ: Self = Self(1);
    /// The peer sends no more: receive until 0.
    pub const READ_END: Self = Self(2);
    /// There is room to send.
    pub const WRITE: Self = Self(4);
    /// An error waits to be received.
    pub const ERROR: Self = Self(8);
    /// Both directions have ended, or for a pipe, its other end is gone.
    pub const HANGUP: Self = Self(16);

    /// What poll(2) or epoll_wait(2) says by these bits.
    #[inline]
    pub(crate) const fn of_poll(bits: u32) -> Self {
        let [low, high, ..] = bits.to_le_bytes();
        let same = Self::READ.0 | Self::WRITE.0 | Self::ERROR.0 | Self::HANGUP.0;
        // POLLRDHUP is 0x2000.
        Self(low & same | high >> 4 & Self::READ_END.0)
    }

    /// True when any of `other` is in it.
    #[inline]
    #[must_use]
    pub const fn any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// What is in it and not in `other`.
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
