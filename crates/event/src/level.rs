//! How a level-triggered kernel keeps the edge promise of [`Kernel`].
//!
//! poll and select report what *is* ready, again and again. So what was reported is not asked for
//! any more, until a call to receive or to send, all of which pass through here, found an end of it.
//!
//! ```text
//!              reported                      a short read, a short write, WouldBlock
//!   watched ────────────► not asked for ──────────────────────────────────────────► watched
//!              hang-up                       received 0, or an error
//!      └─────────────────► gone: never asked for again; what is left shows by receiving
//! ```

use std::fmt;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::FileType;

use crate::kernel::{FdKind, Interest, Kernel, Readiness, ReadyEvent, SplicePipe, Token, Wake};
use crate::system::{self, Alarm, SplicePipes};
use crate::{Address, Direction, Fd, Origin, Peer};

/// A set of descriptors that one level-triggered system call waits for.
///
/// Every descriptor in it is open: whoever closes one takes it out before.
pub trait LevelSet: fmt::Debug + Sized {
    /// An empty set.
    ///
    /// # Errors
    /// When the system does not tell what the set needs to know.
    fn new() -> io::Result<Self>;

    /// Puts a descriptor in, or changes what is asked of it: [`Readiness::READ`], `WRITE`, both or
    /// nothing. Its hang-up is reported in any case.
    ///
    /// # Errors
    /// `QuotaExceeded` when the set has no place for this descriptor.
    fn ask(&mut self, fd: BorrowedFd<'_>, wants: Readiness) -> io::Result<()>;

    /// Takes a descriptor out, if it is in.
    fn remove(&mut self, fd: RawFd);

    /// Waits, and adds up to `count_max` descriptors with what they are ready for. When there are
    /// more, the others come first the next time.
    ///
    /// # Errors
    /// What the system call returns; an interruption is none.
    fn wait(
        &mut self,
        timeout: Option<Duration>,
        count_max: usize,
        ready: &mut Vec<(RawFd, Readiness)>,
    ) -> io::Result<()>;
}

/// A kernel over a level-triggered system call.
#[derive(Debug)]
pub struct Level<S> {
    set: S,
    waker: Arc<Alarm>,
    /// By the number of the descriptor.
    watched: Vec<Option<Watched>>,
    ready: Vec<(RawFd, Readiness)>,
    conduits: SplicePipes,
}

#[derive(Clone, Copy, Debug)]
struct Watched {
    token: Token,
    interest: Interest,
    /// What is asked for now.
    wants: Readiness,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// In the set.
    Live,
    /// Out of it, for its error would be reported until somebody receives it.
    Failed,
    /// Out of it for good.
    Gone,
}

impl<S: LevelSet> Level<S> {
    /// A new kernel with its waker.
    ///
    /// # Errors
    /// When the process or the system has no descriptor left.
    pub fn new() -> io::Result<Self> {
        let (mut set, waker) = (S::new()?, Arc::new(Alarm::new()?));
        set.ask(waker.fd(), Readiness::READ)?;
        Ok(Self {
            set,
            waker,
            watched: Vec::new(),
            ready: Vec::new(),
            conduits: SplicePipes::default(),
        })
    }

    fn place(&mut self, fd: RawFd) -> Option<&mut Watched> {
        let index = usize::try_from(fd).ok()?;
        self.watched.get_mut(index)?.as_mut()
    }

    fn forget(&mut self, fd: RawFd) {
        self.set.remove(fd);
        if let Some(place) = usize::try_from(fd).ok().and_then(|at| self.watched.get_mut(at)) {
            *place = None;
        }
    }

