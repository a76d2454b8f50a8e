//! Fallback, passive health checks, and queries and commands of an operator.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use exchange::{
    AdminState, Cause, End, Outcome, Phase, PoolId, RequestId, Stamps, Verdict, WorkerId,
    WorkerIndex,
};
use pool::{Control, Decided, Decision, Refused, Retry};

use super::{Engine, QueuedRequest, ServedPool};
use crate::balance::FallbackConfig;
use crate::exchanges::{Move, State};
use flow::order::Order;
use flow::payload::Payload;
use flow::reply_event::ReplyEvent;
use observe::status::{Explanation, OrderResult, TimedDecisions};

impl Engine {
    /// Rejects a request that its pool returned, with the fallback if the pool has one (the "sorry server" of LVS).
    pub(crate) fn refuse(&mut self, id: RequestId, pool: PoolId, refused: Refused<QueuedRequest>) {
        let Refused { payload, cause } = refused;
        let served = &mut self.pools[pool];
        let fallback = served.balance.fallback.as_ref().filter(|_| is_fallback_on(cause));
        let outcome = match fallback {
            None => match served.trouble.as_ref().filter(|_| cause == Cause::Down) {
                Some(trouble) if !trouble.kind.is_empty() => {
                    super::down(&served.name, &trouble.kind)
                }
                _ => super::refusal(cause, &served.name),
            },
            Some(FallbackConfig::Page(page)) => {
                let page = Arc::clone(page);
                let exchange = self.exchanges.get_mut(id);
                let body = page.fill(id, cause, &served.name);
                let client = exchange.and_then(|exchange| {
                    if let Some(log_entry) = &mut exchange.log_entry {
                        log_entry.settle(page.status);
                    }
                    exchange.client.streamed()
                });
                self.finished.extend(client.map(|client| (client, ReplyEvent::Page(page))));
                Outcome::Fallback(End::new(cause, Phase::Queue), body)
            }
            Some(FallbackConfig::Pool(other)) => {
                let other = *other;
                served.counts.passed_on += 1;
                return self.pass_on(id, pool, other, payload);
            }
        };
        self.pools[pool].counts.fallback += u64::from(matches!(outcome, Outcome::Fallback(..)));
        self.end(id, outcome);
    }

    /// Passes a request to the fallback pool, in the form that its workers accept.
    fn pass_on(&mut self, id: RequestId, from: PoolId, to: PoolId, request: QueuedRequest) {
        let Some(exchange) = self.exchanges.get_mut(id) else { return };
        exchange.step(Move::PassOn, self.now);
        exchange.pool = to;
        let QueuedRequest { payload, meta, .. } = request;
        if self.pools[from].takes == self.pools[to].takes {
            return self.admit(id, to, payload, meta);
        }
        let served = &mut self.pools[to];
        let payload = match payload.fitted(&served.takes, meta.more) {
            Ok(payload) => payload,
            Err(why) => {
                served.counts.requests += 1;
                return self.end(id, Outcome::ended(Cause::Record, Phase::Queue, why));
            }
        };
        if let Payload::Http(..) = payload {
            let told = served.takes.plain_reply();
            if let Some(log_entry) = &mut exchange.log_entry {
                log_entry.replied = told.status;
            }
            let client = exchange.client.streamed();
            self.finished.extend(client.map(|client| (client, ReplyEvent::PlainReply(told))));
        }
        self.admit(id, to, payload, meta);
    }

    /// Records the outcome of a request for the passive health check of its worker.
    pub(crate) fn record_outcome(&mut self, pool: PoolId, id: RequestId, outcome: &Outcome) {
        let Some(exchange) = self.exchanges.get_mut(id) else { return };
        let State::Working(worker) = exchange.state else { return };
        let end = outcome.end();
        let good = match end.cause.verdict() {
            Verdict::Answered => !exchange.attempt.is_bad,
            Verdict::Refused | Verdict::Left => true,
            Verdict::Failed | Verdict::Unknown => false,
        };
        let took = worker_time(&exchange.stamps, exchange.body_end, self.now);
        self.record_worker_outcome(pool, worker, good, took);
    }

