//! The workers of all pools of a shard, and their health checks.
//!
//! What it is: it receives commands of the engine and events of the loop, and returns events for the engine
//! ([`Backends::reports`]). What it must never depend on: an exchange, a session, the engine.

use std::net::SocketAddr;
use std::time::Instant;

use event::{Context, StreamId, TimerId};
use exchange::{Outcome, PoolId, Table, WorkerId, WorkerIndex};

use crate::backend::{Backend, BackendContext};
use crate::connection_counts::ConnectionCounts;
use crate::health_checks::{CheckConfig, CheckResult, Checks, ProbeRequest};
use crate::system::System;
use crate::workers::WorkersConfig;
use flow::backend_effect::{BackendEffect, Roster};
use flow::backend_event::BackendEvent;
use flow::stream_event::StreamEvent;
use flow::stream_owner::{StreamPurpose, WorkerTimer};
use flow::worker_report::{HandlerReport, Reports};
use observe::metrics::Metrics;
use observe::status::WorkerStatus;

/// The configuration of the workers of one pool.
#[derive(Debug)]
pub struct BackendConfig {
    /// The workers.
    pub workers: WorkersConfig,
    /// Active health checks; `None`: they are off.
    pub check: Option<CheckConfig>,
}

impl BackendConfig {
    /// Creates the configuration for a pool that another shard serves.
    pub const fn off_shard() -> Self {
        Self { workers: WorkersConfig::OffShard, check: None }
    }
}

/// The workers of one pool.
struct PoolBackend {
    name: String,
    workers: Box<dyn Backend>,
    /// Active health checks.
    checks: Option<Box<Checks>>,
}

/// The workers of all pools of a shard.
pub struct Backends {
    pools: Table<PoolId, PoolBackend>,
    system: System,
    /// Whether any pool has health checks.
    is_checked: bool,
    /// The events of the last call.
    reports: Vec<BackendEvent>,
}

impl std::fmt::Debug for Backends {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Backends").field("system", &self.system).finish_non_exhaustive()
    }
}

impl Backends {
    /// Creates a value without pools.
    pub fn new(system: System) -> Self {
        Self { pools: Table::default(), system, is_checked: false, reports: Vec::new() }
    }

    /// Adds the workers of a pool. `room`: connection counts, if other shards connect to the same servers. `seed`: the
    /// seed for the jitter of health checks.
    pub fn insert(
        &mut self,
        pool: (PoolId, &str),
        config: BackendConfig,
        room: Option<ConnectionCounts>,
        seed: u64,
    ) {
        let BackendConfig { workers, check } = config;
        let (id, name) = pool;
        let backend = PoolBackend {
            name: name.to_owned(),
            workers: workers.open(pool, room),
            checks: check.map(|config| Box::new(Checks::new(name, config, seed))),
        };
        self.is_checked |= backend.checks.is_some();
        self.pools.insert_as(id, backend);
    }

    /// Returns the channel for reports from other threads or in a later turn.
    pub const fn later(&self) -> &Reports {
        &self.system.reports
    }

    /// Returns the id of the next pool; `next` is 0 before the first.
    pub fn next_id(&self, next: &mut usize) -> Option<PoolId> {
        self.pools.next_id(next)
    }

