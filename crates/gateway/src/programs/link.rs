//! Input and output of one program: requests out, replies in, in the same order.
//!
//! `offered` counts the bytes given to the input stream, `accepted` those that the kernel has taken:
//!
//! ```text
//!   flights   [ answered next ][ ............ ][ youngest ]
//!   bytes     start..........  start.........  start......  offered
//!                    ▲ accepted: a flight that starts before it has reached the program
//! ```

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use event::{Calls, Data, StreamId};
use exchange::plant::{Plant, active};
use exchange::{Cause, Outcome, Phase, Request, RequestId, Slice, WorkerId};
use wire::lines::{Lines, Piece};

use super::{ANSWER, Fault, Pipe, answer_by};
use crate::upward::Upward;

struct Flight {
    id: RequestId,
    body: Slice,
    /// Bytes offered before this request.
    start: u64,
    dispatched: Instant,
}

impl Flight {
    /// Bytes offered when all of this request was, its line end included.
    fn end(&self) -> u64 {
        self.start + self.body.len() as u64 + 1
    }
}

/// What a program said in one go. Each carries the number of answers that came before.
pub(super) enum Said {
    Answers(u64),
    /// A line though nothing was asked, shown for the log.
    Unasked(u64, String),
    TooLong(u64),
}

impl Said {
    pub(super) const fn answers(&self) -> u64 {
        match self {
            Self::Answers(count) | Self::Unasked(count, _) | Self::TooLong(count) => *count,
        }
    }
}

pub(super) struct Link {
    input: Option<StreamId>,
    output: Option<StreamId>,
    lines: Lines,
    flights: VecDeque<Flight>,
    offered: u64,
    /// What the kernel had accepted when the input closed.
    accepted_at_close: u64,
}

impl Link {
    pub(super) fn new(input: StreamId, output: StreamId, reply_max: usize) -> Self {
        Self {
            input: Some(input),
            output: Some(output),
            lines: Lines::new(reply_max),
            flights: VecDeque::new(),
            offered: 0,
            accepted_at_close: 0,
        }
    }

    pub(super) fn send(&mut self, calls: &mut Calls<'_>, request: Request, deadline: Duration) {
        let first = self.flights.is_empty();
        let body = request.body;
        self.flights.push_back(Flight {
            id: request.id,
            start: self.offered,
            dispatched: calls.now(),
            body,
        });
        let Some(input) = self.input else { return };
        let body = &self.flights[self.flights.len() - 1].body;
        let before = calls.queued(input);
        calls.send_bytes(input, body);
        let after = calls.send_bytes(input, b"\n");
        // Nothing, when the input has just ended and its end is not told yet.
        self.offered += after.saturating_sub(before) as u64;
        if first {
            self.arm(calls, deadline);
        }
    }

    /// Sets the deadline of the oldest request.
    pub(super) fn arm(&self, calls: &mut Calls<'_>, deadline: Duration) {
        if let Some(output) = self.output {
            let oldest = self.flights.front();
            let at = oldest.and_then(|flight| answer_by(flight.dispatched, deadline));
            calls.deadline(output, ANSWER, at);
        }
    }

    /// Takes replies for the oldest requests. A line is a reply only when all of its request has
    /// left us: a program cannot answer what it cannot have read.
    pub(super) fn handle_data(
        &mut self,
        calls: &Calls<'_>,
        worker: WorkerId,
        data: &mut Data<'_>,
        up: &mut Vec<Upward>,
    ) -> Said {
        let bytes = data.bytes();
        let accepted = self.accepted(calls);
        let (mut from, mut answers) = (0, 0);
        let said = loop {
            match self.lines.next(bytes, &mut from) {
                None => break Said::Answers(answers),
                Some(Piece::TooLong) => break Said::TooLong(answers),
                Some(Piece::Line(range)) => {
                    let Some(flight) = self.pop_asked(accepted) else {
                        break Said::Unasked(answers, shown(&bytes[range]));
                    };
                    let id = self.plant_shift(flight.id);
                    let reply = Slice::copy_of(&bytes[range]);
                    up.push(Upward::Answered { id, outcome: Outcome::Reply(reply) });
                    up.push(Upward::Released { worker });
                    answers += 1;
                }
            }
        };
        let shown = bytes.len();
        let consumed = if data.is_last() { shown } else { self.lines.consume(shown, from) };
        data.consume(consumed);
        said
    }

