//! Provides the edge-triggered reports of [`Kernel`] on a level-triggered kernel.
//!
//! poll and select report what *is* ready, again and again. A reported condition is therefore removed from the request,
//! until a call to receive or to send reaches its end. All these calls pass through this module.
//!
//! ```text
//!              reported                        a short read, a short write, WouldBlock
//!   watched ────────────► not requested ──────────────────────────────────────────► watched
//!              hang-up                         received 0, or an error
//!      └─────────────────► gone: never requested again; remaining bytes are found by receiving
//! ```

use std::fmt;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::FileType;

use crate::kernel::{
    Completeness, FdKind, Interest, Kernel, Readiness, ReadyEvent, SplicePipe, Token, Wake,
};
use crate::system::{self, EventFdWaker, SplicePipes};
use crate::{Address, DatagramKind, Direction, Fd, Origin, Peer};

/// A set of descriptors that one level-triggered system call waits for.
///
/// Every descriptor in the set is open: it is removed from the set before it is closed.
pub trait LevelSet: fmt::Debug + Sized {
    /// Creates an empty set.
    ///
    /// # Errors
    /// If the system does not provide information that the set needs.
    fn new() -> io::Result<Self>;

    /// Adds a descriptor, or changes the conditions that are requested for it: [`Readiness::READ`], `WRITE`, both or
    /// none. Hang-ups are always reported.
    ///
    /// # Errors
    /// `QuotaExceeded` if the set has no room for this descriptor.
    fn request(&mut self, fd: BorrowedFd<'_>, requested: Readiness) -> io::Result<()>;

    /// Removes a descriptor, if it is in the set.
    fn remove(&mut self, fd: RawFd);

    /// Waits, and appends up to `count_max` descriptors with their readiness. If there are more, the others come first
    /// the next time.
    ///
    /// # Errors
    /// Those of the system call; an interruption is not an error.
    fn wait(
        &mut self,
        timeout: Option<Duration>,
        count_max: usize,
        ready: &mut Vec<(RawFd, Readiness)>,
    ) -> io::Result<Completeness>;
}

/// A kernel based on a level-triggered system call. It is public only as [`Poll`](crate::Poll) and
/// [`Select`](crate::Select).
#[derive(Debug)]
pub struct Level<S> {
    set: S,
    waker: Arc<EventFdWaker>,
    /// Indexed by the number of the descriptor.
    watched: Vec<Option<Watched>>,
    ready: Vec<(RawFd, Readiness)>,
    splice_pipes: SplicePipes,
}

#[derive(Clone, Copy, Debug)]
struct Watched {
    token: Token,
    interest: Interest,
    /// The conditions that are requested now.
    requested: Readiness,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It is in the set.
    Live,
    /// It is not in the set, because its error would be reported until it is received.
    Failed,
    /// It has left the set permanently.
    Gone,
}

impl<S: LevelSet> Level<S> {
    /// Creates a kernel with its waker.
    ///
    /// # Errors
    /// If the process or the system has no descriptor left.
    pub fn new() -> io::Result<Self> {
        paths::hold_process_files();
        let (mut set, waker) = (S::new()?, Arc::new(EventFdWaker::new()?));
        set.request(waker.fd(), Readiness::READ)?;
        Ok(Self {
            set,
            waker,
            watched: Vec::new(),
            ready: Vec::new(),
            splice_pipes: SplicePipes::default(),
        })
    }

    fn place(&mut self, fd: RawFd) -> Option<&mut Watched> {
        let index = usize::try_from(fd).ok()?;
        self.watched.get_mut(index)?.as_mut()
    }

    fn unwatch_fd(&mut self, fd: RawFd) {
        self.set.remove(fd);
        if let Some(place) = usize::try_from(fd).ok().and_then(|at| self.watched.get_mut(at)) {
            *place = None;
        }
    }

