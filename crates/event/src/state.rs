//! The state of a loop, without its kernel and its mail.
//!
//! [`crate::Context`] records the requests of the handler here; the turn carries them out.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::datagram::Datagrams;
use crate::kernel::FdKind;
use crate::listener::Listener;
use crate::output::{Output, OutputPool};
use crate::slab::Slab;
use crate::stream::{LINGER, Marks, Step, Stream};
use crate::wait::Wait;
use crate::wheel::{Alarm, TICK_MAX, Wheel};
use crate::{
    Address, Fd, KernelError, ListenerId, LoopSettings, OwnerKey, Reason, Released, SocketId,
    StreamId, StreamLimits, TimerId,
};

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) streams: Slab<Stream>,
    /// The distinct limits that streams have; there are only a few.
    limits: Vec<Arc<StreamLimits>>,
    pub(crate) listeners: Slab<Listener>,
    pub(crate) sockets: Slab<Datagrams>,
    /// For each target of a relay, the stream that its bytes come from.
    pub(crate) relays: BTreeMap<StreamId, StreamId>,
    pub(crate) timers: Slab<Timer>,
    pub(crate) wheel: Wheel<AlarmKind>,
    pub(crate) clock: Clock,
    pub(crate) work: Work,
    pub(crate) outputs: OutputPool,
    pub(crate) settings: LoopSettings,
    pub(crate) counts: Counts,
    pub(crate) stopped: bool,
    /// The stream whose `Closed` is being delivered, and the number of unsent bytes of its output.
    pub(crate) unsent: Option<(StreamId, usize)>,
    /// The number of bytes that were sent to the same stream and not read by its reader.
    pub(crate) unread: u64,
    /// Returns the number of bytes that a pipe has accepted and that were not read
    /// ([`Kernel::unread`](crate::Kernel::unread)).
    pub(crate) unread_in_pipe: fn(&Fd) -> io::Result<u64>,
}

/// A timer of the handler.
#[derive(Debug)]
pub(crate) struct Timer {
    pub(crate) alarm: Alarm,
    /// The owner, for the events about the timer.
    pub(crate) key: OwnerKey,
}

/// The purpose of an alarm.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AlarmKind {
    Deadline {
        stream: StreamId,
        slot: u8,
    },
    Timer(TimerId),
    Listener(ListenerId),
    /// For a stream whose output has waited for a while. The alarm is removed when it has fired.
    Progress(StreamId),
}

/// The work that is to be done, by kind. Each stream is at most once in `ready` or `later` (mark `READY`) and at most
/// once in `dirty` (mark `DIRTY`).
#[derive(Debug, Default)]
pub(crate) struct Work {
    /// To step in this turn, or in the next if this turn has already stepped its streams.
    pub(crate) ready: Vec<StreamId>,
    /// To step in the next turn: they have used up the budget of this turn.
    pub(crate) later: Vec<StreamId>,
    /// They have output to send, or a direction to end.
    pub(crate) dirty: Vec<StreamId>,
    pub(crate) opening: Vec<(StreamId, Opening)>,
    /// Listeners that are to be watched or unwatched.
    pub(crate) listeners: Vec<ListenerId>,
    /// Listeners that could not be watched; this is to be reported.
    pub(crate) failed: Vec<(ListenerId, KernelError)>,
    /// Datagram sockets that are to be watched.
    pub(crate) sockets_opening: Vec<SocketId>,
    /// Datagram sockets that could not be watched; this is to be reported.
    pub(crate) sockets_failed: Vec<(SocketId, KernelError)>,
    /// Datagram sockets to receive from in the next turn: they have used up the budget of this turn.
    pub(crate) sockets_ready: Vec<SocketId>,
    /// Datagram sockets to send for.
    pub(crate) sockets_dirty: Vec<SocketId>,
    /// Streams whose descriptors are to be returned to the handler.
    pub(crate) releasing: Vec<StreamId>,
    /// Descriptors that are to be delivered to the handler.
    pub(crate) released: Vec<(StreamId, OwnerKey, Box<Released>)>,
    /// Descriptors to close.
    pub(crate) closing: Vec<ClosingFd>,
}

