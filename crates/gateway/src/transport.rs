//! A client's stream: what every front needs of it, whatever the client speaks.
//!
//! What it is: sending with back-pressure, pausing, the deadlines of an idle client and of one that
//! does not take its output, and the ways to end. What it must never know: a message.

use std::sync::Arc;
use std::time::Duration;

use event::{Calls, DeadlineName, StreamId};
use exchange::{Peer, Slice};

use crate::door::Entry;
use crate::plan::ListenerPlan;

/// The deadlines of a client's stream. A front has [`READ`] for what it waits for.
pub(crate) const IDLE: DeadlineName = DeadlineName(0);
pub(crate) const READ: DeadlineName = DeadlineName(1);
pub(crate) const WRITE: DeadlineName = DeadlineName(2);

#[derive(Debug)]
pub(crate) struct Transport {
    stream: StreamId,
    peer: Peer,
    /// Where its address is known, if that is limited.
    entry: Option<Entry>,
    listener: Arc<ListenerPlan>,
    paused: bool,
    /// Nothing more is read or owed; it ends once its output is sent.
    closing: bool,
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

impl Transport {
    pub(crate) fn open(
        calls: &mut Calls<'_>,
        stream: StreamId,
        peer: Peer,
        entry: Option<Entry>,
        listener: Arc<ListenerPlan>,
    ) -> Self {
        calls.limits(stream, listener.limits);
        let stall = Stall::default();
        let transport =
            Self { stream, peer, entry, listener, paused: false, closing: false, stall };
        transport.rest(calls);
        transport
    }

    pub(crate) const fn stream(&self) -> StreamId {
        self.stream
    }

    pub(crate) const fn peer(&self) -> Peer {
        self.peer
    }

    pub(crate) const fn entry(&self) -> Option<Entry> {
        self.entry
    }

    pub(crate) const fn listener(&self) -> &Arc<ListenerPlan> {
        &self.listener
    }

    pub(crate) const fn is_paused(&self) -> bool {
        self.paused
    }

    pub(crate) const fn is_closing(&self) -> bool {
        self.closing
    }

    pub(crate) fn pause(&mut self, calls: &mut Calls<'_>) {
        if !std::mem::replace(&mut self.paused, true) {
            calls.pause(self.stream);
        }
    }

    pub(crate) fn resume(&mut self, calls: &mut Calls<'_>) {
        if std::mem::replace(&mut self.paused, false) {
            calls.resume(self.stream);
        }
    }

    pub(crate) fn queued(&self, calls: &Calls<'_>) -> usize {
        calls.queued(self.stream)
    }

    /// Whether more output waits than should. The stream tells when it has fallen again only once
    /// it was above, so the mark itself still has room.
    pub(crate) fn is_clogged(&self, calls: &Calls<'_>) -> bool {
        self.queued(calls) > self.listener.limits.send_high
    }

    pub(crate) fn send_bytes(&mut self, calls: &mut Calls<'_>, bytes: &[u8]) {
        if !bytes.is_empty() {
            calls.send_bytes(self.stream, bytes);
            self.sent(calls, bytes.len());
        }
    }

    /// Sends bytes without a copy of them.
    pub(crate) fn send(&mut self, calls: &mut Calls<'_>, slice: Slice) {
        let length = slice.len();
        if length > 0 {
            calls.send(self.stream, slice);
            self.sent(calls, length);
        }
    }

    fn sent(&mut self, calls: &mut Calls<'_>, length: usize) {
        self.stall.offered += length as u64;
        self.watch_output(calls);
        self.rest(calls);
    }

    /// Something happened: the idle time begins anew.
    pub(crate) fn rest(&self, calls: &mut Calls<'_>) {
        if let Some(idle) = self.listener.idle {
            calls.deadline_in(self.stream, IDLE, idle);
        }
    }

    /// What was begun must come to its end within `after`.
    pub(crate) fn arm_read(&self, calls: &mut Calls<'_>, after: Duration) {
        calls.deadline_in(self.stream, READ, after);
    }

    pub(crate) fn disarm_read(&self, calls: &mut Calls<'_>) {
        calls.deadline(self.stream, READ, None);
    }

    fn watch_output(&mut self, calls: &mut Calls<'_>) {
        if let (Some(stall), false) = (self.listener.write_stall, self.stall.armed) {
            self.stall.armed = true;
            self.stall.accepted = self.accepted(calls);
            calls.deadline_in(self.stream, WRITE, stall);
        }
    }

    fn accepted(&self, calls: &Calls<'_>) -> u64 {
        self.stall.offered - calls.queued(self.stream) as u64
    }

    /// The time to look whether the client takes its output has come. True when it took nothing.
    pub(crate) fn handle_write_deadline(&mut self, calls: &mut Calls<'_>) -> bool {
        self.stall.armed = false;
        let accepted = self.accepted(calls);
        if accepted == self.stall.offered {
            return false;
        }
        let stalled = accepted == self.stall.accepted;
        if !stalled {
            self.watch_output(calls);
        }
        stalled
    }

    /// Ends the stream once its output is sent, and waits for the client's end for `linger` at
    /// most, or for the loop's own time.
    pub(crate) fn finish(&mut self, calls: &mut Calls<'_>, linger: Option<Duration>) {
        if !std::mem::replace(&mut self.closing, true) {
            calls.finish(self.stream, linger);
        }
    }
}
