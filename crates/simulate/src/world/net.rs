//! Transfers bytes, connections and reports.

use std::io;
use std::time::Duration;

use event::{Completeness, Interest, Readiness, Token};

use crate::ids::{ConnectionId, DescriptorId, FlowId, Party, PortId};
use crate::net::{Edge, Kind};
use crate::plants::Mutant;
use crate::scheduled_event::ScheduledEvent;
use crate::world::World;

impl World {
    /// Draws the latency of bytes on a socket.
    pub(crate) fn latency(&mut self) -> Duration {
        let most = self.scenario.latency_max;
        self.chance.time(Duration::from_micros(5), most)
    }

    /// Handles a change of a descriptor: it is reported if the loop watches for it.
    pub(crate) fn edge(&mut self, id: DescriptorId, edge: Edge) {
        let eager = self.chance.in_1000(self.scenario.eager);
        let descriptor = self.net.descriptor(id);
        if descriptor.watch.is_none() {
            return;
        }
        let due = match edge {
            // It stays armed until the change was reported.
            Edge::Read => descriptor.read_armed || eager,
            Edge::Write => descriptor.write_armed || eager,
            Edge::End => true,
        };
        if due && !std::mem::replace(&mut descriptor.queued, true) {
            self.net.reports.push(id);
        }
    }

    /// Arms a direction after a receive found no more: later changes are reported, and existing bytes immediately.
    /// `untrue`: more bytes were available, although the call found none.
    pub(crate) fn rearm_read(&mut self, id: DescriptorId, untrue: bool) {
        let Some(input) = self.net.flows_of(id).0 else { return };
        let flow = self.net.flow(input);
        let (more, ended) = (flow.ready() > 0, flow.ended);
        let descriptor = self.net.descriptor(id);
        descriptor.read_armed = true;
        let end = ended || descriptor.error.is_some();
        let again = end && (untrue || !descriptor.end_told || self.chance.in_1000(300));
        if more || again {
            self.edge(id, Edge::Read);
        }
    }

    /// Arms a direction after a send found no room.
    pub(crate) fn rearm_write(&mut self, id: DescriptorId) {
        let Some(output) = self.net.flows_of(id).1 else { return };
        let room = self.net.flow(output).space() > 0;
        self.net.descriptor(id).write_armed = true;
        if room {
            self.edge(id, Edge::Write);
        }
    }

    /// Reports changes from now on, and existing readiness immediately.
    pub(crate) fn watch(
        &mut self,
        shard: usize,
        id: DescriptorId,
        token: Token,
        interest: Interest,
    ) {
        let descriptor = self.net.descriptor(id);
        descriptor.watch = Some((token, interest));
        descriptor.shard = shard;
        (descriptor.read_armed, descriptor.write_armed) = (true, true);
        if matches!(interest, Interest::Stream(_)) && self.readiness(id) != Readiness::NONE {
            self.edge(id, Edge::End);
        }
        self.replant_stale_token(shard, token);
    }

    /// Whether a loop has reports.
    pub(crate) fn has_reports(&self, shard: usize) -> bool {
        let mine = |id: &DescriptorId| self.net.descriptors[id.0].shard == shard;
        self.net.reports.iter().any(mine) || self.net.has_pending_connection(shard)
    }

    /// Returns the reports for a loop, in random order, and sometimes only a part of them.
    pub(crate) fn reports(
        &mut self,
        shard: usize,
        most: usize,
    ) -> (Vec<(Token, Readiness)>, Completeness) {
        let reports = std::mem::take(&mut self.net.reports);
        let (mut list, others): (Vec<_>, Vec<_>) =
            reports.into_iter().partition(|id| self.net.descriptors[id.0].shard == shard);
        self.net.reports = others;
        // Independent of the order of the gateway's calls.
        list.sort_unstable();
        self.chance.shuffle(&mut list);
        let mut left = list.len().saturating_sub(most);
        if list.len() > 1 && self.chance.in_1000(200) {
            left = left.max(self.chance.below(list.len()));
        }
        let completeness = if left > 0 { Completeness::Partial } else { Completeness::Complete };
        let later = list.split_off(list.len() - left);
        self.net.reports.extend(later);
        let listeners = self.net.listeners.iter();
        list.extend(listeners.filter(|id| self.net.descriptors[id.0].shard == shard));
        let mut reports: Vec<_> = list.into_iter().filter_map(|id| self.report(id)).collect();
        for (owner, token) in std::mem::take(&mut self.net.stale) {
            // A late report may find another stream in the slot.
            if owner != shard || self.chance.in_1000(800) {
                self.net.stale.push((owner, token));
            } else {
                reports.push((token, Readiness::READ | Readiness::READ_END | Readiness::HANGUP));
            }
        }
        (reports, completeness)
    }

