//! Which clients a listener admits, and how much they may do: its networks and its limits per address.
//!
//! A client that is rejected here uses no other resource: no session, no queue. `pool::AddressLimiter` keeps the state
//! of each address. Clients without an address, on Unix sockets and in this process, are always admitted.

use std::net::IpAddr;
use std::time::Instant;

use exchange::{Cause, ListenerId, Outcome, Peer, Phase, Table};
use pool::{AddressLimiter, Over};
use settings::Addresses;

use flow::address_limits::{AddressLimits, Entry};

/// The client limits of one listener.
#[derive(Debug)]
pub(crate) struct ClientLimits {
    addresses: Addresses,
    /// The secret of the cluster, if there is one.
    cluster: Option<(u64, u64)>,
    /// The state of addresses. It is kept when the limits are removed, for clients that connected under them.
    limiter: Option<AddressLimiter>,
}

impl ClientLimits {
    /// `cluster`: the secret with which limits are shared, if the daemon has a cluster.
    pub(crate) fn new(
        addresses: Addresses,
        cluster: Option<(u64, u64)>,
        now: Instant,
        seed: u64,
    ) -> Self {
        let limiter = addresses.limits.map(|limits| {
            let secret = (seed, seed.rotate_left(32) ^ 0x9e37_79b9_7f4a_7c15);
            let mut limiter = AddressLimiter::new(limiter_settings(limits), now, secret);
            if let Some(secret) = cluster.filter(|_| limits.shared) {
                limiter.share(secret);
            }
            limiter
        });
        Self { addresses, cluster, limiter }
    }

    /// Sets the networks and limits. Existing connections remain open and counted.
    pub(crate) fn handle_addresses(&mut self, addresses: Addresses, now: Instant, seed: u64) {
        match (&mut self.limiter, addresses.limits) {
            (Some(limiter), Some(limits)) => limiter.handle_settings(limiter_settings(limits)),
            (None, Some(_)) => {
                self.limiter = Self::new(addresses.clone(), self.cluster, now, seed).limiter;
            }
            (_, None) => {}
        }
        self.addresses = addresses;
    }

    /// Returns the limiter, if limits are configured.
    fn active_limiter(&mut self) -> Option<&mut AddressLimiter> {
        self.limiter.as_mut().filter(|_| self.addresses.limits.is_some())
    }

    /// Returns the limiter, if it is shared with other daemons.
    fn shared(&mut self) -> Option<&mut AddressLimiter> {
        let is_shared = self.addresses.limits.is_some_and(|limits| limits.shared);
        self.limiter.as_mut().filter(|_| is_shared && self.cluster.is_some())
    }

    /// Admits a connection. The returned value must be passed to [`Self::leave`] when the connection has ended.
    ///
    /// # Errors
    /// The reason for the rejection.
    pub(crate) fn enter(
        &mut self,
        now: Instant,
        listener: ListenerId,
        peer: Peer,
    ) -> Result<Option<Entry>, Cause> {
        let Some(address) = address(peer) else { return Ok(None) };
        if !self.addresses.admit(address) {
            return Err(Cause::Denied);
        }
        let Some(limiter) = self.active_limiter() else { return Ok(None) };
        let address = limiter.connect(now, address).map_err(cause)?;
        Ok(Some(Entry { listener, address }))
    }

    /// Handles the end of a connection.
    pub(crate) fn leave(&mut self, entry: Entry) {
        if let Some(limiter) = &mut self.limiter {
            limiter.disconnect(entry.address);
        }
    }

    /// Admits a datagram, which is a request without a connection.
    ///
    /// # Errors
    /// The reason for the rejection.
    pub(crate) fn datagram(&mut self, now: Instant, peer: Peer) -> Result<(), Cause> {
        let Some(address) = address(peer) else { return Ok(()) };
        if !self.addresses.admit(address) {
            return Err(Cause::Denied);
        }
        match self.active_limiter() {
            Some(limiter) => limiter.datagram(now, address).map_err(cause),
            None => Ok(()),
        }
    }

    /// Returns the number of addresses that are remembered, and the number of those that were evicted early.
    pub(crate) fn counts(&self) -> (u64, u64) {
        self.limiter.as_ref().map_or((0, 0), |limiter| (limiter.length() as u64, limiter.evicted()))
    }
}