    /// Turns one level into an edge.
    fn hear(&mut self, fd: RawFd, readiness: Readiness) -> Option<ReadyEvent> {
        let watched = self.place(fd)?;
        let happened = ReadyEvent { token: watched.token, readiness };
        if watched.interest == Interest::Listener {
            return Some(happened);
        }
        let read = Readiness::READ | Readiness::READ_END;
        if readiness.any(read) {
            watched.wants = watched.wants.without(read);
        }
        if readiness.any(Readiness::WRITE) {
            watched.wants = watched.wants.without(Readiness::WRITE);
        }
        if readiness.any(Readiness::HANGUP) {
            watched.state = State::Gone;
        } else if readiness.any(Readiness::ERROR) {
            watched.state = State::Failed;
        }
        self.put(fd);
        Some(happened)
    }

    /// Asks again for what a call has just found the end of.
    fn again(&mut self, fd: &Fd, what: Readiness) {
        let fd = fd.as_fd().as_raw_fd();
        let Some(watched) = self.place(fd) else { return };
        if watched.state == State::Failed {
            watched.state = State::Live;
        }
        watched.wants |= what;
        self.put(fd);
    }

    /// Asks no more: there is nothing behind an end or an error.
    fn no_more(&mut self, fd: &Fd, what: Readiness) {
        let fd = fd.as_fd().as_raw_fd();
        let Some(watched) = self.place(fd) else { return };
        watched.wants = watched.wants.without(what);
        self.put(fd);
    }

    /// Brings the set in line with what is noted of a descriptor.
    fn put(&mut self, fd: RawFd) {
        let Some(&mut Watched { wants, state, .. }) = self.place(fd) else { return };
        if state == State::Live {
            // It was in the set before, or has its place there: this cannot fail.
            let _ = self.set.ask(borrow(fd), wants);
        } else {
            self.set.remove(fd);
        }
    }
}

/// A descriptor that is watched.
#[expect(unsafe_code, reason = "only the number is kept beside the set")]
fn borrow<'a>(fd: RawFd) -> BorrowedFd<'a> {
    // SAFETY: it is not -1, and open: it is forgotten here before the loop closes it.
    unsafe { BorrowedFd::borrow_raw(fd) }
}

impl<S: LevelSet> Kernel for Level<S> {
    fn now(&mut self) -> Instant {
        Instant::now()
    }

    fn wait(
        &mut self,
        timeout: Option<Duration>,
        events_max: usize,
        happened: &mut Vec<ReadyEvent>,
    ) -> io::Result<()> {
        let mut ready = std::mem::take(&mut self.ready);
        let result = self.set.wait(timeout, events_max, &mut ready);
        let waker = self.waker.fd().as_raw_fd();
        for (fd, readiness) in ready.drain(..) {
            if fd == waker {
                self.waker.quiet();
                happened.push(ReadyEvent { token: Token::WAKER, readiness });
            } else {
                happened.extend(self.hear(fd, readiness));
            }
        }
        self.ready = ready;
        result
    }

    fn waker(&self) -> Arc<dyn Wake> {
        self.waker.clone()
    }

    fn watch(&mut self, fd: &Fd, token: Token, interest: Interest) -> io::Result<()> {
        let wants = match interest {
            Interest::Listener => {
                waitable(fd)?;
                Readiness::READ
            }
            Interest::Stream(Direction::In) => Readiness::READ,
            Interest::Stream(Direction::Out) => Readiness::WRITE,
            Interest::Stream(Direction::Both) => Readiness::READ | Readiness::WRITE,
        };
        let fd = fd.as_fd();
        self.set.ask(fd, wants)?;
        let index = usize::try_from(fd.as_raw_fd()).expect("an open descriptor is not negative");
        if index >= self.watched.len() {
            self.watched.resize(index + 1, None);
        }
        self.watched[index] = Some(Watched { token, interest, wants, state: State::Live });
        Ok(())
    }

    fn unwatch(&mut self, fd: &Fd) -> io::Result<()> {
        self.forget(fd.as_fd().as_raw_fd());
        Ok(())
    }

    fn accept(&mut self, listener: &Fd) -> io::Result<(Fd, Peer)> {
        system::accept(listener)
    }

    fn connect(&mut self, to: &Address) -> io::Result<Fd> {
        system::connect(to)
    }

