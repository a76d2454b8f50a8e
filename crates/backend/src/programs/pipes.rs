//! Input and output of one program: requests out, replies in.
//!
//! `offered` counts the bytes given to the input stream, `accepted` those that the kernel has taken:
//!
//! ```text
//!   in_flight   [ oldest ][ ............ ][ youngest ]
//!   bytes     start...  start.........  start......  offered
//!                    ▲ accepted: a flight that starts before it has reached the program
//! ```
//!
//! Without tags the next reply is the oldest flight's; with tags ([`tags`]) each reply names its own.

use std::ops::Range;
use std::time::{Duration, Instant};

use event::{Context, StreamId};
use exchange::{Cause, Outcome, Phase, RequestId, Slice, WorkerId};
use wire::jsonrpc::{is_one_line, splice};
use wire::lines::has_line_break;
use wire::{Decoder, Framing, OversizePolicy, Unframable, envelope};

use super::config::{ProgramConfig, ProgramTimeouts, ReplyStreamConfig};
use super::deadlines::{ANSWER, FIRST, SLOW, STALL, answer_by};
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
use kept::{Held, Notice};
use match_key::Finder;
use original::Original;
use pending::Pending;
use reset::Reset;
use silence::Silence;
use tags::{Outgoing, Tags};
use unreadable::Unreadable;

/// Why a request on lines is rejected that some readers take for several.
const LINE_BREAK: &str =
    "it holds a CR, U+0085, U+2028 or U+2029, at which a program may end a line";

/// Why a request is rejected that names what could not be told apart for clients that share a program.
const UNSHARED: &str =
    "clients share this program, and what this method asks for could not be told apart for them";

/// What a program said in one go.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ProgramOutput {
    /// Replies, or parts of them, as they should be.
    Fine,
    /// It was greeted, and serves from now on.
    Ready,
    /// A frame though nothing was asked, shown for the log.
    Unasked(String),
    /// A frame over the limit.
    TooLong,
    /// A frame over the limit, of which nobody can say whose reply it is.
    TooLongForSomebody,
    /// Bytes that are no frame.
    Broken(&'static str),
}

const OTHER: ProgramOutput = ProgramOutput::Broken("its reply has the id of another request");

/// What has become of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    Waits,
    Passed,
    /// A frame has begun that nobody asked for, and does not end.
    Failed,
}

/// What the programs of a pool have shown of themselves since its settings were read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known {
    /// One printed something that nobody asked for.
    pub(super) is_strict: bool,
    /// One has passed a check.
    pub(super) has_passed: bool,
    /// One has answered, or it was said that none does.
    pub(super) has_spoken: bool,
}

pub(super) struct ProgramPipes {
    input: Option<StreamId>,
    output: Option<StreamId>,
    decoder: Decoder,
    in_flight: InFlight,
    /// Notifications that wait with their slots until it has read on, in the order in which they were sent.
    notices: Vec<Notice>,
    /// Answers to what it asks.
    own_answers: Pending,
    /// Requests that were cancelled, and the messages that cancel them.
    cancellations: Pending,
    /// It is one connection's own, which it may ask things too.
    is_own: bool,
    /// Who hears what it says unasked.
    unsolicited_to: unsolicited_to::UnsolicitedTo,
    tags: Option<Tags>,
    /// Requests that some readers of lines take for several are rejected.
    rejects_line_breaks: bool,
    /// Only looked at where what was taken back is forgotten: with tags.
    silence: Silence,
    /// Some that nobody wants keep their slots: with tags.
    has_unwanted: bool,
    /// It is given nothing until then, because of what was cancelled: with tags.
    closed_until: Option<Instant>,
    /// Clients whose requests were late or cancelled since it last said something: with tags.
    waited: Vec<u64>,
    /// Whether its replies are in step with its requests, where nothing in its framing tells.
    alignment: Option<Alignment>,
    /// Whether it may be given to another connection, where it is one connection's own.
    reset: Option<Reset>,
    /// What of a request its reply must carry.
    carried: Option<Finder>,
    stream: Option<ReplyStreamConfig>,
    /// The oldest reply has begun, and more frames of it come.
    is_streaming: bool,
    /// Its output is not read: a client does not take what it said.
    held: Option<Held>,
    /// A program for one request: its whole output, once that has ended.
    whole: Option<Slice>,
    offered: u64,
    /// What the kernel had accepted when the input closed.
    accepted_at_close: u64,
    /// The same without what the program is known to have left unread.
    read_at_close: u64,
    /// Bytes offered before the first request.
    asked_at: Option<u64>,
    /// Replies given in all.
    pub(super) answers: u64,
    times: ProgramTimeouts,
    /// Times that what it had when it ended may be given to a program.
    tries: u8,
    /// Its next frame says that it is ready, and is no reply.
    says_ready: bool,
    /// A part of a frame has come.
    is_partial: bool,
    /// When the reply before was complete.
    completed: Option<Instant>,
    /// It has answered nothing for a while, and this was said.
    is_mute: bool,
    /// What it said that is no message: with tags.
    unreadable: Unreadable,
    /// What the kernel had accepted when its reading was last looked at.
    stalled_at: u64,
    scratch: Vec<u8>,
}

