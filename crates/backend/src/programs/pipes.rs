//! Input and output of one program: requests out, replies in.
//!
//! `offered` counts the bytes given to the input stream. `accepted` counts the bytes that the kernel has accepted:
//!
//! ```text
//!   in_flight   [ oldest ][ ............ ][ youngest ]
//!   bytes     start...  start.........  start......  offered
//!                    ▲ accepted: a request that starts before it has reached the program
//! ```
//!
//! Without tags the next reply belongs to the oldest request in flight. With tags ([`tags`]) each reply names its
//! request.

use std::ops::Range;
use std::time::{Duration, Instant};

use event::{Context, StreamId};
use exchange::{Cause, Outcome, Phase, RequestId, Slice, WorkerId};
use wire::jsonrpc::{is_one_line, splice};
use wire::lines::has_line_break;
use wire::{Decoder, Framing, OversizePolicy, Unframable, envelope};

use super::config::{ProgramConfig, ProgramTimeouts, ReplyStreamConfig};
use super::deadlines::{ANSWER, FIRST, SLOW, STALL, answer_by};
use crate::backend::BackendContext;
use flow::backend_event::BackendEvent;
use flow::payload::Request;
use flow::request_meta::RequestMeta;

mod alignment;
mod answered;
mod broken;
mod controls;
mod ending;
mod in_flight;
mod kept;
mod late;
mod latency;
mod match_key;
mod notifications;
mod original;
mod pace;
mod pending;
mod replies;
mod reset;
mod silence;
mod tags;
mod unreadable;
mod unsolicited_to;

use alignment::Alignment;
pub(super) use alignment::Suspects;
use in_flight::{ActiveRequest, InFlight};
use kept::{PendingNotification, ReadPause};
use match_key::MatchFinder;
use original::Original;
use pending::Pending;
use reset::Reset;
use silence::Silence;
use tags::{Outgoing, Tags};
use unreadable::Unreadable;

/// Why a request of lines is rejected that a program may read as several lines.
const LINE_BREAK: &str =
    "it holds a CR, U+0085, U+2028 or U+2029, at which a program may end a line";

/// Why a request is rejected whose effect cannot be separated for the clients that share a program.
const UNSHARED: &str =
    "clients share this program, so a reply to this method could not be assigned to one of them";

/// The result of reading a program's output once.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ProgramOutput {
    /// Replies, or parts of replies, all valid.
    Fine,
    /// The handshake or ready message arrived. The program serves from now on.
    Ready,
    /// A frame while no request was in flight; it is shown in the log.
    Unsolicited(String),
    /// A frame over the limit.
    TooLong,
    /// A frame over the limit whose request cannot be identified.
    TooLongUnattributed,
    /// Bytes that are not a frame.
    Broken(&'static str),
}

const OTHER: ProgramOutput = ProgramOutput::Broken("its reply has the id of another request");

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    Waits,
    Passed,
    /// An unsolicited frame has begun and does not end.
    Failed,
}

/// What is known about the programs of a pool since its configuration was read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PoolAlignment {
    /// Whether one wrote unsolicited output.
    pub(super) is_strict: bool,
    /// Whether one has passed a check.
    pub(super) has_passed: bool,
    /// Whether one has answered, or the log already contains the warning that none answers.
    pub(super) output_seen: bool,
}

