//! Runs the policy under four load shapes in virtual time and prints the numbers for the plots of `cargo xtask plot
//! elastic`.
//!
//! Every request occupies a worker for 50 ms, and a worker takes 200 ms to start. `idle` is 5 s, so that one minute
//! shows both growing and shrinking. Lines are `shape,preset,second,needed,workers,waiting`, ten per second. Each run
//! ends with a line `#shape,preset,` with the median, the 99th percentile and the longest wait in ms, the number of
//! started workers, and their total time in worker-seconds.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use elastic::{Advice, Load, Policy, Sizing};

const SERVICE_MS: u64 = 50;
const START_MS: u64 = 200;
const RUN_MS: u64 = 60_000;
const MAX: u32 = 40;

/// The load over time: requests per second (`rate`), or many at the same time (`burst`).
struct Shape {
    name: &'static str,
    rate: fn(u64) -> f64,
    burst: fn(u64) -> u32,
}

const SHAPES: [Shape; 4] = [
    Shape {
        name: "step",
        rate: |ms| if (15_000..35_000).contains(&ms) { 400.0 } else { 60.0 },
        burst: |_| 0,
    },
    Shape {
        name: "ramp",
        rate: |ms| {
            let second = ms as f64 / 1000.0;
            (if second < 25.0 { second * 20.0 } else { (50.0 - second) * 20.0 }).max(0.0)
        },
        burst: |_| 0,
    },
    Shape { name: "bursts", rate: |_| 20.0, burst: |ms| if ms % 8000 == 4000 { 200 } else { 0 } },
    Shape { name: "flaps", rate: |ms| if ms / 1000 % 2 == 0 { 60.0 } else { 300.0 }, burst: |_| 0 },
];

fn presets() -> [(&'static str, Sizing); 5] {
    let timed = |sizing: Sizing| Sizing { idle: Duration::from_secs(5), ..sizing };
    [
        ("elastic", timed(Sizing { min: 2, max: MAX, ..Sizing::default() })),
        ("static", timed(Sizing::fixed(20))),
        ("prefork", timed(Sizing::prefork(2, MAX, 4))),
        ("on-demand", timed(Sizing::on_demand(MAX))),
        ("queue", timed(Sizing::by_queue(2, MAX, 0))),
    ]
}

fn main() {
    for shape in &SHAPES {
        for (name, sizing) in presets() {
            Run::new(sizing).play(shape, name);
        }
    }
}

/// A pool and its virtual clock, which ticks in milliseconds.
struct Run {
    policy: Policy,
    begin: Instant,
    now_ms: u64,
    /// The arrival time of each waiting request.
    queue: VecDeque<u64>,
    /// When each busy worker finishes.
    busy: VecDeque<u64>,
    /// When each starting worker becomes ready.
    starting: VecDeque<u64>,
    idle: u32,
    waits: Vec<u64>,
    started: u32,
    worker_ms: u64,
}

impl Run {
    fn new(sizing: Sizing) -> Self {
        #[expect(clippy::disallowed_methods, reason = "a point to start from")]
        let begin = Instant::now();
        Self {
            policy: Policy::new(sizing),
            begin,
            now_ms: 0,
            queue: VecDeque::new(),
            busy: VecDeque::new(),
            starting: VecDeque::new(),
            idle: 0,
            waits: Vec::new(),
            started: 0,
            worker_ms: 0,
        }
    }

    fn play(mut self, shape: &Shape, preset: &str) {
        let mut owed = 0.0;
        while self.now_ms < RUN_MS {
            owed += (shape.rate)(self.now_ms) / 1000.0;
            let burst = (shape.burst)(self.now_ms);
            (0..burst).for_each(|_| self.queue.push_back(self.now_ms));
            while owed >= 1.0 {
                owed -= 1.0;
                self.queue.push_back(self.now_ms);
            }
            self.advance();
            if self.now_ms.is_multiple_of(100) {
                let needed = (shape.rate)(self.now_ms) * SERVICE_MS as f64 / 1000.0;
                let second = self.now_ms as f64 / 1000.0;
                let (workers, waiting) = (self.workers(), self.queue.len());
                println!("{},{preset},{second:.1},{needed:.1},{workers},{waiting}", shape.name);
            }
            self.worker_ms += u64::from(self.workers());
            self.now_ms += 1;
        }
        self.waits.sort_unstable();
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a part of a length"
        )]
        let at = |part: f64| {
            let place = (self.waits.len().saturating_sub(1)) as f64 * part;
            self.waits.get(place as usize).copied().unwrap_or(0)
        };
        let (median, high, longest) = (at(0.5), at(0.99), at(1.0));
        let seconds = self.worker_ms / 1000;
        println!("#{},{preset},{median},{high},{longest},{},{seconds}", shape.name, self.started);
    }

    /// The number of workers, including those that are starting.
    fn workers(&self) -> u32 {
        count(self.busy.len() + self.starting.len()) + self.idle
    }

    /// Advances by one millisecond: free workers take waiting requests, and the advice of the policy is followed.
    fn advance(&mut self) {
        for coming in [&mut self.busy, &mut self.starting] {
            while coming.front().is_some_and(|at| *at <= self.now_ms) {
                coming.pop_front();
                self.idle += 1;
            }
        }
        while self.idle > 0
            && let Some(arrived) = self.queue.pop_front()
        {
            self.idle -= 1;
            self.waits.push(self.now_ms - arrived);
            self.busy.push_back(self.now_ms + SERVICE_MS);
        }
        loop {
            let load = Load {
                busy: count(self.busy.len()),
                idle: self.idle,
                starting: count(self.starting.len()),
                ending: 0,
                waiting: count(self.queue.len()),
                oldest: self.queue.front().map(|at| self.begin + Duration::from_millis(*at)),
                room: u32::MAX,
                may_shrink: true,
            };
            match self.policy.advise(self.begin + Duration::from_millis(self.now_ms), &load) {
                Advice::Start(more) => {
                    self.started += more;
                    (0..more).for_each(|_| self.starting.push_back(self.now_ms + START_MS));
                }
                Advice::Stop => self.idle -= 1,
                Advice::Nothing => break,
            }
        }
    }
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
