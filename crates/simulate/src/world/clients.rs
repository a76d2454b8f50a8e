//! Clients connect, send, read and leave.

use std::time::Duration;

use crate::chance::Actor;
use crate::clients::{Client, End, Leaving, Line, LineKind, Reading, State};
use crate::ids::{ConnectionId, Party, PortId};
use crate::net::{Connection, Kind};
use crate::scheduled_event::{Moment, ScheduledEvent};
use crate::world::World;

/// The interval of checks whether a client still waits, and the maximum time that it may wait.
const LOOKS_EVERY: Duration = Duration::from_secs(20);

const WAITS_MAX: Duration = Duration::from_secs(100);

impl World {
    /// Adds a client that connects after a delay.
    pub(crate) fn add_client(&mut self, listener: usize, after: Duration, tame: bool) -> usize {
        let number = self.users.clients.len();
        self.act(Actor("new client", number));
        let (lines, bytes) = self.lines_of(number, listener, tame);
        let total = bytes.len();
        let away = self.chance.time(Duration::from_millis(1), Duration::from_secs(20));
        let leaving = self.chance.weighted(&[
            (40, Leaving::HalfCloses),
            (25, Leaving::WhenAnswered),
            (8, Leaving::Stays),
            (9, Leaving::Closes(away)),
            (9, Leaving::Resets(away)),
            (9, Leaving::Vanishes(away)),
        ]);
        let slowly = Reading::Slowly {
            bytes: (total / 20).max(8),
            every: self.chance.time(Duration::from_millis(1), Duration::from_millis(150)),
        };
        let reading =
            self.chance.weighted(&[(85, Reading::AtOnce), (10, slowly), (5, Reading::Never)]);
        let leaving = match (reading, leaving) {
            _ if tame => Leaving::WhenAnswered,
            (Reading::Never, Leaving::HalfCloses | Leaving::WhenAnswered | Leaving::Stays) => {
                Leaving::Closes(away)
            }
            (_, leaving) => leaving,
        };
        let window = self.chance.pick(&[1, 1, 2, 5, 100]);
        let pace = self.chance.time(Duration::from_micros(50), Duration::from_millis(600));
        let chunk = self.chance.pick(&[total / 20 + 1, total / 5 + 1, total.max(1)]);
        let leaves_unread = self.scenario.leave_unread && !tame && number.is_multiple_of(2);
        let (window, leaving) =
            if leaves_unread { (100, Leaving::Resets(away / 50)) } else { (window, leaving) };
        self.users.clients.push(Client {
            lines,
            bytes,
            sent: 0,
            received: Vec::new(),
            end: None,
            excused: None,
            listener,
            reading: if tame { Reading::AtOnce } else { reading },
            leaving,
            window,
            pace,
            chunk,
            state: State::Away,
            connection: None,
            connected_at: Moment::ZERO,
            replies: 0,
            half_closed: false,
            progress_at: Moment::ZERO,
            called: None,
            pause_until: Moment::ZERO,
            reads_at: Moment::ZERO,
        });
        self.trace(|| {
            let client = &self.users.clients[number];
            let (reading, leaving) = (client.reading, client.leaving);
            format!("client {number}: {} lines, {reading:?}, {leaving:?}", client.lines.len())
        });
        self.call_client(number, self.time.now + after);
        number
    }

    /// Draws the lines of a client, each with its own id. Some of them are invalid.
    pub(super) fn lines_of(
        &mut self,
        number: usize,
        listener: usize,
        tame: bool,
    ) -> (Vec<Line>, Vec<u8>) {
        let line_max = self.scenario.listeners[listener].line_max;
        let count = if tame { 1 } else { self.chance.between(1, self.scenario.lines_max) };
        let (mut lines, mut bytes) = (Vec::new(), Vec::new());
        for place in 0..count {
            let mut id = u64::try_from(number * 1000 + place).expect("few clients") + 1_000_000;
            if tame && id % 50 == 49 {
                id += 1;
            }
            let kind = match self.chance.below(100) {
                _ if tame => LineKind::Whole,
                0 | 1 => LineKind::TooLong,
                2..6 if place + 1 == count => LineKind::Begun,
                _ => LineKind::Whole,
            };
            let length = match kind {
                LineKind::TooLong => line_max + 2 + self.chance.below(line_max * 2),
                _ => self.chance.between(9, (line_max / 2).max(9)).min(self.chance.between(9, 400)),
            };
            let mut line = format!("{id} ").into_bytes();
            line.resize(length.max(line.len()), b'a' + u8::try_from(place % 26).unwrap_or(0));
            bytes.extend(line);
            match kind {
                LineKind::Begun => {}
                _ if self.chance.in_1000(100) => bytes.extend(b"\r\n"),
                _ => bytes.push(b'\n'),
            }
            lines.push(Line { id, kind, end: bytes.len() });
        }
        (lines, bytes)
    }

