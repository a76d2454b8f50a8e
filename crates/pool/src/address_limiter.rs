//! Limits for each client address of a listener: concurrent connections, and connections and requests per second.
//!
//! It works with addresses and with the time that its caller passes. It never depends on a socket, a clock, or the
//! content of a request.
//!
//! Addresses that begin with the same bits count as one: 32 bits of IPv4, 64 bits of IPv6, as one customer has them.
//! The table has a limit. An address is removed when it has no open connection and its rates are fully available again.
//! When the table is full, the address without a connection that was idle longest is removed early, together with the
//! used part of its rates. An address with an open connection is never removed, so connections are counted exactly.
//!
//! Several daemons can share the limits of a listener approximately: `sharing.rs`.

use std::hash::Hasher;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Instant;

use exchange::AddressId;
use hashbrown::HashTable;
use siphasher::sip::SipHasher13;

use crate::list::{Links, List};

mod shared;
#[cfg(test)]
mod shared_tests;
mod sharing;
#[cfg(test)]
mod tests;

use shared::Shared;

const SECOND_NS: u64 = 1_000_000_000;
/// The maximum number of addresses with fully available rates that one operation removes.
const FORGOTTEN_AT_ONCE: usize = 4;

/// A rate per second, with a burst that is available after idle time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// 1 to 1,000,000.
    pub per_second: u32,
    /// 1 to 1,000,000.
    pub burst: u32,
}

/// The limits of each address; `None`: no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressLimiterSettings {
    /// The maximum number of concurrent connections.
    pub connections: Option<u32>,
    /// The rate of new connections.
    pub connects: Option<Rate>,
    /// The rate of requests.
    pub requests: Option<Rate>,
    /// The number of leading bits that distinguish IPv4 addresses, up to 32.
    pub ipv4_bits: u8,
    /// The number of leading bits that distinguish IPv6 addresses, up to 128.
    pub ipv6_bits: u8,
    /// The maximum number of addresses in the table; at least as many as connections can be open.
    pub entries: u32,
}

/// The limit that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// Concurrent connections. It is also returned when the table is full of addresses with open connections.
    Connections,
    /// New connections per second.
    Connects,
    /// Requests per second.
    Requests,
}

/// A rate limiter (GCRA). Each use moves the time at which everything is paid for by `interval_ns`. This time may be
/// ahead of the current time by `ahead_ns`.
#[derive(Clone, Copy, Debug)]
struct Meter {
    interval_ns: u64,
    ahead_ns: u64,
}

impl Meter {
    fn new(rate: Rate) -> Self {
        let interval_ns = SECOND_NS / u64::from(rate.per_second.max(1));
        Self { interval_ns, ahead_ns: interval_ns * u64::from(rate.burst.max(1) - 1) }
    }

    fn allows(self, paid_ns: u64, now_ns: u64) -> bool {
        paid_ns.saturating_sub(now_ns) <= self.ahead_ns
    }

    fn take(self, paid_ns: &mut u64, now_ns: u64) {
        *paid_ns = (*paid_ns).max(now_ns).saturating_add(self.interval_ns);
    }
}

/// One address, or several that count as one.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    key: u128,
    open: u32,
    /// Connections that are open at other daemons, as far as this is known.
    open_elsewhere: u32,
    /// New connections and requests that were not reported to the other daemons yet.
    unreported: (u32, u32),
    /// Whether the entry is in the list of those to report.
    is_noted: bool,
    /// When its connections, and its requests, are paid for.
    connects_ns: u64,
    requests_ns: u64,
}

/// The addresses that have used a listener recently, and their use.
#[derive(Debug)]
pub struct AddressLimiter {
    settings: AddressLimiterSettings,
    connects: Option<Meter>,
    requests: Option<Meter>,
    start: Instant,
    /// Prevents clients from choosing addresses that collide.
    secret: (u64, u64),
    index: HashTable<u32>,
    entries: Vec<Entry>,
    vacant: Vec<u32>,
    /// The addresses without a connection. The one that was idle longest is first.
    idle: List,
    links: Links,
    evicted: u64,
    /// `None`: the limits are those of this daemon alone.
    shared: Option<Box<Shared>>,
}

