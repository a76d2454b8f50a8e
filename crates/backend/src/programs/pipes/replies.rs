//! What a program says: frames of its output become replies, parts of them, or a reason not to trust it.

use std::time::Instant;

use event::{Context, Data};
use exchange::mutant::{Mutant, active};
use exchange::{Cause, Outcome, Phase, RequestId, Slice, WorkerId};
use wire::jsonrpc::Skimmed;
use wire::{Framing, Last, Piece};

use super::super::deadlines::GAP;
use super::alignment::ReservedFor;
use super::answered::answered;
use super::in_flight::Completed;
use super::tags::{self, Message, Spoken, Tags, id_is_kept};
use super::unsolicited_to::UnsolicitedTo;
use super::{OTHER, PARTIAL, ProgramOutput, ProgramPipes, UNREAD_MAX};
use flow::backend_event::BackendEvent;

impl ProgramPipes {
    /// Takes replies. A frame is a reply only when all of its request has left us: a program cannot
    /// answer what it cannot have read.
    pub(in crate::programs) fn handle_data(
        &mut self,
        io: &mut Context<'_>,
        worker: WorkerId,
        data: &mut Data<'_>,
        events: &mut Vec<BackendEvent>,
    ) -> ProgramOutput {
        let bytes = data.bytes();
        let mut from = 0;
        let mut said = ProgramOutput::Fine;
        if self.says_ready && self.decoder.framing() == Framing::Raw {
            // Without frames it is a line, which may come in several writes.
            match bytes.iter().position(|&byte| byte == b'\n') {
                Some(end) => {
                    (from, said) = (end + 1, ProgramOutput::Ready);
                    self.says_ready = false;
                }
                None if bytes.len() > READY_MAX => {
                    data.consume(bytes.len());
                    return ProgramOutput::Broken(
                        "its first line, which says that it is ready, does not end",
                    );
                }
                None => return ProgramOutput::Fine,
            }
        }
        let mut is_heard = self.tags.is_none();
        while matches!(said, ProgramOutput::Fine | ProgramOutput::Ready) {
            let now = match self.decoder.next(bytes, &mut from) {
                None => break,
                // What it is follows.
                Some(Piece::TooLong { .. }) if self.tags.is_some() => ProgramOutput::Fine,
                Some(Piece::Skimmed(skimmed)) => {
                    is_heard = true;
                    self.handle_too_long(io, worker, &skimmed, events)
                }
                Some(Piece::TooLong { .. } | Piece::Broken(wire::Fault::TooLong)) => {
                    ProgramOutput::TooLong
                }
                Some(Piece::Broken(fault)) => ProgramOutput::Broken(fault.message()),
                Some(Piece::Frame(range)) => {
                    is_heard = true;
                    self.handle_frame(io, worker, &bytes[range], events)
                }
            };
            if now != ProgramOutput::Fine {
                said = now;
            }
        }
        self.cancel_unwanted(io, worker, events);
        self.open_when_worked_off(worker, events);
        let shown = bytes.len();
        if data.is_last() && said == ProgramOutput::Fine {
            match self.decoder.finish(&bytes[from..]) {
                Some(Last::Frame(range)) => {
                    self.whole = Some(Slice::copy_of(&bytes[from..][range]));
                }
                Some(Last::TooLong) => said = ProgramOutput::TooLong,
                Some(Last::Unterminated(_) | Last::Partial) | None => {}
            }
        }
        let consumed = if data.is_last() { shown } else { self.decoder.consume(shown, from) };
        self.is_partial = consumed < shown;
        if said == ProgramOutput::Fine && self.is_partial && self.may_not_begin() {
            said = ProgramOutput::Unasked(shown_bytes(&bytes[consumed..]));
        }
        // What a program that clients share says is a message, or nothing.
        if is_heard {
            self.silence.end(io.now(), self.is_owing());
            self.waited.clear();
        }
        data.consume(consumed);
        said
    }

