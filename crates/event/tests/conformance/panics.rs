//! A handler that panics; the next turn delivers the remaining events.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use event::{Direction::Both, Kernel};

use crate::harness::{Bench, Seen, unix, write};

/// Runs turns until the handler has panicked, and then until `count` events were recorded.
fn turn_through<K: Kernel>(bench: &mut Bench<K>, count: usize) {
    let turn = AssertUnwindSafe(|| {
        loop {
            bench.events.turn(&mut bench.owner, Some(Duration::from_secs(60))).unwrap();
        }
    });
    assert!(catch_unwind(turn).is_err(), "it panics once");
    for _ in 0..1000 {
        if bench.owner.seen.len() >= count {
            return;
        }
        // A lost event would not be repeated, because the kernel reports it once.
        bench.events.turn(&mut bench.owner, Some(Duration::ZERO)).unwrap();
    }
    panic!("{:?} is all that was told", bench.owner.seen);
}

/// Panics at the first event for which `at` returns true.
fn panics_at<K: Kernel>(bench: &mut Bench<K>, mut at: impl FnMut(&Seen) -> bool + 'static) {
    let mut has_panicked = false;
    bench.react(move |_, seen| {
        if at(seen) && !std::mem::replace(&mut has_panicked, true) {
            // This is not a failure of the test, so nothing is printed.
            std::panic::resume_unwind(Box::new("the owner's"));
        }
    });
}

pub(crate) fn what_comes_behind_an_event_on_which_the_owner_panics_is_told(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let pairs: Vec<_> = (0..5).map(|_| unix()).collect();
    let (near, far): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
    let streams: Vec<_> = near.into_iter().map(|near| bench.adopt(near, Both)).collect();
    bench.on_events_done();
    bench.take_seen();
    far.iter().for_each(|far| write(far, b"x"));
    panics_at(&mut bench, |seen| matches!(seen, Seen::Data(..)));
    turn_through(&mut bench, streams.len() - 1);
    let told = bench.owner.seen.iter().filter(|seen| matches!(seen, Seen::Data(..))).count();
    assert_eq!(told, streams.len() - 1, "{:?}", bench.owner.seen);
}

pub(crate) fn a_panic_on_mail_loses_that_mail_alone(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let mailbox = bench.events.mailbox();
    (0..5).for_each(|number| mailbox.try_send(number).unwrap());
    panics_at(&mut bench, |seen| *seen == Seen::Mail(1));
    turn_through(&mut bench, 4);
    assert_eq!(bench.owner.seen, [0, 2, 3, 4].map(Seen::Mail));
}

pub(crate) fn a_panic_on_a_timer_loses_that_timer_alone(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let now = bench.context().now();
    let timers: Vec<_> = (0..4).map(|_| bench.context().timer(now)).collect();
    // The order of timers with the same time is not specified.
    let lost = std::rc::Rc::new(std::cell::Cell::new(None));
    let first = std::rc::Rc::clone(&lost);
    panics_at(&mut bench, move |seen| {
        let Seen::Timer(timer) = seen else { return false };
        first.set(first.get().or(Some(*timer)));
        true
    });
    turn_through(&mut bench, 3);
    assert_eq!(bench.owner.seen.len(), 3);
    for timer in timers.into_iter().filter(|timer| Some(*timer) != lost.get()) {
        assert!(bench.owner.seen.contains(&Seen::Timer(timer)), "{:?}", bench.owner.seen);
    }
}
