//! What a program says: frames of its output become replies, parts of them, or a reason not to trust it.

use std::time::Instant;

use event::{Calls, Data};
use exchange::plant::{Plant, active};
use exchange::{Cause, Outcome, Phase, RequestId, Slice, WorkerId};
use wire::jsonrpc::Skimmed;
use wire::{Framing, Last, Piece};

use super::super::deadlines::GAP;
use super::alignment::Keep;
use super::answered::answered;
use super::ears::Ears;
use super::in_flight::Landed;
use super::tags::{self, Message, Spoken, Tags, id_is_kept};
use super::{Link, OTHER, PARTIAL, Said, UNREAD_MAX};
use flow::backend_event::BackendEvent;

impl Link {
    /// Takes replies. A frame is a reply only when all of its request has left us: a program cannot
    /// answer what it cannot have read.
    pub(in crate::programs) fn handle_data(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        data: &mut Data<'_>,
        up: &mut Vec<BackendEvent>,
    ) -> Said {
        let bytes = data.bytes();
        let mut from = 0;
        let mut said = Said::Fine;
        if self.says_ready && self.decoder.framing() == Framing::Raw {
            // Without frames it is a line, which may come in several writes.
            match bytes.iter().position(|&byte| byte == b'\n') {
                Some(end) => {
                    (from, said) = (end + 1, Said::Ready);
                    self.says_ready = false;
                }
                None if bytes.len() > READY_MAX => {
                    data.consume(bytes.len());
                    return Said::Broken(
                        "its first line, which says that it is ready, does not end",
                    );
                }
                None => return Said::Fine,
            }
        }
        let mut is_heard = self.tags.is_none();
        while matches!(said, Said::Fine | Said::Ready) {
            let now = match self.decoder.next(bytes, &mut from) {
                None => break,
                // What it is follows.
                Some(Piece::TooLong { .. }) if self.tags.is_some() => Said::Fine,
                Some(Piece::Skimmed(skimmed)) => {
                    is_heard = true;
                    self.handle_too_long(calls, worker, &skimmed, up)
                }
                Some(Piece::TooLong { .. } | Piece::Broken(wire::Fault::TooLong)) => Said::TooLong,
                Some(Piece::Broken(fault)) => Said::Broken(fault.text()),
                Some(Piece::Frame(range)) => {
                    is_heard = true;
                    self.handle_frame(calls, worker, &bytes[range], up)
                }
            };
            if now != Said::Fine {
                said = now;
            }
        }
        self.cancel_unwanted(calls, worker, up);
        self.open_when_worked_off(worker, up);
        let shown = bytes.len();
        if data.is_last() && said == Said::Fine {
            match self.decoder.finish(&bytes[from..]) {
                Some(Last::Frame(range)) => {
                    self.whole = Some(Slice::copy_of(&bytes[from..][range]));
                }
                Some(Last::TooLong) => said = Said::TooLong,
                Some(Last::Unterminated(_) | Last::Partial) | None => {}
            }
        }
        let consumed = if data.is_last() { shown } else { self.decoder.consume(shown, from) };
        self.is_partial = consumed < shown;
        if said == Said::Fine && self.is_partial && self.may_not_begin() {
            said = Said::Unasked(shown_bytes(&bytes[consumed..]));
        }
        // What a program that clients share says is a message, or nothing.
        if is_heard {
            self.silence.end(calls.now(), self.is_owing());
            self.waited.clear();
        }
        data.consume(consumed);
        said
    }

    fn handle_frame(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        frame: &[u8],
        up: &mut Vec<BackendEvent>,
    ) -> Said {
        if std::mem::take(&mut self.says_ready) {
            return Said::Ready;
        }
        if self.tags.is_some() {
            return self.handle_message(calls, worker, frame, up);
        }
        if self.decoder.framing().is_json()
            && let Some(said) = self.handle_aside(calls, worker, frame, up)
        {
            return said;
        }
        let accepted = self.accepted(calls);
        self.pass_over(calls, worker, accepted, up);
        let last = self.stream.is_none() || self.is_until(frame);
        // A reply of many frames may begin while its request is still being read.
        let asked = self
            .in_flight
            .oldest()
            .filter(|flight| flight.end <= accepted || !last && flight.start < accepted);
        let Some(flight) = asked else { return self.handle_unasked(worker, frame, up) };
        let (id, body) = (flight.id, Slice::copy_of(frame));
        if let Some(finder) = &mut self.carried
            && !finder.is_answered_by(&flight.body, frame)
        {
            return Said::Broken("its reply does not carry what `match` names of its request");
        }
        if last {
            self.complete(calls, worker, body, up);
        } else {
            self.is_streaming = true;
            up.push(BackendEvent::Part { id, part: body });
            self.watch_gap(calls);
        }
        Said::Fine
    }

