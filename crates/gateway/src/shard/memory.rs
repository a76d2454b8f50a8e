//! What a shard does about the limit on memory, once at the end of a turn.

use event::Context;

use super::Shard;
use crate::memory::LimitCheck;
use crate::shard_mail::ShardMail;
use flow::ids::SessionId;
use observe::closings::Closing;

/// A connection for which fewer bytes are held is not closed: it would free next to nothing.
const HELD_MIN: usize = 1024;

impl Shard {
    /// Publishes what is held here, and compares what all hold with the limit.
    pub(super) fn watch_memory(&mut self, io: &mut Context<'_>) {
        match self.look_at_memory() {
            LimitCheck::Within | LimitCheck::Left => {}
            // From now on new requests are rejected, by all shards. Each frees memory in its next turn, if
            // that is still needed then.
            LimitCheck::Entered => {
                self.fleet.holders().begin(self.engine.now);
                self.fleet.tell_all(|| ShardMail::Memory);
            }
            LimitCheck::Over => {
                self.free_memory(io);
                self.look_at_memory();
            }
        }
    }

    fn held(&self) -> usize {
        block::publish();
        self.fleet.held()
    }

    fn look_at_memory(&self) -> LimitCheck {
        let (held, memory) = (self.held(), self.fleet.memory());
        let look = memory.look(held);
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

    /// Closes the connections that hold most, of all shards, then rejects the requests that have waited longest, until
    /// little enough is held or nothing is left here to free.
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
            // It may be for another shard to close one.
            self.fleet.tell_all(|| ShardMail::Memory);
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
