//! The write policy, conflicts and catch-up, step by step: the test is the client of the server.
#![allow(clippy::unwrap_used, reason = "a test")]

use cluster::{
    Change, ChangeKind, Command, Epoch, Event, Key, OperationId, Origin, Replica, Secret, Settings,
    State, Subject, Target, Value,
};

const SECRET: Secret = Secret(1, 2);
const EPOCH: Epoch = Epoch(77);

fn key(number: u32) -> Key {
    Key::new(SECRET, &number.to_le_bytes())
}

fn settings() -> Settings {
    Settings { lifetime_ms: 100_000, mark_ms: 1_000_000, entries_max: 1000, ..Settings::default() }
}

fn commands(replica: &mut Replica, now: u64) -> Vec<Command> {
    std::iter::from_fn(|| replica.poll(now)).collect()
}

/// The writes among the commands: operation, key, target, expected revision.
fn writes(replica: &mut Replica, now: u64) -> Vec<(OperationId, Subject, Option<Value>, u64)> {
    let of_write = |command| match command {
        Command::Write { operation, subject, value, expect } => {
            Some((operation, subject, value, expect))
        }
        _ => None,
    };
    commands(replica, now).into_iter().filter_map(of_write).collect()
}

fn connect(replica: &mut Replica, now: u64, last: u64) -> (OperationId, Option<u64>) {
    let epoch = Some((EPOCH, 1));
    replica.handle(now, Event::Connected { epoch, first: 1, last });
    match commands(replica, now)[..] {
        [Command::Watch { operation, from }] => (operation, from),
        ref other => panic!("{other:?}"),
    }
}

/// A replica in sync, and its watch.
fn in_sync(settings: Settings) -> (Replica, OperationId) {
    let mut replica = Replica::new(settings, SECRET, Origin(1), 5);
    let (operation, from) = connect(&mut replica, 0, 1);
    assert_eq!(from, None);
    let kind = ChangeKind::Put(Value::Epoch(EPOCH));
    let change = Change { subject: Subject::Epoch, revision: 1, kind };
    replica.handle(0, Event::Changed { operation, change });
    replica.handle(0, Event::CaughtUp { operation, revision: 1 });
    assert_eq!(commands(&mut replica, 0), []);
    assert_eq!(replica.status().state, State::InSync);
    (replica, operation)
}

fn put(number: u32, target: u64, origin: u64, revision: u64) -> Change {
    let value = Value::Binding { target: Target(target), origin: Origin(origin) };
    Change { subject: Subject::Client(key(number)), revision, kind: ChangeKind::Put(value) }
}

fn deliver(replica: &mut Replica, now: u64, operation: OperationId, change: Change) {
    replica.handle(now, Event::Changed { operation, change });
    replica.check();
}

/// Accepts a write, and delivers it to the watch.
fn accept(replica: &mut Replica, now: u64, watch: OperationId, number: u32, revision: u64) {
    let all = writes(replica, now);
    let [(operation, _, Some(Value::Binding { target, .. }), _)] = all[..] else {
        panic!("{all:?}")
    };
    replica.handle(now, Event::Written { operation, revision });
    deliver(replica, now, watch, put(number, target.0, 1, revision));
}

