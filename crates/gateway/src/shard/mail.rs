//! What other threads ask of a shard, and tell it.

use std::time::Instant;

use event::{Calls, Direction, Fd, StreamLimits};
use exchange::{Cause, Outcome, Phase, PoolId, Slice};
use spawn::Report;

use super::Shard;
use super::shortage::MANY;
use crate::checks::Checks;
use crate::drain::Stage;
use crate::exchanges::{Client, Source};
use crate::form::Form;
use crate::mail::Mail;
use crate::status::{ListenerStatus, MemoryStatus, PlaceStatus, PoolStatus, Status, WorkerTally};
use crate::worker_report::WorkerReport;

impl Shard {
    pub(super) fn mail(&mut self, calls: &mut Calls<'_>, mail: Mail) {
        match mail {
            Mail::Program(report) => self.program_report(calls, report),
            Mail::Worker(WorkerReport::Handler { pool, worker, report }) => {
                self.core.with_workers(pool, |workers, up| {
                    workers.handle_thread(calls, worker, report, up);
                });
            }
            Mail::Ask { pool, line, reply } => self.ask(pool, line, reply),
            Mail::Order { pool, order, reply } => {
                let told = self.core.order(&pool, &order);
                self.core.receipts.owe(move || reply(told));
            }
            Mail::Why { id, reply } => reply(self.core.why(id)),
            Mail::Lately { pool, count, reply } => reply(self.core.lately(&pool, count)),
            Mail::Worker(WorkerReport::Checked { pool, number, outcome }) => {
                let now = calls.now();
                self.core.with_checks(pool, |checks, up| {
                    checks.handle_answer(now, number, &outcome, up);
                });
            }
            Mail::Status(reply) => reply(self.status()),
            Mail::Recycle { pool, reply } => {
                let count = self.core.recycle(&pool);
                self.core.receipts.owe(move || reply(count));
            }
            Mail::Reload { reload, reply } => {
                let taken = self.reload(calls, *reload);
                self.core.receipts.owe(move || reply(taken));
            }
            Mail::Moved { name, to } => self.core.server_moved(calls, &name, to),
            Mail::Shard { from, crossings } => {
                for crossing in crossings.0 {
                    self.core.handle_crossing(from, crossing);
                }
            }
            // What is to be done is done at the end of this turn.
            Mail::Memory => {}
            Mail::MakeRoom => {
                self.close_idle(calls, MANY);
            }
            Mail::Drain if self.drain.stage == Stage::Running => self.begin_drain(calls),
            Mail::Drain | Mail::Stop => calls.stop(),
        }
    }

    fn program_report(&mut self, calls: &mut Calls<'_>, report: Report) {
        let token = match &report {
            Report::Started { token, .. }
            | Report::StartFailed { token, .. }
            | Report::Exited { token, .. } => *token,
            Report::KeeperLost => {
                self.keeper_lost += 1;
                tracing::error!("the keeper of the programs was lost; they are started again");
                return;
            }
            Report::KeeperBack => return tracing::info!("another keeper stands in"),
        };
        if matches!(&report, Report::StartFailed { error, .. } if error.lacks_descriptor()) {
            self.lacks_descriptor(calls, MANY);
        }
        if self.outside.checks.contains_key(&token) {
            return self.check_report(calls, token, report);
        }
        let Some(&(pool, worker)) = self.outside.tokens.get(&token) else { return };
        let outside = &mut self.outside;
        self.core.with_workers(pool, |workers, up| {
            workers.handle_process(calls, worker, report, outside, up);
        });
    }

