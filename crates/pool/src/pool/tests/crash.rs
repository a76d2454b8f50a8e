//! Workers that do not start, or end early.

use super::*;
use crate::RequestTraits;

const BACKOFF: BackoffSettings = BackoffSettings {
    first: Duration::from_millis(100),
    max: Duration::from_secs(30),
    min_uptime: Duration::from_secs(1),
    open_after: 5,
};

impl Yard {
    /// Every worker dies ten milliseconds after its start, until `end`. Returns the number of starts.
    fn crash_loop(&mut self, end: Instant) -> usize {
        let mut count = 0;
        while self.now < end {
            let started = self.start_all();
            if started.is_empty() {
                self.wait();
                continue;
            }
            count += started.len();
            self.pass(ms(10));
            for worker in started {
                self.ended(worker, false);
            }
        }
        count
    }
}

#[test]
fn one_that_had_settled_is_replaced_at_once() {
    let mut yard = Yard::ready(fixed(1));
    yard.pass(ms(1000));
    yard.ended(WorkerId::new(0, 0), false);
    assert_eq!(yard.started.len(), 1);
    assert_eq!(yard.pool.counts().failures, 0);
}

#[test]
fn one_that_had_not_settled_is_replaced_after_a_delay() {
    let mut yard = Yard::ready(fixed(1));
    yard.pass(ms(999));
    yard.ended(WorkerId::new(0, 0), false);
    assert!(yard.started.is_empty());
    assert!(yard.pool.status().next_start.is_some());
    let wait = yard.wait();
    assert!(wait > ms(74) && wait <= ms(100), "{wait:?}");
    assert_eq!((yard.started.len(), yard.pool.counts().failures), (1, 1));
}

#[test]
fn one_that_dies_after_it_was_told_to_stop_is_no_failure() {
    let mut yard = Yard::ready(fixed(2));
    yard.settings(fixed(1));
    let worker = yard.stopped[0];
    yard.ended(worker, false);
    assert_eq!(yard.pool.counts().failures, 0);
}

#[test]
fn one_that_was_retired_before_it_had_settled_is_judged_when_it_is_gone() {
    for (expected, replaced) in [(true, 1), (false, 0)] {
        let mut yard = Yard::ready(elastic_pair());
        yard.retire(WorkerId::new(0, 0));
        assert!(yard.started.is_empty(), "not before it is known");
        yard.pass(ms(5000));
        yard.ended(WorkerId::new(0, 0), expected);
        assert_eq!(yard.started.len(), replaced, "expected: {expected}");
    }
}

fn elastic_pair() -> Settings {
    let sizing = elastic::Sizing { min: 1, max: 2, ..elastic::Sizing::default() };
    Settings { sizing, ..Settings::default() }
}

#[test]
fn a_crash_loop_starts_a_bounded_number() {
    let mut yard = Yard::new(Settings { backoff: BACKOFF, ..fixed(1) });
    let end = yard.now + Duration::from_secs(3600);
    let count = yard.crash_loop(end);
    // 0.1 + 0.2 + … 25.6 s, then one every 22.5 to 30 s.
    assert!((125..=170).contains(&count), "{count}");

    let mut yard = Yard::new(Settings { backoff: BACKOFF, ..fixed(20) });
    let end = yard.now + Duration::from_secs(3600);
    let count_of_twenty = yard.crash_loop(end);
    assert!(count_of_twenty <= 170 + 19, "{count_of_twenty}");
}

#[test]
fn the_circuit_opens_after_five_failures_and_refuses_at_once() {
    let mut yard = Yard::new(Settings { backoff: BACKOFF, ..fixed(1) });
    yard.requests(0..3);
    for failures in 1..5 {
        let worker = yard.started.pop().unwrap();
        yard.start_failed(worker);
        assert!(!yard.pool.status().open && yard.refused.is_empty(), "{failures}");
        yard.wait();
    }
    let worker = yard.started.pop().unwrap();
    yard.start_failed(worker);
    assert!(yard.pool.status().open);
    assert_eq!(yard.refused, [0, 1, 2].map(|number| (number, Cause::Down)));
    assert_eq!(yard.request(Job(3, 1)), Err(Cause::Down));
}

