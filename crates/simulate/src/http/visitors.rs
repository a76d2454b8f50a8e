//! Visitors: what they ask, and what they understand of the answers.

use std::time::Duration;

use super::message::{self, Reply};
use super::{Role, State, body_of};
use crate::clients::End;
use crate::world::{Happening, Moment, World};

/// One request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask {
    pub(super) id: u64,
    pub(super) is_post: bool,
    pub(super) length: usize,
    pub(super) chunked: bool,
}

#[derive(Debug)]
pub(super) struct Visitor {
    pub(super) asks: Vec<Ask>,
    /// Those that were begun.
    pub(super) begun: usize,
    /// One for each that was answered, the last perhaps in part.
    pub(super) answers: Vec<Reply>,
    /// It asks that many before it wants an answer.
    window: usize,
    pace: Duration,
    pause_until: Moment,
    /// It resets the connection then.
    resets_at: Option<Moment>,
}

impl World {
    pub(super) fn add_visitor(&mut self, after: Duration, tame: bool) -> usize {
        let count = if tame { 1 } else { self.chance.between(1, self.scenario.lines_max) };
        let number = self.http.speakers.len();
        let mut asks = Vec::new();
        for place in 0..count {
            let id = u64::try_from(number * 1000 + place).expect("few visitors") + 1_000_000;
            let is_post = !tame && self.chance.in_1000(400);
            let length = if is_post {
                self.chance.weighted(&[(3, 0), (3, 5), (3, 900), (3, 6000), (1, 70_000)])
            } else {
                0
            };
            self.http.asked.insert(id, length);
            asks.push(Ask { id, is_post, length, chunked: self.chance.in_1000(400) });
        }
        let resets = !tame && self.scenario.trouble > 0 && self.chance.in_1000(100);
        let stays = self.chance.time(Duration::from_millis(1), Duration::from_secs(5));
        let visitor = Visitor {
            asks,
            begun: 0,
            answers: Vec::new(),
            window: self.chance.pick(&[1, 1, 3, 100]),
            pace: self.chance.time(Duration::from_micros(50), Duration::from_millis(300)),
            pause_until: Moment::ZERO,
            resets_at: resets.then(|| self.now + after + stays),
        };
        let number = self.add_speaker(Role::Visitor(visitor), true);
        self.http.speakers[number].excused = resets;
        self.call_speaker(number, self.now + after);
        number
    }

    pub(super) fn visitor_comes(&mut self, number: usize) {
        self.note("comes: visitor", number, 0);
        self.http.speakers[number].state = State::There;
        let delay = self.latency();
        self.after(delay, Happening::Knock(self.http.speakers[number].connection));
        if let Some(at) = self.visitor(number).resets_at {
            self.at(at, Happening::Speaker(number));
        }
    }

    pub(super) fn visitor_acts(&mut self, number: usize, ended: bool) {
        self.visitor_understands(number, ended);
        let now = self.now;
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
        self.visitor_asks(number);
    }

    /// Begins the next request, if it is time.
    fn visitor_asks(&mut self, number: usize) {
        let now = self.now;
        let visitor = self.visitor(number);
        let owed = visitor.begun - visitor.answers.len();
        if visitor.begun == visitor.asks.len() || owed >= visitor.window {
            return;
        }
        if visitor.pause_until > now {
            let at = visitor.pause_until;
            return self.call_speaker(number, at);
        }
        let Ask { id, is_post, length, chunked } = visitor.asks[visitor.begun];
        visitor.begun += 1;
        let pace = visitor.pace;
        let method = if is_post { "POST" } else { "GET" };
        let mut bytes = format!("{method} /r/{id} HTTP/1.1\r\nHost: a\r\n").into_bytes();
        let body = body_of(id, length);
        if is_post && chunked {
            bytes.extend(b"Transfer-Encoding: chunked\r\n\r\n");
            let size = self.chance.pick(&[1000, 17, 100_000]);
            message::write_chunked(&body, size, &mut bytes);
        } else if is_post {
            bytes.extend(format!("Content-Length: {length}\r\n\r\n").into_bytes());
            bytes.extend(body);
        } else {
            bytes.extend(b"\r\n");
        }
        self.note("asks: visitor, request", number, usize::try_from(id).unwrap_or(0));
        self.http.speakers[number].output.extend(bytes);
        let pause = self.chance.time(Duration::from_micros(1), pace);
        self.visitor(number).pause_until = now + pause;
        self.call_speaker(number, now + pause);
    }

    /// Takes the answers that are there; with `ended` also one that was cut off.
    pub(super) fn visitor_understands(&mut self, number: usize, ended: bool) {
        // An end by a reset ends no reply.
        let in_order = ended && self.http.speakers[number].end != Some(End::Reset);
        loop {
            let read = self.http.speakers[number].read;
            match message::reply(&self.http.speakers[number].input[read..], in_order) {
                Ok(None) => return,
                Ok(Some(reply)) if reply.is_whole || ended => {
                    let (is_whole, closes) = (reply.is_whole, reply.closes);
                    self.http.speakers[number].read += reply.used;
                    let visitor = self.visitor(number);
                    visitor.answers.push(reply);
                    if closes {
                        // What it did not ask yet it does not ask here.
                        let begun = visitor.begun;
                        visitor.asks.truncate(begun);
                    }
                    if visitor.answers.len() > visitor.begun {
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
