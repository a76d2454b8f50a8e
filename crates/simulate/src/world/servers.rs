//! Servers read requests and answer them.

use std::time::Duration;

use crate::http::hosts::Host;
use crate::http::message;
use crate::http::message::Request;
use crate::http::servers::{Fault, Mode, ServerAction, Turn};
use crate::http::speakers::{Role, State, Then, body_of};
use crate::scheduled_event::{Moment, ScheduledEvent};
use crate::world::World;

/// The id of the requests that are health checks of the gateway.
const CHECK: u64 = 0;

const GARBAGE: [&[u8]; 5] = [
    b"\x16\x03\x01\x02\x00 this is no reply\r\n\r\n",
    b"HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\nContent-Length: 0\n\n",
];

impl World {
    /// Records bytes that the kernel accepted from the gateway for a server.
    pub(crate) fn speaker_is_given(&mut self, number: usize, bytes: &[u8]) {
        let Role::Server(link) = &mut self.http.speakers[number].role else { return };
        let host = self.http.servers.get(link.server).and_then(|server| server.host.as_ref());
        let late = host.is_some_and(Host::is_left) && link.is_between();
        let reuses = link.is_between() && !link.given.is_empty();
        link.given.extend_from_slice(bytes);
        if reuses {
            self.check_trust(number);
        }
        if late {
            self.violation(format!(
                "speaker {number} is asked though its program is known to be gone"
            ));
        }
    }

    pub(super) fn server_acts(&mut self, number: usize, ended: bool) {
        if self.link(number).tunnel.is_some() {
            return self.server_talks(number, ended);
        }
        if ended {
            return self.speaker_closes(number);
        }
        self.server_says_again(number);
        // Requests are processed one after the other, as far as they have arrived.
        while self.http.speakers[number].state == State::There && self.server_goes_on(number) {}
    }

    /// Performs one step of the current request. Returns false if no step is possible now.
    pub(super) fn server_goes_on(&mut self, number: usize) -> bool {
        let now = self.time.now;
        let link = self.link(number);
        if link.mute || link.tunnel.is_some() {
            return false;
        }
        let closes = link.closes_at.is_some_and(|at| at <= now);
        let (turn, read) = (link.turn, self.http.speakers[number].read);
        let request = message::request(&self.http.speakers[number].input[read..]);
        let request = match request {
            Ok(Some(request)) => request,
            Ok(None) => {
                let speaker = &self.http.speakers[number];
                let idle = speaker.input.len() == read && speaker.output.len() == speaker.written;
                if closes && idle {
                    self.note("closes what is idle: speaker", number, 0);
                    self.link(number).blame(Fault::Before);
                    self.speaker_closes(number);
                }
                return false;
            }
            Err(why) => {
                self.violation(format!("server of speaker {number} got {why}"));
                self.link(number).mute = true;
                return false;
            }
        };
        let Some(Turn { action, at }) = turn else {
            self.server_begins(number, &request);
            return true;
        };
        if at > now {
            self.call_speaker(number, at);
            return false;
        }
        let waits = matches!(
            action,
            ServerAction::Answer | ServerAction::AnswerAndDie | ServerAction::ReadOn
        );
        if request.whole.is_none() && waits {
            return false;
        }
        self.server_does(number, action, request);
        true
    }

