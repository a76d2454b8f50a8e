//! The kernel under the loop: every call of [`event::Kernel`], answered by the world.

use std::io::{self, IoSlice};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use event::{Address, Fd, Happened, Interest, Kernel, Medium, Origin, Peer, Token, Wake};

use crate::flow::Party;
use crate::net::{Connecting, DescriptorId, Kind};
use crate::plants::Plant;
use crate::threads;
use crate::world::{Happening, Moment, Shared, World};

/// Calls of `wait` without any progress of time after which a loop is said to spin.
const SPINS_MAX: u32 = 100_000;

/// How often a loop may ask for a descriptor in the second in which none is left: two listeners,
/// each tried again ten times a second.
const ASKED_MAX: u32 = 40;

/// A simulated kernel.
#[derive(Debug)]
pub(crate) struct Simulated {
    shared: Shared,
    spins: u32,
}

impl Simulated {
    pub(crate) const fn new(shared: Shared) -> Self {
        Self { shared, spins: 0 }
    }

    /// Lets the world go on until something is to be told, or `deadline` has come.
    fn go_on(&mut self, deadline: Option<Moment>) {
        let bell = self.shared.bell();
        loop {
            threads::settle(&self.shared);
            let mut world = self.shared.lock();
            let present = world.now;
            let told = bell.is_rung() || world.has_reports();
            let over = deadline.is_some_and(|deadline| deadline <= present);
            // What is due has happened before anybody looks; what comes next only if nobody does.
            let until = if told || over { Some(present) } else { deadline };
            if !told && !over && world.mail_waiting() > 0 {
                world.violation("the loop sleeps though mail waits for it".to_owned());
                world.at_rest = true;
                return;
            }
            match world.next(until) {
                Some(Happening::Thread(thread)) => {
                    drop(world);
                    threads::go_on(&self.shared, thread);
                }
                Some(happening) => world.happen(happening),
                None if told || over => return,
                None => match deadline {
                    Some(deadline) => world.now = deadline,
                    None => {
                        world.at_rest = true;
                        return;
                    }
                },
            }
        }
    }

    fn with<R>(&self, fd: &Fd, act: impl FnOnce(&mut World, DescriptorId) -> R) -> R {
        let mut world = self.shared.lock();
        let id = descriptor_of(&world, fd);
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
        let deadline = {
            let mut world = self.shared.lock();
            // What the loop did since it last asked took some time.
            let busy = world.chance.time(Duration::from_nanos(200), Duration::from_micros(40));
            world.now += busy;
            if world.planted.plant == Some(Plant::LostWake)
                && timeout != Some(Duration::ZERO)
                && world.planted.strikes(Plant::LostWake)
            {
                world.note("PLANT: the next wake-up is lost", 0, 0);
                self.shared.bell().lose_next();
            }
            let late = match timeout {
                Some(timeout) if !timeout.is_zero() && world.chance.in_1000(100) => {
                    world.chance.time(Duration::from_micros(1), Duration::from_millis(3))
                }
                _ => Duration::ZERO,
            };
            timeout.map(|timeout| world.now + timeout + late)
        };
        if timeout == Some(Duration::ZERO) {
            self.look();
        } else {
            self.go_on(deadline);
        }
        let mut world = self.shared.lock();
        // A loop that is slow to come back finds more than one thing.
        let slow = timeout != Some(Duration::ZERO) && world.chance.in_1000(400);
        if slow {
            let pause = world.chance.time(Duration::from_micros(1), Duration::from_micros(800));
            let until = world.now + pause;
            drop(world);
            self.pass(until);
            world = self.shared.lock();
        }
        self.shared.bell().take();
        let reports = world.reports(events_max);
        self.spins = if timeout == Some(Duration::ZERO) { self.spins + 1 } else { 0 };
        if self.spins == SPINS_MAX {
            world.violation("the loop turns without end and never sleeps".to_owned());
            world.at_rest = true;
        }
        for (token, readiness) in reports {
            happened.push(Happened { token, readiness });
        }
        Ok(())
    }

    fn waker(&self) -> Arc<dyn Wake> {
        self.shared.bell()
    }

    fn watch(&mut self, fd: &Fd, token: Token, interest: Interest) -> io::Result<()> {
        self.with(fd, |world, id| {
            if world.fault(3) {
                return Err(world.cannot_watch(id));
            }
            world.note("watched: descriptor", id.0, 0);
            world.watch(id, token, interest);
            Ok(())
        })
    }

    fn unwatch(&mut self, fd: &Fd) -> io::Result<()> {
        self.with(fd, |world, id| world.net.descriptor(id).watch = None);
        Ok(())
    }

