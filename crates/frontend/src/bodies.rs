//! Limits of the memory of buffered request bodies, per listener and per client address.
//!
//! The bodies of an address may use at most as many bytes as remain free, so an address that never completes its
//! bodies leaves half of the limit to the others. One body of the maximum size is always allowed.
//!
//! Addresses are counted by a keyed hash, without a lock between shards. Two addresses with the same hash, which a
//! client cannot cause on purpose, share one limit.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of counters for addresses.
const COUNTS: usize = 1024;

/// Limits of buffered request bodies.
#[derive(Clone, Copy, Debug)]
pub struct BodyLimits {
    /// The maximum size of all bodies, in bytes.
    pub all: usize,
    /// The maximum size of one body, in bytes.
    pub one: usize,
}

/// The limit that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    All,
    Client,
}

/// Bytes of the buffered bodies of one listener, on all shards.
#[derive(Debug)]
pub struct Bodies {
    all: AtomicUsize,
    clients: Box<[AtomicUsize]>,
    keys: RandomState,
}

impl Default for Bodies {
    fn default() -> Self {
        let clients = (0..COUNTS).map(|_| AtomicUsize::new(0)).collect();
        Self { all: AtomicUsize::new(0), clients, keys: RandomState::new() }
    }
}

impl Bodies {
    /// The current size of all buffered bodies, in bytes.
    pub fn held(&self) -> usize {
        self.all.load(Ordering::Relaxed)
    }

    /// The account of one body of a client at this address. Without an address only the limit of all bodies applies.
    pub(crate) fn share(self: &Arc<Self>, client: Option<IpAddr>) -> BodyShare {
        let client = client.map(|client| {
            // An IPv6 client usually has a /64 network.
            let network = match client.to_canonical() {
                IpAddr::V4(address) => u128::from(address.to_bits()),
                IpAddr::V6(address) => address.to_bits() >> 64,
            };
            usize::try_from(self.keys.hash_one(network) % COUNTS as u64).unwrap_or(0)
        });
        BodyShare { bodies: Arc::clone(self), client, bytes: 0 }
    }

    fn release(&self, client: Option<usize>, bytes: usize) {
        self.all.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(client) = client {
            self.clients[client].fetch_sub(bytes, Ordering::Relaxed);
        }
    }
}

/// The account of one body. Its bytes are released on drop.
#[derive(Debug)]
pub(crate) struct BodyShare {
    bodies: Arc<Bodies>,
    client: Option<usize>,
    bytes: usize,
}

impl BodyShare {
    /// Adds bytes.
    ///
    /// # Errors
    /// The limit that would be exceeded.
    pub(crate) fn take(&mut self, bytes: usize, limits: BodyLimits) -> Result<(), Full> {
        let more = |all: usize| all.checked_add(bytes).filter(|all| *all <= limits.all);
        let all = &self.bodies.all;
        let before = all.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        let before = before.map_err(|_| Full::All)?;
        if let Some(client) = self.client {
            let held = self.bodies.clients[client].fetch_add(bytes, Ordering::Relaxed) + bytes;
            let free = limits.all.saturating_sub(before + bytes);
            if held > free.max(limits.one) {
                self.bodies.release(self.client, bytes);
                return Err(Full::Client);
            }
        }
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for BodyShare {
    fn drop(&mut self) {
        self.bodies.release(self.client, self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: BodyLimits = BodyLimits { all: 1000, one: 100 };

    /// Takes bodies of 100 bytes until there is no room for one. Gives them, and why there is none.
    fn fill(bodies: &Arc<Bodies>, client: Option<&str>) -> (Vec<BodyShare>, Full) {
        let mut held = Vec::new();
        loop {
            let mut share = bodies.share(client.map(|client| client.parse().unwrap()));
            if let Err(full) = share.take(100, LIMITS) {
                return (held, full);
            }
            held.push(share);
        }
    }

    /// Two addresses with counts of their own.
    fn other_than(bodies: &Arc<Bodies>, client: &str) -> String {
        let count = |client: &str| bodies.share(Some(client.parse().unwrap())).client;
        let mut others = (1..).map(|host: u8| format!("10.0.0.{host}"));
        others.find(|other| count(other) != count(client)).unwrap()
    }

    #[test]
    fn one_address_leaves_half_of_the_room_to_others() {
        for client in ["192.0.2.1", "2001:db8::1"] {
            let bodies = Arc::default();
            let other = other_than(&bodies, client);
            let (first, full) = fill(&bodies, Some(client));
            assert_eq!((first.len(), full), (5, Full::Client));
            // Another has half of what is left.
            let (second, full) = fill(&bodies, Some(&other));
            assert_eq!((second.len(), full), (2, Full::Client));
            drop(first);
            assert_eq!(bodies.held(), 200);
            let (more, _) = fill(&bodies, Some(&other));
            assert_eq!(more.len(), 3, "it has half again");
            drop((second, more));
            assert_eq!(bodies.held(), 0);
        }
    }

    #[test]
    fn addresses_of_one_customer_have_one_share() {
        for (one, two) in [("2001:db8::1", "2001:db8::2"), ("192.0.2.1", "::ffff:192.0.2.1")] {
            let bodies = Arc::default();
            let (first, _) = fill(&bodies, Some(one));
            let (second, full) = fill(&bodies, Some(two));
            assert_eq!((first.len(), second.len(), full), (5, 0, Full::Client));
        }
    }

    #[test]
    fn a_body_of_full_size_is_never_too_much_for_one_address() {
        let bodies = Arc::default();
        let (local, full) = fill(&bodies, None);
        assert_eq!((local.len(), full), (10, Full::All), "whoever has no address may hold all");
        drop(local);
        let (_local, _) = fill(&bodies, None);
        assert_eq!(fill(&bodies, Some("192.0.2.1")).1, Full::All);
        let bodies = Arc::new(Bodies::default());
        let mut local = bodies.share(None);
        local.take(900, LIMITS).unwrap();
        let (held, _) = fill(&bodies, Some("192.0.2.1"));
        assert_eq!(held.len(), 1);
        assert_eq!(bodies.held(), 1000);
    }
}
