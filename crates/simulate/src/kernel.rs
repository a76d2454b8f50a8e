//! The kernel of the loop: every call of [`event::Kernel`] is answered by the world.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use event::{
    Address, Completeness, DatagramKind, Fd, FdKind, Interest, Kernel, Origin, Peer, ReadyEvent,
    Token, Wake,
};

use crate::chance::Actor;
use crate::ids::DescriptorId;
use crate::net::{Connecting, Kind, Net};
use crate::world::{Shared, World};

/// A simulated kernel, from the side of one loop of the gateway.
#[derive(Debug)]
pub(crate) struct SimulatedKernel {
    pub(crate) shared: Shared,
    pub(crate) shard: usize,
}

impl SimulatedKernel {
    pub(crate) const fn new(shared: Shared, shard: usize) -> Self {
        Self { shared, shard }
    }

    /// Executes a call of the kind `call` on a descriptor.
    pub(crate) fn with<R>(
        &self,
        call: &'static str,
        fd: &Fd,
        act: impl FnOnce(&mut World, DescriptorId) -> R,
    ) -> R {
        let mut world = self.shared.lock();
        let id = descriptor_of(&world.net, fd);
        world.act(Actor(call, id.0));
        act(&mut world, id)
    }
}

/// Returns the simulated descriptor for a real placeholder or a simulated descriptor.
pub(crate) fn descriptor_of(net: &Net, fd: &Fd) -> DescriptorId {
    if let Some(number) = fd.simulated_number() {
        return DescriptorId(number as usize);
    }
    let number = fd.as_fd().as_raw_fd();
    *net.placeholders.get(&number).expect("only placeholders are handed to the gateway")
}

impl Kernel for SimulatedKernel {
    fn now(&mut self) -> Instant {
        let world = self.shared.lock();
        world.time.origin + world.time.now
    }

    fn wait(
        &mut self,
        timeout: Option<Duration>,
        events_max: usize,
        ready_events: &mut Vec<ReadyEvent>,
    ) -> io::Result<Completeness> {
        // A loop that was not called falls asleep. Its iteration starts again when it is called.
        let mut world = self.shared.lock();
        world.act(Actor("wait", self.shard));
        let called = world.wait(self.shard, timeout, events_max, ready_events);
        called.ok_or_else(|| io::ErrorKind::WouldBlock.into())
    }

    fn waker(&self) -> Arc<dyn Wake> {
        self.shared.lock().wake_flag(self.shard)
    }

    fn watch(&mut self, fd: &Fd, token: Token, interest: Interest) -> io::Result<()> {
        self.with("watch", fd, |world, id| {
            if world.fault(3) {
                return Err(world.cannot_watch(id));
            }
            world.note("watched: descriptor", id.0, 0);
            world.watch(self.shard, id, token, interest);
            Ok(())
        })
    }

    fn unwatch(&mut self, fd: &Fd) -> io::Result<()> {
        self.with("unwatch", fd, |world, id| world.net.descriptor(id).watch = None);
        Ok(())
    }

    fn accept(&mut self, listener: &Fd) -> io::Result<(Fd, Peer)> {
        self.with("accept", listener, |world, id| world.accept(self.shard, id))
    }

    fn connect(&mut self, to: &Address) -> io::Result<Fd> {
        let mut world = self.shared.lock();
        world.act(Actor("connect", self.shard));
        world.connect(self.shard, to)
    }

    fn connected(&mut self, fd: &Fd) -> io::Result<()> {
        self.with("connected", fd, |world, id| match world.net.descriptor(id).connecting {
            Some(Connecting::Failed(kind)) => Err(kind.into()),
            Some(Connecting::Waits) | None => Ok(()),
        })
    }

    fn prepare(&mut self, fd: &Fd) -> io::Result<FdKind> {
        Ok(self.with("prepare", fd, |world, id| {
            let descriptor = world.net.descriptor(id);
            (descriptor.owned, descriptor.shard) = (true, self.shard);
            match world.net.descriptor(id).kind {
                Kind::Listener(_) | Kind::Socket(_) => FdKind::Socket,
                Kind::PipeIn(_) | Kind::PipeOut(_) => FdKind::Pipe,
                Kind::Datagrams => FdKind::Other,
            }
        }))
    }

    fn receive(&mut self, fd: &Fd, _medium: FdKind, room: &mut [u8]) -> io::Result<usize> {
        self.with("receive", fd, |world, id| world.receive(id, room))
    }

    fn send(&mut self, fd: &Fd, _medium: FdKind, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.with("send", fd, |world, id| world.send(id, parts))
    }

    fn unacknowledged(&mut self, fd: &Fd) -> io::Result<u64> {
        // The call changes nothing, so it is no event of the world.
        let mut world = self.shared.lock();
        let id = descriptor_of(&world.net, fd);
        world.unacknowledged(id)
    }

    fn shutdown_write(&mut self, fd: &Fd) -> io::Result<()> {
        self.with("shut", fd, |world, id| world.shutdown_write(id))
    }

    fn reset_on_close(&mut self, fd: &Fd) {
        self.with("reset_on_close", fd, |world, id| world.net.descriptor(id).resets = true);
    }

    fn prepare_datagrams(&mut self, _fd: &Fd) -> io::Result<DatagramKind> {
        Ok(DatagramKind::Internet)
    }

    fn receive_datagram(
        &mut self,
        fd: &Fd,
        _: DatagramKind,
        room: &mut [u8],
    ) -> io::Result<(usize, Origin)> {
        self.with("receive_datagram", fd, |world, id| world.receive_datagram(id, room))
    }

    fn send_datagram(
        &mut self,
        fd: &Fd,
        _: DatagramKind,
        to: &Origin,
        bytes: &[u8],
    ) -> io::Result<()> {
        self.with("send_datagram", fd, |world, id| world.send_datagram(id, to, bytes))
    }

    fn close(&mut self, fd: Fd) {
        let mut world = self.shared.lock();
        let id = descriptor_of(&world.net, &fd);
        world.act(Actor("close", id.0));
        if fd.simulated_number().is_none() {
            world.net.placeholders.remove(&fd.as_fd().as_raw_fd());
        }
        world.close(id);
        drop(world);
        drop(fd);
    }
}