    /// Removes and returns the events of the last call. They concern the pool of that call. This must be called after
    /// each call.
    #[inline]
    pub fn reports(&mut self) -> std::vec::Drain<'_, BackendEvent> {
        self.reports.drain(..)
    }

    /// Runs `act` on the workers of a pool, if it exists.
    #[inline]
    fn with_workers(
        &mut self,
        io: &mut Context<'_>,
        pool: PoolId,
        act: impl FnOnce(&mut dyn Backend, &mut BackendContext<'_, '_>),
    ) {
        let Self { pools, system, reports, .. } = self;
        let Some(backend) = pools.get_mut(pool) else { return };
        let now = io.now();
        act(&mut *backend.workers, &mut BackendContext { io, system, events: reports });
        if backend.checks.is_some() {
            backend.follow(now, reports);
        }
    }

    /// Runs `act` on the health checks of a pool, if it has any.
    fn with_checks(&mut self, pool: PoolId, act: impl FnOnce(&mut Checks, &mut Vec<BackendEvent>)) {
        let Self { pools, reports, .. } = self;
        let checks = pools.get_mut(pool).and_then(|backend| backend.checks.as_mut());
        if let Some(checks) = checks {
            act(checks, reports);
        }
    }

    /// Carries out a command of the engine.
    #[inline]
    pub fn carry_out(&mut self, io: &mut Context<'_>, pool: PoolId, effect: BackendEffect) {
        if let BackendEffect::CheckNow { worker } = effect {
            let now = io.now();
            return self.with_checks(pool, |checks, _| checks.check_now(now, worker));
        }
        self.with_workers(io, pool, |workers, cx| match effect {
            BackendEffect::Dispatch { worker, request, meta, more_follow, heard } => {
                if let Some(heard) = heard {
                    workers.set_heard(worker, heard);
                }
                workers.dispatch(cx, worker, request, meta, more_follow);
            }
            BackendEffect::Control { worker, id, control } => {
                workers.control(cx, worker, id, control);
            }
            BackendEffect::Start { worker } => workers.start(cx, worker),
            BackendEffect::Stop { worker } => workers.stop(cx, worker),
            BackendEffect::Retire { worker } => workers.retire(cx, worker),
            BackendEffect::Throttle { worker, paused } => {
                workers.pause_program(cx.io, worker, paused);
            }
            BackendEffect::Leave { worker, gone, replaced } => {
                workers.leave(worker, gone, replaced);
            }
            BackendEffect::ReleaseIdle { worker } => workers.release_idle(cx.io, worker),
            BackendEffect::CheckNow { .. } => {}
        });
    }

    /// Handles an event on a stream to a worker of this pool.
    #[inline]
    pub fn handle_stream_event(
        &mut self,
        io: &mut Context<'_>,
        pool: PoolId,
        of: (StreamId, StreamPurpose),
        heard: StreamEvent<'_, '_>,
    ) {
        self.with_workers(io, pool, |workers, cx| workers.on_stream(cx, of, heard));
    }

    /// Handles an event on the stream of a health check of the worker `target`.
    pub fn handle_check_event(
        &mut self,
        io: &mut Context<'_>,
        (pool, target): (PoolId, WorkerIndex),
        stream: StreamId,
        heard: StreamEvent<'_, '_>,
    ) {
        let Self { pools, system, reports, .. } = self;
        let found = pools.get_mut(pool);
        let Some(PoolBackend { workers, checks: Some(checks), .. }) = found else { return };
        let cx = &mut BackendContext { io, system, events: reports };
        match heard {
            // Nothing is sent before it is known that the worker accepted the connection, and not another process.
            StreamEvent::Connected => {
                let worker = checks.checked_worker(target);
                match worker.is_none_or(|it| workers.accepts(cx.io, it, stream, cx.system)) {
                    true => checks.handle_connected(cx, target, stream),
                    false => checks.handle_foreign_accept(cx, target, stream),
                }
            }
            heard => checks.handle_stream_event(cx, target, stream, heard),
        }
    }

    /// Handles a timer of the workers of a pool.
    pub fn handle_timer(
        &mut self,
        io: &mut Context<'_>,
        pool: PoolId,
        timer: (TimerId, WorkerTimer),
    ) {
        self.with_workers(io, pool, |workers, cx| workers.on_timer(cx, timer));
    }

    /// Handles a report of a handler thread.
    pub fn handle_thread(
        &mut self,
        io: &mut Context<'_>,
        pool: PoolId,
        worker: WorkerId,
        report: HandlerReport,
    ) {
        self.with_workers(io, pool, |workers, cx| workers.on_report(cx, worker, report));
    }

    /// Handles a report of the process supervisor about the process with this token. Returns its pool; `None`: the
    /// token is stale.
    pub fn handle_process(
        &mut self,
        io: &mut Context<'_>,
        token: u64,
        report: spawn::Report,
    ) -> Option<PoolId> {
        if self.system.checks.contains_key(&token) {
            return self.handle_check_process(io, token, report);
        }
        let &(pool, worker) = self.system.tokens.get(&token)?;
        self.with_workers(io, pool, |workers, cx| workers.on_process(cx, worker, report));
        Some(pool)
    }

    /// Handles a report about a program that checks a worker.
    fn handle_check_process(
        &mut self,
        io: &mut Context<'_>,
        token: u64,
        report: spawn::Report,
    ) -> Option<PoolId> {
        let said = Checks::read_report(io, report)?;
        let (pool, place) = self.system.checks.remove(&token)?;
        let now = io.now();
        self.with_checks(pool, |checks, events| {
            checks.handle_program(now, place, token, said, events);
        });
        Some(pool)
    }

    /// Handles the outcome of the health check request with this number.
    pub fn handle_answer(&mut self, now: Instant, pool: PoolId, number: u64, outcome: &Outcome) {
        self.with_checks(pool, |checks, events| checks.handle_answer(now, number, outcome, events));
    }

    /// Handles that the health check request with this number was not sent.
    pub fn handle_not_sent(&mut self, now: Instant, pool: PoolId, number: u64) {
        self.with_checks(pool, |checks, _| checks.handle_not_sent(now, number));
    }

    /// Starts the health checks of a pool that are due. Returns those that must be sent as requests.
    pub fn run_checks(&mut self, io: &mut Context<'_>, pool: PoolId) -> Vec<ProbeRequest> {
        let Self { pools, system, reports, .. } = self;
        let checks = pools.get_mut(pool).and_then(|backend| backend.checks.as_mut());
        let cx = &mut BackendContext { io, system, events: reports };
        checks.map_or_else(Vec::new, |checks| checks.run(cx, pool))
    }

    /// Whether any pool has, or had, health checks.
    pub const fn is_checked(&self) -> bool {
        self.is_checked
    }

    /// Whether a health check of this pool is due.
    pub fn is_check_due(&self, now: Instant, pool: PoolId) -> bool {
        let checks = self.pools.get(pool).and_then(|backend| backend.checks.as_ref());
        checks.and_then(|checks| checks.next_time()).is_some_and(|next| next <= now)
    }

    /// Returns when the next health check of any pool is due.
    #[inline]
    pub fn next_time(&self) -> Option<Instant> {
        if !self.is_checked {
            return None;
        }
        let checks = self.pools.values().filter_map(|backend| backend.checks.as_ref());
        checks.filter_map(|checks| checks.next_time()).min()
    }

    /// Applies a new address of a named server. Requests in flight continue on the old one.
    pub fn handle_moved(&mut self, io: &mut Context<'_>, pool: PoolId, name: &str, to: SocketAddr) {
        self.with_workers(io, pool, |workers, cx| workers.on_moved(cx, name, to));
        self.with_checks(pool, |checks, _| checks.handle_moved(name, to));
    }

    /// Applies new settings to the workers of a pool. `seed` and `room` are as for [`Self::insert`].
    pub fn reload(
        &mut self,
        io: &mut Context<'_>,
        pool: PoolId,
        (config, roster): (BackendConfig, &Roster),
        room: Option<ConnectionCounts>,
        seed: u64,
    ) {
        let Self { pools, system, is_checked, .. } = self;
        let Some(backend) = pools.get_mut(pool) else { return };
        let BackendConfig { workers, check } = config;
        backend.workers.configure(workers.into_config(), &roster.names, room);
        *is_checked |= check.is_some();
        backend.reload_checks(io, (check, seed), roster, system);
    }

    /// Requests handlers to abort their work, because the daemon stops.
    pub fn interrupt(&self) {
        self.pools.values().for_each(|backend| backend.workers.interrupt());
    }

    /// Closes one idle connection to a server of any pool. Returns `false` if there is none.
    pub fn close_idle_server(&mut self, io: &mut Context<'_>) -> bool {
        self.pools.values_mut().any(|backend| backend.workers.close_one_idle(io))
    }

    /// Whether no pool has a worker.
    pub fn is_empty(&self) -> bool {
        self.pools.values().all(|backend| backend.workers.is_empty())
    }

    /// Publishes the numbers of health checks.
    #[inline]
    pub fn publish(&self, metrics: &Metrics) {
        if !self.is_checked {
            return;
        }
        for (pool, backend) in self.pools.entries() {
            if let Some(checks) = &backend.checks {
                let (made, failed) = checks.counts();
                let to = metrics.pool(pool);
                to.checks.set(made);
                to.checks_failed.set(failed);
            }
        }
    }

    /// Returns the status of the workers of a pool.
    pub fn status(&self, pool: PoolId) -> Vec<WorkerStatus> {
        self.pools.get(pool).map_or_else(Vec::new, |backend| backend.workers.status())
    }

    /// Returns the result of the last health check of a worker, and how long ago it was.
    pub fn last_check(
        &self,
        pool: PoolId,
        worker: WorkerIndex,
        now: Instant,
    ) -> Option<CheckResult> {
        self.pools.get(pool)?.checks.as_ref()?.last(worker, now)
    }
}