    pub(super) fn readiness(&self, id: DescriptorId) -> Readiness {
        let mut ready = self.net.readiness(id);
        if matches!(self.net.descriptors[id.0].kind, Kind::Datagrams) {
            if self.datagrams.can_be_received() {
                ready |= Readiness::READ;
            }
            if self.datagrams.can_be_sent() {
                ready |= Readiness::WRITE;
            }
        }
        ready
    }

    pub(super) fn report(&mut self, id: DescriptorId) -> Option<(Token, Readiness)> {
        let ready = self.readiness(id);
        let descriptor = self.net.descriptor(id);
        descriptor.queued = false;
        let (token, interest) = descriptor.watch?;
        if ready == Readiness::NONE || !descriptor.open {
            return None;
        }
        let stream = matches!(interest, Interest::Stream(_));
        if stream && ready.any(Readiness::READ) && self.planted.strikes(Mutant::LostEdge) {
            self.note("PLANT: a report of bytes is lost: descriptor", id.0, 0);
            self.net.descriptor(id).read_armed = false;
            return None;
        }
        if stream && ready.any(Readiness::WRITE) && self.room_is_waited_for(id) {
            self.note("PLANT: a report of room is lost: descriptor", id.0, 0);
            self.net.descriptor(id).write_armed = false;
            return None;
        }
        let descriptor = self.net.descriptor(id);
        if ready.any(Readiness::READ | Readiness::HANGUP) {
            descriptor.read_armed = false;
        }
        if ready.any(Readiness::WRITE) {
            descriptor.write_armed = false;
            descriptor.blocked = false;
        }
        descriptor.end_told |= ready.any(Readiness::READ_END | Readiness::HANGUP);
        self.trace(|| format!("report: descriptor {}, {token:?}, {ready:?}", id.0));
        Some((token, ready))
    }

    pub(super) fn room_is_waited_for(&mut self, id: DescriptorId) -> bool {
        self.net.descriptors[id.0].blocked && self.planted.strikes(Mutant::LostRoom)
    }

    /// Handles the arrival of bytes or their end at the gateway.
    pub(crate) fn arrived_at_gateway(&mut self, id: DescriptorId, end: bool) {
        self.edge(id, if end { Edge::End } else { Edge::Read });
    }

    /// Handles new room in a flow that the gateway writes.
    pub(crate) fn room_at_gateway(&mut self, id: DescriptorId) {
        if self.net.descriptor(id).open {
            self.edge(id, Edge::Write);
        }
    }

    /// Notifies the writer of `flow` that its reader made room.
    pub(crate) fn made_room(&mut self, flow: FlowId) {
        match self.net.flow(flow).writer {
            Party::Gateway(id) => {
                let delay = self.chance.time(Duration::from_micros(1), Duration::from_micros(500));
                self.after(delay, ScheduledEvent::Room(id));
            }
            Party::Client(client) => self.client_has_room(client),
            Party::Speaker(speaker) => {
                let delay = self.latency();
                self.call_speaker(speaker, self.time.now + delay);
            }
            Party::Program(program) => self.wake_program(program, Duration::from_micros(2)),
        }
    }

    /// Sends a reset to the writer of bytes whose reader had closed.
    pub(crate) fn answer_with_reset(&mut self, flow: FlowId) {
        let delay = self.latency();
        let flow = self.net.flow(flow);
        match (flow.reader, flow.writer) {
            (Party::Client(_) | Party::Speaker(_), Party::Gateway(id)) => {
                self.after(delay, ScheduledEvent::ResetAtGateway(id));
            }
            (Party::Gateway(_), far @ (Party::Client(_) | Party::Speaker(_))) => {
                self.after(delay, ScheduledEvent::ResetAt(far));
            }
            _ => {}
        }
    }

