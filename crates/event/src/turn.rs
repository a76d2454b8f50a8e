//! The turn: one iteration of the loop. Only this module uses both the kernel and the handler.
//!
//! ```text
//!   wait ─► reports ─► mail ─► streams ─► alarms ─► on_events_done ─► mail ─► on_iteration_end ─► carry out
//!    ▲      accept, receive, offer, deliver         the handler draws its     close, watch, open,     │
//!    │                                              conclusions               send                    │
//!    └────────────────────────────────────────────────────────────────────────────────────────────────┘
//! ```

mod datagrams;
mod end_of_turn;
mod progress;
mod receive;
mod received;
mod relay;
mod release;

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::time::{Duration, Instant};

use crate::context::Context;
use crate::data::Lent;
use crate::kernel::{Completeness, Kernel, Readiness, ReadyEvent, Target};
use crate::listener::ACCEPT_RETRY_DELAY;
use crate::mail::{Inbox, Mailbox};
use crate::state::{AlarmKind, Counts, State};
use crate::stream::{LINGER, Marks, Phase, Step, Stream};
use crate::wheel::Alarm;
use crate::{
    DeadlineName, Direction, Event, EventHandler, Interest, KernelError, ListenerId, LoopSettings,
    OwnerKey, Peer, Reason, SocketId, StreamId, StreamLimits, Token,
};

/// The initial capacity of the hot block in bytes; it is sufficient for most messages. After a stream has filled the
/// block, its capacity is that of the largest pooled block.
const HOT_CAPACITY_MIN: usize = 4096;

/// The number of events after which the clock is read again within a turn. Streams that are received from late in a long
/// turn would otherwise seem to have been silent since its beginning.
const CLOCK_READ_EVERY: usize = 16;

/// One loop on one thread: it waits for the kernel and delivers events to its [`EventHandler`].
pub struct Loop<K: Kernel, M> {
    kernel: K,
    state: State,
    inbox: Inbox<M>,
    batch: VecDeque<M>,
    /// The reports of the kernel, and how many of them were delivered. These lists and those below stay in the loop
    /// while they are processed. If the handler panics, the next turn continues after the event on which it panicked.
    ready_events: Vec<ReadyEvent>,
    delivered: usize,
    /// The time at which everything that has occurred is delivered once the reports are.
    settles_at: Instant,
    /// The partial waits since the last complete one.
    partial_waits: Option<PartialWaits>,
    fired: Vec<Alarm>,
    fired_delivered: usize,
    /// The block into which all streams receive, so that it stays in the cache.
    hot: Lent,
    /// The capacity in bytes that it must have if no bytes are held before it.
    hot_capacity: usize,
    /// The list of ready streams that is being processed.
    stepping: Vec<StreamId>,
    stepped: usize,
}

/// Waits that did not report all events. They do not prevent alarms forever: once they have reported as many events as
/// descriptors were watched, everything that had occurred when they began was reported.
#[derive(Clone, Copy, Debug)]
struct PartialWaits {
    began: Instant,
    /// The number of reports until then.
    left: usize,
}

impl<K: Kernel, M> fmt::Debug for Loop<K, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loop").field("streams", &self.state.streams.len()).finish_non_exhaustive()
    }
}

