//! A client's stream: what every front needs of it, whatever the client speaks.
//!
//! What it is: sending with back-pressure, pausing, the deadlines of an idle client and of one that
//! does not take its output, and the ways to end. What it must never know: a message.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::sync::Arc;
use std::time::Duration;

use event::{Calls, DeadlineName, StreamId};
use exchange::{AddressId, Peer, Slice};

use crate::listener::ListenerConfig;
use crate::rate::is_enough;
use flow::address_limits::Entry;
use flow::client::Source;

/// How long a client that has all its replies may keep its side open before the daemon ends.
pub const CLOSING_LINGER: Duration = Duration::from_secs(1);

/// The deadlines of a client's stream: when it is looked whether the client is idle, or takes its
/// output. A front has [`READ`] for what it waits for.
pub const LOOK: DeadlineName = DeadlineName(0);
pub const READ: DeadlineName = DeadlineName(1);

/// Times are ticks of the loop: what happens at every request only writes them down, and the
/// deadline is moved when it has come.
#[derive(Debug)]
pub(crate) struct Transport {
    stream: StreamId,
    listener: Arc<ListenerConfig>,
    peer: Address,
    /// Where its address is known, if that is limited.
    address: Option<AddressId>,
    /// When something happened last.
    rested: u64,
    /// It is watched whether it takes output.
    watching: bool,
    /// Neither side has said anything: since it was accepted the client has not begun a request. Until
    /// then `rested` is the time of its accept.
    silent: bool,
    paused: bool,
    /// Nothing more is read or answered; it ends once its output is sent.
    closing: bool,
    /// Its session is in the shard's list of those to flush.
    pub dirty: bool,
}

/// A peer's address in half the space, for most.
#[derive(Debug)]
enum Address {
    V4(Ipv4Addr, u16),
    V6(Box<SocketAddrV6>),
    Local,
    Inside,
}

impl From<Peer> for Address {
    fn from(peer: Peer) -> Self {
        match peer {
            Peer::Internet(SocketAddr::V4(address)) => Self::V4(*address.ip(), address.port()),
            Peer::Internet(SocketAddr::V6(address)) => Self::V6(Box::new(address)),
            Peer::Local => Self::Local,
            Peer::Inside => Self::Inside,
        }
    }
}

/// What a look at a client shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    Fine,
    /// It has not begun its first request in time.
    Silent,
    /// Nothing has happened for the time that a client may be idle.
    Idle,
    /// It has taken nothing for the time that it may take nothing.
    Stalled,
    /// It has taken less in that time than it must.
    Slow,
}

impl Transport {
    pub(crate) fn open(
        calls: &mut Calls<'_>,
        stream: StreamId,
        peer: Peer,
        entry: Option<Entry>,
        listener: Arc<ListenerConfig>,
    ) -> Self {
        calls.limits(stream, listener.limits);
        let looks = [listener.idle, listener.first_request_timeout];
        if let Some(first) = looks.into_iter().flatten().min() {
            calls.deadline_in(stream, LOOK, first);
        }
        Self {
            stream,
            listener,
            peer: peer.into(),
            address: entry.map(|entry| entry.address),
            rested: calls.tick(),
            watching: false,
            silent: true,
            paused: false,
            closing: false,
            dirty: false,
        }
    }

    pub(crate) const fn stream(&self) -> StreamId {
        self.stream
    }

    pub(crate) fn peer(&self) -> Peer {
        match &self.peer {
            Address::V4(ip, port) => Peer::Internet(SocketAddrV4::new(*ip, *port).into()),
            Address::V6(address) => Peer::Internet(SocketAddr::V6(**address)),
            Address::Local => Peer::Local,
            Address::Inside => Peer::Inside,
        }
    }

    /// Where its requests come from.
    pub(crate) fn source(&self) -> Source {
        Source::of_listener(self.peer(), self.listener.id)
    }

    pub(crate) fn entry(&self) -> Option<Entry> {
        self.address.map(|address| Entry { listener: self.listener.id, address })
    }

    pub(crate) const fn listener(&self) -> &Arc<ListenerConfig> {
        &self.listener
    }

