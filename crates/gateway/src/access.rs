//! Access to the shards for other threads: metrics, status, requests, queries, orders, and the order to stop.

use std::sync::Arc;

use exchange::{Cause, Outcome, Phase, PoolId, Slice, Verdict};
use wire::lines::{Marks, write_reply};

use crate::fleet::Fleet;
use crate::shard_mail::ShardMail;
use engine::aggregator::Aggregator;
use flow::order::Order;
use observe::metrics::Metrics;
use observe::status::{Explanation, OrderResult, RecentDecisions, Status, TimedDecisions};

/// A handle to all running shards of a daemon.
#[derive(Clone, Debug)]
pub struct Access {
    fleet: Arc<Fleet>,
    metrics: Vec<Arc<Metrics>>,
}

/// A handle to one pool.
#[derive(Clone, Debug)]
pub struct PoolAccess {
    fleet: Arc<Fleet>,
    pool: PoolId,
    owner: u32,
}

impl PoolAccess {
    /// Sends one request to the pool. `reply` is called once. It is called on the shard's thread or, if the mailbox of
    /// the shard is full, before this returns. It must not block.
    pub fn ask(&self, line: &[u8], reply: impl FnOnce(Outcome) + Send + 'static) {
        let (line, reply) = (Slice::from(line), Box::new(reply));
        let mail = ShardMail::Ask { pool: self.pool, line, reply };
        if let Err(ShardMail::Ask { reply, .. }) = self.fleet.mailbox(self.owner).try_send(mail) {
            let text = "the shard has as much mail as it may";
            reply(Outcome::ended(Cause::Full, Phase::Receive, text));
        }
    }
}

/// The answer to a request from within this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The verdict.
    pub verdict: Verdict,
    /// The line that a client of a `lines` listener would read, with its line end.
    pub line: Vec<u8>,
}

impl Access {
    /// Creates a handle to these shards and their metrics.
    #[must_use]
    pub const fn new(fleet: Arc<Fleet>, metrics: Vec<Arc<Metrics>>) -> Self {
        Self { fleet, metrics }
    }

    /// Returns all metrics in the Prometheus text format.
    #[must_use]
    pub fn render_metrics(&self) -> String {
        match &self.metrics[..] {
            [alone] => alone.render(),
            all => Metrics::sum(all).render(),
        }
    }

    /// Requests the status. `reply` is called on a shard's thread and must not block. It is dropped if no shard
    /// answers.
    pub fn status(&self, reply: impl FnOnce(Status) + Send + 'static) {
        let fleet = Arc::clone(&self.fleet);
        let aggregator = Aggregator::new(move |all| {
            if let Some(status) = Status::together(all, |pool| fleet.owner_of(pool)) {
                reply(status);
            }
        });
        self.fleet.send_to_all(|| {
            let aggregator = Arc::clone(&aggregator);
            ShardMail::Status(Box::new(move |status| aggregator.add(status)))
        });
    }

    /// Sends one request to a pool. `reply` is called once, on the shard's thread or before this returns, and must not
    /// block.
    pub fn ask(&self, pool: &str, line: &[u8], reply: impl FnOnce(Answer) + Send + 'static) {
        let told = move |outcome: Outcome| {
            let mut line = Vec::new();
            write_reply(&mut line, Marks::Plain, &outcome);
            reply(Answer { verdict: outcome.end().cause.verdict(), line });
        };
        match self.pool(pool) {
            Some(pool) => pool.ask(line, told),
            None => {
                let text = format!("there is no pool {pool}");
                told(Outcome::ended(Cause::NoPool, Phase::Receive, &text));
            }
        }
    }

    /// Returns a handle to the pool with this name, for repeated requests.
    #[must_use]
    pub fn pool(&self, name: &str) -> Option<PoolAccess> {
        let (pool, owner) = self.fleet.find(name)?;
        Some(PoolAccess { fleet: Arc::clone(&self.fleet), pool, owner })
    }

    /// Replaces every worker of a pool, each once its replacement is ready. `reply` receives how many will be replaced,
    /// or `None` if no such pool exists. It is called on a shard's thread and must not block.
    pub fn recycle(&self, pool: String, reply: impl FnOnce(Option<u32>) + Send + 'static) {
        self.owner(&pool).post(ShardMail::Recycle { pool, reply: Box::new(reply) });
    }

    /// Sends an administrative order to a pool. `reply` is called once the order is applied on every running shard, on
    /// the thread of one of them, and must not block. It is dropped if the owner shard of the pool is gone.
    pub fn order(
        &self,
        pool: String,
        order: Order,
        reply: impl FnOnce(OrderResult) + Send + 'static,
    ) {
        self.owner(&pool).post(ShardMail::Order { pool, order, reply: Box::new(reply) });
    }

    /// Asks why a request was sent to its worker. `reply` is called once, on the shard's thread, and must not block.
    pub fn why(&self, id: u64, reply: impl FnOnce(Vec<Explanation>) + Send + 'static) {
        let aggregator = Aggregator::new(move |all: Vec<Vec<Explanation>>| reply(all.concat()));
        self.fleet.send_to_all(|| {
            let aggregator = Arc::clone(&aggregator);
            ShardMail::Explain { id, reply: Box::new(move |why| aggregator.add(why)) }
        });
    }

    /// Asks for the recent decisions in a pool, of its owner shard and of its member shards. `reply` is called once, on
    /// a shard's thread, and must not block.
    pub fn lately(
        &self,
        pool: String,
        count: usize,
        reply: impl FnOnce(Option<RecentDecisions>) + Send + 'static,
    ) {
        let aggregator = Aggregator::new(move |all: Vec<Option<TimedDecisions>>| {
            let mut told: TimedDecisions = match all.into_iter().collect::<Option<Vec<_>>>() {
                Some(all) => all.concat(),
                None => return reply(None),
            };
            told.sort_by_key(|(at, _, _)| std::cmp::Reverse(*at));
            told.truncate(count);
            reply(Some(told.into_iter().map(|(_, id, told)| (id, told)).collect()));
        });
        self.fleet.send_to_all(|| {
            let aggregator = Arc::clone(&aggregator);
            let reply = Box::new(move |told| aggregator.add(told));
            ShardMail::RecentDecisions { pool: pool.clone(), count, reply }
        });
    }

    /// Requests a graceful shutdown; a second call stops immediately.
    pub fn drain(&self) {
        self.fleet.send_to_all(|| ShardMail::Drain);
    }

    fn owner(&self, pool: &str) -> &event::Mailbox<ShardMail> {
        self.fleet.mailbox(self.fleet.owner_of(pool))
    }
}
