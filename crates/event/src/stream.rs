//! One stream: its state and its next step. Pure: without a kernel and without a handler.
//!
//! ```text
//!   connect ──► Connecting ──► Open ──finish──► Flushing ──all sent──► Lingering ──peer's end──► Clean
//!   accept, adopt ─────────────▲ │                  │                      └──linger passed──► Lingered
//!                                │                  │
//!                  reset, failed write          (as Open)
//!                                ▼
//!                             Broken: nothing can be sent any more; received bytes are still offered
//!                                │
//!   a limit, a refused connect ──┴──► Ended ──► `Closed`; the id becomes invalid
//! ```
//!
//! A stream that only sends (`Out`) goes from Flushing directly to its end.

use std::sync::Arc;

use block::Block;

use crate::kernel::{FdKind, Readiness};
use crate::output::Output;
use crate::relay::Relay;
use crate::wheel::Alarm;
use crate::{DEADLINES_MAX, Direction, Fd, OwnerKey, Reason, StreamLimits};

/// The number of alarms of a stream: its deadlines, and one for `finish`.
pub(crate) const ALARMS: usize = DEADLINES_MAX + 1;
/// The index of the alarm of `finish`.
pub(crate) const LINGER: usize = DEADLINES_MAX;

#[derive(Debug)]
pub(crate) struct Stream {
    /// `None` while a `connect` waits for the end of the turn.
    pub(crate) fd: Option<Fd>,
    pub(crate) fd_kind: FdKind,
    pub(crate) direction: Direction,
    pub(crate) phase: Phase,
    pub(crate) marks: Marks,
    /// Received bytes that were offered and not consumed. Never empty.
    pub(crate) unconsumed: Option<Block>,
    /// Bytes to send. `None` if there are none.
    pub(crate) output: Option<Box<Output>>,
    /// The relay that passes on the received bytes. `None` if the handler reads them.
    pub(crate) relay: Option<Box<Relay>>,
    /// Shared by all streams with the same limits.
    pub(crate) limits: Arc<StreamLimits>,
    pub(crate) alarms: [Alarm; ALARMS],
    /// How long `finish` waits, in milliseconds.
    pub(crate) linger_ms: u32,
    /// The owner, for the events about the stream.
    pub(crate) key: OwnerKey,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The kernel connects. `finish`: the stream ends after the queued bytes were sent.
    Connecting { finish: bool },
    /// Bytes flow.
    Open,
    /// `finish` was called, and output is waiting.
    Flushing,
    /// Our direction has ended; input is discarded until the peer's end.
    Lingering,
    /// Nothing can be sent any more.
    Broken(Reason),
    /// The stream has ended; only `Closed` is still to be delivered.
    Ended(Reason),
}

/// Facts about a stream, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks(u32);

impl Marks {
    /// The kernel may have bytes to receive.
    pub(crate) const READABLE: Self = Self(1);
    /// The end or an error follows those bytes: a short read does not mean that the kernel has no more.
    pub(crate) const TO_THE_END: Self = Self(1 << 1);
    /// The kernel may have room to send.
    pub(crate) const WRITABLE: Self = Self(1 << 2);
    /// The handler has paused `Data`.
    pub(crate) const PAUSED: Self = Self(1 << 3);
    /// The held bytes are to be offered again, because the handler resumed.
    pub(crate) const OFFER: Self = Self(1 << 4);
    /// The peer's end was received.
    pub(crate) const PEER_ENDED: Self = Self(1 << 5);
    /// `Eof` was delivered.
    pub(crate) const EOF_DELIVERED: Self = Self(1 << 6);
    /// `Hangup` is to be delivered.
    pub(crate) const HANGUP: Self = Self(1 << 7);
    /// `Hangup` was delivered or is to be delivered.
    pub(crate) const HANGUP_DELIVERED: Self = Self(1 << 8);
    /// `Connected` is to be delivered.
    pub(crate) const CONNECTED: Self = Self(1 << 9);
    /// The output was above its high-water mark.
    pub(crate) const HIGH: Self = Self(1 << 10);
    /// `Drained` is to be delivered.
    pub(crate) const DRAINED: Self = Self(1 << 11);
    /// The stream is in the list of streams to send for.
    pub(crate) const DIRTY: Self = Self(1 << 12);
    /// The stream is in a list of streams to step.
    pub(crate) const READY: Self = Self(1 << 13);
    /// Other processes may share its open file, so closing our descriptor does not stop its reports.
    pub(crate) const SHARED: Self = Self(1 << 14);
    /// Our direction is to end after all bytes are sent; the peer's direction continues.
    pub(crate) const SEND_ENDS: Self = Self(1 << 15);
    /// Our direction has ended.
    pub(crate) const SEND_ENDED: Self = Self(1 << 16);
    /// The stream is to end with a reset.
    pub(crate) const RESETS: Self = Self(1 << 17);
    /// The next output is sent only if nothing was received before.
    pub(crate) const SILENT: Self = Self(1 << 18);
    /// `Broken` was delivered.
    pub(crate) const BROKEN_DELIVERED: Self = Self(1 << 19);
    /// An alarm is set to measure the progress of the peer.
    pub(crate) const PROGRESS: Self = Self(1 << 20);
    /// `EndAhead` was delivered.
    pub(crate) const END_AHEAD_DELIVERED: Self = Self(1 << 21);
    /// The descriptor is to be returned to the handler at the end of the turn.
    pub(crate) const RELEASING: Self = Self(1 << 22);

