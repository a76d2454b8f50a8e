//! One client: its lines in, its replies out, in the order of its lines.
//!
//! ```text
//!   owed     [ ready ][ waiting ][ ready ][ waiting ]      replies in the order of the requests
//!   number     first    first+1    …
//!            └ written as soon as the client's output has room; one behind a waiting one is held
//! ```
//!
//! A client with `in_flight_max` requests owed is paused, not refused. One that does not take its
//! output is paused too, and cut when it takes nothing for `write_stall`.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use event::{Calls, Data, DeadlineName, StreamId};
use exchange::{Cause, Outcome, Peer, Phase, RequestId, Slice};
use wire::lines::{Lines, Piece, write_reply};

use crate::core::Core;
use crate::drain::CLOSING_LINGER;
use crate::exchanges::{Client, SessionId};
use crate::plan::ListenerPlan;

/// The deadlines of a client's stream.
pub(crate) const IDLE: DeadlineName = DeadlineName(0);
pub(crate) const READ: DeadlineName = DeadlineName(1);
pub(crate) const WRITE: DeadlineName = DeadlineName(2);

/// A reply that the client is owed.
#[derive(Debug)]
enum Owed {
    Waiting(RequestId),
    Ready(Outcome),
}

/// What is done with what the client sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Input {
    /// Lines become requests.
    Open,
    /// Lines are refused, because the daemon is about to end.
    Refusing,
    /// There will be no more.
    Ended,
    /// The session is being closed; nothing more is read or owed.
    Closing,
}

#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) listener_place: usize,
    id: SessionId,
    stream: StreamId,
    listener: Arc<ListenerPlan>,
    peer: Peer,
    lines: Lines,
    input: Input,
    owed: VecDeque<Owed>,
    /// The number of the first reply in `owed`.
    first: u64,
    /// Bytes of replies that are ready and not written.
    held: usize,
    paused: bool,
    /// A line was begun, and its deadline is armed.
    begun: bool,
    /// It is in the shard's list of sessions to flush.
    pub(crate) dirty: bool,
    stall: Stall,
}

/// Whether a client takes its output.
#[derive(Debug, Default)]
struct Stall {
    armed: bool,
    /// Bytes given to the stream in all.
    offered: u64,
    /// Those that the kernel had accepted when the deadline was armed.
    accepted: u64,
}

impl Session {
    pub(crate) fn new(
        id: SessionId,
        stream: StreamId,
        peer: Peer,
        listener: Arc<ListenerPlan>,
        listener_place: usize,
    ) -> Self {
        Self {
            lines: Lines::new(listener.line_max),
            id,
            stream,
            listener,
            listener_place,
            peer,
            input: Input::Open,
            owed: VecDeque::new(),
            first: 0,
            held: 0,
            paused: false,
            begun: false,
            dirty: false,
            stall: Stall::default(),
        }
    }

    pub(crate) fn open(&self, calls: &mut Calls<'_>) {
        calls.limits(self.stream, self.listener.limits);
        self.rest(calls);
    }

    /// Bytes of the client.
    pub(crate) fn handle_data(
        &mut self,
        calls: &mut Calls<'_>,
        data: &mut Data<'_>,
        core: &mut Core,
    ) {
        let bytes = data.bytes();
        if matches!(self.input, Input::Ended | Input::Closing) {
            // The rest of a client whose line did not end in time, or that is being closed.
            return data.consume(bytes.len());
        }
        let (mut from, mut found) = (0, false);
        while !self.is_full() {
            let Some(piece) = self.lines.next(bytes, &mut from) else { break };
            self.handle_piece(&piece, bytes, core);
            found = true;
        }
        let shown = bytes.len();
        let consumed = if self.is_full() {
            from
        } else if data.is_last() {
            self.handle_last(&bytes[from..], core);
            shown
        } else {
            self.lines.consume(shown, from)
        };
        data.consume(consumed);
        self.pause_if_full(calls);
        self.watch_begun(calls, shown - consumed, found);
        self.rest(calls);
    }

    /// The rest of the bytes of a client that sends no more.
    fn handle_last(&mut self, rest: &[u8], core: &mut Core) {
        match self.lines.finish(rest) {
            Some(Piece::Line(range)) if !self.listener.accepts_last_line => {
                let _ = range;
                let text = "the last line has no newline at its end";
                self.refuse(Outcome::ended(Cause::Incomplete, Phase::Receive, text), core);
            }
            Some(piece) => self.handle_piece(&piece, rest, core),
            None => {}
        }
    }

