//! The operations that a handler can request.

use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use block::{Block, Slice};

use crate::datagram::{Datagrams, Origin, WAITING_MAX};
use crate::kernel::FdKind;
use crate::listener::Listener;
use crate::relay::Relay;
use crate::state::{AlarmKind, ClosingFd, Counts, Opening, State, Timer};
use crate::stream::{ALARMS, Marks, Phase, Stream};
use crate::wheel::Alarm;
use crate::{
    Address, DEADLINES_MAX, DeadlineName, Direction, Fd, ListenerId, OutputWait, OwnerKey, Reason,
    SocketId, StreamId, StreamLimits, TimerId,
};

mod timers;

/// The operations that a handler can request, within its callbacks or before the loop runs.
///
/// They are only recorded; system calls are made at the end of the turn, and no callback is entered from within
/// another. An operation on an id that is no longer valid does nothing.
pub struct Context<'a> {
    state: &'a mut State,
}

impl fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("streams", &self.state.streams.len())
            .finish_non_exhaustive()
    }
}

impl<'a> Context<'a> {
    #[inline]
    pub(crate) const fn new(state: &'a mut State) -> Self {
        Self { state }
    }

    /// Returns the time of this turn. The clock is read once per turn, and again after every few events of a long one.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.state.clock.now()
    }

    /// Returns the latest time until which everything that had occurred was delivered. A conclusion
    /// from silence must use this time: at [`now`](Self::now), output that was written earlier may wait in the
    /// kernel, because many streams are ready at once or the process was stopped. Deadlines and timers fire by this
    /// time.
    #[must_use]
    pub const fn settled(&self) -> Instant {
        self.state.clock.settled()
    }

    /// Whole milliseconds from the start of the loop to this turn, rounded up. This is the unit of deadlines.
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

    /// The number of streams that the loop has now.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.state.streams.len()
    }

    /// Stops the loop after this turn.
    pub const fn stop(&mut self) {
        self.state.stopped = true;
    }
}

/// Listeners.
impl Context<'_> {
    /// Accepts connections from a bound, listening socket, created by [`crate::bind`] or the standard library. The
    /// socket becomes non-blocking and close-on-exec. Each connection is reported as `Accepted` and has default limits.
    ///
    /// ```
    /// use event::{Epoll, Loop, LoopSettings};
    ///
    /// let mut events: Loop<_, ()> = Loop::new(Epoll::new()?, LoopSettings::default())?;
    /// let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    /// events.context().accept_from(listener);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn accept_from(&mut self, fd: impl Into<Fd>) -> ListenerId {
        let fd = fd.into();
        // This cannot fail on an open descriptor. An invalid one fails when it is watched.
        let _ = fd.prepare();
        let (index, generation) = self.state.listeners.insert(Listener::new(fd));
        let id = ListenerId { index, generation };
        self.state.work.listeners.push(id);
        id
    }

    /// Stops accepting for now; new connections wait in the kernel's backlog.
    pub fn pause_listener(&mut self, listener: ListenerId) {
        self.set_listener(listener, true);
    }

    /// Accepts connections again.
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

    /// Closes the socket; connections in its backlog are refused. Accepted streams continue.
    pub fn close_listener(&mut self, listener: ListenerId) {
        let Some(gone) = self.state.listeners.remove(listener.index, listener.generation) else {
            self.state.counts.stale += 1;
            return;
        };
        if gone.alarm != Alarm::NONE {
            self.state.wheel.remove(gone.alarm);
        }
        let Listener { fd, watched, .. } = gone;
        self.state.work.closing.push(ClosingFd { fd, watched, resets: false });
    }
}

