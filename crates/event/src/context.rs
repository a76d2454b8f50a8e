//! What an owner can ask for.

use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use block::{Block, Slice};

use crate::datagram::{Datagrams, Origin, WAITING_MAX};
use crate::listener::Listener;
use crate::relay::Relay;
use crate::state::{Counts, Doomed, Key, Opening, State, Timer};
use crate::stream::{Marks, Phase, Stream};
use crate::wheel::Alarm;
use crate::{
    Address, DEADLINES_MAX, DeadlineName, Direction, Fd, ListenerId, OutputWait, OwnerKey, Reason,
    SocketId, StreamId, StreamLimits, TimerId,
};

/// The calls that an owner can make, within its callbacks or before the loop runs.
///
/// They only record: system calls happen at the end of the turn, and no callback is entered from
/// within another. A call that names something that has gone does nothing.
pub struct Context<'a> {
    state: &'a mut State,
}

impl fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Calls").field("streams", &self.state.streams.len()).finish_non_exhaustive()
    }
}

impl<'a> Context<'a> {
    #[inline]
    pub(crate) const fn new(state: &'a mut State) -> Self {
        Self { state }
    }

    /// The time of this turn. The clock is read once a turn.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.state.clock.now()
    }

    /// Whole milliseconds from the loop's start to this turn, rounded up: the unit of deadlines.
    #[must_use]
    pub const fn tick(&self) -> u64 {
        self.state.clock.now_tick()
    }

    /// What the loop has done so far.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        let mut counts = self.state.counts;
        counts.filings = self.state.wheel.filings();
        counts
    }

    /// Streams that the loop has now.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.state.streams.len()
    }

    /// Ends the loop after this turn.
    pub const fn stop(&mut self) {
        self.state.stopped = true;
    }
}

/// Listeners.
impl Context<'_> {
    /// Accepts connections from a bound, listening socket, as [`crate::bind`] or the standard library makes
    /// it; it becomes non-blocking. Each connection comes as `Accepted`, with default limits.
    pub fn accept_from(&mut self, fd: Fd) -> ListenerId {
        // It cannot fail on a descriptor that is open; one that is none fails when it is watched.
        let _ = fd.make_nonblocking();
        let (index, generation) = self.state.listeners.insert(Listener::new(fd));
        let id = ListenerId { index, generation };
        self.state.work.listeners.push(id);
        id
    }

    /// Accepts no more for now; who connects waits in the kernel's backlog.
    pub fn pause_listener(&mut self, listener: ListenerId) {
        self.set_listener(listener, true);
    }

    /// Accepts again.
    pub fn resume_listener(&mut self, listener: ListenerId) {
        self.set_listener(listener, false);
    }

    fn set_listener(&mut self, id: ListenerId, paused: bool) {
        if let Some(listener) = self.state.listeners.get_mut(id.index, id.generation) {
            listener.paused = paused;
            self.state.work.listeners.push(id);
        } else {
            self.state.counts.stale += 1;
        }
    }

    /// Closes the socket; who waited in its backlog is refused. Accepted streams go on.
    pub fn close_listener(&mut self, listener: ListenerId) {
        let Some(gone) = self.state.listeners.remove(listener.index, listener.generation) else {
            self.state.counts.stale += 1;
            return;
        };
        if gone.alarm != Alarm::NONE {
            self.state.wheel.remove(gone.alarm);
        }
        let Listener { fd, watched, .. } = gone;
        self.state.work.doomed.push(Doomed { fd, watched, resets: false });
    }
}