    pub(super) fn call_client(&mut self, number: usize, at: Moment) {
        let client = &mut self.users.clients[number];
        if client.called.is_none_or(|called| called > at || called < self.time.now) {
            client.called = Some(at);
            self.at(at, ScheduledEvent::Client(number));
        }
    }

    /// Notifies a client that something arrived for it.
    pub(crate) fn client_receives(&mut self, number: usize) {
        self.call_client(number, self.time.now);
    }

    /// Notifies a client that its connection has room for more bytes.
    pub(crate) fn client_has_room(&mut self, number: usize) {
        if self.users.clients[number].sent < self.users.clients[number].bytes.len() {
            let delay = self.latency();
            self.call_client(number, self.time.now + delay);
        }
    }

    pub(crate) fn client_acts(&mut self, number: usize) {
        let now = self.time.now;
        if self.users.clients[number].called.is_some_and(|called| called <= now) {
            self.users.clients[number].called = None;
        }
        match self.users.clients[number].state {
            State::Done => return,
            State::Away => self.client_connects(number),
            State::There => {}
        }
        self.client_reads(number);
        if self.users.clients[number].state != State::There {
            return;
        }
        if let Some(at) = self.users.clients[number].leaves_at() {
            if at <= now {
                return self.client_leaves(number);
            }
            self.call_client(number, at);
        }
        self.client_writes(number);
        let client = &self.users.clients[number];
        let over = client.sent == client.bytes.len();
        let answered = client.replies >= client.lines_sent();
        let begun = client.lines.last().is_some_and(|line| line.kind == LineKind::Begun);
        match client.leaving {
            Leaving::HalfCloses if over && !client.half_closed => {
                self.note("half-closes: client", number, 0);
                self.users.clients[number].half_closed = true;
                let up = self.connection_of(number).up;
                self.end_flow(up);
            }
            Leaving::WhenAnswered if over && answered && !begun => self.client_leaves(number),
            _ => {}
        }
    }

    pub(super) fn connection_of(&self, number: usize) -> Connection {
        let connection = self.users.clients[number].connection;
        self.net.connection(connection.expect("it has connected"))
    }

    pub(super) fn client_connects(&mut self, number: usize) {
        let (receives, sends) = (self.scenario.socket_receive, self.scenario.socket_send);
        let id = ConnectionId(self.net.connections.len());
        let descriptor = self.net.add_descriptor(Kind::Socket(id));
        let (ours, theirs) = (Party::Gateway(descriptor), Party::Client(number));
        let up = self.net.add_flow(theirs, ours, receives);
        let down = self.net.add_flow(ours, theirs, sends);
        let listener = Some(PortId(self.users.clients[number].listener));
        self.net.connections.push(Connection { listener, far: theirs, descriptor, up, down });
        let client = &mut self.users.clients[number];
        client.connection = Some(id);
        client.state = State::There;
        client.connected_at = self.time.now;
        client.progress_at = self.time.now;
        self.note("connects: client, descriptor", number, descriptor.0);
        let delay = self.latency();
        self.after(delay, ScheduledEvent::ReachListener(id));
        self.after(LOOKS_EVERY, ScheduledEvent::Patience(number));
    }

    pub(super) fn client_reads(&mut self, number: usize) {
        let now = self.time.now;
        let down = self.connection_of(number).down;
        let ready = self.net.flow(down).ready();
        let count = match self.users.clients[number].reading {
            Reading::Never => 0,
            Reading::AtOnce => ready,
            Reading::Slowly { .. } if self.users.clients[number].reads_at > now => {
                let at = self.users.clients[number].reads_at;
                self.call_client(number, at);
                0
            }
            Reading::Slowly { bytes, every } => {
                self.users.clients[number].reads_at = now + every;
                self.call_client(number, now + every);
                bytes.min(ready)
            }
        };
        if count > 0 {
            let bytes = self.net.flow(down).take_some(count);
            self.note("reads: client, bytes", number, bytes.len());
            let client = &mut self.users.clients[number];
            client.replies += bytes.iter().filter(|byte| **byte == b'\n').count();
            client.received.extend(bytes);
            client.progress_at = now;
            self.made_room(down);
        }
        let flow = self.net.flow(down);
        if flow.ended && flow.ready() == 0 && self.users.clients[number].reading != Reading::Never {
            self.note("sees the end: client", number, 0);
            self.users.clients[number].end = Some(End::Eof);
            self.client_closes(number);
        }
    }

