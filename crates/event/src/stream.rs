//! One stream: its state, and the next step that it wants. Pure: no kernel, no owner.
//!
//! ```text
//!   connect ──► Connecting ──► Open ──finish──► Flushing ──all sent──► Lingering ──peer's end──► Clean
//!   accept, adopt ─────────────▲ │                  │                      └──linger passed──► Lingered
//!                                │                  │
//!                  reset, failed write          (as Open)
//!                                ▼
//!                             Broken: nothing is sent any more; what was received is still offered
//!                                │
//!   a limit, a refused connect ──┴──► Ended ──► `Closed`, and the id is gone
//! ```
//!
//! A stream without a peer's direction (`Out`) goes from Flushing straight to its end.

use std::sync::Arc;

use block::Block;

use crate::kernel::{FdKind, Readiness};
use crate::output::Output;
use crate::relay::Relay;
use crate::wheel::Alarm;
use crate::{DEADLINES_MAX, Direction, Fd, OwnerKey, Reason, StreamLimits};

/// Alarms of a stream: its deadlines, and one for `finish`.
pub(crate) const ALARMS: usize = DEADLINES_MAX + 1;
/// The alarm of `finish`.
pub(crate) const LINGER: usize = DEADLINES_MAX;

#[derive(Debug)]
pub(crate) struct Stream {
    /// None while a `connect` waits for the end of the turn.
    pub(crate) fd: Option<Fd>,
    pub(crate) medium: FdKind,
    pub(crate) direction: Direction,
    pub(crate) phase: Phase,
    pub(crate) marks: Marks,
    /// Received bytes that were offered and not consumed. Never empty.
    pub(crate) hold: Option<Block>,
    /// Bytes to send. None when there are none.
    pub(crate) output: Option<Box<Output>>,
    /// Where its bytes go unread. None when the owner reads them.
    pub(crate) relay: Option<Box<Relay>>,
    /// Shared by all streams that have the same.
    pub(crate) limits: Arc<StreamLimits>,
    pub(crate) alarms: [Alarm; ALARMS],
    /// How long `finish` waits, in milliseconds.
    pub(crate) linger_ms: u32,
    /// Whose it is, for the events about it.
    pub(crate) key: OwnerKey,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The kernel connects. `finish`: the owner wants the end once what is queued was sent.
    Connecting { finish: bool },
    /// Bytes flow.
    Open,
    /// `finish` was called; output waits.
    Flushing,
    /// Our direction has ended; what comes in is discarded until the peer's ends.
    Lingering,
    /// Nothing can be sent any more.
    Broken(Reason),
    /// Over.
    Ended(Reason),
}

/// Facts about a stream, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks(u32);

impl Marks {
    /// The kernel may have bytes for us.
    pub(crate) const READABLE: Self = Self(1);
    /// The end or an error is behind those bytes: a short read is not the last.
    pub(crate) const TO_THE_END: Self = Self(1 << 1);
    /// The kernel may have room for our bytes.
    pub(crate) const WRITABLE: Self = Self(1 << 2);
    /// The owner wants no `Data` now.
    pub(crate) const PAUSED: Self = Self(1 << 3);
    /// What is held is to be offered again: the owner resumed.
    pub(crate) const OFFER: Self = Self(1 << 4);
    /// The peer's end was received.
    pub(crate) const PEER_ENDED: Self = Self(1 << 5);
    /// `Eof` was told.
    pub(crate) const EOF_TOLD: Self = Self(1 << 6);
    /// `Hangup` is to be told.
    pub(crate) const HANGUP: Self = Self(1 << 7);
    /// `Hangup` was told.
    pub(crate) const HANGUP_TOLD: Self = Self(1 << 8);
    /// `Connected` is to be told.
    pub(crate) const CONNECTED: Self = Self(1 << 9);
    /// The output was above its high mark.
    pub(crate) const HIGH: Self = Self(1 << 10);
    /// `Drained` is to be told.
    pub(crate) const DRAINED: Self = Self(1 << 11);
    /// It is in the list of streams to send for.
    pub(crate) const DIRTY: Self = Self(1 << 12);
    /// It is in a list of streams to step.
    pub(crate) const READY: Self = Self(1 << 13);
    /// Others may share its open file: closing our descriptor does not end its reports.
    pub(crate) const SHARED: Self = Self(1 << 14);
    /// Our direction is to end once all is sent; the peer's goes on.
    pub(crate) const SEND_ENDS: Self = Self(1 << 15);
    /// Our direction has ended.
    pub(crate) const SEND_ENDED: Self = Self(1 << 16);
    /// Its end is to reach the peer as a reset.
    pub(crate) const RESETS: Self = Self(1 << 17);
    /// What is sent next is only sent if nothing has come before.
    pub(crate) const SILENT: Self = Self(1 << 18);
    /// `Broken` was told.
    pub(crate) const BROKEN_TOLD: Self = Self(1 << 19);
    /// An alarm is set to look at the progress of its peer.
    pub(crate) const PROGRESS: Self = Self(1 << 20);
    /// `EndAhead` was told.
    pub(crate) const END_AHEAD_TOLD: Self = Self(1 << 21);

