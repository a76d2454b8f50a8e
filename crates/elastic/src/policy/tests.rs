//! Tests of the policy in virtual time.

use std::time::Duration;

use super::*;

#[expect(clippy::disallowed_methods, reason = "a point to start from; only differences count")]
fn start() -> Instant {
    Instant::now()
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const SIZING: Sizing = Sizing {
    min: 2,
    max: 100,
    spare: 0,
    idle: Duration::from_secs(30),
    grow_after: Duration::from_millis(10),
    grow_step_max: 16,
    grow_above: None,
};

/// A policy with its load and its clock.
struct Farm {
    policy: Policy,
    now: Instant,
    load: Load,
}

impl Farm {
    fn new(sizing: Sizing) -> Self {
        let load = Load { room: u32::MAX, may_shrink: true, ..Load::default() };
        Self { policy: Policy::new(sizing), now: start(), load }
    }

    /// A pool whose `min` and `spare` workers are ready.
    fn settled(sizing: Sizing) -> Self {
        let mut farm = Self::new(sizing);
        farm.follow();
        farm.started();
        assert_eq!(farm.follow(), 0);
        farm
    }

    /// Follows the policy and returns the number of started minus stopped workers.
    fn follow(&mut self) -> i64 {
        let mut change = 0;
        loop {
            match self.policy.advise(self.now, &self.load) {
                Advice::Nothing => break,
                Advice::Start(count) => {
                    self.load.starting += count;
                    change += i64::from(count);
                }
                Advice::Stop => {
                    self.load.idle -= 1;
                    self.load.ending += 1;
                    change -= 1;
                }
            }
        }
        let next_time = self.policy.next_time(&self.load);
        assert!(next_time.is_none_or(|at| at > self.now), "nobody asks in vain");
        change
    }

    /// Advances to the next time at which the policy must be called, and follows it.
    fn wait(&mut self) -> i64 {
        self.now = self.policy.next_time(&self.load).expect("it wants to be asked again");
        self.follow()
    }

    /// All starting workers become ready and idle.
    fn started(&mut self) {
        self.load.idle += std::mem::take(&mut self.load.starting);
    }

    /// All ending workers have gone.
    fn ended(&mut self) {
        self.load.ending = 0;
    }

    /// Sets how many of the ready workers are busy.
    fn busy(&mut self, busy: u32) {
        let ready = self.load.ready();
        self.load.busy = busy;
        self.load.idle = ready - busy;
    }

    /// Requests for `workers` more workers have been waiting since now.
    fn pressure(&mut self, workers: u32) {
        self.load.waiting = workers;
        self.load.oldest = Some(self.now);
    }
}

#[test]
fn those_beyond_a_lower_max_are_counted() {
    let mut policy = Policy::new(SIZING);
    assert_eq!((policy.excess(2), policy.excess(100), policy.excess(103)), (0, 0, 3));
    policy.set_sizing(SIZING.fixed_at(2));
    assert_eq!(policy.excess(100), 98);
}

#[test]
fn min_and_spare_are_started_at_once() {
    assert_eq!(Farm::new(SIZING).follow(), 2);
    assert_eq!(Farm::new(Sizing { spare: 5, ..SIZING }).follow(), 5);
    assert_eq!(Farm::new(Sizing { spare: 500, ..SIZING }).follow(), 100);
    assert_eq!(Farm::new(Sizing { min: 500, ..SIZING }).follow(), 100);
}

#[test]
fn a_burst_doubles_the_step_up_to_the_limit() {
    let mut farm = Farm::settled(SIZING);
    farm.busy(2);
    farm.pressure(1000);
    let begin = farm.now;
    assert_eq!(farm.follow(), 0);
    let mut steps = Vec::new();
    for _ in 0..9 {
        steps.push(farm.wait());
        farm.started();
        farm.busy(farm.load.ready());
    }
    assert_eq!(steps, [1, 2, 4, 8, 16, 16, 16, 16, 16]);
    assert_eq!(farm.now - begin, ms(10) * 9, "a step every `grow_after`");
    assert_eq!(farm.wait(), 3, "and never beyond `max`");
    assert_eq!(farm.policy.next_time(&farm.load), None);
}

#[test]
fn those_that_are_still_starting_are_counted() {
    let mut farm = Farm::settled(SIZING);
    farm.busy(2);
    farm.pressure(5);
    assert_eq!(farm.wait(), 1);
    assert_eq!(farm.wait(), 2);
    assert_eq!(farm.wait(), 2, "five are enough for five");
    assert_eq!(farm.policy.next_time(&farm.load), None);
    farm.pressure(1000);
    assert_eq!(farm.wait(), 8);
    assert_eq!(farm.wait(), 3, "sixteen may be starting at once");
    assert_eq!(farm.policy.next_time(&farm.load), None);
}

#[test]
fn a_request_that_waits_for_less_starts_nobody() {
    let mut farm = Farm::settled(SIZING);
    farm.busy(2);
    for _ in 0..100 {
        farm.pressure(50);
        assert_eq!(farm.follow(), 0);
        farm.now += ms(9);
        assert_eq!(farm.follow(), 0);
    }
}

#[test]
fn when_the_pressure_has_gone_growth_begins_anew() {
    let mut farm = Farm::settled(SIZING);
    farm.busy(2);
    farm.pressure(1000);
    assert_eq!((farm.wait(), farm.wait(), farm.wait()), (1, 2, 4));
    farm.started();
    farm.busy(9);
    farm.now += ms(500);
    farm.pressure(1000);
    assert_eq!((farm.wait(), farm.wait()), (1, 2));
}

#[test]
fn a_late_call_does_not_end_the_doubling() {
    let mut farm = Farm::settled(SIZING);
    farm.busy(2);
    farm.pressure(1000);
    assert_eq!(farm.wait(), 1);
    farm.now += ms(300);
    assert_eq!(farm.follow(), 2, "the oldest has waited all the time");
}

#[test]
fn the_first_worker_on_demand_is_started_at_once() {
    let mut farm = Farm::new(Sizing { min: 0, ..SIZING });
    assert_eq!(farm.follow(), 0);
    farm.pressure(7);
    assert_eq!(farm.follow(), 1);
    assert_eq!(farm.wait(), 1, "more by their age");
}

#[test]
fn spare_ones_follow_the_busy_ones() {
    let mut farm = Farm::settled(Sizing { spare: 3, ..SIZING });
    for busy in 1..=10 {
        farm.busy(busy);
        assert_eq!(farm.follow(), 1);
        farm.started();
    }
    assert_eq!((farm.load.busy, farm.load.idle), (10, 3));
}

#[test]
fn after_idle_the_surplus_ends_one_at_a_time_down_to_min() {
    let mut farm = Farm::settled(SIZING);
    farm.load.idle = 20;
    assert_eq!(farm.follow(), 0);
    let begin = farm.now;
    assert_eq!(farm.wait(), -1);
    assert_eq!(farm.now - begin, SIZING.idle);
    for _ in 0..17 {
        assert_eq!(farm.policy.next_time(&farm.load), None, "the last one is not gone yet");
        farm.ended();
        assert_eq!(farm.follow(), -1);
    }
    farm.ended();
    assert_eq!(farm.follow(), 0);
    assert_eq!((farm.load.ready(), farm.policy.next_time(&farm.load)), (2, None));
}

#[test]
fn a_peak_keeps_the_workers_that_it_needs() {
    let mut farm = Farm::settled(SIZING);
    farm.load.idle = 20;
    farm.follow();
    // Every ten seconds twelve workers are needed for a moment.
    for _ in 0..20 {
        farm.now += Duration::from_secs(10);
        farm.busy(12);
        farm.follow();
        farm.busy(0);
        farm.follow();
        farm.ended();
        while farm.follow() != 0 {
            farm.ended();
        }
    }
    assert_eq!(farm.load.ready(), 12);
}

#[test]
fn flapping_does_not_oscillate() {
    let mut farm = Farm::settled(Sizing { spare: 1, ..SIZING });
    let mut changes = 0;
    for turn in 0..10_000_u32 {
        farm.now += ms(100);
        farm.busy([3, 5, 4, 6][turn as usize % 4].min(farm.load.ready()));
        let change = farm.follow();
        changes += change.abs();
        farm.started();
        farm.ended();
    }
    assert_eq!(changes, 5, "up to the peak and its spare one, and never back");
    assert_eq!(farm.load.ready(), 7);
}

#[test]
fn one_that_was_needed_again_counts_from_anew() {
    let mut farm = Farm::settled(Sizing { min: 0, ..SIZING });
    farm.load.idle = 1;
    farm.follow();
    farm.now += Duration::from_secs(29);
    farm.busy(1);
    farm.follow();
    farm.busy(0);
    farm.follow();
    let begin = farm.now;
    assert_eq!(farm.wait(), -1);
    assert_eq!(farm.now - begin, SIZING.idle);
}

#[test]
fn in_trouble_nobody_is_ended_and_only_as_many_started_as_there_is_room_for() {
    let mut farm = Farm::settled(SIZING);
    farm.load.idle = 20;
    farm.load.may_shrink = false;
    farm.follow();
    farm.now += Duration::from_secs(3600);
    assert_eq!(farm.follow(), 0);
    farm.load.may_shrink = true;
    assert_eq!(farm.follow(), 0, "the rest before does not count");
    farm.load = Load { room: 1, ..Load::default() };
    assert_eq!(farm.policy.advise(farm.now, &farm.load), Advice::Start(1));
    farm.load.room = 0;
    assert_eq!(farm.policy.advise(farm.now, &farm.load), Advice::Nothing);
}

#[test]
fn other_numbers_hold_at_once() {
    let mut farm = Farm::settled(SIZING);
    farm.policy.set_sizing(Sizing { min: 10, ..SIZING });
    assert_eq!(farm.follow(), 8);
    farm.started();
    assert_eq!(farm.follow(), 0);
    farm.now += Duration::from_secs(1);
    farm.policy.set_sizing(Sizing { min: 3, idle: Duration::from_secs(5), ..SIZING });
    assert_eq!(farm.follow(), 0);
    assert_eq!(farm.wait(), -1);
}

#[test]
fn durations_beyond_all_time_mean_never() {
    let forever = Sizing { min: 0, idle: Duration::MAX, grow_after: Duration::MAX, ..SIZING };
    let mut farm = Farm::new(forever);
    farm.pressure(9);
    assert_eq!(farm.follow(), 1);
    farm.started();
    farm.busy(1);
    assert_eq!(farm.follow(), 0);
    assert_eq!(farm.policy.next_time(&farm.load), None);
    farm.load = Load { idle: 9, room: 9, may_shrink: true, ..Load::default() };
    assert_eq!(farm.follow(), 0);
    assert_eq!(farm.policy.next_time(&farm.load), None);
}

#[test]
fn a_queue_that_is_too_long_is_a_reason_at_once() {
    let mut farm = Farm::settled(Sizing { grow_above: Some(3), grow_after: ms(50), ..SIZING });
    farm.busy(2);
    farm.pressure(3);
    assert_eq!(farm.follow(), 0, "three may wait");
    farm.pressure(4);
    assert_eq!(farm.follow(), 1);
    farm.pressure(9);
    assert_eq!(farm.follow(), 5, "one is starting, five more are worth it");
    farm.pressure(1000);
    assert_eq!(farm.follow(), 92, "and never beyond `max`");
}

#[test]
fn an_observer_is_told_when_to_ask_and_changes_nothing() {
    let mut farm = Farm::settled(SIZING);
    farm.busy(2);
    assert_eq!(farm.policy.observe(farm.now, &farm.load), None);
    farm.pressure(5);
    let due = Some(farm.now + SIZING.grow_after);
    assert_eq!(farm.policy.observe(farm.now, &farm.load), due);
    assert_eq!(farm.policy.observe(farm.now, &farm.load), due);
    assert_eq!(farm.wait(), 1);
    let mut farm = Farm::new(SIZING);
    assert_eq!(farm.policy.observe(farm.now, &farm.load), Some(farm.now), "`min` is missing");
    assert_eq!(farm.follow(), 2);
}