#[test]
fn a_circuit_that_never_opens_keeps_requests_until_they_have_waited_too_long() {
    let backoff = BackoffSettings { open_after: u32::MAX, max: ms(200), ..BACKOFF };
    let mut yard = Yard::new(Settings { backoff, ..fixed(1) });
    yard.requests(0..3);
    for failures in 1..20 {
        let worker = yard.started.pop().unwrap();
        yard.start_failed(worker);
        assert!(!yard.pool.status().open && yard.refused.is_empty(), "{failures}");
        yard.wait();
    }
    yard.start_all();
    assert_eq!(yard.numbers(), [0]);
    yard.pass(Duration::from_secs(5));
    assert_eq!(yard.refused, [1, 2].map(|number| (number, Cause::Waited)));
}

#[test]
fn an_open_circuit_is_probed_by_one_worker_at_a_time_and_closes_when_it_starts() {
    let mut yard = Yard::new(Settings { backoff: BACKOFF, ..fixed(8) });
    for worker in std::mem::take(&mut yard.started) {
        yard.start_failed(worker);
    }
    assert!(yard.pool.status().open);
    yard.wait();
    assert_eq!(yard.started.len(), 1);
    yard.pass(Duration::from_secs(3600));
    assert_eq!(yard.started.len(), 1, "none before that one is known");
    assert_eq!(yard.request(Job(0, 1)), Err(Cause::Down));
    yard.start_all();
    assert!(!yard.pool.status().open);
    yard.requests([1]);
    assert_eq!(yard.numbers(), [1]);
}

#[test]
fn a_pool_on_demand_is_probed_too_though_nobody_may_wait() {
    let sizing = elastic::Sizing { min: 0, max: 4, ..elastic::Sizing::default() };
    let mut yard = Yard::new(Settings { sizing, backoff: BACKOFF, ..Settings::default() });
    yard.requests([0]);
    while !yard.pool.status().open {
        match yard.started.pop() {
            Some(worker) => yard.start_failed(worker),
            None => _ = yard.wait(),
        }
    }
    assert_eq!(yard.refused, [(0, Cause::Down)]);
    assert_eq!(yard.request(Job(1, 1)), Err(Cause::Down));
    while yard.started.is_empty() {
        yard.wait();
    }
    yard.start_all();
    assert!(yard.request(Job(2, 1)).is_ok());
}

#[test]
fn recovery_after_a_crash_loop_is_complete() {
    let mut yard = Yard::new(Settings { backoff: BACKOFF, ..fixed(5) });
    let end = yard.now + Duration::from_secs(600);
    yard.crash_loop(end);
    // The fault is fixed: workers stay alive from now on.
    let mended = yard.now;
    while yard.pool.status().idle < 5 {
        yard.wait();
        yard.start_all();
    }
    assert!(yard.now - mended <= Duration::from_secs(90), "{:?}", yard.now - mended);
    yard.pass(Duration::from_secs(60));
    yard.ended(WorkerId::new(0, yard.generation(0)), false);
    assert_eq!(yard.started.len(), 1, "all is forgiven");
}

impl Yard {
    fn generation(&self, place: u32) -> u32 {
        self.pool.workers.id(place).generation()
    }
}

#[test]
fn one_good_worker_keeps_serving_while_another_crashes_and_crashes() {
    let mut yard = Yard::ready(Settings { backoff: BACKOFF, ..fixed(2) });
    yard.pass(Duration::from_secs(10));
    yard.ended(WorkerId::new(1, 0), false);
    let end = yard.now + Duration::from_secs(600);
    let count = yard.crash_loop(end);
    assert!((20..50).contains(&count), "{count}");
    assert!(!yard.pool.status().open);
    yard.requests(0..3);
    assert_eq!(yard.numbers(), [0]);
    yard.release(WorkerId::new(0, 0));
    assert_eq!(yard.numbers(), [1]);
    // The last good worker dies, so no worker is left.
    yard.ended(WorkerId::new(0, 0), false);
    assert!(yard.pool.status().open);
    assert_eq!(yard.refused, [(2, Cause::Down)]);
}

#[test]
fn what_comes_back_to_an_open_circuit_is_refused_at_once() {
    let mut yard = Yard::ready(Settings { backoff: BACKOFF, ..fixed(1) });
    let end = yard.now + Duration::from_secs(60);
    yard.ended(WorkerId::new(0, 0), false);
    yard.crash_loop(end);
    while yard.start_all().is_empty() {
        yard.wait();
    }
    let worker = WorkerId::new(0, yard.generation(0));
    yard.requests([7]);
    yard.retire(worker);
    yard.returned(7);
    assert_eq!(yard.refused.last(), Some(&(7, Cause::Down)));
}