    pub(super) fn client_writes(&mut self, number: usize) {
        let now = self.time.now;
        let up = self.connection_of(number).up;
        let space = self.net.flow(up).space();
        let client = &self.users.clients[number];
        let (sent, total) = (client.sent, client.bytes.len());
        if sent == total || space == 0 {
            return;
        }
        let owed = client.lines_sent().saturating_sub(client.replies);
        let at_start = sent == 0 || client.lines.iter().any(|line| line.end == sent);
        if at_start && owed >= client.window {
            return;
        }
        if client.pause_until > now {
            let at = client.pause_until;
            return self.call_client(number, at);
        }
        let line = client.lines.iter().find(|line| line.end > sent).map_or(total, |line| line.end);
        let (window, pace, chunk) = (client.window, client.pace, client.chunk);
        // A client that waits for replies sends one line at a time.
        let until = if window < 100 { line } else { total };
        let count = self.chance.between(chunk.div_ceil(2), chunk).min(until - sent).min(space);
        let bytes = self.users.clients[number].bytes[sent..sent + count].to_vec();
        self.users.clients[number].sent += count;
        if count > 0 {
            self.users.clients[number].progress_at = now;
            self.note("sends: client, bytes", number, count);
            let delay = self.latency();
            self.put(up, bytes, delay);
        }
        let ended = self.users.clients[number].lines.iter().any(|line| line.end == sent + count);
        let most = if ended { pace } else { Duration::from_millis(40).min(pace) };
        let pause = self.chance.time(Duration::from_micros(1), most);
        self.users.clients[number].pause_until = now + pause;
        if sent + count < total {
            self.call_client(number, now + pause);
        }
    }

    /// Makes a client leave in its way.
    pub(super) fn client_leaves(&mut self, number: usize) {
        let connection = self.connection_of(number);
        self.users.clients[number].end = Some(End::Own);
        match self.users.clients[number].leaving {
            Leaving::Resets(_) => {
                self.users.clients[number].excused = Some("it reset the connection");
                self.client_resets(number);
            }
            Leaving::Vanishes(_) => {
                self.note("vanishes: client", number, 0);
                self.users.clients[number].excused = Some("it vanished");
                self.users.clients[number].state = State::Done;
                self.net.flow(connection.up).lost = true;
                self.net.flow(connection.down).lost = true;
            }
            Leaving::Closes(_) => {
                self.users.clients[number].excused = Some("it left early");
                self.client_closes(number);
            }
            _ => self.client_closes(number),
        }
    }

    pub(super) fn client_resets(&mut self, number: usize) {
        self.note("resets: client", number, 0);
        let connection = self.connection_of(number);
        self.users.clients[number].state = State::Done;
        if self.chance.in_1000(500) {
            self.net.flow(connection.up).cut();
        }
        self.net.flow(connection.down).leave();
        let delay = self.latency();
        self.after(delay, ScheduledEvent::ResetAtGateway(connection.descriptor));
    }

    /// Closes the connection of a client. With unread bytes this is a reset.
    pub(super) fn client_closes(&mut self, number: usize) {
        let connection = self.connection_of(number);
        if self.net.flow(connection.down).ready() > 0 {
            return self.client_resets(number);
        }
        self.note("closes: client", number, 0);
        self.users.clients[number].state = State::Done;
        self.net.flow(connection.down).leave();
        self.end_flow(connection.up);
    }

    /// Handles a reset of the connection, by the gateway or by the network.
    pub(crate) fn client_is_reset(&mut self, number: usize) {
        if self.users.clients[number].state != State::There {
            return;
        }
        self.client_reads(number);
        if self.users.clients[number].state != State::There {
            return;
        }
        self.note("is reset: client", number, 0);
        let connection = self.connection_of(number);
        let client = &mut self.users.clients[number];
        client.end = Some(End::Reset);
        client.state = State::Done;
        for flow in [connection.up, connection.down] {
            self.net.flow(flow).leave();
            self.net.flow(flow).cut();
        }
    }

    /// Cuts a random connection.
    pub(crate) fn cut_client(&mut self) {
        let there: Vec<usize> = (0..self.users.clients.len())
            .filter(|number| self.users.clients[*number].state == State::There)
            .collect();
        if there.is_empty() || self.progress.calm {
            return;
        }
        let number = self.chance.pick(&there);
        let connection = self.connection_of(number);
        self.note("a connection is cut: client", number, 0);
        self.users.clients[number].excused = Some("its connection was cut");
        let (one, other) = (self.latency(), self.latency());
        self.after(one, ScheduledEvent::ResetAtGateway(connection.descriptor));
        self.after(other, ScheduledEvent::ResetAt(Party::Client(number)));
    }

    /// Checks whether a client has waited too long.
    pub(crate) fn check_patience(&mut self, number: usize) {
        let client = &self.users.clients[number];
        if client.state != State::There {
            return;
        }
        let waited = self.time.now - client.progress_at;
        if waited > WAITS_MAX {
            let (sent, replies) = (client.lines_sent(), client.replies);
            let text = format!(
                "client {number} waits for {waited:?}: {sent} lines sent, {replies} replies, \
                 {:?}, {:?}",
                client.reading, client.leaving
            );
            self.violation(text);
            self.users.clients[number].state = State::Done;
            return;
        }
        self.after(LOOKS_EVERY, ScheduledEvent::Patience(number));
    }
}