#[derive(Debug)]
pub(crate) struct ClosingFd {
    pub(crate) fd: Fd,
    /// Whether it must be unwatched first.
    pub(crate) watched: bool,
    /// Whether its close must be a reset.
    pub(crate) resets: bool,
}

#[derive(Debug)]
pub(crate) enum Opening {
    Adopt,
    WatchProcess,
    Connect(Address),
    KeepAlive(Duration),
}

/// What a loop has done since its start, as plain counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Turns.
    pub turns: u64,
    /// Reports of the kernel.
    pub reports: u64,
    /// Reports and calls for ids that were no longer valid; they were dropped.
    pub stale: u64,
    /// Accepted connections.
    pub accepted: u64,
    /// Calls to receive.
    pub receives: u64,
    /// Received bytes.
    pub received: u64,
    /// Calls to send.
    pub sends: u64,
    /// Sent bytes.
    pub sent: u64,
    /// Insertions of deadlines and timers into a slot of the timing wheel.
    pub filings: u64,
    /// Datagrams that could not be sent, or were too long to be received.
    pub datagrams_lost: u64,
    /// Messages read from the mailbox.
    pub mail: u64,
}

/// The time of the loop: read once per turn or more often, in ticks of one millisecond since the start of the loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: Instant,
    now: Instant,
    /// The time from the origin until now.
    since: Duration,
    /// The first tick that is not before now.
    now_tick: u64,
    /// See [`Context::settled`](crate::Context::settled).
    settled: Instant,
}

impl Clock {
    pub(crate) const fn new(now: Instant) -> Self {
        Self { origin: now, now, since: Duration::ZERO, now_tick: 0, settled: now }
    }

    pub(crate) const fn now(&self) -> Instant {
        self.now
    }

    pub(crate) const fn now_tick(&self) -> u64 {
        self.now_tick
    }

    pub(crate) fn set(&mut self, now: Instant) {
        self.now = now;
        self.since = now.saturating_duration_since(self.origin);
        self.now_tick = ceiling_ms(self.since);
    }

    pub(crate) const fn settled(&self) -> Instant {
        self.settled
    }

    pub(crate) fn settle(&mut self, at: Instant) {
        self.settled = self.settled.max(at);
    }

    /// A tick at which `after` has passed since now.
    #[inline]
    pub(crate) fn tick_in(&self, after: Duration) -> u64 {
        // Neither number exceeds half of the largest tick.
        self.now_tick + ceiling_ms(after)
    }

    /// The first tick at which `at` has passed: rounded up, so that nothing fires early.
    pub(crate) fn tick_after(&self, at: Instant) -> u64 {
        ceiling_ms(at.saturating_duration_since(self.origin))
    }

    /// The last tick that has passed when all events until then were delivered.
    pub(crate) fn settled_tick(&self) -> u64 {
        whole_ms(self.settled.saturating_duration_since(self.origin))
    }

    /// The time from now until a tick.
    pub(crate) fn until(&self, tick: u64) -> Duration {
        Duration::from_millis(tick).saturating_sub(self.since)
    }
}

/// Rounds up to milliseconds, at most [`SPAN_MAX`].
#[inline]
pub(crate) fn ceiling_ms(duration: Duration) -> u64 {
    let ms = duration.subsec_nanos().div_ceil(1_000_000);
    duration.as_secs().saturating_mul(1000).saturating_add(u64::from(ms)).min(SPAN_MAX)
}

/// 300 million years; a later time never comes.
const SPAN_MAX: u64 = TICK_MAX / 2;

fn whole_ms(duration: Duration) -> u64 {
    duration.as_secs().saturating_mul(1000).saturating_add(u64::from(duration.subsec_millis()))
}

