//! The only source of randomness of a world.
//!
//! Each actor draws its own numbers, which follow from the seed, the time and the actor. Therefore the actions of the
//! gateway with one descriptor do not change the numbers of another, and a run in which the gateway calls its kernel in
//! another order sends the same bytes.

use std::collections::BTreeMap;
use std::time::Duration;

use exchange::Random;

/// An actor that draws numbers: its kind, and its number within the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Actor(pub(crate) &'static str, pub(crate) usize);

impl Actor {
    fn key(self) -> u64 {
        let Self(kind, number) = self;
        kind.bytes()
            .fold(number as u64, |sum, byte| sum.wrapping_mul(131).wrapping_add(byte.into()))
    }
}

/// The source of the numbers of each actor.
#[derive(Debug)]
pub(crate) struct Chances {
    seed: u64,
    /// How often each actor has acted at this time.
    acts: BTreeMap<Actor, u64>,
    now: Duration,
}

impl Chances {
    pub(crate) const fn new(seed: u64) -> Self {
        Self { seed, acts: BTreeMap::new(), now: Duration::ZERO }
    }

    /// Returns the random numbers for the current action of `actor`.
    pub(crate) fn of(&mut self, actor: Actor, now: Duration) -> Chance {
        if std::mem::replace(&mut self.now, now) != now {
            self.acts.clear();
        }
        let acts = self.acts.entry(actor).or_default();
        *acts += 1;
        let acts = *acts;
        let words = [actor.key(), nanos(now), acts];
        let seed = words.into_iter().fold(self.seed, |seed, word| Chance::new(seed ^ word).next());
        Chance::new(seed)
    }

    /// Returns the position of `actor` among the events of the same time.
    pub(crate) fn rank(&self, actor: Actor, at: Duration) -> u64 {
        let seed = Chance::new(!self.seed ^ actor.key()).next();
        Chance::new(seed ^ nanos(at)).next()
    }
}

/// Random numbers from a seed: the same seed gives the same numbers on every machine.
#[derive(Clone, Debug)]
pub(crate) struct Chance(Random);

impl Chance {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(Random::new(seed))
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0.draw()
    }

    /// Returns a number below `end`, which is at least 1.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end.max(1)).unwrap_or(u64::MAX);
        usize::try_from(self.next() % end).expect("it is below a usize")
    }

    /// Returns a number from `first` to `last`, both inclusive.
    pub(crate) fn between(&mut self, first: usize, last: usize) -> usize {
        first + self.below(last.saturating_sub(first) + 1)
    }

    /// Returns true in `times` of 1,000 cases.
    pub(crate) fn in_1000(&mut self, times: u32) -> bool {
        self.next() % 1000 < u64::from(times)
    }

    /// Returns a time from `first` to `last`. Each order of magnitude is equally likely.
    pub(crate) fn time(&mut self, first: Duration, last: Duration) -> Duration {
        let (first, last) = (nanos(first).max(1), nanos(last).max(1));
        let octaves = u64::from((last / first).max(1).ilog2());
        let octave = self.next() % (octaves + 1);
        let base = first.saturating_mul(1 << octave);
        Duration::from_nanos((base + self.next() % base).min(last.max(first)))
    }

    /// Returns one of these values.
    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// Returns one of these values; its probability is proportional to its weight.
    pub(crate) fn weighted<T: Copy>(&mut self, from: &[(u32, T)]) -> T {
        let total: u32 = from.iter().map(|(weight, _)| weight).sum();
        let mut left = self.next() % u64::from(total.max(1));
        for (weight, value) in from {
            let weight = u64::from(*weight);
            if left < weight {
                return *value;
            }
            left -= weight;
        }
        from[from.len() - 1].1
    }

    /// Shuffles a list.
    pub(crate) fn shuffle<T>(&mut self, list: &mut [T]) {
        for place in (1..list.len()).rev() {
            list.swap(place, self.below(place + 1));
        }
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_actor_draws_the_same_numbers_whoever_acts_beside_it() {
        let now = Duration::from_millis(5);
        let [one, other] = [Actor("client", 1), Actor("client", 2)];
        let mut alone = Chances::new(7);
        let first = alone.of(one, now).next();
        let second = alone.of(one, now).next();
        assert_ne!(first, second);
        let mut beside = Chances::new(7);
        let others = beside.of(other, now).next();
        assert_ne!(others, first);
        assert_eq!(beside.of(one, now).next(), first);
        beside.of(other, now);
        assert_eq!(beside.of(one, now).next(), second);
        let later = now + Duration::from_nanos(1);
        assert_ne!(beside.of(one, later).next(), first);
    }

    #[test]
    fn the_same_seed_gives_the_same_numbers_within_their_ranges() {
        let (mut one, mut other) = (Chance::new(7), Chance::new(7));
        let (first, last) = (Duration::from_micros(3), Duration::from_secs(2));
        for _ in 0..10_000 {
            assert_eq!(one.next(), other.next());
            let time = one.time(first, last);
            assert_eq!(time, other.time(first, last));
            assert!(time >= first && time <= last, "{time:?}");
            assert_eq!(one.between(3, 5), other.between(3, 5));
        }
        let drawn: Vec<_> = (0..100).map(|_| one.weighted(&[(1, 'a'), (0, 'b')])).collect();
        assert!(drawn.iter().all(|&it| it == 'a'));
    }
}
