//! Output of a program: frames become replies or parts of replies, or a reason to kill the program.

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
use super::tags::{self, Message, OrderedMessage, Tags, id_is_kept};
use super::unsolicited_to::UnsolicitedTo;
use super::{OTHER, PARTIAL, ProgramOutput, ProgramPipes, UNREAD_MAX};
use crate::backend::BackendContext;
use flow::backend_event::BackendEvent;

impl ProgramPipes {
    /// Reads replies. A frame is a reply only if its request was sent completely: a program cannot answer a request
    /// that it cannot have read.
    pub(in crate::programs) fn handle_data(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
        data: &mut Data<'_>,
    ) -> ProgramOutput {
        let bytes = data.bytes();
        let mut from = 0;
        let mut said = ProgramOutput::Fine;
        if self.says_ready && self.decoder.framing() == Framing::Raw {
            // Without framing the ready message is a line, which may arrive in several writes.
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
                // The next piece says what kind of message it is.
                Some(Piece::TooLong { .. }) if self.tags.is_some() => ProgramOutput::Fine,
                Some(Piece::Skimmed(skimmed)) => {
                    is_heard = true;
                    self.handle_too_long(cx, worker, &skimmed)
                }
                Some(Piece::TooLong { .. } | Piece::Broken(wire::Fault::TooLong)) => {
                    ProgramOutput::TooLong
                }
                Some(Piece::Broken(fault)) => ProgramOutput::Broken(fault.message()),
                Some(Piece::Frame(range)) => {
                    is_heard = true;
                    self.handle_frame(cx, worker, &bytes[range])
                }
            };
            if now != ProgramOutput::Fine {
                said = now;
            }
        }
        self.cancel_unwanted(cx, worker);
        self.open_when_worked_off(worker, cx.events);
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
            said = ProgramOutput::Unsolicited(shown_bytes(&bytes[consumed..]));
        }
        // A program that clients share is considered active only when a complete message arrives.
        if is_heard {
            self.silence.end(cx.io.now(), self.owes_reply());
            self.waiting_clients.clear();
        }
        data.consume(consumed);
        said
    }

    fn handle_frame(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
        frame: &[u8],
    ) -> ProgramOutput {
        if std::mem::take(&mut self.says_ready) {
            return ProgramOutput::Ready;
        }
        if self.tags.is_some() {
            return self.handle_message(cx, worker, frame);
        }
        if self.decoder.framing().is_json()
            && let Some(said) = self.handle_non_reply(cx, worker, frame)
        {
            return said;
        }
        let accepted = self.accepted(cx.io);
        self.complete_followed(cx, worker, accepted);
        let last = self.stream.is_none() || self.is_end_frame(frame);
        // A reply of several frames may begin while its request is still being read.
        let asked = self
            .in_flight
            .oldest()
            .filter(|flight| flight.end <= accepted || !last && flight.start < accepted);
        let Some(flight) = asked else { return self.handle_unsolicited(worker, frame, cx.events) };
        let (id, body) = (flight.id, Slice::copy_of(frame));
        if let Some(finder) = &mut self.match_finder
            && !finder.is_answered_by(&flight.body, frame)
        {
            return ProgramOutput::Broken(
                "its reply does not carry what `match` names of its request",
            );
        }
        if last {
            self.complete(cx, worker, body);
        } else {
            self.is_streaming = true;
            cx.events.push(BackendEvent::Part { id, part: body });
            self.watch_gap(cx.io);
        }
        ProgramOutput::Fine
    }

    /// Completes requests of a session program without framing whose successors were sent. Its output does not show
    /// which part of its input it answers; all output goes to the connection, in order. So earlier parts of the input
    /// are complete without waiting for a silence.
    fn complete_followed(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
        accepted: u64,
    ) {
        if !self.is_own_raw() || self.is_reset() {
            return;
        }
        while let Some(flight) = self.in_flight.pop_followed(accepted) {
            let outcome = Outcome::Reply(Slice::default());
            cx.events.push(BackendEvent::Answered { id: flight.id, outcome });
            self.release(cx, worker, flight.dispatched);
            self.answers += 1;
        }
    }

    /// Handles a message of a program whose messages keep their ids, unless it is the reply to the oldest request. A
    /// notification does not name a request. It may concern the previous request of another client, so it is discarded.
    /// A request of the program is answered by the daemon. A session program sends all of these to its client.
    fn handle_non_reply(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
        frame: &[u8],
    ) -> Option<ProgramOutput> {
        if self.is_reset() {
            // It belongs to a client that is gone, whatever it is.
            return Some(ProgramOutput::Unsolicited(shown_bytes(frame)));
        }
        let mut out = Vec::new();
        match tags::classify_in_order(frame, &mut out) {
            OrderedMessage::Reply(id) if self.is_own && self.stream.is_none() => {
                Some(self.handle_own_reply(cx, worker, &frame[id], frame))
            }
            OrderedMessage::Reply(id) if self.is_own => {
                let is_other = self.in_flight.oldest().is_some_and(|flight| {
                    let asked = flight.body.get(flight.named.clone()).unwrap_or_default();
                    id_is_kept(asked) && id_is_kept(&frame[id.clone()]) && *asked != frame[id]
                });
                is_other.then_some(OTHER)
            }
            // The end frame of a reply of several frames is the same for every request.
            OrderedMessage::Reply(_) if self.is_end_frame(frame) => None,
            // The program could not read the message that it answers. That may have been a notification, whose client
            // waits for no reply. No request can be identified, and no request had such an id.
            OrderedMessage::Reply(id) if matches!(&frame[id.clone()], b"" | b"null") => {
                cx.events.push(BackendEvent::Discarded);
                Some(ProgramOutput::Fine)
            }
            OrderedMessage::Reply(id) => {
                let is_other = self.in_flight.oldest().is_some_and(|flight| {
                    flight.body.get(flight.named.clone()) != Some(&frame[id])
                });
                is_other.then_some(OTHER)
            }
            OrderedMessage::Broken(why) => {
                Some(self.handle_broken_in_order(cx, worker, frame, why))
            }
            OrderedMessage::ProgramRequest | OrderedMessage::Notification
                if self.unsolicited_to == UnsolicitedTo::Client =>
            {
                Some(self.handle_unsolicited(worker, frame, cx.events))
            }
            OrderedMessage::ProgramRequest => Some(self.answer(cx.io, &out)),
            OrderedMessage::Notification => {
                cx.events.push(BackendEvent::Discarded);
                Some(ProgramOutput::Fine)
            }
        }
    }

    /// Writes the answer to a request of the program. A program that keeps sending requests and does not read the
    /// answers is killed. Unread requests for it are no evidence of this: it may be busy.
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

    /// Whether this frame ends a reply of several frames.
    fn is_end_frame(&self, frame: &[u8]) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.until.as_deref() == Some(frame))
    }

    /// Handles a reply of a session program whose messages keep the client's ids. It may answer in any order.
    fn handle_own_reply(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
        named: &[u8],
        frame: &[u8],
    ) -> ProgramOutput {
        let accepted = self.accepted(cx.io);
        let of = self.in_flight.named(named).map(|flight| (flight.id, flight.dispatched));
        let of = of.filter(|(id, _)| self.in_flight.complete(*id, accepted, cx.io.now()).is_some());
        let Some((id, dispatched)) = of else {
            return self.handle_unsolicited(worker, frame, cx.events);
        };
        if self.times.first_byte.is_some() {
            self.completed = Some(cx.io.now());
        }
        cx.events
            .push(BackendEvent::Answered { id, outcome: Outcome::Reply(Slice::copy_of(frame)) });
        self.release(cx, worker, dispatched);
        self.answers += 1;
        ProgramOutput::Fine
    }

    /// Releases the slot after an answer, unless the answer was that to the reset.
    fn release(&mut self, cx: &mut BackendContext<'_, '_>, worker: WorkerId, dispatched: Instant) {
        let (now, reset) = (cx.io.now(), self.reset.as_mut());
        let took = now.saturating_duration_since(dispatched);
        if !reset.is_some_and(|reset| reset.handle_reply(now, took)) {
            cx.events.push(BackendEvent::Released { worker });
        }
    }

    /// Handles unsolicited output. Only the client of a session program receives it.
    pub(super) fn handle_unsolicited(
        &mut self,
        worker: WorkerId,
        frame: &[u8],
        events: &mut Vec<BackendEvent>,
    ) -> ProgramOutput {
        match self.unsolicited_to {
            UnsolicitedTo::Client => {}
            UnsolicitedTo::Nobody => return ProgramOutput::Unsolicited(shown_bytes(frame)),
            UnsolicitedTo::Gone => {
                events.push(BackendEvent::Discarded);
                return ProgramOutput::Fine;
            }
        }
        if let Some(reset) = &mut self.reset {
            reset.handle_unsolicited();
        }
        events.push(BackendEvent::Unsolicited { worker, frame: Slice::copy_of(frame) });
        ProgramOutput::Fine
    }

    /// Sets whether unsolicited output is received: by the client of a session program, while that client is connected.
    pub(in crate::programs) const fn set_heard(&mut self, heard: bool) {
        self.unsolicited_to =
            if heard && self.is_own { UnsolicitedTo::Client } else { UnsolicitedTo::Nobody };
    }

    /// Whether it is a session program and has answered its client.
    pub(in crate::programs) const fn has_answered_its_own(&self) -> bool {
        self.is_own && self.answers > 0
    }

    /// Handles that the client of a session program sends no more requests. `replaced`: the program must serve no other
    /// client.
    pub(in crate::programs) const fn leave(&mut self, replaced: bool) {
        self.unsolicited_to = if replaced { UnsolicitedTo::Gone } else { UnsolicitedTo::Nobody };
    }

    /// Handles one message of a program whose messages have tags.
    fn handle_message(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
        frame: &[u8],
    ) -> ProgramOutput {
        let accepted = self.accepted(cx.io);
        let Some(tags) = &mut self.tags else { return ProgramOutput::Fine };
        let mut out = std::mem::take(&mut self.scratch);
        out.clear();
        let message = tags.incoming(frame, &mut out);
        let said = match message {
            Message::Reply(id) => {
                self.unreadable.handle_reply();
                match self.in_flight.complete(id, accepted, cx.io.now()) {
                    Some(Completed::Cancelled) => cx.events.push(BackendEvent::Discarded),
                    Some(Completed::Wanted) => {
                        let outcome = Outcome::Reply(Slice::from(&out[..]));
                        cx.events.push(BackendEvent::Answered { id, outcome });
                        cx.events.push(BackendEvent::Released { worker });
                        self.answers += 1;
                    }
                    None => return ProgramOutput::Unsolicited(shown_bytes(frame)),
                }
                ProgramOutput::Fine
            }
            Message::About(id) => {
                cx.events.push(BackendEvent::Part { id, part: Slice::from(&out[..]) });
                ProgramOutput::Fine
            }
            Message::All => {
                cx.events.push(BackendEvent::Announced { frame: Slice::from(&out[..]) });
                ProgramOutput::Fine
            }
            Message::Nobody => {
                cx.events.push(BackendEvent::Discarded);
                ProgramOutput::Fine
            }
            Message::ProgramRequest => self.answer(cx.io, &out),
            Message::HandshakeReply => match self.write(cx.io, &out) {
                Ok(_) => ProgramOutput::Ready,
                Err(unframable) => ProgramOutput::Broken(unframable.message()),
            },
            Message::Unsolicited => ProgramOutput::Unsolicited(shown_bytes(frame)),
            // Until the program has answered the handshake, no client waits for it.
            Message::Broken(text) if self.tags.as_ref().is_some_and(Tags::is_in_handshake) => {
                ProgramOutput::Broken(text)
            }
            Message::Broken(text) => {
                self.handle_broken(worker, frame, (accepted, cx.io.now()), text, cx.events)
            }
        };
        self.scratch = out;
        said
    }

    /// Handles an invalid message; `why` is the reason. Only the request that it names fails.
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
                self.end_request(worker, id, read, outcome, events)
                    .unwrap_or_else(|| ProgramOutput::Unsolicited(shown_bytes(frame)))
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

    /// Ends this request with `outcome` instead of the reply. Returns `None` if the program cannot have read the
    /// request.
    fn end_request(
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

    /// Whether even a part of a frame is unsolicited: nothing is in flight, so it would become the beginning of the
    /// next client's reply. A JSON message may not be a reply. A program for one request has no other client.
    fn may_not_begin(&self) -> bool {
        let is_in_order = !self.is_own && self.tags.is_none() && !self.is_oneshot();
        self.is_reset()
            || is_in_order
                && !self.owes_reply()
                && !self.says_ready
                && !self.decoder.framing().is_json()
    }

    /// Handles a message over `reply_max`. Only the request that it answers fails.
    fn handle_too_long(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
        skimmed: &Skimmed,
    ) -> ProgramOutput {
        let accepted = self.accepted(cx.io);
        let Some(tags) = &mut self.tags else { return ProgramOutput::TooLong };
        let (is_in_handshake, mut out) = (tags.is_in_handshake(), Vec::new());
        match tags.too_long(skimmed, &mut out) {
            Message::Reply(id) => {
                let text = "its reply is longer than reply_max";
                let outcome = Outcome::ended(Cause::Reply, Phase::Work, text);
                self.end_request(worker, id, (accepted, cx.io.now()), outcome, cx.events)
                    .unwrap_or_else(|| ProgramOutput::Unsolicited(UNSOLICITED_TOO_LONG.to_owned()))
            }
            Message::Nobody => {
                cx.events.push(BackendEvent::Discarded);
                ProgramOutput::Fine
            }
            Message::ProgramRequest => self.answer(cx.io, &out),
            Message::Unsolicited => ProgramOutput::Unsolicited(UNSOLICITED_TOO_LONG.to_owned()),
            // Handled like a complete frame that is not a message: otherwise one client could end the requests of all.
            Message::Broken(why) if !is_in_handshake => {
                cx.events.push(BackendEvent::Discarded);
                match self.unreadable.handle_frame(why) {
                    true => ProgramOutput::TooLongUnattributed,
                    false => ProgramOutput::Fine,
                }
            }
            Message::About(_) | Message::All | Message::HandshakeReply | Message::Broken(_) => {
                ProgramOutput::TooLongUnattributed
            }
        }
    }

    /// Completes the oldest reply; `rest` is its last frame, or empty.
    fn complete(&mut self, cx: &mut BackendContext<'_, '_>, worker: WorkerId, rest: Slice) {
        self.end_oldest(cx, worker, Ok(rest));
    }

    /// Ends the oldest request with its reply or an outcome, and frees its slot.
    pub(super) fn end_oldest(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
        end: Result<Slice, Outcome>,
    ) {
        self.is_streaming = false;
        if self.times.first_byte.is_some() {
            self.completed = Some(cx.io.now());
        }
        if let (Some(output), true) = (self.output, self.has_gap()) {
            cx.io.deadline(output, GAP, None);
        }
        let Some(flight) = self.in_flight.pop() else { return };
        let id = self.plant_shift(flight.id);
        match end {
            Ok(rest) => answered(id, flight.meta, rest, cx.events),
            Err(outcome) => cx.events.push(BackendEvent::Answered { id, outcome }),
        }
        if let Some(alignment) = &mut self.alignment {
            let (now, in_flight) = (cx.io.now(), &self.in_flight);
            let others = (in_flight.len() > 0).then_some(|client| match in_flight.are_of(client) {
                true => ReservedFor::Client(client),
                false => ReservedFor::Nobody,
            });
            let took = now.saturating_duration_since(flight.dispatched);
            let keep = alignment.handle_reply(now, flight.meta.asker, took, others);
            if let Some(keep) = keep {
                cx.events.push(BackendEvent::Kept { worker, client: keep.client() });
            }
        }
        self.release(cx, worker, flight.dispatched);
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

    /// Handles that the silence was long enough to end the reply. A frame that has begun is not part of the reply, and
    /// would become the beginning of another client's reply.
    pub(in crate::programs) fn handle_gap(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
    ) -> ProgramOutput {
        let accepted = self.accepted(cx.io);
        let unread = self.in_flight.oldest().is_some_and(|flight| flight.end > accepted);
        if self.is_streaming && self.read_pause.is_none() {
            if unread {
                // The request is still being sent.
                self.watch_gap(cx.io);
                return ProgramOutput::Fine;
            }
            self.complete_followed(cx, worker, accepted);
            self.complete(cx, worker, Slice::default());
            if self.is_partial && self.may_not_begin() {
                return ProgramOutput::Unsolicited(PARTIAL.to_owned());
            }
        }
        ProgramOutput::Fine
    }

    /// Handles that the program exited with code 0. If the whole output is the reply, completes the request.
    pub(in crate::programs) fn conclude(&mut self, events: &mut Vec<BackendEvent>) {
        let Some(whole) = self.whole.take() else { return };
        if let Some(flight) = self.in_flight.pop() {
            answered(flight.id, flight.meta, whole, events);
            self.answers += 1;
        }
    }

    /// The mutant that gives a reply to the next request instead.
    fn plant_shift(&mut self, id: RequestId) -> RequestId {
        match self.in_flight.oldest_mut() {
            Some(next) if active(Mutant::ShiftedReply) => std::mem::replace(&mut next.id, id),
            _ => id,
        }
    }
}

/// The maximum number of bytes of the ready line of a program without framing.
const READY_MAX: usize = 4096;

/// The log text for a reply that is too long to be shown.
const UNSOLICITED_TOO_LONG: &str = "a reply longer than reply_max";

/// The maximum number of bytes of an unexpected frame that are logged.
const SHOWN_MAX: usize = 80;

fn shown_bytes(frame: &[u8]) -> String {
    let part = &frame[..frame.len().min(SHOWN_MAX)];
    let more = if part.len() < frame.len() { "…" } else { "" };
    format!("\"{}\"{more}", part.escape_ascii())
}
