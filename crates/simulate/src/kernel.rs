//! The kernel under the loop: every call of [`event::Kernel`], answered by the world.

use std::io::{self, IoSlice};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use event::{Address, Fd, Happened, Interest, Kernel, Medium, Origin, Peer, Token, Wake};

use crate::chance::Actor;
use crate::flow::Party;
use crate::net::{Connecting, DescriptorId, Kind};
use crate::world::{Happening, Shared, World};

/// How often one of the loops may ask for a descriptor in the second in which none is left: two
/// listeners, each tried again ten times a second.
const ASKED_MAX: usize = 40;

/// A simulated kernel, as one of the gateway's loops sees it.
#[derive(Debug)]
pub(crate) struct Simulated {
    shared: Shared,
    shard: usize,
}

impl Simulated {
    pub(crate) const fn new(shared: Shared, shard: usize) -> Self {
        Self { shared, shard }
    }

    /// Makes a call, of the kind `call`, for a descriptor.
    fn with<R>(
        &self,
        call: &'static str,
        fd: &Fd,
        act: impl FnOnce(&mut World, DescriptorId) -> R,
    ) -> R {
        let mut world = self.shared.lock();
        let id = descriptor_of(&world, fd);
        world.act(Actor(call, id.0));
        act(&mut world, id)
    }
}

/// The simulated descriptor that a real or a simulated one stands for.
fn descriptor_of(world: &World, fd: &Fd) -> DescriptorId {
    if let Some(number) = fd.simulated_number() {
        return DescriptorId(number as usize);
    }
    let number = fd.as_fd().as_raw_fd();
    *world.net.placeholders.get(&number).expect("only placeholders are handed to the gateway")
}

impl Kernel for Simulated {
    fn now(&mut self) -> Instant {
        let world = self.shared.lock();
        world.origin + world.now
    }

    fn wait(
        &mut self,
        timeout: Option<Duration>,
        events_max: usize,
        happened: &mut Vec<Happened>,
    ) -> io::Result<()> {
        // Whoever is not called falls asleep, and its turn begins again when it is.
        let mut world = self.shared.lock();
        world.act(Actor("wait", self.shard));
        let called = world.wait(self.shard, timeout, events_max, happened);
        if called { Ok(()) } else { Err(io::ErrorKind::WouldBlock.into()) }
    }

    fn waker(&self) -> Arc<dyn Wake> {
        self.shared.lock().bell(self.shard)
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

    fn prepare(&mut self, fd: &Fd) -> io::Result<Medium> {
        Ok(self.with("prepare", fd, |world, id| {
            let descriptor = world.net.descriptor(id);
            (descriptor.owned, descriptor.shard) = (true, self.shard);
            match world.net.descriptor(id).kind {
                Kind::Listener(_) | Kind::Socket(_) => Medium::Socket,
                Kind::PipeIn(_) | Kind::PipeOut(_) => Medium::Pipe,
                Kind::Datagrams => Medium::Other,
            }
        }))
    }

    fn receive(&mut self, fd: &Fd, _medium: Medium, room: &mut [u8]) -> io::Result<usize> {
        self.with("receive", fd, |world, id| world.receive(id, room))
    }

    fn send(&mut self, fd: &Fd, _medium: Medium, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.with("send", fd, |world, id| world.send(id, parts))
    }

    fn unacknowledged(&mut self, fd: &Fd) -> io::Result<u64> {
        // Nothing happens by it, so it is no step of the world.
        let mut world = self.shared.lock();
        let id = descriptor_of(&world, fd);
        world.unacknowledged(id)
    }

    fn shut(&mut self, fd: &Fd) -> io::Result<()> {
        self.with("shut", fd, |world, id| world.shut(id))
    }

    fn reset_on_close(&mut self, fd: &Fd) {
        self.with("reset_on_close", fd, |world, id| world.net.descriptor(id).resets = true);
    }

    fn prepare_datagrams(&mut self, _fd: &Fd) -> io::Result<()> {
        Ok(())
    }

    fn receive_datagram(&mut self, fd: &Fd, room: &mut [u8]) -> io::Result<(usize, Origin)> {
        self.with("receive_datagram", fd, |world, id| world.receive_datagram(id, room))
    }

    fn send_datagram(&mut self, fd: &Fd, to: &Origin, bytes: &[u8]) -> io::Result<()> {
        self.with("send_datagram", fd, |world, id| world.send_datagram(id, to, bytes))
    }

    fn close(&mut self, fd: Fd) {
        let mut world = self.shared.lock();
        let id = descriptor_of(&world, &fd);
        world.act(Actor("close", id.0));
        if fd.simulated_number().is_none() {
            world.net.placeholders.remove(&fd.as_fd().as_raw_fd());
        }
        world.close(id);
        drop(world);
        drop(fd);
    }
}

impl World {
    /// The system cannot watch one more.
    fn cannot_watch(&mut self, id: DescriptorId) -> io::Error {
        self.note("cannot be watched: descriptor", id.0, 0);
        match self.net.descriptor(id).kind {
            Kind::Socket(connection) => {
                let far = self.net.connection(connection).far;
                self.excuse(far, "its connection could not be watched");
            }
            Kind::Datagrams => self.excuse_datagrams(),
            Kind::Listener(_) | Kind::PipeIn(_) | Kind::PipeOut(_) => {}
        }
        io::ErrorKind::StorageFull.into()
    }

    /// Who it is cannot hold the gateway to everything any more.
    fn excuse(&mut self, far: Party, why: &'static str) {
        match far {
            Party::Client(client) => self.clients[client].excused = Some(why),
            Party::Speaker(speaker) => self.excuse_speaker(speaker),
            Party::Gateway(_) | Party::Program(_) => {}
        }
    }

