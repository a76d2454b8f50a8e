//! The number of workers, their starts and their stops.

use super::*;

fn elastic(min: u32, max: u32, spare: u32) -> Settings {
    let sizing = elastic::Sizing {
        grow_step_max: 8,
        idle: ms(30_000),
        grow_after: ms(10),
        ..elastic::Sizing::prefork(min, max, spare)
    };
    Settings { sizing, ..Settings::default() }
}

#[test]
fn a_new_pool_wants_its_least_workers_at_once() {
    let yard = Yard::new(elastic(3, 20, 0));
    assert_eq!(yard.started.len(), 3);
    assert_eq!(yard.pool.status().starting, 3);
}

#[test]
fn a_burst_grows_the_pool_in_doubling_steps_and_rest_shrinks_it_again() {
    let mut yard = Yard::ready(elastic(2, 20, 0));
    yard.requests(0..500);
    let mut steps = Vec::new();
    while yard.pool.status().busy < 20 {
        assert_eq!(yard.wait(), ms(10));
        steps.push(yard.start_all().len());
    }
    assert_eq!(steps, [1, 2, 4, 8, 3]);
    for turn in 20..500 {
        let (worker, ..) = yard.dispatched[turn - 20];
        yard.release(worker);
    }
    for turn in 480..500 {
        let (worker, ..) = yard.dispatched[turn];
        yard.release(worker);
    }
    assert!(yard.pool.is_idle());
    assert_eq!(yard.wait(), ms(30_000));
    for ended in 0..18 {
        assert_eq!(yard.stopped.len(), ended + 1, "one at a time");
        yard.ended(yard.stopped[ended], true);
    }
    assert_eq!((yard.stopped.len(), yard.pool.status().idle), (18, 2));
    assert_eq!(yard.pool.next_time(), None);
    assert!(yard.started.is_empty());
}

#[test]
fn round_robin_over_a_trickle_shrinks_the_pool_all_the_same() {
    let mut yard = Yard::ready(elastic(10, 10, 0));
    yard.settings(elastic(2, 10, 0));
    for number in 0..200 {
        yard.requests([number]);
        let (worker, ..) = yard.dispatched[number as usize];
        yard.release(worker);
        yard.pass(ms(1000));
        while let Some(worker) = yard.stopped.pop() {
            yard.ended(worker, true);
        }
    }
    assert_eq!(yard.pool.status().idle, 2);
}

#[test]
fn on_demand_the_first_request_starts_the_first_worker() {
    let mut yard = Yard::new(elastic(0, 4, 0));
    assert!(yard.started.is_empty());
    yard.requests([0]);
    assert_eq!(yard.start_all().len(), 1);
    assert_eq!(yard.numbers(), [0]);
    yard.release(WorkerId::new(0, 0));
    assert_eq!(yard.wait(), ms(30_000));
    yard.ended(WorkerId::new(0, 0), true);
    yard.requests([1]);
    assert_eq!(yard.start_all(), [WorkerId::new(0, 1)], "another worker in the same place");
    assert_eq!(yard.numbers(), [1]);
}

#[test]
fn spare_workers_are_there_before_they_are_needed() {
    let mut yard = Yard::ready(elastic(1, 6, 2));
    for number in 0..4 {
        assert_eq!(yard.pool.status().idle, 2);
        yard.requests([number]);
        assert_eq!(yard.start_all().len(), 1);
    }
    yard.requests([4]);
    assert_eq!(yard.start_all().len(), 0, "as far as `max` allows");
}

#[test]
fn requests_that_wait_for_their_batch_do_not_grow_the_pool() {
    let batch = Batching { rows: 10, bytes: 1 << 20, wait: ms(500) };
    let mut yard = Yard::ready(Settings { batch, ..elastic(1, 8, 0) });
    yard.requests(0..9);
    assert_eq!(yard.wait(), ms(500));
    assert!(yard.started.is_empty());
    // One waiting batch is work for one more worker.
    yard.requests(10..19);
    assert_eq!(yard.wait(), ms(10));
    assert_eq!(yard.started.len(), 1);
    yard.pass(ms(400));
    assert_eq!(yard.started.len(), 1);
}

#[test]
fn no_more_are_started_than_what_waits_could_keep_busy() {
    let mut yard = Yard::ready(Settings { slots: 4, ..elastic(1, 8, 0) });
    yard.requests(0..9);
    assert_eq!(yard.wait(), ms(10));
    assert_eq!(yard.wait(), ms(10));
    assert_eq!(yard.started.len(), 2, "five that wait are work for two");
    yard.pass(ms(1000));
    assert_eq!(yard.started.len(), 2);
}

