//! The stream of a client, as all protocols use it.
//!
//! What it is: sending with back-pressure, pausing, idle and write timeouts, and the ways to close. What it must never
//! depend on: a message.

use std::any::Any;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::sync::Arc;
use std::time::Duration;

use event::{Context, DeadlineName, StreamId};
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
    last_traffic: u64,
    /// The write timeout is active.
    watching: bool,
    /// The client has not begun a request since it was accepted. Until then `last_traffic` is the tick of the accept.
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
pub enum TimeoutCheck {
    /// No timeout has expired.
    Fine,
    /// `first_request_timeout` has expired.
    Silent,
    /// The idle timeout has expired.
    Idle,
    /// The client has read nothing for `send_timeout`.
    Stalled,
    /// The client has read less than `send_rate_min`.
    Slow,
}

impl Transport {
    pub(crate) fn open(
        io: &mut Context<'_>,
        stream: StreamId,
        peer: Peer,
        entry: Option<Entry>,
        listener: Arc<ConnectionConfig>,
    ) -> Self {
        io.limits(stream, listener.limits);
        let looks = [listener.idle, listener.first_request_timeout];
        if let Some(first) = looks.into_iter().flatten().min() {
            io.deadline_in(stream, LOOK, first);
        }
        Self {
            stream,
            listener,
            peer: peer.into(),
            address: entry.map(|entry| entry.address),
            last_traffic: io.tick(),
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
    pub fn handle_listener(&mut self, io: &mut Context<'_>, listener: Arc<ConnectionConfig>) {
        io.limits(self.stream, listener.limits);
        self.listener = listener;
        self.restart_idle(io);
        self.arm_look(io, self.listener.idle);
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
    pub fn pause(&mut self, io: &mut Context<'_>) {
        if !std::mem::replace(&mut self.paused, true) {
            io.pause(self.stream);
        }
    }

    /// Resumes reading.
    pub fn resume(&mut self, io: &mut Context<'_>) {
        if std::mem::replace(&mut self.paused, false) {
            io.resume(self.stream);
        }
    }

    /// Whether sending to the client has failed. Its input may be unread.
    pub fn is_broken(&self, io: &Context<'_>) -> bool {
        io.is_broken(self.stream)
    }

    /// Bytes in the output buffer: none after sending has failed.
    pub fn queued(&self, io: &Context<'_>) -> usize {
        if self.is_broken(io) { 0 } else { io.queued(self.stream) }
    }

    /// Whether more output waits than should. The stream tells when it has fallen again only once
    /// it was above, so the mark itself still has room.
    pub fn over_high_water(&self, io: &Context<'_>) -> bool {
        self.queued(io) > self.listener.limits.send_high
    }

    /// Whether a worker must pause a reply of which `came` bytes have arrived.
    pub fn holds_back(&self, io: &Context<'_>, came: usize) -> bool {
        came >= self.listener.reply_buffered && self.over_high_water(io)
    }

    /// Sends a copy of the bytes.
    pub fn send_bytes(&mut self, io: &mut Context<'_>, bytes: &[u8]) {
        if !bytes.is_empty() {
            io.send_bytes(self.stream, bytes);
            self.sent(io);
        }
    }

    /// Sends bytes without copying them.
    pub fn send(&mut self, io: &mut Context<'_>, slice: Slice) {
        if !slice.is_empty() {
            io.send(self.stream, slice);
            self.sent(io);
        }
    }

    fn sent(&mut self, io: &mut Context<'_>) {
        self.silent = false;
        self.restart_idle(io);
        self.watch_output(io);
    }

    /// Records received bytes. `begun`: a request has begun.
    pub(crate) fn record_input(&mut self, io: &Context<'_>, begun: bool) {
        self.silent &= !begun;
        if !self.silent {
            self.restart_idle(io);
        }
    }

    /// Whether no request has begun since the client connected.
    pub const fn is_silent(&self) -> bool {
        self.silent
    }

    /// The tick of the last traffic in either direction.
    pub(crate) const fn last_traffic(&self) -> u64 {
        self.last_traffic
    }

    /// Restarts the idle timeout.
    pub fn restart_idle(&mut self, io: &Context<'_>) {
        self.last_traffic = io.tick();
    }

    /// Sets the deadline of an incomplete request.
    pub fn arm_read(&self, io: &mut Context<'_>, after: Duration) {
        io.deadline_in(self.stream, READ, after);
    }

    /// Removes the deadline of an incomplete request.
    pub fn disarm_read(&self, io: &mut Context<'_>) {
        io.deadline(self.stream, READ, None);
    }

    fn watch_output(&mut self, io: &mut Context<'_>) {
        if let (Some(stall), false) = (self.listener.send_timeout, self.watching) {
            self.watching = true;
            let idle = self.listener.idle.unwrap_or(stall);
            io.deadline_in(self.stream, LOOK, stall.min(idle));
        }
    }

    /// Prepares for output that is forwarded directly to the stream.
    pub fn expect(&mut self, io: &mut Context<'_>) {
        self.watch_output(io);
    }

    /// Records that such output was read.
    pub fn relayed(&mut self, io: &mut Context<'_>) {
        self.restart_idle(io);
        self.watch_output(io);
    }

    /// Checks the timeouts. `waited_for`: output that is not in the buffer waits for the client; `idle`: the idle
    /// timeout.
    pub(crate) fn look(
        &mut self,
        io: &mut Context<'_>,
        waited_for: bool,
        idle: Option<Duration>,
    ) -> TimeoutCheck {
        let now = io.tick();
        if let Some(stall) = self.listener.send_timeout.filter(|_| self.watching) {
            match io.output_wait(self.stream) {
                Some(wait) if wait.lasted < stall => {}
                Some(wait) if wait.taken == 0 => return TimeoutCheck::Stalled,
                Some(wait) if !is_enough(wait.taken, self.listener.send_rate_min, wait.lasted) => {
                    return TimeoutCheck::Slow;
                }
                Some(_) => io.restart_output_wait(self.stream),
                None => self.watching = waited_for || self.queued(io) > 0,
            }
        }
        let last_traffic = Duration::from_millis(now - self.last_traffic);
        let first = self.listener.first_request_timeout.filter(|_| self.silent);
        if first.is_some_and(|first| last_traffic >= first) {
            return TimeoutCheck::Silent;
        }
        if idle.is_some_and(|idle| last_traffic >= idle) {
            return TimeoutCheck::Idle;
        }
        self.arm_look(io, idle);
        TimeoutCheck::Fine
    }

    /// Sets the next check to the earliest time at which a timeout can expire.
    pub fn arm_look(&self, io: &mut Context<'_>, idle: Option<Duration>) {
        let now = io.tick();
        let first = self.listener.first_request_timeout.filter(|_| self.silent);
        let idle = [idle, first].into_iter().flatten().min();
        let idle = idle.map(|idle| left(idle, now - self.last_traffic));
        let stall = self.listener.send_timeout.filter(|_| self.watching);
        let waited = io.output_wait(self.stream).map_or(Duration::ZERO, |wait| wait.lasted);
        let stall = stall.map(|stall| stall.saturating_sub(waited));
        if let Some(next) = [idle, stall].into_iter().flatten().min() {
            io.deadline_in(self.stream, LOOK, next);
        }
    }

    /// Sets the next check to `time` from now.
    pub fn look_in(&self, io: &mut Context<'_>, time: Duration) {
        io.deadline_in(self.stream, LOOK, time);
    }

    /// Resets the stream, because its output is incomplete.
    pub fn reset(&mut self, io: &mut Context<'_>) {
        self.closing = true;
        io.reset(self.stream);
    }

    /// Shuts down the sending direction after the output is sent. The client may still send.
    pub fn finish_sending(&self, io: &mut Context<'_>) {
        io.finish_sending(self.stream);
    }

    /// Closes the stream after its output is sent, and waits at most `linger` for the client's end, by default the
    /// time of the loop.
    pub fn finish(&mut self, io: &mut Context<'_>, linger: Option<Duration>) {
        if !std::mem::replace(&mut self.closing, true) {
            io.finish(self.stream, linger);
        }
    }
}

/// The rest of a duration of which `passed` milliseconds have elapsed.
const fn left(of: Duration, passed: u64) -> Duration {
    of.saturating_sub(Duration::from_millis(passed))
}
