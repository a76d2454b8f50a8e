//! Visitors send requests and parse the replies.

use std::time::Duration;

use crate::clients::End;
use crate::http::distribution::{FIRST_ID, OF_ONE};
use crate::http::message;
use crate::http::message::RequestKind;
use crate::http::speakers::{Role, State, body_of};
use crate::http::visitors::{Visitor, VisitorRequest};
use crate::scheduled_event::{Moment, ScheduledEvent};
use crate::world::World;

impl World {
    pub(super) fn add_visitor(&mut self, after: Duration, tame: bool) -> usize {
        let count = if tame { 1 } else { self.chance.between(1, self.scenario.lines_max) };
        let number = self.http.speakers.len();
        let mut asks = Vec::new();
        for place in 0..count {
            let of = |number: usize| u64::try_from(number).expect("few visitors");
            let id = FIRST_ID + of(number) * OF_ONE + of(place);
            let is_post = !tame && self.chance.in_1000(400);
            let length = if is_post {
                self.chance.weighted(&[(3, 0), (3, 5), (3, 900), (3, 6000), (1, 70_000)])
            } else {
                0
            };
            let request_kind =
                if tame { RequestKind::Plain } else { self.request_kind(is_post, length) };
            // The length of its data in a tunnel.
            let length = if request_kind.upgrades() { self.talk_length() } else { length };
            self.http.asked.insert(id, length);
            let chunked = !request_kind.is_old() && self.chance.in_1000(400);
            let may_stall =
                !tame && matches!(request_kind, RequestKind::Plain | RequestKind::Old { .. });
            let stalls = may_stall && self.scenario.trouble > 0 && self.chance.in_1000(15);
            let stalls = stalls.then(|| self.chance.below(1000));
            asks.push(VisitorRequest { id, is_post, length, chunked, request_kind, stalls });
            if request_kind.upgrades() || stalls.is_some() {
                break;
            }
        }
        let resets = !tame && self.scenario.trouble > 0 && self.chance.in_1000(100);
        let stays = self.chance.time(Duration::from_millis(1), Duration::from_secs(5));
        let visitor = Visitor {
            asks,
            begun: 0,
            answers: Vec::new(),
            times: Vec::new(),
            window: self.chance.pick(&[1, 1, 3, 100]),
            pace: self.chance.time(Duration::from_micros(50), Duration::from_millis(300)),
            pause_until: Moment::ZERO,
            resets_at: resets.then(|| self.time.now + after + stays),
            held: None,
            tunnel_end: None,
            is_silent: false,
        };
        let number = self.add_speaker(Role::Visitor(visitor), true);
        if !tame && self.chance.in_1000(100) {
            let speaker = &mut self.http.speakers[number];
            speaker.rests = Duration::from_millis(100);
            speaker.piece = speaker.piece.min(700);
        }
        self.http.speakers[number].excused = resets;
        self.call_speaker(number, self.time.now + after);
        number
    }

    /// Draws the kind of a request.
    pub(super) fn request_kind(&mut self, is_post: bool, length: usize) -> RequestKind {
        let keeps = self.chance.in_1000(700);
        match self.chance.below(10) {
            0 => RequestKind::Old { keeps },
            1 if !is_post => RequestKind::HeadOnly,
            // Where replies may be shifted, a 101 may be shifted as well.
            2 if !is_post && !self.http.answers_twice => {
                RequestKind::Upgrades { eager: self.chance.in_1000(300) }
            }
            1 | 2 if length > 0 => RequestKind::Expects,
            _ => RequestKind::Plain,
        }
    }

    pub(super) fn visitor_comes(&mut self, number: usize) {
        self.note("comes: visitor", number, 0);
        self.http.speakers[number].state = State::There;
        // An empty line may precede a request, even by a long time.
        if self.chance.in_1000(200) {
            let pause = self.chance.time(Duration::from_micros(1), Duration::from_secs(3));
            self.visitor(number).pause_until = self.time.now + pause;
            self.http.speakers[number].output.extend(b"\r\n");
        }
        let delay = self.latency();
        self.after(delay, ScheduledEvent::ReachListener(self.http.speakers[number].connection));
        if let Some(at) = self.visitor(number).resets_at {
            self.at(at, ScheduledEvent::Speaker(number));
        }
    }

    pub(super) fn visitor_acts(&mut self, number: usize, ended: bool) {
        self.visitor_parses(number, false);
        // After the end was parsed, no 101 is left to be answered, so this comes first.
        let talks = self.visitor_talks(number);
        if ended {
            self.visitor_parses(number, true);
        }
        let now = self.time.now;
        if ended && self.visitor_goes_on(number) {
            return;
        }
        if ended {
            self.end_speaker(number, End::Eof);
            let connection = self.connection_of_speaker(number);
            self.net.flow(connection.down).leave();
            return self.end_flow(connection.up);
        }
        let visitor = self.visitor(number);
        if visitor.resets_at.is_some_and(|at| at <= now) {
            return self.speaker_resets(number);
        }
        if visitor.answers.len() == visitor.asks.len() {
            return self.speaker_closes(number);
        }
        if talks || self.visitor_waits(number) {
            return;
        }
        self.visitor_asks(number);
    }