    /// Its listener has other settings from now on, and its idle time begins anew: it may have had
    /// none, or a longer one.
    pub(crate) fn handle_listener(&mut self, calls: &mut Calls<'_>, listener: Arc<ListenerConfig>) {
        calls.limits(self.stream, listener.limits);
        self.listener = listener;
        self.rest(calls);
        self.arm_look(calls, self.listener.idle);
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

    /// Whether the client is gone, so that nothing reaches it, though its input may not be read yet.
    pub(crate) fn is_broken(&self, calls: &Calls<'_>) -> bool {
        calls.is_broken(self.stream)
    }

    /// Bytes that wait to be sent: none once the client is gone.
    pub(crate) fn queued(&self, calls: &Calls<'_>) -> usize {
        if self.is_broken(calls) { 0 } else { calls.queued(self.stream) }
    }

    /// Whether more output waits than should. The stream tells when it has fallen again only once
    /// it was above, so the mark itself still has room.
    pub(crate) fn is_clogged(&self, calls: &Calls<'_>) -> bool {
        self.queued(calls) > self.listener.limits.send_high
    }

    /// Whether a worker is to wait with the rest of a reply of which so many bytes have come.
    pub(crate) fn holds_back(&self, calls: &Calls<'_>, came: usize) -> bool {
        came >= self.listener.reply_buffered && self.is_clogged(calls)
    }

    pub(crate) fn send_bytes(&mut self, calls: &mut Calls<'_>, bytes: &[u8]) {
        if !bytes.is_empty() {
            calls.send_bytes(self.stream, bytes);
            self.sent(calls);
        }
    }

    /// Sends bytes without a copy of them.
    pub(crate) fn send(&mut self, calls: &mut Calls<'_>, slice: Slice) {
        if !slice.is_empty() {
            calls.send(self.stream, slice);
            self.sent(calls);
        }
    }

    fn sent(&mut self, calls: &mut Calls<'_>) {
        self.silent = false;
        self.rest(calls);
        self.watch_output(calls);
    }

    /// The client has sent something; `begun`: a request has begun with it, or had before.
    pub(crate) fn heard(&mut self, calls: &Calls<'_>, begun: bool) {
        self.silent &= !begun;
        if !self.silent {
            self.rest(calls);
        }
    }

    /// Whether neither side has said anything since the client connected.
    pub(crate) const fn is_silent(&self) -> bool {
        self.silent
    }

    /// Since which tick neither side has said anything.
    pub(crate) const fn rested(&self) -> u64 {
        self.rested
    }

    /// Something happened: the idle time begins anew.
    pub(crate) fn rest(&mut self, calls: &Calls<'_>) {
        self.rested = calls.tick();
    }

    /// What was begun must come to its end within `after`.
    pub(crate) fn arm_read(&self, calls: &mut Calls<'_>, after: Duration) {
        calls.deadline_in(self.stream, READ, after);
    }

    pub(crate) fn disarm_read(&self, calls: &mut Calls<'_>) {
        calls.deadline(self.stream, READ, None);
    }

    fn watch_output(&mut self, calls: &mut Calls<'_>) {
        if let (Some(stall), false) = (self.listener.write_stall, self.watching) {
            self.watching = true;
            let idle = self.listener.idle.unwrap_or(stall);
            calls.deadline_in(self.stream, LOOK, stall.min(idle));
        }
    }

    /// Output is to come that does not pass here.
    pub(crate) fn expect(&mut self, calls: &mut Calls<'_>) {
        self.watch_output(calls);
    }

    /// Some of that was taken.
    pub(crate) fn relayed(&mut self, calls: &mut Calls<'_>) {
        self.rest(calls);
        self.watch_output(calls);
    }

    /// The time to look at the client has come. `waited_for`: output waits for it that does not pass
    /// here. `idle`: how long nothing may happen.
    pub(crate) fn look(
        &mut self,
        calls: &mut Calls<'_>,
        waited_for: bool,
        idle: Option<Duration>,
    ) -> Look {
        let now = calls.tick();
        if let Some(stall) = self.listener.write_stall.filter(|_| self.watching) {
            match calls.output_wait(self.stream) {
                Some(wait) if wait.lasted < stall => {}
                Some(wait) if wait.taken == 0 => return Look::Stalled,
                Some(wait) if !is_enough(wait.taken, self.listener.send_rate_min, wait.lasted) => {
                    return Look::Slow;
                }
                Some(_) => calls.restart_output_wait(self.stream),
                None => self.watching = waited_for || self.queued(calls) > 0,
            }
        }
        let rested = Duration::from_millis(now - self.rested);
        let first = self.listener.first_request_timeout.filter(|_| self.silent);
        if first.is_some_and(|first| rested >= first) {
            return Look::Silent;
        }
        if idle.is_some_and(|idle| rested >= idle) {
            return Look::Idle;
        }
        self.arm_look(calls, idle);
        Look::Fine
    }

    /// The next look is when the client has been idle for long enough, or has stalled.
    pub(crate) fn arm_look(&self, calls: &mut Calls<'_>, idle: Option<Duration>) {
        let now = calls.tick();
        let first = self.listener.first_request_timeout.filter(|_| self.silent);
        let idle = [idle, first].into_iter().flatten().min();
        let idle = idle.map(|idle| left(idle, now - self.rested));
        let stall = self.listener.write_stall.filter(|_| self.watching);
        let waited = calls.output_wait(self.stream).map_or(Duration::ZERO, |wait| wait.lasted);
        let stall = stall.map(|stall| stall.saturating_sub(waited));
        if let Some(next) = [idle, stall].into_iter().flatten().min() {
            calls.deadline_in(self.stream, LOOK, next);
        }
    }

    /// The next look comes within this time.
    pub(crate) fn look_in(&self, calls: &mut Calls<'_>, time: Duration) {
        calls.deadline_in(self.stream, LOOK, time);
    }

    /// Ends the stream at once by a reset: what it was sent is not all.
    pub(crate) fn reset(&mut self, calls: &mut Calls<'_>) {
        self.closing = true;
        calls.reset(self.stream);
    }

    /// Ends our direction once its output is sent; what the client says goes on.
    pub(crate) fn finish_sending(&self, calls: &mut Calls<'_>) {
        calls.finish_sending(self.stream);
    }

    /// Ends the stream once its output is sent, and waits for the client's end for `linger` at
    /// most, or for the loop's own time.
    pub(crate) fn finish(&mut self, calls: &mut Calls<'_>, linger: Option<Duration>) {
        if !std::mem::replace(&mut self.closing, true) {
            calls.finish(self.stream, linger);
        }
    }
}

/// What is left of a time of which so many milliseconds have passed.
const fn left(of: Duration, passed: u64) -> Duration {
    of.saturating_sub(Duration::from_millis(passed))
}