    /// Nothing tells to which part of its input a connection's own program without frames replies: all of it goes to
    /// that connection, in its order. So parts that others follow are done, and do not wait for a silence.
    fn pass_over(
        &mut self,
        calls: &Calls<'_>,
        worker: WorkerId,
        accepted: u64,
        up: &mut Vec<BackendEvent>,
    ) {
        if !self.is_own_raw() || self.is_reset() {
            return;
        }
        while let Some(flight) = self.in_flight.pop_followed(accepted) {
            let outcome = Outcome::Reply(Slice::default());
            up.push(BackendEvent::Answered { id: flight.id, outcome });
            self.release(calls, worker, flight.dispatched, up);
            self.answers += 1;
        }
    }

    /// A message of a program whose messages keep their ids, unless it is the reply to its oldest
    /// request. A notification does not tell whose request it is about: it may be about the one before,
    /// which was another client's, so it is discarded. What the program asks is answered by us. A
    /// connection's own says and asks all of that client.
    fn handle_aside(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        frame: &[u8],
        up: &mut Vec<BackendEvent>,
    ) -> Option<Said> {
        if self.is_reset() {
            // Of a client that has gone, whatever it is.
            return Some(Said::Unasked(shown_bytes(frame)));
        }
        let mut out = Vec::new();
        match tags::said_in_order(frame, &mut out) {
            Spoken::Reply(id) if self.is_own && self.stream.is_none() => {
                Some(self.handle_own_reply(calls, worker, &frame[id], frame, up))
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
                up.push(BackendEvent::Discarded);
                Some(Said::Fine)
            }
            Spoken::Reply(id) => {
                let is_other = self.in_flight.oldest().is_some_and(|flight| {
                    flight.body.get(flight.named.clone()) != Some(&frame[id])
                });
                is_other.then_some(OTHER)
            }
            Spoken::Broken(why) => Some(self.handle_broken_in_order(calls, worker, frame, why, up)),
            Spoken::Asked | Spoken::Aside if self.ears == Ears::Client => {
                Some(self.handle_unasked(worker, frame, up))
            }
            Spoken::Asked => Some(self.answer(calls, &out)),
            Spoken::Aside => {
                up.push(BackendEvent::Discarded);
                Some(Said::Fine)
            }
        }
    }

