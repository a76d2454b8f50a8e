//! The workers of a shard: events of their streams, timers, and commands of the engine.

use std::net::SocketAddr;
use std::sync::Arc;

use event::{Context, OwnerKey, StreamId, TimerId};
use exchange::{Outcome, PoolId};
use spawn::Report;

use super::Shard;
use super::shortage::CLOSE_BATCH;
use backend::health_checks::ProbeRequest;
use flow::backend_effect::BackendEffect;
use flow::client::Client;
use flow::stream_event::StreamEvent;
use flow::stream_owner::{StreamOwner, TimerOwner};
use flow::worker_report::WorkerReport;

impl Shard {
    /// Passes the events that the workers of a pool have reported to the engine.
    #[inline]
    pub(super) fn take_reports(&mut self, pool: PoolId) {
        for report in self.backends.reports() {
            self.engine.handle_event(pool, report);
        }
    }

    /// Carries out the effects of the engine for workers, until there are none.
    pub(super) fn pump(&mut self, io: &mut Context<'_>) {
        self.carry_out_urgent(io);
        if self.backends.is_checked() {
            self.run_checks(io);
        }
        while let Some((pool, effect)) = self.engine.poll_effect() {
            self.carry_out(io, pool, effect);
        }
    }

    /// Carries out effects that must not wait for the end of the turn.
    #[inline]
    pub(super) fn carry_out_urgent(&mut self, io: &mut Context<'_>) {
        while let Some((pool, effect)) = self.engine.poll_urgent() {
            self.carry_out(io, pool, effect);
        }
    }

    #[inline]
    fn carry_out(&mut self, io: &mut Context<'_>, pool: PoolId, effect: BackendEffect) {
        self.backends.carry_out(io, pool, effect);
        self.take_reports(pool);
    }

    /// Handles an event on a stream to a worker, or on the stream of a health check.
    #[inline]
    pub(super) fn handle_stream_event(
        &mut self,
        io: &mut Context<'_>,
        stream: StreamId,
        owner: StreamOwner,
        heard: StreamEvent<'_, '_>,
    ) {
        let pool = match owner {
            StreamOwner::Worker { pool, purpose } => {
                self.backends.handle_stream_event(io, pool, (stream, purpose), heard);
                pool
            }
            StreamOwner::Check { pool, target } => {
                self.backends.handle_check_event(io, (pool, target), stream, heard);
                pool
            }
            StreamOwner::Nobody | StreamOwner::Session(_) | StreamOwner::Refused => return,
        };
        self.take_reports(pool);
    }

    pub(super) fn timer(&mut self, io: &mut Context<'_>, timer: TimerId, key: OwnerKey) {
        match TimerOwner::of(key) {
            TimerOwner::Nobody => {}
            TimerOwner::Pools => {
                self.pool_timer = Some((timer, None));
                self.engine.handle_time();
            }
            TimerOwner::Drain => self.drain_timer(io),
            TimerOwner::Workers { pool, timer: of } => {
                self.backends.handle_timer(io, pool, (timer, of));
                self.take_reports(pool);
            }
        }
    }

    /// Handles a report of the thread of a worker, or the reply to a health check request.
    pub(super) fn worker_report(&mut self, io: &mut Context<'_>, report: WorkerReport) {
        let pool = match report {
            WorkerReport::Handler { pool, worker, report } => {
                self.backends.handle_thread(io, pool, worker, report);
                pool
            }
            WorkerReport::Checked { pool, number, outcome } => {
                self.backends.handle_answer(io.now(), pool, number, &outcome);
                pool
            }
        };
        self.take_reports(pool);
    }

    /// Handles a report of the supervisor about a process.
    pub(super) fn program_report(&mut self, io: &mut Context<'_>, report: Report) {
        let token = match &report {
            Report::Started { token, .. }
            | Report::StartFailed { token, .. }
            | Report::Exited { token, .. } => *token,
            Report::SupervisorLost => {
                self.supervisor_lost += 1;
                tracing::error!("the supervisor of the programs was lost; they are started again");
                return;
            }
            Report::SupervisorReplaced => return tracing::info!("another supervisor has started"),
        };
        if matches!(&report, Report::StartFailed { error, .. } if error.lacks_descriptor()) {
            self.lacks_descriptor(io, CLOSE_BATCH);
        }
        if let Some(pool) = self.backends.handle_process(io, token, report) {
            self.take_reports(pool);
        }
    }

    /// Handles a changed address of a named server.
    pub(super) fn server_moved(&mut self, io: &mut Context<'_>, name: &str, to: SocketAddr) {
        let mut next = 0;
        while let Some(pool) = self.backends.next_id(&mut next) {
            self.backends.handle_moved(io, pool, name, to);
            self.take_reports(pool);
        }
    }

    /// Starts the health checks that are due.
    fn run_checks(&mut self, io: &mut Context<'_>) {
        let now = io.now();
        let mut next = 0;
        while let Some(pool) = self.backends.next_id(&mut next) {
            if !self.backends.is_check_due(now, pool) {
                continue;
            }
            let requests = self.backends.run_checks(io, pool);
            self.take_reports(pool);
            for request in requests {
                self.send_check(io, pool, request);
            }
        }
    }

    /// Sends a health check request to a worker, if it has no request in flight.
    fn send_check(&mut self, io: &Context<'_>, pool: PoolId, request: ProbeRequest) {
        let ProbeRequest { worker, number, line } = request;
        if !self.engine.is_free(pool, worker) {
            return self.backends.handle_not_sent(io.now(), pool, number);
        }
        let reports = Arc::clone(self.backends.later());
        let reply =
            move |outcome: Outcome| reports(WorkerReport::Checked { pool, number, outcome });
        self.engine.probe(pool, worker, Client::Inside(Box::new(reply)), &line);
    }
}
