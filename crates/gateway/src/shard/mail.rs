//! Handles the messages of other threads to a shard.

use std::time::Instant;

use event::Context;
use exchange::{Cause, Outcome, Phase, PoolId, Slice};

use super::Shard;
use super::shortage::CLOSE_BATCH;
use crate::drain::Stage;
use crate::shard_mail::ShardMail;
use backend::health_checks::CheckResult;
use flow::backend_effect::BackendEffect;
use flow::client::{Client, Source};
use flow::request_meta::RequestMeta;
use observe::status::{ListenerStatus, MemoryStatus, PlaceStatus, PoolStatus, Status, WorkerTally};

impl Shard {
    pub(super) fn mail(&mut self, io: &mut Context<'_>, mail: ShardMail) {
        match mail {
            ShardMail::Program(report) => self.program_report(io, report),
            ShardMail::Worker(report) => self.worker_report(io, report),
            ShardMail::Ask { pool, line, reply } => self.ask(pool, line, reply),
            ShardMail::Order { pool, order, reply } => {
                let told = self.engine.order(&pool, &order);
                self.engine.barriers.owe(move || reply(told));
            }
            ShardMail::Explain { id, reply } => reply(self.engine.why(id)),
            ShardMail::RecentDecisions { pool, count, reply } => {
                reply(self.engine.lately(&pool, count));
            }
            ShardMail::Status(reply) => reply(self.status()),
            ShardMail::Recycle { pool, reply } => {
                let count = self.engine.recycle(&pool);
                self.engine.barriers.owe(move || reply(count));
            }
            ShardMail::Reload { reload, reply } => {
                let taken = self.reload(io, *reload);
                self.engine.barriers.owe(move || reply(taken));
            }
            ShardMail::Moved { name, to } => self.server_moved(io, &name, to),
            ShardMail::Bindings { pool, changes } => {
                self.engine.handle_binding_changes(pool, &changes);
            }
            ShardMail::CheckNow { pool, worker } => {
                if let Some(worker) = self.engine.worker_named(pool, &worker) {
                    let effect = BackendEffect::CheckNow { worker };
                    self.backends.carry_out(io, pool, effect);
                    self.take_reports(pool);
                }
            }
            ShardMail::AskAddressUses(reply) => self.report_address_uses(&reply),
            ShardMail::AddressUses { daemon, listener, uses } => {
                self.handle_address_uses(daemon, listener, &uses);
            }
            ShardMail::Shard { from, messages } => {
                for message in messages.0 {
                    self.engine.handle_crossing(from, message);
                }
            }
            // Memory is freed at the end of this turn.
            ShardMail::Memory => {}
            ShardMail::MakeRoom => {
                self.close_idle(io, CLOSE_BATCH);
            }
            ShardMail::Drain if self.drain.stage == Stage::Running => self.begin_drain(io),
            ShardMail::Drain | ShardMail::Stop => io.stop(),
        }
    }

    fn ask(&mut self, pool: PoolId, line: Slice, reply: Box<dyn FnOnce(Outcome) + Send>) {
        if self.drain.stage != Stage::Running {
            let text = "the daemon is about to end";
            return reply(Outcome::ended(Cause::Draining, Phase::Receive, text));
        }
        if self.engine.pools.get(pool).is_none() {
            let text = "there is no such pool";
            return reply(Outcome::ended(Cause::NoPool, Phase::Receive, text));
        }
        self.engine.submit(
            Client::Inside(reply),
            Source::INSIDE,
            (line.into(), RequestMeta::default()),
            pool,
            None,
        );
    }

    fn status(&self) -> Status {
        let listeners = self.listeners.values().map(|listener| ListenerStatus {
            name: listener.config.name.clone(),
            connections: listener.open,
            accepted: listener.accepted,
        });
        let pools = self.engine.pools.entries().map(|(id, served)| {
            let status = served.pool.status();
            let now = self.engine.now;
            let trouble = served.trouble.as_ref().filter(|_| status.open);
            PoolStatus {
                name: served.name.clone(),
                queued: status.queued,
                queued_bytes: status.queued_bytes,
                oldest: self.engine.oldest(id),
                down: status.open,
                down_kind: trouble
                    .map(|trouble| trouble.kind.clone())
                    .filter(|kind| !kind.is_empty()),
                down_reason: trouble.map(|trouble| trouble.detail.clone()),
                fallback: status.fallback.map(|(reason, since)| {
                    (reason.as_str(), self.engine.now.saturating_duration_since(since))
                }),
                bound: status.bound,
                on_backup: status.on_backup,
                places: served
                    .pool
                    .workers()
                    .map(|view| {
                        let check = self.backends.last_check(id, view.index, now);
                        place_status(view, check, served.tally(view.index, now), now)
                    })
                    .collect(),
                workers: self.backends.status(id),
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
            exchanges: self.engine.exchanges_here(),
            shard: self.engine.shard_link.me(),
            draining: self.drain.stage != Stage::Running,
        }
    }
}

fn place_status(
    view: pool::WorkerView<'_>,
    check: Option<CheckResult>,
    tally: WorkerTally,
    now: Instant,
) -> PlaceStatus {
    PlaceStatus {
        name: view.name.map_or_else(|| view.index.to_string(), str::to_owned),
        weight: view.weight_set.unwrap_or(view.weight),
        weight_configured: view.weight,
        weight_set: view.weight_set,
        admin_state: view.admin_state.as_str(),
        health: view.health.as_str(),
        health_since: view
            .health_since
            .map(|since| (view.health_cause.as_str(), now.saturating_duration_since(since))),
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