    fn handle_frame(
        &mut self,
        io: &mut Context<'_>,
        worker: WorkerId,
        frame: &[u8],
        events: &mut Vec<BackendEvent>,
    ) -> ProgramOutput {
        if std::mem::take(&mut self.says_ready) {
            return ProgramOutput::Ready;
        }
        if self.tags.is_some() {
            return self.handle_message(io, worker, frame, events);
        }
        if self.decoder.framing().is_json()
            && let Some(said) = self.handle_aside(io, worker, frame, events)
        {
            return said;
        }
        let accepted = self.accepted(io);
        self.pass_over(io, worker, accepted, events);
        let last = self.stream.is_none() || self.is_until(frame);
        // A reply of many frames may begin while its request is still being read.
        let asked = self
            .in_flight
            .oldest()
            .filter(|flight| flight.end <= accepted || !last && flight.start < accepted);
        let Some(flight) = asked else { return self.handle_unasked(worker, frame, events) };
        let (id, body) = (flight.id, Slice::copy_of(frame));
        if let Some(finder) = &mut self.carried
            && !finder.is_answered_by(&flight.body, frame)
        {
            return ProgramOutput::Broken(
                "its reply does not carry what `match` names of its request",
            );
        }
        if last {
            self.complete(io, worker, body, events);
        } else {
            self.is_streaming = true;
            events.push(BackendEvent::Part { id, part: body });
            self.watch_gap(io);
        }
        ProgramOutput::Fine
    }

    /// Nothing tells to which part of its input a connection's own program without frames replies: all of it goes to
    /// that connection, in its order. So parts that others follow are done, and do not wait for a silence.
    fn pass_over(
        &mut self,
        io: &Context<'_>,
        worker: WorkerId,
        accepted: u64,
        events: &mut Vec<BackendEvent>,
    ) {
        if !self.is_own_raw() || self.is_reset() {
            return;
        }
        while let Some(flight) = self.in_flight.pop_followed(accepted) {
            let outcome = Outcome::Reply(Slice::default());
            events.push(BackendEvent::Answered { id: flight.id, outcome });
            self.release(io, worker, flight.dispatched, events);
            self.answers += 1;
        }
    }

    /// A message of a program whose messages keep their ids, unless it is the reply to its oldest
    /// request. A notification does not tell whose request it is about: it may be about the one before,
    /// which was another client's, so it is discarded. What the program asks is answered by us. A
    /// connection's own says and asks all of that client.
    fn handle_aside(
        &mut self,
        io: &mut Context<'_>,
        worker: WorkerId,
        frame: &[u8],
        events: &mut Vec<BackendEvent>,
    ) -> Option<ProgramOutput> {
        if self.is_reset() {
            // Of a client that has gone, whatever it is.
            return Some(ProgramOutput::Unasked(shown_bytes(frame)));
        }
        let mut out = Vec::new();
        match tags::said_in_order(frame, &mut out) {
            Spoken::Reply(id) if self.is_own && self.stream.is_none() => {
                Some(self.handle_own_reply(io, worker, &frame[id], frame, events))
            }
            Spoken::Reply(id) if self.is_own => {
                let is_other = self.in_flight.oldest().is_some_and(|flight| {
                    let asked = flight.body.get(flight.named.clone()).unwrap_or_default();
                    id_is_kept(asked) && id_is_kept(&frame[id.clone()]) && *asked != frame[id]
                });
                is_other.then_some(OTHER)
            }
            // The end of a reply of many frames is the same for every request.
            Spoken::Reply(_) if self.is_until(frame) => None,
            // It could not read what it answers. That may have been a notification, whose client
            // waits for nothing: no request is known to be meant, and none had such an id.
            Spoken::Reply(id) if matches!(&frame[id.clone()], b"" | b"null") => {
                events.push(BackendEvent::Discarded);
                Some(ProgramOutput::Fine)
            }
            Spoken::Reply(id) => {
                let is_other = self.in_flight.oldest().is_some_and(|flight| {
                    flight.body.get(flight.named.clone()) != Some(&frame[id])
                });
                is_other.then_some(OTHER)
            }
            Spoken::Broken(why) => {
                Some(self.handle_broken_in_order(io, worker, frame, why, events))
            }
            Spoken::ProgramRequest | Spoken::Aside
                if self.unsolicited_to == UnsolicitedTo::Client =>
            {
                Some(self.handle_unasked(worker, frame, events))
            }
            Spoken::ProgramRequest => Some(self.answer(io, &out)),
            Spoken::Aside => {
                events.push(BackendEvent::Discarded);
                Some(ProgramOutput::Fine)
            }
        }
    }

    /// Writes the answer to something that the program asks. One that asks again and again and reads none of the
    /// answers is not trusted. Requests that wait for it say nothing of that: it may be busy.
    pub(super) fn answer(&mut self, io: &mut Context<'_>, answer: &[u8]) -> ProgramOutput {
        if self.own_answers.unread(self.accepted(io)) > UNREAD_MAX {
            return ProgramOutput::Broken("it asks and does not read the answers");
        }
        match self.write(io, answer) {
            Ok(place) => {
                // Nothing was offered to an input that has ended.
                self.own_answers.add(place.start..place.end.min(self.offered));
                ProgramOutput::Fine
            }
            Err(unframable) => ProgramOutput::Broken(unframable.message()),
        }
    }