    /// The oldest request, if all of it has left us.
    fn pop_asked(&mut self, accepted: u64) -> Option<Flight> {
        let asked = self.flights.front().is_some_and(|flight| flight.end() <= accepted);
        if asked { self.flights.pop_front() } else { None }
    }

    /// The planted bug that gives a reply to the next request instead.
    fn plant_shift(&mut self, id: RequestId) -> RequestId {
        match self.flights.front_mut() {
            Some(next) if active(Plant::ShiftedReply) => std::mem::replace(&mut next.id, id),
            _ => id,
        }
    }

    fn accepted(&self, calls: &Calls<'_>) -> u64 {
        match self.input {
            Some(input) => self.offered - calls.queued(input) as u64,
            None => self.accepted_at_close,
        }
    }

    /// A pipe has ended. Called while the stream can still be asked what it did not send.
    pub(super) fn handle_closed(&mut self, calls: &Calls<'_>, pipe: Pipe) {
        match pipe {
            Pipe::Input => {
                self.accepted_at_close = self.accepted(calls);
                self.input = None;
            }
            Pipe::Output => self.output = None,
            Pipe::Error => {}
        }
    }

    /// Closes the input once all is sent.
    pub(super) fn finish(&self, calls: &mut Calls<'_>) {
        if let Some(input) = self.input {
            calls.finish(input, None);
        }
    }

    /// Closes both pipes at once.
    pub(super) fn close(&mut self, calls: &mut Calls<'_>) {
        self.accepted_at_close = self.accepted(calls);
        for stream in [self.input.take(), self.output.take()].into_iter().flatten() {
            calls.close(stream);
        }
    }

    /// Gives back what never left our buffer, in its order. The buffer must not be sent any more.
    pub(super) fn give_back(&mut self, calls: &Calls<'_>, up: &mut Vec<Upward>) {
        let accepted = self.accepted(calls);
        let reached = self.flights.partition_point(|flight| flight.start < accepted);
        let unsent = self.flights.drain(reached..);
        up.extend(unsent.map(|it| Upward::Returned { id: it.id, body: it.body }));
    }

    /// Ends what is in the program's hands. What never left our buffer is given back; so the input
    /// must be closed, or be closed next.
    pub(super) fn fail(
        &mut self,
        calls: &Calls<'_>,
        fault: Fault,
        name: &str,
        exit: Option<&str>,
        up: &mut Vec<Upward>,
    ) {
        self.give_back(calls, up);
        for (place, flight) in self.flights.drain(..).enumerate() {
            // Only the oldest is to blame for what was said or not said; the others go with it.
            let fault = if place == 0 { fault } else { Fault::Ended };
            up.push(Upward::Answered { id: flight.id, outcome: outcome(fault, name, exit) });
        }
    }

    pub(super) fn is_owing(&self) -> bool {
        !self.flights.is_empty()
    }

    pub(super) fn in_flight(&self) -> usize {
        self.flights.len()
    }

    /// Whether all that the program said is read.
    pub(super) const fn is_read(&self) -> bool {
        self.output.is_none()
    }
}

fn outcome(fault: Fault, name: &str, exit: Option<&str>) -> Outcome {
    match (fault, exit) {
        (Fault::Ended, Some(exit)) => {
            Outcome::ended(Cause::Died, Phase::Work, &format!("worker {name} ended ({exit})"))
        }
        (Fault::Ended, None) => {
            Outcome::ended(Cause::Died, Phase::Work, &format!("worker {name} ended"))
        }
        (Fault::TooLong, _) => Outcome::ended(
            Cause::Reply,
            Phase::Work,
            &format!("the reply of worker {name} is longer than reply_max"),
        ),
        (Fault::Late(deadline), _) => Outcome::ended(
            Cause::Deadline,
            Phase::Work,
            &format!("worker {name} did not answer within {deadline:?}"),
        ),
    }
}

/// Bytes of an unexpected line that are shown in the log.
const SHOWN_MAX: usize = 80;

fn shown(line: &[u8]) -> String {
    let part = &line[..line.len().min(SHOWN_MAX)];
    let more = if part.len() < line.len() { "…" } else { "" };
    format!("\"{}\"{more}", part.escape_ascii())
}