    /// Converts a level-triggered report to an edge-triggered one.
    fn edge_event(&mut self, fd: RawFd, readiness: Readiness) -> Option<ReadyEvent> {
        let watched = self.place(fd)?;
        let report = ReadyEvent { token: watched.token, readiness };
        if watched.interest == Interest::Listener {
            return Some(report);
        }
        let read = Readiness::READ | Readiness::READ_END;
        if readiness.any(read) {
            watched.requested = watched.requested.without(read);
        }
        if readiness.any(Readiness::WRITE) {
            watched.requested = watched.requested.without(Readiness::WRITE);
        }
        if readiness.any(Readiness::HANGUP) {
            watched.state = State::Gone;
        } else if readiness.any(Readiness::ERROR) {
            watched.state = State::Failed;
        }
        self.update_set(fd);
        Some(report)
    }

    /// Requests a condition again after a call reached its end.
    fn request_again(&mut self, fd: &Fd, what: Readiness) {
        let fd = fd.as_fd().as_raw_fd();
        let Some(watched) = self.place(fd) else { return };
        if watched.state == State::Failed {
            watched.state = State::Live;
        }
        watched.requested |= what;
        self.update_set(fd);
    }

    /// Stops requesting a condition: nothing follows an end or an error.
    fn stop_requesting(&mut self, fd: &Fd, what: Readiness) {
        let fd = fd.as_fd().as_raw_fd();
        let Some(watched) = self.place(fd) else { return };
        watched.requested = watched.requested.without(what);
        self.update_set(fd);
    }

    /// Updates the set from the recorded state of a descriptor.
    fn update_set(&mut self, fd: RawFd) {
        let Some(&mut Watched { requested, state, .. }) = self.place(fd) else { return };
        if state == State::Live {
            // The descriptor was in the set before, or has its place there, so this cannot fail.
            let _ = self.set.request(borrow(fd), requested);
        } else {
            self.set.remove(fd);
        }
    }
}

/// Borrows a watched descriptor.
#[expect(unsafe_code, reason = "only the number is kept beside the set")]
fn borrow<'a>(fd: RawFd) -> BorrowedFd<'a> {
    // SAFETY: the number is not -1, and the descriptor is open: `forget` removes it here before the loop closes it.
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
        ready_events: &mut Vec<ReadyEvent>,
    ) -> io::Result<Completeness> {
        let mut ready = std::mem::take(&mut self.ready);
        let result = self.set.wait(timeout, events_max, &mut ready);
        let waker = self.waker.fd().as_raw_fd();
        for (fd, readiness) in ready.drain(..) {
            if fd == waker {
                self.waker.reset();
                ready_events.push(ReadyEvent { token: Token::WAKER, readiness });
            } else {
                ready_events.extend(self.edge_event(fd, readiness));
            }
        }
        self.ready = ready;
        result
    }

    fn waker(&self) -> Arc<dyn Wake> {
        self.waker.clone()
    }

    fn watch(&mut self, fd: &Fd, token: Token, interest: Interest) -> io::Result<()> {
        let requested = match interest {
            Interest::Listener => {
                waitable(fd)?;
                Readiness::READ
            }
            Interest::Stream(Direction::In) => Readiness::READ,
            Interest::Stream(Direction::Out) => Readiness::WRITE,
            Interest::Stream(Direction::Both) => Readiness::READ | Readiness::WRITE,
        };
        let fd = fd.as_fd();
        self.set.request(fd, requested)?;
        let index = usize::try_from(fd.as_raw_fd()).expect("an open descriptor is not negative");
        if index >= self.watched.len() {
            self.watched.resize(index + 1, None);
        }
        self.watched[index] = Some(Watched { token, interest, requested, state: State::Live });
        Ok(())
    }

    fn unwatch(&mut self, fd: &Fd) -> io::Result<()> {
        self.unwatch_fd(fd.as_fd().as_raw_fd());
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
        let fd_kind = system::prepare(fd)?;
        if fd_kind == FdKind::Other {
            waitable(fd)?;
        }
        Ok(fd_kind)
    }

