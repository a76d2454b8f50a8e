//! Members that join, leave and become unhealthy, bound clients, a limit of the pool and its fallback: random
//! operations in virtual time against a naive model.
//!
//! A run is determined by its seed, and a failure prints the seed. To replay it, run `cargo test -p roadstead-pool
//! --test balance -- seed_N` if the seed has a test. For any other seed, add a line to the list below.

#[path = "balance/calm.rs"]
mod calm;
#[path = "balance/job.rs"]
mod job;
#[path = "balance/naive.rs"]
mod naive;
#[path = "balance/random.rs"]
mod random;
#[path = "balance/turns.rs"]
mod turns;

use std::time::Duration;

use naive::Naive;
use pool::{
    AdminState, AffinityLimits, Control, FallbackSettings, Gone, Member, QueueLimits, Schedule,
    Settings, Sticky,
};
use random::Random;
use turns::Turns;

/// Steps of each seed; all seeds together do more than 100,000.
const STEPS: u32 = 8_000;

const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn members(random: &mut Random) -> Vec<Member> {
    let mut members = Vec::new();
    for name in NAMES {
        if random.below(2) == 0 {
            members.push(Member {
                name: name.to_owned(),
                weight: [0, 1, 1, 2, 7][random.pick(5)],
                backup: random.below(4) == 0,
                slots: [None, Some(1), Some(3)][random.pick(3)],
            });
        }
    }
    if members.is_empty() {
        members.push(Member::new("a"));
    }
    members
}

/// The settings of a seed. Only the members change during a run.
fn settings(random: &mut Random) -> Settings {
    let mut settings = Settings {
        slots: 1 + random.number(3),
        schedule: Schedule::ALL[random.pick(Schedule::ALL.len())],
        slots_all: [None, Some(1), Some(4)][random.pick(3)],
        members: members(random),
        hold: ms([0, 30, 300][random.pick(3)]),
        priority_step: ms(20),
        queue: QueueLimits { length: random.number(12), wait: ms(200), ..QueueLimits::default() },
        decisions: random.number(4),
        ..Settings::default()
    };
    if random.below(3) > 0 {
        let gone = [Gone::Reschedule, Gone::Refuse][random.pick(2)];
        // The lifetime is longer than any run, and the table has room for all clients. Expiry has tests of its own.
        let limits = AffinityLimits { lifetime: Duration::from_secs(1 << 30), entries: 100 };
        settings.sticky = Some(Sticky { limits, gone, shared: false });
    }
    if random.below(2) == 0 {
        let until = [0, 50, 90][random.pick(3)];
        settings.fallback =
            Some(FallbackSettings { until, steady: ms([0, 15, 60][random.pick(3)]) });
    }
    settings.health.checked = true;
    settings.backoff.first = ms(5);
    settings.backoff.max = ms(20);
    settings.backoff.min_uptime = ms(10);
    settings
}

fn step(naive: &mut Naive, random: &mut Random) {
    match random.below(100) {
        0..40 => naive.request(random),
        40..45 => naive.abandon(random),
        45..68 => naive.release(random),
        68..78 => naive.started(random),
        78..80 => naive.start_failed(random),
        80..84 => naive.ended(random),
        84..86 => naive.dies(random),
        86..90 => naive.check(random),
        90..94 => naive.pass(ms(random.below(12))),
        94..96 => naive.due(),
        96 => naive.fallback(random.below(3) == 0),
        97 => {
            let name = NAMES[random.pick(NAMES.len())];
            let weight = [None, Some(0), Some(3)][random.pick(3)];
            naive.control(name, Control::Weight(weight));
        }
        98 => {
            let name = NAMES[random.pick(NAMES.len())];
            let hand = [
                AdminState::Enabled,
                AdminState::Enabled,
                AdminState::Drained,
                AdminState::Disabled,
            ];
            naive.control(name, Control::AdminState(hand[random.pick(hand.len())]));
        }
        _ if random.below(4) == 0 => naive.members(members(random)),
        _ => naive.pass(ms(1)),
    }
}

fn run(seed: u64) {
    let mut random = Random::new(seed);
    let settings = settings(&mut random);
    let mut naive = Naive::new(settings, Turns::new(&mut random), seed);
    for _ in 0..STEPS {
        step(&mut naive, &mut random);
    }
    naive.finish();
}

macro_rules! seeds {
    ($($name:ident = $seed:literal),* $(,)?) => {
        $(#[test]
        fn $name() {
            run($seed);
        })*
    };
}

seeds! {
    seed_1 = 1, seed_2 = 2, seed_3 = 3, seed_4 = 4, seed_5 = 5, seed_6 = 6, seed_7 = 7,
    seed_8 = 8, seed_9 = 9, seed_10 = 10, seed_11 = 11, seed_12 = 12, seed_13 = 13, seed_14 = 14,
    seed_15 = 15, seed_16 = 16,
}
