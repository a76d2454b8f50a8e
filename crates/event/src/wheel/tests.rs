//! Compares the wheel with a naive model, and checks how little work it does.

use std::collections::BTreeMap;

use super::*;

/// A small random generator, so that a failing run can be repeated from its seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    /// Returns a distance: mostly short, sometimes long, rarely beyond the wheel.
    fn distance(&mut self) -> u64 {
        let bits = [3, 6, 8, 13, 20, 31, 40][usize::try_from(self.below(7)).unwrap()];
        self.below(1 << bits)
    }
}

/// Collects the alarms that fire until `now`: either from one due tick to the next, as the loop does, or in one step.
fn ring(wheel: &mut Wheel<u64>, now: u64, stepwise: bool) -> Vec<u64> {
    let mut fired = Vec::new();
    if stepwise {
        while let Some(tick) = wheel.next_tick().filter(|&tick| tick <= now) {
            wheel.advance(tick, &mut fired);
        }
    }
    wheel.advance(now, &mut fired);
    let mut keys: Vec<_> = fired.into_iter().filter_map(|alarm| wheel.collect(alarm)).collect();
    keys.sort_unstable();
    keys
}

fn compare_with_model(seed: u64, steps: u32) {
    let mut random = Random(seed | 1);
    let mut wheel = Wheel::new();
    let mut alarms: Vec<(u64, Alarm)> = Vec::new();
    let mut model: BTreeMap<u64, u64> = BTreeMap::new();
    let (mut now, mut key) = (0, 0);
    for step in 0..steps {
        let chosen = (!alarms.is_empty())
            .then(|| usize::try_from(random.below(alarms.len() as u64)).unwrap());
        match (random.below(10), chosen) {
            (0..=2, _) | (_, None) => {
                key += 1;
                alarms.push((key, wheel.create(key)));
            }
            (3..=6, Some(place)) => {
                let at = (now + random.distance()).saturating_sub(2);
                wheel.set(alarms[place].1, at);
                model.insert(alarms[place].0, at);
            }
            (7, Some(place)) => {
                wheel.disarm(alarms[place].1);
                model.remove(&alarms[place].0);
            }
            (8, Some(place)) => {
                let (key, alarm) = alarms.swap_remove(place);
                wheel.remove(alarm);
                model.remove(&key);
            }
            _ => {
                now += random.distance();
                let expected: Vec<_> =
                    model.iter().filter(|&(_, &at)| at <= now).map(|(&key, _)| key).collect();
                model.retain(|_, at| *at > now);
                let fired = ring(&mut wheel, now, random.below(2) == 0);
                assert_eq!(fired, expected, "seed {seed}, step {step}, now {now}");
            }
        }
        wheel.check();
        let first = model.values().min();
        if let Some(&first) = first {
            let next = wheel.next_tick().expect("something is to ring");
            assert!(next <= first.max(wheel.elapsed), "seed {seed}, step {step}: would oversleep");
        }
    }
}

#[test]
fn random_operations_agree_with_a_naive_model() {
    for seed in 1..=20 {
        compare_with_model(seed * 0x9E37_79B9, 1500);
    }
}

#[test]
fn putting_off_does_no_filing_and_ringing_needs_few() {
    const ALARMS: u64 = 100_000;
    let mut wheel = Wheel::new();
    let alarms: Vec<_> = (0..ALARMS).map(|key| wheel.create(key)).collect();
    for &alarm in &alarms {
        wheel.set(alarm, 30_000);
    }
    assert_eq!(wheel.filings(), ALARMS);
    for extension in 0..1_000_000 {
        wheel.set(alarms[7], 30_000 + extension);
    }
    assert_eq!(wheel.filings(), ALARMS, "an extension files nothing");
    let mut fired = Vec::new();
    let mut visits = 0;
    while let Some(tick) = wheel.next_tick() {
        wheel.advance(tick, &mut fired);
        visits += 1;
    }
    assert_eq!(fired.len() as u64, ALARMS);
    assert_eq!(wheel.elapsed, 1_029_999);
    let per_alarm = wheel.filings() / ALARMS;
    assert!(per_alarm <= 3, "an alarm is filed once a level, not {per_alarm} times");
    assert!(visits < 100, "the wheel is visited where something is filed, not every tick");
}

#[test]
fn an_idle_wheel_asks_for_nothing() {
    let mut wheel = Wheel::new();
    let alarm = wheel.create(());
    assert_eq!(wheel.next_tick(), None);
    wheel.set(alarm, 50);
    wheel.remove(alarm);
    assert_eq!(wheel.next_tick(), None);
}

#[test]
fn what_rang_is_not_heard_once_it_is_set_anew_or_gone() {
    let mut wheel = Wheel::new();
    let alarms = [wheel.create('a'), wheel.create('b'), wheel.create('c'), wheel.create('d')];
    for alarm in alarms {
        wheel.set(alarm, 5);
    }
    let mut fired = Vec::new();
    wheel.advance(5, &mut fired);
    assert_eq!(fired.len(), 4);
    wheel.set(alarms[0], 9);
    wheel.disarm(alarms[1]);
    wheel.remove(alarms[2]);
    let successor = wheel.create('e');
    assert_eq!(successor, alarms[2], "the number is reused");
    let heard: Vec<_> = fired.iter().filter_map(|&alarm| wheel.collect(alarm)).collect();
    assert_eq!(heard, ['d']);
}

#[test]
fn what_rang_is_heard_though_it_is_set_anew_to_a_time_that_has_passed() {
    let mut wheel = Wheel::new();
    let [one, other] = [wheel.create('a'), wheel.create('b')];
    for tick in 5..8 {
        wheel.set(one, 5);
        wheel.set(other, 5);
        let mut fired = Vec::new();
        wheel.advance(tick, &mut fired);
        let mut heard = Vec::new();
        for alarm in fired {
            heard.extend(wheel.collect(alarm));
            // The owner of both alarms might do this whenever one of them fires.
            wheel.set(one, 5);
            wheel.set(other, 5);
        }
        heard.sort_unstable();
        assert_eq!(heard, ['a', 'b'], "at {tick}");
    }
}

#[test]
fn a_time_that_has_passed_rings_at_the_next_advance() {
    let mut wheel = Wheel::new();
    wheel.advance(1000, &mut Vec::new());
    let alarm = wheel.create(());
    wheel.set(alarm, 10);
    assert_eq!(wheel.next_tick(), Some(1000));
    let mut fired = Vec::new();
    wheel.advance(1000, &mut fired);
    assert_eq!(fired.len(), 1);
    assert_eq!(wheel.next_tick(), None);
}
