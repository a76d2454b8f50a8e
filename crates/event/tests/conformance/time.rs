//! Deadlines and timers.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use event::{DeadlineName, Direction::Both, Direction::In, Kernel, LoopSettings, OwnerKey};

use crate::ahead::Ahead;
use crate::harness::{Bench, Random, Seen, unix, write};

const SECOND: DeadlineName = DeadlineName(1);

pub(crate) fn nothing_fires_early_and_each_fires_once(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let mut random = Random(11);
    let mut due = std::collections::HashMap::new();
    for _ in 0..200 {
        let at = bench.context().now() + Duration::from_micros(random.below(30_000) as u64);
        let timer = match random.below(2) {
            0 => bench.context().timer(at),
            _ => {
                let key = OwnerKey([1, 2, 3, u32::try_from(random.below(1000)).unwrap()]);
                let timer = bench.context().timer_of(key, at);
                bench.owner.timer_keys.insert(timer, key);
                timer
            }
        };
        due.insert(timer, at);
    }
    let count = due.len();
    bench.react(move |io, seen| {
        let Seen::Timer(timer) = seen else { panic!("{seen:?}") };
        let at = due.remove(timer).expect("each fires once");
        assert!(io.now() >= at, "fired early");
    });
    bench.until("all timers", |seen| seen.len() == count);
    bench.on_events_done();
    assert_eq!(bench.owner.seen.len(), count);
}

pub(crate) fn deadlines_end_with_their_stream(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let (near, _far) = unix();
    let (kept_near, _kept_far) = unix();
    let gone = bench.adopt(near, Both);
    let kept = bench.adopt(kept_near, Both);
    let at = bench.context().now() + Duration::from_millis(2);
    for name in 0..4 {
        bench.context().deadline(gone, DeadlineName(name), Some(at));
    }
    bench.context().deadline(kept, SECOND, Some(at));
    bench.context().deadline(kept, DeadlineName(2), Some(at));
    bench.context().deadline(kept, DeadlineName(2), None);
    bench.context().close(gone);
    bench.owner.gone.insert(gone);
    bench.until_seen(&Seen::Deadline(kept, SECOND));
    bench.on_events_done();
    assert_eq!(bench.owner.seen, [Seen::Deadline(kept, SECOND)]);
}

pub(crate) fn a_timer_that_rang_can_be_set_again(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let now = bench.context().now();
    let timer = bench.context().timer(now);
    let mut rounds = 0;
    bench.react(move |io, _| {
        rounds += 1;
        if rounds < 5 {
            let at = io.now() + Duration::from_millis(1);
            io.set_timer(timer, at);
        } else {
            io.cancel_timer(timer);
            io.set_timer(timer, io.now());
        }
    });
    bench.until("five rounds", |seen| seen.len() == 5);
    bench.on_events_done();
    assert_eq!(bench.owner.seen, vec![Seen::Timer(timer); 5]);
}

pub(crate) fn what_is_cancelled_in_the_same_turn_does_not_fire(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let now = bench.context().now();
    let timers: Rc<RefCell<Vec<_>>> = Rc::default();
    for _ in 0..4 {
        let timer = bench.context().timer(now);
        timers.borrow_mut().push(timer);
    }
    let mut first = true;
    bench.react(move |io, seen| {
        let Seen::Timer(fired) = seen else { return };
        if !std::mem::take(&mut first) {
            return;
        }
        let others: Vec<_> = timers.borrow().iter().filter(|id| *id != fired).copied().collect();
        io.cancel_timer(others[0]);
        io.disarm_timer(others[1]);
        // It reuses the place of the cancelled timer, and must not fire for it.
        io.timer(now + Duration::from_secs(3600));
    });
    bench.until("two", |seen| seen.len() == 2);
    bench.on_events_done();
    assert_eq!(bench.owner.seen.len(), 2);
}