    pub(crate) const fn has(self, mark: Self) -> bool {
        self.0 & mark.0 != 0
    }

    pub(crate) const fn set(&mut self, mark: Self) {
        self.0 |= mark.0;
    }

    pub(crate) const fn clear(&mut self, mark: Self) {
        self.0 &= !mark.0;
    }

    /// Clears the mark and tells whether it was set.
    pub(crate) const fn take(&mut self, mark: Self) -> bool {
        let had = self.has(mark);
        self.clear(mark);
        had
    }

    /// Any of several marks.
    const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Sets the mark and tells whether it was clear.
    pub(crate) const fn put(&mut self, mark: Self) -> bool {
        let had = self.has(mark);
        self.set(mark);
        !had
    }
}

/// Marks that make the next step another than to receive or to rest.
const SELDOM: Marks = Marks::CONNECTED
    .or(Marks::DRAINED)
    .or(Marks::HANGUP)
    .or(Marks::PAUSED)
    .or(Marks::OFFER)
    .or(Marks::EOF_TOLD)
    .or(Marks::PEER_ENDED);

/// What a stream wants done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing until something happens.
    Rest,
    /// Tell `Connected`.
    TellConnected,
    /// Tell `Drained`.
    TellDrained,
    /// Tell `Hangup`.
    TellHangup,
    /// Tell `EndAhead`.
    TellEndAhead,
    /// Tell `Broken`.
    TellBroken,
    /// Offer what is held.
    Offer {
        /// For the last time.
        last: bool,
    },
    /// Receive and offer.
    Receive,
    /// Receive and forget.
    Discard,
    /// Receive and pass on.
    Relay,
    /// Tell `Relayed`.
    TellRelayed,
    /// Tell `Eof`.
    TellEof,
    /// Tell `Closed` and forget the stream.
    Close(Reason),
}

impl Stream {
    pub(crate) fn new(fd: Option<Fd>, direction: Direction, limits: Arc<StreamLimits>) -> Self {
        let phase = if fd.is_some() { Phase::Open } else { Phase::Connecting { finish: false } };
        let mut marks = Marks::default();
        marks.set(Marks::WRITABLE);
        Self {
            fd,
            medium: FdKind::Socket,
            direction,
            phase,
            marks,
            hold: None,
            output: None,
            relay: None,
            limits,
            alarms: [Alarm::NONE; ALARMS],
            linger_ms: 0,
            key: OwnerKey::NONE,
        }
    }

    /// Bytes that wait to be sent.
    #[inline]
    pub(crate) fn queued(&self) -> usize {
        self.output.as_ref().map_or(0, |output| output.bytes())
    }

    /// Whether nothing can be sent any more, though what was received is still to be offered.
    #[inline]
    pub(crate) const fn is_broken(&self) -> bool {
        matches!(self.phase, Phase::Broken(_))
    }

    /// Whether the owner may still send.
    #[inline]
    pub(crate) fn takes_output(&self) -> bool {
        let open = matches!(self.phase, Phase::Open | Phase::Connecting { finish: false });
        open && self.direction != Direction::In && !self.marks.has(Marks::SEND_ENDS)
    }

    /// Whether the stream can send, and rests when all of its output has left.
    #[inline]
    pub(crate) fn sends_and_rests(&self) -> bool {
        let follows = SELDOM.or(Marks::READABLE).or(Marks::HIGH).or(Marks::SEND_ENDS);
        let open = matches!(self.phase, Phase::Open) && self.relay.is_none();
        open && self.marks.0 & follows.or(Marks::WRITABLE).0 == Marks::WRITABLE.0
    }

