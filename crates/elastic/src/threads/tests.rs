//! Tests of the thread pool. Threads are synchronized by channels: no test waits for time to pass.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::sync::{Arc, Barrier};

use super::*;

const FOREVER: Duration = Duration::from_secs(3600);

fn sizing(min: u32, max: u32) -> Sizing {
    Sizing { min, max, idle: FOREVER, grow_after: FOREVER, ..Sizing::default() }
}

fn tasks(sizing: Sizing, queue_max: usize) -> ThreadPool<Task> {
    ThreadPool::of_tasks(ThreadPoolSettings::new("test", sizing).with_queue_max(queue_max)).unwrap()
}

fn submit(pool: &ThreadPool<Task>, task: impl FnOnce() + Send + 'static) {
    pool.submit(Box::new(task)).unwrap();
}

/// Submits a task that reports when it runs and then waits until it is released.
fn held(pool: &ThreadPool<Task>) -> (Receiver<()>, Sender<()>) {
    let (runs, running) = channel();
    let (let_go, gone) = channel::<()>();
    submit(pool, move || {
        runs.send(()).unwrap();
        let _ = gone.recv();
    });
    (running, let_go)
}

#[test]
fn one_thread_serves_in_order() {
    let pool = tasks(sizing(1, 1), 1000);
    let (sender, receiver) = channel();
    for number in 0..100 {
        let sender = sender.clone();
        submit(&pool, move || sender.send(number).unwrap());
    }
    pool.join();
    assert_eq!(receiver.try_iter().collect::<Vec<_>>(), (0..100).collect::<Vec<_>>());
    let statistics = pool.statistics();
    assert_eq!((statistics.served, statistics.threads_max, statistics.waiting), (100, 1, 0));
    pool.reset_statistics();
    assert_eq!(pool.statistics().served, 0);
}

#[test]
fn a_full_queue_gives_the_job_back() {
    let settings =
        ThreadPoolSettings { queue_max: 2, ..ThreadPoolSettings::new("a", sizing(1, 1)) };
    let (runs, running) = channel();
    let (let_go, gone) = channel::<()>();
    let gone = Arc::new(Mutex::new(gone));
    let pool = ThreadPool::new(settings, move || {
        let (runs, gone) = (runs.clone(), Arc::clone(&gone));
        Ok(Box::new(move |number: u32| {
            runs.send(number).unwrap();
            gone.lock().unwrap().recv().unwrap();
        }))
    })
    .unwrap();
    pool.submit(1).unwrap();
    assert_eq!(running.recv(), Ok(1));
    pool.submit(2).unwrap();
    pool.submit(3).unwrap();
    assert_eq!(pool.submit(4), Err(Refused { job: 4, why: Refusal::Full }));
    assert_eq!(pool.statistics().refused, 1);
    (0..3).for_each(|_| let_go.send(()).unwrap());
    pool.join();
    assert_eq!(running.try_iter().collect::<Vec<_>>(), [2, 3]);
}

#[test]
fn threads_bear_the_name_of_their_pool() {
    let pool = tasks(sizing(1, 1), 1);
    let (sender, receiver) = channel();
    submit(&pool, move || sender.send(std::thread::current().name().map(str::to_owned)).unwrap());
    assert_eq!(receiver.recv().unwrap().as_deref(), Some("test/0"));
}

#[test]
fn a_join_waits_for_what_jobs_submit_too() {
    let pool = Arc::new(tasks(sizing(2, 2), 1000));
    let count = Arc::new(AtomicU32::new(0));
    for _ in 0..10 {
        let (again, count) = (Arc::clone(&pool), Arc::clone(&count));
        submit(&pool, move || {
            let count = Arc::clone(&count);
            submit(&again, move || {
                count.fetch_add(1, Ordering::Relaxed);
            });
        });
    }
    pool.join();
    assert_eq!(count.load(Ordering::Relaxed), 10);
    assert!(pool.drain(None).is_clean());
}