    /// Whether a visitor waits with a body. It sends the body after `100 Continue` or after its timeout.
    pub(super) fn visitor_waits(&mut self, number: usize) -> bool {
        let now = self.time.now;
        let read = self.http.speakers[number].read;
        let told = message::continues(&self.http.speakers[number].input[read..]);
        let visitor = self.visitor(number);
        // Replies to earlier requests may still be outstanding.
        let (next, begun) = (visitor.answers.len() + 1, visitor.begun);
        let Some((_, until)) = visitor.held else { return false };
        if (told && next == begun) || until <= now {
            let (body, _) = visitor.held.take().expect("it was there");
            self.note("goes on: visitor, bytes", number, body.len());
            self.http.speakers[number].output.extend(body);
            return false;
        }
        self.call_speaker(number, until);
        true
    }

    /// Begins the next request, if it is due.
    pub(super) fn visitor_asks(&mut self, number: usize) {
        let now = self.time.now;
        let visitor = self.visitor(number);
        let owed = visitor.begun - visitor.answers.len();
        if visitor.begun == visitor.asks.len() || owed >= visitor.window {
            return;
        }
        if visitor.pause_until > now {
            let at = visitor.pause_until;
            return self.call_speaker(number, at);
        }
        let VisitorRequest { id, is_post, length, chunked, request_kind, stalls } =
            visitor.asks[visitor.begun];
        visitor.begun += 1;
        visitor.times.push((now, Moment::MAX));
        let pace = visitor.pace;
        let method = match request_kind {
            RequestKind::HeadOnly => "HEAD",
            _ if is_post => "POST",
            _ => "GET",
        };
        let version = if request_kind.is_old() { "1.0" } else { "1.1" };
        let more = match request_kind {
            RequestKind::Old { keeps: true } => "Connection: keep-alive\r\n",
            RequestKind::Expects => "Expect: 100-continue\r\n",
            RequestKind::Upgrades { .. } => "Connection: upgrade\r\nUpgrade: x\r\n",
            _ => "",
        };
        let who = self.http.distribution.line(number);
        let mut bytes =
            format!("{method} /r/{id} HTTP/{version}\r\nHost: a\r\n{who}{more}").into_bytes();
        let late = request_kind == RequestKind::Upgrades { eager: false };
        let mut body = if late { Vec::new() } else { body_of(id, length) };
        if is_post && chunked {
            bytes.extend(b"Transfer-Encoding: chunked\r\n\r\n");
            let size = self.chance.pick(&[1000, 17, 100_000]);
            let mut chunks = Vec::new();
            message::write_chunked(&body, size, self.chance.in_1000(300), &mut chunks);
            body = chunks;
        } else if is_post {
            bytes.extend(format!("Content-Length: {length}\r\n\r\n").into_bytes());
        } else {
            bytes.extend(b"\r\n");
        }
        if request_kind == RequestKind::Expects {
            let patience = self.chance.time(Duration::from_millis(1), Duration::from_secs(3));
            self.visitor(number).held = Some((body, now + patience));
        } else {
            bytes.extend(body);
        }
        if let Some(part) = stalls {
            bytes.truncate(1 + (bytes.len() - 1) * part / 1000);
        }
        self.note("asks: visitor, request", number, usize::try_from(id).unwrap_or(0));
        self.http.speakers[number].output.extend(bytes);
        let pause = self.chance.time(Duration::from_micros(1), pace);
        self.visitor(number).pause_until = now + pause;
        self.call_speaker(number, now + pause);
    }

    /// Parses the replies that have arrived; with `ended` also an incomplete one.
    pub(super) fn visitor_parses(&mut self, number: usize, ended: bool) {
        // A reset is no valid end of a reply.
        let in_order = ended && self.http.speakers[number].end != Some(End::Reset);
        let now = self.time.now;
        loop {
            let read = self.http.speakers[number].read;
            let visitor = self.visitor(number);
            let asked = visitor.asks.get(visitor.answers.len());
            let request_kind = asked.map_or(RequestKind::Plain, |ask| ask.request_kind);
            match message::reply(&self.http.speakers[number].input[read..], request_kind, in_order)
            {
                Ok(None) => return,
                Ok(Some(reply)) if reply.is_whole || ended => {
                    let (is_whole, closes) = (reply.is_whole, reply.closes);
                    self.http.speakers[number].read += reply.used;
                    let visitor = self.visitor(number);
                    if let Some((_, answered)) = visitor.times.get_mut(visitor.answers.len()) {
                        *answered = now;
                    }
                    visitor.answers.push(reply);
                    // The request was rejected before its body was sent, so the body is not sent any more.
                    let refused = visitor.held.is_some() && visitor.answers.len() == visitor.begun;
                    let closes = closes || refused;
                    if refused {
                        visitor.held = None;
                    }
                    if closes {
                        // Requests that were not begun are not sent on this connection.
                        let begun = visitor.begun;
                        visitor.asks.truncate(begun);
                    }
                    if visitor.answers.len() > visitor.begun {
                        // The upgrade was rejected, but the visitor had already sent tunnel data, which is no request.
                        let last = visitor.asks.last().map(|ask| ask.request_kind);
                        if last == Some(RequestKind::Upgrades { eager: true }) {
                            visitor.answers.pop();
                            return;
                        }
                        return self
                            .violation(format!("visitor {number} got an answer to nothing"));
                    }
                    if !is_whole {
                        return;
                    }
                }
                Ok(Some(_)) => return,
                Err(why) => return self.violation(format!("visitor {number} got {why}")),
            }
        }
    }
}