    /// Whether an end of our direction was asked for and is still to be made.
    #[inline]
    pub(crate) fn ends_sending(&self) -> bool {
        let asked = self.marks.has(Marks::SEND_ENDS) && !self.marks.has(Marks::SEND_ENDED);
        match self.phase {
            Phase::Open => asked,
            Phase::Flushing => true,
            _ => false,
        }
    }

    /// Whether there is something to send, or an end of our direction to make.
    #[inline]
    pub(crate) fn sends(&self) -> bool {
        self.queued() > 0 || self.ends_sending()
    }

    /// Takes note of what the kernel reported. A stream that still connects is asked elsewhere.
    #[inline]
    pub(crate) fn note(&mut self, readiness: Readiness) {
        if readiness.any(Readiness::READ) {
            self.marks.set(Marks::READABLE);
        }
        if readiness.any(Readiness::WRITE) {
            self.marks.set(Marks::WRITABLE);
        }
        if readiness.any(Readiness::READ_END | Readiness::HANGUP | Readiness::ERROR) {
            self.note_end(readiness);
        }
    }

    /// The peer's end or an error was reported.
    #[inline(never)]
    fn note_end(&mut self, readiness: Readiness) {
        self.marks.set(Marks::TO_THE_END);
        self.marks.set(Marks::READABLE);
        if !readiness.any(Readiness::HANGUP | Readiness::ERROR) {
            return;
        }
        self.marks.set(Marks::WRITABLE);
        match self.direction {
            // A pipe's reader has gone; there is nothing to receive that would tell.
            Direction::Out => self.break_off(Reason::Reset),
            // A pipe's writer has gone: the end comes behind the bytes, unless nobody takes them.
            Direction::In if !self.marks.has(Marks::PAUSED) => {}
            // Both directions have ended, one by our own wish: so this is the peer's end alone.
            Direction::Both
                if self.marks.has(Marks::SEND_ENDED) && !readiness.any(Readiness::ERROR) => {}
            Direction::In | Direction::Both => self.hang_up(),
        }
        // Behind its end nothing is received any more that would show the reset.
        if readiness.any(Readiness::ERROR) && self.marks.has(Marks::EOF_TOLD) {
            self.break_off(Reason::Reset);
        }
    }

    /// `Hangup` is due, once, and only while the owner can make use of it.
    fn hang_up(&mut self) {
        if self.phase == Phase::Open && self.marks.put(Marks::HANGUP_TOLD) {
            self.marks.set(Marks::HANGUP);
        }
    }

    /// Nothing can be sent any more. What was received is still to be offered.
    pub(crate) fn break_off(&mut self, reason: Reason) {
        if matches!(self.phase, Phase::Broken(_) | Phase::Ended(_)) {
            return;
        }
        if self.marks.has(Marks::PAUSED) {
            self.hang_up();
        }
        self.marks.clear(Marks::DRAINED);
        // What was discarded before must not be offered after all.
        self.phase = match self.phase {
            // How much was not sent is still to be told.
            Phase::Open if self.direction != Direction::Out => {
                if let Some(output) = &mut self.output {
                    output.forget();
                }
                Phase::Broken(reason)
            }
            // Its output stays until `Closed` is told, so that it can be said what was not sent.
            _ => Phase::Ended(reason),
        };
        self.marks.set(Marks::READABLE);
        self.marks.set(Marks::TO_THE_END);
    }

    /// It is over, whatever was still to come. Its output stays until `Closed` is told, so that it
    /// can be said what was not sent.
    pub(crate) fn end(&mut self, reason: Reason) {
        if !matches!(self.phase, Phase::Ended(_)) {
            self.phase = Phase::Ended(reason);
        }
    }

    /// The next step. Every step changes the state such that it is not the next one again, except
    /// `Receive` and `Discard`, which end with the budget.
    #[inline]
    pub(crate) fn step(&self) -> Step {
        // Nearly all steps are of an open stream of which nothing is to be told.
        if matches!(self.phase, Phase::Open) && !self.marks.has(SELDOM) && self.relay.is_none() {
            return match self.direction {
                Direction::In | Direction::Both if self.marks.has(Marks::READABLE) => Step::Receive,
                _ => Step::Rest,
            };
        }
        self.seldom_step()
    }

