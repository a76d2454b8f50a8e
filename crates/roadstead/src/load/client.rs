//! The event handler of the loop: opens connections, sends the lines that are due, evaluates the replies.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use event::{Context, Data, Event, EventHandler, Reason, StreamId, StreamLimits};
use memchr::memchr;

use super::account::Account;
use super::alarm::Alarm;
use super::connection::{ConnectionState, Line};
use super::fleet::Connections;
use super::pace::{Pace, Start, nanoseconds};
use super::reply;
use super::settings::{
    ID_FIRST, Lines, LoadSettings, OPENING_MAX, PROGRESS_EVERY, RESEND_AFTER, Timeouts,
};
use super::summary::{Progress, Summary};
use crate::ledger::Fate;
use crate::record::Recipe;

/// The maximum size of a reply in bytes.
const REPLY_MAX: usize = 1 << 20;

/// The phase of a run; see the diagram in the parent module.
#[derive(Clone, Copy, Debug)]
enum Phase {
    Opening { until: Instant },
    Sending,
    Waiting { until: Instant },
    Ended,
}

/// All connections of a run.
pub(super) struct Client<'a> {
    settings: &'a LoadSettings,
    patience: Timeouts,
    pace: Option<Pace>,
    stop: &'a AtomicBool,
    progress: &'a mut dyn FnMut(&Progress),
    account: Account,
    connections: Connections,
    phase: Phase,
    start: Start,
    /// The time until which lines are due, in nanoseconds after the start.
    sending_ns: u64,
    /// The next slot of the pace.
    slot: u64,
    /// When to check waiting connections again.
    later: BinaryHeap<Reverse<(Instant, usize)>>,
    alarm: Option<Alarm>,
    progress_at: Instant,
    last_reply_at: Instant,
    /// A buffer for the lines of one connection.
    lines: Vec<u8>,
    error: Option<io::Error>,
}

impl<'a> Client<'a> {
    pub(super) fn new(
        settings: &'a LoadSettings,
        patience: Timeouts,
        pace: Option<Pace>,
        account: Account,
        stop: &'a AtomicBool,
        progress: &'a mut dyn FnMut(&Progress),
    ) -> Self {
        let now = Instant::now();
        Self {
            settings,
            patience,
            pace,
            stop,
            progress,
            account,
            connections: Connections::new(settings.connections),
            phase: Phase::Opening { until: now + patience.opening },
            start: Start::now(),
            sending_ns: nanoseconds(settings.duration),
            slot: 0,
            later: BinaryHeap::new(),
            alarm: None,
            progress_at: now + PROGRESS_EVERY,
            last_reply_at: now,
            lines: Vec::new(),
            error: None,
        }
    }

    /// Begins to open connections, before the loop runs.
    ///
    /// # Errors
    /// The system cannot create a timer.
    pub(super) fn open(&mut self, io: &mut Context<'_>) -> io::Result<()> {
        self.alarm = Some(Alarm::new(io)?);
        self.open_more(io);
        self.set_alarm()
    }

