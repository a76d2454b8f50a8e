//! Random operations in virtual time against a naive model. All invariants are checked after each operation.
//!
//! proptest shrinks a failing run to the shortest one and prints how to keep it.

#[path = "model/naive.rs"]
mod naive;

use std::time::Duration;

use naive::{Naive, Op};
use pool::{BackoffSettings, Batching, FallbackSettings, QueueLimits, Schedule, Settings};
use proptest::collection::vec;
use proptest::prelude::*;

fn sizing() -> impl Strategy<Value = elastic::Sizing> {
    let grow_above = proptest::option::of(0..4_u32);
    (0..5_u32, 1..7_u32, 0..3_u32, 0..300_u64, 0..30_u64, 1..5_u32, grow_above).prop_map(
        |(min, max, spare, idle, grow_after, grow_step_max, grow_above)| elastic::Sizing {
            min: min.min(max),
            max,
            spare,
            idle: Duration::from_millis(idle),
            grow_after: Duration::from_millis(grow_after),
            grow_step_max,
            grow_above,
        },
    )
}

fn batch() -> impl Strategy<Value = Batching> {
    let sometimes = prop_oneof![Just(0), 0..40_u64].prop_map(Duration::from_millis);
    prop_oneof![
        1 => Just(Batching::default()),
        3 => (1..8_u32, 0..400_usize, sometimes).prop_map(|(rows, bytes, wait)| Batching {
            rows,
            bytes,
            wait
        }),
    ]
}

fn queue() -> impl Strategy<Value = QueueLimits> {
    (0..24_u32, 0..900_usize, 0..200_u64).prop_map(|(length, bytes, wait)| QueueLimits {
        length,
        bytes,
        wait: Duration::from_millis(wait),
    })
}

fn backoff() -> impl Strategy<Value = BackoffSettings> {
    (1..20_u64, 0..100_u64, 0..50_u64, 0..4_u32).prop_map(
        |(first, more, min_uptime, open_after)| BackoffSettings {
            first: Duration::from_millis(first),
            max: Duration::from_millis(first + more),
            min_uptime: Duration::from_millis(min_uptime),
            open_after,
        },
    )
}

fn fallback() -> impl Strategy<Value = Option<FallbackSettings>> {
    let steady = prop_oneof![Just(0), 0..400_u64].prop_map(Duration::from_millis);
    proptest::option::of(
        (0..101_u32, steady).prop_map(|(until, steady)| FallbackSettings { until, steady }),
    )
}

fn settings() -> impl Strategy<Value = Settings> {
    let schedule = proptest::sample::select(Schedule::ALL);
    (1..4_u32, batch(), queue(), schedule, sizing(), backoff(), fallback()).prop_map(
        |(slots, batch, queue, schedule, sizing, backoff, fallback)| Settings {
            slots,
            batch,
            queue,
            schedule,
            sizing,
            backoff,
            fallback,
            ..Settings::default()
        },
    )
}

fn op() -> impl Strategy<Value = Op> {
    let pick = any::<usize>();
    prop_oneof![
        28 => (0..100_usize).prop_map(Op::Request),
        4 => pick.prop_map(Op::Abandon),
        12 => (pick, pick).prop_map(|(worker, batch)| Op::Release(worker, batch)),
        10 => pick.prop_map(Op::Started),
        2 => pick.prop_map(Op::StartFailed),
        1 => pick.prop_map(Op::Retire),
        4 => (pick, any::<bool>()).prop_map(|(worker, expected)| Op::Ended(worker, expected)),
        2 => (pick, 0..6_usize, any::<bool>())
            .prop_map(|(worker, unsent, retire)| Op::Dies { worker, unsent, retire }),
        2 => (pick, 0..5_u8).prop_map(|(worker, event)| Op::Stale(worker, event)),
        8 => (0..40_u64).prop_map(Op::Pass),
        6 => Just(Op::Due),
    ]
}

/// The steps of a run: the operations, occasional new settings, and the end.
fn ops() -> impl Strategy<Value = Vec<Op>> {
    let other = prop_oneof![60 => op(), 1 => settings().prop_map(|settings| Op::Settings(Box::new(settings)))];
    let ending = prop_oneof![30 => op(), 1 => Just(Op::Drain), 1 => Just(Op::Stop)];
    (vec(other, 1..400), vec(ending, 0..60)).prop_map(|(mut ops, ending)| {
        ops.extend(ending);
        ops
    })
}

proptest! {
    // About 230 steps per case: more than 100,000 in all.
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_the_pool_does_what_the_model_says(
        settings in settings(),
        seed: u64,
        ops in ops(),
    ) {
        let mut naive = Naive::new(settings, seed);
        for op in ops {
            naive.apply(op);
        }
        naive.calms();
        naive.finish();
    }
}