    fn seldom_step(&self) -> Step {
        match self.phase {
            Phase::Ended(reason) => return Step::Close(reason),
            Phase::Connecting { .. } => return Step::Rest,
            Phase::Open | Phase::Flushing | Phase::Lingering | Phase::Broken(_) => {}
        }
        if self.marks.has(Marks::CONNECTED) {
            return Step::TellConnected;
        }
        if self.marks.has(Marks::DRAINED) {
            return Step::TellDrained;
        }
        if self.marks.has(Marks::HANGUP) {
            return Step::TellHangup;
        }
        if self.has_end_ahead() {
            return Step::TellEndAhead;
        }
        match self.phase {
            _ if self.direction == Direction::Out => Step::Rest,
            Phase::Flushing | Phase::Lingering => self.step_of_finish(),
            Phase::Broken(reason) => match self.step_of_input() {
                // Its end waits for `resume`, and nothing else that happens may lead to that.
                Step::Rest if self.marks.has(Marks::PAUSED) && !self.marks.has(Marks::EOF_TOLD) => {
                    if self.marks.has(Marks::BROKEN_TOLD) {
                        Step::Rest
                    } else {
                        Step::TellBroken
                    }
                }
                // What was received is still on its way to the other stream.
                Step::Rest if self.relay.is_some() => Step::Rest,
                Step::Rest => Step::Close(reason),
                step => step,
            },
            _ => self.step_of_input(),
        }
    }

    /// Whether the end of its peer is known, and the owner does not hear of it before `resume`.
    fn has_end_ahead(&self) -> bool {
        let told = Marks::EOF_TOLD.or(Marks::HANGUP_TOLD).or(Marks::END_AHEAD_TOLD);
        let is_known = self.marks.has(Marks::TO_THE_END.or(Marks::PEER_ENDED));
        let waits = self.phase == Phase::Open && self.marks.has(Marks::PAUSED);
        let is_both = self.relay.is_none() && self.direction == Direction::Both;
        waits && is_known && !self.marks.has(told) && is_both
    }

    fn step_of_relay(&self, relay: &Relay) -> Step {
        if relay.accepted > 0 && relay.waits || self.relay_is_done() {
            return Step::TellRelayed;
        }
        let has_some = self.hold.is_some() || self.marks.has(Marks::READABLE) || relay.flies();
        let may = has_some && !relay.waits && !self.marks.has(Marks::PAUSED);
        if may && (relay.left > 0 || relay.flies()) {
            Step::Relay
        } else if relay.accepted > 0 {
            Step::TellRelayed
        } else {
            Step::Rest
        }
    }

    /// Discards until the peer's end; then the stream is over if our own direction is.
    fn step_of_finish(&self) -> Step {
        if self.marks.has(Marks::PEER_ENDED) {
            return match self.phase {
                Phase::Lingering => Step::Close(Reason::Clean),
                _ => Step::Rest,
            };
        }
        if self.marks.has(Marks::READABLE) { Step::Discard } else { Step::Rest }
    }

    /// Nothing comes any more that was not received yet.
    pub(crate) fn input_has_ended(&self) -> bool {
        self.marks.has(Marks::PEER_ENDED) || matches!(self.phase, Phase::Broken(_))
    }

    fn step_of_input(&self) -> Step {
        if let Some(relay) = &self.relay {
            return self.step_of_relay(relay);
        }
        if self.marks.has(Marks::PAUSED) || self.marks.has(Marks::EOF_TOLD) {
            return Step::Rest;
        }
        if self.marks.has(Marks::PEER_ENDED) {
            let held = self.hold.is_some();
            return if held { Step::Offer { last: true } } else { Step::TellEof };
        }
        if self.marks.has(Marks::OFFER) && self.hold.is_some() {
            return Step::Offer { last: false };
        }
        if self.marks.has(Marks::READABLE) { Step::Receive } else { Step::Rest }
    }
}

impl Stream {
    /// Whether a relay has come to its end, as far as accepting goes.
    pub(crate) fn relay_is_done(&self) -> bool {
        let Some(relay) = &self.relay else { return false };
        let nothing_more = relay.left == 0
            || (self.hold.is_none() && !self.marks.has(Marks::READABLE) && self.input_has_ended());
        relay.cut || (relay.flying == 0 && nothing_more)
    }
}