pub(super) struct ProgramPipes {
    input: Option<StreamId>,
    output: Option<StreamId>,
    decoder: Decoder,
    in_flight: InFlight,
    /// Notifications that keep their slots until the program reads on, in the order in which they were sent.
    pending_notifications: Vec<PendingNotification>,
    /// Answers to requests of the program itself.
    own_answers: Pending,
    /// Cancelled requests, and the messages that cancel them.
    cancellations: Pending,
    /// Whether it is a session program, which may also send requests to its client.
    is_own: bool,
    /// Which client receives its unsolicited output.
    unsolicited_to: unsolicited_to::UnsolicitedTo,
    tags: Option<Tags>,
    /// Whether requests are rejected that a program may read as several lines.
    rejects_line_breaks: bool,
    /// How long the program has been silent. Used only with tags, where cancelled requests are removed.
    silence: Silence,
    /// Whether some unwanted requests keep their slots. Used only with tags.
    has_unwanted: bool,
    /// The program receives no requests until then, because of cancelled requests. Used only with tags.
    closed_until: Option<Instant>,
    /// Clients whose requests were late or cancelled since the program last wrote something. Used only with tags.
    waiting_clients: Vec<u64>,
    /// Whether its replies are aligned with its requests, if the framing does not show this.
    alignment: Option<Alignment>,
    /// Whether a session program may be given to another connection.
    reset: Option<Reset>,
    /// The part of a request that its reply must repeat.
    match_finder: Option<MatchFinder>,
    stream: Option<ReplyStreamConfig>,
    /// Whether the oldest reply has begun and more of its frames follow.
    is_streaming: bool,
    /// Set while its output is not read because a client does not read.
    read_pause: Option<ReadPause>,
    /// The whole output of a program for one request, once the output has ended.
    whole: Option<Slice>,
    offered: u64,
    /// The number of bytes that the kernel had accepted when the input closed.
    accepted_at_close: u64,
    /// `accepted_at_close`, without the bytes that the program is known to have left unread.
    read_at_close: u64,
    /// Bytes offered before the first request.
    first_request_at: Option<u64>,
    /// The total number of replies.
    pub(super) answers: u64,
    times: ProgramTimeouts,
    /// The maximum number of times that a request may be sent if the program ends before it replies.
    tries: u8,
    /// Whether its next frame is a ready message and not a reply.
    says_ready: bool,
    /// Whether a part of a frame has arrived.
    is_partial: bool,
    /// The time at which the previous reply was complete.
    completed: Option<Instant>,
    /// Whether the program was already found not to have answered for a while.
    is_mute: bool,
    /// Output that is not a message. Used only with tags.
    unreadable: Unreadable,
    /// The number of bytes that the kernel had accepted at the last check whether the program reads.
    accepted_at_check: u64,
    scratch: Vec<u8>,
}

impl ProgramPipes {
    pub(super) fn new(
        input: StreamId,
        output: StreamId,
        config: &ProgramConfig,
        known: PoolAlignment,
    ) -> Self {
        // With tags a reply names its request, so an oversized reply is skipped.
        let decoder = match config.tagged {
            true => Decoder::new(config.framing, config.reply_max, OversizePolicy::Skip).skimming(),
            false => Decoder::new(config.framing, config.reply_max, OversizePolicy::End),
        };
        Self {
            input: Some(input),
            output: Some(output),
            decoder,
            in_flight: InFlight::new(config.tagged || config.is_own && config.framing.is_json()),
            pending_notifications: Vec::new(),
            own_answers: Pending::default(),
            cancellations: Pending::default(),
            is_own: config.is_own,
            unsolicited_to: unsolicited_to::UnsolicitedTo::default(),
            tags: config.tagged.then(|| Tags::new(config.framing)),
            rejects_line_breaks: config.rejects_line_breaks,
            silence: Silence::default(),
            has_unwanted: false,
            closed_until: None,
            waiting_clients: Vec::new(),
            alignment: config
                .alignment
                .map(|mode| Alignment::new(mode, known.is_strict, !known.has_passed)),
            reset: config.is_own.then(|| Reset::new(!known.has_passed)),
            match_finder: config.carries.clone().map(MatchFinder::new),
            stream: config.stream.clone(),
            is_streaming: false,
            read_pause: None,
            whole: None,
            offered: 0,
            accepted_at_close: 0,
            read_at_close: 0,
            first_request_at: None,
            answers: 0,
            times: config.times,
            tries: config.tries,
            says_ready: config.says_ready,
            is_partial: false,
            completed: None,
            is_mute: false,
            unreadable: Unreadable::default(),
            accepted_at_check: 0,
            scratch: Vec::new(),
        }
    }

    /// Whether clients share it by tags.
    pub(super) const fn is_tagged(&self) -> bool {
        self.tags.is_some()
    }

    fn is_oneshot(&self) -> bool {
        self.decoder.framing().ends_with_stream()
    }