    fn receive(&mut self, fd: &Fd, fd_kind: FdKind, room: &mut [u8]) -> io::Result<usize> {
        let result = system::receive(fd, fd_kind, room);
        match &result {
            Ok(0) => self.stop_requesting(fd, Readiness::READ),
            Ok(count) if *count < room.len() => self.request_again(fd, Readiness::READ),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.request_again(fd, Readiness::READ);
            }
            Err(_) => self.stop_requesting(fd, Readiness::READ),
        }
        result
    }

    fn send(&mut self, fd: &Fd, fd_kind: FdKind, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let result = system::send(fd, fd_kind, parts);
        match &result {
            Ok(count) => {
                if *count < parts.iter().map(|part| part.len()).sum() {
                    self.request_again(fd, Readiness::WRITE);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.request_again(fd, Readiness::WRITE);
            }
            Err(_) => self.stop_requesting(fd, Readiness::WRITE),
        }
        result
    }

    fn unacknowledged(&mut self, fd: &Fd) -> io::Result<u64> {
        system::unacknowledged(fd)
    }

    fn unread(fd: &Fd) -> io::Result<u64> {
        system::unread(fd)
    }

    fn shutdown_write(&mut self, fd: &Fd) -> io::Result<()> {
        system::shutdown_write(fd)
    }

    fn reset_on_close(&mut self, fd: &Fd) {
        system::reset_on_close(fd);
    }

    fn keep_alive(&mut self, fd: &Fd, after: Duration) {
        system::keep_alive(fd, after);
    }

    fn splice_pipe(&mut self) -> io::Result<SplicePipe> {
        self.splice_pipes.take()
    }

    fn keep_splice_pipe(&mut self, splice_pipe: SplicePipe) {
        self.splice_pipes.keep(splice_pipe);
    }

    fn splice_in(
        &mut self,
        from: &Fd,
        splice_pipe: &SplicePipe,
        length: usize,
    ) -> io::Result<usize> {
        let result = system::splice_in(from, splice_pipe, length);
        if would_block(&result) {
            self.request_again(from, Readiness::READ);
        } else if matches!(result, Ok(0)) {
            self.stop_requesting(from, Readiness::READ);
        }
        result
    }

    fn splice_out(
        &mut self,
        splice_pipe: &SplicePipe,
        to: &Fd,
        length: usize,
    ) -> io::Result<usize> {
        let result = system::splice_out(splice_pipe, to, length);
        if would_block(&result) {
            self.request_again(to, Readiness::WRITE);
        }
        result
    }

    fn prepare_datagrams(&mut self, fd: &Fd) -> io::Result<DatagramKind> {
        system::prepare_datagrams(fd)
    }

    fn receive_datagram(
        &mut self,
        fd: &Fd,
        kind: DatagramKind,
        room: &mut [u8],
    ) -> io::Result<(usize, Origin)> {
        let result = system::receive_datagram(fd, kind, room);
        if would_block(&result) {
            self.request_again(fd, Readiness::READ);
        }
        result
    }

    fn send_datagram(
        &mut self,
        fd: &Fd,
        kind: DatagramKind,
        to: &Origin,
        bytes: &[u8],
    ) -> io::Result<()> {
        let result = system::send_datagram(fd, kind, to, bytes);
        if would_block(&result) {
            self.request_again(fd, Readiness::WRITE);
        }
        result
    }

    fn close(&mut self, fd: Fd) {
        self.unwatch_fd(fd.as_fd().as_raw_fd());
        drop(fd);
    }
}

fn would_block<T>(result: &io::Result<T>) -> bool {
    result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

/// Refuses regular files, directories and block devices, as epoll does. poll and select report them as always ready,
/// and a loop that watches one would never be idle.
fn waitable(fd: &Fd) -> io::Result<()> {
    let kind = FileType::from_raw_mode(rustix::fs::fstat(fd)?.st_mode);
    if kind.is_file() || kind.is_dir() || kind.is_block_device() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(())
}