impl AddressLimiter {
    /// An empty table. The secret is for the hashes of the addresses.
    #[must_use]
    pub fn new(settings: AddressLimiterSettings, now: Instant, secret: (u64, u64)) -> Self {
        Self {
            settings,
            connects: settings.connects.map(Meter::new),
            requests: settings.requests.map(Meter::new),
            start: now,
            secret,
            index: HashTable::new(),
            entries: Vec::new(),
            vacant: Vec::new(),
            idle: List::EMPTY,
            links: Links::default(),
            evicted: 0,
            shared: None,
        }
    }

    /// Sets the limits. Open connections stay counted, under the leading bits that were in force when they were opened.
    pub fn handle_settings(&mut self, settings: AddressLimiterSettings) {
        self.settings = settings;
        self.connects = settings.connects.map(Meter::new);
        self.requests = settings.requests.map(Meter::new);
        while self.is_over()
            && let Some(oldest) = self.idle.first()
        {
            self.remove(oldest);
            self.evicted += 1;
        }
    }

    /// Whether there are more addresses than the limit.
    fn is_over(&self) -> bool {
        self.index.len() > self.settings.entries.max(1) as usize
    }

    /// Counts a connection of this address as open until [`Self::disconnect`].
    ///
    /// # Errors
    /// The limit that is exceeded. Then nothing is counted.
    pub fn connect(&mut self, now: Instant, address: IpAddr) -> Result<AddressId, Over> {
        let now_ns = self.ns(now);
        let place = self.enter(now_ns, address)?;
        let entry = &mut self.entries[place as usize];
        let open = entry.open.saturating_add(entry.open_elsewhere);
        if self.settings.connections.is_some_and(|most| open >= most) {
            return Err(Over::Connections);
        }
        if let Some(meter) = self.connects {
            if !meter.allows(entry.connects_ns, now_ns) {
                return Err(Over::Connects);
            }
            meter.take(&mut entry.connects_ns, now_ns);
        }
        entry.open += 1;
        if let Some(shared) = &mut self.shared {
            entry.unreported.0 += 1;
            shared.note(place, &mut entry.is_noted);
        }
        if self.links.holds(place) {
            self.idle.remove(&mut self.links, place);
        }
        Ok(AddressId::new(place))
    }

    /// A connection of this address was closed.
    pub fn disconnect(&mut self, address: AddressId) {
        let place = address.index();
        let entry = &mut self.entries[place as usize];
        entry.open -= 1;
        if let Some(shared) = &mut self.shared {
            shared.note(place, &mut entry.is_noted);
        }
        if entry.open == 0 {
            self.idle.push_last(&mut self.links, place);
            if self.is_over() {
                self.remove(place);
                self.evicted += 1;
            }
        }
    }

    /// Counts a request on an open connection.
    ///
    /// # Errors
    /// When the request exceeds the rate.
    pub fn request(&mut self, now: Instant, address: AddressId) -> Result<(), Over> {
        let now_ns = self.ns(now);
        self.charge(now_ns, address.index())
    }

    /// Counts a request without a connection.
    ///
    /// # Errors
    /// When the request exceeds the rate.
    pub fn datagram(&mut self, now: Instant, address: IpAddr) -> Result<(), Over> {
        let now_ns = self.ns(now);
        let place = self.enter(now_ns, address)?;
        if self.links.holds(place) {
            self.idle.remove(&mut self.links, place);
            self.idle.push_last(&mut self.links, place);
        }
        self.charge(now_ns, place)
    }

    /// The number of addresses in the table.
    #[must_use]
    pub fn length(&self) -> usize {
        self.index.len()
    }

    /// The number of addresses that were removed early, because the table was full.
    #[must_use]
    pub const fn evicted(&self) -> u64 {
        self.evicted
    }

    fn charge(&mut self, now_ns: u64, place: u32) -> Result<(), Over> {
        let Some(meter) = self.requests else { return Ok(()) };
        let entry = &mut self.entries[place as usize];
        if !meter.allows(entry.requests_ns, now_ns) {
            return Err(Over::Requests);
        }
        meter.take(&mut entry.requests_ns, now_ns);
        if let Some(shared) = &mut self.shared {
            entry.unreported.1 += 1;
            shared.note(place, &mut entry.is_noted);
        }
        Ok(())
    }

    /// Returns the place of this address. It is created if there is none.
    fn enter(&mut self, now_ns: u64, address: IpAddr) -> Result<u32, Over> {
        self.forget(now_ns);
        self.enter_key(self.key(address))
    }