    /// Sends the first message of the handshake to a program that requires one.
    pub(super) fn start_handshake(&mut self, io: &mut Context<'_>) {
        let mut out = Vec::new();
        if let Some(tags) = &mut self.tags {
            tags.start_handshake(&mut out);
            let written = self.write(io, &out);
            debug_assert!(written.is_ok(), "it has no line feed");
        }
    }

    pub(super) fn send(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
        (request, meta): (Request, RequestMeta),
        deadline: Duration,
    ) {
        let Request { id, peer, payload, .. } = request;
        let (body, original) = Original::of(payload, peer);
        if let Some(reset) = &mut self.reset {
            reset.handle_sent(meta.is_reset);
        }
        if let Some(finder) = &mut self.match_finder
            && let Err(text) = finder.check(&body)
        {
            let outcome = Outcome::ended(Cause::Record, Phase::Work, text);
            cx.events.push(BackendEvent::Answered { id, outcome });
            return cx.events.push(BackendEvent::Released { worker });
        }
        let mut rewritten = std::mem::take(&mut self.scratch);
        rewritten.clear();
        let ((outgoing, named), frame) = match &mut self.tags {
            Some(tags) => ((tags.outgoing(id, &body, &mut rewritten), 0..0), &rewritten[..]),
            None if self.decoder.framing().is_json() => {
                let framing = self.decoder.framing();
                let mut unchanged = tags::unchanged(&body, self.is_own, framing, &mut rewritten);
                if meta.is_reset {
                    unchanged.0 = tags::of_reset(unchanged.0);
                }
                let is_answered = unchanged.0 == Outgoing::Answered;
                let must_fit = framing == Framing::JsonRpc && !is_one_line(&body);
                if must_fit {
                    splice(&body, &[], &mut rewritten);
                }
                (unchanged, if must_fit || is_answered { &rewritten[..] } else { &body[..] })
            }
            None if self.rejects_line_breaks && has_line_break(&body) => {
                ((Outgoing::Refused(LINE_BREAK), 0..0), &body[..])
            }
            None => ((Outgoing::Request, 0..0), &body[..]),
        };
        let ended = match outgoing {
            Outgoing::Refused(text) => Some(Outcome::ended(Cause::Record, Phase::Work, text)),
            Outgoing::Unshared => Some(Outcome::ended(Cause::NoMethod, Phase::Work, UNSHARED)),
            Outgoing::Dropped => None,
            Outgoing::Stray => {
                cx.events.push(BackendEvent::Stray);
                None
            }
            Outgoing::Answered => Some(Outcome::Reply(Slice::from(frame))),
            Outgoing::Request | Outgoing::Notification => match self.write(cx.io, frame) {
                Err(unframable) => {
                    if let Some(tags) = &mut self.tags {
                        tags.forget(id);
                    }
                    Some(Outcome::ended(Cause::Record, Phase::Work, unframable.message()))
                }
                Ok(range) if outgoing == Outgoing::Notification => {
                    self.first_request_at.get_or_insert(range.start);
                    self.notify(cx, worker, (id, (body, original), meta, range.start), deadline);
                    self.scratch = rewritten;
                    return;
                }
                Ok(range) => {
                    self.first_request_at.get_or_insert(range.start);
                    self.add_in_flight(cx.io, id, ((body, original), meta, named), range, deadline);
                    self.scratch = rewritten;
                    return;
                }
            },
        };
        cx.events.push(match ended {
            Some(outcome) => BackendEvent::Answered { id, outcome },
            None => BackendEvent::Unanswered { id },
        });
        cx.events.push(BackendEvent::Released { worker });
        self.scratch = rewritten;
    }

    /// Adds a request that was written at these bytes of the input.
    fn add_in_flight(
        &mut self,
        io: &mut Context<'_>,
        id: RequestId,
        ((body, original), meta, named): ((Slice, Original), RequestMeta, Range<usize>),
        range: Range<u64>,
        deadline: Duration,
    ) {
        let first = !self.owes_reply();
        if let Some(alignment) = &mut self.alignment {
            alignment.handle_sent((io.now(), io.settled()), first);
        }
        self.in_flight.push(ActiveRequest {
            id,
            body,
            original,
            meta,
            named,
            start: range.start,
            end: range.end,
            dispatched: io.now(),
            slow: false,
            unwanted: false,
        });
        if let (true, Some(input)) = (self.is_oneshot(), self.input) {
            // A program that reads late receives all of it: only the deadline limits the time.
            io.finish(input, Some(deadline));
        }
        if first {
            self.silence.begin(io.now());
            self.arm(io, deadline);
        }
    }

