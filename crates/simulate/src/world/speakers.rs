//! Parties that speak HTTP connect, read, write and end.

use std::io;
use std::time::Duration;

use event::{Address, Fd};

use crate::chance::Actor;
use crate::clients::End;
use crate::http::hosts;
use crate::http::servers::{Fault, Link, Mode};
use crate::http::speakers::{FIRST_PORT, Role, Speaker, State, Then};
use crate::http::visitors::Visitor;
use crate::ids::{ConnectionId, Party, PortId};
use crate::net::{Connecting, Connection, Edge, Kind};
use crate::scheduled_event::{Moment, ScheduledEvent};
use crate::world::World;

impl World {
    /// Adds a speaker with a new connection that is not established yet.
    pub(super) fn add_speaker(&mut self, role: Role, listens: bool) -> usize {
        let number = self.http.speakers.len();
        self.act(Actor("new speaker", number));
        let (receives, sends) = (self.scenario.socket_receive, self.scenario.socket_send);
        let id = ConnectionId(self.net.connections.len());
        let descriptor = self.net.add_descriptor(Kind::Socket(id));
        let (ours, far) = (Party::Gateway(descriptor), Party::Speaker(number));
        let up = self.net.add_flow(far, ours, receives);
        let down = self.net.add_flow(ours, far, sends);
        let listener = listens.then_some(PortId(0));
        self.net.connections.push(Connection { listener, far, descriptor, up, down });
        self.http.speakers.push(Speaker {
            role,
            connection: id,
            state: State::Away,
            end: None,
            excused: false,
            called: None,
            input: Vec::new(),
            read: 0,
            output: Vec::new(),
            written: 0,
            piece: self.chance.pick(&[40, 700, 100_000]),
            rests: Duration::from_millis(5),
            reads_at: Moment::ZERO,
            then: Then::GoOn,
        });
        number
    }

    pub(super) fn link(&mut self, number: usize) -> &mut Link {
        match &mut self.http.speakers[number].role {
            Role::Server(link) => link,
            Role::Visitor(_) => unreachable!("only servers are asked"),
        }
    }

    pub(super) fn visitor(&mut self, number: usize) -> &mut Visitor {
        match &mut self.http.speakers[number].role {
            Role::Visitor(visitor) => visitor,
            Role::Server(_) => unreachable!("only visitors ask"),
        }
    }

    pub(super) fn connection_of_speaker(&self, number: usize) -> Connection {
        self.net.connection(self.http.speakers[number].connection)
    }

