//! The context of a session for one call: the loop, the engine, scratch memory, and the access log entry of the
//! current request.
//!
//! The shard owns the parts and creates a context for each call, so data of one client cannot remain for the next.

use std::any::Any;

use event::Context;

use crate::routing;
use flow::address_limits::AddressLimits;
use flow::requests::Requests;
use observe::access_log::AccessEntry;

/// Scratch memory that sessions share.
#[derive(Debug, Default)]
pub struct Scratch {
    /// Memory for output that is sent immediately: see [`Self::take`].
    pub bytes: Vec<u8>,
    /// Memory for routing.
    pub(crate) routes: routing::Scratch,
    /// Memory of each protocol, one value of each type: see [`Self::own`].
    own: Vec<Box<dyn Any + Send>>,
}

impl Scratch {
    /// Takes the output memory, cleared. Return it with [`Self::give`].
    pub fn take(&mut self) -> Vec<u8> {
        let mut out = std::mem::take(&mut self.bytes);
        out.clear();
        out
    }

    /// Returns memory that was taken with [`Self::take`].
    pub fn give(&mut self, out: Vec<u8>) {
        self.bytes = out;
    }

    /// The memory of one protocol that its sessions share: the value of this type, created on first use.
    pub fn own<T: Any + Default + Send>(&mut self) -> &mut T {
        let found = self.own.iter().position(|own| own.is::<T>());
        let place = found.unwrap_or_else(|| {
            self.own.push(Box::new(T::default()));
            self.own.len() - 1
        });
        self.own[place].downcast_mut().expect("it was found by its type")
    }
}

/// The context of a session for one call.
pub struct SessionContext<'a, 'b> {
    /// The loop.
    pub io: &'a mut Context<'b>,
    /// The engine.
    pub requests: &'a mut dyn Requests,
    /// Limits per client address.
    pub address_limits: &'a mut dyn AddressLimits,
    /// Scratch memory.
    pub scratch: &'a mut Scratch,
    /// The access log entry of the current request, until that is submitted or rejected.
    pub entry: Option<Box<AccessEntry>>,
}

impl std::fmt::Debug for SessionContext<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionContext").field("entry", &self.entry).finish_non_exhaustive()
    }
}

impl<'a, 'b> SessionContext<'a, 'b> {
    /// A context without an access log entry.
    pub fn new(
        io: &'a mut Context<'b>,
        requests: &'a mut dyn Requests,
        address_limits: &'a mut dyn AddressLimits,
        scratch: &'a mut Scratch,
    ) -> Self {
        Self { io, requests, address_limits, scratch, entry: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_has_memory_of_its_own() {
        let mut scratch = Scratch::default();
        scratch.own::<Vec<u8>>().push(1);
        scratch.own::<String>().push('a');
        assert_eq!(scratch.own::<Vec<u8>>(), &[1]);
        assert_eq!(scratch.own::<String>(), "a");
    }
}
