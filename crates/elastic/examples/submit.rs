//! Measures the cost of passing a job to a thread, for a thread pool and for a plain channel.
//!
//! `submit` prints one line of JSON with the results of alternating rounds, in nanoseconds. *Single* is the median time
//! from a submit to the start of its job on an idle thread. *Burst* is the time per job when many jobs are submitted
//! together to as many threads as there are.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "an example is a whole program, the crate itself is not"
)]

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use elastic::{Sizing, ThreadPool, ThreadPoolSettings};

const ROUNDS: usize = 41;
const SINGLES: u32 = 2000;
const BURST: u32 = 20_000;
const THREADS: u32 = 4;

/// A job reports how long after its submit it began.
type Job = (Instant, Sender<Duration>);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let single_pool = pool(1)?;
    let (single_bare, _) = bare(1);
    let many_pool = pool(THREADS)?;
    let (many_bare, _) = bare(THREADS);
    let mut medians: [Vec<f64>; 4] = Default::default();
    for _ in 0..ROUNDS {
        medians[0].push(single(|job| single_pool.submit(job).is_ok()));
        medians[1].push(single(|job| single_bare.send(job).is_ok()));
        medians[2].push(burst(|job| many_pool.submit(job).is_ok()));
        medians[3].push(burst(|job| many_bare.send(job).is_ok()));
    }
    let line = |name: &str, samples: &[f64]| {
        let samples: Vec<String> = samples.iter().map(|ns| format!("{ns:.0}")).collect();
        format!("\"{name}\":[{}]", samples.join(","))
    };
    let names = ["single_pool", "single_bare", "burst_pool", "burst_bare"];
    let lines: Vec<String> =
        names.iter().zip(&medians).map(|(name, samples)| line(name, samples)).collect();
    println!("{{{}}}", lines.join(","));
    Ok(())
}

fn pool(threads: u32) -> std::io::Result<ThreadPool<Job>> {
    let queue_max = BURST as usize;
    let settings =
        ThreadPoolSettings::new("jobs", Sizing::fixed(threads)).with_queue_max(queue_max);
    ThreadPool::new(settings, || Ok(Box::new(run)))
}

/// Threads that take turns at the receiving end of a channel, in the usual way.
fn bare(threads: u32) -> (Sender<Job>, Arc<Mutex<Receiver<Job>>>) {
    let (sender, receiver) = channel();
    let receiver = Arc::new(Mutex::new(receiver));
    for _ in 0..threads {
        let receiver = Arc::clone(&receiver);
        std::thread::spawn(move || {
            loop {
                let job = receiver.lock().expect("no job panics").recv();
                let Ok(job) = job else { break };
                run(job);
            }
        });
    }
    (sender, receiver)
}

fn run((submitted, tell): Job) {
    let _ = tell.send(submitted.elapsed());
}

/// The median time in nanoseconds from a submit to the start of its job.
fn single(mut submit: impl FnMut(Job) -> bool) -> f64 {
    let (tell, told) = channel();
    let mut samples: Vec<Duration> = (0..SINGLES)
        .map(|_| {
            assert!(submit((Instant::now(), tell.clone())), "the queue has room");
            told.recv().expect("it is told")
        })
        .collect();
    samples.sort_unstable();
    samples[samples.len() / 2].as_nanos() as f64
}

/// The time per job in nanoseconds, for many jobs.
fn burst(mut submit: impl FnMut(Job) -> bool) -> f64 {
    let (tell, told) = channel();
    let begun = Instant::now();
    for _ in 0..BURST {
        assert!(submit((begun, tell.clone())), "the queue has room");
    }
    drop(tell);
    let count = told.iter().count();
    assert_eq!(count, BURST as usize, "all were served");
    begun.elapsed().as_nanos() as f64 / f64::from(BURST)
}