    /// Sets the deadline of the oldest request, and the deadline of a program that writes nothing at all. Time spent
    /// waiting for a slow client does not count.
    pub(super) fn arm(&self, io: &mut Context<'_>, deadline: Duration) {
        if let (Some(output), None) = (self.output, self.read_pause) {
            let oldest = self.in_flight.oldest();
            let at = oldest.and_then(|flight| answer_by(flight.dispatched, deadline));
            let checked_at = oldest.is_none().then(|| self.checked_at(io.now())).flatten();
            let at = at.into_iter().chain(self.next_silence_check(deadline)).chain(checked_at);
            let at = at.chain(self.closed_until).min();
            io.deadline(output, ANSWER, at);
            if let Some(limit) = self.times.first_byte {
                // A reply cannot begin before the previous reply has ended.
                let since = oldest
                    .map(|it| self.completed.map_or(it.dispatched, |at| at.max(it.dispatched)));
                let at = since.filter(|_| !self.is_begun()).map(|since| since + limit);
                io.deadline(output, FIRST, at);
            }
            // A program that has never answered may buffer its output. This is logged once.
            let mute = (self.answers == 0 && !self.is_mute).then_some(MUTE);
            if let Some(limit) = self.times.slow.into_iter().chain(mute).min() {
                let at = oldest.filter(|it| !it.slow).map(|it| it.dispatched + limit);
                io.deadline(output, SLOW, at);
            }
        }
    }

    /// Returns when its check is passed, if nothing is in flight. If a frame has begun, returns when to look for its
    /// end again.
    fn checked_at(&self, now: Instant) -> Option<Instant> {
        let at = match &self.reset {
            Some(reset) => reset.until(),
            None => self.alignment.as_ref().and_then(Alignment::until),
        }?;
        Some(if self.is_partial { at.max(now + REST_OF_FRAME) } else { at })
    }

    /// Whether a part of a reply has arrived.
    fn is_begun(&self) -> bool {
        self.is_streaming || self.is_partial
    }

    /// Whether it has written nothing since its start, although its first request was sent [`MUTE`] ago. This is
    /// checked only once, whatever the result: otherwise `arm` would set a time that has passed.
    pub(super) fn handle_mute(&mut self, io: &Context<'_>) -> bool {
        let late = |flight: &ActiveRequest| flight.dispatched + MUTE <= io.settled();
        let is_looked_at = self.answers == 0 && self.in_flight.oldest().is_some_and(late);
        let is_first = is_looked_at && !std::mem::replace(&mut self.is_mute, true);
        is_first && !self.is_begun()
    }

    /// Logs output that is not a message, at limited intervals.
    pub(super) fn report_unreadable(&mut self, io: &Context<'_>, name: &str) {
        self.unreadable.report(io.now(), name);
    }

    /// Returns how long the oldest request has taken, once, if it is slow.
    pub(super) fn handle_slow(&mut self, io: &Context<'_>) -> Option<Duration> {
        let (limit, now) = (self.times.slow?, io.now());
        let late = |flight: &&mut ActiveRequest| !flight.slow && flight.dispatched + limit <= now;
        let oldest = self.in_flight.oldest_mut().filter(late)?;
        oldest.slow = true;
        Some(io.now().saturating_duration_since(oldest.dispatched))
    }

    /// Writes a frame to the input and returns its range in all the bytes offered.
    fn write(&mut self, io: &mut Context<'_>, frame: &[u8]) -> Result<Range<u64>, Unframable> {
        let envelope = envelope(self.decoder.framing(), frame)?;
        let start = self.offered;
        if let Some(input) = self.input {
            let before = io.queued(input);
            let mut after = before;
            for bytes in [envelope.head(), frame, envelope.tail()] {
                if !bytes.is_empty() {
                    after = io.send_bytes(input, bytes);
                }
            }
            // Zero, if the input has just ended and its end was not reported yet.
            self.offered += after.saturating_sub(before) as u64;
            if let (Some(limit), true) = (self.times.send_timeout, before == 0 && after > 0) {
                self.accepted_at_check = start;
                io.deadline_in(input, STALL, limit);
            }
        }
        let length = envelope.head().len() + frame.len() + envelope.tail().len();
        Ok(start..start + length as u64)
    }