    fn accept(&mut self, listener: &Fd) -> io::Result<(Fd, Peer)> {
        self.with(listener, |world, id| world.accept(id))
    }

    fn connect(&mut self, to: &Address) -> io::Result<Fd> {
        self.shared.lock().connect(to)
    }

    fn connected(&mut self, fd: &Fd) -> io::Result<()> {
        self.with(fd, |world, id| match world.net.descriptor(id).connecting {
            Some(Connecting::Failed(kind)) => Err(kind.into()),
            Some(Connecting::Waits) | None => Ok(()),
        })
    }

    fn prepare(&mut self, fd: &Fd) -> io::Result<Medium> {
        Ok(self.with(fd, |world, id| {
            world.net.descriptor(id).owned = true;
            match world.net.descriptor(id).kind {
                Kind::Listener { .. } | Kind::Socket(_) => Medium::Socket,
                Kind::PipeIn(_) | Kind::PipeOut(_) => Medium::Pipe,
                Kind::Datagrams => Medium::Other,
            }
        }))
    }

    fn receive(&mut self, fd: &Fd, _medium: Medium, room: &mut [u8]) -> io::Result<usize> {
        self.with(fd, |world, id| world.receive(id, room))
    }

    fn send(&mut self, fd: &Fd, _medium: Medium, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.with(fd, |world, id| world.send(id, parts))
    }

    fn shut(&mut self, fd: &Fd) -> io::Result<()> {
        self.with(fd, |world, id| world.shut(id))
    }

    fn prepare_datagrams(&mut self, _fd: &Fd) -> io::Result<()> {
        Ok(())
    }

    fn receive_datagram(&mut self, fd: &Fd, room: &mut [u8]) -> io::Result<(usize, Origin)> {
        self.with(fd, |world, id| world.receive_datagram(id, room))
    }

    fn send_datagram(&mut self, fd: &Fd, to: &Origin, bytes: &[u8]) -> io::Result<()> {
        self.with(fd, |world, id| world.send_datagram(id, to, bytes))
    }

    fn close(&mut self, fd: Fd) {
        let mut world = self.shared.lock();
        let id = descriptor_of(&world, &fd);
        if fd.simulated_number().is_none() {
            world.net.placeholders.remove(&fd.as_fd().as_raw_fd());
        }
        world.close(id);
        drop(world);
        drop(fd);
    }
}

impl Simulated {
    /// What is due happens, but no thread goes on: the loop is awake, and who sends it mail would
    /// not ring.
    fn look(&self) {
        threads::settle(&self.shared);
        let mut world = self.shared.lock();
        let mut threads = Vec::new();
        let present = world.now;
        while let Some(happening) = world.next(Some(present)) {
            match happening {
                Happening::Thread(_) => threads.push(happening),
                happening => world.happen(happening),
            }
        }
        for thread in threads {
            world.after(Duration::ZERO, thread);
        }
    }

    /// Time passes until `until`, and what happens by then happens.
    fn pass(&self, until: Moment) {
        loop {
            threads::settle(&self.shared);
            let mut world = self.shared.lock();
            match world.next(Some(until)) {
                Some(Happening::Thread(thread)) => {
                    drop(world);
                    threads::go_on(&self.shared, thread);
                }
                Some(happening) => world.happen(happening),
                None => {
                    world.now = world.now.max(until);
                    return;
                }
            }
        }
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
            Kind::Listener { .. } | Kind::PipeIn(_) | Kind::PipeOut(_) => {}
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

    fn accept(&mut self, id: DescriptorId) -> io::Result<(Fd, Peer)> {
        if self.fault(4) {
            let lasts = self.chance.time(Duration::from_millis(1), Duration::from_secs(1));
            self.net.shortage = (self.now + lasts, 0);
        }
        if self.net.shortage.0 > self.now {
            self.net.shortage.1 += 1;
            self.note("no descriptor is left: listener", id.0, 0);
            if self.net.shortage.1 == ASKED_MAX {
                self.violation("the loop does not rest though no descriptor is left".to_owned());
            }
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        let Kind::Listener { backlog } = &mut self.net.descriptor(id).kind else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let Some(connection) = backlog.pop_front() else {
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
        self.net.descriptor(place).owned = true;
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
        if let Kind::Socket(connection) = self.net.descriptor(id).kind
            && let Party::Speaker(speaker) = self.net.connection(connection).far
        {
            self.speaker_is_given(speaker, &bytes);
        }
        let delay = self.latency();
        self.put(output, bytes, delay);
        Ok(most)
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