impl State {
    pub(crate) fn new(
        now: Instant,
        settings: LoopSettings,
        unread_in_pipe: fn(&Fd) -> io::Result<u64>,
    ) -> Self {
        Self {
            streams: Slab::new(),
            limits: Vec::new(),
            listeners: Slab::new(),
            sockets: Slab::new(),
            relays: BTreeMap::new(),
            timers: Slab::new(),
            wheel: Wheel::new(),
            clock: Clock::new(now),
            work: Work::default(),
            outputs: OutputPool::default(),
            settings,
            counts: Counts::default(),
            stopped: false,
            unsent: None,
            unread: 0,
            unread_in_pipe,
        }
    }

    /// Returns shared limits that are equal to `limits`; all streams with the same limits share them.
    pub(crate) fn shared_limits(&mut self, limits: StreamLimits) -> Arc<StreamLimits> {
        if let Some(found) = self.limits.iter().find(|it| ***it == limits) {
            return Arc::clone(found);
        }
        self.limits.retain(|it| Arc::strong_count(it) > 1);
        let shared = Arc::new(limits);
        self.limits.push(Arc::clone(&shared));
        shared
    }

    pub(crate) fn add_stream(&mut self, stream: Stream) -> StreamId {
        let (index, generation) = self.streams.insert(stream);
        StreamId { index, generation }
    }

    /// Returns the stream of an id; an invalid id is counted as stale.
    pub(crate) fn stream(&mut self, id: StreamId) -> Option<&mut Stream> {
        let stream = self.streams.get_mut(id.index, id.generation);
        if stream.is_none() {
            self.counts.stale += 1;
        }
        stream
    }

    /// Removes a stream and everything that it owns. Its descriptor is closed at the end of the turn.
    pub(crate) fn remove_stream(&mut self, id: StreamId) -> bool {
        let Some(stream) = self.streams.remove(id.index, id.generation) else { return false };
        if let Some(relay) = &stream.relay {
            self.relays.remove(&relay.to);
        }
        self.update_relay_to(id, true);
        for alarm in stream.alarms {
            if alarm != Alarm::NONE {
                self.wheel.remove(alarm);
            }
        }
        if let Some(output) = stream.output {
            self.outputs.give(output);
        }
        if let Some(fd) = stream.fd {
            let watched = stream.marks.has(Marks::SHARED);
            let resets = stream.marks.has(Marks::RESETS);
            self.work.closing.push(ClosingFd { fd, watched, resets });
        }
        true
    }

    /// Returns the datagram socket of an id; an invalid id is counted as stale.
    pub(crate) fn socket(&mut self, id: SocketId) -> Option<&mut Datagrams> {
        let socket = self.sockets.get_mut(id.index, id.generation);
        if socket.is_none() {
            self.counts.stale += 1;
        }
        socket
    }

    /// Removes a datagram socket. Its descriptor is closed at the end of the turn.
    pub(crate) fn remove_socket(&mut self, id: SocketId) -> bool {
        let Some(socket) = self.sockets.remove(id.index, id.generation) else { return false };
        self.work.closing.push(ClosingFd { fd: socket.fd, watched: true, resets: false });
        true
    }

    pub(crate) fn postpone_socket(&mut self, id: SocketId) {
        let Some(socket) = self.sockets.get_mut(id.index, id.generation) else { return };
        if !std::mem::replace(&mut socket.ready, true) {
            self.work.sockets_ready.push(id);
        }
    }

    pub(crate) fn mark_socket_dirty(&mut self, id: SocketId) {
        let Some(socket) = self.sockets.get_mut(id.index, id.generation) else { return };
        if !std::mem::replace(&mut socket.dirty, true) {
            self.work.sockets_dirty.push(id);
        }
    }

    /// Whether a stream exists and has a step to do.
    #[inline]
    pub(crate) fn has_step(&self, id: StreamId) -> bool {
        let stream = self.streams.get(id.index, id.generation);
        stream.is_some_and(|stream| stream.step() != Step::Idle)
    }

    /// Puts a stream on the list of this turn if it has a step to do.
    pub(crate) fn wake(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(id.index, id.generation) else { return };
        if stream.step() != Step::Idle && stream.marks.insert(Marks::READY) {
            self.work.ready.push(id);
        }
    }

    /// Puts a stream on the list of the next turn.
    pub(crate) fn postpone(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(id.index, id.generation) else { return };
        if stream.marks.insert(Marks::READY) {
            self.work.later.push(id);
        }
    }