    fn connected(&mut self, fd: &Fd) -> io::Result<()> {
        system::connected(fd)
    }

    fn prepare(&mut self, fd: &Fd) -> io::Result<FdKind> {
        let medium = system::prepare(fd)?;
        if medium == FdKind::Other {
            waitable(fd)?;
        }
        Ok(medium)
    }

    fn receive(&mut self, fd: &Fd, medium: FdKind, room: &mut [u8]) -> io::Result<usize> {
        let result = system::receive(fd, medium, room);
        match &result {
            Ok(0) => self.no_more(fd, Readiness::READ),
            Ok(count) if *count < room.len() => self.again(fd, Readiness::READ),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.again(fd, Readiness::READ);
            }
            Err(_) => self.no_more(fd, Readiness::READ),
        }
        result
    }

    fn send(&mut self, fd: &Fd, medium: FdKind, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let result = system::send(fd, medium, parts);
        match &result {
            Ok(count) => {
                if *count < parts.iter().map(|part| part.len()).sum() {
                    self.again(fd, Readiness::WRITE);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.again(fd, Readiness::WRITE);
            }
            Err(_) => self.no_more(fd, Readiness::WRITE),
        }
        result
    }

    fn unacknowledged(&mut self, fd: &Fd) -> io::Result<u64> {
        system::unacknowledged(fd)
    }

    fn unread(fd: &Fd) -> io::Result<u64> {
        system::unread(fd)
    }

    fn shut(&mut self, fd: &Fd) -> io::Result<()> {
        system::shut(fd)
    }

    fn reset_on_close(&mut self, fd: &Fd) {
        system::reset_on_close(fd);
    }

    fn keep_alive(&mut self, fd: &Fd, after: Duration) {
        system::keep_alive(fd, after);
    }

    fn conduit(&mut self) -> io::Result<SplicePipe> {
        self.conduits.take()
    }

    fn keep_conduit(&mut self, conduit: SplicePipe) {
        self.conduits.keep(conduit);
    }

    fn splice_in(&mut self, from: &Fd, conduit: &SplicePipe, length: usize) -> io::Result<usize> {
        let result = system::splice_in(from, conduit, length);
        if would_block(&result) {
            self.again(from, Readiness::READ);
        } else if matches!(result, Ok(0)) {
            self.no_more(from, Readiness::READ);
        }
        result
    }

    fn splice_out(&mut self, conduit: &SplicePipe, to: &Fd, length: usize) -> io::Result<usize> {
        let result = system::splice_out(conduit, to, length);
        if would_block(&result) {
            self.again(to, Readiness::WRITE);
        }
        result
    }

    fn prepare_datagrams(&mut self, fd: &Fd) -> io::Result<()> {
        system::prepare_datagrams(fd)
    }

    fn receive_datagram(&mut self, fd: &Fd, room: &mut [u8]) -> io::Result<(usize, Origin)> {
        let result = system::receive_datagram(fd, room);
        if would_block(&result) {
            self.again(fd, Readiness::READ);
        }
        result
    }

    fn send_datagram(&mut self, fd: &Fd, to: &Origin, bytes: &[u8]) -> io::Result<()> {
        let result = system::send_datagram(fd, to, bytes);
        if would_block(&result) {
            self.again(fd, Readiness::WRITE);
        }
        result
    }

    fn close(&mut self, fd: Fd) {
        self.forget(fd.as_fd().as_raw_fd());
        drop(fd);
    }
}

fn would_block<T>(result: &io::Result<T>) -> bool {
    result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

/// epoll refuses what cannot be waited for. poll and select say that a regular file is always
/// ready, and a loop over one would never rest.
fn waitable(fd: &Fd) -> io::Result<()> {
    let kind = FileType::from_raw_mode(rustix::fs::fstat(fd)?.st_mode);
    if kind.is_file() || kind.is_dir() || kind.is_block_device() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(())
}