    /// Returns the summary, after the loop has ended.
    pub(super) fn finish(mut self) -> io::Result<Summary> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        self.tell();
        let due = self.pace.map(|pace| pace.slots_before(self.sending_ns));
        let unsent = due.map_or(0, |due| due.saturating_sub(self.account.sent));
        let seconds = self.last_reply_at.saturating_duration_since(self.start.at).as_secs_f64();
        let summary = self.account.finish()?;
        Ok(Summary { connections: self.settings.connections, unsent, seconds, ..summary })
    }

    // ---- opening ----

    fn open_more(&mut self, io: &mut Context<'_>) {
        let fleet = &self.connections;
        let room = OPENING_MAX.saturating_sub(fleet.opening);
        let end = (fleet.begun + room).min(fleet.all.len());
        for place in fleet.begun..end {
            self.connect(io, place);
        }
        self.connections.begun = end;
    }

    fn connect(&mut self, io: &mut Context<'_>, place: usize) {
        let limits = StreamLimits { recv_buffer_max: REPLY_MAX, ..StreamLimits::default() };
        let stream = io.connect(&self.settings.to, limits);
        self.connections.opens(place, stream);
    }

    fn connected(&mut self, io: &mut Context<'_>, place: usize, stream: StreamId) {
        self.connections.set_state(place, ConnectionState::Open(stream));
        if std::mem::replace(&mut self.connections.all[place].was_open, true) {
            self.account.reconnects += 1;
        }
        match self.phase {
            Phase::Opening { .. } => {
                self.open_more(io);
                self.begin_when_open(io);
            }
            _ => self.send_due(io, place),
        }
    }

    /// Starts the clock when every connection is open or permanently gone.
    fn begin_when_open(&mut self, io: &mut Context<'_>) {
        let fleet = &self.connections;
        let all = fleet.all.len();
        if matches!(self.phase, Phase::Opening { .. }) && fleet.open + fleet.gone == all {
            if fleet.open == 0 {
                let why = "the listener closed every connection before the first line";
                self.fail(io, io::Error::new(io::ErrorKind::ConnectionAborted, why));
            } else {
                self.begin(io);
            }
        }
    }

    fn begin(&mut self, io: &mut Context<'_>) {
        self.phase = Phase::Sending;
        let progress = self.progress_now(Duration::ZERO);
        (self.progress)(&progress);
        self.start = Start::now();
        self.last_reply_at = self.start.at;
        self.progress_at = self.start.at + PROGRESS_EVERY;
        if self.pace.is_none() {
            for place in 0..self.connections.all.len() {
                self.send_due(io, place);
            }
        }
    }

    // ---- sending ----

    /// Sends all lines that a connection may send now.
    fn send_due(&mut self, io: &mut Context<'_>, place: usize) {
        let ConnectionState::Open(stream) = self.connections.all[place].link else { return };
        if !matches!(self.phase, Phase::Sending) {
            return;
        }
        let now = Instant::now();
        let recipe = Recipe { seed: self.settings.seed };
        while self.connections.all[place].outstanding.len() < self.settings.in_flight as usize {
            let Some(line) = self.next_line(place, now) else { break };
            let sample = recipe.sample(line.id);
            let record = sample.record(line.id, self.at_us(line));
            match self.settings.lines {
                Lines::Work => record.write(&mut self.lines),
                Lines::Json => record.write_json(&mut self.lines),
            }
            self.lines.push(b'\n');
            self.connections.all[place].outstanding.push_back(line);
        }
        if !self.lines.is_empty() {
            io.send_bytes(stream, &self.lines);
            self.lines.clear();
        }
    }

    /// Returns the line that a connection is to send now. The line is already counted in the account.
    fn next_line(&mut self, place: usize, now: Instant) -> Option<Line> {
        let connection = &mut self.connections.all[place];
        if let Some(&(at, line)) = connection.again.front()
            && at <= now
        {
            connection.again.pop_front();
            self.account.sent_again(line.id);
            return Some(line);
        }
        let now_ns = self.start.ns(now);
        let due_ns = match self.pace {
            None => now_ns,
            Some(pace) => pace.due_ns(pace.slot(place, connection.number)),
        };
        if due_ns > now_ns || due_ns >= self.sending_ns {
            return None;
        }
        connection.number += 1;
        let id = ID_FIRST + self.account.sent;
        self.account.sent(id, self.pace.map(|_| now_ns - due_ns));
        Some(Line { id, due_ns })
    }

    /// Returns the time in the record of a line.
    fn at_us(&self, line: Line) -> u64 {
        self.start.since_1970_us + line.due_ns / 1000
    }

    // ---- receiving ----

    fn received(&mut self, io: &mut Context<'_>, place: usize, mut data: Data<'_>) {
        let now = Instant::now();
        let mut start = 0;
        while let Some(length) = memchr(b'\n', &data.bytes()[start..]) {
            let reply = &data.bytes()[start..start + length];
            self.replied(place, reply.strip_suffix(b"\r").unwrap_or(reply), now);
            start += length + 1;
        }
        data.consume(start);
        if start > 0 {
            self.last_reply_at = now;
            self.send_due(io, place);
        }
    }

    fn replied(&mut self, place: usize, reply: &[u8], now: Instant) {
        let Some(line) = self.connections.all[place].outstanding.pop_front() else {
            match reply::notice(reply) {
                Some(code) => self.account.code(code),
                None => self.account.unasked(),
            }
            return;
        };
        self.connections.all[place].reset_failures();
        let sample = Recipe { seed: self.settings.seed }.sample(line.id);
        let own = sample.record(line.id, self.at_us(line));
        let judgement = reply::evaluate(self.settings.reply, reply, &own);
        let took_ns = self.start.ns(now).saturating_sub(line.due_ns);
        self.account.fate(line.id, judgement.fate, took_ns);
        if let Some(code) = judgement.code {
            self.account.code(code);
        }
        if judgement.fate == Fate::Refused && self.settings.resend_refused {
            let at = now + RESEND_AFTER;
            self.connections.all[place].again.push_back((at, line));
            self.later.push(Reverse((at, place)));
        }
    }

    // ---- losing ----

    fn lost(&mut self, io: &mut Context<'_>, place: usize, reason: Reason) {
        while let Some(line) = self.connections.all[place].outstanding.pop_front() {
            self.account.fate(line.id, Fate::Unknown, 0);
        }
        let opening = matches!(self.phase, Phase::Opening { .. });
        match reason {
            // The backlog of a Unix socket is full. On TCP the kernel tries again by itself.
            Reason::ConnectFailed(error)
                if opening && error.kind() == io::ErrorKind::WouldBlock => {}
            Reason::ConnectFailed(error) if opening && !self.settings.reconnect => {
                let why = format!("{}: {}", self.settings.to, error.kind());
                self.fail(io, io::Error::new(error.kind(), why));
                return;
            }
            _ if !self.settings.reconnect => {
                self.connections.set_state(place, ConnectionState::Gone);
                self.begin_when_open(io);
                return;
            }
            _ => {}
        }
        self.connections.set_state(place, ConnectionState::Waiting);
        let at = io.now() + self.connections.all[place].back_off();
        self.later.push(Reverse((at, place)));
    }

    fn fail(&mut self, io: &mut Context<'_>, error: io::Error) {
        self.error.get_or_insert(error);
        self.phase = Phase::Ended;
        io.stop();
    }

    // ---- time ----

    /// Handles the passing of time: waiting connections, lines that are due, ends of phases.
    fn time_passed(&mut self, io: &mut Context<'_>) {
        let now = Instant::now();
        while let Some(&Reverse((at, place))) = self.later.peek() {
            if at > now {
                break;
            }
            self.later.pop();
            self.look_again(io, place);
        }
        if let (Phase::Sending, Some(pace)) = (self.phase, self.pace) {
            let end_ns = self.start.ns(now).min(self.sending_ns);
            while pace.due_ns(self.slot) <= end_ns {
                self.send_due(io, pace.connection(self.slot));
                self.slot += 1;
            }
        }
        if now >= self.progress_at {
            self.progress_at = now + PROGRESS_EVERY;
            self.tell();
        }
        self.end_phase(io, now);
    }

    fn look_again(&mut self, io: &mut Context<'_>, place: usize) {
        match self.connections.all[place].link {
            // After the last line, connections are not reopened.
            ConnectionState::Waiting if !matches!(self.phase, Phase::Waiting { .. }) => {
                self.connect(io, place);
            }
            _ => self.send_due(io, place),
        }
    }

    fn end_phase(&mut self, io: &mut Context<'_>, now: Instant) {
        let stopped = self.stop.load(Ordering::Relaxed);
        match self.phase {
            Phase::Opening { until } if now >= until || stopped => {
                if self.connections.open > 0 {
                    self.begin(io);
                } else {
                    let why = format!("{}: no connection could be opened", self.settings.to);
                    self.fail(io, io::Error::new(io::ErrorKind::TimedOut, why));
                }
            }
            Phase::Sending if self.start.ns(now) >= self.sending_ns || stopped => {
                // Lines that would be due after a stop are not due any more.
                self.sending_ns = self.sending_ns.min(self.start.ns(now));
                self.phase = Phase::Waiting { until: now + self.patience.replies };
            }
            Phase::Waiting { until } if now >= until => self.give_up(io),
            _ => {}
        }
    }

    /// Gives up all lines that have no reply.
    fn give_up(&mut self, io: &mut Context<'_>) {
        for connection in &mut self.connections.all {
            while let Some(line) = connection.outstanding.pop_front() {
                self.account.fate(line.id, Fate::Unknown, 0);
            }
        }
        self.phase = Phase::Ended;
        io.stop();
    }

    /// Sets the alarm to the time of the next action.
    fn set_alarm(&mut self) -> io::Result<()> {
        let after_start = |ns| self.start.at.checked_add(Duration::from_nanos(ns));
        let in_phase = match self.phase {
            Phase::Opening { until } | Phase::Waiting { until } => Some(until),
            Phase::Sending => {
                let slot_ns = self.pace.map_or(u64::MAX, |pace| pace.due_ns(self.slot));
                after_start(slot_ns.min(self.sending_ns))
            }
            Phase::Ended => None,
        };
        let later = self.later.peek().map(|&Reverse((at, _))| at);
        let at = [in_phase, later].into_iter().flatten().fold(self.progress_at, Instant::min);
        self.alarm.as_mut().map_or(Ok(()), |alarm| alarm.set(at))
    }

    // ---- telling ----

    fn tell(&mut self) {
        let elapsed = match self.phase {
            Phase::Opening { .. } => Duration::ZERO,
            _ => self.start.at.elapsed(),
        };
        let progress = self.progress_now(elapsed);
        (self.progress)(&progress);
    }

    fn progress_now(&self, elapsed: Duration) -> Progress {
        Progress {
            opened: self.connections.open,
            connections: self.settings.connections,
            elapsed,
            sent: self.account.sent,
            acknowledged: self.account.count(Fate::Acknowledged),
            refused: self.account.count(Fate::Refused),
            failed_or_unknown: self.account.count(Fate::Failed) + self.account.count(Fate::Unknown),
            outstanding: self.account.outstanding,
            reconnects: self.account.reconnects,
        }
    }
}

