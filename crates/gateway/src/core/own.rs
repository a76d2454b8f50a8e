//! Programs that are a connection's own, as the core sees them: where requests of a connection go,
//! and what becomes of its program when it has ended.

use exchange::{Peer, Slice, Stamps, WorkerId};

use super::{Core, ServedPool, Waiting};
use crate::bindings::{Bindings, Slot, Way};
use crate::exchanges::{Client, Exchange, SessionId, State};
use crate::plan::OwnPlan;

/// Programs that are a connection's own.
pub(super) struct Own {
    bindings: Bindings,
    /// What tells a program to forget its client; without it, it is replaced.
    reset: Option<Slice>,
}

impl Own {
    pub(super) fn new(plan: OwnPlan) -> Self {
        let OwnPlan { reset } = plan;
        Self { bindings: Bindings::default(), reset: reset.as_deref().map(Slice::from) }
    }
}

impl ServedPool {
    /// Where a request of this client goes.
    pub(super) fn way(&self, client: &Client) -> Way {
        match (&self.own, client) {
            (Some(own), Client::Session { session, .. }) => own.bindings.way(*session),
            _ => Way::Pool,
        }
    }

    pub(super) fn bind(&mut self, worker: WorkerId, client: &Client) {
        if let Some(own) = &mut self.own {
            let session = match client {
                Client::Session { session, .. } => Some(*session),
                Client::Inside(_) => None,
            };
            own.bindings.dispatched(worker, session);
        }
    }

    pub(super) fn slot(&mut self, worker: WorkerId) -> Slot {
        self.own.as_mut().map_or(Slot::Free, |own| own.bindings.released(worker))
    }

    pub(super) fn lose(&mut self, worker: WorkerId) {
        if let Some(own) = &mut self.own {
            own.bindings.lost(worker);
        }
    }
}

impl Core {
    /// A connection has gone, or may ask nothing more: its own program is returned.
    pub(crate) fn leave(&mut self, session: SessionId) {
        for place in 0..self.pools.len() {
            let own = self.pools[place].own.as_mut();
            if let Some(worker) = own.and_then(|own| own.bindings.left(session)) {
                self.give_up(place, worker);
            }
        }
    }

    /// All connections may ask nothing more.
    pub(crate) fn leave_all(&mut self) {
        let owns = self.pools.iter().filter_map(|served| served.own.as_ref());
        let sessions: Vec<_> = owns.flat_map(|own| own.bindings.sessions()).collect();
        for session in sessions {
            self.leave(session);
        }
    }

    /// Whether a session whose replies are still owed may ask for more: not before it is known
    /// which program is its own.
    pub(crate) fn may_ask_more(&self, place: usize, session: SessionId) -> bool {
        let own = self.pools[place].own.as_ref();
        own.is_none_or(|own| own.bindings.way(session) != Way::Pool)
    }

    /// A connection's own program is returned: it is told to forget, or replaced.
    pub(super) fn give_up(&mut self, place: usize, worker: WorkerId) {
        let reset = self.pools[place].own.as_ref().and_then(|own| own.reset.clone());
        let Some(body) = reset else { return self.used_up.push((place, worker)) };
        let (at_us, peer) = (self.epoch.at_us(self.now), Peer::Inside);
        let id = self.exchanges.insert(Exchange {
            client: Client::Inside(Box::new(drop)),
            peer,
            at_us,
            stamps: Stamps::received(self.now),
            parts: Vec::new(),
            pool: place,
            state: State::Received,
        });
        self.direct.push((place, worker, Waiting { id, peer, at_us, body }));
    }
}