    pub(crate) const fn has(self, mark: Self) -> bool {
        self.0 & mark.0 != 0
    }

    pub(crate) const fn set(&mut self, mark: Self) {
        self.0 |= mark.0;
    }

    pub(crate) const fn clear(&mut self, mark: Self) {
        self.0 &= !mark.0;
    }

    /// Clears the mark and returns whether it was set.
    pub(crate) const fn take(&mut self, mark: Self) -> bool {
        let had = self.has(mark);
        self.clear(mark);
        had
    }

    /// Combines marks, to test for any of them.
    pub(crate) const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Sets the mark and returns whether it was clear.
    pub(crate) const fn insert(&mut self, mark: Self) -> bool {
        let had = self.has(mark);
        self.set(mark);
        !had
    }
}

/// Marks with which the next step is usually neither `Receive` nor `Idle`.
const UNCOMMON: Marks = Marks::CONNECTED
    .or(Marks::DRAINED)
    .or(Marks::HANGUP)
    .or(Marks::PAUSED)
    .or(Marks::OFFER)
    .or(Marks::EOF_DELIVERED)
    .or(Marks::PEER_ENDED)
    .or(Marks::RELEASING);

/// The next step of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Do nothing until something happens.
    Idle,
    /// Deliver `Connected`.
    DeliverConnected,
    /// Deliver `Drained`.
    DeliverDrained,
    /// Deliver `Hangup`.
    DeliverHangup,
    /// Deliver `EndAhead`.
    DeliverEndAhead,
    /// Deliver `Broken`.
    DeliverBroken,
    /// Offer the held bytes.
    Offer {
        /// For the last time.
        last: bool,
    },
    /// Receive, and offer the bytes.
    Receive,
    /// Receive, and discard the bytes.
    Discard,
    /// Receive, and pass the bytes on.
    Relay,
    /// Deliver `Relayed`.
    DeliverRelayed,
    /// Deliver `Eof`.
    DeliverEof,
    /// Deliver `Closed` and remove the stream.
    Close(Reason),
}