    fn handle_piece(&mut self, piece: &Piece, bytes: &[u8], core: &mut Core) {
        match piece {
            Piece::TooLong => {
                let text = format!("a line has at most {} bytes", self.listener.line_max);
                self.refuse(Outcome::ended(Cause::TooLong, Phase::Receive, &text), core);
            }
            Piece::Line(_) if self.input == Input::Refusing => {
                let text = "the daemon is about to end";
                self.refuse(Outcome::ended(Cause::Draining, Phase::Receive, text), core);
            }
            Piece::Line(range) => {
                let sequence = self.first + self.owed.len() as u64;
                let client = Client::Session { session: self.id, sequence };
                let body = Slice::copy_of(&bytes[range.clone()]);
                let id = core.submit(client, self.peer, body, self.listener.pool);
                self.owed.push_back(Owed::Waiting(id));
            }
        }
    }

    fn refuse(&mut self, outcome: Outcome, core: &mut Core) {
        core.refused_at_receipt(self.listener.pool, self.peer, &outcome);
        self.held += size(&outcome);
        self.owed.push_back(Owed::Ready(outcome));
    }

    fn is_full(&self) -> bool {
        self.owed.len() >= self.listener.in_flight_max
    }

    fn pause_if_full(&mut self, calls: &mut Calls<'_>) {
        let clogged = calls.queued(self.stream) > self.listener.limits.send_high;
        if !self.paused && (self.is_full() || clogged) {
            self.paused = true;
            calls.pause(self.stream);
        }
    }

    /// A line that was begun must come to its end in time.
    fn watch_begun(&mut self, calls: &mut Calls<'_>, rest: usize, found: bool) {
        let Some(read) = self.listener.read else { return };
        let begun = !self.paused && self.lines.is_begun(rest);
        if begun && (found || !self.begun) {
            calls.deadline(self.stream, READ, Some(calls.now() + read));
        } else if !begun && self.begun {
            calls.deadline(self.stream, READ, None);
        }
        self.begun = begun;
    }

    /// Something happened: the idle time begins anew.
    fn rest(&self, calls: &mut Calls<'_>) {
        if let Some(idle) = self.listener.idle {
            calls.deadline(self.stream, IDLE, Some(calls.now() + idle));
        }
    }

    /// The outcome of request `sequence`. Where it is over a limit, another one is delivered in its
    /// place, and the core is told.
    pub(crate) fn deliver(&mut self, sequence: u64, outcome: Outcome, core: &mut Core) {
        let place = usize::try_from(sequence.wrapping_sub(self.first)).unwrap_or(usize::MAX);
        let Some(owed) = self.owed.get_mut(place) else { return };
        debug_assert!(matches!(owed, Owed::Waiting(_)), "a reply is delivered once");
        let mut outcome = outcome;
        let (held_max, send_max) = (self.listener.reply_held_max, self.listener.limits.send_max);
        let over = if place > 0 && self.held + size(&outcome) > held_max {
            Some(format!("replies that wait for their turn hold at most {held_max} bytes"))
        } else if length(&outcome) > send_max {
            Some(format!("a client's output holds at most {send_max} bytes"))
        } else {
            None
        };
        if let Some(text) = over {
            outcome = Outcome::ended(Cause::Reply, Phase::Reply, &text);
            core.note_undelivered(self.listener.pool, self.peer, &outcome);
        }
        self.held += size(&outcome);
        *owed = Owed::Ready(outcome);
    }

    /// Writes what is ready, as far as the client's output has room.
    pub(crate) fn flush(&mut self, calls: &mut Calls<'_>, scratch: &mut Vec<u8>) {
        self.flush_below(calls, scratch, self.listener.limits.send_high);
        self.go_on(calls);
    }

    /// Writes all that is ready, whether there is room or not, and ends the session once it is sent.
    pub(crate) fn flush_and_finish(&mut self, calls: &mut Calls<'_>, scratch: &mut Vec<u8>) {
        self.flush_below(calls, scratch, usize::MAX);
        // One that has all its replies is only told the end; one that has not may read them.
        let told = calls.queued(self.stream) == 0;
        self.finish_within(calls, told.then_some(CLOSING_LINGER));
    }

    /// `high` itself still has room: the stream tells of output that fell again only when it was
    /// above.
    fn flush_below(&mut self, calls: &mut Calls<'_>, scratch: &mut Vec<u8>, high: usize) {
        scratch.clear();
        let queued = calls.queued(self.stream);
        while queued + scratch.len() <= high {
            let Some(Owed::Ready(_)) = self.owed.front() else { break };
            if let Some(Owed::Ready(outcome)) = self.owed.pop_front() {
                self.first += 1;
                self.held -= size(&outcome);
                write_reply(scratch, self.listener.marks, &outcome);
            }
        }
        if !scratch.is_empty() {
            calls.send_bytes(self.stream, scratch);
            self.stall.offered += scratch.len() as u64;
            self.watch_output(calls);
            self.rest(calls);
        }
    }