    /// Carries out a command. The result is a text for the operator.
    pub fn order(&mut self, pool: &str, order: &Order) -> OrderResult {
        let now = self.now;
        let Some(served) = self.pools.values_mut().find(|served| served.name == pool) else {
            return OrderResult::Unknown(format!("there is no pool {pool}"));
        };
        let (worker, control, done) = match order {
            Order::Stored { worker, admin_state, weight, by } => {
                return served.apply_stored(now, worker, (*admin_state, *weight), by);
            }
            Order::Fallback(on) => {
                served.pool.handle_fallback(now, *on);
                served.dirty = true;
                let state = if *on { "on" } else { "off" };
                tracing::warn!("fallback of pool {pool} switched {state} by an operator");
                return OrderResult::Done(format!("fallback of pool {pool} switched {state}"));
            }
            Order::Weight(worker, weight) => {
                let done = match weight {
                    Some(weight) => format!("has the weight {weight}"),
                    None => "has its configured weight".to_owned(),
                };
                (worker, Control::Weight(*weight), done)
            }
            Order::Disable(worker) => {
                (worker, Control::AdminState(AdminState::Disabled), "is disabled".to_owned())
            }
            Order::Enable(worker) => {
                (worker, Control::AdminState(AdminState::Enabled), "is enabled".to_owned())
            }
            Order::Drain(worker) => (
                worker,
                Control::AdminState(AdminState::Drained),
                "is drained: it serves only clients that are bound to it".to_owned(),
            ),
        };
        // The log, `/status` and `ROADSTEAD_WORKER` prefix the name with that of the pool.
        let short = worker.strip_prefix(pool).and_then(|rest| rest.strip_prefix('/'));
        let mut control = |worker: &str| served.pool.handle_control(now, worker, control);
        if !control(worker) && !short.is_some_and(control) {
            let workers: Vec<String> = served
                .pool
                .workers()
                .map(|view| view.name.map_or_else(|| view.index.to_string(), str::to_owned))
                .collect();
            let workers = workers.join(", ");
            return OrderResult::Unknown(format!(
                "pool {pool} has no worker {worker}; its workers are {workers}"
            ));
        }
        served.dirty = true;
        let mut done = format!("worker {worker} of pool {pool} {done}");
        let is_meant = |view: &pool::WorkerView<'_>| match view.name {
            Some(name) => name == worker || short == Some(name),
            None => [Some(worker.as_str()), short].contains(&Some(view.index.to_string().as_str())),
        };
        if matches!(order, Order::Enable(_))
            && let Some(out) = served.pool.workers().find(is_meant).and_then(|view| view.out)
        {
            let _ = write!(done, "; it still receives no new requests: {out}");
        }
        tracing::warn!("{done}");
        OrderResult::Done(done)
    }

    /// The decisions about a request, by pool.
    pub fn why(&self, id: u64) -> Vec<Explanation> {
        let of = |served: &ServedPool| {
            let decisions = served.pool.why(id).map(|decision| self.told(served, decision));
            Explanation { pool: served.name.clone(), decisions: decisions.collect() }
        };
        self.pools.values().map(of).filter(|why| !why.decisions.is_empty()).collect()
    }

    /// The latest decisions in a pool; `None`: there is no such pool.
    pub fn lately(&self, pool: &str, count: usize) -> Option<TimedDecisions> {
        let served = self.pools.values().find(|served| served.name == pool)?;
        let latest = served.pool.decisions().take(count);
        let told = |decision: &Decision| (decision.at, decision.id, self.told(served, decision));
        Some(latest.map(told).collect())
    }

    /// Describes a decision in words.
    fn told(&self, served: &ServedPool, decision: &Decision) -> String {
        let name_at = |index: WorkerIndex| match served.pool.name_at(index) {
            Some(name) => name.to_owned(),
            None => format!("{}/{index}", served.name),
        };
        let name = |worker: WorkerId| name_at(worker.into());
        let ago = self.now.saturating_duration_since(decision.at);
        let what = match decision.decided {
            Decided::Given(worker, choice) => {
                format!("given to worker {} ({})", name(worker), choice.as_str())
            }
            Decided::Refused(cause) => format!("refused: {}", cause.as_str()),
            Decided::Returned(Retry { worker, why, times }) => {
                let named = |worker| format!("worker {}", name(worker));
                let worker = worker.map_or_else(|| "its worker".to_owned(), named);
                let why = match why {
                    Some(why) => {
                        format!("{worker} failed it ({}: {})", why.as_str(), why.meaning())
                    }
                    None => format!("it did not reach {worker}"),
                };
                format!("{why}, and it waits again (retry {times})")
            }
            Decided::Rescheduled(why) => {
                format!("the worker that its client is bound to is {why}: any other will do")
            }
        };
        // A worker with a free slot that was out could not be chosen.
        let is_out = |index: &WorkerIndex| decision.out().iter().any(|out| out.index == *index);
        let free: Vec<String> = (0..pool::PLACES_SEEN)
            .filter(|place| decision.free & (1 << place) != 0)
            .map(WorkerIndex::new)
            .filter(|index| !is_out(index))
            .map(name_at)
            .collect();
        let free = if free.is_empty() { "nobody".to_owned() } else { free.join(" ") };
        let mut text = format!(
            "{ago:.3?} ago {what}; waited {:.3?}, {} others waited; schedule {}, {} candidates{}, free: {free}",
            decision.waited(),
            decision.queued,
            decision.schedule.as_str(),
            decision.candidates,
            if decision.on_backup { " (backup)" } else { "" },
        );
        if let Some(key) = decision.key {
            text.push_str(&format!("; key {key:016x}"));
        }
        if decision.suspect {
            text.push_str(
                "; its reply is suspect: the worker printed more than it was asked before its next \
                 check was passed",
            );
        }
        for out in decision.out() {
            let name = out.name.clone().unwrap_or_else(|| name_at(out.index));
            text.push_str(&format!("; out: {name} {}", out.why));
        }
        text
    }
}

