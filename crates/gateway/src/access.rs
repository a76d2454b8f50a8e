//! A shard as other threads see it: numbers, status, questions, and the order to end.

use std::sync::Arc;

use event::Mailbox;
use exchange::{Cause, Phase, Slice, Verdict};
use wire::lines::{Marks, write_reply};

use crate::balance::Order;
use crate::mail::Mail;
use crate::metrics::Metrics;
use crate::status::{Lately, Status, Told, Why};

/// A handle to a running shard.
#[derive(Clone, Debug)]
pub struct Access {
    mailbox: Mailbox<Mail>,
    metrics: Arc<Metrics>,
}

/// The answer to a request from within this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// What it means.
    pub verdict: Verdict,
    /// The line that a client of a `lines` listener would read, with its line end.
    pub line: Vec<u8>,
}

impl Access {
    /// A handle to the shard behind this mailbox.
    #[must_use]
    pub const fn new(mailbox: Mailbox<Mail>, metrics: Arc<Metrics>) -> Self {
        Self { mailbox, metrics }
    }

    /// All numbers in the Prometheus text format.
    #[must_use]
    pub fn render_metrics(&self) -> String {
        self.metrics.render()
    }

    /// Asks what is going on. `reply` is called on the shard's thread and must not block.
    pub fn status(&self, reply: impl FnOnce(Status) + Send + 'static) {
        self.mailbox.post(Mail::Status(Box::new(reply)));
    }

    /// Gives a pool one request. `reply` is called once, on the shard's thread, and must not block.
    pub fn ask(&self, pool: String, line: &[u8], reply: impl FnOnce(Answer) + Send + 'static) {
        let told = move |outcome: exchange::Outcome| {
            let mut line = Vec::new();
            write_reply(&mut line, Marks::Plain, &outcome);
            reply(Answer { verdict: outcome.end().cause.verdict(), line });
        };
        let mail = Mail::Ask { pool, line: Slice::from(line), reply: Box::new(told) };
        if let Err(Mail::Ask { reply, .. }) = self.mailbox.try_send(mail) {
            let text = "the shard has as much mail as it may";
            reply(exchange::Outcome::ended(Cause::Full, Phase::Receive, text));
        }
    }

    /// Replaces every worker of a pool, each once another is ready in its place. `reply` is told how
    /// many will be replaced, or that there is no such pool; it is called on the shard's thread and
    /// must not block.
    pub fn recycle(&self, pool: String, reply: impl FnOnce(Option<u32>) + Send + 'static) {
        self.mailbox.post(Mail::Recycle { pool, reply: Box::new(reply) });
    }

    /// Gives an order for a pool. `reply` is called once, on the shard's thread, and must not block.
    pub fn order(&self, pool: String, order: Order, reply: impl FnOnce(Told) + Send + 'static) {
        self.mailbox.post(Mail::Order { pool, order, reply: Box::new(reply) });
    }

    /// Asks why a request went where it went. `reply` is called once, on the shard's thread, and
    /// must not block.
    pub fn why(&self, id: u64, reply: impl FnOnce(Vec<Why>) + Send + 'static) {
        self.mailbox.post(Mail::Why { id, reply: Box::new(reply) });
    }

    /// Asks what was decided lately in a pool. `reply` is called once, on the shard's thread, and
    /// must not block.
    pub fn lately(
        &self,
        pool: String,
        count: usize,
        reply: impl FnOnce(Option<Lately>) + Send + 'static,
    ) {
        self.mailbox.post(Mail::Lately { pool, count, reply: Box::new(reply) });
    }

    /// Asks for the end in good order; a second time, at once.
    pub fn drain(&self) {
        self.mailbox.post(Mail::Drain);
    }
}
