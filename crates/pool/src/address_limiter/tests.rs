use std::time::Duration;

use super::*;
use crate::random::Random;

const FREE: AddressLimiterSettings = AddressLimiterSettings {
    connections: None,
    connects: None,
    requests: None,
    ipv4_bits: 32,
    ipv6_bits: 64,
    entries: 1000,
};

#[expect(clippy::disallowed_methods, reason = "a point to start from; only differences count")]
fn guard(settings: AddressLimiterSettings) -> (AddressLimiter, Instant) {
    let now = Instant::now();
    (AddressLimiter::new(settings, now, (1, 2)), now)
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// A naive model: a token bucket for each address. No address is removed.
struct Naive {
    settings: AddressLimiterSettings,
    known: Vec<(IpAddr, NaiveEntry)>,
}

struct NaiveEntry {
    open: u32,
    connects: Bucket,
    requests: Bucket,
}

/// Tokens, in parts of which `cost` make one token.
struct Bucket {
    level: u64,
    at_ns: u64,
}

impl Bucket {
    fn full(rate: Option<Rate>, at_ns: u64) -> Self {
        Self { level: rate.map_or(0, Self::room), at_ns }
    }

    fn cost(rate: Rate) -> u64 {
        SECOND_NS / u64::from(rate.per_second)
    }

    fn room(rate: Rate) -> u64 {
        Self::cost(rate) * u64::from(rate.burst)
    }

    fn take(&mut self, rate: Option<Rate>, now_ns: u64) -> bool {
        let Some(rate) = rate else { return true };
        self.level = (self.level + now_ns - self.at_ns).min(Self::room(rate));
        self.at_ns = now_ns;
        let enough = self.level >= Self::cost(rate);
        if enough {
            self.level -= Self::cost(rate);
        }
        enough
    }
}

impl Naive {
    fn entry(&mut self, address: IpAddr, now_ns: u64) -> &mut NaiveEntry {
        let at = self.known.iter().position(|known| known.0 == address).unwrap_or_else(|| {
            let connects = Bucket::full(self.settings.connects, now_ns);
            let requests = Bucket::full(self.settings.requests, now_ns);
            self.known.push((address, NaiveEntry { open: 0, connects, requests }));
            self.known.len() - 1
        });
        &mut self.known[at].1
    }

    fn connect(&mut self, address: IpAddr, now_ns: u64) -> Result<(), Over> {
        let settings = self.settings;
        let entry = self.entry(address, now_ns);
        if settings.connections.is_some_and(|most| entry.open == most) {
            return Err(Over::Connections);
        }
        if !entry.connects.take(settings.connects, now_ns) {
            return Err(Over::Connects);
        }
        entry.open += 1;
        Ok(())
    }

    fn request(&mut self, address: IpAddr, now_ns: u64) -> Result<(), Over> {
        let rate = self.settings.requests;
        let enough = self.entry(address, now_ns).requests.take(rate, now_ns);
        if enough { Ok(()) } else { Err(Over::Requests) }
    }
}

#[test]
fn it_decides_as_buckets_of_tokens_for_every_address_would() {
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let mut rate = |most| {
            let [per_second, burst] = [1 + random.below(most), 1 + random.below(9)]
                .map(|number| u32::try_from(number).unwrap());
            (seed % 3 > 0).then_some(Rate { per_second, burst })
        };
        let settings = AddressLimiterSettings {
            connections: Some(3),
            connects: rate(20),
            requests: rate(200),
            ..FREE
        };
        let (mut guard, start) = guard(settings);
        let mut naive = Naive { settings, known: Vec::new() };
        let mut open = Vec::new();
        let mut now_ns = 0;
        for _ in 0..4000 {
            now_ns += random.below(30_000_000);
            let now = start + Duration::from_nanos(now_ns);
            let who = u8::try_from(random.below(12)).unwrap();
            let address = IpAddr::from([127, 0, 0, who]);
            match random.below(4) {
                0 => {
                    let found = guard.connect(now, address);
                    assert_eq!(found.map(drop), naive.connect(address, now_ns));
                    open.extend(found.map(|place| (place, address)));
                }
                1 if !open.is_empty() => {
                    let at = usize::try_from(random.below(open.len() as u64)).unwrap();
                    let (place, address) = open.swap_remove(at);
                    guard.disconnect(place);
                    naive.entry(address, now_ns).open -= 1;
                }
                2 if !open.is_empty() => {
                    let at = usize::try_from(random.below(open.len() as u64)).unwrap();
                    let (place, address) = open[at];
                    assert_eq!(guard.request(now, place), naive.request(address, now_ns));
                }
                _ => assert_eq!(guard.datagram(now, address), naive.request(address, now_ns)),
            }
            guard.check();
        }
        assert!(guard.length() <= 12 && guard.evicted() == 0);
    }
}

