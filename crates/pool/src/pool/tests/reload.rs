//! New settings while requests are served: declared workers stay, others leave.

use super::balance::{Port, servers, sticky};
use super::*;
use crate::Control;
use crate::settings::{Gone, RecycleSettings};
use exchange::AdminState;

#[test]
fn everybody_keeps_its_turn() {
    for schedule in [Schedule::RoundRobin, Schedule::WeightedRoundRobin] {
        let settings = Settings { schedule, ..servers(&["a", "b", "c"], 9) };
        let mut port = Port::new(settings.clone());
        for id in 0..9 {
            port.plain(id).unwrap();
            port.settings(settings.clone());
        }
        let mut places: Vec<_> = port.given.iter().map(|(place, _)| *place).collect();
        assert_eq!(places[..3], places[3..6], "{schedule:?}");
        places.sort_unstable();
        assert_eq!(places, [0, 0, 0, 1, 1, 1, 2, 2, 2], "{schedule:?}");
    }
}

#[test]
fn one_that_is_taken_out_and_put_back_while_it_works_goes_on() {
    let mut port = Port::new(servers(&["a", "b"], 2));
    port.plain(1).unwrap();
    port.settings(servers(&["b"], 2));
    port.plain(2).unwrap();
    port.plain(3).unwrap();
    assert_eq!(port.given, [(0, 1), (1, 2), (1, 3)], "it gets nothing more");
    port.settings(servers(&["a", "b"], 2));
    port.plain(4).unwrap();
    assert_eq!(port.given[3], (0, 4));
    port.release(0);
    port.release(0);
    assert_eq!(port.stopped, []);
}

#[test]
fn one_that_is_taken_out_while_it_starts_goes_and_no_other() {
    let named = |names: &[&str]| {
        let settings = servers(names, 1);
        let members = settings.members;
        Settings { members, ..fixed(names.len().try_into().unwrap()) }
    };
    let mut yard = Yard::new(named(&["a", "b", "c"]));
    let [a, b, c] = yard.started[..] else { panic!("three start") };
    yard.pool.handle_started(yard.now, a);
    yard.pool.handle_started(yard.now, c);
    yard.follow();
    yard.pool.handle_settings(yard.now, named(&["a", "c"]));
    yard.follow();
    yard.requests([1]);
    yard.pool.handle_started(yard.now, b);
    yard.follow();
    assert_eq!(yard.stopped, [b]);
    assert_eq!(yard.pool.status().idle, 1, "one works, one rests");
}

#[test]
fn workers_that_start_with_what_was_before_are_replaced_too() {
    let recycle = RecycleSettings { share: 100, ..RecycleSettings::default() };
    let mut yard = Yard::new(Settings { recycle, ..fixed(1) });
    let old = yard.started[0];
    yard.pool.handle_recycle(yard.now);
    yard.follow();
    assert_eq!(yard.started, [old], "it is not ready, so nobody takes its place yet");
    yard.start_all();
    let new = yard.started[0];
    assert!(new != old && yard.stopped.is_empty());
    yard.start_all();
    assert_eq!(yard.stopped, [old]);
}

#[test]
fn who_is_bound_stays_bound_when_the_table_becomes_another() {
    let mut port = Port::new(sticky(servers(&["a", "b"], 9), Gone::Reschedule));
    for (id, key) in [(1, "x"), (2, "y")] {
        port.of(id, key).unwrap();
    }
    let mut settings = sticky(servers(&["a", "b"], 9), Gone::Reschedule);
    settings.sticky.as_mut().unwrap().limits.entries = 7;
    for id in 3..9 {
        port.settings(settings.clone());
        port.of(id, if id % 2 == 1 { "x" } else { "y" }).unwrap();
        assert_eq!(port.given.last(), Some(&(usize::from(id % 2 == 0), id)));
    }
}

#[test]
fn at_the_limit_of_the_pool_the_oldest_goes_first_bound_or_not() {
    let mut settings = sticky(servers(&["a", "b"], 9), Gone::Reschedule);
    settings.schedule = Schedule::First;
    settings.slots_all = Some(1);
    let mut port = Port::new(settings);
    port.control("a", Control::AdminState(AdminState::Drained));
    port.of(0, "of b").unwrap();
    port.control("a", Control::AdminState(AdminState::Enabled));
    // All other requests find `a` free, and `a` is always the first worker.
    for id in 1..4 {
        port.pass(ms(1));
        port.plain(id).unwrap();
        if id == 2 {
            port.pass(ms(1));
            port.of(10, "of b").unwrap();
        }
    }
    port.release(1);
    for _ in 0..3 {
        let (place, _) = *port.given.last().unwrap();
        port.release(place);
    }
    assert_eq!(port.given, [(1, 0), (0, 1), (0, 2), (1, 10), (0, 3)]);
}
