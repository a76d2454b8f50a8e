//! Enforces the memory limit in a shard, once at the end of a turn.

use event::Context;

use super::Shard;
use crate::memory::LimitCheck;
use crate::shard_mail::ShardMail;
use flow::ids::SessionId;
use observe::closings::Closing;

/// The minimum number of bytes of a connection that is closed. Closing a smaller one would free almost nothing.
const HELD_MIN: usize = 1024;

impl Shard {
    /// Publishes the memory in use by this shard, and compares the total with the limit.
    pub(super) fn watch_memory(&mut self, io: &mut Context<'_>) {
        match self.check_memory() {
            LimitCheck::Within | LimitCheck::Left => {}
            // From now on all shards reject new requests. Each shard frees memory in its next turn, if that is still
            // necessary.
            LimitCheck::Entered => {
                self.fleet.holders().begin(self.engine.now);
                self.fleet.send_to_all(|| ShardMail::Memory);
            }
            LimitCheck::Over => {
                self.free_memory(io);
                self.check_memory();
            }
        }
    }

    fn held(&self) -> usize {
        block::publish();
        self.fleet.held()
    }

    fn check_memory(&self) -> LimitCheck {
        let (held, memory) = (self.held(), self.fleet.memory());
        let look = memory.check(held);
        let max = memory.max();
        match look {
            LimitCheck::Entered => {
                tracing::warn!(
                    held,
                    "memory_max ({max}) is exceeded: new requests are rejected, then the connections that hold \
                     most are closed"
                );
            }
            LimitCheck::Left => {
                tracing::warn!(held, "memory_max ({max}) is kept again: requests are taken");
            }
            LimitCheck::Within | LimitCheck::Over => {}
        }
        look
    }

    /// Closes the connections of all shards that hold most memory. Then rejects the requests that have waited longest.
    /// Stops when the use is low enough or nothing is left to free on this shard.
    fn free_memory(&mut self, io: &mut Context<'_>) {
        let low = self.fleet.memory().low();
        if self.held() <= low {
            return;
        }
        let shard = self.engine.shard_link.me();
        let sessions = self.sessions.iter();
        let mut holders: Vec<(usize, SessionId)> = sessions
            .map(|(place, session)| (session.held(io), SessionId::new(shard, place)))
            .filter(|(bytes, _)| *bytes >= HELD_MIN)
            .collect();
        holders.sort_unstable_by(|one, other| other.cmp(one));
        let (now, mut closed) = (self.engine.now, 0);
        let largest = |closed: usize| holders.get(closed).map_or(0, |(bytes, _)| *bytes);
        let mut is_news = self.fleet.holders().publish(shard, largest(0), now);
        while let Some((bytes, session)) = holders.get(closed)
            && self.fleet.holders().is_largest(shard, *bytes, now)
        {
            if self.held() <= low {
                return;
            }
            self.close_session(io, *session, Closing::Memory);
            closed += 1;
            is_news |= self.fleet.holders().publish(shard, largest(closed), now);
        }
        if is_news && self.held() > low {
            // Another shard may have to close a connection now.
            self.fleet.send_to_all(|| ShardMail::Memory);
        }
        let has_larger = !self.fleet.holders().is_largest(shard, 0, now);
        if closed < holders.len() || has_larger {
            return;
        }
        let mut rest = self.held().saturating_sub(low);
        while rest > 0
            && let Some(bytes) = self.engine.reject_oldest()
        {
            rest = rest.saturating_sub(bytes.max(1));
        }
        self.pump(io);
        self.hand_out(io);
        self.flush(io);
    }
}
