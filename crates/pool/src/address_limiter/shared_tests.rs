use std::time::Duration;

use exchange::AddressUse;

use super::*;
use crate::random::Random;

const RATE: Rate = Rate { per_second: 50, burst: 20 };
const DAEMONS: usize = 3;
/// Reports are made every half second and take at most another half second.
const REPORT_MS: u64 = 500;
const DELAY_MS: u64 = 500;

fn settings() -> AddressLimiterSettings {
    AddressLimiterSettings {
        connections: Some(10),
        connects: None,
        requests: Some(RATE),
        ipv4_bits: 32,
        ipv6_bits: 64,
        entries: 1000,
    }
}

#[expect(clippy::disallowed_methods, reason = "a point to start from; only differences count")]
fn daemons(settings: AddressLimiterSettings) -> (Vec<AddressLimiter>, Instant) {
    let now = Instant::now();
    let daemon = |number: u64| {
        let mut limiter = AddressLimiter::new(settings, now, (number, 2));
        limiter.share((7, 8));
        limiter
    };
    ((0..DAEMONS as u64).map(daemon).collect(), now)
}

fn address() -> IpAddr {
    "192.0.2.1".parse().unwrap()
}

fn exchange(limiters: &mut [AddressLimiter], now: Instant) {
    for from in 0..limiters.len() {
        let mut uses = Vec::new();
        limiters[from].take_uses(now, usize::MAX, &mut uses);
        for to in (0..limiters.len()).filter(|to| *to != from) {
            limiters[to].handle_uses(now, from as u64, &uses);
        }
    }
    limiters.iter().for_each(AddressLimiter::check);
}

/// The most that was admitted above the rate in any time: the level of a bucket that leaks with the rate.
#[derive(Default)]
struct Excess {
    level: f64,
    most: f64,
    at_ms: u64,
}

impl Excess {
    fn admit(&mut self, at_ms: u64) {
        let leaked = (at_ms - self.at_ms) as f64 / 1000.0 * f64::from(RATE.per_second);
        self.level = (self.level - leaked).max(0.0) + 1.0;
        self.at_ms = at_ms;
        self.most = self.most.max(self.level);
    }
}

/// A client sends as much as it can to daemons of its choice. Returns the excess, and the number of requests admitted.
fn attack(seed: u64, is_shared: bool, milliseconds: u64) -> (f64, u64) {
    let (mut limiters, start) = daemons(settings());
    let mut random = Random::new(seed);
    let mut below = |most: u64| random.draw() % most;
    let (mut excess, mut admitted) = (Excess::default(), 0);
    let mut under_way: Vec<(u64, usize, usize, Vec<AddressUse>)> = Vec::new();
    let mut next = 0;
    for at_ms in 0..milliseconds {
        let now = start + Duration::from_millis(at_ms);
        if at_ms.is_multiple_of(REPORT_MS) {
            for (from, limiter) in limiters.iter_mut().enumerate() {
                let mut uses = Vec::new();
                limiter.take_uses(now, usize::MAX, &mut uses);
                for to in (0..DAEMONS).filter(|to| *to != from && is_shared) {
                    // Reports may overtake each other.
                    under_way.push((at_ms + below(DELAY_MS), to, from, uses.clone()));
                }
            }
        }
        under_way.retain(|(due, to, from, uses)| {
            let is_due = *due <= at_ms;
            if is_due {
                limiters[*to].handle_uses(now, *from as u64, uses);
            }
            !is_due
        });
        // Now and then it waits, so that its bursts are available again.
        if at_ms > next {
            next = at_ms + if below(200) == 0 { below(3000) } else { below(5) };
            for _ in 0..=below(60) {
                let to = usize::try_from(below(DAEMONS as u64)).unwrap();
                if limiters[to].datagram(now, address()).is_ok() {
                    excess.admit(at_ms);
                    admitted += 1;
                }
            }
        }
    }
    (excess.most, admitted)
}

#[test]
fn an_address_gets_no_more_than_the_stated_bound_and_no_less_than_its_rate() {
    let (n, rate) = (DAEMONS as f64, f64::from(RATE.per_second));
    let late = (REPORT_MS + DELAY_MS) as f64 / 1000.0;
    // One more for each daemon, because times are whole milliseconds.
    let bound = n * f64::from(RATE.burst) + (n - 1.0) * rate * late + n;
    for seed in 0..40 {
        let (excess, admitted) = attack(seed, true, 60_000);
        assert!(excess <= bound, "seed {seed}: {excess} above the rate, and {bound} is the bound");
        // It waits for part of the time.
        assert!(admitted as f64 >= 0.5 * rate * 60.0, "seed {seed}: {admitted}");
    }
    let (excess, _) = attack(1, false, 60_000);
    assert!(excess > bound, "without reports it gets more: {excess}");
}