    /// Returns the number of bytes that the program has not read.
    fn unread(&self, io: &Context<'_>) -> usize {
        self.input.map_or(0, |input| io.queued(input))
    }

    fn accepted(&self, io: &Context<'_>) -> u64 {
        match self.input {
            Some(input) => self.offered - io.queued(input) as u64,
            None => self.accepted_at_close,
        }
    }

    /// Handles silence while nothing is in flight. If it was long enough, the check is passed: any client, or any
    /// connection, may use the program again.
    pub(super) fn handle_silent(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
    ) -> Check {
        let now = cx.io.settled();
        if let Some(reset) = &mut self.reset {
            if !reset.handle_time(now) {
                return Check::Waits;
            }
            cx.events.push(BackendEvent::Released { worker });
            return Check::Passed;
        }
        let Some(alignment) = &mut self.alignment else { return Check::Waits };
        if self.is_partial {
            // The program writes something besides its replies, and it is not complete.
            let is_stuck = alignment.until().is_some_and(|at| at + FRAME_MAX <= now);
            return if is_stuck { Check::Failed } else { Check::Waits };
        }
        if !alignment.handle_time(now) {
            return Check::Waits;
        }
        cx.events.push(BackendEvent::Open { worker });
        Check::Passed
    }

    /// Handles that the pool has a new configuration, or that another of its programs wrote unsolicited output.
    pub(super) fn handle_alignment(&mut self, config: &ProgramConfig, known: PoolAlignment) {
        if let (Some(alignment), Some(mode)) = (&mut self.alignment, config.alignment) {
            alignment.handle_mode(mode, known.is_strict);
        }
    }

    /// Handles unsolicited output: returns the replies that may belong to other requests. Returns `None` if alignment
    /// is not checked.
    pub(super) fn take_suspects(&mut self) -> Option<Suspects> {
        self.alignment.as_mut().filter(|it| it.is_on()).map(Alignment::take_suspects)
    }

    /// Whether it is a session program without framing.
    pub(super) fn is_own_raw(&self) -> bool {
        self.is_own && self.decoder.framing() == Framing::Raw
    }

    /// Whether it is a session program that has answered its reset and belongs to no connection. It must be silent.
    pub(super) fn is_reset(&self) -> bool {
        self.reset.as_ref().is_some_and(Reset::is_done)
    }

    /// Whether it was given a request, now that its input is closed. Unless `has_started`, it must have read a part of
    /// the request; otherwise it is unknown whether it read any.
    pub(super) fn has_received_request(&self, has_started: bool) -> bool {
        let taken = if has_started { self.accepted_at_close } else { self.read_at_close };
        self.first_request_at.is_some_and(|at| at < taken)
    }

    pub(super) fn owes_reply(&self) -> bool {
        self.in_flight() > 0
    }

    /// Whether it has neither requests nor notifications in flight.
    pub(super) fn is_idle(&self) -> bool {
        !self.owes_reply() && self.pending_notifications.is_empty()
    }

    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Whether all output of the program is read.
    pub(super) const fn is_read(&self) -> bool {
        self.output.is_none()
    }
}

/// How long a program may take for its first answer before a possible cause is logged.
const MUTE: Duration = Duration::from_secs(2);

/// The interval at which a check looks for the rest of a frame that has begun.
const REST_OF_FRAME: Duration = Duration::from_millis(10);

/// The maximum time that a check waits for the rest of a frame.
const FRAME_MAX: Duration = Duration::from_secs(1);

/// The maximum number of bytes that may wait for a program when a message is added that needs no slot.
pub(super) const UNREAD_MAX: usize = 64 << 10;

/// The log text for a frame whose end did not arrive.
pub(in crate::programs) const PARTIAL: &str = "a part of a frame";
