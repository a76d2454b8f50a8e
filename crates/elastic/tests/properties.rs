//! Properties that the policy must have under random loads, in virtual time.

use std::time::{Duration, Instant};

use elastic::{Advice, Load, Policy, Sizing};
use proptest::prelude::*;

#[expect(clippy::disallowed_methods, reason = "a point to start from; only differences count")]
fn start() -> Instant {
    Instant::now()
}

/// What happens to a pool.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// Time passes, in milliseconds.
    Pass(u64),
    /// The next time of the policy is reached.
    Due,
    /// Requests arrive: work for this many workers.
    Arrive(u32),
    /// This many busy workers finish.
    Done(u32),
    /// This many starting workers become ready.
    Started(u32),
    /// A start fails.
    StartFails,
    /// This many ending workers have gone.
    Ended(u32),
    /// An idle worker dies.
    Dies,
    /// The settings change.
    Sizing(Sizing),
}

fn sizing() -> impl Strategy<Value = Sizing> {
    let grow_above = proptest::option::of(0..6_u32);
    (0..8_u32, 1..24_u32, 0..6_u32, 0..400_u64, 0..50_u64, 1..9_u32, grow_above).prop_map(
        |(min, max, spare, idle, grow_after, grow_step_max, grow_above)| Sizing {
            min: min.min(max),
            max,
            spare,
            idle: Duration::from_millis(idle),
            grow_after: Duration::from_millis(grow_after),
            grow_step_max,
            grow_above,
        },
    )
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => (0..200_u64).prop_map(Event::Pass),
        8 => Just(Event::Due),
        5 => (1..12_u32).prop_map(Event::Arrive),
        5 => (1..12_u32).prop_map(Event::Done),
        6 => (1..6_u32).prop_map(Event::Started),
        1 => Just(Event::StartFails),
        4 => (1..4_u32).prop_map(Event::Ended),
        1 => Just(Event::Dies),
        1 => sizing().prop_map(Event::Sizing),
    ]
}

/// The simplest possible pool: one request per worker.
#[derive(Debug)]
struct Farm {
    policy: Policy,
    now: Instant,
    busy: u32,
    idle: u32,
    starting: u32,
    ending: u32,
    /// When each waiting request began to wait.
    waiting: Vec<Instant>,
    /// Since when the pool has had a worker beyond `min` and `spare`.
    surplus_since: Option<Instant>,
}

impl Farm {
    fn new(sizing: Sizing) -> Self {
        Self {
            policy: Policy::new(sizing),
            now: start(),
            busy: 0,
            idle: 0,
            starting: 0,
            ending: 0,
            waiting: Vec::new(),
            surplus_since: None,
        }
    }

    fn load(&self) -> Load {
        Load {
            busy: self.busy,
            idle: self.idle,
            starting: self.starting,
            ending: self.ending,
            waiting: u32::try_from(self.waiting.len()).expect("few wait"),
            oldest: self.waiting.first().copied(),
            room: u32::MAX,
            may_shrink: true,
        }
    }

    fn apply(&mut self, event: Event) {
        match event {
            Event::Pass(millis) => self.now += Duration::from_millis(millis),
            Event::Due => {
                if let Some(at) = self.policy.next_time(&self.load()) {
                    assert!(at > self.now, "never asked in vain");
                    self.now = at;
                }
            }
            Event::Arrive(count) => (0..count).for_each(|_| self.waiting.push(self.now)),
            Event::Done(count) => {
                let count = count.min(self.busy);
                self.busy -= count;
                self.idle += count;
            }
            Event::Started(count) => {
                let count = count.min(self.starting);
                self.starting -= count;
                self.idle += count;
            }
            Event::StartFails => self.starting = self.starting.saturating_sub(1),
            Event::Ended(count) => self.ending = self.ending.saturating_sub(count),
            Event::Dies => self.idle = self.idle.saturating_sub(1),
            Event::Sizing(sizing) => self.policy.set_sizing(sizing),
        }
        while self.idle > 0 && !self.waiting.is_empty() {
            self.waiting.remove(0);
            self.idle -= 1;
            self.busy += 1;
        }
        self.follow();
    }