pub(crate) fn a_hundred_thousand_deadlines_cost_nothing_when_put_off(kernel: impl Kernel) {
    const TIMERS: usize = 100_000;
    let mut bench = Bench::new(kernel);
    let (near, far) = unix();
    let stream = bench.adopt(near, Both);
    let start = bench.context().now();
    let later = start + Duration::from_secs(3600);
    for _ in 0..TIMERS {
        bench.context().timer(later);
    }
    bench.context().deadline(stream, SECOND, Some(later));
    bench.on_events_done();
    let filed = bench.events.counts().filings;
    assert_eq!(filed, TIMERS as u64 + 1);
    let mut io = bench.context();
    for extension in 0..1_000_000 {
        io.deadline(stream, SECOND, Some(later + Duration::from_micros(extension)));
    }
    for _ in 0..50 {
        write(&far, b"x");
        bench.on_events_done();
    }
    assert_eq!(bench.events.counts().filings, filed, "neither extensions nor turns file anything");
    // Moving it to an earlier time has an immediate effect.
    let soon = bench.context().now();
    bench.context().deadline(stream, SECOND, Some(soon));
    bench.until_seen(&Seen::Deadline(stream, SECOND));
    assert_eq!(bench.events.counts().filings, filed + 1);
}

pub(crate) fn a_time_that_has_passed_fires_in_the_next_turn(kernel: impl Kernel) {
    let mut bench = Bench::new(kernel);
    let past = Instant::now();
    let timer = bench.context().timer(past);
    bench.events.turn(&mut bench.owner, None).unwrap();
    bench.until_seen(&Seen::Timer(timer));
    // A timer that is set to the current time in a callback does not prolong the turn.
    bench.react(move |io, _| io.set_timer(timer, past));
    let turns = bench.owner.turns;
    bench.context().set_timer(timer, past);
    bench.until("ten", |seen| seen.len() >= 10);
    assert!(bench.owner.turns >= turns + 9, "several fired in one turn");
}

fn few_events() -> LoopSettings {
    LoopSettings { events_max: 2, ..LoopSettings::default() }
}

pub(crate) fn what_was_ready_when_a_timer_was_due_comes_before_it(kernel: impl Kernel) {
    let (kernel, ahead) = Ahead::new(kernel);
    let mut bench = Bench::with(kernel, few_events());
    let pairs: Vec<_> = (0..7).map(|_| unix()).collect();
    let mut fars = Vec::new();
    for (near, far) in pairs {
        bench.adopt(near, In);
        write(&far, b"a");
        fars.push(far);
    }
    let at = bench.context().now() + Duration::from_millis(10);
    let timer = bench.context().timer(at);
    ahead.set(Duration::from_millis(20));
    let _clock_is_read = bench.context();
    bench.until_seen(&Seen::Timer(timer));
    assert_eq!(bench.position(&Seen::Timer(timer)), fars.len(), "{:?}", bench.owner.seen);
}

pub(crate) fn what_came_while_the_process_was_stopped_comes_before_a_timer(kernel: impl Kernel) {
    let (kernel, ahead) = Ahead::new(kernel);
    let after_wait = kernel.after_wait();
    let mut bench = Bench::new(kernel);
    let ((near, far), (other_near, other_far)) = (unix(), unix());
    let (stream, _other) = (bench.adopt(near, In), bench.adopt(other_near, In));
    let at = bench.context().now() + Duration::from_secs(3600);
    let timer = bench.context().timer(at);
    bench.on_events_done();
    write(&other_far, b"a");
    let (came, mut peer) = (Rc::new(RefCell::new(false)), far.try_clone().unwrap());
    let is_stopped = {
        let came = Rc::clone(&came);
        move || {
            std::io::Write::write_all(&mut peer, b"b").unwrap();
            ahead.set(Duration::from_secs(7200));
            *came.borrow_mut() = true;
        }
    };
    *after_wait.borrow_mut() = Some(Box::new(is_stopped));
    bench.until_seen(&Seen::Timer(timer));
    assert!(*came.borrow());
    let data = Seen::Data(stream, b"b".to_vec(), false);
    assert!(bench.position(&data) < bench.position(&Seen::Timer(timer)), "{:?}", bench.owner.seen);
}

pub(crate) fn a_timer_fires_though_more_is_always_ready_than_one_turn_takes(kernel: impl Kernel) {
    let mut bench = Bench::with(kernel, few_events());
    let mut fars = std::collections::HashMap::new();
    for _ in 0..5 {
        let (near, far) = unix();
        write(&far, b"a");
        fars.insert(bench.adopt(near, In), far);
    }
    let now = bench.context().now();
    let timer = bench.context().timer(now);
    bench.react(move |_, seen| {
        if let Seen::Data(stream, ..) = seen {
            write(&fars[stream], b"a");
        }
    });
    bench.until_seen(&Seen::Timer(timer));
}
