//! Requests: which are dispatched, which wait, which are rejected.

use super::*;

fn limited(length: u32, bytes: usize) -> Settings {
    Settings { queue: QueueLimits { length, bytes, wait: ms(5000) }, ..fixed(1) }
}

#[test]
fn a_free_slot_takes_a_request_at_once_and_others_wait_in_order() {
    let mut yard = Yard::ready(fixed(2));
    yard.requests(0..5);
    assert_eq!(yard.numbers(), [0, 1]);
    let status = yard.pool.status();
    assert_eq!((status.queued, status.queued_bytes, status.busy), (3, 30, 2));
    assert_eq!(status.oldest, Some(yard.now));
    let first = WorkerId::new(0, 0);
    for number in 2..5 {
        yard.release(first);
        assert_eq!(yard.numbers(), [number]);
    }
    yard.release(first);
    yard.release(WorkerId::new(1, 0));
    assert!(yard.pool.is_idle());
    assert_eq!(yard.pool.next_time(), None);
}

#[test]
fn refused_at_once_when_the_queue_is_full_by_length() {
    let mut yard = Yard::ready(limited(2, 1000));
    yard.requests(0..3);
    assert_eq!(yard.request(Job(3, 1)), Err(Cause::Full));
    yard.release(WorkerId::new(0, 0));
    assert!(yard.request(Job(4, 1)).is_ok());
    assert_eq!(yard.pool.counts().refused, 1);
}

#[test]
fn refused_at_once_when_the_queue_is_full_by_bytes() {
    let mut yard = Yard::ready(limited(100, 50));
    yard.requests(0..1);
    assert!(yard.request(Job(1, 30)).is_ok());
    assert_eq!(yard.request(Job(2, 21)), Err(Cause::Full));
    assert!(yard.request(Job(3, 20)).is_ok());
    assert_eq!(yard.request(Job(4, 1)), Err(Cause::Full));
    assert!(yard.request(Job(5, 0)).is_ok());
}

#[test]
fn what_a_slot_takes_at_once_is_not_held_against_the_queue() {
    let mut yard = Yard::ready(limited(0, 0));
    assert!(yard.request(Job(0, 1 << 30)).is_ok());
    assert_eq!(yard.request(Job(1, 0)), Err(Cause::Full));
    assert_eq!(yard.numbers(), [0]);
}

#[test]
fn refused_when_it_has_waited_as_long_as_it_may() {
    let settings =
        Settings { queue: QueueLimits { wait: ms(100), ..QueueLimits::default() }, ..fixed(1) };
    let mut yard = Yard::ready(settings);
    yard.requests([0, 1]);
    yard.pass(ms(40));
    yard.requests([2]);
    assert_eq!(yard.wait(), ms(60));
    assert_eq!(yard.refused, [(1, Cause::Waited)]);
    assert_eq!(yard.wait(), ms(40));
    assert_eq!(yard.refused, [(1, Cause::Waited), (2, Cause::Waited)]);
    assert_eq!(yard.numbers(), [0]);
    assert_eq!(yard.pool.counts().expired, 2);
}

#[test]
fn a_slot_that_comes_free_when_the_time_is_over_comes_too_late() {
    let settings =
        Settings { queue: QueueLimits { wait: ms(100), ..QueueLimits::default() }, ..fixed(1) };
    let mut yard = Yard::ready(settings);
    yard.requests([0, 1]);
    yard.now += ms(50);
    yard.requests([2]);
    // `handle_time` was not called at the right time.
    yard.now += ms(70);
    yard.release(WorkerId::new(0, 0));
    assert_eq!(yard.refused, [(1, Cause::Waited)]);
    assert_eq!(yard.numbers(), [0, 2]);
}

#[test]
fn abandoned_while_it_waits_it_comes_back_and_later_it_does_not() {
    let mut yard = Yard::ready(fixed(1));
    let tickets = yard.requests(0..4);
    let now = yard.now;
    assert_eq!(yard.pool.handle_abandon(now, tickets[0]), None, "a worker has it");
    assert_eq!(yard.pool.handle_abandon(now, tickets[2]), Some(Job(2, 10)));
    assert_eq!(yard.pool.handle_abandon(now, tickets[2]), None, "only once");
    yard.requests([4]);
    assert_eq!(yard.pool.handle_abandon(now, tickets[2]), None, "another has its place");
    for _ in 0..3 {
        yard.release(WorkerId::new(0, 0));
    }
    assert_eq!(yard.numbers(), [0, 1, 3, 4]);
}

fn batching(rows: u32, bytes: usize, wait: Duration) -> Settings {
    Settings { batch: Batching { rows, bytes, wait }, ..fixed(1) }
}

#[test]
fn without_a_wait_a_batch_is_whatever_waits_when_a_slot_comes_free() {
    let mut yard = Yard::ready(batching(100, 1 << 20, ms(0)));
    yard.requests(0..251);
    let worker = WorkerId::new(0, 0);
    assert_eq!(yard.batches(), [[0]], "low load has the latency of one row");
    yard.release(worker);
    yard.release(worker);
    yard.release(worker);
    let sizes: Vec<_> = yard.batches().iter().map(Vec::len).collect();
    assert_eq!(sizes, [100, 100, 50], "high load has large batches by itself");
    assert_eq!(yard.pool.status().slots_in_use, 1, "a batch has one slot");
    assert_eq!(yard.pool.counts().batches, 4);
}

#[test]
fn a_batch_ends_before_the_request_that_does_not_fit() {
    let mut yard = Yard::ready(batching(100, 25, ms(0)));
    yard.requests(0..4);
    assert!(yard.request(Job(4, 300)).is_ok());
    assert!(yard.request(Job(5, 1)).is_ok());
    for _ in 0..4 {
        yard.release(WorkerId::new(0, 0));
    }
    assert_eq!(yard.batches(), [vec![0], vec![1, 2], vec![3], vec![4], vec![5]]);
}

