//! The stream of a client, as all protocols use it.
//!
//! What it is: sending with back-pressure, pausing, idle and write timeouts, and the ways to close. What it must never
//! depend on: a message.

use std::any::Any;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::sync::Arc;
use std::time::Duration;

use event::{Calls, DeadlineName, StreamId};
use exchange::{AddressId, Peer, Slice};

use crate::connection::ConnectionConfig;
use crate::rate::is_enough;
use flow::address_limits::Entry;
use flow::client::Source;

/// How long a client that has received all replies may keep its side open during a drain.
pub const CLOSING_LINGER: Duration = Duration::from_secs(1);

/// The deadline at which idle and write timeouts are checked.
pub const LOOK: DeadlineName = DeadlineName(0);
/// The deadline for an incomplete request.
pub const READ: DeadlineName = DeadlineName(1);

/// The stream of a client. Traffic only records the tick of the loop; the deadline is moved when it expires.
#[derive(Debug)]
pub struct Transport {
    stream: StreamId,
    listener: Arc<ConnectionConfig>,
    peer: Address,
    /// The address under which the client was admitted, if the listener limits addresses.
    address: Option<AddressId>,
    /// The tick of the last traffic.
    rested: u64,
    /// The write timeout is active.
    watching: bool,
    /// The client has not begun a request since it was accepted. Until then `rested` is the tick of the accept.
    silent: bool,
    paused: bool,
    /// Nothing more is read or answered. The stream closes after its output is sent.
    closing: bool,
    /// The session is in the shard's list of sessions to flush.
    pub(crate) dirty: bool,
}

/// The address of a client, compact for IPv4.
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

/// The result of checking the timeouts of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// No timeout has expired.
    Fine,
    /// `first_request_timeout` has expired.
    Silent,
    /// The idle timeout has expired.
    Idle,
    /// The client has read nothing for `write_stall`.
    Stalled,
    /// The client has read less than `send_rate_min`.
    Slow,
}