#[test]
fn an_answer_shows_that_starts_no_longer_fail_and_idle_workers_may_stop_again() {
    let sizing = elastic::Sizing { min: 0, max: 4, idle: ms(200), ..elastic::Sizing::default() };
    let mut yard = Yard::new(Settings { sizing, backoff: BACKOFF, ..Settings::default() });
    yard.requests([0]);
    let worker = yard.started.pop().unwrap();
    yard.start_failed(worker);
    yard.wait();
    yard.start_all();
    let (worker, ..) = yard.dispatched[0];
    yard.release(worker);
    let begin = yard.now;
    while yard.stopped.is_empty() {
        yard.wait();
    }
    assert_eq!(yard.now - begin, ms(200));
}

impl Yard {
    /// Workers fail to start until the circuit breaker is open; then one becomes ready.
    fn probed() -> (Self, WorkerId) {
        let mut yard = Self::new(Settings { backoff: BACKOFF, ..fixed(1) });
        while !yard.pool.status().open {
            match yard.started.pop() {
                Some(worker) => yard.start_failed(worker),
                None => _ = yard.wait(),
            }
        }
        yard.wait();
        let worker = yard.start_all()[0];
        (yard, worker)
    }
}

#[test]
fn an_answer_forgives_though_the_slot_stays_in_use() {
    let (mut yard, worker) = Yard::probed();
    yard.requests([0]);
    yard.pool.handle_proven(yard.now, worker, Proof::Answered);
    // The client disconnects, and the worker is replaced before its slot was ever free.
    yard.retire(worker);
    yard.ended(worker, true);
    assert!(!yard.pool.status().open);
    assert_eq!(yard.started.len(), 1, "the next one is started at once");
    assert!(yard.request(Job(1, 1)).is_ok());
}

impl Yard {
    fn request_of(&mut self, client: u64, number: u32) -> Result<Ticket, Cause> {
        let job = Job(number, 10);
        let entry = QueueEntry::new(
            self.now,
            &RequestTraits { client: Some(client), ..RequestTraits::default() },
            10,
        );
        let taken = self.pool.handle_entry(self.now, job, entry).map_err(|refused| refused.cause);
        self.follow();
        taken
    }

    /// A worker that was given a request of this client ends.
    fn crash(&mut self, worker: WorkerId, client: u64) {
        self.retire(worker);
        self.pool.handle_proven(self.now, worker, Proof::Given { client });
        self.ended(worker, false);
    }
}

#[test]
fn one_that_was_given_a_request_has_started_however_soon_it_ends() {
    let (mut yard, worker) = Yard::probed();
    let failures = yard.pool.counts().failures;
    yard.request_of(7, 0).unwrap();
    yard.crash(worker, 7);
    assert!(!yard.pool.status().open, "starts do not fail any more");
    assert_eq!(yard.pool.counts().failures, failures + 1);
    assert!(yard.wait() <= ms(100));
    assert_eq!(yard.started.len(), 1);
}

#[test]
fn a_client_whose_requests_end_workers_is_slowed_alone() {
    let mut yard = Yard::ready(Settings { backoff: BACKOFF, ..fixed(1) });
    let mut waits = Vec::new();
    for number in 0..20 {
        assert!(yard.request_of(7, number).is_ok(), "never down");
        yard.crash(WorkerId::new(0, yard.generation(0)), 7);
        waits.push(yard.wait());
        yard.start_all();
    }
    assert!(waits[..5].iter().all(|wait| *wait <= ms(100)), "{waits:?}");
    assert!(waits[12..].iter().all(|wait| *wait > ms(1499) && *wait <= ms(2000)), "{waits:?}");

    // Another client sends a request during the pause, behind further requests of the first client.
    for number in 20..23 {
        yard.request_of(7, number).unwrap();
    }
    yard.crash(WorkerId::new(0, yard.generation(0)), 7);
    assert!(yard.pool.next_time().unwrap() - yard.now > ms(1000));
    yard.request_of(8, 30).unwrap();
    yard.numbers();
    let begin = yard.now;
    for _ in 0..2 {
        assert!(yard.wait() <= ms(100));
        yard.start_all();
        yard.crash(WorkerId::new(0, yard.generation(0)), 7);
    }
    assert!(yard.wait() <= ms(100));
    yard.start_all();
    assert_eq!(yard.numbers(), [21, 22, 30]);
    assert!(yard.now - begin <= ms(300));

    // The request is answered: the state is the same as at the beginning.
    yard.release(WorkerId::new(0, yard.generation(0)));
    yard.request_of(7, 40).unwrap();
    yard.crash(WorkerId::new(0, yard.generation(0)), 7);
    assert!(yard.wait() <= ms(100));
}

