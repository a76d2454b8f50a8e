//! What is kept of programs that are a connection's own.

use exchange::Slice;

use crate::pool_config::SessionWorkersConfig;
use crate::session_affinity::{SessionAffinity, Way};
use flow::ids::SessionId;

/// Programs that are a connection's own.
pub(super) struct SessionWorkers {
    pub(super) affinity: SessionAffinity,
    /// What tells a program to forget its client; without it, it is replaced.
    reset: Option<Slice>,
    /// What a program says unasked can be told from its answers.
    pub(super) tells_apart: bool,
    /// One has said things that could not: another may at any moment, and then its words would be
    /// taken for the answer to the order to forget, and that answer for a reply to the next client.
    pub(super) has_spoken: bool,
    /// One has spoken after it had answered the order to forget: until the next reload that is given
    /// to none, for what another says then would go to the next client.
    pub(super) spoke_after_reset: bool,
}

/// What a worker is to the client whose request it is given, where programs are connections' own.
pub(super) struct Bound {
    /// The client hears what it says unasked.
    pub(super) heard: bool,
    /// It was nobody's before.
    pub(super) is_new: bool,
}

impl SessionWorkers {
    pub(super) fn new(plan: SessionWorkersConfig) -> Self {
        let SessionWorkersConfig { reset, tells_apart } = plan;
        let reset = reset.as_deref().map(Slice::from);
        Self {
            affinity: SessionAffinity::default(),
            reset,
            tells_apart,
            has_spoken: false,
            spoke_after_reset: false,
        }
    }

    /// Other settings were taken over.
    pub(super) const fn handle_reload(&mut self) {
        self.spoke_after_reset = false;
    }

    /// Where requests of a session go.
    pub(super) fn way(&self, session: SessionId) -> Way {
        self.affinity.way(session)
    }

    /// What a program is told to forget its client; none: it is replaced.
    pub(super) fn order(&self) -> Option<Slice> {
        self.reset.clone().filter(|_| !self.has_spoken && !self.spoke_after_reset)
    }
}
