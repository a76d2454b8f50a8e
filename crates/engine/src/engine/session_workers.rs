//! State of the programs that serve one connection each.

use exchange::Slice;

use crate::pool_config::SessionWorkersConfig;
use crate::session_affinity::{SessionAffinity, SessionTarget};
use flow::ids::SessionId;

/// Programs that serve one connection each.
pub(super) struct SessionWorkers {
    pub(super) affinity: SessionAffinity,
    /// The request that resets a program. `None`: the program is replaced.
    reset: Option<Slice>,
    /// The protocol distinguishes unsolicited messages from replies.
    pub(super) tells_apart: bool,
    /// A program has sent unsolicited messages that look like replies. From then on no program is reset: such a message
    /// could be mistaken for the reply to the reset, and that reply for one to the next client.
    pub(super) has_spoken: bool,
    /// A program has sent output after the reply to its reset. Until the next reload no program is reset, because such
    /// output would reach the next client.
    pub(super) spoke_after_reset: bool,
}

/// The binding of a worker to the client of a request, for programs that serve one connection each.
pub(super) struct Bound {
    /// The client receives unsolicited messages.
    pub(super) heard: bool,
    /// The worker was not bound before.
    pub(super) is_new: bool,
}

impl SessionWorkers {
    pub(super) fn new(config: SessionWorkersConfig) -> Self {
        let SessionWorkersConfig { reset, tells_apart } = config;
        let reset = reset.as_deref().map(Slice::from);
        Self {
            affinity: SessionAffinity::default(),
            reset,
            tells_apart,
            has_spoken: false,
            spoke_after_reset: false,
        }
    }

    /// Applies a reload.
    pub(super) const fn handle_reload(&mut self) {
        self.spoke_after_reset = false;
    }

    /// The destination of requests of a session.
    pub(super) fn way(&self, session: SessionId) -> SessionTarget {
        self.affinity.way(session)
    }

    /// The request that resets a program. `None`: the program is replaced.
    pub(super) fn order(&self) -> Option<Slice> {
        self.reset.clone().filter(|_| !self.has_spoken && !self.spoke_after_reset)
    }
}