impl Transport {
    pub(crate) fn open(
        calls: &mut Calls<'_>,
        stream: StreamId,
        peer: Peer,
        entry: Option<Entry>,
        listener: Arc<ConnectionConfig>,
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

    /// The stream.
    pub const fn stream(&self) -> StreamId {
        self.stream
    }

    /// The client.
    pub fn peer(&self) -> Peer {
        match &self.peer {
            Address::V4(ip, port) => Peer::Internet(SocketAddrV4::new(*ip, *port).into()),
            Address::V6(address) => Peer::Internet(SocketAddr::V6(**address)),
            Address::Local => Peer::Local,
            Address::Inside => Peer::Inside,
        }
    }

    /// The origin of its requests.
    pub fn source(&self) -> Source {
        Source::of_listener(self.peer(), self.listener.id)
    }

    /// The address under which the client was admitted, if the listener limits addresses.
    pub fn entry(&self) -> Option<Entry> {
        self.address.map(|address| Entry { listener: self.listener.id, address })
    }

    /// The configuration of the connections of its listener.
    pub const fn listener(&self) -> &Arc<ConnectionConfig> {
        &self.listener
    }

    /// The configuration of its protocol, if it has this type.
    pub fn protocol_config<T: Any>(&self) -> Option<&T> {
        self.listener.protocol.downcast_ref()
    }

    /// Applies new settings of the listener. The idle timeout restarts, because the old one may have been longer.
    pub fn handle_listener(&mut self, calls: &mut Calls<'_>, listener: Arc<ConnectionConfig>) {
        calls.limits(self.stream, listener.limits);
        self.listener = listener;
        self.rest(calls);
        self.arm_look(calls, self.listener.idle);
    }

    /// Whether reading is paused.
    pub const fn is_paused(&self) -> bool {
        self.paused
    }

    /// Whether the stream closes after its output is sent.
    pub const fn is_closing(&self) -> bool {
        self.closing
    }

    /// Pauses reading.
    pub fn pause(&mut self, calls: &mut Calls<'_>) {
        if !std::mem::replace(&mut self.paused, true) {
            calls.pause(self.stream);
        }
    }

    /// Resumes reading.
    pub fn resume(&mut self, calls: &mut Calls<'_>) {
        if std::mem::replace(&mut self.paused, false) {
            calls.resume(self.stream);
        }
    }

    /// Whether sending to the client has failed. Its input may be unread.
    pub fn is_broken(&self, calls: &Calls<'_>) -> bool {
        calls.is_broken(self.stream)
    }

    /// Bytes in the output buffer: none after sending has failed.
    pub fn queued(&self, calls: &Calls<'_>) -> usize {
        if self.is_broken(calls) { 0 } else { calls.queued(self.stream) }
    }

    /// Whether more output waits than should. The stream tells when it has fallen again only once
    /// it was above, so the mark itself still has room.
    pub fn is_clogged(&self, calls: &Calls<'_>) -> bool {
        self.queued(calls) > self.listener.limits.send_high
    }

    /// Whether a worker must pause a reply of which `came` bytes have arrived.
    pub fn holds_back(&self, calls: &Calls<'_>, came: usize) -> bool {
        came >= self.listener.reply_buffered && self.is_clogged(calls)
    }

    /// Sends a copy of the bytes.
    pub fn send_bytes(&mut self, calls: &mut Calls<'_>, bytes: &[u8]) {
        if !bytes.is_empty() {
            calls.send_bytes(self.stream, bytes);
            self.sent(calls);
        }
    }

    /// Sends bytes without copying them.
    pub fn send(&mut self, calls: &mut Calls<'_>, slice: Slice) {
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

    /// Records received bytes. `begun`: a request has begun.
    pub(crate) fn heard(&mut self, calls: &Calls<'_>, begun: bool) {
        self.silent &= !begun;
        if !self.silent {
            self.rest(calls);
        }
    }

    /// Whether no request has begun since the client connected.
    pub const fn is_silent(&self) -> bool {
        self.silent
    }

    /// The tick of the last traffic in either direction.
    pub(crate) const fn rested(&self) -> u64 {
        self.rested
    }

    /// Restarts the idle timeout.
    pub fn rest(&mut self, calls: &Calls<'_>) {
        self.rested = calls.tick();
    }

    /// Sets the deadline of an incomplete request.
    pub fn arm_read(&self, calls: &mut Calls<'_>, after: Duration) {
        calls.deadline_in(self.stream, READ, after);
    }

    /// Removes the deadline of an incomplete request.
    pub fn disarm_read(&self, calls: &mut Calls<'_>) {
        calls.deadline(self.stream, READ, None);
    }

    fn watch_output(&mut self, calls: &mut Calls<'_>) {
        if let (Some(stall), false) = (self.listener.write_stall, self.watching) {
            self.watching = true;
            let idle = self.listener.idle.unwrap_or(stall);
            calls.deadline_in(self.stream, LOOK, stall.min(idle));
        }
    }

    /// Prepares for output that is forwarded directly to the stream.
    pub fn expect(&mut self, calls: &mut Calls<'_>) {
        self.watch_output(calls);
    }

    /// Records that such output was read.
    pub fn relayed(&mut self, calls: &mut Calls<'_>) {
        self.rest(calls);
        self.watch_output(calls);
    }

    /// Checks the timeouts. `waited_for`: output that is not in the buffer waits for the client; `idle`: the idle
    /// timeout.
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

    /// Sets the next check to the earliest time at which a timeout can expire.
    pub fn arm_look(&self, calls: &mut Calls<'_>, idle: Option<Duration>) {
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

    /// Sets the next check to `time` from now.
    pub fn look_in(&self, calls: &mut Calls<'_>, time: Duration) {
        calls.deadline_in(self.stream, LOOK, time);
    }

    /// Resets the stream, because its output is incomplete.
    pub fn reset(&mut self, calls: &mut Calls<'_>) {
        self.closing = true;
        calls.reset(self.stream);
    }

    /// Shuts down the sending direction after the output is sent. The client may still send.
    pub fn finish_sending(&self, calls: &mut Calls<'_>) {
        calls.finish_sending(self.stream);
    }

    /// Closes the stream after its output is sent, and waits at most `linger` for the client's end, by default the
    /// time of the loop.
    pub fn finish(&mut self, calls: &mut Calls<'_>, linger: Option<Duration>) {
        if !std::mem::replace(&mut self.closing, true) {
            calls.finish(self.stream, linger);
        }
    }
}

/// The rest of a duration of which `passed` milliseconds have elapsed.
const fn left(of: Duration, passed: u64) -> Duration {
    of.saturating_sub(Duration::from_millis(passed))
}
