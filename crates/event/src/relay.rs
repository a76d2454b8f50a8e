//! What a stream keeps of a relay from it to another.

use crate::StreamId;
use crate::kernel::SplicePipe;
use crate::wait::Wait;

#[derive(Debug)]
pub(crate) struct Relay {
    pub(crate) to: StreamId,
    /// Bytes that are still to be received.
    pub(crate) left: u64,
    /// Received, and not yet accepted by the other side's kernel.
    pub(crate) flying: usize,
    /// Accepted, and not told yet.
    pub(crate) accepted: u64,
    /// The other side takes no more, for good.
    pub(crate) cut: bool,
    /// The other side has no room now.
    pub(crate) waits: bool,
    /// Bytes that were spliced to the other side.
    pub(crate) spliced: u64,
    /// Since when spliced bytes wait for it, or did when there were some.
    pub(crate) wait: Option<Wait>,
    pub(crate) way: Way,
}

#[derive(Debug)]
pub(crate) enum Way {
    Untried,
    /// `flying` bytes are in the conduit.
    Splice(SplicePipe),
    Copy,
}

impl Relay {
    pub(crate) const fn new(to: StreamId, left: u64) -> Self {
        Self {
            to,
            left,
            flying: 0,
            accepted: 0,
            cut: false,
            waits: false,
            spliced: 0,
            wait: None,
            way: Way::Untried,
        }
    }

    /// The other side has no room for what is in the conduit. True when it had before.
    pub(crate) const fn wait_to_splice(&mut self, tick: u64) -> bool {
        self.waits = true;
        let begins = self.wait.is_none();
        if begins {
            self.wait = Some(Wait::new(tick, self.spliced));
        }
        begins
    }

    /// The wait for the other side, and how many bytes were spliced to it.
    pub(crate) const fn wait(&mut self) -> Option<(&mut Wait, u64)> {
        match &mut self.wait {
            Some(wait) => Some((wait, self.spliced)),
            None => None,
        }
    }

    /// Bytes are in the conduit, to be spliced on.
    pub(crate) fn flies(&self) -> bool {
        matches!(self.way, Way::Splice(_)) && self.flying > 0
    }

    /// What came has not left: the other side is waited for.
    pub(crate) fn waits_to_send(&self) -> bool {
        self.waits || self.flying > 0
    }
}
