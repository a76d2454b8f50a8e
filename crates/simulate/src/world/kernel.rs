//! The kernel calls that need the whole world.

use std::io::{self, IoSlice};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use event::{Fd, Peer};

use crate::ids::{DescriptorId, Party};
use crate::net::Kind;
use crate::scheduled_event::ScheduledEvent;
use crate::world::World;

/// How often one loop may request a descriptor in the second in which none is available: two listeners, each with ten
/// attempts per second.
const ASKED_MAX: usize = 40;

impl World {
    /// Fails to watch a descriptor.
    pub(crate) fn cannot_watch(&mut self, id: DescriptorId) -> io::Error {
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

    /// Excuses a party: it cannot expect all guarantees of the gateway any more.
    pub(super) fn excuse(&mut self, far: Party, why: &'static str) {
        match far {
            Party::Client(client) => self.users.clients[client].excused = Some(why),
            Party::Speaker(speaker) => self.excuse_speaker(speaker),
            Party::Gateway(_) | Party::Program(_) => {}
        }
    }

    pub(crate) fn accept(&mut self, shard: usize, id: DescriptorId) -> io::Result<(Fd, Peer)> {
        if self.fault(4) {
            let lasts = self.chance.time(Duration::from_millis(1), Duration::from_secs(1));
            self.net.shortage = (self.time.now + lasts, 0);
        }
        if self.net.shortage.0 > self.time.now {
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
            self.after(Duration::from_micros(20), ScheduledEvent::ResetAt(connection.far));
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

    pub(crate) fn receive(&mut self, id: DescriptorId, room: &mut [u8]) -> io::Result<usize> {
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
            // An error is returned once, after all bytes. After it only the end follows.
            return match self.net.descriptor(id).error.take() {
                Some(kind) => Err(kind.into()),
                None => Ok(0),
            };
        }
        let most = self.part_of(ready.min(room.len()));
        let count = self.net.flow(input).take(&mut room[..most]);
        self.note("the gateway receives: descriptor, bytes", id.0, count);
        self.count_received(id, count);
        if count < room.len() {
            self.rearm_read(id, false);
        }
        self.made_room(input);
        Ok(count)
    }

    pub(crate) fn send(&mut self, id: DescriptorId, parts: &[IoSlice<'_>]) -> io::Result<usize> {
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
            // The send reached the limit, but the loop calls again before it waits.
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

    /// Returns the number of unacknowledged bytes. The other end of a socket acknowledges bytes when it reads them. For
    /// a pipe the number is unknown.
    pub(crate) fn unacknowledged(&mut self, id: DescriptorId) -> io::Result<u64> {
        match self.net.flows_of(id) {
            (Some(_), Some(output)) => Ok(self.net.flow(output).waiting() as u64),
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Returns how much of `count` the kernel transfers in one call: all, or less.
    pub(super) fn part_of(&mut self, count: usize) -> usize {
        if self.chance.in_1000(self.scenario.short) { self.chance.between(1, count) } else { count }
    }

    pub(crate) fn shutdown_write(&mut self, id: DescriptorId) -> io::Result<()> {
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