    /// Handles a connection that arrives at its listener, if the listener still exists.
    pub(crate) fn reach_listener(&mut self, id: ConnectionId) {
        let connection = self.net.connection(id);
        let port = connection.listener.expect("who knocks does so somewhere");
        if !self.net.has_listener(port) {
            self.note("nobody listens any more: client", connection.far.number(), 0);
            self.net.descriptor(connection.descriptor).open = false;
            return self.after(Duration::from_micros(50), ScheduledEvent::ResetAt(connection.far));
        }
        self.net.backlogs[port.0].push_back(id);
    }

    /// Handles a reset that arrives at the gateway.
    pub(crate) fn reset_at_gateway(&mut self, id: DescriptorId) {
        let descriptor = self.net.descriptor(id);
        if !descriptor.open || descriptor.broken {
            return;
        }
        if descriptor.connecting.is_some() {
            return self.refuse_connect(id, io::ErrorKind::ConnectionReset);
        }
        descriptor.broken = true;
        descriptor.error = Some(io::ErrorKind::ConnectionReset);
        let (input, output) = self.net.flows_of(id);
        for flow in [input, output].into_iter().flatten() {
            self.net.flow(flow).cut();
        }
        self.note("reset reaches the gateway: descriptor", id.0, 0);
        self.edge(id, Edge::End);
    }

    /// Closes a descriptor of the gateway.
    pub(crate) fn close(&mut self, id: DescriptorId) {
        self.note("the gateway closes descriptor", id.0, 0);
        let stale = self.chance.in_1000(50);
        let descriptor = self.net.descriptor(id);
        descriptor.open = false;
        let watch = descriptor.watch.take();
        // A connection that was not established has no other end.
        let broken = descriptor.broken || descriptor.connecting.is_some();
        let (shard, resets) = (descriptor.shard, descriptor.resets);
        if let (Some((token, Interest::Stream(_))), true) = (watch, stale) {
            self.net.add_stale(shard, token);
        }
        self.forget_stale_token(shard, watch.map(|(token, _)| token));
        match &mut self.net.descriptor(id).kind {
            Kind::Listener(port) => {
                let port = *port;
                self.close_port(port);
            }
            Kind::Socket(connection) => {
                let connection = *connection;
                if !broken {
                    self.close_socket(connection, resets);
                }
            }
            Kind::PipeIn(flow) => {
                let flow = *flow;
                self.net.flow(flow).leave();
                self.made_room(flow);
            }
            Kind::PipeOut(flow) => {
                let flow = *flow;
                self.end_flow(flow);
            }
            Kind::Datagrams => {}
        }
    }

    /// Handles the close of a listener. The last one at a port ends the connections that wait there.
    pub(super) fn close_port(&mut self, port: PortId) {
        if self.net.has_listener(port) {
            return;
        }
        while let Some(connection) = self.net.take_from_backlog(port) {
            let connection = self.net.connection(connection);
            self.net.descriptor(connection.descriptor).open = false;
            let delay = self.latency();
            self.after(delay, ScheduledEvent::ResetAt(connection.far));
        }
    }

    /// Closes a socket. With unread bytes, or if requested, this is a reset, which may overtake earlier bytes;
    /// otherwise it is an end after those bytes.
    pub(super) fn close_socket(&mut self, id: ConnectionId, resets: bool) {
        let connection = self.net.connection(id);
        let unread = self.net.flow(connection.up).leave();
        if unread || resets {
            if self.chance.in_1000(500) {
                self.net.flow(connection.down).cut();
            }
            let delay = self.latency();
            let at = (self.time.now + delay).max(self.net.flow(connection.down).last_arrival());
            self.at(at, ScheduledEvent::ResetAt(connection.far));
        } else {
            self.end_flow(connection.down);
        }
    }

    /// Ends a flow, unless it was ended before.
    pub(crate) fn end_flow(&mut self, id: FlowId) {
        if self.net.flow(id).end_sent {
            return;
        }
        let delay = self.latency();
        let at = self.time.now + delay;
        let at = self.net.flow(id).put_end(at);
        self.at(at, ScheduledEvent::Arrive(id));
    }

    /// Sends bytes through a flow.
    pub(crate) fn put(&mut self, id: FlowId, bytes: Vec<u8>, delay: Duration) {
        let at = self.time.now + delay;
        let at = self.net.flow(id).put(bytes, at);
        self.at(at, ScheduledEvent::Arrive(id));
    }
}