/// Streams.
impl Context<'_> {
    /// Connects. `Connected` or `Closed(ConnectFailed)` follows; how long that may take is for a
    /// deadline to say. What is sent before is queued.
    pub fn connect(&mut self, to: &Address, limits: StreamLimits) -> StreamId {
        let limits = self.state.shared_limits(limits);
        let id = self.state.add_stream(Stream::new(None, Direction::Both, limits));
        self.state.work.opening.push((id, Opening::Connect(to.clone())));
        id
    }

    /// Has the kernel ask a peer on the network that has said nothing for `after` whether it is still
    /// there; one that does not answer within as long again has reset the connection. See
    /// [`crate::keep_alive`].
    pub fn keep_alive(&mut self, stream: StreamId, after: Duration) {
        self.state.work.opening.push((stream, Opening::KeepAlive(after)));
    }

    /// Takes over a pipe, a socket or a terminal, and makes it non-blocking. Regular files cannot
    /// be waited for and end with `Closed(Failed)`.
    pub fn adopt(&mut self, fd: Fd, direction: Direction, limits: StreamLimits) -> StreamId {
        let limits = self.state.shared_limits(limits);
        let mut stream = Stream::new(Some(fd), direction, limits);
        // Not before it is watched: until then nothing is known of it.
        stream.marks.clear(Marks::WRITABLE);
        let id = self.state.add_stream(stream);
        self.state.work.opening.push((id, Opening::Adopt));
        id
    }

    /// Says whose a stream is: the events about it carry this key from now on. It has [`OwnerKey::NONE`] before.
    pub fn set_key(&mut self, stream: StreamId, key: OwnerKey) {
        if let Some(stream) = self.state.stream(stream) {
            stream.key = key;
        }
    }

    /// Gives a stream other limits. They count from its next bytes on.
    pub fn limits(&mut self, stream: StreamId, limits: StreamLimits) {
        let limits = self.state.shared_limits(limits);
        if let Some(stream) = self.state.stream(stream) {
            stream.limits = limits;
        }
    }

    /// Passes on up to `limit` bytes (none: all) from one stream to another without offering them:
    /// first those that are held, and by splice where both sides allow it. `Relayed` tells of them;
    /// when it says that no more come, the rest is offered as `Data` again. Until then nothing else
    /// should be sent to `to`. False when either stream has gone or has a relay of that kind.
    pub fn relay(&mut self, from: StreamId, to: StreamId, limit: Option<u64>) -> bool {
        let takes = self.state.stream(to).is_some_and(|to| to.takes_output());
        if !takes || from == to || self.state.relays.contains_key(&to) {
            return false;
        }
        let Some(stream) = self.state.stream(from) else { return false };
        let reads = matches!(stream.phase, Phase::Open | Phase::Connecting { finish: false });
        if stream.relay.is_some() || !reads || stream.direction == Direction::Out {
            return false;
        }
        stream.relay = Some(Box::new(Relay::new(to, limit.unwrap_or(u64::MAX))));
        self.state.relays.insert(to, from);
        self.state.wake(from);
        true
    }

    /// Whether the relay from this stream waits for the other side to take what came. False as well
    /// when it waits for bytes, and when there is none.
    #[must_use]
    pub fn relay_waits(&self, from: StreamId) -> bool {
        let stream = self.state.streams.get(from.index, from.generation);
        stream.and_then(|stream| stream.relay.as_ref()).is_some_and(|relay| relay.waits_to_send())
    }

    /// Queues bytes and returns all that is queued now. Above `send_high` the owner should pause
    /// whatever the bytes come from until `Drained`; above `send_max` the stream ends with
    /// `Closed(Overrun)`. Returns 0 for a stream that has gone, was finished, or only comes in.
    pub fn send(&mut self, stream: StreamId, slice: Slice) -> usize {
        self.state.queue(stream, |output| output.push(slice))
    }

    /// As [`Self::send`], for one who keeps the slice: it is shared where its bytes are not copied.
    pub fn send_kept(&mut self, stream: StreamId, slice: &Slice) -> usize {
        self.state.queue(stream, |output| output.push_kept(slice))
    }

    /// As [`Self::send`], with a copy of the bytes.
    #[inline]
    pub fn send_bytes(&mut self, stream: StreamId, bytes: &[u8]) -> usize {
        self.state.queue(stream, |output| output.push_bytes(bytes))
    }

    /// What is sent in this iteration is only sent if the peer has sent nothing until then that the owner
    /// has not received, and has not ended. Otherwise the stream ends with [`Reason::NotSilent`], or
    /// as a reset, and nothing of it was sent. For protocols in which whatever comes is the answer to
    /// what was sent before: it costs a receive, which mostly finds nothing.
    ///
    /// [`Reason::NotSilent`]: crate::Reason::NotSilent
    pub fn expect_silence(&mut self, id: StreamId) {
        if let Some(stream) = self.state.stream(id) {
            stream.marks.set(Marks::SILENT);
        }
    }

    /// Our own address of a connection over IP. None: of any other stream, and of a simulated kernel.
    #[must_use]
    pub fn own_address(&self, stream: StreamId) -> Option<SocketAddr> {
        self.state.streams.get(stream.index, stream.generation)?.fd.as_ref()?.own_address()
    }

    /// Bytes that we accepted and the kernel did not yet. While the stream's `Closed` is told,
    /// those that it never will.
    #[must_use]
    pub fn queued(&self, stream: StreamId) -> usize {
        match self.state.unsent {
            Some((closed, unsent)) if closed == stream => unsent,
            _ => {
                let stream = self.state.streams.get(stream.index, stream.generation);
                stream.map_or(0, Stream::queued)
            }
        }
    }

    /// Bytes that the kernel has accepted for the reader of a pipe and that nobody has read, as far as that is known;
    /// also while its `Closed` is told.
    #[must_use]
    pub fn left_unread(&self, stream: StreamId) -> u64 {
        if self.state.unsent.is_some_and(|(closed, _)| closed == stream) {
            return self.state.unread;
        }
        let found = self.state.streams.get(stream.index, stream.generation);
        let pipe = found.filter(|it| it.direction == Direction::Out);
        let fd = pipe.and_then(|it| it.fd.as_ref());
        fd.map_or(0, |fd| (self.state.unread_of)(fd).unwrap_or(0))
    }

    /// Whether nothing can be sent any more because the peer is gone: what was queued is lost, and what is
    /// sent is dropped.
    #[must_use]
    pub fn is_broken(&self, stream: StreamId) -> bool {
        let stream = self.state.streams.get(stream.index, stream.generation);
        stream.is_some_and(Stream::is_broken)
    }

    /// The number of a stream's descriptor: at least as many are open in this process.
    #[must_use]
    pub fn descriptor(&self, stream: StreamId) -> Option<u32> {
        let stream = self.state.streams.get(stream.index, stream.generation)?;
        Some(stream.fd.as_ref()?.number())
    }

    /// Bytes that were offered and not consumed: they come again with the next ones. None while `Data` is
    /// told, which lends them.
    #[must_use]
    pub fn held(&self, stream: StreamId) -> &[u8] {
        let stream = self.state.streams.get(stream.index, stream.generation);
        stream.and_then(|stream| stream.hold.as_ref()).map_or(&[], Block::filled)
    }

    /// Bytes of memory that a stream holds because somebody is slow: output for which the kernel had no
    /// room, and received bytes that its owner has not consumed.
    #[must_use]
    pub fn memory_held(&self, id: StreamId) -> usize {
        let stream = self.state.streams.get(id.index, id.generation);
        stream.map_or(0, |stream| {
            let output = stream.output.as_ref().filter(|output| output.waits());
            let output = output.map_or(0, |output| output.held());
            output + stream.hold.as_ref().map_or(0, Block::capacity)
        })
    }

    /// How long output waits for the peer of this stream, also what a relay brings it. None while the
    /// kernel takes all that there is.
    #[must_use]
    pub fn output_wait(&mut self, id: StreamId) -> Option<OutputWait> {
        let tick = self.tick();
        let (wait, accepted) = self.state.wait(id)?;
        let lasted = Duration::from_millis(tick.saturating_sub(wait.since()));
        Some(OutputWait { lasted, taken: wait.taken(accepted) })
    }

    /// Lets the wait that [`Self::output_wait`] tells of begin now.
    pub fn restart_output_wait(&mut self, id: StreamId) {
        let tick = self.tick();
        if let Some((wait, accepted)) = self.state.wait(id) {
            wait.restart(tick, accepted);
        }
    }

    /// No `Data` and no `Eof` until `resume`. A hang-up is still told, and that nothing can be sent any more,
    /// and that an end is ahead.
    pub fn pause(&mut self, id: StreamId) {
        if let Some(stream) = self.state.stream(id)
            && !matches!(stream.phase, Phase::Flushing | Phase::Lingering)
        {
            stream.marks.set(Marks::PAUSED);
            // It may have ended or be broken, which is told of one that is paused.
            self.state.wake(id);
        }
    }

    /// Offers what is held, later in this turn or in the next, and receives again.
    pub fn resume(&mut self, id: StreamId) {
        if let Some(stream) = self.state.stream(id) {
            stream.marks.clear(Marks::PAUSED);
            stream.marks.set(Marks::OFFER);
            self.state.wake(id);
        }
    }

    /// Sends what is queued, ends our direction, discards what still comes until the peer's end,
    /// then tells `Closed(Clean)`. Nothing else is told of the stream but its deadlines. When
    /// `linger` (or the loop's own, if none is given) passes without progress it ends with
    /// `Closed(Lingered)`.
    pub fn finish(&mut self, id: StreamId, linger: Option<Duration>) {
        let linger = linger.unwrap_or(self.state.settings.linger);
        let Some(stream) = self.state.stream(id) else { return };
        match stream.phase {
            Phase::Connecting { .. } => stream.phase = Phase::Connecting { finish: true },
            Phase::Open if stream.direction == Direction::In => {
                return self.state.end(id, Reason::Clean);
            }
            Phase::Open => stream.phase = Phase::Flushing,
            Phase::Broken(reason) => return self.state.end(id, reason),
            Phase::Flushing | Phase::Lingering | Phase::Ended(_) => return,
        }
        stream.hold = None;
        for mark in [Marks::PAUSED, Marks::HIGH, Marks::DRAINED, Marks::HANGUP] {
            stream.marks.clear(mark);
        }
        stream.linger_ms = u32::try_from(linger.as_millis()).unwrap_or(u32::MAX);
        self.state.begin_linger(id);
        self.state.mark_dirty(id);
        self.state.wake(id);
    }

    /// Ends our direction once what is queued was sent; `Data` goes on until the peer's `Eof`, and
    /// when both have come, `Closed(Clean)` follows. Of a stream that only goes out it is the end.
    pub fn finish_sending(&mut self, id: StreamId) {
        let Some(stream) = self.state.stream(id) else { return };
        if !stream.takes_output() {
            return;
        }
        if stream.direction == Direction::Out {
            return self.finish(id, None);
        }
        stream.marks.set(Marks::SEND_ENDS);
        if stream.marks.has(Marks::WRITABLE) {
            self.state.mark_dirty(id);
        }
    }

    /// Ends the stream at once, and so that its peer cannot take what came for all that was to come:
    /// by a reset. What is queued is discarded, and what was sent may be lost with it. Then
    /// `Closed(Reset)` is told. A Unix socket knows no reset: its peer sees an end.
    pub fn reset(&mut self, id: StreamId) {
        let Some(stream) = self.state.stream(id) else { return };
        stream.marks.set(Marks::RESETS);
        stream.hold = None;
        self.state.end(id, Reason::Reset);
    }

    /// Ends the stream at once and silently: nothing is told of it any more, not even `Closed`,
    /// and what was queued is discarded.
    pub fn close(&mut self, stream: StreamId) {
        if !self.state.remove_stream(stream) {
            self.state.counts.stale += 1;
        }
    }
}