    fn accept(&mut self, shard: usize, id: DescriptorId) -> io::Result<(Fd, Peer)> {
        if self.fault(4) {
            let lasts = self.chance.time(Duration::from_millis(1), Duration::from_secs(1));
            self.net.shortage = (self.now + lasts, 0);
        }
        if self.net.shortage.0 > self.now {
            self.net.shortage.1 += 1;
            self.note("no descriptor is left: listener", id.0, 0);
            if self.net.shortage.1 == ASKED_MAX * self.loops.len() {
                self.violation("the loop does not rest though no descriptor is left".to_owned());
            }
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        let Kind::Listener(port) = self.net.descriptor(id).kind else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let Some(connection) = self.net.take_from_backlog(port) else {
            return Err(io::ErrorKind::WouldBlock.into());
        };
        let connection = self.net.connection(connection);
        let place = connection.descriptor;
        if self.fault(3) {
            self.note("aborted before it was accepted: client", connection.far.number(), 0);
            self.excuse(connection.far, "it was aborted before it was accepted");
            self.net.descriptor(place).open = false;
            self.after(Duration::from_micros(20), Happening::ResetAt(connection.far));
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        let descriptor = self.net.descriptor(place);
        (descriptor.owned, descriptor.shard) = (true, shard);
        let client = connection.far.number();
        self.note("accepted: descriptor, client", place.0, client);
        let number = u32::try_from(place.0).expect("a world has few descriptors");
        let port = u16::try_from(10_000 + client).unwrap_or(1);
        let peer = Peer::Internet(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        Ok((Fd::simulated(number), peer))
    }

    fn receive(&mut self, id: DescriptorId, room: &mut [u8]) -> io::Result<usize> {
        let Some(input) = self.net.flows_of(id).0 else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let (ready, ended) = {
            let flow = self.net.flow(input);
            (flow.ready(), flow.ended)
        };
        let silent = ready == 0 && !ended && self.net.descriptor(id).error.is_none();
        let broken = self.net.descriptor(id).broken;
        if silent && !broken || self.chance.in_1000(self.scenario.again) {
            self.note("the gateway may receive later: descriptor, bytes", id.0, ready);
            self.rearm_read(id, true);
            return Err(io::ErrorKind::WouldBlock.into());
        }
        if ready == 0 {
            // An error shows behind all bytes, once; after it there is only the end.
            return match self.net.descriptor(id).error.take() {
                Some(kind) => Err(kind.into()),
                None => Ok(0),
            };
        }
        let most = self.part_of(ready.min(room.len()));
        let count = self.net.flow(input).take(&mut room[..most]);
        self.note("the gateway receives: descriptor, bytes", id.0, count);
        self.speaker_is_heard(id, count);
        if count < room.len() {
            self.rearm_read(id, false);
        }
        self.made_room(input);
        Ok(count)
    }

    fn send(&mut self, id: DescriptorId, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let Some(output) = self.net.flows_of(id).1 else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        if let Some(kind) = self.net.descriptor(id).error.take() {
            return Err(kind.into());
        }
        let broken = self.net.descriptor(id).broken;
        let pipe = matches!(self.net.descriptor(id).kind, Kind::PipeOut(_));
        let flow = self.net.flow(output);
        if broken || flow.end_sent || (pipe && flow.deaf) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let space = flow.space();
        let total: usize = parts.iter().map(|part| part.len()).sum();
        if space == 0 || self.chance.in_1000(self.scenario.again) {
            self.note("the gateway may send later: descriptor, room", id.0, space);
            self.net.descriptor(id).blocked = space == 0;
            self.rearm_write(id);
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let most = self.part_of(total.min(space));
        let bytes: Vec<u8> =
            parts.iter().flat_map(|part| part.iter()).copied().take(most).collect();
        self.note("the gateway sends: descriptor, bytes", id.0, bytes.len());
        if most < total {
            // It found an end, but will ask again before it waits.
            self.net.descriptor(id).write_armed = true;
        }
        self.gateway_wrote(id, &bytes);
        self.note_sent(id, &bytes);
        if let Kind::Socket(connection) = self.net.descriptor(id).kind
            && let Party::Speaker(speaker) = self.net.connection(connection).far
        {
            self.speaker_is_given(speaker, &bytes);
        }
        let delay = self.latency();
        self.put(output, bytes, delay);
        Ok(most)
    }

    /// The other end of a socket acknowledges what it reads. Of a pipe nothing is known.
    fn unacknowledged(&mut self, id: DescriptorId) -> io::Result<u64> {
        match self.net.flows_of(id) {
            (Some(_), Some(output)) => Ok(self.net.flow(output).waiting() as u64),
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// As much of `count` as the kernel moves in one call: all, or less.
    fn part_of(&mut self, count: usize) -> usize {
        if self.chance.in_1000(self.scenario.short) { self.chance.between(1, count) } else { count }
    }

    fn shut(&mut self, id: DescriptorId) -> io::Result<()> {
        if self.net.descriptor(id).broken {
            return Err(io::ErrorKind::NotConnected.into());
        }
        self.note("the gateway ends its direction: descriptor", id.0, 0);
        if let Some(output) = self.net.flows_of(id).1 {
            self.end_flow(output);
        }
        let Some(input) = self.net.flows_of(id).0 else { return Ok(()) };
        if self.net.flow(input).ended {
            self.edge(id, crate::net::Edge::End);
        }
        Ok(())
    }
}