#[test]
fn a_panic_is_contained_and_counted_and_its_thread_opened_anew() {
    let opened = Arc::new(AtomicU32::new(0));
    let opens = Arc::clone(&opened);
    let settings = ThreadPoolSettings::new("panics", sizing(1, 1));
    let (sender, receiver) = channel();
    let pool = ThreadPool::new(settings, move || {
        opens.fetch_add(1, Ordering::Relaxed);
        let sender = sender.clone();
        Ok(Box::new(move |number: u32| {
            assert_ne!(number % 2, 0, "as the test wants it");
            sender.send(number).unwrap();
        }))
    })
    .unwrap();
    (1..=5).for_each(|number| pool.submit(number).unwrap());
    pool.join();
    assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [1, 3, 5]);
    let statistics = pool.statistics();
    assert_eq!((statistics.served, statistics.panicked, statistics.started), (3, 2, 1));
    assert_eq!(opened.load(Ordering::Relaxed), 3, "once, and after each panic");
    assert!(pool.drain(None).is_clean());
}

#[test]
fn a_panic_whose_message_panics_ends_nobody() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("as the test wants it");
        }
    }
    let pool = tasks(sizing(1, 1), 10);
    submit(&pool, || std::panic::panic_any(Bomb));
    submit(&pool, || {});
    pool.join();
    let statistics = pool.statistics();
    assert_eq!((statistics.panicked, statistics.served), (1, 1));
    assert!(pool.drain(None).is_clean());
}

#[test]
fn a_thread_that_cannot_be_opened_is_tried_again() {
    let tries = AtomicU32::new(0);
    let settings = ThreadPoolSettings::new("opens", sizing(0, 3));
    let pool = ThreadPool::new(settings, move || match tries.fetch_add(1, Ordering::Relaxed) {
        0 => Err("the database is away".into()),
        _ => Ok(Box::new(|_: u32| {})),
    })
    .unwrap();
    pool.submit(1).unwrap();
    pool.join();
    let statistics = pool.statistics();
    assert_eq!((statistics.open_failed, statistics.served), (1, 1));
    assert!(pool.drain(None).is_clean());
}

#[test]
fn an_open_that_panics_is_one_that_failed() {
    let settings = ThreadPoolSettings::new("opens", sizing(0, 1));
    let (tried, tries) = channel();
    let pool = ThreadPool::<u32>::new(settings, move || {
        tried.send(()).unwrap();
        panic!("as the test wants it");
    })
    .unwrap();
    pool.submit(7).unwrap();
    tries.recv().unwrap();
    tries.recv().unwrap();
    let drained = pool.drain(Some(Duration::ZERO));
    assert_eq!(drained.unserved, [7]);
    assert!(pool.statistics().open_failed >= 1);
}

#[test]
fn all_threads_run_at_once_when_the_queue_asks_for_them() {
    let pool = tasks(Sizing { grow_above: Some(0), ..sizing(1, 4) }, 100);
    let barrier = Arc::new(Barrier::new(5));
    for _ in 0..4 {
        let barrier = Arc::clone(&barrier);
        submit(&pool, move || {
            barrier.wait();
        });
    }
    barrier.wait();
    pool.join();
    assert_eq!(pool.statistics().threads_max, 4);
}

#[test]
fn age_alone_makes_it_grow_to_max_and_not_beyond() {
    let grow_after = Duration::from_micros(1);
    let pool = tasks(Sizing { grow_after, ..sizing(0, 3) }, 100);
    let barrier = Arc::new(Barrier::new(4));
    let (sender, receiver) = channel();
    for _ in 0..9 {
        let (barrier, sender) = (Arc::clone(&barrier), sender.clone());
        submit(&pool, move || {
            sender.send(()).unwrap();
            barrier.wait();
        });
    }
    for _ in 0..3 {
        (0..3).for_each(|_| receiver.recv().unwrap());
        assert!(receiver.try_recv().is_err(), "a fourth one runs");
        barrier.wait();
    }
    pool.join();
    assert_eq!(pool.statistics().threads_max, 3);
}