/// Streams.
impl Context<'_> {
    /// Starts to connect. `Connected` or `Closed(ConnectFailed)` follows. There is no timeout; set a deadline for it.
    /// Bytes that are sent before are queued.
    pub fn connect(&mut self, to: &Address, limits: StreamLimits) -> StreamId {
        let limits = self.state.shared_limits(limits);
        let id = self.state.add_stream(Stream::new(None, Direction::Both, limits));
        self.state.work.opening.push((id, Opening::Connect(to.clone())));
        id
    }

    /// Enables keep-alive probes for a peer on the network. After `after` without traffic the kernel asks the peer
    /// whether it is still connected. If the peer does not answer within the same time again, the connection is reset.
    /// See [`crate::keep_alive`].
    pub fn keep_alive(&mut self, stream: StreamId, after: Duration) {
        self.state.work.opening.push((stream, Opening::KeepAlive(after)));
    }

    /// Takes over a pipe, a connected socket or a terminal, and makes it non-blocking and close-on-exec. A `TcpStream`, a
    /// `UnixStream`, a pipe of the standard library or an `OwnedFd` can be passed. Regular files cannot be watched; they
    /// end with `Closed(Failed)`.
    pub fn adopt(
        &mut self,
        fd: impl Into<Fd>,
        direction: Direction,
        limits: StreamLimits,
    ) -> StreamId {
        let limits = self.state.shared_limits(limits);
        let mut stream = Stream::new(Some(fd.into()), direction, limits);
        // Nothing is known about the descriptor until it is watched.
        stream.marks.clear(Marks::WRITABLE);
        let id = self.state.add_stream(stream);
        self.state.work.opening.push((id, Opening::Adopt));
        id
    }

    /// Watches for the end of a process. `Eof` and `Closed(Clean)` are delivered when it has ended; the handler then
    /// collects its status, for example with [`Child::try_wait`](std::process::Child::try_wait). The stream has no
    /// data; keys, deadlines and `close` apply to it as to any other. Closing it does not affect the process.
    ///
    /// `pidfd` is a descriptor of the process: [`Fd::of_child`] returns one. A descriptor that cannot be watched ends
    /// with `Closed(Failed)`.
    ///
    /// ```
    /// use event::{Context, Epoll, Event, EventHandler, Fd, Loop, LoopSettings};
    /// use std::process::{Child, Command};
    ///
    /// struct Wait(Child);
    ///
    /// impl EventHandler for Wait {
    ///     type Mail = ();
    ///
    ///     fn handle(&mut self, io: &mut Context<'_>, event: Event<'_, ()>) {
    ///         if let Event::Closed { .. } = event {
    ///             let status = self.0.try_wait().expect("it is our child").expect("it has ended");
    ///             assert!(status.success());
    ///             io.stop();
    ///         }
    ///     }
    /// }
    ///
    /// let child = Command::new("true").spawn()?;
    /// let mut events = Loop::new(Epoll::new()?, LoopSettings::default())?;
    /// events.context().watch_process(Fd::of_child(&child)?);
    /// events.run(&mut Wait(child))?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn watch_process(&mut self, pidfd: impl Into<Fd>) -> StreamId {
        let limits = self.state.shared_limits(StreamLimits::default());
        let mut stream = Stream::new(Some(pidfd.into()), Direction::In, limits);
        stream.fd_kind = FdKind::Process;
        // The descriptor may have been duplicated.
        stream.marks.set(Marks::SHARED);
        let id = self.state.add_stream(stream);
        self.state.work.opening.push((id, Opening::WatchProcess));
        id
    }

    /// Gives up a stream and returns its descriptor, for example to pass a connection to a thread or another loop.
    /// `Released` follows at the start of the next turn, with the descriptor and the bytes that the loop has. Until then
    /// no event of the stream is delivered, and calls other than [`Self::close`] have no effect on it.
    ///
    /// Queued output is sent once more at the end of this turn; what the kernel does not accept is returned as `unsent`.
    /// Received bytes that the handler has not consumed, or does not consume before it returns, are `unread`. Bytes
    /// that the loop has not received stay in the descriptor. So no byte is lost, unless the peer is gone.
    ///
    /// Returns false and changes nothing if the stream is gone, is still connecting, has ended, is broken, was finished
    /// and not all of its output is sent, or is part of a relay.
    ///
    /// ```
    /// use event::{Context, Event, Released, Slice};
    /// use std::net::TcpStream;
    /// use std::os::fd::OwnedFd;
    ///
    /// /// Continues with the connection on a thread of its own.
    /// fn serve(connection: TcpStream, unread: &Slice, unsent: &Slice) {}
    ///
    /// fn handle(io: &mut Context<'_>, event: Event<'_, ()>) {
    ///     match event {
    ///         Event::Data { stream, .. } => {
    ///             io.release(stream);
    ///         }
    ///         Event::Released { released, .. } => {
    ///             let Released { fd, unread, unsent } = *released;
    ///             let Ok(fd) = OwnedFd::try_from(fd) else { return };
    ///             let connection = TcpStream::from(fd);
    ///             // The loop had made it non-blocking.
    ///             let _ = connection.set_nonblocking(false);
    ///             std::thread::spawn(move || serve(connection, &unread, &unsent));
    ///         }
    ///         _ => {}
    ///     }
    /// }
    /// ```
    pub fn release(&mut self, id: StreamId) -> bool {
        if self.state.relays.contains_key(&id) {
            return false;
        }
        let Some(stream) = self.state.stream(id).filter(|stream| stream.is_releasable()) else {
            return false;
        };
        stream.marks.set(Marks::RELEASING);
        for alarm in std::mem::replace(&mut stream.alarms, [Alarm::NONE; ALARMS]) {
            if alarm != Alarm::NONE {
                self.state.wheel.remove(alarm);
            }
        }
        self.state.work.releasing.push(id);
        true
    }

    /// Sets the owner of a stream: all later events of the stream carry this key. The initial key is
    /// [`OwnerKey::NONE`].
    pub fn set_key(&mut self, stream: StreamId, key: OwnerKey) {
        if let Some(stream) = self.state.stream(stream) {
            stream.key = key;
        }
    }

    /// Replaces the limits of a stream. They apply from its next bytes on.
    pub fn limits(&mut self, stream: StreamId, limits: StreamLimits) {
        let limits = self.state.shared_limits(limits);
        if let Some(stream) = self.state.stream(stream) {
            stream.limits = limits;
        }
    }

    /// Passes on up to `limit` bytes (`None`: all) from one stream to another without offering them. Held bytes go
    /// first. Bytes are spliced where both sides allow it. `Relayed` reports the progress. When it reports that the
    /// relay is done, the remaining bytes are offered as `Data` again; until then nothing else should be sent to `to`.
    /// Returns false if either stream is gone or has ended this direction, or `from` has a relay to another stream, or
    /// `to` already receives from a relay.
    pub fn relay(&mut self, from: StreamId, to: StreamId, limit: Option<u64>) -> bool {
        let takes = self.state.stream(to).is_some_and(|to| to.takes_output());
        if !takes || from == to || self.state.relays.contains_key(&to) {
            return false;
        }
        let Some(stream) = self.state.stream(from) else { return false };
        let reads = matches!(stream.phase, Phase::Open | Phase::Connecting { finish: false });
        let reads = reads && !stream.marks.has(Marks::RELEASING);
        if stream.relay.is_some() || !reads || stream.direction == Direction::Out {
            return false;
        }
        stream.relay = Some(Box::new(Relay::new(to, limit.unwrap_or(u64::MAX))));
        self.state.relays.insert(to, from);
        self.state.wake(from);
        true
    }

    /// Whether the relay from this stream waits until the other side accepts the received bytes. False if the relay
    /// waits for bytes, and if the stream has no relay.
    #[must_use]
    pub fn relay_waits(&self, from: StreamId) -> bool {
        let stream = self.state.streams.get(from.index, from.generation);
        stream.and_then(|stream| stream.relay.as_ref()).is_some_and(|relay| relay.waits_to_send())
    }

    /// Queues bytes and returns the number of bytes that are queued now. Above `send_high` the handler should pause the
    /// source of the bytes until `Drained`. Above `send_max` the stream ends with `Closed(SendBufferFull)`. Returns 0 for a
    /// stream that is gone, was finished, or only receives.
    pub fn send(&mut self, stream: StreamId, slice: Slice) -> usize {
        self.state.queue(stream, |output| output.push(slice))
    }

    /// Like [`Self::send`], for a caller that keeps the slice. The slice is shared unless its bytes are copied.
    pub fn send_kept(&mut self, stream: StreamId, slice: &Slice) -> usize {
        self.state.queue(stream, |output| output.push_kept(slice))
    }

    /// Like [`Self::send`], with a copy of the bytes.
    #[inline]
    pub fn send_bytes(&mut self, stream: StreamId, bytes: &[u8]) -> usize {
        self.state.queue(stream, |output| output.push_bytes(bytes))
    }

    /// Sends the output of this turn only if the peer has been silent: it has sent no bytes that the handler has not
    /// received, and it has not ended. Otherwise the stream ends with [`Reason::NotSilent`] or as a reset, and none of
    /// this output is sent. Use it for protocols in which received bytes always answer the last request. It costs one
    /// receive, which usually finds nothing.
    ///
    /// [`Reason::NotSilent`]: crate::Reason::NotSilent
    pub fn expect_silence(&mut self, id: StreamId) {
        if let Some(stream) = self.state.stream(id) {
            stream.marks.set(Marks::SILENT);
        }
    }

    /// Our own address of an IP connection. `None` for any other stream, and with a simulated kernel.
    #[must_use]
    pub fn local_address(&self, stream: StreamId) -> Option<SocketAddr> {
        self.state.streams.get(stream.index, stream.generation)?.fd.as_ref()?.local_address()
    }

    /// The number of queued bytes that the kernel has not accepted yet. While `Closed` is delivered: the number of
    /// bytes that were never sent.
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

    /// The number of bytes that the kernel has accepted for the reader of a pipe and that were not read, if it is
    /// known. Also valid while `Closed` is delivered.
    #[must_use]
    pub fn unread_by_peer(&self, stream: StreamId) -> u64 {
        if self.state.unsent.is_some_and(|(closed, _)| closed == stream) {
            return self.state.unread;
        }
        let found = self.state.streams.get(stream.index, stream.generation);
        let pipe = found.filter(|it| it.direction == Direction::Out);
        let fd = pipe.and_then(|it| it.fd.as_ref());
        fd.map_or(0, |fd| (self.state.unread_in_pipe)(fd).unwrap_or(0))
    }

    /// Whether nothing can be sent any more because the peer is gone: queued bytes are lost, and further output is
    /// dropped.
    #[must_use]
    pub fn is_broken(&self, stream: StreamId) -> bool {
        let stream = self.state.streams.get(stream.index, stream.generation);
        stream.is_some_and(Stream::is_broken)
    }

    /// The number of a stream's descriptor. At least as many descriptors are open in this process.
    #[must_use]
    pub fn descriptor(&self, stream: StreamId) -> Option<u32> {
        let stream = self.state.streams.get(stream.index, stream.generation)?;
        Some(stream.fd.as_ref()?.number())
    }

    /// Bytes that were offered and not consumed; they are offered again with the next ones. Empty while `Data` is
    /// delivered, because the event lends them.
    #[must_use]
    pub fn held(&self, stream: StreamId) -> &[u8] {
        let stream = self.state.streams.get(stream.index, stream.generation);
        stream.and_then(|stream| stream.unconsumed.as_ref()).map_or(&[], Block::filled)
    }

    /// Bytes of memory that a stream occupies because one side is slow: output for which the kernel had no room, and
    /// received bytes that the handler has not consumed.
    #[must_use]
    pub fn memory_held(&self, id: StreamId) -> usize {
        let stream = self.state.streams.get(id.index, id.generation);
        stream.map_or(0, |stream| {
            let output = stream.output.as_ref().filter(|output| output.waits());
            let output = output.map_or(0, |output| output.held());
            output + stream.unconsumed.as_ref().map_or(0, Block::capacity)
        })
    }

    /// How long output has waited for the peer of this stream, including output from a relay. `None` while the kernel
    /// accepts all output.
    #[must_use]
    pub fn output_wait(&mut self, id: StreamId) -> Option<OutputWait> {
        let tick = self.tick();
        let (wait, accepted) = self.state.wait(id)?;
        let lasted = Duration::from_millis(tick.saturating_sub(wait.since()));
        Some(OutputWait { lasted, taken: wait.taken(accepted) })
    }

    /// Restarts the wait that [`Self::output_wait`] returns.
    pub fn restart_output_wait(&mut self, id: StreamId) {
        let tick = self.tick();
        if let Some((wait, accepted)) = self.state.wait(id) {
            wait.restart(tick, accepted);
        }
    }

    /// Stops `Data` and `Eof` until `resume`. `Hangup`, `Broken` and `EndAhead` are still delivered.
    pub fn pause(&mut self, id: StreamId) {
        if let Some(stream) = self.state.stream(id)
            && !matches!(stream.phase, Phase::Flushing | Phase::Lingering)
        {
            stream.marks.set(Marks::PAUSED);
            // The stream may have ended or be broken already, which is reported for a paused stream.
            self.state.wake(id);
        }
    }

    /// Offers the held bytes, later in this turn or in the next, and receives again.
    pub fn resume(&mut self, id: StreamId) {
        if let Some(stream) = self.state.stream(id) {
            stream.marks.clear(Marks::PAUSED);
            stream.marks.set(Marks::OFFER);
            self.state.wake(id);
        }
    }

    /// Sends the queued bytes, ends our direction, discards input until the peer's end, and then reports
    /// `Closed(Clean)`. Until then only deadlines of the stream are delivered. If `linger` (default: the setting of the
    /// loop) passes without progress, the stream ends with `Closed(Lingered)`.
    pub fn finish(&mut self, id: StreamId, linger: Option<Duration>) {
        let linger = linger.unwrap_or(self.state.settings.linger);
        let Some(stream) = self.state.stream(id) else { return };
        if stream.marks.has(Marks::RELEASING) {
            return;
        }
        match stream.phase {
            Phase::Connecting { .. } => stream.phase = Phase::Connecting { finish: true },
            Phase::Open if stream.direction == Direction::In => {
                return self.state.end(id, Reason::Clean);
            }
            Phase::Open => stream.phase = Phase::Flushing,
            Phase::Broken(reason) => return self.state.end(id, reason),
            Phase::Flushing | Phase::Lingering | Phase::Ended(_) => return,
        }
        stream.unconsumed = None;
        for mark in [Marks::PAUSED, Marks::HIGH, Marks::DRAINED, Marks::HANGUP] {
            stream.marks.clear(mark);
        }
        stream.linger_ms = u32::try_from(linger.as_millis()).unwrap_or(u32::MAX);
        self.state.begin_linger(id);
        self.state.mark_dirty(id);
        self.state.wake(id);
    }

    /// Ends our direction after the queued bytes were sent. `Data` continues until the peer's `Eof`; when both
    /// directions have ended, `Closed(Clean)` follows. A stream that only sends ends completely.
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

    /// Ends the stream immediately with a reset, so that the peer cannot mistake the received bytes for a complete
    /// message. Queued output is discarded, and sent bytes may be lost too. `Closed(Reset)` follows. Unix sockets have
    /// no reset; the peer sees a normal end.
    pub fn reset(&mut self, id: StreamId) {
        let Some(stream) = self.state.stream(id) else { return };
        if stream.marks.has(Marks::RELEASING) {
            return;
        }
        stream.marks.set(Marks::RESETS);
        stream.unconsumed = None;
        self.state.end(id, Reason::Reset);
    }

    /// Ends the stream immediately and silently: no more events of the stream are delivered, not even `Closed`. Queued
    /// output is discarded.
    pub fn close(&mut self, stream: StreamId) {
        if !self.state.remove_stream(stream) {
            self.state.counts.stale += 1;
        }
    }
}

