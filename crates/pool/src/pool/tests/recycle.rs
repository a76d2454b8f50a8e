//! Healthy workers that are replaced.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::settings::RecycleSettings;

const NEVER: RecycleSettings =
    RecycleSettings { requests: None, age: None, memory: None, jitter: 0, share: 1 };

fn recycled(workers: u32, recycle: RecycleSettings) -> Settings {
    Settings { recycle, ..fixed(workers) }
}

fn serve(yard: &mut Yard, number: u32) -> WorkerId {
    yard.requests([number]);
    let (worker, ..) = yard.dispatched.pop().expect("somebody is free");
    yard.release(worker);
    worker
}

#[test]
fn the_old_one_serves_until_the_new_one_is_ready() {
    let recycle = RecycleSettings { requests: Some(3), ..NEVER };
    let mut yard = Yard::ready(recycled(1, recycle));
    let old = serve(&mut yard, 0);
    serve(&mut yard, 1);
    assert!(yard.started.is_empty());
    serve(&mut yard, 2);
    let new = yard.started[0];
    assert_eq!(serve(&mut yard, 3), old, "nobody else is ready");
    yard.start_all();
    assert_eq!(yard.stopped, [old]);
    assert_eq!(serve(&mut yard, 4), new);
    yard.ended(old, true);
    assert_eq!(yard.pool.counts().recycled, 1);
    assert_eq!(yard.pool.status().idle, 1);
}

#[test]
fn a_request_in_hand_is_finished_first() {
    let mut yard = Yard::ready(recycled(1, RecycleSettings { requests: Some(1), ..NEVER }));
    yard.requests([0]);
    let (old, ..) = yard.dispatched[0];
    yard.start_all();
    assert!(yard.stopped.is_empty(), "it has a request in its hands");
    yard.release(old);
    assert_eq!(yard.stopped, [old]);
}

#[test]
fn while_the_new_one_fails_to_start_the_old_one_stays_and_it_is_tried_again() {
    let mut yard = Yard::ready(recycled(1, RecycleSettings { age: Some(ms(10_000)), ..NEVER }));
    assert_eq!(yard.wait(), ms(10_000));
    for attempt in 0..10 {
        let new = yard.started.pop().expect("another try");
        yard.start_failed(new);
        assert!(yard.stopped.is_empty());
        serve(&mut yard, attempt);
        while yard.started.is_empty() {
            yard.wait();
        }
    }
    assert!(!yard.pool.status().open, "a worker is ready");
    yard.start_all();
    assert_eq!(yard.stopped.len(), 1);
}

#[test]
fn no_more_than_the_share_is_replaced_at_once() {
    let mut yard = Yard::ready(recycled(10, RecycleSettings { share: 25, ..NEVER }));
    yard.pool.handle_recycle(yard.now);
    yard.follow();
    let mut replaced = 0;
    while replaced < 10 {
        let starting = yard.started.len();
        assert!((1..=2).contains(&starting), "{starting} at once");
        yard.start_all();
        assert!(yard.started.is_empty(), "those that leave count until they are gone");
        assert_eq!(yard.pool.status().idle, 10, "as many serve as before");
        for worker in std::mem::take(&mut yard.stopped) {
            replaced += 1;
            yard.ended(worker, true);
        }
    }
    assert!(yard.started.is_empty());
    assert_eq!(yard.pool.counts().recycled, 10);
}

#[test]
fn memory_counts_only_beyond_the_limit_and_for_workers_that_are_there() {
    let mut yard = Yard::ready(recycled(2, RecycleSettings { memory: Some(1000), ..NEVER }));
    let first = serve(&mut yard, 0);
    yard.pool.handle_memory(yard.now, first, 1000);
    yard.follow();
    assert!(yard.started.is_empty());
    yard.pool.handle_memory(yard.now, first, 1001);
    yard.pool.handle_memory(yard.now, first, 2000);
    yard.follow();
    assert_eq!(yard.started.len(), 1);
    yard.ended(first, false);
    yard.pool.handle_memory(yard.now, first, 5000);
    yard.follow();
    yard.start_all();
    assert!(yard.stopped.is_empty(), "who was due is gone already");
}

#[test]
fn workers_started_together_do_not_go_together() {
    let recycle = RecycleSettings { age: Some(ms(100_000)), jitter: 50, share: 100, ..NEVER };
    let mut yard = Yard::ready(recycled(20, recycle));
    let begin = yard.now;
    let mut ages = Vec::new();
    while ages.len() < 20 {
        yard.wait();
        for _ in 0..yard.started.len() {
            ages.push(yard.now - begin);
        }
        yard.started.clear();
    }
    assert!(ages.iter().all(|age| (ms(50_000)..=ms(100_000)).contains(age)), "{ages:?}");
    let spread = *ages.last().unwrap() - ages[0];
    assert!(spread > ms(20_000), "{ages:?}");
}

#[test]
fn a_pool_that_stops_replaces_nobody() {
    let mut yard = Yard::ready(recycled(1, RecycleSettings { requests: Some(1), ..NEVER }));
    yard.requests([0]);
    yard.started.clear();
    let mut idle = Yard::ready(recycled(1, RecycleSettings { age: Some(ms(10)), ..NEVER }));
    idle.stop();
    assert!(idle.started.is_empty());
    assert_eq!(idle.pool.next_time(), None);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_as_many_serve_as_before_and_the_share_holds(
        workers in 1..8_u32,
        share in 0..101_u32,
        requests in proptest::option::of(1..5_u64),
        age in proptest::option::of(1..50_u64),
        ops in vec((0..9_u8, any::<usize>()), 1..200),
    ) {
        let age = age.map(ms);
        let memory = Some(100);
        let recycle = RecycleSettings { requests, age, memory, jitter: 30, share };
        let mut yard = Yard::ready(recycled(workers, recycle));
        let at_once = (workers * share / 100).max(1);
        for (number, (op, pick)) in (0..).zip(ops) {
            let one = |list: &mut Vec<WorkerId>| match list.len() {
                0 => None,
                length => Some(list.swap_remove(pick % length)),
            };
            let before = yard.pool.status();
            match op {
                0..=2 => drop(yard.request(Job(number, 1))),
                3 if !yard.dispatched.is_empty() => {
                    let (worker, ..) = yard.dispatched.swap_remove(pick % yard.dispatched.len());
                    yard.release(worker);
                }
                4 => if let Some(worker) = one(&mut yard.started) {
                    yard.pool.handle_started(yard.now, worker);
                    yard.follow();
                },
                5 => if let Some(worker) = one(&mut yard.stopped) {
                    yard.ended(worker, true);
                },
                6 => yard.pass(ms(pick as u64 % 20)),
                7 => {
                    yard.pool.handle_recycle(yard.now);
                    yard.follow();
                }
                8 => if let Some((worker, ..)) = yard.dispatched.first().copied() {
                    yard.pool.handle_memory(yard.now, worker, pick as u64 % 200);
                    yard.follow();
                },
                _ => {}
            }
            let now = yard.pool.status();
            let ready = now.idle + now.busy;
            // A worker leaves only in exchange for another, and no worker is surplus here.
            prop_assert!(ready >= (before.idle + before.busy).min(workers), "{now:?}");
            prop_assert!(now.starting + ready <= workers + at_once, "{now:?}");
            prop_assert!(now.retiring <= at_once, "{now:?}");
        }
    }
}
