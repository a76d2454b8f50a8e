//! The real kernel, with epoll.
//!
//! Each stream needs one `EPOLL_CTL_ADD` during its life: edge-triggered, for both directions. It is never changed.

use std::fmt;
use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;

use crate::kernel::{
    Completeness, FdKind, Interest, Kernel, Readiness, ReadyEvent, SplicePipe, Token, Wake,
};
use crate::system::{self, EventFdWaker, SplicePipes};
use crate::{Address, DatagramKind, Direction, Fd, Origin, Peer};

/// Linux, with epoll.
pub struct Epoll {
    epoll: OwnedFd,
    waker: Arc<EventFdWaker>,
    reports: Vec<epoll::Event>,
    splice_pipes: SplicePipes,
}

#[expect(
    unsafe_code,
    reason = "a loop is made where its mailbox is needed and turns on its thread"
)]
// SAFETY: only the reports are not `Send`, because the kernel's structure may contain a pointer. Here it contains a
// token, which is a number, and the list is empty between two waits.
unsafe impl Send for Epoll {}

impl fmt::Debug for Epoll {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Epoll").field("epoll", &self.epoll).finish_non_exhaustive()
    }
}

impl Epoll {
    /// Creates an epoll instance with its waker.
    ///
    /// # Errors
    /// If the process or the system has no descriptor left.
    pub fn new() -> io::Result<Self> {
        paths::hold_process_files();
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let waker = EventFdWaker::new()?;
        // Edge-triggered, so that the counter need not be read: every write is a new edge.
        let token = EventData::new_u64(Token::WAKER.number());
        epoll::add(&epoll, waker.fd(), token, EventFlags::IN | EventFlags::ET)?;
        Ok(Self {
            epoll,
            waker: Arc::new(waker),
            reports: Vec::new(),
            splice_pipes: SplicePipes::default(),
        })
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
        ready_events: &mut Vec<ReadyEvent>,
    ) -> io::Result<Completeness> {
        self.reports.clear();
        self.reports.reserve(events_max);
        let timeout = timeout.map(system::timespec);
        let room = spare_capacity(&mut self.reports);
        let completeness = match epoll::wait(&self.epoll, room, timeout.as_ref()) {
            Ok(count) if count < events_max => Completeness::Complete,
            Ok(_) | Err(Errno::INTR) => Completeness::Partial,
            Err(error) => return Err(error.into()),
        };
        ready_events.extend(self.reports.iter().map(|report| {
            let (data, flags) = (report.data, report.flags);
            let readiness = Readiness::of_poll(flags.bits());
            ReadyEvent { token: Token::of_number(data.u64()), readiness }
        }));
        Ok(completeness)
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
        system::accept(listener)
    }

    fn connect(&mut self, to: &Address) -> io::Result<Fd> {
        system::connect(to)
    }

    fn connected(&mut self, fd: &Fd) -> io::Result<()> {
        system::connected(fd)
    }

    fn prepare(&mut self, fd: &Fd) -> io::Result<FdKind> {
        system::prepare(fd)
    }

    #[inline]
    fn receive(&mut self, fd: &Fd, fd_kind: FdKind, room: &mut [u8]) -> io::Result<usize> {
        system::receive(fd, fd_kind, room)
    }

    #[inline]
    fn send(&mut self, fd: &Fd, fd_kind: FdKind, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        system::send(fd, fd_kind, parts)
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
        system::splice_in(from, splice_pipe, length)
    }

    fn splice_out(
        &mut self,
        splice_pipe: &SplicePipe,
        to: &Fd,
        length: usize,
    ) -> io::Result<usize> {
        system::splice_out(splice_pipe, to, length)
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
        system::receive_datagram(fd, kind, room)
    }

    fn send_datagram(
        &mut self,
        fd: &Fd,
        kind: DatagramKind,
        to: &Origin,
        bytes: &[u8],
    ) -> io::Result<()> {
        system::send_datagram(fd, kind, to, bytes)
    }
}