#[test]
fn a_retired_worker_gets_nothing_more_and_is_replaced_at_once() {
    let mut yard = Yard::ready(elastic(1, 2, 0));
    yard.requests([0]);
    let worker = WorkerId::new(0, 0);
    yard.pass(ms(2000));
    yard.retire(worker);
    assert_eq!(yard.pool.status().retiring, 1);
    yard.release(worker);
    yard.requests([1]);
    assert_eq!(yard.numbers(), [0]);
    let others = yard.start_all();
    assert_eq!((others.len(), yard.numbers()), (1, vec![1]));
    yard.retire(worker);
    yard.ended(worker, false);
    assert_eq!(yard.pool.counts().failures, 0, "it had settled");
    assert_eq!(yard.pool.counts().stale, 0, "to say it again is no error");
    assert!(yard.started.is_empty());
}

#[test]
fn max_holds_while_a_retired_worker_is_still_there() {
    let mut yard = Yard::ready(fixed(1));
    yard.pass(ms(2000));
    yard.retire(WorkerId::new(0, 0));
    assert!(yard.started.is_empty());
    yard.ended(WorkerId::new(0, 0), true);
    assert_eq!(yard.started.len(), 1);
}

#[test]
fn slots_of_a_worker_that_dies_vanish_with_it() {
    let mut yard = Yard::ready(Settings { slots: 3, ..fixed(1) });
    yard.requests(0..3);
    yard.pass(ms(2000));
    yard.ended(WorkerId::new(0, 0), false);
    assert_eq!(yard.pool.status().slots_in_use, 0);
    assert!(yard.pool.is_idle());
}

#[test]
fn events_for_a_worker_that_is_gone_are_counted_and_ignored() {
    let mut yard = Yard::ready(fixed(1));
    let old = WorkerId::new(0, 0);
    yard.pass(ms(2000));
    yard.ended(old, false);
    assert_eq!(yard.start_all(), [WorkerId::new(0, 1)]);
    yard.requests([0]);
    yard.release(old);
    yard.retire(old);
    yard.ended(old, false);
    yard.pool.handle_started(yard.now, old);
    yard.pool.handle_started(yard.now, WorkerId::new(77, 0));
    yard.follow();
    assert_eq!(yard.pool.counts().stale, 5);
    assert_eq!(yard.pool.status().busy, 1);
    yard.release(WorkerId::new(0, 1));
    yard.release(WorkerId::new(0, 1));
    assert_eq!(yard.pool.counts().stale, 6, "nothing was left to release");
    assert_eq!(yard.pool.status().idle, 1);
}

#[test]
fn a_lower_max_lets_idle_workers_stop_and_busy_ones_finish() {
    let mut yard = Yard::ready(fixed(4));
    yard.requests(0..3);
    yard.settings(fixed(1));
    assert_eq!(yard.stopped, [WorkerId::new(3, 0)]);
    assert_eq!(yard.pool.status().retiring, 3);
    yard.requests([3]);
    yard.release(WorkerId::new(0, 0));
    yard.release(WorkerId::new(1, 0));
    assert_eq!(yard.stopped[1..], [WorkerId::new(0, 0), WorkerId::new(1, 0)]);
    assert_eq!(yard.numbers(), [0, 1, 2], "nothing more for those that leave");
    yard.release(WorkerId::new(2, 0));
    assert_eq!(yard.numbers(), [3]);
}

#[test]
fn a_worker_that_starts_when_it_is_no_longer_wanted_stops_again() {
    let mut yard = Yard::new(fixed(2));
    yard.settings(fixed(1));
    yard.start_all();
    assert_eq!((yard.stopped.len(), yard.pool.status().idle), (1, 1));
}

#[test]
fn other_settings_hold_at_once_and_cost_nobody_their_place() {
    let mut yard = Yard::ready(fixed(1));
    yard.requests(0..5);
    let queue = QueueLimits { length: 2, ..QueueLimits::default() };
    yard.settings(Settings { queue, ..fixed(1) });
    assert_eq!(yard.pool.status().queued, 4);
    assert_eq!(yard.request(Job(9, 1)), Err(Cause::Full));
    yard.settings(Settings { slots: 3, queue, ..fixed(1) });
    assert_eq!(yard.numbers(), [0, 1, 2], "more slots are filled");
    yard.settings(Settings { queue, ..fixed(1) });
    yard.release(WorkerId::new(0, 0));
    yard.release(WorkerId::new(0, 0));
    assert_eq!(yard.numbers().len(), 0, "fewer slots take nothing before they are free");
    yard.release(WorkerId::new(0, 0));
    assert_eq!(yard.numbers(), [3]);
    assert!(yard.refused.is_empty());
}