    pub(super) fn server_begins(&mut self, number: usize, request: &Request) {
        let bad = self.scenario.trouble > 0
            && !self.progress.calm
            && self.chance.in_1000(self.scenario.faulty_programs);
        let server = self.link(number).server;
        let dies = self.host_is_to_die(server);
        let early = request.is_post && self.chance.in_1000(if request.expects { 300 } else { 100 });
        let action = match () {
            () if dies => self.chance.pick(&[ServerAction::Die, ServerAction::AnswerAndDie]),
            () if bad => self.chance.pick(&[
                ServerAction::CloseUnanswered,
                ServerAction::ResetUnanswered,
                ServerAction::Truncate,
                ServerAction::ResetWithin,
                ServerAction::Stall,
                ServerAction::Garbage,
            ]),
            () if early => ServerAction::AnswerEarly,
            () => ServerAction::Answer,
        };
        let work = self.chance.time(Duration::from_micros(10), self.scenario.work_max);
        let at = self.time.now + work;
        self.note("works: speaker, request", number, usize::try_from(request.id).unwrap_or(0));
        if request.expects && action == ServerAction::Answer && self.chance.in_1000(700) {
            self.http.speakers[number].output.extend(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        let link = self.link(number);
        link.turn = Some(Turn { action, at });
        link.closes_at = None;
        link.is_check = request.id == CHECK;
        self.count_requests(server);
    }

    /// Checks that no server has more concurrent requests than allowed.
    pub(super) fn count_requests(&mut self, server: usize) {
        let mut at_work = 0;
        for speaker in &self.http.speakers {
            let Role::Server(link) = &speaker.role else { continue };
            let works =
                link.turn.is_some_and(|turn| turn.action != ServerAction::ReadOn) && !link.is_check;
            let place = self.net.connections[speaker.connection.0].descriptor;
            // A request that the gateway has abandoned may be sent to another server.
            if link.server == server && works && self.net.descriptor(place).open {
                at_work += 1;
            }
        }
        // A reply that is taken for the reply to another request frees a slot too early.
        if at_work > self.http.slots && !self.http.answers_twice {
            let slots = self.http.slots;
            self.violation(format!(
                "server {server} has {at_work} requests, {slots} are its slots"
            ));
        }
    }

    pub(super) fn server_does(&mut self, number: usize, action: ServerAction, request: Request) {
        self.trace(|| format!("speaker {number} does {action:?} with request {}", request.id));
        if let Some((body, _)) = &request.whole {
            let sent = self.http.asked.get(&request.id).copied().unwrap_or_default();
            let sent = if request.upgrades { 0 } else { sent };
            if body.len() > self.http.body_max {
                self.violation(format!("a server got more of {} than a body may have", request.id));
            }
            if *body != body_of(request.id, sent) && request.id != CHECK {
                self.violation(format!("a server got another body of request {}", request.id));
            }
        }
        let blame = match action {
            ServerAction::Answer if request.upgrades && self.chance.in_1000(800) => {
                return self.server_switches(number, &request);
            }
            ServerAction::Answer | ServerAction::AnswerEarly => {
                return self.server_answers(number, request, Then::GoOn);
            }
            ServerAction::AnswerAndDie => return self.server_answers(number, request, Then::Die),
            ServerAction::Talk => return,
            ServerAction::ReadOn => {
                let used = request.whole.map_or(0, |(_, used)| used);
                self.http.speakers[number].read += used;
                return self.link(number).turn = None;
            }
            ServerAction::CloseUnanswered | ServerAction::ResetUnanswered => Fault::Before,
            ServerAction::Truncate
            | ServerAction::ResetWithin
            | ServerAction::Stall
            | ServerAction::Garbage
            | ServerAction::Die => Fault::Within,
        };
        self.link(number).mute = true;
        let (mut reply, closes) = self.reply_to(&request);
        self.link(number).until_close = closes;
        match action {
            // If the end of the reply is the end of the connection, an incomplete reply could not be detected.
            ServerAction::Die if closes => reply.clear(),
            ServerAction::Die => {
                let length = self.chance.below(reply.len() + 1);
                // A complete reply to an incomplete request: the rest of the request is not read.
                if length == reply.len() && request.whole.is_none() {
                    self.http.early.insert(request.id);
                }
                reply.truncate(length);
            }
            ServerAction::CloseUnanswered | ServerAction::ResetUnanswered => reply.clear(),
            ServerAction::Garbage => reply = self.chance.pick(&GARBAGE).to_vec(),
            ServerAction::Stall => reply.truncate(self.chance.below(reply.len())),
            _ => reply.truncate(self.chance.between(1, reply.len() - 1)),
        }
        let nothing = action == ServerAction::Die && reply.is_empty();
        self.link(number).blame(if nothing { Fault::Before } else { blame });
        // If the end of a reply is the end of its connection, only a reset shows that the reply is incomplete.
        let then = match action {
            ServerAction::Truncate if closes => Then::Reset,
            ServerAction::CloseUnanswered | ServerAction::Truncate => Then::Close,
            ServerAction::ResetUnanswered | ServerAction::ResetWithin => Then::Reset,
            ServerAction::Die => Then::Die,
            _ => Then::GoOn,
        };
        let speaker = &mut self.http.speakers[number];
        speaker.output.extend(reply);
        speaker.then = then;
    }

    pub(super) fn server_answers(&mut self, number: usize, request: Request, then: Then) {
        let (reply, until_close) = self.reply_to(&request);
        self.link(number).until_close = until_close;
        let is_whole = request.whole.is_some();
        let dies = then == Then::Die;
        let tires = is_whole && !self.http.is_gentle && self.chance.in_1000(100);
        let closes = !dies && (until_close || tires);
        if !is_whole {
            self.http.early.insert(request.id);
        }
        let twice = self.http.answers_twice
            && is_whole
            && request.id != CHECK
            && !(until_close || closes || dies || request.head_only || request.is_post)
            && self.chance.in_1000(150);
        let again = twice.then(|| reply.clone());
        let speaker = &mut self.http.speakers[number];
        speaker.output.extend(reply);
        let end = speaker.output.len();
        if let Some((_, used)) = request.whole {
            speaker.read += used;
        }
        self.link(number).ends.push(end);
        if let Some(again) = again {
            self.answer_again(number, again);
        }
        let speaker = &mut self.http.speakers[number];
        if closes || dies {
            speaker.then = if dies { then } else { Then::Close };
        }
        let idle = self.chance.time(Duration::from_millis(1), Duration::from_secs(2));
        let closes_idle = self.fault(300);
        let at = self.time.now + idle;
        let link = self.link(number);
        link.answers += 1;
        link.mute = closes || dies;
        link.turn = (!is_whole).then_some(Turn { action: ServerAction::ReadOn, at: Moment::ZERO });
        if closes {
            // Requests after the last reply are lost. The reply may be lost as well if the server closes with unread
            // bytes.
            link.blame(if is_whole { Fault::Before } else { Fault::Cut });
        } else if closes_idle {
            link.closes_at = Some(at);
            self.call_speaker_later(number, at);
        }
    }

    /// Schedules a step in addition to one that is scheduled earlier.
    pub(super) fn call_speaker_later(&mut self, number: usize, at: Moment) {
        self.at(at, ScheduledEvent::Speaker(number));
    }

    /// Returns a complete reply, and whether its end is the end of the connection.
    pub(super) fn reply_to(&mut self, request: &Request) -> (Vec<u8>, bool) {
        let id = request.id;
        // Sometimes the body is so long that the gateway can forward it without looking at its bytes.
        let wide = self.scenario.socket_receive.min(self.scenario.socket_send) > 10_000;
        let long = if wide { 4 } else { 0 };
        let length = self.chance.weighted(&[
            (10, 0),
            (10, 7),
            (20, 300),
            (10, 3000),
            (10, 20_000),
            (long, 300_000),
        ]);
        let body = body_of(id, length);
        let sent = if request.head_only { &[][..] } else { &body };
        let mut reply = Vec::new();
        if self.chance.in_1000(100) {
            reply.extend(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
        }
        // The last variants end the connection.
        let way = self.chance.below(if self.http.is_gentle { 17 } else { 20 });
        let version = if way >= 18 { "1.0" } else { "1.1" };
        reply.extend(format!("HTTP/{version} 200 OK\r\nServer: a\r\n").into_bytes());
        let until_close = match way {
            0..9 => {
                reply.extend(format!("Content-Length: {length}\r\n\r\n").into_bytes());
                reply.extend_from_slice(sent);
                false
            }
            9..17 => {
                reply.extend(b"Transfer-Encoding: chunked\r\n\r\n");
                let size =
                    self.chance.pick(&[1000, if length > 100_000 { 1000 } else { 9 }, 200_000]);
                let trailers = self.chance.in_1000(200);
                if !request.head_only {
                    message::write_chunked(sent, size, trailers, &mut reply);
                }
                false
            }
            17 => {
                reply.extend(b"Connection: close\r\n\r\n");
                reply.extend_from_slice(sent);
                true
            }
            // An HTTP/1.0 server closes after every reply, with or without a length.
            18 => {
                reply.extend(b"\r\n");
                reply.extend_from_slice(sent);
                true
            }
            _ => {
                reply.extend(format!("Content-Length: {length}\r\n\r\n").into_bytes());
                reply.extend_from_slice(sent);
                true
            }
        };
        let said = if request.head_only { Vec::new() } else { body };
        self.http.said.entry(id).or_default().push(said);
        (reply, until_close)
    }

    /// Changes the mode of a server.
    pub(crate) fn server_turns(&mut self, server: usize) {
        if self.progress.calm || self.http.servers[server].steady {
            return;
        }
        let mode = self.chance.pick(&[Mode::Serves, Mode::Refuses, Mode::Silent]);
        self.trace(|| format!("server {server} {mode:?}"));
        self.http.servers[server].mode = mode;
        let lasts = self.chance.time(Duration::from_millis(1), Duration::from_secs(5));
        self.after(lasts, ScheduledEvent::ServerTurns(server));
    }
}
