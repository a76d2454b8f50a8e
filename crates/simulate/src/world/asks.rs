//! Makes requests from within the process of the gateway.

use std::sync::{Arc, PoisonError};

use exchange::{PoolId, Slice};
use gateway::ShardMail;

use crate::asks::{InternalRequest, NOWHERE};
use crate::scheduled_event::{Moment, ScheduledEvent};
use crate::world::World;

impl World {
    /// Schedules a request at `at`.
    pub(crate) fn add_ask(&mut self, at: Moment) {
        let number = self.users.asks.len();
        let id = u64::try_from(number).expect("few requests") + 9_000_000;
        let line = format!("{id} from within").into_bytes();
        let pool = self.scenario.job.first_pool();
        let pool = if self.chance.in_1000(100) { NOWHERE } else { pool };
        self.users.asks.push(InternalRequest {
            id,
            line,
            pool,
            asked_at: None,
            outcomes: Arc::default(),
        });
        self.at(at, ScheduledEvent::Ask(number));
    }

    pub(crate) fn ask(&mut self, number: usize) {
        let owner_shard = self.scenario.owner_shard;
        if self.loops[owner_shard].is_gone() {
            return;
        }
        self.note("asks from within: request", number, 0);
        let ask = &mut self.users.asks[number];
        ask.asked_at = Some(self.time.now);
        let outcomes = Arc::clone(&ask.outcomes);
        let reply = move |outcome| {
            outcomes.lock().unwrap_or_else(PoisonError::into_inner).push(outcome);
        };
        let line = Slice::from(&ask.line[..]);
        // Ids are assigned in the order of the configuration. In front of the pool that clients use there is one unused
        // pool for each shard before its owner shard.
        let place = u32::try_from(owner_shard).expect("few shards");
        let pool = if ask.pool == NOWHERE { PoolId::NONE } else { PoolId::new(place, 1) };
        self.post(owner_shard, ShardMail::Ask { pool, line, reply: Box::new(reply) });
    }
}
