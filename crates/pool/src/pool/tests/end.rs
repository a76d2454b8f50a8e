//! Draining and stopping.

use super::*;

#[test]
fn a_drain_refuses_what_comes_and_serves_what_waits() {
    let mut yard = Yard::ready(fixed(1));
    yard.requests(0..3);
    yard.drain();
    assert_eq!(yard.request(Job(3, 1)), Err(Cause::Draining));
    yard.release(WorkerId::new(0, 0));
    yard.release(WorkerId::new(0, 0));
    assert_eq!(yard.numbers(), [0, 1, 2]);
    assert!(!yard.pool.is_idle());
    yard.release(WorkerId::new(0, 0));
    assert!(yard.pool.is_idle());
    assert!(yard.refused.is_empty());
}

#[test]
fn a_drain_sends_partial_batches_at_once() {
    let batch = Batching { rows: 100, bytes: 1 << 20, wait: ms(1000) };
    let mut yard = Yard::ready(Settings { batch, ..fixed(1) });
    yard.requests(0..3);
    assert_eq!(yard.batches().len(), 0);
    yard.drain();
    assert_eq!(yard.batches(), [[0, 1, 2]]);
}

#[test]
fn a_drain_starts_workers_only_for_what_waits() {
    let mut yard = Yard::ready(fixed(2));
    yard.requests(0..3);
    yard.pass(ms(2000));
    yard.drain();
    yard.ended(WorkerId::new(0, 0), false);
    assert_eq!(yard.start_all().len(), 1);
    assert_eq!(yard.numbers(), [0, 1, 2]);
    yard.ended(WorkerId::new(1, 0), false);
    assert!(yard.started.is_empty());
    assert_eq!(yard.pool.next_time(), None);
}

#[test]
fn a_stop_ends_idle_workers_at_once_and_busy_ones_when_they_are_done() {
    let mut yard = Yard::ready(fixed(3));
    yard.requests([0]);
    yard.drain();
    assert!(yard.stopped.is_empty());
    yard.stop();
    assert_eq!(yard.stopped.len(), 2);
    yard.release(WorkerId::new(0, 0));
    assert_eq!(yard.stopped.len(), 3);
    for worker in yard.stopped.clone() {
        yard.ended(worker, true);
    }
    assert!(yard.started.is_empty() && yard.pool.next_time().is_none());
    assert_eq!(yard.pool.status().retiring, 0);
}

#[test]
fn a_stop_serves_what_waits_as_long_as_a_worker_lives() {
    let mut yard = Yard::ready(fixed(1));
    yard.requests(0..4);
    yard.stop();
    yard.release(WorkerId::new(0, 0));
    assert_eq!(yard.numbers(), [0, 1]);
    yard.ended(WorkerId::new(0, 0), false);
    assert_eq!(yard.refused, [(2, Cause::Draining), (3, Cause::Draining)]);
    assert!(yard.started.is_empty());
    yard.returned(1);
    assert_eq!(yard.refused.last(), Some(&(1, Cause::Draining)));
}

#[test]
fn a_worker_that_starts_after_the_stop_serves_what_waits_and_stops() {
    let mut yard = Yard::new(fixed(2));
    yard.requests([0]);
    yard.stop();
    assert!(yard.refused.is_empty(), "somebody is coming");
    let workers = yard.start_all();
    assert_eq!(yard.numbers(), [0]);
    assert_eq!(yard.stopped, [workers[1]]);
    yard.release(workers[0]);
    assert_eq!(yard.stopped, [workers[1], workers[0]]);
}

#[test]
fn a_drain_does_not_undo_a_stop() {
    let mut yard = Yard::ready(fixed(1));
    yard.stop();
    yard.drain();
    yard.ended(WorkerId::new(0, 0), true);
    yard.settings(fixed(4));
    assert!(yard.started.is_empty());
}