impl EventHandler for Client<'_> {
    type Mail = ();

    fn handle(&mut self, io: &mut Context<'_>, event: Event<'_, ()>) {
        if matches!(self.phase, Phase::Ended) {
            return;
        }
        match event {
            Event::Connected { stream, .. } => {
                if let Some(place) = self.connections.of_stream(stream) {
                    self.connected(io, place, stream);
                }
            }
            Event::Data { stream, mut data, .. } => {
                if let Some(alarm) = self.alarm.as_mut().filter(|alarm| alarm.is(stream)) {
                    alarm.expired();
                    data.consume(data.bytes().len());
                    self.time_passed(io);
                } else if let Some(place) = self.connections.of_stream(stream) {
                    self.received(io, place, data);
                }
            }
            // A listener that has closed its direction sends no more replies.
            Event::Eof { stream, .. } => {
                if let Some(place) = self.connections.of_stream(stream) {
                    io.close(stream);
                    self.lost(io, place, Reason::Clean);
                }
            }
            Event::Closed { stream, reason, .. } => {
                if let Some(place) = self.connections.of_stream(stream) {
                    self.lost(io, place, reason);
                }
            }
            // Listeners, deadlines, timers, high-water marks and mail are not used. A hang-up is followed by the end of
            // the stream.
            _ => {}
        }
    }

    fn on_iteration_end(&mut self, io: &mut Context<'_>) {
        let over = match self.phase {
            Phase::Waiting { .. } => self.account.outstanding == 0,
            Phase::Sending => self.connections.gone == self.connections.all.len(),
            Phase::Opening { .. } | Phase::Ended => false,
        };
        if over || self.account.is_broken() {
            self.phase = Phase::Ended;
            io.stop();
        } else if let Err(error) = self.set_alarm() {
            self.fail(io, error);
        }
    }
}