impl ProgramPipes {
    pub(super) fn new(
        input: StreamId,
        output: StreamId,
        config: &ProgramConfig,
        known: Known,
    ) -> Self {
        // With tags a reply names its request, and one that is too long is passed over.
        let decoder = match config.tagged {
            true => Decoder::new(config.framing, config.reply_max, OversizePolicy::Skip).skimming(),
            false => Decoder::new(config.framing, config.reply_max, OversizePolicy::End),
        };
        Self {
            input: Some(input),
            output: Some(output),
            decoder,
            in_flight: InFlight::new(config.tagged || config.is_own && config.framing.is_json()),
            notices: Vec::new(),
            own_answers: Pending::default(),
            cancellations: Pending::default(),
            is_own: config.is_own,
            unsolicited_to: unsolicited_to::UnsolicitedTo::default(),
            tags: config.tagged.then(|| Tags::new(config.framing)),
            rejects_line_breaks: config.rejects_line_breaks,
            silence: Silence::default(),
            has_unwanted: false,
            closed_until: None,
            waited: Vec::new(),
            alignment: config
                .alignment
                .map(|mode| Alignment::new(mode, known.is_strict, !known.has_passed)),
            reset: config.is_own.then(|| Reset::new(!known.has_passed)),
            carried: config.carries.clone().map(Finder::new),
            stream: config.stream.clone(),
            is_streaming: false,
            held: None,
            whole: None,
            offered: 0,
            accepted_at_close: 0,
            read_at_close: 0,
            asked_at: None,
            answers: 0,
            times: config.times,
            tries: config.tries,
            says_ready: config.says_ready,
            is_partial: false,
            completed: None,
            is_mute: false,
            unreadable: Unreadable::default(),
            stalled_at: 0,
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

    /// Greets a program that wants to be greeted before it serves.
    pub(super) fn greet(&mut self, io: &mut Context<'_>) {
        let mut out = Vec::new();
        if let Some(tags) = &mut self.tags {
            tags.greet(&mut out);
            let written = self.write(io, &out);
            debug_assert!(written.is_ok(), "it has no line feed");
        }
    }

    pub(super) fn send(
        &mut self,
        io: &mut Context<'_>,
        worker: WorkerId,
        (request, meta): (Request, RequestMeta),
        deadline: Duration,
        events: &mut Vec<BackendEvent>,
    ) {
        let Request { id, peer, payload, .. } = request;
        let (body, original) = Original::of(payload, peer);
        if let Some(reset) = &mut self.reset {
            reset.handle_sent(meta.is_reset);
        }
        if let Some(finder) = &mut self.carried
            && let Err(text) = finder.check(&body)
        {
            let outcome = Outcome::ended(Cause::Record, Phase::Work, text);
            events.push(BackendEvent::Answered { id, outcome });
            return events.push(BackendEvent::Released { worker });
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
                events.push(BackendEvent::Stray);
                None
            }
            Outgoing::Answered => Some(Outcome::Reply(Slice::from(frame))),
            Outgoing::Request | Outgoing::Notification => match self.write(io, frame) {
                Err(unframable) => {
                    if let Some(tags) = &mut self.tags {
                        tags.forget(id);
                    }
                    Some(Outcome::ended(Cause::Record, Phase::Work, unframable.message()))
                }
                Ok(range) if outgoing == Outgoing::Notification => {
                    self.asked_at.get_or_insert(range.start);
                    self.notify(
                        io,
                        worker,
                        (id, (body, original), meta, range.start),
                        deadline,
                        events,
                    );
                    self.scratch = rewritten;
                    return;
                }
                Ok(range) => {
                    self.asked_at.get_or_insert(range.start);
                    self.add_in_flight(io, id, ((body, original), meta, named), range, deadline);
                    self.scratch = rewritten;
                    return;
                }
            },
        };
        events.push(match ended {
            Some(outcome) => BackendEvent::Answered { id, outcome },
            None => BackendEvent::Unanswered { id },
        });
        events.push(BackendEvent::Released { worker });
        self.scratch = rewritten;
    }

    /// A request is on its way, at these bytes of the input.
    fn add_in_flight(
        &mut self,
        io: &mut Context<'_>,
        id: RequestId,
        ((body, original), meta, named): ((Slice, Original), RequestMeta, Range<usize>),
        range: Range<u64>,
        deadline: Duration,
    ) {
        let first = !self.is_owing();
        if let Some(alignment) = &mut self.alignment {
            alignment.handle_sent(io.now(), first);
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
            // One that reads late gets all of it: the deadline alone says when it is too late.
            io.finish(input, Some(deadline));
        }
        if first {
            self.silence.begin(io.now());
            self.arm(io, deadline);
        }
    }

    /// Sets the deadline of the oldest request, and that of a program which says nothing at all. What
    /// a client's slowness takes does not count.
    pub(super) fn arm(&self, io: &mut Context<'_>, deadline: Duration) {
        if let (Some(output), None) = (self.output, self.held) {
            let oldest = self.in_flight.oldest();
            let at = oldest.and_then(|flight| answer_by(flight.dispatched, deadline));
            let checked_at = oldest.is_none().then(|| self.checked_at(io.now())).flatten();
            let at = at.into_iter().chain(self.patience_ends(deadline)).chain(checked_at);
            let at = at.chain(self.closed_until).min();
            io.deadline(output, ANSWER, at);
            if let Some(limit) = self.times.first_byte {
                // A reply behind another cannot begin before that has ended.
                let since = oldest
                    .map(|it| self.completed.map_or(it.dispatched, |at| at.max(it.dispatched)));
                let at = since.filter(|_| !self.is_begun()).map(|since| since + limit);
                io.deadline(output, FIRST, at);
            }
            // One that has never answered may keep its output in a buffer, which is said once.
            let mute = (self.answers == 0 && !self.is_mute).then_some(MUTE);
            if let Some(limit) = self.times.slow.into_iter().chain(mute).min() {
                let at = oldest.filter(|it| !it.slow).map(|it| it.dispatched + limit);
                io.deadline(output, SLOW, at);
            }
        }
    }

    /// When its check is passed, if nothing is in flight; for a frame that has begun, when its end is
    /// looked for again.
    fn checked_at(&self, now: Instant) -> Option<Instant> {
        let at = match &self.reset {
            Some(reset) => reset.until(),
            None => self.alignment.as_ref().and_then(Alignment::until),
        }?;
        Some(if self.is_partial { at.max(now + REST_OF_FRAME) } else { at })
    }

    /// A part of a reply has come.
    fn is_begun(&self) -> bool {
        self.is_streaming || self.is_partial
    }

    /// Whether it has said nothing since it was started, although its first request was sent a while
    /// ago. That is looked at once, whatever is found: `arm` would set a time that has passed.
    pub(super) fn handle_mute(&mut self, io: &Context<'_>) -> bool {
        let late = |flight: &ActiveRequest| flight.dispatched + MUTE <= io.now();
        let is_looked_at = self.answers == 0 && self.in_flight.oldest().is_some_and(late);
        let is_first = is_looked_at && !std::mem::replace(&mut self.is_mute, true);
        is_first && !self.is_begun()
    }

    /// It said what is no message, which is said now and then.
    pub(super) fn report_unreadable(&mut self, io: &Context<'_>, name: &str) {
        self.unreadable.report(io.now(), name);
    }

    /// The oldest request has taken long, which is said once: how long.
    pub(super) fn handle_slow(&mut self, io: &Context<'_>) -> Option<Duration> {
        let (limit, now) = (self.times.slow?, io.now());
        let late = |flight: &&mut ActiveRequest| !flight.slow && flight.dispatched + limit <= now;
        let oldest = self.in_flight.oldest_mut().filter(late)?;
        oldest.slow = true;
        Some(io.now().saturating_duration_since(oldest.dispatched))
    }

    /// Puts a frame into the input and returns its place in all that was offered.
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
            // Nothing, when the input has just ended and its end is not told yet.
            self.offered += after.saturating_sub(before) as u64;
            if let (Some(limit), true) = (self.times.write_stall, before == 0 && after > 0) {
                self.stalled_at = start;
                io.deadline_in(input, STALL, limit);
            }
        }
        let length = envelope.head().len() + frame.len() + envelope.tail().len();
        Ok(start..start + length as u64)
    }

    /// Bytes that the program has not taken.
    fn unread(&self, io: &Context<'_>) -> usize {
        self.input.map_or(0, |input| io.queued(input))
    }

    fn accepted(&self, io: &Context<'_>) -> u64 {
        match self.input {
            Some(input) => self.offered - io.queued(input) as u64,
            None => self.accepted_at_close,
        }
    }

    /// Nothing is in flight, and nothing came for so long that its check is passed: it is for any
    /// client again, or for any connection.
    pub(super) fn handle_silent(
        &mut self,
        io: &Context<'_>,
        worker: WorkerId,
        events: &mut Vec<BackendEvent>,
    ) -> Check {
        let now = io.now();
        if let Some(reset) = &mut self.reset {
            if !reset.handle_time(now) {
                return Check::Waits;
            }
            events.push(BackendEvent::Released { worker });
            return Check::Passed;
        }
        let Some(alignment) = &mut self.alignment else { return Check::Waits };
        if self.is_partial {
            // It says something beside its replies, and has not come to its end.
            let is_stuck = alignment.until().is_some_and(|at| at + FRAME_MAX <= now);
            return if is_stuck { Check::Failed } else { Check::Waits };
        }
        if !alignment.handle_time(now) {
            return Check::Waits;
        }
        events.push(BackendEvent::Open { worker });
        Check::Passed
    }

    /// Its pool has other settings, or another of its programs was found out.
    pub(super) fn handle_alignment(&mut self, config: &ProgramConfig, known: Known) {
        if let (Some(alignment), Some(mode)) = (&mut self.alignment, config.alignment) {
            alignment.handle_mode(mode, known.is_strict);
        }
    }

    /// It said something that nobody asked for: its replies that may be those to other requests.
    /// None where nobody watches it.
    pub(super) fn found_out(&mut self) -> Option<Suspects> {
        self.alignment.as_mut().filter(|it| it.is_on()).map(Alignment::found_out)
    }

    /// Whether it is one connection's own, and speaks without frames.
    pub(super) fn is_own_raw(&self) -> bool {
        self.is_own && self.decoder.framing() == Framing::Raw
    }

    /// Whether it has answered its reset, and is no connection's own: it has to be silent.
    pub(super) fn is_reset(&self) -> bool {
        self.reset.as_ref().is_some_and(Reset::is_done)
    }

    /// Whether it was given a request, now that its input is closed. Unless it `has_started`, it must have read a part of
    /// that, or nobody knows whether it did.
    pub(super) fn was_given_a_request(&self, has_started: bool) -> bool {
        let taken = if has_started { self.accepted_at_close } else { self.read_at_close };
        self.asked_at.is_some_and(|at| at < taken)
    }

    pub(super) fn is_owing(&self) -> bool {
        self.in_flight() > 0
    }

    /// Whether it has nothing that anybody counts as with it.
    pub(super) fn is_idle(&self) -> bool {
        !self.is_owing() && self.notices.is_empty()
    }

    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Whether all that the program said is read.
    pub(super) const fn is_read(&self) -> bool {
        self.output.is_none()
    }
}

/// How long a program may take for its first answer before the log says what may be wrong.
const MUTE: Duration = Duration::from_secs(2);

/// How often a check looks for the rest of a frame that has begun.
const REST_OF_FRAME: Duration = Duration::from_millis(10);

/// How long a check waits for it in all.
const FRAME_MAX: Duration = Duration::from_secs(1);

/// Bytes that may wait for a program when something is added that no slot bounds.
pub(super) const UNREAD_MAX: usize = 64 << 10;

/// What the log says of a frame whose end did not come.
pub(in crate::programs) const PARTIAL: &str = "a part of a frame";