impl<K: Kernel, M: Send + 'static> Loop<K, M> {
    /// Creates a loop on this kernel.
    ///
    /// # Errors
    /// None with [`crate::Epoll`]; a kernel that needs initialization may fail.
    pub fn new(mut kernel: K, settings: LoopSettings) -> io::Result<Self> {
        let inbox = Inbox::new(kernel.waker(), settings.mail_max);
        // With a budget of zero the loop would iterate forever without progress.
        let settings = LoopSettings {
            events_max: settings.events_max.max(1),
            read_budget: settings.read_budget.max(1),
            accept_budget: settings.accept_budget.max(1),
            mail_budget: settings.mail_budget.max(1),
            ..settings
        };
        let now = kernel.now();
        let state = State::new(now, settings, K::unread);
        Ok(Self {
            kernel,
            state,
            inbox,
            batch: VecDeque::new(),
            ready_events: Vec::new(),
            delivered: 0,
            settles_at: now,
            partial_waits: None,
            fired: Vec::new(),
            fired_delivered: 0,
            hot: Lent::nothing(),
            hot_capacity: HOT_CAPACITY_MIN,
            stepping: Vec::new(),
            stepped: 0,
        })
    }

    /// Returns a sender with which other threads send messages to this loop.
    #[must_use]
    pub fn mailbox(&self) -> Mailbox<M> {
        self.inbox.mailbox()
    }

    /// Returns the operations, for setup before the loop runs.
    pub fn context(&mut self) -> Context<'_> {
        self.state.clock.set(self.kernel.now());
        Context::new(&mut self.state)
    }

    /// What the loop has done so far.
    #[must_use]
    pub fn counts(&mut self) -> Counts {
        Context::new(&mut self.state).counts()
    }

    /// Runs turns until [`Context::stop`].
    ///
    /// # Errors
    /// If the loop cannot wait for the kernel. Errors of streams are events.
    pub fn run<O: EventHandler<Mail = M>>(&mut self, owner: &mut O) -> io::Result<()> {
        while self.turn(owner, None)? {}
        Ok(())
    }

    /// Runs one turn. Waits at most `wait_max`, and returns false after the loop was stopped.
    ///
    /// # Errors
    /// If the loop cannot wait for the kernel. Nothing is lost: the turn may be repeated.
    ///
    /// # Panics
    /// If the handler panics. The turn may be repeated in this case, too: only the event on which the handler panicked
    /// is lost, with the bytes that were lent in it.
    pub fn turn<O: EventHandler<Mail = M>>(
        &mut self,
        owner: &mut O,
        wait_max: Option<Duration>,
    ) -> io::Result<bool> {
        self.state.counts.turns += 1;
        // Carry out requests that were made before the loop ran, or between turns.
        self.carry_out();
        self.wait(wait_max)?;
        self.receive_postponed(owner);
        self.handle_reports(owner);
        let budget = self.state.settings.mail_budget;
        let read = self.read_mail(owner, budget);
        self.step_ready(owner);
        self.state.clock.settle(self.settles_at);
        self.fire_alarms(owner);
        self.pause_failed_listeners(owner);
        self.report_failed_sockets(owner);
        self.report_released(owner);
        owner.on_events_done(&mut Context::new(&mut self.state));
        // Once only: further mail waits for the next turn, so that streams get their share.
        if budget > read && self.read_mail(owner, budget - read) > 0 {
            owner.on_events_done(&mut Context::new(&mut self.state));
        }
        owner.on_iteration_end(&mut Context::new(&mut self.state));
        self.carry_out();
        Ok(!self.state.stopped)
    }

    fn wait(&mut self, wait_max: Option<Duration>) -> io::Result<()> {
        if self.delivered < self.ready_events.len() {
            self.state.clock.set(self.kernel.now());
            return Ok(());
        }
        let mut timeout = Some(Duration::ZERO);
        let is_behind = !self.batch.is_empty()
            || self.fired_delivered < self.fired.len()
            || self.stepped < self.stepping.len();
        if !is_behind && !self.state.has_work() && !self.state.stopped {
            let alarm = self.state.wheel.next_tick().map(|tick| self.state.clock.until(tick));
            let rest = [alarm, wait_max].into_iter().flatten().min();
            // With a timeout of zero the loop does not sleep, so it announces no sleep and needs no wake-up.
            if rest != Some(Duration::ZERO) && self.inbox.may_sleep() {
                timeout = rest;
            }
        }
        self.ready_events.clear();
        self.delivered = 0;
        let events_max = self.state.settings.events_max;
        let completeness = self.kernel.wait(timeout, events_max, &mut self.ready_events)?;
        let before = self.state.clock.now();
        self.state.clock.set(self.kernel.now());
        match completeness {
            Completeness::Complete => {
                self.partial_waits = None;
                // The time at which the kernel looked is not known, but it is after the time that was waited for.
                let waited = timeout.filter(|_| self.ready_events.is_empty());
                let looked = waited.and_then(|timeout| before.checked_add(timeout));
                self.settles_at = looked.unwrap_or(before).min(self.state.clock.now());
            }
            Completeness::Partial => self.note_partial_wait(before),
        }
        Ok(())
    }

    /// Records that events of the time before the wait may be unreported.
    fn note_partial_wait(&mut self, before: Instant) {
        let began = || PartialWaits { began: before, left: self.state.watched() };
        let mut waits = self.partial_waits.unwrap_or_else(began);
        waits.left = waits.left.saturating_sub(self.ready_events.len());
        self.partial_waits = Some(waits);
        if waits.left == 0 {
            self.settles_at = waits.began;
            self.partial_waits = None;
        }
    }

    /// Reads the clock if this is one of every [`CLOCK_READ_EVERY`] events of a turn.
    fn read_clock(&mut self, event: usize) {
        if event.is_multiple_of(CLOCK_READ_EVERY) {
            self.state.clock.set(self.kernel.now());
        }
    }

    fn deliver<O: EventHandler<Mail = M>>(&mut self, owner: &mut O, event: Event<'_, M>) {
        owner.handle(&mut Context::new(&mut self.state), event);
    }

    fn handle_reports<O: EventHandler<Mail = M>>(&mut self, owner: &mut O) {
        while let Some(report) = self.ready_events.get(self.delivered).copied() {
            self.delivered += 1;
            self.state.counts.reports += 1;
            self.read_clock(self.delivered);
            match report.token.target() {
                Target::Waker => {}
                Target::Listener { index, generation } => {
                    self.accept(owner, ListenerId { index, generation });
                }
                Target::Datagrams { index, generation } => {
                    self.handle_socket_report(
                        owner,
                        SocketId { index, generation },
                        report.readiness,
                    );
                }
                Target::Stream { index, generation } => {
                    self.handle_stream_report(
                        owner,
                        StreamId { index, generation },
                        report.readiness,
                    );
                }
            }
        }
    }

    /// Handles a report about a stream. If the stream was closed earlier in this batch, its id is no longer valid; a
    /// stream that reuses the index has another generation.
    #[inline]
    fn handle_stream_report<O: EventHandler<Mail = M>>(
        &mut self,
        owner: &mut O,
        id: StreamId,
        readiness: Readiness,
    ) {
        let State { streams, counts, relays, .. } = &mut self.state;
        let Some(stream) = streams.get_mut(id.index, id.generation) else {
            counts.stale += 1;
            return;
        };
        if let Phase::Connecting { finish } = stream.phase {
            let answered = Readiness::WRITE | Readiness::HANGUP | Readiness::ERROR;
            if !readiness.any(answered) {
                return;
            }
            let fd = stream.fd.as_ref().expect("what is reported has a descriptor");
            match self.kernel.connected(fd) {
                Ok(()) => {
                    stream.phase = if finish { Phase::Flushing } else { Phase::Open };
                    stream.marks.set(Marks::CONNECTED);
                }
                Err(error) => stream.end(Reason::ConnectFailed(KernelError::from(&error))),
            }
        }
        stream.note(readiness);
        // A stream in the ready list is stepped later in this turn. If it were also stepped here, it could read twice
        // its budget.
        let is_ready = stream.marks.has(Marks::READY);
        // The common case: an open stream has bytes to receive, and nothing else is to be done for it.
        let receives = !is_ready && stream.step() == Step::Receive && stream.unconsumed.is_none();
        if receives && !stream.sends() && relays.is_empty() {
            let (kernel, hot) = (&mut self.kernel, &mut self.hot);
            let received = received::receive(kernel, stream, hot, &mut self.hot_capacity, counts);
            let key = stream.key;
            if received > 0 {
                self.offer_hot(owner, id, key);
            }
            if self.state.has_step(id) {
                self.step(owner, id, received);
            }
            return;
        }
        let sends = stream.sends();
        if sends && stream.marks.has(Marks::WRITABLE) {
            self.state.mark_dirty(id);
        }
        self.state.update_relay_to(id, false);
        if !is_ready {
            self.step(owner, id, 0);
        }
    }

    fn accept<O: EventHandler<Mail = M>>(&mut self, owner: &mut O, id: ListenerId) {
        for _ in 0..self.state.settings.accept_budget {
            let Some(listener) = self.state.listeners.get(id.index, id.generation) else {
                self.state.counts.stale += 1;
                return;
            };
            if !listener.should_watch() {
                return;
            }
            let accepted = self.kernel.accept(&listener.fd);
            match accepted.and_then(|(fd, peer)| self.add_accepted(fd, peer)) {
                Ok((stream, peer)) => {
                    self.state.counts.accepted += 1;
                    self.deliver(owner, Event::Accepted { listener: id, stream, peer });
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return,
                    io::ErrorKind::ConnectionAborted => {}
                    _ => return self.pause_after_failure(owner, id, KernelError::from(&error)),
                },
            }
        }
    }

    fn add_accepted(&mut self, fd: crate::Fd, peer: Peer) -> io::Result<(StreamId, Peer)> {
        let limits = self.state.shared_limits(StreamLimits::default());
        let stream = Stream::new(Some(fd), Direction::Both, limits);
        let id = self.state.add_stream(stream);
        let watched = self.watch_stream(id);
        if watched.is_err() {
            self.state.remove_stream(id);
        }
        watched.map(|()| (id, peer))
    }

    fn watch_stream(&mut self, id: StreamId) -> io::Result<()> {
        let Some(stream) = self.state.streams.get(id.index, id.generation) else { return Ok(()) };
        let Some(fd) = &stream.fd else { return Ok(()) };
        let token = Token::stream(id.index, id.generation);
        self.kernel.watch(fd, token, Interest::Stream(stream.direction))
    }

    /// Pauses a listener for a while: it would otherwise be reported again immediately, without success.
    fn pause_after_failure<O: EventHandler<Mail = M>>(
        &mut self,
        owner: &mut O,
        id: ListenerId,
        error: KernelError,
    ) {
        let now = self.state.clock.now();
        let Some(listener) = self.state.listeners.get_mut(id.index, id.generation) else { return };
        listener.retry_pending = true;
        if listener.alarm == Alarm::NONE {
            listener.alarm = self.state.wheel.create(AlarmKind::Listener(id));
        }
        self.state.wheel.set(listener.alarm, self.state.clock.tick_after(now + ACCEPT_RETRY_DELAY));
        self.state.work.listeners.push(id);
        self.deliver(owner, Event::AcceptFailed { listener: id, error });
    }

    /// Pauses listeners that could not be watched.
    fn pause_failed_listeners<O: EventHandler<Mail = M>>(&mut self, owner: &mut O) {
        while let Some((id, error)) = self.state.work.failed.pop() {
            self.pause_after_failure(owner, id, error);
        }
    }

    /// Delivers up to `budget` messages, and returns their number.
    fn read_mail<O: EventHandler<Mail = M>>(&mut self, owner: &mut O, budget: usize) -> usize {
        self.inbox.take(budget, &mut self.batch);
        let count = self.batch.len();
        if count == 0 {
            return 0;
        }
        while let Some(mail) = self.batch.pop_front() {
            self.state.counts.mail += 1;
            self.read_clock(count - self.batch.len());
            self.deliver(owner, Event::Mail(mail));
        }
        count
    }

    fn fire_alarms<O: EventHandler<Mail = M>>(&mut self, owner: &mut O) {
        if self.fired_delivered >= self.fired.len() {
            self.fired.clear();
            self.fired_delivered = 0;
        }
        self.state.wheel.advance(self.state.clock.settled_tick(), &mut self.fired);
        while let Some(alarm) = self.fired.get(self.fired_delivered).copied() {
            self.fired_delivered += 1;
            match self.state.wheel.collect(alarm) {
                None => {}
                Some(AlarmKind::Deadline { stream, slot }) if usize::from(slot) == LINGER => {
                    self.linger_is_over(stream);
                }
                Some(AlarmKind::Deadline { stream, slot }) => {
                    self.follow_progress(stream);
                    let found = self.state.streams.get(stream.index, stream.generation);
                    let key = found.map_or(OwnerKey::NONE, |stream| stream.key);
                    self.deliver(owner, Event::Deadline { stream, key, name: DeadlineName(slot) });
                }
                Some(AlarmKind::Timer(timer)) => {
                    let found = self.state.timers.get(timer.index, timer.generation);
                    let key = found.map_or(OwnerKey::NONE, |timer| timer.key);
                    self.deliver(owner, Event::Timer { timer, key });
                }
                Some(AlarmKind::Progress(stream)) => {
                    self.state.wheel.remove(alarm);
                    self.begin_progress(stream);
                }
                Some(AlarmKind::Listener(id)) => {
                    if let Some(listener) = self.state.listeners.get_mut(id.index, id.generation) {
                        listener.retry_pending = false;
                        self.state.work.listeners.push(id);
                    }
                }
            }
        }
    }

    /// Ends a stream whose peer accepted no output for too long, or did not end. If output is left, the stream ends
    /// with a reset, so that the peer notices the loss.
    fn linger_is_over(&mut self, id: StreamId) {
        self.follow_progress(id);
        if self.state.wait(id).is_some_and(|(wait, _)| wait.has_progressed()) {
            return self.state.begin_linger(id);
        }
        let Some(stream) = self.state.streams.get_mut(id.index, id.generation) else { return };
        if stream.queued() > 0 {
            stream.marks.set(Marks::RESETS);
        }
        self.state.end(id, Reason::Lingered);
    }

    /// Steps the streams that are ready. Streams that become ready meanwhile are stepped in the next turn.
    fn step_ready<O: EventHandler<Mail = M>>(&mut self, owner: &mut O) {
        if self.stepped >= self.stepping.len() {
            self.stepping.clear();
            self.stepped = 0;
            if self.state.work.ready.is_empty() && self.state.work.later.is_empty() {
                return;
            }
            std::mem::swap(&mut self.stepping, &mut self.state.work.ready);
        }
        while let Some(id) = self.stepping.get(self.stepped).copied() {
            self.stepped += 1;
            self.read_clock(self.stepped);
            if let Some(stream) = self.state.streams.get_mut(id.index, id.generation) {
                stream.marks.clear(Marks::READY);
                self.step(owner, id, 0);
            }
        }
        let work = &mut self.state.work;
        work.ready.append(&mut work.later);
    }
}