    fn enter_key(&mut self, key: u128) -> Result<u32, Over> {
        let stands = self.hash(key);
        let entries = &self.entries;
        if let Some(place) = self.index.find(stands, |it| entries[*it as usize].key == key) {
            return Ok(*place);
        }
        if self.index.len() >= self.settings.entries.max(1) as usize {
            let oldest = self.idle.first().ok_or(Over::Connections)?;
            self.remove(oldest);
            self.evicted += 1;
        }
        let open_elsewhere = self.shared.as_ref().map_or(0, |shared| shared.open_elsewhere(key));
        let entry = Entry { key, open_elsewhere, ..Entry::default() };
        let place = match self.vacant.pop() {
            Some(place) => {
                // A place remains in the list of those to report until it is taken from there.
                let is_noted = self.entries[place as usize].is_noted;
                self.entries[place as usize] = Entry { is_noted, ..entry };
                place
            }
            None => {
                let place = u32::try_from(self.entries.len()).expect("the limit has 32 bits");
                self.entries.push(entry);
                self.links.cover(place);
                place
            }
        };
        let (secret, entries) = (self.secret, &self.entries);
        let rehash = |place: &u32| hash(secret, entries[*place as usize].key);
        self.index.insert_unique(stands, place, rehash);
        self.idle.push_last(&mut self.links, place);
        Ok(place)
    }

    /// Removes some of the addresses that were idle longest and whose rates are fully available: more than are added,
    /// so that none stays forever.
    fn forget(&mut self, now_ns: u64) {
        for _ in 0..FORGOTTEN_AT_ONCE {
            let Some(place) = self.idle.first() else { return };
            let entry = &self.entries[place as usize];
            if entry.connects_ns.max(entry.requests_ns) > now_ns || entry.is_noted {
                return;
            }
            self.remove(place);
        }
    }

    fn remove(&mut self, place: u32) {
        let hash = self.hash(self.entries[place as usize].key);
        let Ok(entry) = self.index.find_entry(hash, |other| *other == place) else {
            unreachable!("every entry is in the index")
        };
        entry.remove();
        self.idle.remove(&mut self.links, place);
        self.vacant.push(place);
    }

    fn ns(&self, now: Instant) -> u64 {
        u64::try_from(now.saturating_duration_since(self.start).as_nanos()).unwrap_or(u64::MAX)
    }

    /// Returns the key of an address: the bits that count or, if the limits are shared, their hash.
    fn key(&self, address: IpAddr) -> u128 {
        let bits = self.bits(address);
        self.shared.as_ref().map_or(bits, |shared| shared.key(bits))
    }

    /// Returns the bits of an address that count. An IPv4 address is mapped to IPv6; mapped IPv6 addresses count as
    /// IPv4 addresses.
    fn bits(&self, address: IpAddr) -> u128 {
        match address.to_canonical() {
            IpAddr::V4(address) => {
                let bits = self.settings.ipv4_bits.min(32);
                let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
                let masked = Ipv4Addr::from(u32::from(address) & mask);
                u128::from(masked.to_ipv6_mapped())
            }
            IpAddr::V6(address) => {
                let bits = self.settings.ipv6_bits.min(128);
                let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
                u128::from(address) & mask
            }
        }
    }

    fn hash(&self, key: u128) -> u64 {
        hash(self.secret, key)
    }

    /// Checks every invariant. It examines all addresses.
    ///
    /// # Panics
    /// If an invariant does not hold.
    pub fn check(&self) {
        let mut idle = 0;
        for place in self.idle.iter(&self.links) {
            assert_eq!(self.entries[place as usize].open, 0, "who rests has no connection");
            idle += 1;
        }
        let open = self.index.iter().filter(|place| self.entries[**place as usize].open > 0);
        assert_eq!(idle + open.count(), self.index.len(), "the others have");
        assert_eq!(self.index.len() + self.vacant.len(), self.entries.len(), "none is lost");
        assert!(!self.is_over() || self.idle.is_empty(), "over a lower limit only by open ones");
    }
}

fn hash(secret: (u64, u64), key: u128) -> u64 {
    let mut hasher = SipHasher13::new_with_keys(secret.0, secret.1);
    hasher.write(&Ipv6Addr::from(key).octets());
    hasher.finish()
}