    /// Whether this frame ends each reply of many frames.
    fn is_until(&self, frame: &[u8]) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.until.as_deref() == Some(frame))
    }

    /// A reply of a connection's own program, whose messages keep the client's ids: it may answer
    /// them in any order.
    fn handle_own_reply(
        &mut self,
        io: &mut Context<'_>,
        worker: WorkerId,
        named: &[u8],
        frame: &[u8],
        events: &mut Vec<BackendEvent>,
    ) -> ProgramOutput {
        let accepted = self.accepted(io);
        let of = self.in_flight.named(named).map(|flight| (flight.id, flight.dispatched));
        let of = of.filter(|(id, _)| self.in_flight.complete(*id, accepted, io.now()).is_some());
        let Some((id, dispatched)) = of else {
            return self.handle_unasked(worker, frame, events);
        };
        if self.times.first_byte.is_some() {
            self.completed = Some(io.now());
        }
        events.push(BackendEvent::Answered { id, outcome: Outcome::Reply(Slice::copy_of(frame)) });
        self.release(io, worker, dispatched, events);
        self.answers += 1;
        ProgramOutput::Fine
    }

    /// It has answered a request, and its slot is free, unless that has reset it.
    fn release(
        &mut self,
        io: &Context<'_>,
        worker: WorkerId,
        dispatched: Instant,
        events: &mut Vec<BackendEvent>,
    ) {
        let (now, reset) = (io.now(), self.reset.as_mut());
        let took = now.saturating_duration_since(dispatched);
        if !reset.is_some_and(|reset| reset.handle_reply(now, took)) {
            events.push(BackendEvent::Released { worker });
        }
    }

    /// Nothing was asked of it. Only the client whose own it is wants to hear that.
    pub(super) fn handle_unasked(
        &mut self,
        worker: WorkerId,
        frame: &[u8],
        events: &mut Vec<BackendEvent>,
    ) -> ProgramOutput {
        match self.unsolicited_to {
            UnsolicitedTo::Client => {}
            UnsolicitedTo::Nobody => return ProgramOutput::Unasked(shown_bytes(frame)),
            UnsolicitedTo::Gone => {
                events.push(BackendEvent::Discarded);
                return ProgramOutput::Fine;
            }
        }
        if let Some(reset) = &mut self.reset {
            reset.handle_unasked();
        }
        events.push(BackendEvent::Unsolicited { worker, frame: Slice::copy_of(frame) });
        ProgramOutput::Fine
    }

    /// Whether somebody hears what it says unasked: the client whose own it is, while that is there.
    pub(in crate::programs) const fn set_heard(&mut self, heard: bool) {
        self.unsolicited_to =
            if heard && self.is_own { UnsolicitedTo::Client } else { UnsolicitedTo::Nobody };
    }

    /// Whether it is one connection's own, and has answered that.
    pub(in crate::programs) const fn has_answered_its_own(&self) -> bool {
        self.is_own && self.answers > 0
    }

    /// That client asks nothing more; `replaced`: it is to serve no other.
    pub(in crate::programs) const fn leave(&mut self, replaced: bool) {
        self.unsolicited_to = if replaced { UnsolicitedTo::Gone } else { UnsolicitedTo::Nobody };
    }

    /// One message of a program whose messages have tags.
    fn handle_message(
        &mut self,
        io: &mut Context<'_>,
        worker: WorkerId,
        frame: &[u8],
        events: &mut Vec<BackendEvent>,
    ) -> ProgramOutput {
        let accepted = self.accepted(io);
        let Some(tags) = &mut self.tags else { return ProgramOutput::Fine };
        let mut out = std::mem::take(&mut self.scratch);
        out.clear();
        let message = tags.incoming(frame, &mut out);
        let said = match message {
            Message::Reply(id) => {
                self.unreadable.handle_reply();
                match self.in_flight.complete(id, accepted, io.now()) {
                    Some(Completed::Cancelled) => events.push(BackendEvent::Discarded),
                    Some(Completed::Wanted) => {
                        let outcome = Outcome::Reply(Slice::from(&out[..]));
                        events.push(BackendEvent::Answered { id, outcome });
                        events.push(BackendEvent::Released { worker });
                        self.answers += 1;
                    }
                    None => return ProgramOutput::Unasked(shown_bytes(frame)),
                }
                ProgramOutput::Fine
            }
            Message::About(id) => {
                events.push(BackendEvent::Part { id, part: Slice::from(&out[..]) });
                ProgramOutput::Fine
            }
            Message::All => {
                events.push(BackendEvent::Announced { frame: Slice::from(&out[..]) });
                ProgramOutput::Fine
            }
            Message::Nobody => {
                events.push(BackendEvent::Discarded);
                ProgramOutput::Fine
            }
            Message::ProgramRequest => self.answer(io, &out),
            Message::Greeted => match self.write(io, &out) {
                Ok(_) => ProgramOutput::Ready,
                Err(unframable) => ProgramOutput::Broken(unframable.message()),
            },
            Message::Unasked => ProgramOutput::Unasked(shown_bytes(frame)),
            // Until it has answered our greeting, nobody waits for it.
            Message::Broken(text) if self.tags.as_ref().is_some_and(Tags::is_greeting) => {
                ProgramOutput::Broken(text)
            }
            Message::Broken(text) => {
                self.handle_broken(worker, frame, (accepted, io.now()), text, events)
            }
        };
        self.scratch = out;
        said
    }

    /// A message that is none, for this reason. The request that it names ends by it, and no other.
    fn handle_broken(
        &mut self,
        worker: WorkerId,
        frame: &[u8],
        read: (u64, Instant),
        why: &'static str,
        events: &mut Vec<BackendEvent>,
    ) -> ProgramOutput {
        let Some(tags) = &mut self.tags else { return ProgramOutput::Broken(why) };
        match tags.broken(frame, why) {
            Message::Reply(id) => {
                self.unreadable.handle_reply_to_one(why);
                let text = format!("its reply is not valid: {why}");
                let outcome = Outcome::ended(Cause::Garbled, Phase::Work, &text);
                self.end_by(worker, id, read, outcome, events)
                    .unwrap_or_else(|| ProgramOutput::Unasked(shown_bytes(frame)))
            }
            Message::Nobody => {
                events.push(BackendEvent::Discarded);
                self.unreadable.handle_reply_to_one(why);
                ProgramOutput::Fine
            }
            _ => {
                events.push(BackendEvent::Discarded);
                match self.unreadable.handle_frame(why) {
                    true => ProgramOutput::Broken(why),
                    false => ProgramOutput::Fine,
                }
            }
        }
    }

    /// What the program replied to this request is not passed on. None where it cannot have read the request.
    fn end_by(
        &mut self,
        worker: WorkerId,
        id: RequestId,
        (accepted, now): (u64, Instant),
        outcome: Outcome,
        events: &mut Vec<BackendEvent>,
    ) -> Option<ProgramOutput> {
        match self.in_flight.complete(id, accepted, now)? {
            Completed::Wanted => {
                events.push(BackendEvent::Answered { id, outcome });
                events.push(BackendEvent::Released { worker });
            }
            Completed::Cancelled => events.push(BackendEvent::Discarded),
        }
        Some(ProgramOutput::Fine)
    }

    /// Whether even a part of a frame is more than it was asked: nothing is in flight, and it would
    /// become the beginning of the next client's reply. A message in JSON may be no reply; a program
    /// for one request has nobody else's.
    fn may_not_begin(&self) -> bool {
        let is_in_order = !self.is_own && self.tags.is_none() && !self.is_oneshot();
        self.is_reset()
            || is_in_order
                && !self.is_owing()
                && !self.says_ready
                && !self.decoder.framing().is_json()
    }

    /// A message over `reply_max` is this. The request that it answers ends by it, and no other.
    fn handle_too_long(
        &mut self,
        io: &mut Context<'_>,
        worker: WorkerId,
        skimmed: &Skimmed,
        events: &mut Vec<BackendEvent>,
    ) -> ProgramOutput {
        let accepted = self.accepted(io);
        let Some(tags) = &mut self.tags else { return ProgramOutput::TooLong };
        let (is_greeting, mut out) = (tags.is_greeting(), Vec::new());
        match tags.too_long(skimmed, &mut out) {
            Message::Reply(id) => {
                let text = "its reply is longer than reply_max";
                let outcome = Outcome::ended(Cause::Reply, Phase::Work, text);
                self.end_by(worker, id, (accepted, io.now()), outcome, events)
                    .unwrap_or_else(|| ProgramOutput::Unasked(UNASKED_TOO_LONG.to_owned()))
            }
            Message::Nobody => {
                events.push(BackendEvent::Discarded);
                ProgramOutput::Fine
            }
            Message::ProgramRequest => self.answer(io, &out),
            Message::Unasked => ProgramOutput::Unasked(UNASKED_TOO_LONG.to_owned()),
            // As a whole frame that is no message: one client could otherwise end the requests of all.
            Message::Broken(why) if !is_greeting => {
                events.push(BackendEvent::Discarded);
                match self.unreadable.handle_frame(why) {
                    true => ProgramOutput::TooLongForSomebody,
                    false => ProgramOutput::Fine,
                }
            }
            Message::About(_) | Message::All | Message::Greeted | Message::Broken(_) => {
                ProgramOutput::TooLongForSomebody
            }
        }
    }

    /// The oldest reply is complete; `rest` is its last frame, or nothing more.
    fn complete(
        &mut self,
        io: &mut Context<'_>,
        worker: WorkerId,
        rest: Slice,
        events: &mut Vec<BackendEvent>,
    ) {
        self.end_oldest(io, worker, Ok(rest), events);
    }

    /// The oldest request has its reply, or an outcome instead. Its slot is free.
    pub(super) fn end_oldest(
        &mut self,
        io: &mut Context<'_>,
        worker: WorkerId,
        end: Result<Slice, Outcome>,
        events: &mut Vec<BackendEvent>,
    ) {
        self.is_streaming = false;
        if self.times.first_byte.is_some() {
            self.completed = Some(io.now());
        }
        if let (Some(output), true) = (self.output, self.has_gap()) {
            io.deadline(output, GAP, None);
        }
        let Some(flight) = self.in_flight.pop() else { return };
        let id = self.plant_shift(flight.id);
        match end {
            Ok(rest) => answered(id, flight.meta, rest, events),
            Err(outcome) => events.push(BackendEvent::Answered { id, outcome }),
        }
        if let Some(alignment) = &mut self.alignment {
            let (now, in_flight) = (io.now(), &self.in_flight);
            let others = (in_flight.len() > 0).then_some(|client| match in_flight.are_of(client) {
                true => ReservedFor::Client(client),
                false => ReservedFor::Nobody,
            });
            let took = now.saturating_duration_since(flight.dispatched);
            let keep = alignment.handle_reply(now, flight.meta.asker, took, others);
            if let Some(keep) = keep {
                events.push(BackendEvent::Kept { worker, client: keep.client() });
            }
        }
        self.release(io, worker, flight.dispatched, events);
        self.answers += 1;
    }

    pub(super) fn has_gap(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.gap.is_some())
    }

    pub(super) fn watch_gap(&self, io: &mut Context<'_>) {
        let gap = self.stream.as_ref().and_then(|stream| stream.gap);
        if let (Some(output), Some(gap)) = (self.output, gap) {
            io.deadline_in(output, GAP, gap);
        }
    }

    /// Nothing came for so long that the reply has ended. A frame that has begun is not part of it,
    /// and would become the beginning of another client's.
    pub(in crate::programs) fn handle_gap(
        &mut self,
        io: &mut Context<'_>,
        worker: WorkerId,
        events: &mut Vec<BackendEvent>,
    ) -> ProgramOutput {
        let accepted = self.accepted(io);
        let unread = self.in_flight.oldest().is_some_and(|flight| flight.end > accepted);
        if self.is_streaming && self.held.is_none() {
            if unread {
                // It is still being asked.
                self.watch_gap(io);
                return ProgramOutput::Fine;
            }
            self.pass_over(io, worker, accepted, events);
            self.complete(io, worker, Slice::default(), events);
            if self.is_partial && self.may_not_begin() {
                return ProgramOutput::Unasked(PARTIAL.to_owned());
            }
        }
        ProgramOutput::Fine
    }

    /// The program has exited well: its whole output is the reply, where that is how it replies.
    pub(in crate::programs) fn conclude(&mut self, events: &mut Vec<BackendEvent>) {
        let Some(whole) = self.whole.take() else { return };
        if let Some(flight) = self.in_flight.pop() {
            answered(flight.id, flight.meta, whole, events);
            self.answers += 1;
        }
    }

    /// The planted bug that gives a reply to the next request instead.
    fn plant_shift(&mut self, id: RequestId) -> RequestId {
        match self.in_flight.oldest_mut() {
            Some(next) if active(Mutant::ShiftedReply) => std::mem::replace(&mut next.id, id),
            _ => id,
        }
    }
}

/// Bytes of the line by which a program without frames says that it is ready.
const READY_MAX: usize = 4096;

/// What the log says of a reply that is too long to be shown.
const UNASKED_TOO_LONG: &str = "a reply longer than reply_max";

/// Bytes of an unexpected frame that are shown in the log.
const SHOWN_MAX: usize = 80;

fn shown_bytes(frame: &[u8]) -> String {
    let part = &frame[..frame.len().min(SHOWN_MAX)];
    let more = if part.len() < frame.len() { "…" } else { "" };
    format!("\"{}\"{more}", part.escape_ascii())
}
