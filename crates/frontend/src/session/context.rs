//! What a session is lent for one call: where its requests go, memory to work with, and the access-log
//! entry of the request at hand.
//!
//! The shard owns all of it and makes a context for each call, so nothing of one client's request can be
//! left for the next.

use crate::routing;
use flow::address_limits::AddressLimits;
use flow::requests::Requests;
use observe::access_log::AccessEntry;

/// Memory that is used again by one client after the other.
#[derive(Debug, Default)]
pub struct Scratch {
    /// For whoever writes something that is sent at once: see [`Self::take`].
    pub bytes: Vec<u8>,
    /// For the route of a request.
    pub(super) routes: routing::Scratch,
}

impl Scratch {
    /// Empty memory to write to, which is given back with [`Self::give`]. This is the one place where what
    /// was written before is removed.
    pub fn take(&mut self) -> Vec<u8> {
        let mut out = std::mem::take(&mut self.bytes);
        out.clear();
        out
    }

    pub fn give(&mut self, out: Vec<u8>) {
        self.bytes = out;
    }
}

/// What a session works with during one call.
pub struct SessionContext<'a> {
    pub requests: &'a mut dyn Requests,
    /// The limits of clients by their addresses.
    pub address_limits: &'a mut dyn AddressLimits,
    pub scratch: &'a mut Scratch,
    /// The access-log entry of the request at hand, until that is submitted or rejected.
    pub entry: Option<Box<AccessEntry>>,
}

impl<'a> SessionContext<'a> {
    pub fn new(
        requests: &'a mut dyn Requests,
        address_limits: &'a mut dyn AddressLimits,
        scratch: &'a mut Scratch,
    ) -> Self {
        Self { requests, address_limits, scratch, entry: None }
    }
}
