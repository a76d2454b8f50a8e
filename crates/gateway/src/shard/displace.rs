//! Displaces idle connections of a listener that has reached its maximum number of connections. To accept a new one, it
//! closes an idle connection of this shard: the one that has been silent longest, and never one that waits for a reply.
//! If open files are short, the idle connections of all listeners are considered (`make_room.rs`).

use std::collections::BinaryHeap;

use event::Context;
use exchange::{Cause, ListenerId};

use super::Shard;
use super::shortage::{Among, IdleFound, SEARCH_INTERVAL_MS};
use flow::ids::SessionId;

/// The maximum number of idle connections that one search finds. Later calls use these results without a new search,
/// while they are still idle.
const FOUND_MAX: usize = 64;
impl Shard {
    /// Closes the connection of this listener that has been silent longest. Returns false if no connection of this
    /// shard is idle.
    pub(super) fn displace(&mut self, io: &mut Context<'_>, listener: ListenerId) -> bool {
        let found = self.longest_idle(io, Among::Listener(listener));
        if let Some(id) = found {
            self.leave(io, id, Cause::Left);
            self.note_displaced(listener);
        }
        found.is_some()
    }

    /// Removes and returns the idle connection of this shard that has been silent longest.
    pub(super) fn longest_idle(&mut self, io: &Context<'_>, among: Among) -> Option<SessionId> {
        loop {
            while let Some((since, id)) = self.idle_found(among).found.pop_front() {
                let found = self.sessions.get_mut(id);
                let still = found.is_some_and(|session| {
                    session.silent_since() == since && session.is_idle(io, &self.engine)
                });
                if still {
                    return Some(id);
                }
            }
            if !self.find_idle(io, among) {
                return None;
            }
        }
    }

    fn idle_found(&mut self, among: Among) -> &mut IdleFound {
        match among {
            Among::Listener(listener) => &mut self.listeners[listener].idle_found,
            Among::All => &mut self.shortage.idle_found,
        }
    }

    /// Searches for the connections that have been idle longest. Returns false if there are none.
    fn find_idle(&mut self, io: &Context<'_>, among: Among) -> bool {
        if io.tick() < self.idle_found(among).search_after {
            return false;
        }
        // The top of the heap is the connection that has been silent for the shortest time. It is replaced by an older
        // one.
        let mut oldest = BinaryHeap::with_capacity(FOUND_MAX + 1);
        let shard = self.engine.shard_link.me();
        for (place, session) in self.sessions.iter() {
            let belongs = among == Among::All || among == Among::Listener(session.listener_id());
            if belongs && session.is_idle(io, &self.engine) {
                oldest.push((session.silent_since(), SessionId::new(shard, place)));
                if oldest.len() > FOUND_MAX {
                    oldest.pop();
                }
            }
        }
        let idle = self.idle_found(among);
        idle.found = oldest.into_sorted_vec().into();
        if idle.found.is_empty() {
            idle.search_after = io.tick() + SEARCH_INTERVAL_MS;
        }
        !idle.found.is_empty()
    }

    fn note_displaced(&mut self, listener: ListenerId) {
        let listener = &mut self.listeners[listener];
        if let Some(closed) = listener.closings.count_displaced(self.engine.now) {
            let (listener, most) = (&listener.config.name, listener.config.connections_max);
            tracing::warn!(
                listener,
                closed,
                "connections_max ({most}) is reached: idle connections are closed for new ones"
            );
        }
    }
}