    /// Puts a stream on the list of streams to send for.
    pub(crate) fn mark_dirty(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(id.index, id.generation) else { return };
        if stream.marks.insert(Marks::DIRTY) {
            self.work.dirty.push(id);
        }
    }

    /// Ends a stream from our side. `Closed` follows later in this turn or in the next.
    pub(crate) fn end(&mut self, id: StreamId, reason: Reason) {
        if let Some(stream) = self.streams.get_mut(id.index, id.generation) {
            stream.end(reason);
            self.wake(id);
        }
    }

    /// Queues output with `push` and returns the number of waiting bytes, or 0 if the stream takes no output.
    pub(crate) fn queue(&mut self, id: StreamId, push: impl FnOnce(&mut Output)) -> usize {
        let Some(stream) = self.streams.get_mut(id.index, id.generation) else {
            self.counts.stale += 1;
            return 0;
        };
        if !stream.takes_output() {
            return 0;
        }
        let spares = &mut self.outputs;
        let output = stream.output.get_or_insert_with(|| spares.take());
        push(output);
        let (queued, send_max) = (output.bytes(), stream.limits.send_max);
        // The limit applies to memory. If the memory exceeds it, the waiting bytes are first copied into blocks that
        // they fill. The memory is never less than the waiting bytes.
        if output.held() > send_max && (queued > send_max || !output.fits(send_max)) {
            self.end(id, Reason::SendBufferFull);
            return queued;
        }
        if queued == 0 {
            stream.output = None;
            return 0;
        }
        if queued > stream.limits.send_high {
            stream.marks.set(Marks::HIGH);
        }
        // While the kernel has no room, its next report puts the stream back on the list.
        if stream.marks.has(Marks::WRITABLE) && stream.marks.insert(Marks::DIRTY) {
            self.work.dirty.push(id);
        }
        queued
    }

    /// Updates the relay whose target is this stream: which bytes the target has accepted, and whether it has room
    /// again. `gone`: the target accepts no more.
    #[inline]
    pub(crate) fn update_relay_to(&mut self, to: StreamId, gone: bool) {
        if !self.relays.is_empty() {
            self.update_relay(to, gone);
        }
    }

    fn update_relay(&mut self, to: StreamId, gone: bool) {
        let Some(&from) = self.relays.get(&to) else { return };
        let other = self.streams.get(to.index, to.generation);
        let gone = gone || other.is_some_and(Stream::is_broken);
        let (queued, room) = other.map_or((0, false), |other| {
            let queued = other.queued();
            (queued, other.marks.has(Marks::WRITABLE) && queued <= other.limits.send_low)
        });
        let Some(stream) = self.streams.get_mut(from.index, from.generation) else { return };
        let Some(relay) = &mut stream.relay else { return };
        if gone {
            relay.target_gone = true;
        } else if !relay.is_splicing() {
            let accepted = relay.in_flight.saturating_sub(queued);
            relay.in_flight -= accepted;
            relay.accepted += accepted as u64;
        }
        relay.waits &= !room;
        self.wake(from);
    }

    /// The number of watched descriptors, including the waker's, or more.
    pub(crate) fn watched(&self) -> usize {
        self.streams.len() + self.listeners.len() + self.sockets.len() + 1
    }

    /// Returns the wait for the peer of a stream, from its output or from the relay to it, and how many bytes of it the
    /// kernel has accepted. `None` while the kernel has room.
    pub(crate) fn wait(&mut self, id: StreamId) -> Option<(&mut Wait, u64)> {
        let stream = self.streams.get(id.index, id.generation)?;
        if stream.output.as_ref().is_some_and(|output| output.waits()) {
            return self.streams.get_mut(id.index, id.generation)?.output.as_mut()?.wait();
        }
        let from = self.relays.get(&id)?;
        self.streams.get_mut(from.index, from.generation)?.relay.as_mut()?.wait()
    }