#[test]
fn a_batch_waits_for_more_until_it_is_full() {
    let mut yard = Yard::ready(batching(3, 1 << 20, ms(20)));
    yard.requests(0..2);
    assert_eq!(yard.batches().len(), 0);
    yard.requests([2]);
    assert_eq!(yard.batches(), [[0, 1, 2]]);
}

#[test]
fn a_batch_waits_for_more_until_it_has_its_bytes() {
    let mut yard = Yard::ready(batching(1000, 30, ms(20)));
    yard.requests(0..2);
    assert_eq!(yard.batches().len(), 0);
    yard.requests([2]);
    assert_eq!(yard.batches(), [[0, 1, 2]]);
}

#[test]
fn a_batch_waits_for_more_no_longer_than_its_oldest_may() {
    let mut yard = Yard::ready(batching(1000, 1 << 20, ms(20)));
    yard.requests([0]);
    yard.pass(ms(15));
    yard.requests([1]);
    assert_eq!(yard.wait(), ms(5));
    assert_eq!(yard.batches(), [[0, 1]]);
    assert_eq!(yard.pool.next_time(), None);
}

#[test]
fn a_batch_waits_for_more_no_longer_than_there_is_room_for_more() {
    let queue = QueueLimits { length: 2, bytes: 100, wait: ms(5000) };
    let mut yard = Yard::ready(Settings { queue, ..batching(1000, 1 << 20, ms(20)) });
    yard.requests(0..2);
    assert_eq!(yard.batches(), [[0, 1]], "by length");
    yard.release(WorkerId::new(0, 0));
    yard.requests([2]);
    assert!(yard.request(Job(3, 95)).is_ok());
    assert_eq!(yard.batches(), [[2]], "by bytes");
    yard.release(WorkerId::new(0, 0));
    assert_eq!(yard.wait(), ms(20));
    assert_eq!(yard.batches(), [[3]]);
}

#[test]
fn a_batch_that_waits_is_never_refused_for_it() {
    let queue = QueueLimits { wait: ms(10), ..QueueLimits::default() };
    let mut yard = Yard::ready(Settings { queue, ..batching(1000, 1 << 20, ms(20)) });
    yard.requests([0]);
    assert_eq!(yard.wait(), ms(5));
    assert_eq!(yard.batches(), [[0]]);
}

#[test]
fn what_never_reached_its_worker_is_next_in_its_old_order() {
    let queue = QueueLimits { length: 3, bytes: 1000, wait: ms(100) };
    let sizing = elastic::Sizing { min: 1, max: 1, ..elastic::Sizing::default() };
    let mut yard = Yard::ready(Settings { slots: 3, queue, sizing, ..Settings::default() });
    yard.requests(0..5);
    assert_eq!(yard.numbers(), [0, 1, 2]);
    yard.pass(ms(30));
    yard.requests([5]);
    yard.pass(ms(30));
    let worker = WorkerId::new(0, 0);
    yard.retire(worker);
    yard.returned(2);
    let ticket = yard.returned(1);
    assert_eq!(yard.pool.status().queued, 5, "beyond the limit, and not refused");
    assert_eq!(yard.request(Job(9, 1)), Err(Cause::Full));
    assert_eq!(yard.pool.handle_abandon(yard.now, ticket), Some(Job(1, 10)));
    yard.returned(1);
    yard.ended(worker, true);
    yard.start_all();
    assert_eq!(yard.numbers(), [1, 2, 3]);
    // The request counts as old as the oldest request behind it.
    assert_eq!(yard.wait(), ms(40));
    assert_eq!(yard.refused, [(4, Cause::Waited)]);
}

#[test]
fn pipelined_requests_of_one_worker_are_as_many_as_its_slots() {
    let mut yard = Yard::ready(Settings { slots: 4, ..fixed(1) });
    yard.requests(0..6);
    assert_eq!(yard.numbers(), [0, 1, 2, 3]);
    yard.release(WorkerId::new(0, 0));
    assert_eq!(yard.numbers(), [4]);
    let status = yard.pool.status();
    assert_eq!((status.slots_in_use, status.busy, status.idle), (4, 1, 0));
}

/// The workers that were given the requests: eight requests, then one more after each release.
fn turns(schedule: Schedule) -> Vec<usize> {
    let mut yard = Yard::ready(Settings { slots: 4, schedule, ..fixed(3) });
    yard.requests(0..8);
    for worker in [2, 2, 2, 0] {
        yard.release(WorkerId::new(worker, 0));
    }
    yard.requests(8..12);
    yard.dispatched.iter().map(|(worker, ..)| worker.index()).collect()
}

#[test]
fn round_robin_takes_turns() {
    assert_eq!(turns(Schedule::RoundRobin), [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2]);
}

#[test]
fn least_outstanding_evens_out() {
    assert_eq!(turns(Schedule::LeastRequests), [0, 1, 2, 0, 1, 2, 0, 1, 2, 2, 0, 2]);
}

#[test]
fn the_steady_state_allocates_nothing() {
    let mut yard = Yard::ready(Settings { slots: 2, ..fixed(3) });
    let mut before = None;
    for number in 0..10_000 {
        yard.requests([number]);
        if number >= 40 {
            let (worker, ..) = yard.dispatched.remove(0);
            yard.release(worker);
        }
        if number == 100 {
            before = Some(yard.pool.footprint());
        }
    }
    assert_eq!(Some(yard.pool.footprint()), before);
}