#[test]
fn a_program_that_answers_nobody_is_not_started_ten_times_a_second() {
    let mut yard = Yard::ready(Settings { backoff: BACKOFF, ..fixed(2) });
    let end = yard.now + Duration::from_secs(600);
    let (mut client, mut count) = (0, 0);
    while yard.now < end {
        client += 1;
        assert!(yard.request_of(client, 0).is_ok(), "each of another client");
        for (worker, ..) in std::mem::take(&mut yard.dispatched) {
            yard.crash(worker, client);
            count += 1;
        }
        // A worker that had reached its minimum uptime is replaced immediately.
        if yard.start_all().is_empty() {
            yard.wait();
            yard.start_all();
        }
    }
    assert!((500..1600).contains(&count), "{count} in ten minutes at two places");
    assert_eq!(yard.refused.iter().filter(|(_, cause)| *cause == Cause::Down).count(), 0);
}

#[test]
fn what_is_said_of_a_worker_that_is_gone_proves_nothing_of_the_next_at_its_place() {
    let mut yard = Yard::ready(Settings { backoff: BACKOFF, ..fixed(1) });
    let gone = WorkerId::new(0, 0);
    yard.ended(gone, false);
    yard.wait();
    yard.start_all();
    yard.pool.handle_proven(yard.now, gone, Proof::Answered);
    yard.ended(WorkerId::new(0, yard.generation(0)), false);
    let wait = yard.wait();
    assert!(wait > ms(149), "the delay has doubled: {wait:?}");
}

#[test]
fn a_worker_that_crashes_again_and_again_delays_only_the_next_at_its_place() {
    let mut yard = Yard::ready(Settings { backoff: BACKOFF, ..fixed(2) });
    let crash = |yard: &mut Yard, place: u32| {
        let worker = WorkerId::new(place, yard.generation(place));
        yard.pool.handle_proven(yard.now, worker, Proof::Answered);
        yard.ended(worker, false);
    };
    crash(&mut yard, 0);
    yard.pass(ms(50));
    crash(&mut yard, 1);
    let begin = yard.now;
    yard.wait();
    assert!(yard.now - begin <= ms(50), "the first does not wait for the second");
    assert_eq!(yard.start_all().len(), 1);
    yard.wait();
    assert!(yard.now - begin <= ms(100));
    assert_eq!(yard.start_all().len(), 1);

    // One client crashes its worker as soon as the worker is ready. Other clients are served by the other worker, also
    // when that one is replaced.
    let mut starts = 0;
    let end = yard.now + ms(1000);
    while yard.now < end {
        crash(&mut yard, 0);
        yard.wait();
        starts += yard.start_all().len();
    }
    assert!((10..=14).contains(&starts), "{starts}");
    assert_eq!(yard.pool.status().idle, 2);
}

#[test]
fn requests_wait_while_a_program_crashes_now_and_then() {
    let queue = QueueLimits { wait: Duration::from_secs(60), ..QueueLimits::default() };
    let mut yard = Yard::ready(Settings { backoff: BACKOFF, queue, ..fixed(1) });
    yard.requests(0..1000);
    let mut given = 0;
    while given < 1000 && yard.refused.is_empty() {
        yard.start_all();
        if yard.dispatched.is_empty() {
            yard.wait();
            continue;
        }
        let (worker, ..) = yard.dispatched.remove(0);
        given += 1;
        // Every tenth request crashes the program.
        if given % 10 == 9 {
            yard.ended(worker, false);
        } else {
            yard.release(worker);
        }
    }
    assert_eq!((given, yard.refused.len()), (1000, 0));
}