    /// The kernel has no more room for the output of a stream. If progress is to be measured and the descriptor is a
    /// socket, the kernel is asked later how much the peer has acknowledged.
    pub(crate) fn wait_begins(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get(id.index, id.generation) else { return };
        if let (Some(after), FdKind::Socket) = (stream.limits.progress_after, stream.fd_kind) {
            self.arm_progress(id, self.clock.tick_in(after));
        }
    }

    /// Arms the alarm that measures the progress of a stream's peer, unless it is already armed.
    pub(crate) fn arm_progress(&mut self, id: StreamId, tick: u64) {
        let Some(stream) = self.streams.get_mut(id.index, id.generation) else { return };
        if stream.marks.insert(Marks::PROGRESS) {
            let alarm = self.wheel.create(AlarmKind::Progress(id));
            self.wheel.set(alarm, tick);
        }
    }

    /// Sets an alarm of a stream, or disarms it.
    pub(crate) fn set_alarm(&mut self, id: StreamId, slot: usize, at: Option<Instant>) {
        if let Some(at) = at {
            return self.set_alarm_at(id, slot, self.clock.tick_after(at));
        }
        let Some(stream) = self.streams.get_mut(id.index, id.generation) else {
            self.counts.stale += 1;
            return;
        };
        if stream.alarms[slot] != Alarm::NONE {
            self.wheel.disarm(stream.alarms[slot]);
        }
    }

    /// Sets an alarm of a stream.
    #[inline]
    pub(crate) fn set_alarm_at(&mut self, id: StreamId, slot: usize, tick: u64) {
        let stream = self.streams.get(id.index, id.generation);
        let alarm = stream.map_or(Alarm::NONE, |stream| stream.alarms[slot]);
        if !self.wheel.set(alarm, tick) {
            self.set_first_alarm(id, slot, tick);
        }
    }

    /// Restarts the time that `finish` waits for progress.
    pub(crate) fn begin_linger(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get(id.index, id.generation) else { return };
        let linger = Duration::from_millis(u64::from(stream.linger_ms));
        self.set_alarm_at(id, LINGER, self.clock.tick_in(linger));
    }

    #[cold]
    fn set_first_alarm(&mut self, id: StreamId, slot: usize, tick: u64) {
        let Some(stream) = self.streams.get_mut(id.index, id.generation) else {
            self.counts.stale += 1;
            return;
        };
        let name = u8::try_from(slot).expect("a stream has few alarms");
        let alarm = self.wheel.create(AlarmKind::Deadline { stream: id, slot: name });
        stream.alarms[slot] = alarm;
        self.wheel.set(alarm, tick);
    }

    /// Whether there is work that does not need the kernel.
    pub(crate) fn has_work(&self) -> bool {
        let work = &self.work;
        let streams = work.ready.len() + work.later.len() + work.dirty.len();
        let sockets = work.sockets_ready.len() + work.sockets_dirty.len();
        let reports = work.failed.len() + work.sockets_failed.len() + work.released.len();
        streams + sockets + reports > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_rounded_so_that_nothing_fires_early() {
        let start = Instant::now();
        let mut clock = Clock::new(start);
        let at = |us| start + Duration::from_micros(us);
        assert_eq!(clock.tick_after(at(0)), 0);
        assert_eq!(clock.tick_after(at(1)), 1);
        assert_eq!(clock.tick_after(at(1000)), 1);
        assert_eq!(clock.tick_after(at(1001)), 2);
        clock.set(at(1999));
        assert_eq!(clock.settled_tick(), 0);
        clock.settle(at(1999));
        clock.settle(at(1000));
        assert_eq!(clock.settled_tick(), 1);
        assert_eq!(clock.until(2), Duration::from_micros(1));
        assert_eq!(clock.until(1), Duration::ZERO);
        assert_eq!(clock.tick_in(Duration::from_micros(1)), 3, "not before 2000 µs");
        assert_eq!(clock.tick_in(Duration::from_millis(7)), 9);
    }

    #[test]
    fn an_idle_stream_owns_no_more_than_its_place() {
        assert_eq!(size_of::<OwnerKey>(), 16);
        assert!(size_of::<Stream>() <= 120, "{} bytes", size_of::<Stream>());
    }
}