    /// Reads on when there is room again, and ends when all is said.
    fn go_on(&mut self, calls: &mut Calls<'_>) {
        let limits = self.listener.limits;
        let room = self.owed.len() <= self.listener.in_flight_max / 2;
        if self.paused && room && calls.queued(self.stream) <= limits.send_high {
            self.paused = false;
            calls.resume(self.stream);
        }
        if self.input == Input::Ended && self.owed.is_empty() {
            self.finish(calls);
        }
    }

    fn watch_output(&mut self, calls: &mut Calls<'_>) {
        if let (Some(stall), false) = (self.listener.write_stall, self.stall.armed) {
            self.stall.armed = true;
            self.stall.accepted = self.accepted(calls);
            calls.deadline(self.stream, WRITE, Some(calls.now() + stall));
        }
    }

    fn accepted(&self, calls: &Calls<'_>) -> u64 {
        self.stall.offered - calls.queued(self.stream) as u64
    }

    /// A deadline has passed. True when the client is to be cut for taking nothing.
    pub(crate) fn handle_deadline(
        &mut self,
        calls: &mut Calls<'_>,
        name: DeadlineName,
        core: &mut Core,
    ) -> bool {
        match name {
            IDLE if self.owed.is_empty() && calls.queued(self.stream) == 0 => self.finish(calls),
            IDLE => self.rest(calls),
            READ => self.handle_slow_line(calls, core),
            WRITE => {
                self.stall.armed = false;
                let accepted = self.accepted(calls);
                if accepted == self.stall.offered {
                    return false;
                }
                if accepted == self.stall.accepted {
                    return true;
                }
                self.watch_output(calls);
            }
            DeadlineName(_) => {}
        }
        false
    }

    /// A line that was begun did not end in time: it is refused, and the client with it, once it
    /// has what it is owed.
    fn handle_slow_line(&mut self, calls: &mut Calls<'_>, core: &mut Core) {
        let text = "a line that was begun did not end in time";
        self.refuse(Outcome::ended(Cause::Incomplete, Phase::Receive, text), core);
        self.input = Input::Ended;
        calls.deadline(self.stream, READ, None);
    }

    /// The client sends no more. True when it has left for good.
    pub(crate) fn handle_eof(&mut self) -> bool {
        if self.input != Input::Closing {
            self.input = Input::Ended;
        }
        !self.listener.keeps_half_closed
    }

    /// From now on its lines are refused.
    pub(crate) fn refuse_all(&mut self) {
        if self.input == Input::Open {
            self.input = Input::Refusing;
        }
    }

    /// Ends the session once its output is sent. What it is still owed is not waited for.
    fn finish(&mut self, calls: &mut Calls<'_>) {
        self.finish_within(calls, None);
    }

    fn finish_within(&mut self, calls: &mut Calls<'_>, linger: Option<Duration>) {
        if self.input != Input::Closing {
            self.input = Input::Closing;
            calls.finish(self.stream, linger);
        }
    }

    /// The peer is gone for both directions, though what it sent before may not be read yet. True
    /// when nothing of it is wanted any more: it would not be read, or its end is its leaving.
    pub(crate) fn handle_hangup(&self, calls: &Calls<'_>) -> bool {
        let clogged = calls.queued(self.stream) > self.listener.limits.send_high;
        !self.listener.keeps_half_closed || (self.paused && clogged)
    }

    /// Whether replies are ready or written that the client has not taken.
    pub(crate) fn is_unread(&self, calls: &Calls<'_>) -> bool {
        self.is_owed() || calls.queued(self.stream) > 0
    }

    pub(crate) fn stream(&self) -> StreamId {
        self.stream
    }

    /// The requests whose outcomes nobody will take.
    pub(crate) fn abandoned(&self) -> impl Iterator<Item = RequestId> {
        self.owed.iter().filter_map(|owed| match owed {
            Owed::Waiting(id) => Some(*id),
            Owed::Ready(_) => None,
        })
    }

    pub(crate) fn is_owed(&self) -> bool {
        !self.owed.is_empty()
    }
}

/// Bytes that an outcome puts into the client's output, a few of marks excepted.
fn length(outcome: &Outcome) -> usize {
    match outcome {
        Outcome::Reply(body) | Outcome::Ended(_, body) => body.len(),
    }
}

/// Bytes that an outcome keeps in memory.
fn size(outcome: &Outcome) -> usize {
    match outcome {
        Outcome::Reply(body) | Outcome::Ended(_, body) => body.held(),
    }
}