    fn surplus(&self) -> u32 {
        let sizing = self.policy.sizing();
        (self.busy + self.idle).saturating_sub(sizing.min.max(self.busy + sizing.spare))
    }

    fn follow(&mut self) {
        if self.surplus() == 0 {
            self.surplus_since = None;
        } else {
            self.surplus_since.get_or_insert(self.now);
        }
        loop {
            let sizing = *self.policy.sizing();
            match self.policy.advise(self.now, &self.load()) {
                Advice::Nothing => break,
                Advice::Start(count) => self.start(count, &sizing),
                Advice::Stop => {
                    let since = self.surplus_since.expect("only a surplus worker ends");
                    assert!(self.now - since >= sizing.idle, "nobody ends before `idle`");
                    assert_eq!(self.ending, 0, "one at a time");
                    self.idle -= 1;
                    self.ending += 1;
                    assert!(self.busy + self.idle >= sizing.min, "never below `min`");
                    assert!(self.idle >= sizing.spare, "never below `spare`");
                }
            }
        }
        self.settled();
    }

    fn start(&mut self, count: u32, sizing: &Sizing) {
        assert!(count > 0, "never nothing");
        let coming = self.busy + self.idle + self.starting;
        let wanted = sizing.min.saturating_sub(coming);
        let spare = sizing.spare.saturating_sub(self.idle + self.starting);
        let queued = u32::try_from(self.waiting.len()).expect("few wait");
        let queue = sizing.grow_above.map_or(0, |above| queued.saturating_sub(above));
        if wanted.max(spare).max(queue.saturating_sub(self.starting)) == 0 && coming > 0 {
            let oldest = self.waiting[0];
            assert!(self.now - oldest >= sizing.grow_after, "grown before somebody waited");
            assert!(self.starting + count <= sizing.grow_step_max, "no more than may be starting");
        }
        self.starting += count;
        let present = self.busy + self.idle + self.starting + self.ending;
        assert!(present <= sizing.max, "never above `max`");
    }

    /// The conditions that must be true when the policy returns `Nothing`.
    fn settled(&self) {
        let sizing = self.policy.sizing();
        let coming = self.busy + self.idle + self.starting;
        if coming + self.ending < sizing.max {
            assert!(coming >= sizing.min, "below `min` though there is room");
            assert!(self.idle + self.starting >= sizing.spare, "too few spare ones");
            assert!(coming > 0 || self.waiting.is_empty(), "somebody waits for nobody");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn never_outside_the_numbers(
        sizing in sizing(),
        events in proptest::collection::vec(event(), 1..300),
    ) {
        let mut farm = Farm::new(sizing);
        farm.follow();
        for event in events {
            farm.apply(event);
        }
    }

    #[test]
    fn pressure_that_lasts_leads_to_max_and_rest_leads_to_the_least(
        sizing in sizing(),
        events in proptest::collection::vec(event(), 0..100),
    ) {
        let mut farm = Farm::new(sizing);
        events.into_iter().for_each(|event| farm.apply(event));
        let sizing = *farm.policy.sizing();
        // All existing workers end before the first check, because `max` may have been lowered.
        (farm.busy, farm.idle, farm.ending) = (0, 0, 0);
        farm.starting = 0;
        farm.apply(Event::Arrive(1000));
        for _ in 0..100 {
            farm.apply(Event::Started(u32::MAX));
            farm.apply(Event::Due);
        }
        farm.apply(Event::Started(u32::MAX));
        prop_assert_eq!(farm.busy, sizing.max);
        farm.waiting.clear();
        farm.apply(Event::Done(u32::MAX));
        for _ in 0..100 {
            farm.apply(Event::Due);
            farm.apply(Event::Ended(1));
        }
        prop_assert_eq!(farm.busy, 0);
        prop_assert_eq!(farm.idle, sizing.min.max(sizing.spare).min(sizing.max));
        prop_assert_eq!(farm.policy.next_time(&farm.load()), None);
    }
}