    /// Of a program that checks a worker. What it writes is read and thrown away.
    fn check_report(&mut self, calls: &mut Calls<'_>, token: u64, report: Report) {
        let said = match report {
            Report::Started { pipes, .. } => {
                for pipe in [pipes.stdout, pipes.stderr] {
                    let pipe = Fd::from(pipe);
                    calls.adopt(pipe, Direction::In, StreamLimits::default());
                }
                return;
            }
            Report::StartFailed { error, .. } => Err(format!("it cannot be started: {error}")),
            Report::Exited { exit, .. } => match exit.status {
                spawn::Status::Code(0) => Ok(exit.to_string()),
                _ => Err(exit.to_string()),
            },
            Report::KeeperLost | Report::KeeperBack => return,
        };
        let Some((pool, place)) = self.outside.checks.remove(&token) else { return };
        let now = calls.now();
        self.core.with_checks(pool, |checks, up| {
            checks.handle_program(now, place, token, said, up);
        });
    }

    fn ask(&mut self, pool: PoolId, line: Slice, reply: Box<dyn FnOnce(Outcome) + Send>) {
        if self.drain.stage != Stage::Running {
            let text = "the daemon is about to end";
            return reply(Outcome::ended(Cause::Draining, Phase::Receive, text));
        }
        if self.core.pools.get(pool).is_none() {
            let text = "there is no such pool";
            return reply(Outcome::ended(Cause::NoPool, Phase::Receive, text));
        }
        self.core.submit(
            Client::Inside(reply),
            Source::INSIDE,
            (line.into(), Form::default()),
            pool,
            None,
        );
    }

    fn status(&self) -> Status {
        let listeners = self.listeners.values().map(|listener| ListenerStatus {
            name: listener.plan.name.clone(),
            connections: listener.open,
            accepted: listener.accepted,
        });
        let pools = self.core.pools.entries().map(|(id, served)| {
            let status = served.pool.status();
            let checks = served.checks.as_deref();
            let now = self.core.now;
            let trouble = served.workers.trouble().filter(|_| status.open);
            PoolStatus {
                name: served.name.clone(),
                queued: status.queued,
                queued_bytes: status.queued_bytes,
                oldest: self.core.oldest(id),
                down: status.open,
                down_kind: trouble
                    .map(|trouble| trouble.kind.clone())
                    .filter(|kind| !kind.is_empty()),
                down_reason: trouble.map(|trouble| trouble.detail.clone()),
                sorry: status.sorry.map(|(reason, since)| {
                    (reason.word(), self.core.now.saturating_duration_since(since))
                }),
                bound: status.bound,
                on_backup: status.on_backup,
                places: served
                    .pool
                    .workers()
                    .map(|view| {
                        let tally = served.tally(view.index, now);
                        place_status(view, checks, tally, now)
                    })
                    .collect(),
                workers: served.workers.status(),
            }
        });
        let memory = self.fleet.memory();
        Status {
            memory: MemoryStatus {
                held: self.fleet.held(),
                max: memory.max(),
                over: memory.is_over(),
            },
            listeners: listeners.collect(),
            pools: pools.collect(),
            exchanges: self.core.exchanges_here(),
            shard: self.core.others.me(),
            draining: self.drain.stage != Stage::Running,
        }
    }
}

fn place_status(
    view: pool::WorkerView<'_>,
    checks: Option<&Checks>,
    tally: WorkerTally,
    now: Instant,
) -> PlaceStatus {
    let check = checks.and_then(|checks| checks.last(view.index.get() as usize, now));
    PlaceStatus {
        name: view.name.map_or_else(|| view.index.to_string(), str::to_owned),
        weight: view.weight_set.unwrap_or(view.weight),
        weight_configured: view.weight,
        weight_set: view.weight_set,
        hand: view.hand.word(),
        health: view.health.word(),
        health_since: view
            .health_since
            .map(|since| (view.health_cause.word(), now.saturating_duration_since(since))),
        ejected_for: view.ejected_until.map(|until| until.saturating_duration_since(now)),
        check_kind: check.as_ref().map(|check| check.kind.clone()),
        check: check.map(|check| check.text),
        in_use: view.in_use,
        slots: view.slots,
        waiting: view.waiting,
        out: view.out,
        tally,
    }
}