#[test]
fn a_flood_of_addresses_stays_within_the_table_and_forgets_no_open_connection() {
    let rate = Rate { per_second: 1, burst: 5 };
    let settings = AddressLimiterSettings {
        connections: Some(2),
        connects: Some(Rate { burst: 1000, ..rate }),
        requests: Some(rate),
        entries: 50,
        ..FREE
    };
    let (mut guard, now) = guard(settings);
    let kept = address("10.0.0.1");
    let places = [guard.connect(now, kept).unwrap(), guard.connect(now, kept).unwrap()];
    for low in 0..100_000_u32 {
        let flood = IpAddr::from((u128::from(low) << 64 | 1).to_be_bytes());
        assert_eq!(guard.datagram(now, flood), Ok(()));
        assert!(guard.length() <= 50);
    }
    guard.check();
    assert_eq!(guard.evicted(), 100_000 - 49);
    assert_eq!(guard.connect(now, kept), Err(Over::Connections));
    guard.disconnect(places[0]);
    assert!(guard.connect(now, kept).is_ok());
    // The table is full of connections: no other address is admitted, and none is removed.
    for host in 1..50 {
        assert!(guard.connect(now, IpAddr::from([10, 1, 0, host])).is_ok());
    }
    assert_eq!(guard.connect(now, address("10.2.0.0")), Err(Over::Connections));
    guard.check();
}

#[test]
fn what_rests_and_owes_nothing_is_forgotten() {
    let requests = Some(Rate { per_second: 10, burst: 1 });
    let (mut guard, start) = guard(AddressLimiterSettings { requests, ..FREE });
    for host in 0..200 {
        assert_eq!(guard.datagram(start, IpAddr::from([10, 0, 0, host])), Ok(()));
    }
    assert_eq!(guard.length(), 200);
    for step in 0..60 {
        let now = start + Duration::from_secs(1 + step);
        assert_eq!(guard.datagram(now, address("::1")), Ok(()));
    }
    assert_eq!((guard.length(), guard.evicted()), (1, 0));
}

#[test]
fn neighbours_count_as_one_by_the_widths_that_are_set() {
    let same = |settings: AddressLimiterSettings, one: &str, other: &str| {
        let (mut guard, now) = guard(AddressLimiterSettings { connections: Some(1), ..settings });
        guard.connect(now, address(one)).unwrap();
        guard.connect(now, address(other)).is_err()
    };
    assert!(!same(FREE, "10.0.0.1", "10.0.0.2"));
    assert!(same(FREE, "10.0.0.1", "::ffff:10.0.0.1"), "the same client over another socket");
    assert!(same(FREE, "2001:db8::1", "2001:db8::ffff:1"));
    assert!(!same(FREE, "2001:db8::1", "2001:db8:0:1::1"));
    let wide = AddressLimiterSettings { ipv4_bits: 24, ipv6_bits: 128, ..FREE };
    assert!(same(wide, "10.0.0.1", "10.0.0.2") && !same(wide, "10.0.0.1", "10.0.1.1"));
    assert!(!same(wide, "2001:db8::1", "2001:db8::2"));
    let all = AddressLimiterSettings { ipv4_bits: 0, ipv6_bits: 0, ..FREE };
    assert!(same(all, "10.0.0.1", "1.1.1.1") && same(all, "::1", "2001:db8::2"));
    assert!(!same(all, "10.0.0.1", "::1"), "the two kinds are never one");
}

#[test]
fn other_limits_count_on_and_forget_no_open_connection() {
    let settings = AddressLimiterSettings { connections: Some(2), entries: 8, ..FREE };
    let (mut guard, now) = guard(settings);
    let address = |last: u8| IpAddr::from([10, 0, 0, last]);
    let open: Vec<_> = (0..4).map(|last| guard.connect(now, address(last)).unwrap()).collect();
    let rests = guard.connect(now, address(9)).unwrap();
    guard.disconnect(rests);
    guard.handle_settings(AddressLimiterSettings {
        connections: Some(1),
        ipv4_bits: 24,
        entries: 2,
        ..settings
    });
    guard.check();
    assert_eq!(guard.length(), 4, "only the one that rested was forgotten");
    assert_eq!(guard.connect(now, address(1)), Err(Over::Connections), "the table is full");
    open.into_iter().for_each(|place| guard.disconnect(place));
    guard.check();
    let one = guard.connect(now, address(1)).unwrap();
    assert_eq!(guard.connect(now, address(2)), Err(Over::Connections), "they count as one");
    guard.handle_settings(settings);
    guard.disconnect(one);
    guard.check();
}
