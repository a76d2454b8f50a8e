//! A kernel whose clock can be advanced, so that tests can skip hours, or stop the process between two system calls.

use std::cell::{Cell, RefCell};
use std::io::{IoSlice, Result};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use event::{
    Address, Completeness, DatagramKind, Fd, FdKind, Interest, Kernel, Origin, Peer, ReadyEvent,
    SplicePipe, Token, Wake,
};

/// How far the clock is ahead.
pub(crate) type Offset = Rc<Cell<Duration>>;

/// Called once, after the next wait.
pub(crate) type AfterWait = Rc<RefCell<Option<Box<dyn FnOnce()>>>>;

pub(crate) struct Ahead<K> {
    kernel: K,
    offset: Offset,
    after_wait: AfterWait,
}

impl<K: Kernel> Ahead<K> {
    pub(crate) fn new(kernel: K) -> (Self, Offset) {
        let offset = Offset::default();
        let after_wait = AfterWait::default();
        (Self { kernel, offset: Rc::clone(&offset), after_wait }, offset)
    }

    pub(crate) fn after_wait(&self) -> AfterWait {
        Rc::clone(&self.after_wait)
    }
}

impl<K: Kernel> Kernel for Ahead<K> {
    fn now(&mut self) -> Instant {
        self.kernel.now() + self.offset.get()
    }

    fn wait(
        &mut self,
        timeout: Option<Duration>,
        events_max: usize,
        ready_events: &mut Vec<ReadyEvent>,
    ) -> Result<Completeness> {
        let result = self.kernel.wait(timeout, events_max, ready_events);
        if let Some(after_wait) = self.after_wait.take() {
            after_wait();
        }
        result
    }

    fn waker(&self) -> Arc<dyn Wake> {
        self.kernel.waker()
    }

    fn watch(&mut self, fd: &Fd, token: Token, interest: Interest) -> Result<()> {
        self.kernel.watch(fd, token, interest)
    }

    fn unwatch(&mut self, fd: &Fd) -> Result<()> {
        self.kernel.unwatch(fd)
    }

    fn accept(&mut self, listener: &Fd) -> Result<(Fd, Peer)> {
        self.kernel.accept(listener)
    }

    fn connect(&mut self, to: &Address) -> Result<Fd> {
        self.kernel.connect(to)
    }

    fn connected(&mut self, fd: &Fd) -> Result<()> {
        self.kernel.connected(fd)
    }

    fn prepare(&mut self, fd: &Fd) -> Result<FdKind> {
        self.kernel.prepare(fd)
    }

    fn receive(&mut self, fd: &Fd, fd_kind: FdKind, room: &mut [u8]) -> Result<usize> {
        self.kernel.receive(fd, fd_kind, room)
    }

    fn send(&mut self, fd: &Fd, fd_kind: FdKind, parts: &[IoSlice<'_>]) -> Result<usize> {
        self.kernel.send(fd, fd_kind, parts)
    }

    fn unacknowledged(&mut self, fd: &Fd) -> Result<u64> {
        self.kernel.unacknowledged(fd)
    }

    fn shutdown_write(&mut self, fd: &Fd) -> Result<()> {
        self.kernel.shutdown_write(fd)
    }

    fn reset_on_close(&mut self, fd: &Fd) {
        self.kernel.reset_on_close(fd);
    }

    fn prepare_datagrams(&mut self, fd: &Fd) -> Result<DatagramKind> {
        self.kernel.prepare_datagrams(fd)
    }

    fn receive_datagram(
        &mut self,
        fd: &Fd,
        kind: DatagramKind,
        room: &mut [u8],
    ) -> Result<(usize, Origin)> {
        self.kernel.receive_datagram(fd, kind, room)
    }

    fn send_datagram(
        &mut self,
        fd: &Fd,
        kind: DatagramKind,
        to: &Origin,
        bytes: &[u8],
    ) -> Result<()> {
        self.kernel.send_datagram(fd, kind, to, bytes)
    }

    fn splice_pipe(&mut self) -> Result<SplicePipe> {
        self.kernel.splice_pipe()
    }

    fn keep_splice_pipe(&mut self, splice_pipe: SplicePipe) {
        self.kernel.keep_splice_pipe(splice_pipe);
    }

    fn splice_in(&mut self, from: &Fd, splice_pipe: &SplicePipe, length: usize) -> Result<usize> {
        self.kernel.splice_in(from, splice_pipe, length)
    }

    fn splice_out(&mut self, splice_pipe: &SplicePipe, to: &Fd, length: usize) -> Result<usize> {
        self.kernel.splice_out(splice_pipe, to, length)
    }

    fn close(&mut self, fd: Fd) {
        self.kernel.close(fd);
    }
}