#[test]
fn a_binding_is_written_after_20_ms_once_and_touches_after_a_quarter_of_the_lifetime() {
    let (mut replica, watch) = in_sync(settings());
    replica.bind(100, &key(1), Target(5));
    replica.bind(110, &key(1), Target(6));
    assert_eq!(writes(&mut replica, 119), []);
    assert_eq!(replica.next_poll_ms(), Some(120));
    let all = writes(&mut replica, 120);
    let value = Some(Value::Binding { target: Target(6), origin: Origin(1) });
    let [(operation, subject, written, 0)] = all[..] else { panic!("{all:?}") };
    assert_eq!((subject, written), (Subject::Client(key(1)), value));
    // A change waits until the watch has delivered the first write.
    replica.bind(121, &key(1), Target(7));
    replica.handle(125, Event::Written { operation, revision: 2 });
    assert_eq!(writes(&mut replica, 200), []);
    deliver(&mut replica, 200, watch, put(1, 6, 1, 2));
    let all = writes(&mut replica, 220);
    let [(operation, _, _, 2)] = all[..] else { panic!("{all:?}") };
    replica.handle(221, Event::Written { operation, revision: 3 });
    deliver(&mut replica, 221, watch, put(1, 7, 1, 3));
    for now in (1000..25_000).step_by(500) {
        assert_eq!(replica.find(now, &key(1)), Some(Target(7)));
    }
    assert_eq!(writes(&mut replica, 25_219), []);
    assert_eq!(replica.find(25_220, &key(1)), Some(Target(7)));
    assert_eq!(writes(&mut replica, 25_240).len(), 1, "a touch");
}

#[test]
fn at_most_256_writes_are_unacknowledged_and_bindings_go_before_touches() {
    let settings = Settings { unacknowledged_max: 4, flush_keys: 6, ..settings() };
    let (mut replica, watch) = in_sync(settings);
    for number in 0..3 {
        deliver(&mut replica, 0, watch, put(number, 1, 2, u64::from(number) + 2));
    }
    (0..3).for_each(|number| assert!(replica.find(30_000, &key(number)).is_some()));
    (10..13).for_each(|number| replica.bind(30_000, &key(number), Target(2)));
    let all = writes(&mut replica, 30_000);
    assert_eq!(all.len(), 4, "many keys do not wait, and the window is closed");
    assert!(all[..3].iter().all(|write| write.3 == 0) && all[3].3 > 0, "{all:?}");
    replica.handle(30_001, Event::Written { operation: all[0].0, revision: 9 });
    assert_eq!(writes(&mut replica, 30_001).len(), 1);
    assert_eq!(commands(&mut replica, 32_000), [Command::Reconnect], "no answer for 2 s");
    assert_eq!(replica.status().state, State::Detached);
    replica.check();
}

#[test]
fn the_rate_of_writes_is_limited() {
    let settings = Settings { writes_per_second: 100, unacknowledged_max: 1000, ..settings() };
    let (mut replica, _) = in_sync(settings);
    (0..600).for_each(|number| replica.bind(0, &key(number), Target(2)));
    assert_eq!(writes(&mut replica, 20).len(), 256);
    assert_eq!(writes(&mut replica, 1020).len(), 100);
    let next = replica.next_poll_ms().unwrap();
    assert!((1021..=1030).contains(&next), "{next}");
}

#[test]
fn the_loser_of_a_conflict_adopts_the_winner_unless_it_is_down() {
    let (mut replica, watch) = in_sync(settings());
    replica.bind(0, &key(1), Target(5));
    let operation = writes(&mut replica, 20)[0].0;
    replica.handle(21, Event::LostRace { operation });
    let [Command::Get { operation, .. }] = commands(&mut replica, 21)[..] else { panic!() };
    let change = Some(put(1, 6, 2, 2));
    replica.handle(22, Event::Got { operation, change });
    assert_eq!(replica.find(23, &key(1)), Some(Target(6)));
    assert_eq!((replica.counters().conflicts, replica.counters().lost_races), (1, 1));

    replica.set_down(Target(9), true);
    deliver(&mut replica, 30, watch, put(1, 9, 2, 3));
    assert_eq!(replica.peek(31, &key(1)), Some(Target(6)));
    assert_eq!(writes(&mut replica, 100), [], "only a use writes it");
    assert_eq!(replica.find(101, &key(1)), Some(Target(6)));
    let all = writes(&mut replica, 150);
    let [(_, _, Some(Value::Binding { target: Target(6), .. }), 3)] = all[..] else {
        panic!("{all:?}")
    };
    assert_eq!(replica.counters().refused, 1);
}