#[test]
fn spare_threads_are_there_before_they_are_needed() {
    let (opens, opened) = channel();
    let settings = ThreadPoolSettings::new("spare", Sizing { spare: 2, ..sizing(1, 4) });
    let pool = ThreadPool::new(settings, move || {
        opens.send(()).unwrap();
        Ok(Box::new(|task: Task| task()))
    })
    .unwrap();
    (0..2).for_each(|_| opened.recv().unwrap());
    let (running, let_go) = held(&pool);
    running.recv().unwrap();
    opened.recv().unwrap();
    drop(let_go);
    assert!(pool.drain(None).is_clean());
}

/// Reports when it is dropped.
struct Farewell(Sender<()>);

impl Drop for Farewell {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

#[test]
fn threads_that_nobody_needed_end_down_to_min() {
    let (ends, ended) = channel();
    let numbers = Sizing { grow_above: Some(0), idle: Duration::from_millis(1), ..sizing(2, 5) };
    let pool = ThreadPool::new(ThreadPoolSettings::new("shrinks", numbers), move || {
        let farewell = Farewell(ends.clone());
        Ok(Box::new(move |barrier: Arc<Barrier>| {
            let _ = &farewell;
            barrier.wait();
        }))
    })
    .unwrap();
    let barrier = Arc::new(Barrier::new(6));
    (0..5).for_each(|_| pool.submit(Arc::clone(&barrier)).unwrap());
    barrier.wait();
    (0..3).for_each(|_| ended.recv().unwrap());
    pool.join();
    // The third has ended, and the pool gets as many jobs as it has threads.
    let barrier = Arc::new(Barrier::new(3));
    (0..2).for_each(|_| pool.submit(Arc::clone(&barrier)).unwrap());
    barrier.wait();
    pool.join();
    assert_eq!(pool.statistics().started, 5, "nobody had to be started again");
    assert!(ended.try_recv().is_err(), "and none beyond `min` has ended");
}

#[test]
fn other_numbers_hold_at_once() {
    let pool = tasks(sizing(1, 1), 100);
    let barrier = Arc::new(Barrier::new(4));
    for _ in 0..3 {
        let barrier = Arc::clone(&barrier);
        submit(&pool, move || {
            barrier.wait();
        });
    }
    pool.resize(sizing(3, 3));
    barrier.wait();
    pool.join();
}

#[test]
fn a_lower_maximum_ends_threads_that_are_idle_and_others_after_their_job() {
    let pool = tasks(sizing(0, 4), 100);
    let barrier = Arc::new(Barrier::new(5));
    let (let_go, gone) = channel::<()>();
    let gone = Arc::new(Mutex::new(gone));
    // Four jobs at the same time: afterwards two threads are idle, two still run.
    pool.resize(sizing(4, 4));
    for number in 0..4 {
        let (barrier, gone) = (Arc::clone(&barrier), Arc::clone(&gone));
        submit(&pool, move || {
            barrier.wait();
            if number < 2 {
                let _ = gone.lock().unwrap().recv();
            }
        });
    }
    barrier.wait();
    let ready = || {
        let statistics = pool.statistics();
        statistics.busy + statistics.idle
    };
    pool.resize(sizing(1, 1));
    while ready() > 2 {
        std::thread::yield_now();
    }
    assert_eq!(pool.statistics().busy, 2, "a job is not cut short");
    drop(let_go);
    while ready() > 1 {
        std::thread::yield_now();
    }
    let (sender, receiver) = channel();
    for number in 0..10 {
        let sender = sender.clone();
        submit(&pool, move || sender.send(number).unwrap());
    }
    pool.join();
    assert_eq!(receiver.try_iter().collect::<Vec<_>>(), (0..10).collect::<Vec<_>>());
    assert_eq!(pool.statistics().started, 4, "nobody was started again");
    assert!(pool.drain(None).is_clean());
}

#[test]
fn why_a_thread_could_not_be_opened_is_kept() {
    let (opens, opened) = channel();
    let settings = ThreadPoolSettings::new("opens", sizing(1, 1));
    let pool: ThreadPool<Task> = ThreadPool::new(settings, move || {
        opens.send(()).unwrap();
        Err("no such database".into())
    })
    .unwrap();
    opened.recv().unwrap();
    while pool.open_error().is_none() {
        std::thread::yield_now();
    }
    assert_eq!(pool.open_error().as_deref(), Some("no such database"));
    let settings = ThreadPoolSettings::new("panics", sizing(1, 1));
    let pool: ThreadPool<Task> =
        ThreadPool::new(settings, || std::panic::resume_unwind(Box::new("no"))).unwrap();
    while pool.open_error().is_none() {
        std::thread::yield_now();
    }
    assert_eq!(pool.open_error().as_deref(), Some("it panicked: no"));
}

#[test]
fn hooks_are_called_with_the_thread_and_the_reason() {
    let (failed, failures) = channel();
    let (panicked, panics) = channel();
    let settings = ThreadPoolSettings::new("hooks", sizing(0, 1))
        .on_open_error(move |thread, error| failed.send(format!("{thread}: {error}")).unwrap())
        .on_panic(move |thread, message| panicked.send(format!("{thread}: {message}")).unwrap());
    let tries = AtomicU32::new(0);
    let pool = ThreadPool::new(settings, move || match tries.fetch_add(1, Ordering::Relaxed) {
        0 => Err("the database is away".into()),
        1 => std::panic::resume_unwind(Box::new("no")),
        _ => Ok(Box::new(|task: Task| task())),
    })
    .unwrap();
    submit(&pool, || panic!("as the test wants it"));
    submit(&pool, || std::panic::panic_any(7));
    pool.join();
    let failures: Vec<String> = failures.try_iter().collect();
    assert_eq!(failures, ["hooks/0: the database is away", "hooks/0: it panicked: no"]);
    let panics: Vec<String> = panics.try_iter().collect();
    assert_eq!(panics, ["hooks/0: as the test wants it", "hooks/0: Box<dyn Any>"]);
    assert_eq!(pool.statistics().open_failed, 2);
}

#[test]
fn a_hook_that_panics_ends_no_thread() {
    let settings = ThreadPoolSettings::new("hooks", sizing(0, 1))
        .on_open_error(|_, _| panic!("as the test wants it"))
        .on_panic(|_, _| panic!("as the test wants it"));
    let tries = AtomicU32::new(0);
    let pool = ThreadPool::new(settings, move || match tries.fetch_add(1, Ordering::Relaxed) {
        0 => Err("the database is away".into()),
        _ => Ok(Box::new(|task: Task| task())),
    })
    .unwrap();
    submit(&pool, || panic!("as the test wants it"));
    submit(&pool, || {});
    pool.join();
    let statistics = pool.statistics();
    assert_eq!((statistics.open_failed, statistics.panicked, statistics.served), (1, 1, 1));
    assert!(pool.drain(None).is_clean());
}

#[test]
fn a_join_with_a_time_returns_whether_all_is_done() {
    let pool = tasks(sizing(1, 1), 10);
    assert!(pool.join_for(Duration::ZERO), "nothing was submitted");
    let (running, let_go) = held(&pool);
    running.recv().unwrap();
    assert!(!pool.join_for(Duration::ZERO));
    drop(let_go);
    assert!(pool.join_for(FOREVER));
    assert_eq!(pool.statistics().served, 1);
}

#[test]
fn a_submit_waits_for_room() {
    let pool = tasks(sizing(1, 1), 1);
    let (running, let_go) = held(&pool);
    running.recv().unwrap();
    submit(&pool, || {});
    let refused = pool.submit_wait(Box::new(|| {}), Some(Duration::ZERO)).unwrap_err();
    assert_eq!(refused.why, Refusal::Full);
    std::thread::scope(|scope| {
        let pool = &pool;
        let submitters = [None, Some(FOREVER), None]
            .map(|within| scope.spawn(move || pool.submit_wait(Box::new(|| {}), within).is_ok()));
        while pool.shared.lock().submitters < 3 {
            std::thread::yield_now();
        }
        drop(let_go);
        assert_eq!(submitters.map(|it| it.join().unwrap()), [true; 3]);
    });
    pool.join();
    let statistics = pool.statistics();
    assert_eq!((statistics.served, statistics.refused), (5, 1));
    assert_eq!(pool.shared.lock().submitters, 0);
}

#[test]
fn a_drain_refuses_those_that_wait_for_room() {
    let pool = tasks(sizing(1, 1), 1);
    let (running, let_go) = held(&pool);
    running.recv().unwrap();
    submit(&pool, || {});
    std::thread::scope(|scope| {
        let submitter = scope.spawn(|| pool.submit_wait(Box::new(|| {}), None));
        while pool.shared.lock().submitters < 1 {
            std::thread::yield_now();
        }
        assert_eq!(pool.drain(Some(Duration::ZERO)).unserved.len(), 1);
        assert_eq!(submitter.join().unwrap().unwrap_err().why, Refusal::Draining);
    });
    drop(let_go);
    assert!(pool.drain(None).is_clean());
}

#[test]
fn a_drain_gives_jobs_back_when_no_thread_can_be_opened() {
    let settings = ThreadPoolSettings::new("opens", sizing(0, 2));
    let pool: ThreadPool<u32> = ThreadPool::new(settings, || Err("never".into())).unwrap();
    (0..3).for_each(|number| pool.submit(number).unwrap());
    // A drain without a time limit, which would otherwise wait forever.
    let drained = pool.drain(None);
    assert_eq!((drained.unserved, drained.running), (vec![0, 1, 2], 0));
    assert_eq!(pool.open_error().as_deref(), Some("never"));
    assert!(pool.drain(None).is_clean(), "nothing is left of it");
}

#[test]
fn a_drain_while_idle_ends_all_threads() {
    let pool = tasks(sizing(3, 3), 10);
    assert!(pool.drain(None).is_clean());
    let statistics = pool.statistics();
    assert_eq!(statistics.busy + statistics.idle + statistics.starting, 0);
    let refused = pool.submit(Box::new(|| {})).unwrap_err();
    assert_eq!(refused.why, Refusal::Draining);
    assert!(pool.drain(None).is_clean(), "a second one has nothing to do");
}

#[test]
fn a_drain_while_busy_waits_for_the_job() {
    let pool = Arc::new(tasks(sizing(1, 1), 10));
    let (running, let_go) = held(&pool);
    running.recv().unwrap();
    let drained = pool.drain(Some(Duration::ZERO));
    assert_eq!((drained.running, drained.unserved.len()), (1, 0));
    assert!(!drained.is_clean());
    drop(let_go);
    assert!(pool.drain(None).is_clean(), "it ran on to its end, and its thread after it");
    assert_eq!(pool.statistics().served, 1);
}

#[test]
fn a_drain_while_jobs_wait_serves_them_or_gives_them_back() {
    let pool = tasks(sizing(1, 1), 10);
    let (running, let_go) = held(&pool);
    running.recv().unwrap();
    (0..3).for_each(|_| submit(&pool, || {}));
    let drained = pool.drain(Some(Duration::ZERO));
    assert_eq!((drained.running, drained.unserved.len()), (1, 3));
    drop((drained, let_go));
    assert!(pool.drain(None).is_clean());
    assert_eq!(pool.statistics().served, 1);

    let pool = tasks(sizing(1, 1), 10);
    let (running, let_go) = held(&pool);
    running.recv().unwrap();
    (0..3).for_each(|_| submit(&pool, || {}));
    drop(let_go);
    assert!(pool.drain(None).is_clean());
    assert_eq!(pool.statistics().served, 4, "without a deadline all are served");
}

#[test]
fn a_drain_of_jobs_that_nobody_serves_yet_starts_somebody() {
    let pool = tasks(sizing(0, 1), 10);
    (0..3).for_each(|_| submit(&pool, || {}));
    assert!(pool.drain(None).is_clean());
    assert_eq!(pool.statistics().served, 3);
}

#[test]
fn a_drain_while_growing_waits_for_those_that_start() {
    let (opens, opening) = channel();
    let (let_go, gone) = sync_channel::<()>(0);
    let gone = Arc::new(Mutex::new(gone));
    let pool = ThreadPool::new(ThreadPoolSettings::new("grows", sizing(1, 4)), move || {
        opens.send(()).unwrap();
        gone.lock().unwrap().recv().unwrap();
        Ok(Box::new(|task: Task| task()))
    })
    .unwrap();
    opening.recv().unwrap();
    submit(&pool, || {});
    let drained = pool.drain(Some(Duration::ZERO));
    assert_eq!((drained.running, drained.unserved.len()), (0, 1));
    assert_eq!(pool.statistics().starting, 1);
    let_go.send(()).unwrap();
    assert!(pool.drain(None).is_clean(), "the thread that was starting has ended too");
}

#[test]
fn a_pool_that_is_dropped_serves_its_queue() {
    let pool = tasks(sizing(1, 1), 10);
    let (running, let_go) = held(&pool);
    running.recv().unwrap();
    let (sender, receiver) = channel();
    submit(&pool, move || sender.send(7).unwrap());
    drop(pool);
    drop(let_go);
    assert_eq!(receiver.recv(), Ok(7));
    assert!(receiver.recv().is_err());
}

/// Many threads, many sizes: every job is served once or returned, and no thread remains.
#[test]
fn every_job_is_served_once_whatever_happens_around_it() {
    const SUBMITTERS: u32 = 4;
    const EACH: u32 = 200;
    for round in 0..60_u32 {
        let numbers = Sizing {
            min: round % 3,
            max: 1 + round % 5,
            spare: round % 2,
            idle: Duration::from_micros(u64::from(round % 7) * 20),
            grow_after: Duration::from_micros(u64::from(round % 4) * 10),
            grow_step_max: 1 + round % 3,
            grow_above: (round % 2 == 0).then_some(round % 4),
        };
        let settings =
            ThreadPoolSettings { queue_max: 50, ..ThreadPoolSettings::new("all", numbers) };
        let (sender, receiver) = channel();
        let pool = ThreadPool::new(settings, move || {
            let sender = sender.clone();
            Ok(Box::new(move |number: u32| sender.send(number).unwrap()))
        })
        .unwrap();
        let refused: u32 = std::thread::scope(|scope| {
            let submitters: Vec<_> = (0..SUBMITTERS)
                .map(|submitter| {
                    let pool = &pool;
                    scope.spawn(move || {
                        let numbers = (0..EACH).map(|number| submitter * EACH + number);
                        let refused = numbers.filter(|number| pool.submit(*number).is_err());
                        let count = u32::try_from(refused.count()).unwrap();
                        pool.shared.lock().check();
                        count
                    })
                })
                .collect();
            submitters.into_iter().map(|it| it.join().unwrap()).sum()
        });
        let unserved = if round % 4 == 0 {
            pool.drain(Some(Duration::ZERO)).unserved
        } else {
            pool.join();
            pool.shared.lock().check();
            Vec::new()
        };
        assert!(pool.drain(None).is_clean());
        let served: Vec<u32> = receiver.try_iter().collect();
        let all: BTreeSet<u32> = served.iter().chain(&unserved).copied().collect();
        assert_eq!(all.len(), served.len() + unserved.len(), "none twice");
        assert_eq!(all.len() + refused as usize, (SUBMITTERS * EACH) as usize, "and none lost");
    }
}