/// Datagrams.
impl Context<'_> {
    /// Takes over a datagram socket, as [`crate::bind_datagrams`] makes it. Every datagram comes as
    /// `Datagram`.
    pub fn datagram(&mut self, fd: Fd) -> SocketId {
        let (index, generation) = self.state.sockets.insert(Datagrams::new(fd));
        let id = SocketId { index, generation };
        self.state.work.sockets_opening.push(id);
        id
    }

    /// Sends one datagram, at the end of the turn. False when it was not taken: the socket has
    /// gone, 1024 datagrams wait already, or `to` has no name. True promises nothing more; one that
    /// the kernel refuses, and one to a Unix socket that is full, is counted as lost.
    #[must_use = "a datagram that was not taken is lost"]
    pub fn send_datagram(&mut self, socket: SocketId, to: &Origin, bytes: &[u8]) -> bool {
        let Some(place) = self.state.socket(socket) else { return false };
        if place.waiting.len() >= WAITING_MAX || *to == Origin::NOWHERE {
            return false;
        }
        place.waiting.push_back((to.clone(), Slice::copy_of(bytes)));
        // While the kernel has no room, its report will bring the socket back.
        if place.writable {
            self.state.mark_socket_dirty(socket);
        }
        true
    }

    /// Closes the socket at once; what waited to be sent is discarded.
    pub fn close_datagrams(&mut self, socket: SocketId) {
        if !self.state.remove_socket(socket) {
            self.state.counts.stale += 1;
        }
    }
}

