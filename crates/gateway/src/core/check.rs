//! Checks of workers, as the core sees them: what they say goes to the pool, and lines that programs
//! are asked are requests of ours.

use std::sync::Arc;

use event::{Calls, StreamId};
use exchange::{Cause, Outcome, Peer, PoolId, Slice, WorkerId};

use super::{Core, Waiting};
use crate::checks::{Checks, Question};
use crate::exchanges::{Client, Move, Source};
use crate::form::Form;
use crate::outside::Outside;
use crate::payload::Payload;
use crate::upward::Upward;
use crate::worker_report::WorkerReport;

impl Core {
    /// Runs `act` on the checks of a pool, and carries what they say to it.
    pub(crate) fn with_checks<R>(
        &mut self,
        pool: PoolId,
        act: impl FnOnce(&mut Checks, &mut Vec<Upward>) -> R,
    ) -> Option<R> {
        let mut checks = self.pools.get_mut(pool)?.checks.take()?;
        let mut upward = std::mem::take(&mut self.upward);
        let result = act(&mut checks, &mut upward);
        self.pools[pool].checks = Some(checks);
        for report in upward.drain(..) {
            self.handle_upward(pool, report);
        }
        self.upward = upward;
        Some(result)
    }

    /// The connection of a check was made. Nothing is sent on it unless the worker itself takes it.
    pub(crate) fn check_connected(
        &mut self,
        calls: &mut Calls<'_>,
        (pool, target): (PoolId, usize),
        stream: StreamId,
        outside: &Outside,
    ) {
        let Some(served) = self.pools.get_mut(pool) else { return };
        let worker = served.checks.as_ref().and_then(|checks| checks.looks_at(target));
        let is_own =
            worker.is_none_or(|worker| served.workers.accepts(calls, worker, stream, outside));
        self.with_checks(pool, |checks, up| match is_own {
            true => checks.handle_connected(calls, target, stream, up),
            false => checks.handle_taken(calls, target, stream, up),
        });
    }

    /// Begins the checks that are due.
    pub(super) fn run_checks(&mut self, calls: &mut Calls<'_>, outside: &mut Outside) {
        let mut next = 0;
        while let Some(pool) = self.pools.next_id(&mut next) {
            let next = self.pools[pool].checks.as_ref().and_then(|checks| checks.next_time());
            if next.is_none_or(|next| next > self.now) {
                continue;
            }
            let questions =
                self.with_checks(pool, |checks, up| checks.run(calls, pool, outside, up));
            for question in questions.unwrap_or_default() {
                self.question(pool, question, outside);
            }
        }
    }

    /// Asks a worker a line, if it has nothing else to do.
    fn question(&mut self, pool: PoolId, question: Question, outside: &Outside) {
        let Question { worker, number, line } = question;
        let idle = |view: &pool::WorkerView<'_>| view.worker == Some(worker) && view.in_use == 0;
        if !self.pools[pool].pool.workers().any(|view| idle(&view)) {
            let now = self.now;
            self.with_checks(pool, |checks, _| checks.handle_unasked(now, number));
            return;
        }
        let reports = Arc::clone(&outside.reports);
        let reply =
            move |outcome: Outcome| reports(WorkerReport::Checked { pool, number, outcome });
        let client = Client::Inside(Box::new(reply));
        self.probe(pool, worker, client, Slice::from(line.as_str()));
    }

    /// Hands a request of ours to this worker, past all that wait: who is down, or not checked yet, is
    /// given nothing else.
    fn probe(&mut self, pool: PoolId, worker: WorkerId, client: Client, body: Slice) {
        let id = self.insert(client, Source::INSIDE, (pool, None), None);
        let at_us = self.at_us();
        let payload = Payload::Frame(body.compact());
        let waiting = Waiting { id, peer: Peer::Inside, at_us, payload, form: Form::default() };
        let exchange = self.exchanges.get_mut(id).expect("it was put in above");
        let served = &mut self.pools[pool];
        served.dirty = true;
        served.counts.requests += 1;
        let entry = waiting.entry(self.now, &served.balance.wishes, exchange);
        match served.pool.handle_probe(self.now, worker, waiting, entry) {
            Ok(ticket) => exchange.step(Move::Admit(ticket), self.now),
            Err(_) => self.end(id, super::refusal(Cause::Full, &self.pools[pool].name)),
        }
    }

    pub(super) fn checked_no_more(&mut self, pool: PoolId, worker: WorkerId) {
        if let Some(checks) = &mut self.pools[pool].checks {
            checks.handle_gone(worker);
        }
    }

    /// A check of a worker came to its end.
    pub(super) fn checked(&mut self, pool: PoolId, worker: WorkerId, good: bool) {
        self.pools[pool].pool.handle_check(self.now, worker, good);
        self.log_changes(pool);
    }

    /// A request could not be brought to a server: that is as good as a bad check.
    pub(super) fn doubted(&mut self, pool: PoolId, worker: WorkerId) {
        if let Some(checks) = &mut self.pools[pool].checks {
            checks.handle_doubt(self.now, worker);
        }
        self.checked(pool, worker, false);
    }
}
