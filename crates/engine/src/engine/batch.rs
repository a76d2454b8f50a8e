//! The outcomes of a batch. Nearly all of them are replies that end requests of this shard's clients. These are counted
//! together, and each exchange is looked up once.

use std::time::Instant;

use exchange::{Cause, End, ListenerId, Outcome, Phase, PoolId, RequestId, Table};

use super::tallies::count_at_listener;
use super::{Engine, ServedPool};
use crate::exchanges::{Exchange, State};
use flow::client::Client;
use flow::reply_event::ReplyEvent;
use observe::metrics::ListenerEnds;

/// Replies that are not counted yet, to requests that one listener received at the same time.
struct Tally {
    received: Instant,
    listener: Option<ListenerId>,
    replies: u64,
}

impl Tally {
    fn count(
        self,
        served: &mut ServedPool,
        listeners: &mut Table<ListenerId, ListenerEnds>,
        now: Instant,
    ) {
        let took = now.saturating_duration_since(self.received);
        let end = End::new(Cause::Answered, Phase::Reply);
        served.counts.count_all(end, took, self.replies);
        count_at_listener(listeners, self.listener, end, self.replies);
    }
}

/// Whether the exchange needs only its reply and no further processing.
fn ends_plainly(exchange: &Exchange) -> bool {
    matches!(exchange.client, Client::Session { .. })
        && matches!(exchange.state, State::Working(_))
        && exchange.log_entry.is_none()
        && exchange.parts.is_empty()
}

impl Engine {
    /// Like [`Self::complete`] for each outcome, in order.
    pub(super) fn complete_all(&mut self, pool: PoolId, answers: Vec<(RequestId, Outcome)>) {
        let served = &self.pools[pool];
        // Otherwise the outcome counts for the passive health check, or the reply goes to another pool.
        let plain = served.then.is_none() && !served.balance.judges;
        self.finished.reserve(answers.len());
        let mut tally: Option<Tally> = None;
        for (id, outcome) in answers {
            let found = if plain && matches!(outcome, Outcome::Reply(_)) {
                self.exchanges.close_if(id, ends_plainly)
            } else {
                None
            };
            let Some((client, received, listener)) = found else {
                self.complete(pool, id, outcome);
                continue;
            };
            match &mut tally {
                Some(tally) if (tally.received, tally.listener) == (received, listener) => {
                    tally.replies += 1;
                }
                _ => {
                    let next = Tally { received, listener, replies: 1 };
                    if let Some(before) = tally.replace(next) {
                        before.count(&mut self.pools[pool], &mut self.listener_ends, self.now);
                    }
                }
            }
            self.finished.push((client, ReplyEvent::End(outcome)));
        }
        if let Some(last) = tally {
            last.count(&mut self.pools[pool], &mut self.listener_ends, self.now);
        }
    }
}
