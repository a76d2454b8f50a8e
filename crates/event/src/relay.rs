//! The state of a relay from one stream to another.

use crate::StreamId;
use crate::kernel::SplicePipe;
use crate::wait::Wait;

#[derive(Debug)]
pub(crate) struct Relay {
    pub(crate) to: StreamId,
    /// Bytes that are still to be received.
    pub(crate) left: u64,
    /// Received bytes that the kernel has not yet accepted for the other side.
    pub(crate) in_flight: usize,
    /// Accepted bytes that were not yet reported.
    pub(crate) accepted: u64,
    /// The other side accepts no more, permanently.
    pub(crate) target_gone: bool,
    /// The other side has no room now.
    pub(crate) waits: bool,
    /// Bytes that were spliced to the other side.
    pub(crate) spliced: u64,
    /// The current or most recent wait of spliced bytes for the other side.
    pub(crate) wait: Option<Wait>,
    pub(crate) mode: RelayMode,
}

#[derive(Debug)]
pub(crate) enum RelayMode {
    Untried,
    /// `in_flight` bytes are in the pipe.
    Splice(SplicePipe),
    Copy,
}

impl Relay {
    pub(crate) const fn new(to: StreamId, left: u64) -> Self {
        Self {
            to,
            left,
            in_flight: 0,
            accepted: 0,
            target_gone: false,
            waits: false,
            spliced: 0,
            wait: None,
            mode: RelayMode::Untried,
        }
    }

    /// Records that the other side has no room for the bytes in the pipe. Returns true if no wait was in progress.
    pub(crate) const fn wait_to_splice(&mut self, tick: u64) -> bool {
        self.waits = true;
        let begins = self.wait.is_none();
        if begins {
            self.wait = Some(Wait::new(tick, self.spliced));
        }
        begins
    }

    /// Returns the wait for the other side, and how many bytes were spliced to it.
    pub(crate) const fn wait(&mut self) -> Option<(&mut Wait, u64)> {
        match &mut self.wait {
            Some(wait) => Some((wait, self.spliced)),
            None => None,
        }
    }

    /// Whether bytes are in the pipe and are to be spliced on.
    pub(crate) fn is_splicing(&self) -> bool {
        matches!(self.mode, RelayMode::Splice(_)) && self.in_flight > 0
    }

    /// Whether received bytes have not left because the relay waits for the other side.
    pub(crate) fn waits_to_send(&self) -> bool {
        self.waits || self.in_flight > 0
    }
}