    /// Begins a connection of the gateway to a server.
    pub(crate) fn connect(&mut self, shard: usize, to: &Address) -> io::Result<Fd> {
        if self.fault(3) {
            self.http.starved.push(self.time.now);
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        let server = match to {
            Address::Internet(to) => usize::from(to.port() - FIRST_PORT),
            Address::Unix(path) => hosts::server_at(path)?,
        };
        let number = self.add_speaker(Role::Server(Link::new(server)), false);
        let connection = self.connection_of_speaker(number);
        let descriptor = self.net.descriptor(connection.descriptor);
        (descriptor.owned, descriptor.shard) = (true, shard);
        descriptor.connecting = Some(Connecting::Waits);
        self.note("the gateway connects: descriptor, server", connection.descriptor.0, server);
        // A Unix socket is connected by the call itself.
        let is_far = matches!(to, Address::Internet(_));
        let delay = if is_far { self.latency() } else { Duration::ZERO };
        self.after(delay, ScheduledEvent::Reach(self.http.speakers[number].connection));
        let number = u32::try_from(connection.descriptor.0).expect("a world has few descriptors");
        Ok(Fd::simulated(number))
    }

    /// Handles a `connect` that arrives at its server: the server accepts it, refuses it, or does not respond.
    pub(crate) fn reach(&mut self, id: ConnectionId) {
        let Connection { descriptor, far, .. } = self.net.connection(id);
        if !self.net.descriptor(descriptor).open {
            return;
        }
        let number = far.number();
        let server = self.link(number).server;
        if self.http.servers[server].host.is_some() {
            return self.reach_host(id, number, server);
        }
        match self.http.servers[server].mode {
            Mode::Silent => self.note("says nothing to a connect: server", server, 0),
            Mode::Refuses => {
                self.note("refuses: server", server, 0);
                self.refuse_connect(descriptor, io::ErrorKind::ConnectionRefused);
            }
            Mode::Serves => {
                self.note("takes a connection: server, speaker", server, number);
                self.net.descriptor(descriptor).connecting = None;
                self.http.speakers[number].state = State::There;
                self.edge(descriptor, Edge::Write);
                if self.fault(30) {
                    self.link(number).blame(Fault::Before);
                    self.speaker_resets(number);
                }
            }
        }
    }

    pub(crate) fn refuse_connect(&mut self, id: crate::ids::DescriptorId, why: io::ErrorKind) {
        self.net.descriptor(id).connecting = Some(Connecting::Failed(why));
        self.edge(id, Edge::End);
    }

    pub(crate) fn call_speaker(&mut self, number: usize, at: Moment) {
        let now = self.time.now;
        let speaker = &mut self.http.speakers[number];
        if speaker.called.is_none_or(|called| called > at || called < now) {
            speaker.called = Some(at);
            self.at(at, ScheduledEvent::Speaker(number));
        }
    }

    pub(crate) fn speaker_acts(&mut self, number: usize) {
        let now = self.time.now;
        let speaker = &mut self.http.speakers[number];
        if speaker.called.is_some_and(|called| called <= now) {
            speaker.called = None;
        }
        match (speaker.state, &speaker.role) {
            (State::Away, Role::Server(link)) if link.accepted_at.is_some_and(|at| at <= now) => {
                self.host_accepts(number);
            }
            (State::Done, _) | (State::Away, Role::Server(_)) => return,
            (State::Away, Role::Visitor(_)) => self.visitor_comes(number),
            (State::There, _) => {}
        }
        let ended = self.speaker_reads(number);
        match self.http.speakers[number].role {
            Role::Visitor(_) => self.visitor_acts(number, ended),
            Role::Server(_) => self.server_acts(number, ended),
        }
        if self.http.speakers[number].state == State::There {
            self.speaker_writes(number);
        }
    }

    /// Reads a piece. Returns true at the end of the input.
    pub(super) fn speaker_reads(&mut self, number: usize) -> bool {
        let down = self.connection_of_speaker(number).down;
        let Speaker { piece, rests, reads_at, .. } = self.http.speakers[number];
        if reads_at > self.time.now {
            self.call_speaker(number, reads_at);
            return false;
        }
        let bytes = self.net.flow(down).take_some(piece.max(400));
        if !bytes.is_empty() {
            self.note("reads: speaker, bytes", number, bytes.len());
            self.http.speakers[number].input.extend(bytes);
            self.made_room(down);
        }
        let flow = self.net.flow(down);
        let (left, ended) = (flow.ready(), flow.ended);
        if left > 0 {
            let pause = self.chance.time(Duration::from_micros(10), rests);
            self.http.speakers[number].reads_at = self.time.now + pause;
            self.call_speaker(number, self.time.now + pause);
        }
        ended && left == 0
    }

    pub(super) fn speaker_writes(&mut self, number: usize) {
        let up = self.connection_of_speaker(number).up;
        let space = self.net.flow(up).space();
        let Speaker { written, piece, .. } = self.http.speakers[number];
        let left = self.http.speakers[number].output.len() - written;
        let count = self.chance.between(1, piece).min(left).min(space);
        if count > 0 {
            let bytes = self.http.speakers[number].output[written..written + count].to_vec();
            self.http.speakers[number].written += count;
            self.note("sends: speaker, bytes", number, count);
            let delay = self.latency();
            self.put(up, bytes, delay);
        }
        if count < left {
            if space > count {
                let pause = self.chance.time(Duration::from_micros(10), Duration::from_millis(2));
                self.call_speaker(number, self.time.now + pause);
            }
            return;
        }
        match self.http.speakers[number].then {
            Then::GoOn => {}
            Then::Finish => {
                self.note("says no more: speaker", number, 0);
                self.http.speakers[number].then = Then::GoOn;
                self.end_flow(up);
            }
            Then::Close => self.speaker_closes(number),
            Then::Reset => self.speaker_resets(number),
            Then::Die => self.host_dies_of(number),
        }
    }

    /// Closes the connection of a speaker. With unread bytes this is a reset.
    pub(super) fn speaker_closes(&mut self, number: usize) {
        let connection = self.connection_of_speaker(number);
        if self.net.flow(connection.down).ready() > 0 {
            return self.speaker_resets(number);
        }
        self.note("closes: speaker", number, 0);
        self.end_speaker(number, End::Own);
        self.net.flow(connection.down).leave();
        self.end_flow(connection.up);
    }

    pub(super) fn speaker_resets(&mut self, number: usize) {
        self.note("resets: speaker", number, 0);
        let connection = self.connection_of_speaker(number);
        self.end_speaker(number, End::Own);
        if self.chance.in_1000(500) {
            self.net.flow(connection.up).cut();
        }
        self.net.flow(connection.down).leave();
        let delay = self.latency();
        self.after(delay, ScheduledEvent::ResetAtGateway(connection.descriptor));
    }

    pub(super) fn end_speaker(&mut self, number: usize, end: End) {
        let speaker = &mut self.http.speakers[number];
        speaker.state = State::Done;
        speaker.end.get_or_insert(end);
    }

    /// Handles a reset of the connection, by the gateway or by the network.
    pub(crate) fn speaker_is_reset(&mut self, number: usize) {
        if self.http.speakers[number].state != State::There {
            return;
        }
        self.note("is reset: speaker", number, 0);
        let connection = self.connection_of_speaker(number);
        let rest = self.net.flow(connection.down).take_some(usize::MAX);
        self.http.speakers[number].input.extend(rest);
        self.end_speaker(number, End::Reset);
        if matches!(self.http.speakers[number].role, Role::Visitor(_)) {
            self.visitor_parses(number, true);
        }
        for flow in [connection.up, connection.down] {
            self.net.flow(flow).leave();
            self.net.flow(flow).cut();
        }
    }

    pub(crate) fn excuse_speaker(&mut self, number: usize) {
        self.http.speakers[number].excused = true;
        if matches!(self.http.speakers[number].role, Role::Server(_)) {
            self.http.starved.push(self.time.now);
        }
    }

    /// Cuts a random connection.
    pub(crate) fn cut_speaker(&mut self) {
        let there: Vec<usize> = (0..self.http.speakers.len())
            .filter(|number| self.http.speakers[*number].state == State::There)
            .collect();
        if there.is_empty() || self.progress.calm {
            return;
        }
        let number = self.chance.pick(&there);
        self.note("a connection is cut: speaker", number, 0);
        let speaker = &mut self.http.speakers[number];
        match &mut speaker.role {
            Role::Visitor(_) => speaker.excused = true,
            Role::Server(link) => link.blame(Fault::Cut),
        }
        let descriptor = self.connection_of_speaker(number).descriptor;
        let (one, other) = (self.latency(), self.latency());
        self.after(one, ScheduledEvent::ResetAtGateway(descriptor));
        self.after(other, ScheduledEvent::ResetAt(Party::Speaker(number)));
    }
}