    /// Writes the answer to something that the program asks. One that asks again and again and reads none of the
    /// answers is not trusted. Requests that wait for it say nothing of that: it may be busy.
    pub(super) fn answer(&mut self, calls: &mut Calls<'_>, answer: &[u8]) -> Said {
        if self.own_answers.unread(self.accepted(calls)) > UNREAD_MAX {
            return Said::Broken("it asks and does not read the answers");
        }
        match self.write(calls, answer) {
            Ok(place) => {
                // Nothing was offered to an input that has ended.
                self.own_answers.add(place.start..place.end.min(self.offered));
                Said::Fine
            }
            Err(unframable) => Said::Broken(unframable.text()),
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
        calls: &mut Calls<'_>,
        worker: WorkerId,
        named: &[u8],
        frame: &[u8],
        up: &mut Vec<BackendEvent>,
    ) -> Said {
        let accepted = self.accepted(calls);
        let of = self.in_flight.named(named).map(|flight| (flight.id, flight.dispatched));
        let of = of.filter(|(id, _)| self.in_flight.land(*id, accepted, calls.now()).is_some());
        let Some((id, dispatched)) = of else {
            return self.handle_unasked(worker, frame, up);
        };
        if self.times.first_byte.is_some() {
            self.completed = Some(calls.now());
        }
        up.push(BackendEvent::Answered { id, outcome: Outcome::Reply(Slice::copy_of(frame)) });
        self.release(calls, worker, dispatched, up);
        self.answers += 1;
        Said::Fine
    }

    /// It has answered a request, and its slot is free, unless that has reset it.
    fn release(
        &mut self,
        calls: &Calls<'_>,
        worker: WorkerId,
        dispatched: Instant,
        up: &mut Vec<BackendEvent>,
    ) {
        let (now, reset) = (calls.now(), self.reset.as_mut());
        let took = now.saturating_duration_since(dispatched);
        if !reset.is_some_and(|reset| reset.handle_reply(now, took)) {
            up.push(BackendEvent::Released { worker });
        }
    }

    /// Nothing was asked of it. Only the client whose own it is wants to hear that.
    pub(super) fn handle_unasked(
        &mut self,
        worker: WorkerId,
        frame: &[u8],
        up: &mut Vec<BackendEvent>,
    ) -> Said {
        match self.ears {
            Ears::Client => {}
            Ears::Nobody => return Said::Unasked(shown_bytes(frame)),
            Ears::Gone => {
                up.push(BackendEvent::Discarded);
                return Said::Fine;
            }
        }
        if let Some(reset) = &mut self.reset {
            reset.handle_unasked();
        }
        up.push(BackendEvent::Unsolicited { worker, frame: Slice::copy_of(frame) });
        Said::Fine
    }

    /// Whether somebody hears what it says unasked: the client whose own it is, while that is there.
    pub(in crate::programs) const fn set_heard(&mut self, heard: bool) {
        self.ears = if heard && self.is_own { Ears::Client } else { Ears::Nobody };
    }

    /// Whether it is one connection's own, and has answered that.
    pub(in crate::programs) const fn has_answered_its_own(&self) -> bool {
        self.is_own && self.answers > 0
    }

    /// That client asks nothing more; `replaced`: it is to serve no other.
    pub(in crate::programs) const fn leave(&mut self, replaced: bool) {
        self.ears = if replaced { Ears::Gone } else { Ears::Nobody };
    }

    /// One message of a program whose messages have tags.
    fn handle_message(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        frame: &[u8],
        up: &mut Vec<BackendEvent>,
    ) -> Said {
        let accepted = self.accepted(calls);
        let Some(tags) = &mut self.tags else { return Said::Fine };
        let mut out = std::mem::take(&mut self.scratch);
        out.clear();
        let message = tags.incoming(frame, &mut out);
        let said = match message {
            Message::Reply(id) => {
                self.unreadable.handle_reply();
                match self.in_flight.land(id, accepted, calls.now()) {
                    Some(Landed::Cancelled) => up.push(BackendEvent::Discarded),
                    Some(Landed::Wanted) => {
                        let outcome = Outcome::Reply(Slice::from(&out[..]));
                        up.push(BackendEvent::Answered { id, outcome });
                        up.push(BackendEvent::Released { worker });
                        self.answers += 1;
                    }
                    None => return Said::Unasked(shown_bytes(frame)),
                }
                Said::Fine
            }
            Message::About(id) => {
                up.push(BackendEvent::Part { id, part: Slice::from(&out[..]) });
                Said::Fine
            }
            Message::All => {
                up.push(BackendEvent::Announced { frame: Slice::from(&out[..]) });
                Said::Fine
            }
            Message::Nobody => {
                up.push(BackendEvent::Discarded);
                Said::Fine
            }
            Message::Asked => self.answer(calls, &out),
            Message::Greeted => match self.write(calls, &out) {
                Ok(_) => Said::Ready,
                Err(unframable) => Said::Broken(unframable.text()),
            },
            Message::Unasked => Said::Unasked(shown_bytes(frame)),
            // Until it has answered our greeting, nobody waits for it.
            Message::Broken(text) if self.tags.as_ref().is_some_and(Tags::is_greeting) => {
                Said::Broken(text)
            }
            Message::Broken(text) => {
                self.handle_broken(worker, frame, (accepted, calls.now()), text, up)
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
        up: &mut Vec<BackendEvent>,
    ) -> Said {
        let Some(tags) = &mut self.tags else { return Said::Broken(why) };
        match tags.broken(frame, why) {
            Message::Reply(id) => {
                self.unreadable.handle_reply_to_one(why);
                let text = format!("its reply is not valid: {why}");
                let outcome = Outcome::ended(Cause::Garbled, Phase::Work, &text);
                self.end_by(worker, id, read, outcome, up)
                    .unwrap_or_else(|| Said::Unasked(shown_bytes(frame)))
            }
            Message::Nobody => {
                up.push(BackendEvent::Discarded);
                self.unreadable.handle_reply_to_one(why);
                Said::Fine
            }
            _ => {
                up.push(BackendEvent::Discarded);
                match self.unreadable.handle_frame(why) {
                    true => Said::Broken(why),
                    false => Said::Fine,
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
        up: &mut Vec<BackendEvent>,
    ) -> Option<Said> {
        match self.in_flight.land(id, accepted, now)? {
            Landed::Wanted => {
                up.push(BackendEvent::Answered { id, outcome });
                up.push(BackendEvent::Released { worker });
            }
            Landed::Cancelled => up.push(BackendEvent::Discarded),
        }
        Some(Said::Fine)
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
        calls: &mut Calls<'_>,
        worker: WorkerId,
        skimmed: &Skimmed,
        up: &mut Vec<BackendEvent>,
    ) -> Said {
        let accepted = self.accepted(calls);
        let Some(tags) = &mut self.tags else { return Said::TooLong };
        let mut out = Vec::new();
        match tags.too_long(skimmed, &mut out) {
            Message::Reply(id) => {
                let text = "its reply is longer than reply_max";
                let outcome = Outcome::ended(Cause::Reply, Phase::Work, text);
                self.end_by(worker, id, (accepted, calls.now()), outcome, up)
                    .unwrap_or_else(|| Said::Unasked(UNASKED_TOO_LONG.to_owned()))
            }
            Message::Nobody => {
                up.push(BackendEvent::Discarded);
                Said::Fine
            }
            Message::Asked => self.answer(calls, &out),
            Message::Unasked => Said::Unasked(UNASKED_TOO_LONG.to_owned()),
            Message::About(_) | Message::All | Message::Greeted | Message::Broken(_) => {
                Said::TooLongForSomebody
            }
        }
    }

    /// The oldest reply is complete; `rest` is its last frame, or nothing more.
    fn complete(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        rest: Slice,
        up: &mut Vec<BackendEvent>,
    ) {
        self.end_oldest(calls, worker, Ok(rest), up);
    }

    /// The oldest request has its reply, or an outcome instead. Its slot is free.
    pub(super) fn end_oldest(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        end: Result<Slice, Outcome>,
        up: &mut Vec<BackendEvent>,
    ) {
        self.is_streaming = false;
        if self.times.first_byte.is_some() {
            self.completed = Some(calls.now());
        }
        if let (Some(output), true) = (self.output, self.has_gap()) {
            calls.deadline(output, GAP, None);
        }
        let Some(flight) = self.in_flight.pop() else { return };
        let id = self.plant_shift(flight.id);
        match end {
            Ok(rest) => answered(id, flight.meta, rest, up),
            Err(outcome) => up.push(BackendEvent::Answered { id, outcome }),
        }
        if let Some(alignment) = &mut self.alignment {
            let (now, in_flight) = (calls.now(), &self.in_flight);
            let others = (in_flight.len() > 0).then_some(|client| match in_flight.are_of(client) {
                true => Keep::Client(client),
                false => Keep::Nobody,
            });
            let took = now.saturating_duration_since(flight.dispatched);
            let keep = alignment.handle_reply(now, flight.meta.asker, took, others);
            if let Some(keep) = keep {
                up.push(BackendEvent::Kept { worker, client: keep.client() });
            }
        }
        self.release(calls, worker, flight.dispatched, up);
        self.answers += 1;
    }

    pub(super) fn has_gap(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.gap.is_some())
    }

    pub(super) fn watch_gap(&self, calls: &mut Calls<'_>) {
        let gap = self.stream.as_ref().and_then(|stream| stream.gap);
        if let (Some(output), Some(gap)) = (self.output, gap) {
            calls.deadline_in(output, GAP, gap);
        }
    }

    /// Nothing came for so long that the reply has ended. A frame that has begun is not part of it,
    /// and would become the beginning of another client's.
    pub(in crate::programs) fn handle_gap(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        up: &mut Vec<BackendEvent>,
    ) -> Said {
        let accepted = self.accepted(calls);
        let unread = self.in_flight.oldest().is_some_and(|flight| flight.end > accepted);
        if self.is_streaming && self.held.is_none() {
            if unread {
                // It is still being asked.
                self.watch_gap(calls);
                return Said::Fine;
            }
            self.pass_over(calls, worker, accepted, up);
            self.complete(calls, worker, Slice::default(), up);
            if self.is_partial && self.may_not_begin() {
                return Said::Unasked(PARTIAL.to_owned());
            }
        }
        Said::Fine
    }

    /// The program has exited well: its whole output is the reply, where that is how it replies.
    pub(in crate::programs) fn conclude(&mut self, up: &mut Vec<BackendEvent>) {
        let Some(whole) = self.whole.take() else { return };
        if let Some(flight) = self.in_flight.pop() {
            answered(flight.id, flight.meta, whole, up);
            self.answers += 1;
        }
    }

    /// The planted bug that gives a reply to the next request instead.
    fn plant_shift(&mut self, id: RequestId) -> RequestId {
        match self.in_flight.oldest_mut() {
            Some(next) if active(Plant::ShiftedReply) => std::mem::replace(&mut next.id, id),
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