/// The client limits of all listeners.
#[derive(Debug, Default)]
pub(crate) struct ListenerLimits(Table<ListenerId, ClientLimits>);

impl ListenerLimits {
    pub(crate) fn insert(&mut self, listener: ListenerId, limits: ClientLimits) {
        self.0.insert_as(listener, limits);
    }

    pub(crate) fn at(&mut self, listener: ListenerId) -> &mut ClientLimits {
        &mut self.0[listener]
    }

    pub(crate) fn leave(&mut self, entry: Option<Entry>) {
        if let Some(entry) = entry {
            self.0[entry.listener].leave(entry);
        }
    }

    /// The limiters that are shared with other daemons.
    pub(crate) fn shared(&mut self) -> impl Iterator<Item = (ListenerId, &mut AddressLimiter)> {
        let limiter = |(id, limits)| Some((id, ClientLimits::shared(limits)?));
        self.0.entries_mut().filter_map(limiter)
    }

    /// The limiter of a listener, if it is shared with other daemons.
    pub(crate) fn shared_at(&mut self, listener: ListenerId) -> Option<&mut AddressLimiter> {
        self.0.get_mut(listener)?.shared()
    }
}

impl AddressLimits for ListenerLimits {
    fn request(&mut self, now: Instant, entry: Option<Entry>) -> Result<(), Outcome> {
        let Some(entry) = entry else { return Ok(()) };
        let Some(limiter) = self.0[entry.listener].active_limiter() else { return Ok(()) };
        limiter.request(now, entry.address).map_err(|over| refusal(cause(over)))
    }
}

/// Returns the error for a client that is rejected here.
pub(crate) fn refusal(cause: Cause) -> Outcome {
    Outcome::ended(cause, Phase::Receive, cause.meaning().trim_end_matches('.'))
}

const fn cause(over: Over) -> Cause {
    match over {
        Over::Connections => Cause::Crowded,
        Over::Connects | Over::Requests => Cause::Rate,
    }
}

const fn address(peer: Peer) -> Option<IpAddr> {
    match peer {
        Peer::Internet(address) => Some(address.ip()),
        Peer::Local | Peer::Inside => None,
    }
}

fn limiter_settings(limits: settings::AddressLimits) -> pool::AddressLimiterSettings {
    let settings::AddressLimits {
        connections,
        connects,
        requests,
        ipv4_bits,
        ipv6_bits,
        entries,
        shared: _,
    } = limits;
    let rate = |settings::Rate { per_second, burst }| pool::Rate { per_second, burst };
    pool::AddressLimiterSettings {
        connections,
        connects: connects.map(rate),
        requests: requests.map(rate),
        ipv4_bits,
        ipv6_bits,
        entries,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(text: &str) -> Peer {
        Peer::Internet(text.parse().unwrap())
    }

    fn network(address: &str, bits: u8) -> settings::Network {
        settings::Network { address: address.parse().unwrap(), bits }
    }

    #[test]
    fn who_is_denied_is_refused_and_so_is_whom_a_list_leaves_out() {
        let mut limits = ClientLimits::new(
            Addresses {
                allow: vec![network("10.0.0.0", 8), network("2001:db8::", 32)],
                deny: vec![network("10.1.0.0", 16)],
                limits: None,
            },
            None,
            Instant::now(),
            1,
        );
        let mut enter = |text| limits.enter(Instant::now(), ListenerId::new(0, 1), peer(text));
        assert_eq!(enter("10.0.0.1:5"), Ok(None));
        assert_eq!(enter("[::ffff:10.0.0.1]:5"), Ok(None));
        assert_eq!(enter("10.1.0.1:5"), Err(Cause::Denied));
        assert_eq!(enter("11.0.0.1:5"), Err(Cause::Denied));
        assert_eq!(enter("[2001:db8::1]:5"), Ok(None));
        assert_eq!(enter("[2001:db9::1]:5"), Err(Cause::Denied));
        assert_eq!(limits.enter(Instant::now(), ListenerId::new(0, 1), Peer::Local), Ok(None));
        assert_eq!(limits.datagram(Instant::now(), peer("10.1.0.1:5")), Err(Cause::Denied));
    }
}
