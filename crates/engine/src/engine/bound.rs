//! Session affinity cookies in replies.

use std::time::Instant;

use super::ServedPool;
use super::cookie::second;
use crate::exchanges::{Exchange, State};
use flow::reply_head::Head;

impl ServedPool {
    /// Writes the cookie of the worker to a reply, or learns the binding from the reply.
    pub(super) fn bind_by(&mut self, exchange: &Exchange, head: &mut Head, now: Instant) {
        let (Some(cookies), State::Working(worker), false) =
            (&self.cookies, exchange.state, head.is_interim())
        else {
            return;
        };
        let knows = exchange.attempt.knows.is_some()
            && exchange.attempt.knows == self.pool.affinity_target(worker);
        if knows && cookies.is_told_once() {
            return;
        }
        let learnt = cookies.write(head, worker, second(exchange.at_us));
        if let Some(key) = learnt {
            match self.balance.keys.shared {
                None => self.pool.handle_learned_key(now, worker, &key),
                Some(secret) => {
                    let key = pool::shared_key(secret, &key);
                    self.pool.handle_learned_key(now, worker, &key);
                }
            }
        }
    }
}
