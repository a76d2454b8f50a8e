//! The readiness check of a program: connections are opened until the program accepts them.
//!
//! An inherited socket completes one connection before the program accepts it, but not a second one while the first
//! waits. A socket that the program creates itself completes no connection before it exists.
//!
//! ```text
//!   begin ──▶ trying ──connected──▶ made ──── as many as needed ──▶ ready
//!               ▲ └──refused──▶ pause ─┐
//!               └──────────────────────┘
//! ```

use std::time::Duration;

use event::{Address, Context, StreamId, StreamLimits, TimerId};
use exchange::{PoolId, WorkerId};
use spawn::PortOwner;

use flow::stream_owner::{StreamOwner, StreamPurpose, WorkerTimer};

/// The pause before another attempt. The first pause is doubled up to the maximum.
const PAUSE_FIRST: Duration = Duration::from_millis(5);
const PAUSE_LAST: Duration = Duration::from_millis(160);

/// The result of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// More connections are needed.
    Waits,
    /// The program accepts connections.
    Accepts,
}

pub(super) struct Readiness {
    pool: PoolId,
    pub(super) worker: WorkerId,
    address: Address,
    /// The inherited socket. The daemon's copy is closed when the program serves.
    socket: Option<spawn::Socket>,
    has_begun: bool,
    trying: Option<StreamId>,
    made: Vec<StreamId>,
    timer: Option<TimerId>,
    pause: Duration,
}

impl Readiness {
    pub(super) const fn new(
        (pool, worker): (PoolId, WorkerId),
        address: Address,
        socket: Option<spawn::Socket>,
    ) -> Self {
        Self {
            pool,
            worker,
            address,
            socket,
            has_begun: false,
            trying: None,
            made: Vec::new(),
            timer: None,
            pause: PAUSE_FIRST,
        }
    }

    const fn needed(&self) -> usize {
        if self.socket.is_some() { 2 } else { 1 }
    }

    /// Starts the check after the process has started.
    pub(super) fn begin(&mut self, io: &mut Context<'_>) {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.connect(io);
        }
    }

    fn connect(&mut self, io: &mut Context<'_>) {
        let stream = io.connect(&self.address, StreamLimits::default());
        self.trying = Some(stream);
        let purpose = StreamPurpose::ReadinessCheck(self.worker);
        io.set_key(stream, StreamOwner::Worker { pool: self.pool, purpose }.key());
    }

    pub(super) fn handle_connected(
        &mut self,
        io: &mut Context<'_>,
        stream: StreamId,
        owner: PortOwner,
    ) -> Step {
        if self.trying != Some(stream) {
            return Step::Waits;
        }
        if owner != PortOwner::Program {
            io.close(stream);
            self.handle_closed(io, stream);
            return Step::Waits;
        }
        self.trying = None;
        self.made.push(stream);
        if self.made.len() < self.needed() {
            self.connect(io);
            return Step::Waits;
        }
        if let Some(socket) = self.socket.take() {
            socket.open();
        }
        Step::Accepts
    }

    pub(super) fn handle_closed(&mut self, io: &mut Context<'_>, stream: StreamId) {
        if self.trying == Some(stream) {
            self.trying = None;
        }
        self.made.retain(|made| *made != stream);
        if self.trying.is_none() && self.timer.is_none() {
            let key = WorkerTimer::ReadinessCheck(self.worker).key(self.pool);
            self.timer = Some(io.timer_of(key, io.now() + self.pause));
            self.pause = (self.pause * 2).min(PAUSE_LAST);
        }
    }

    pub(super) fn is_timer(&self, timer: TimerId) -> bool {
        self.timer == Some(timer)
    }

    pub(super) fn handle_timer(&mut self, io: &mut Context<'_>) {
        if let Some(timer) = self.timer.take() {
            io.cancel_timer(timer);
        }
        if self.trying.is_none() {
            self.connect(io);
        }
    }

    pub(super) fn end(self, io: &mut Context<'_>) {
        for stream in self.made.into_iter().chain(self.trying) {
            io.close(stream);
        }
        if let Some(timer) = self.timer {
            io.cancel_timer(timer);
        }
    }
}
