//! Admits a request, gives it to a worker and releases its slot, to count the instructions of a pool per request.
//!
//! `admit SCHEDULE WORKERS REQUESTS`: half of all slots are in use, and each request frees the oldest slot. `valgrind
//! --tool=callgrind` counts the instructions; the difference between two numbers of requests is the cost of the
//! requests alone. `admit clients ENTRIES` binds this number of clients and prints the bytes that each of them takes.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use exchange::WorkerId;
use pool::{
    AffinityLimits, Effect, Gone, Member, Pool, Queueable, RequestTraits, Schedule, Settings,
    Sticky,
};

struct Request {
    key: [u8; 8],
    keyed: bool,
}

impl Queueable for Request {
    fn bytes(&self) -> usize {
        100
    }

    fn traits(&self) -> RequestTraits<'_> {
        RequestTraits { key: self.keyed.then_some(&self.key), ..RequestTraits::default() }
    }
}

/// A pool whose members are running, with four slots each.
fn pool(schedule: Schedule, workers: u32, sticky: Option<Sticky>) -> (Pool<Request>, Instant) {
    // With weights, round robin becomes weighted round robin.
    let plain = schedule == Schedule::RoundRobin;
    let weight = |number: u32| if plain { 1 } else { 1 + number % 3 };
    let member =
        |number: u32| Member { weight: weight(number), ..Member::new(&number.to_string()) };
    let members = (0..workers).map(member).collect();
    let settings =
        Settings { slots: 4, schedule, members, sticky, decisions: 0, ..Settings::default() };
    #[expect(clippy::disallowed_methods, reason = "a point to start from; only differences count")]
    let now = Instant::now();
    let mut pool = Pool::new(settings, now, 1);
    while let Some(effect) = pool.poll_effect() {
        if let Effect::Start { worker } = effect {
            pool.handle_started(now, worker);
        }
    }
    (pool, now)
}

/// Submits one request. Returns the worker that received it.
fn ask(pool: &mut Pool<Request>, now: Instant, number: u64, keyed: bool) -> Option<WorkerId> {
    let request = Request { key: number.to_le_bytes(), keyed };
    let _ = pool.handle_request(now, request);
    let mut given = None;
    while let Some(effect) = pool.poll_effect() {
        if let Effect::Dispatch { worker, .. } = effect {
            given = Some(worker);
        }
    }
    given
}

fn admit(schedule: Schedule, workers: u32, requests: u64) {
    let (mut pool, now) = pool(schedule, workers, None);
    let keyed = schedule == Schedule::Hash;
    let mut busy = VecDeque::new();
    for number in 0..u64::from(workers) * 2 {
        busy.extend(ask(&mut pool, now, number, keyed));
    }
    let mut given = 0_u64;
    for number in 0..requests {
        if let Some(worker) = busy.pop_front() {
            pool.handle_released(now, worker);
        }
        let worker = ask(&mut pool, now, number, keyed);
        given += u64::from(worker.is_some());
        busy.extend(worker);
    }
    println!("{given} of {requests} given");
}

/// The resident memory of this process in bytes.
fn resident() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "an example may ask for its own memory")]
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

fn clients(entries: u32) {
    let limits = AffinityLimits { lifetime: Duration::from_secs(3600), entries };
    let before = resident();
    let sticky = Some(Sticky { limits, gone: Gone::Reschedule, shared: false });
    let (mut pool, now) = pool(Schedule::RoundRobin, 20, sticky);
    for number in 0..u64::from(entries) {
        if let Some(worker) = ask(&mut pool, now, number, true) {
            pool.handle_released(now, worker);
        }
    }
    let bytes = resident().saturating_sub(before);
    println!("{} bound, bytes each: {}", pool.status().bound, bytes / u64::from(entries.max(1)));
}

fn main() {
    #[expect(clippy::disallowed_methods, reason = "an example has a command line of its own")]
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| arguments.get(at).and_then(|text| text.parse::<u32>().ok());
    let word = arguments.first().map_or("round-robin", String::as_str);
    if word == "clients" {
        return clients(number(1).unwrap_or(1_000_000));
    }
    // Both turns have one name.
    let weighted = (word == "weighted-round-robin").then_some(&Schedule::WeightedRoundRobin);
    let schedule =
        weighted.or_else(|| Schedule::ALL.iter().find(|schedule| schedule.as_str() == word));
    let Some(schedule) = schedule else { return eprintln!("admit SCHEDULE WORKERS REQUESTS") };
    admit(*schedule, number(1).unwrap_or(20), number(2).unwrap_or(1000).into());
}
