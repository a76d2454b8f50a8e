//! What a shard has for its workers: what is heard on their streams, and timers.

use event::{Calls, StreamId, TimerId};
use exchange::PoolId;

use super::{Role, Shard};
use crate::workers::{Heard, Purpose};

impl Shard {
    /// Something is heard on a stream to a worker of this pool.
    #[inline]
    pub(super) fn hear(
        &mut self,
        calls: &mut Calls<'_>,
        stream: StreamId,
        (pool, purpose): (PoolId, Purpose),
        heard: Heard<'_, '_>,
    ) {
        let outside = &mut self.outside;
        self.core.with_workers(pool, |workers, up| {
            workers.hear(calls, (stream, purpose), heard, outside, up);
        });
    }

    /// Takes note of streams that were opened.
    pub(super) fn note_opened(&mut self) {
        // In their order: one that was closed again may have left its place to another.
        let mut opened = std::mem::take(&mut self.outside.opened);
        for (stream, pool, purpose) in opened.drain(..) {
            self.set_role(stream, Role::Worker { pool, purpose });
        }
        self.outside.opened = opened;
    }

    pub(super) fn timer(&mut self, calls: &mut Calls<'_>, timer: TimerId) {
        if self.pool_timer.is_some_and(|(it, _)| it == timer) {
            self.pool_timer = Some((timer, None));
            return self.core.handle_time();
        }
        if self.drain.is_timer(timer) {
            return self.drain_timer(calls);
        }
        let mut next = 0;
        while let Some(pool) = self.core.pools.next_id(&mut next) {
            let outside = &mut self.outside;
            let found = self
                .core
                .with_workers(pool, |workers, up| workers.handle_timer(calls, timer, outside, up));
            if found {
                return;
            }
        }
    }
}