impl PoolBackend {
    /// Updates the health checks after events of the workers.
    fn follow(&mut self, now: Instant, reports: &[BackendEvent]) {
        let Some(checks) = &mut self.checks else { return };
        for report in reports {
            match *report {
                BackendEvent::Started { worker } => {
                    if let Some(address) = self.workers.address(worker) {
                        checks.handle_address(worker, address);
                    }
                    checks.handle_started(now, worker);
                }
                BackendEvent::Retired { worker } | BackendEvent::Ended { worker, .. } => {
                    checks.handle_gone(worker);
                }
                BackendEvent::Unreached { worker } => checks.check_now(now, worker),
                _ => {}
            }
        }
    }

    fn reload_checks(
        &mut self,
        io: &mut Context<'_>,
        (config, seed): (Option<CheckConfig>, u64),
        roster: &Roster,
        system: &mut System,
    ) {
        let now = io.now();
        let Some(mut config) = config else {
            if let Some(mut checks) = self.checks.take() {
                checks.end_all(io, system);
            }
            return;
        };
        config.arrange(roster.names.as_slice());
        if let Some(checks) = &mut self.checks {
            return checks.handle_config(config, now);
        }
        let mut checks = Checks::new(&self.name, config, seed);
        for &worker in &roster.running {
            if !self.workers.is_starting(worker) {
                if let Some(address) = self.workers.address(worker) {
                    checks.handle_address(worker, address);
                }
                checks.handle_started(now, worker);
            }
        }
        self.checks = Some(Box::new(checks));
    }
}