#[test]
fn a_server_that_is_up_again_is_adopted() {
    let (mut replica, watch) = in_sync(settings());
    deliver(&mut replica, 0, watch, put(1, 6, 2, 2));
    replica.set_down(Target(9), true);
    deliver(&mut replica, 1, watch, put(1, 9, 2, 3));
    assert_eq!(replica.peek(2, &key(1)), Some(Target(6)));
    replica.set_down(Target(9), false);
    assert_eq!(replica.peek(3, &key(1)), Some(Target(9)));
    assert_eq!(replica.find(3, &key(1)), Some(Target(9)));
    replica.check();
}

#[test]
fn versions_decide_and_not_the_order_of_arrival() {
    let (mut replica, watch) = in_sync(settings());
    deliver(&mut replica, 0, watch, put(1, 6, 2, 9));
    deliver(&mut replica, 1, watch, put(1, 5, 3, 8));
    deliver(&mut replica, 1, OperationId(999), put(1, 4, 3, 20));
    assert_eq!(replica.peek(2, &key(1)), Some(Target(6)));
    assert_eq!(replica.counters().stale, 2);
}

#[test]
fn the_expiry_of_the_server_keeps_what_is_in_use_and_a_deletion_does_not() {
    let (mut replica, watch) = in_sync(settings());
    replica.bind(0, &key(1), Target(5));
    accept(&mut replica, 20, watch, 1, 2);
    deliver(&mut replica, 20, watch, put(2, 6, 2, 3));
    let marker =
        |number, revision, kind| Change { subject: Subject::Client(key(number)), revision, kind };
    deliver(&mut replica, 50, watch, marker(1, 4, ChangeKind::Expired));
    deliver(&mut replica, 50, watch, marker(2, 5, ChangeKind::Expired));
    assert_eq!(replica.peek(50, &key(1)), Some(Target(5)));
    assert_eq!(replica.peek(50, &key(2)), Some(Target(6)));
    assert_eq!(replica.status().listed, 0);
    accept(&mut replica, 70, watch, 1, 6);
    deliver(&mut replica, 80, watch, marker(1, 7, ChangeKind::Deleted));
    assert_eq!(replica.find(81, &key(1)), None);
    // The entry that is not in use here ends by the local clock.
    assert_eq!(replica.peek(125_019, &key(2)), Some(Target(6)));
    assert_eq!(replica.peek(125_020, &key(2)), None);
}

#[test]
fn a_short_gap_resumes_and_a_long_one_takes_a_snapshot_and_sweeps() {
    let (mut replica, watch) = in_sync(settings());
    replica.bind(0, &key(1), Target(5));
    accept(&mut replica, 20, watch, 1, 2);
    deliver(&mut replica, 20, watch, put(2, 6, 2, 3));
    replica.handle(100, Event::Disconnected);
    assert_eq!(connect(&mut replica, 200, 9).1, Some(4));
    replica.handle(300, Event::Disconnected);
    let (operation, from) = connect(&mut replica, 30_000, 9);
    assert_eq!(from, None);
    replica.handle(30_001, Event::CaughtUp { operation, revision: 9 });
    assert_eq!(commands(&mut replica, 30_001), []);
    let all = writes(&mut replica, 30_030);
    let [(_, Subject::Client(client), _, 0)] = all[..] else { panic!("{all:?}") };
    assert_eq!(client, key(1), "what was last used here is written again");
    assert_eq!(replica.peek(30_030, &key(2)), None);
    assert_eq!(replica.counters().swept, 1);
    replica.check();
}

#[test]
fn a_stream_that_ends_too_early_is_another_history() {
    let (mut replica, watch) = in_sync(settings());
    deliver(&mut replica, 20, watch, put(2, 6, 2, 90));
    replica.handle(100, Event::Disconnected);
    let epoch = Some((EPOCH, 1));
    replica.handle(200, Event::Connected { epoch, first: 1, last: 50 });
    let all = commands(&mut replica, 200);
    let [
        Command::Watch { operation, from: None },
        Command::Write {
            subject: Subject::Epoch, value: Some(Value::Epoch(new)), expect: 1, ..
        },
    ] = all[..]
    else {
        panic!("{all:?}")
    };
    assert_ne!(new, EPOCH);
    deliver(&mut replica, 201, operation, put(2, 7, 2, 40));
    assert_eq!(replica.peek(201, &key(2)), Some(Target(7)), "older revisions count now");
}