impl ServedPool {
    /// Applies what operators have stored for a server on all machines. Returns a remark about this daemon.
    fn apply_stored(
        &mut self,
        now: Instant,
        worker: &str,
        (admin_state, weight): (AdminState, Option<u32>),
        by: &str,
    ) -> OrderResult {
        let pool = &self.name;
        let controls = [Control::AdminState(admin_state), Control::Weight(weight)];
        let mut is_known = true;
        for control in controls {
            is_known &= self.pool.handle_control(now, worker, control);
        }
        if !is_known {
            return OrderResult::Unknown(format!("pool {pool} has no worker {worker}"));
        }
        self.dirty = true;
        let state = admin_state.as_str();
        let weight = weight.map_or_else(|| "default".to_owned(), |weight| weight.to_string());
        tracing::warn!("worker {worker} of pool {pool} is {state}, weight {weight}: {by}");
        let is_meant = |view: &pool::WorkerView<'_>| view.name == Some(worker);
        let out = self.pool.workers().find(is_meant).and_then(|view| view.out);
        let remark = out.filter(|_| admin_state == AdminState::Enabled);
        OrderResult::Done(remark.map_or_else(String::new, |out| {
            format!("on this machine it still receives no new requests: {out}")
        }))
    }
}

/// The time until a worker began its reply. The time in which the client sends the request body or reads the reply is
/// not included.
fn worker_time(stamps: &Stamps, body_end: Option<Instant>, now: Instant) -> Duration {
    let dispatched = stamps.dispatched.unwrap_or(now);
    let began = stamps.first_byte.filter(|began| *began >= dispatched);
    let until = began.unwrap_or(now);
    let since = body_end.filter(|end| (dispatched..=until).contains(end)).unwrap_or(dispatched);
    until.saturating_duration_since(since)
}

/// Whether the fallback applies to a rejection with this cause.
const fn is_fallback_on(cause: Cause) -> bool {
    matches!(cause, Cause::Full | Cause::Waited | Cause::Down | Cause::Fallback)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_worker_excludes_that_of_its_client() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let took = |body_end: Option<u64>, first_byte: Option<u64>, now: u64| {
            let stamps = Stamps {
                dispatched: Some(at(10)),
                first_byte: first_byte.map(at),
                ..Stamps::received(start)
            };
            worker_time(&stamps, body_end.map(at), at(now)).as_millis()
        };
        for (body_end, first_byte, now, expected) in [
            (None, None, 40, 30),
            (None, Some(15), 90, 5),
            // The client sent its body slowly.
            (Some(70), Some(75), 90, 5),
            (Some(70), None, 90, 20),
            // The worker began before the end of the body.
            (Some(70), Some(30), 90, 20),
            // The body had ended before the worker had the request.
            (Some(5), Some(15), 90, 5),
            // The first byte is that of another worker's reply, before a retry.
            (None, Some(5), 40, 30),
        ] {
            assert_eq!(took(body_end, first_byte, now), expected, "{body_end:?} {first_byte:?}");
        }
    }
}
