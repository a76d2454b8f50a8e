//! What a shard has for its workers: what is heard on their streams, and timers.

use event::{Calls, OwnerKey, StreamId, TimerId};
use exchange::PoolId;

use super::Shard;
use crate::owners::{Purpose, TimerOwner};
use crate::stream_event::StreamEvent;

impl Shard {
    /// Something is heard on a stream to a worker of this pool.
    #[inline]
    pub(super) fn hear(
        &mut self,
        calls: &mut Calls<'_>,
        stream: StreamId,
        (pool, purpose): (PoolId, Purpose),
        heard: StreamEvent<'_, '_>,
    ) {
        let outside = &mut self.outside;
        self.core.with_workers(pool, |workers, up| {
            workers.hear(calls, (stream, purpose), heard, outside, up);
        });
    }

    pub(super) fn timer(&mut self, calls: &mut Calls<'_>, timer: TimerId, key: OwnerKey) {
        match TimerOwner::of(key) {
            TimerOwner::Nobody => {}
            TimerOwner::Pools => {
                self.pool_timer = Some((timer, None));
                self.core.handle_time();
            }
            TimerOwner::Drain => self.drain_timer(calls),
            TimerOwner::Workers { pool, timer: of } => {
                let outside = &mut self.outside;
                self.core.with_workers(pool, |workers, up| {
                    workers.handle_timer(calls, (timer, of), outside, up);
                });
            }
        }
    }
}