#[test]
fn a_full_table_evicts_the_entry_that_was_idle_longest() {
    let (mut replica, _) = in_sync(Settings { entries_max: 2, ..settings() });
    (1..4).for_each(|number| replica.bind(u64::from(number), &key(number), Target(5)));
    assert_eq!((replica.peek(5, &key(1)), replica.counters().evicted), (None, 1));
    assert_eq!(replica.peek(5, &key(3)), Some(Target(5)));
    replica.check();
}

#[test]
fn bindings_for_which_no_room_is_left_are_written_by_a_walk() {
    let settings = Settings { pending_max: 10, unacknowledged_max: 1000, ..settings() };
    let mut replica = Replica::new(settings, SECRET, Origin(1), 5);
    (0..100).for_each(|number| replica.bind(0, &key(number), Target(5)));
    assert_eq!(replica.counters().overflows, 90);
    let (operation, _) = connect(&mut replica, 10, 1);
    replica.handle(10, Event::CaughtUp { operation, revision: 1 });
    let all: usize = (10..200).map(|now| writes(&mut replica, now).len()).sum();
    assert_eq!(all, 100);
    assert_eq!(replica.status().state, State::InSync);
    replica.check();
}

/// A replica has no other clock than its argument, and no time is written to the bucket. So a wall clock can only jump
/// at the server, whose expiries then arrive too early or not at all.
#[test]
fn bindings_end_by_the_clock_of_the_daemon_when_that_of_the_server_jumps() {
    let (mut replica, watch) = in_sync(settings());
    replica.bind(0, &key(1), Target(5));
    accept(&mut replica, 20, watch, 1, 2);
    // Ahead: the entry expires as soon as it is written, and is written again as long as it is in use.
    for revision in [3, 5, 7] {
        let now = 100 * revision;
        let kind = ChangeKind::Expired;
        let change = Change { subject: Subject::Client(key(1)), revision, kind };
        deliver(&mut replica, now, watch, change);
        assert_eq!(replica.peek(now, &key(1)), Some(Target(5)));
        accept(&mut replica, now + 20, watch, 1, revision + 1);
    }
    assert_eq!(replica.counters().kept, 3);
    // Back: the entry never expires at the server.
    assert_eq!(replica.peek(99_999, &key(1)), Some(Target(5)));
    assert_eq!(replica.peek(100_000, &key(1)), None);
    assert_eq!(replica.find(150_000, &key(1)), None);
    assert_eq!(replica.status().entries, 0);
    replica.check();
}

#[test]
fn a_reader_learns_of_an_own_binding_that_an_older_history_brings_back() {
    let (mut replica, watch) = in_sync(settings());
    replica.bind(0, &key(1), Target(5));
    accept(&mut replica, 20, watch, 1, 2);
    deliver(&mut replica, 30, watch, put(1, 6, 2, 3));
    let updates = |replica: &mut Replica| -> Vec<_> {
        std::iter::from_fn(|| replica.poll_update()).map(|update| update.target).collect()
    };
    assert_eq!(updates(&mut replica), [Some(Target(6))]);
    // The stream ends before the binding of the other daemon.
    replica.handle(40, Event::Connected { epoch: Some((EPOCH, 1)), first: 1, last: 2 });
    let watch = commands(&mut replica, 40).into_iter().find_map(|command| match command {
        Command::Watch { operation, from: None } => Some(operation),
        _ => None,
    });
    deliver(&mut replica, 50, watch.unwrap(), put(1, 5, 1, 2));
    assert_eq!(replica.peek(50, &key(1)), Some(Target(5)));
    assert_eq!(updates(&mut replica), [Some(Target(5))]);
}