/// Datagrams.
impl Context<'_> {
    /// Takes over a datagram socket, as created by [`crate::bind_datagrams`] or the standard library, and makes it
    /// non-blocking and close-on-exec. Each datagram is delivered as `Datagram`.
    pub fn datagram(&mut self, fd: impl Into<Fd>) -> SocketId {
        let (index, generation) = self.state.sockets.insert(Datagrams::new(fd.into()));
        let id = SocketId { index, generation };
        self.state.work.sockets_opening.push(id);
        id
    }

    /// Sends one datagram at the end of the turn. Returns false if it was not queued: the socket is gone, 1024
    /// datagrams are already waiting, or `to` has no name. True guarantees nothing more. A datagram that the kernel
    /// refuses, or that is for a full Unix socket, is counted as lost.
    #[must_use = "a datagram that was not taken is lost"]
    pub fn send_datagram(&mut self, socket: SocketId, to: &Origin, bytes: &[u8]) -> bool {
        let Some(place) = self.state.socket(socket) else { return false };
        if place.waiting.len() >= WAITING_MAX || *to == Origin::NOWHERE {
            return false;
        }
        place.waiting.push_back((to.clone(), Slice::copy_of(bytes)));
        // While the kernel has no room, its next report puts the socket back on the list.
        if place.writable {
            self.state.mark_socket_dirty(socket);
        }
        true
    }

    /// Closes the socket immediately; waiting datagrams are discarded.
    pub fn close_datagrams(&mut self, socket: SocketId) {
        if !self.state.remove_socket(socket) {
            self.state.counts.stale += 1;
        }
    }
}