/// Time.
impl Context<'_> {
    /// Arms a deadline of a stream, or disarms it. Moving it back costs one word.
    ///
    /// # Panics
    /// When the name is not below [`DEADLINES_MAX`].
    pub fn deadline(&mut self, stream: StreamId, name: DeadlineName, at: Option<Instant>) {
        let slot = usize::from(name.0);
        assert!(slot < DEADLINES_MAX, "a deadline's name is below DEADLINES_MAX");
        self.state.set_alarm(stream, slot, at);
    }

    /// Arms a deadline of a stream at so long after this turn. The same as [`Self::deadline`] at
    /// [`Self::now`] and that, and the quickest way to put one off at every request.
    ///
    /// # Panics
    /// When the name is not below [`DEADLINES_MAX`].
    #[inline]
    pub fn deadline_in(&mut self, stream: StreamId, name: DeadlineName, after: Duration) {
        let slot = usize::from(name.0);
        assert!(slot < DEADLINES_MAX, "a deadline's name is below DEADLINES_MAX");
        let tick = self.state.clock.tick_in(after);
        self.state.set_alarm_at(stream, slot, tick);
    }

    /// A timer that belongs to no stream. It fires at `at`, once, unless it is set again.
    pub fn timer(&mut self, at: Instant) -> TimerId {
        self.timer_of(OwnerKey::NONE, at)
    }

    /// As [`Self::timer`], with a key that says whose it is.
    pub fn timer_of(&mut self, key: OwnerKey, at: Instant) -> TimerId {
        let (index, generation) = self.state.timers.insert(Timer { alarm: Alarm::NONE, key });
        let id = TimerId { index, generation };
        let alarm = self.state.wheel.create(Key::Timer(id));
        if let Some(timer) = self.state.timers.get_mut(index, generation) {
            timer.alarm = alarm;
        }
        self.state.wheel.set(alarm, self.state.clock.tick_after(at));
        id
    }

    /// Moves a timer, or arms it again.
    pub fn set_timer(&mut self, timer: TimerId, at: Instant) {
        if let Some(alarm) = self.alarm_of(timer) {
            self.state.wheel.set(alarm, self.state.clock.tick_after(at));
        }
    }

    /// Lets a timer not fire until it is set again.
    pub fn disarm_timer(&mut self, timer: TimerId) {
        if let Some(alarm) = self.alarm_of(timer) {
            self.state.wheel.disarm(alarm);
        }
    }

    /// Ends a timer.
    pub fn cancel_timer(&mut self, timer: TimerId) {
        if let Some(alarm) = self.alarm_of(timer) {
            self.state.wheel.remove(alarm);
            self.state.timers.remove(timer.index, timer.generation);
        }
    }

    fn alarm_of(&mut self, timer: TimerId) -> Option<Alarm> {
        let alarm = self.state.timers.get(timer.index, timer.generation).map(|timer| timer.alarm);
        if alarm.is_none() {
            self.state.counts.stale += 1;
        }
        alarm
    }
}