impl Stream {
    pub(crate) fn new(fd: Option<Fd>, direction: Direction, limits: Arc<StreamLimits>) -> Self {
        let phase = if fd.is_some() { Phase::Open } else { Phase::Connecting { finish: false } };
        let mut marks = Marks::default();
        marks.set(Marks::WRITABLE);
        Self {
            fd,
            fd_kind: FdKind::Socket,
            direction,
            phase,
            marks,
            unconsumed: None,
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

    /// Whether nothing can be sent any more, although received bytes are still to be offered.
    #[inline]
    pub(crate) const fn is_broken(&self) -> bool {
        matches!(self.phase, Phase::Broken(_))
    }

    /// Whether the handler may still send.
    #[inline]
    pub(crate) fn takes_output(&self) -> bool {
        let open = matches!(self.phase, Phase::Open | Phase::Connecting { finish: false });
        let gone = Marks::SEND_ENDS.or(Marks::RELEASING);
        open && self.direction != Direction::In && !self.marks.has(gone)
    }

    /// Whether the descriptor can be returned to the handler.
    pub(crate) fn is_releasable(&self) -> bool {
        let open = self.phase == Phase::Open && self.relay.is_none();
        open && !self.ends_sending() && !self.marks.has(Marks::RELEASING)
    }

    /// Whether the stream can send, and has nothing else to do after all of its output was sent.
    #[inline]
    pub(crate) fn idle_after_send(&self) -> bool {
        let follows = UNCOMMON.or(Marks::READABLE).or(Marks::HIGH).or(Marks::SEND_ENDS);
        let open = matches!(self.phase, Phase::Open) && self.relay.is_none();
        open && self.marks.0 & follows.or(Marks::WRITABLE).0 == Marks::WRITABLE.0
    }

    /// Whether our direction must still be ended, as requested.
    #[inline]
    pub(crate) fn ends_sending(&self) -> bool {
        let asked = self.marks.has(Marks::SEND_ENDS) && !self.marks.has(Marks::SEND_ENDED);
        match self.phase {
            Phase::Open => asked,
            Phase::Flushing => true,
            _ => false,
        }
    }

    /// Whether there are bytes to send, or our direction is to be ended.
    #[inline]
    pub(crate) fn sends(&self) -> bool {
        self.queued() > 0 || self.ends_sending()
    }

    /// Records a report of the kernel. A stream that is still connecting is handled elsewhere.
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

    /// Records the peer's end or an error.
    #[inline(never)]
    fn note_end(&mut self, readiness: Readiness) {
        self.marks.set(Marks::TO_THE_END);
        self.marks.set(Marks::READABLE);
        if !readiness.any(Readiness::HANGUP | Readiness::ERROR) {
            return;
        }
        self.marks.set(Marks::WRITABLE);
        match self.direction {
            // The reader of the pipe is closed. No receive would report this, so the stream breaks here.
            Direction::Out => self.break_off(Reason::Reset),
            // The writer of the pipe is closed. The end is received after the bytes, unless the stream is paused.
            Direction::In if !self.marks.has(Marks::PAUSED) => {}
            // Both directions have ended, ours by our own request. So this is only the peer's end.
            Direction::Both
                if self.marks.has(Marks::SEND_ENDED) && !readiness.any(Readiness::ERROR) => {}
            Direction::In | Direction::Both => self.hang_up(),
        }
        // After `Eof` nothing is received any more, so no receive would report the reset.
        if readiness.any(Readiness::ERROR) && self.marks.has(Marks::EOF_DELIVERED) {
            self.break_off(Reason::Reset);
        }
    }

    /// Schedules `Hangup`, once, and only while the stream is open.
    fn hang_up(&mut self) {
        if self.phase == Phase::Open && self.marks.insert(Marks::HANGUP_DELIVERED) {
            self.marks.set(Marks::HANGUP);
        }
    }

    /// Breaks the stream: nothing can be sent any more. Received bytes are still offered.
    pub(crate) fn break_off(&mut self, reason: Reason) {
        if matches!(self.phase, Phase::Broken(_) | Phase::Ended(_)) {
            return;
        }
        if self.marks.has(Marks::PAUSED) {
            self.hang_up();
        }
        self.marks.clear(Marks::DRAINED);
        // Streams that discard their input end here, because discarded input must not be offered.
        self.phase = match self.phase {
            // The blocks are released. The number of unsent bytes is kept, because it is still to be reported.
            Phase::Open if self.direction != Direction::Out => {
                if let Some(output) = &mut self.output {
                    output.forget();
                }
                Phase::Broken(reason)
            }
            // The output is kept until `Closed` is delivered, to report the number of unsent bytes.
            _ => Phase::Ended(reason),
        };
        self.marks.set(Marks::READABLE);
        self.marks.set(Marks::TO_THE_END);
    }

    /// Ends the stream, regardless of pending input and output. The output is kept until `Closed` is delivered, to
    /// report the number of unsent bytes.
    pub(crate) fn end(&mut self, reason: Reason) {
        if !matches!(self.phase, Phase::Ended(_)) {
            self.phase = Phase::Ended(reason);
        }
    }

    /// Returns the next step. Every step changes the state so that it is not the next step again, except `Receive` and
    /// `Discard`, which the budget ends.
    #[inline]
    pub(crate) fn step(&self) -> Step {
        // The common case: an open stream without a pending event.
        if matches!(self.phase, Phase::Open) && !self.marks.has(UNCOMMON) && self.relay.is_none() {
            return match self.direction {
                Direction::In | Direction::Both if self.marks.has(Marks::READABLE) => Step::Receive,
                _ => Step::Idle,
            };
        }
        self.uncommon_step()
    }

    fn uncommon_step(&self) -> Step {
        // The handler gets no more events of the stream, whatever happens to it before the end of the turn.
        if self.marks.has(Marks::RELEASING) {
            return Step::Idle;
        }
        match self.phase {
            Phase::Ended(reason) => return Step::Close(reason),
            Phase::Connecting { .. } => return Step::Idle,
            Phase::Open | Phase::Flushing | Phase::Lingering | Phase::Broken(_) => {}
        }
        if self.marks.has(Marks::CONNECTED) {
            return Step::DeliverConnected;
        }
        if self.marks.has(Marks::DRAINED) {
            return Step::DeliverDrained;
        }
        if self.marks.has(Marks::HANGUP) {
            return Step::DeliverHangup;
        }
        if self.has_end_ahead() {
            return Step::DeliverEndAhead;
        }
        match self.phase {
            _ if self.direction == Direction::Out => Step::Idle,
            Phase::Flushing | Phase::Lingering => self.step_of_finish(),
            Phase::Broken(reason) => match self.step_of_input() {
                // The end waits for `resume`; nothing else may end the stream before.
                Step::Idle
                    if self.marks.has(Marks::PAUSED) && !self.marks.has(Marks::EOF_DELIVERED) =>
                {
                    if self.marks.has(Marks::BROKEN_DELIVERED) {
                        Step::Idle
                    } else {
                        Step::DeliverBroken
                    }
                }
                // Received bytes are still on their way to the other stream.
                Step::Idle if self.relay.is_some() => Step::Idle,
                Step::Idle => Step::Close(reason),
                step => step,
            },
            _ => self.step_of_input(),
        }
    }

    /// Whether the peer's end is known and is not delivered before `resume`.
    fn has_end_ahead(&self) -> bool {
        let delivered =
            Marks::EOF_DELIVERED.or(Marks::HANGUP_DELIVERED).or(Marks::END_AHEAD_DELIVERED);
        let is_known = self.marks.has(Marks::TO_THE_END.or(Marks::PEER_ENDED));
        let waits = self.phase == Phase::Open && self.marks.has(Marks::PAUSED);
        let is_both = self.relay.is_none() && self.direction == Direction::Both;
        waits && is_known && !self.marks.has(delivered) && is_both
    }

    fn step_of_relay(&self, relay: &Relay) -> Step {
        if relay.accepted > 0 && relay.waits || self.relay_is_done() {
            return Step::DeliverRelayed;
        }
        let has_some =
            self.unconsumed.is_some() || self.marks.has(Marks::READABLE) || relay.is_splicing();
        let may = has_some && !relay.waits && !self.marks.has(Marks::PAUSED);
        if may && (relay.left > 0 || relay.is_splicing()) {
            Step::Relay
        } else if relay.accepted > 0 {
            Step::DeliverRelayed
        } else {
            Step::Idle
        }
    }

    /// Discards input until the peer's end. Then the stream ends if our own direction has ended.
    fn step_of_finish(&self) -> Step {
        if self.marks.has(Marks::PEER_ENDED) {
            return match self.phase {
                Phase::Lingering => Step::Close(Reason::Clean),
                _ => Step::Idle,
            };
        }
        if self.marks.has(Marks::READABLE) { Step::Discard } else { Step::Idle }
    }

    /// Whether there is nothing more to receive.
    pub(crate) fn input_has_ended(&self) -> bool {
        self.marks.has(Marks::PEER_ENDED) || matches!(self.phase, Phase::Broken(_))
    }

    fn step_of_input(&self) -> Step {
        if let Some(relay) = &self.relay {
            return self.step_of_relay(relay);
        }
        if self.marks.has(Marks::PAUSED) || self.marks.has(Marks::EOF_DELIVERED) {
            return Step::Idle;
        }
        if self.marks.has(Marks::PEER_ENDED) {
            let held = self.unconsumed.is_some();
            return if held { Step::Offer { last: true } } else { Step::DeliverEof };
        }
        if self.marks.has(Marks::OFFER) && self.unconsumed.is_some() {
            return Step::Offer { last: false };
        }
        if self.marks.has(Marks::READABLE) { Step::Receive } else { Step::Idle }
    }
}

impl Stream {
    /// Whether a relay accepts no more bytes: it has reached its end, or its target is gone.
    pub(crate) fn relay_is_done(&self) -> bool {
        let Some(relay) = &self.relay else { return false };
        let nothing_more = relay.left == 0
            || (self.unconsumed.is_none()
                && !self.marks.has(Marks::READABLE)
                && self.input_has_ended());
        relay.target_gone || (relay.in_flight == 0 && nothing_more)
    }
}