#[test]
fn connections_elsewhere_count_and_no_longer_when_they_are_closed_or_their_daemon_ends() {
    let (mut limiters, now) = daemons(settings());
    let open = |limiter: &mut AddressLimiter, now| {
        std::iter::from_fn(|| limiter.connect(now, address()).ok()).collect::<Vec<_>>()
    };
    // At the same moment each daemon admits the maximum.
    let mut ids: Vec<_> = limiters.iter_mut().map(|limiter| open(limiter, now)).collect();
    assert!(ids.iter().all(|ids| ids.len() == 10));
    exchange(&mut limiters, now);
    // As long as there are too many, none is admitted anywhere.
    for _ in 0..7 {
        for (limiter, ids) in limiters.iter_mut().zip(&mut ids) {
            limiter.disconnect(ids.pop().unwrap());
        }
        exchange(&mut limiters, now);
        let open: usize = ids.iter().map(Vec::len).sum();
        for limiter in &mut limiters {
            let result = limiter.connect(now, address());
            assert_eq!(result.is_ok(), open < 10, "{open} are open");
            result.into_iter().for_each(|id| limiter.disconnect(id));
        }
    }
    // Nine are open. The others of this daemon are reported again, and last.
    let step = |limiters: &mut [AddressLimiter], from: usize, seconds: std::ops::Range<u64>| {
        for second in seconds {
            let now = now + Duration::from_secs(second);
            let mut uses = Vec::new();
            limiters[from].take_uses(now, usize::MAX, &mut uses);
            for to in (0..DAEMONS).filter(|to| *to != from) {
                limiters[to].handle_uses(now, from as u64, &uses);
                limiters[to].take_uses(now, usize::MAX, &mut Vec::new());
            }
        }
    };
    step(&mut limiters, 0, 1..100);
    let later = now + Duration::from_secs(100);
    // Daemon 2 was not heard for long: daemon 1 counts those of daemon 0 only.
    assert_eq!(open(&mut limiters[1], later).len(), 10 - 3 - 3);
}

#[test]
fn an_address_that_was_removed_early_keeps_its_connections_elsewhere() {
    let (mut limiters, now) = daemons(AddressLimiterSettings { entries: 2, ..settings() });
    let ids: Vec<_> = (0..10).map(|_| limiters[0].connect(now, address()).unwrap()).collect();
    exchange(&mut limiters, now);
    for last in 0..10 {
        let other = IpAddr::from([198, 51, 100, last]);
        limiters[1].datagram(now, other).unwrap();
    }
    assert!(limiters[1].connect(now, address()).is_err());
    ids.into_iter().for_each(|id| limiters[0].disconnect(id));
    exchange(&mut limiters, now);
    limiters[1].connect(now, address()).unwrap();
}

#[test]
fn a_wrong_report_excludes_an_address_for_a_limited_time() {
    let (mut limiters, now) = daemons(settings());
    let mut uses = Vec::new();
    limiters[0].datagram(now, address()).unwrap();
    limiters[0].take_uses(now, usize::MAX, &mut uses);
    uses[0].requests = u32::MAX;
    limiters[1].handle_uses(now, 0, &uses);
    assert_eq!(limiters[1].datagram(now, address()), Err(Over::Requests));
    let most = 64.0 * f64::from(RATE.burst) / f64::from(RATE.per_second);
    let later = now + Duration::from_secs_f64(most + 1.0);
    assert_eq!(limiters[1].datagram(later, address()), Ok(()));
}

#[test]
fn a_report_has_a_maximum_and_the_rest_follows() {
    let (mut limiters, now) = daemons(settings());
    for last in 0..100 {
        limiters[0].datagram(now, IpAddr::from([198, 51, 100, last])).unwrap();
    }
    let mut seen = Vec::new();
    for _ in 0..4 {
        let mut uses = Vec::new();
        limiters[0].take_uses(now, 30, &mut uses);
        assert!(uses.len() <= 30 && uses.iter().all(|it| it.requests == 1));
        seen.extend(uses.iter().map(|it| it.key));
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 100);
}

#[test]
fn many_addresses_between_two_reports_need_no_more_room_than_the_table() {
    let (mut limiters, now) = daemons(AddressLimiterSettings { entries: 4, ..settings() });
    for number in 0..1000_u32 {
        let address = IpAddr::from(Ipv4Addr::from(number));
        limiters[0].datagram(now, address).unwrap();
    }
    assert_eq!((limiters[0].length(), limiters[0].evicted()), (4, 996));
    assert!(limiters[0].shared.as_ref().unwrap().noted.len() <= 5);
    let mut uses = Vec::new();
    limiters[0].take_uses(now, usize::MAX, &mut uses);
    assert!(limiters[0].shared.as_ref().unwrap().noted.is_empty() && uses.len() >= 4);
}
