//! The fallback of a pool that may have no worker at all.

use super::*;
use crate::fallback::{FallbackReason, FallbackSettings};

/// Up to `max` workers, and none without load; the queue has room for one request.
fn on_demand(max: u32, steady: Duration) -> Settings {
    let sizing = elastic::Sizing {
        min: 0,
        max,
        spare: 0,
        idle: ms(30),
        grow_after: ms(0),
        ..elastic::Sizing::default()
    };
    let queue = QueueLimits { length: 1, wait: ms(50), ..QueueLimits::default() };
    let fallback = Some(FallbackSettings { until: 50, steady });
    Settings { sizing, queue, fallback, ..Settings::default() }
}

impl Yard {
    fn reason(&self) -> Option<FallbackReason> {
        self.pool.status().fallback.map(|(reason, _)| reason)
    }

    /// Carries out the effects in their order until the fallback is off. Returns the time that passed.
    fn until_fallback_ends(&mut self) -> Duration {
        let since = self.now;
        for _ in 0..100 {
            if self.reason().is_none() {
                return self.now - since;
            }
            self.start_all();
            for worker in std::mem::take(&mut self.stopped) {
                self.ended(worker, true);
            }
            if self.reason().is_some() {
                self.wait();
            }
        }
        panic!("it is sorry for ever");
    }
}

#[test]
fn a_pool_whose_workers_rest_sooner_than_it_is_calm_is_not_fallback_for_ever() {
    for max in [1, 3] {
        let mut yard = Yard::new(on_demand(max, ms(60)));
        let mut number = 0;
        while yard.request(Job(number, 10)).is_ok() {
            number += 1;
            yard.start_all();
        }
        assert_eq!(yard.reason(), Some(FallbackReason::Full));
        for (worker, ..) in std::mem::take(&mut yard.dispatched) {
            yard.release(worker);
        }
        for (worker, ..) in std::mem::take(&mut yard.dispatched) {
            yard.release(worker);
        }
        assert_eq!(yard.until_fallback_ends(), ms(60), "{max} at most");
        assert!(yard.request(Job(number, 10)).is_ok());
    }
}

#[test]
fn a_pool_whose_last_worker_dies_while_it_is_fallback_starts_another() {
    let mut yard = Yard::new(on_demand(1, ms(0)));
    yard.requests(0..1);
    let worker = yard.start_all()[0];
    yard.requests(1..2);
    assert_eq!(yard.request(Job(2, 10)), Err(Cause::Full));
    yard.pass(ms(50));
    assert_eq!(yard.refused, [(1, Cause::Waited)]);
    yard.ended(worker, true);
    yard.until_fallback_ends();
    assert!(yard.request(Job(3, 10)).is_ok());
}

#[test]
fn one_that_was_kept_for_a_fallback_pool_rests_when_that_is_over() {
    let mut yard = Yard::new(on_demand(1, ms(60)));
    yard.requests(0..1);
    let worker = yard.start_all()[0];
    yard.requests(1..2);
    assert_eq!(yard.request(Job(2, 10)), Err(Cause::Full));
    yard.release(worker);
    yard.release(worker);
    yard.until_fallback_ends();
    assert!(yard.stopped.is_empty());
    assert_eq!(yard.wait(), ms(30));
    assert_eq!(yard.stopped, [worker]);
    yard.ended(worker, true);
    assert_eq!(yard.pool.next_time(), None, "nobody is wanted");
}

#[test]
fn a_pool_that_is_fallback_by_hand_starts_nobody() {
    let mut yard = Yard::new(on_demand(1, ms(60)));
    yard.pool.handle_fallback(yard.now, true);
    yard.follow();
    assert_eq!(yard.request(Job(0, 10)), Err(Cause::Fallback));
    assert!(yard.started.is_empty());
}
