//! Commands of operators, conflicts and lost histories, step by step: the test is the client of the server.
#![allow(clippy::unwrap_used, reason = "a test")]

use cluster::{
    Author, CommandError, CommandId, CommandRequest, Entry, EntryChange, History, OperationId,
    OperatorCommand, OperatorEvent, OperatorKey, OperatorReplica, OperatorUpdate, Setting, State,
    Stored,
};
use exchange::AdminState;

const HISTORY: History = History(1);

fn key(worker: &str) -> OperatorKey {
    OperatorKey::Worker { pool: "shop".to_owned(), worker: worker.to_owned() }
}

fn author(machine: &str, second: u32) -> Author {
    Author {
        who: "uid 0".to_owned(),
        machine: machine.to_owned(),
        when: format!("2026-11-28T14:20:{second:02}.000Z"),
    }
}

const fn worker(admin_state: AdminState, weight: Option<u32>) -> Setting {
    Setting::Worker { admin_state, weight }
}

const DISABLED: Setting = worker(AdminState::Disabled, None);
const ENABLED: Setting = worker(AdminState::Enabled, None);

fn put(setting: Setting, machine: &str, second: u32) -> Stored {
    Stored::Put(Entry { setting, author: author(machine, second) })
}

fn disable(second: u32) -> CommandRequest {
    CommandRequest {
        key: key("a"),
        change: EntryChange::AdminState(AdminState::Disabled),
        author: author("here", second),
    }
}

fn commands(replica: &mut OperatorReplica, now: u64) -> Vec<OperatorCommand> {
    std::iter::from_fn(|| replica.poll(now)).collect()
}

fn updates(replica: &mut OperatorReplica) -> Vec<OperatorUpdate> {
    std::iter::from_fn(|| replica.poll_update()).collect()
}

/// The settings that were applied, and the commands that ended with them.
fn applied(replica: &mut OperatorReplica) -> Vec<(OperatorKey, Setting, Vec<CommandId>)> {
    let of_update = |update| match update {
        OperatorUpdate::Apply { key, setting, commands, .. } => (key, setting, commands),
        OperatorUpdate::Failed { command, error } => panic!("{command:?}: {error:?}"),
    };
    updates(replica).into_iter().map(of_update).collect()
}

fn failed(replica: &mut OperatorReplica) -> Vec<(CommandId, CommandError)> {
    let of_update = |update| match update {
        OperatorUpdate::Failed { command, error } => (command, error),
        applied @ OperatorUpdate::Apply { .. } => panic!("{applied:?}"),
    };
    updates(replica).into_iter().map(of_update).collect()
}

/// Opens a connection on which the watch delivers these keys. Returns the watch.
fn connect(
    replica: &mut OperatorReplica,
    history: History,
    keys: &[(&str, u64, Stored)],
) -> OperationId {
    let last = keys.iter().map(|it| it.1).max().unwrap_or(0);
    replica.handle(0, OperatorEvent::Connected { history, last });
    let [OperatorCommand::Watch { operation }] = commands(replica, 0)[..] else { panic!() };
    assert_eq!(replica.state(), State::CatchingUp);
    for (name, revision, stored) in keys {
        let (key, stored) = (key(name), stored.clone());
        let revision = *revision;
        replica.handle(0, OperatorEvent::Changed { operation, key, revision, stored });
    }
    replica.handle(0, OperatorEvent::CaughtUp { operation, revision: last });
    assert_eq!(replica.state(), State::InSync);
    operation
}

/// The only write: operation, value and expected revision.
#[track_caller]
fn only_write(replica: &mut OperatorReplica, now: u64) -> (OperationId, Entry, u64) {
    match &commands(replica, now)[..] {
        [OperatorCommand::Write { operation, entry, expect, .. }] => {
            (*operation, entry.clone(), *expect)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_command_applies_when_the_watch_delivers_it() {
    for is_answer_first in [true, false] {
        let mut replica = OperatorReplica::default();
        let watch = connect(&mut replica, HISTORY, &[]);
        let id = replica.ask(10, disable(1));
        let (operation, entry, expect) = only_write(&mut replica, 10);
        assert_eq!((entry.setting, expect), (DISABLED, 0));
        let delivered = OperatorEvent::Changed {
            operation: watch,
            key: key("a"),
            revision: 1,
            stored: Stored::Put(entry),
        };
        let written = OperatorEvent::Written { operation, revision: 1 };
        let events = if is_answer_first { [written, delivered] } else { [delivered, written] };
        let [first, second] = events;
        replica.handle(20, first);
        if is_answer_first {
            assert_eq!(updates(&mut replica), [], "it is not delivered yet");
        }
        replica.handle(30, second);
        assert_eq!(applied(&mut replica), [(key("a"), DISABLED, vec![id])]);
        assert_eq!(commands(&mut replica, 5000), []);
        assert_eq!((updates(&mut replica), replica.counters().stored), (vec![], 1));
    }
}

#[test]
fn a_command_changes_the_last_value_and_expects_its_revision() {
    let mut replica = OperatorReplica::default();
    let drained = worker(AdminState::Drained, Some(7));
    let watch = connect(&mut replica, HISTORY, &[("a", 4, put(drained, "there", 1))]);
    assert_eq!(applied(&mut replica), [(key("a"), drained, vec![])]);
    let id = replica.ask(0, disable(2));
    let (_, entry, expect) = only_write(&mut replica, 0);
    assert_eq!((entry.setting, expect), (worker(AdminState::Disabled, Some(7)), 4));
    // A second command for the same key waits for the first one.
    let change = EntryChange::Weight(None);
    let second = replica.ask(0, CommandRequest { change, ..disable(3) });
    assert_eq!(commands(&mut replica, 0), []);
    let stored = Stored::Put(entry);
    replica
        .handle(0, OperatorEvent::Changed { operation: watch, key: key("a"), revision: 5, stored });
    assert_eq!(applied(&mut replica).remove(0).2, [id]);
    let (_, entry, expect) = only_write(&mut replica, 0);
    assert_eq!((entry.setting, expect), (DISABLED, 5));
    let stored = Stored::Put(entry);
    replica
        .handle(0, OperatorEvent::Changed { operation: watch, key: key("a"), revision: 6, stored });
    assert_eq!(applied(&mut replica).remove(0).2, [second]);
}

#[test]
fn after_a_lost_race_the_command_is_applied_to_the_new_value() {
    let mut replica = OperatorReplica::default();
    connect(&mut replica, HISTORY, &[]);
    let id = replica.ask(0, disable(1));
    for lost in 1..=4_u32 {
        let (operation, _, expect) = only_write(&mut replica, 0);
        assert_eq!(expect, u64::from(lost - 1));
        replica.handle(0, OperatorEvent::LostRace { operation });
        if lost == 4 {
            break;
        }
        let [OperatorCommand::Get { operation, .. }] = commands(&mut replica, 0)[..] else {
            panic!()
        };
        let found =
            Some((u64::from(lost), put(worker(AdminState::Drained, Some(lost)), "b", lost)));
        replica.handle(0, OperatorEvent::Got { operation, found });
        assert_eq!(applied(&mut replica).len(), 1, "the other command applies");
    }
    assert_eq!(commands(&mut replica, 0), []);
    assert_eq!(failed(&mut replica), [(id, CommandError::Conflict)]);
    assert_eq!(replica.counters().conflicts, 4);
}

#[test]
fn without_a_connection_a_command_ends_after_two_seconds_and_was_not_sent() {
    let mut replica = OperatorReplica::default();
    let id = replica.ask(1000, disable(1));
    assert_eq!(commands(&mut replica, 2999), []);
    assert_eq!((updates(&mut replica), replica.next_poll_ms()), (vec![], Some(3000)));
    assert_eq!(commands(&mut replica, 3000), []);
    assert_eq!(failed(&mut replica), [(id, CommandError::Unreachable)]);
    connect(&mut replica, HISTORY, &[]);
    assert_eq!(commands(&mut replica, 3000), [], "it is not sent later");
}

#[test]
fn a_command_without_an_answer_is_of_unknown_outcome() {
    let mut replica = OperatorReplica::default();
    connect(&mut replica, HISTORY, &[]);
    let id = replica.ask(0, disable(1));
    only_write(&mut replica, 0);
    replica.handle(100, OperatorEvent::Disconnected);
    assert_eq!((commands(&mut replica, 1999), updates(&mut replica)), (vec![], vec![]));
    assert_eq!(commands(&mut replica, 2000), []);
    assert_eq!(failed(&mut replica), [(id, CommandError::Unknown)]);
}

#[test]
fn a_command_that_was_stored_before_the_connection_was_lost_is_found_on_the_next() {
    let mut replica = OperatorReplica::default();
    connect(&mut replica, HISTORY, &[]);
    let id = replica.ask(0, disable(1));
    let (_, entry, _) = only_write(&mut replica, 0);
    connect(&mut replica, HISTORY, &[("a", 1, Stored::Put(entry))]);
    assert_eq!(applied(&mut replica), [(key("a"), DISABLED, vec![id])]);
    assert_eq!(commands(&mut replica, 0), []);
    // One that was not stored is written again, with the same value and the same expected revision.
    let request = CommandRequest { change: EntryChange::Weight(Some(3)), ..disable(2) };
    let id = replica.ask(0, request);
    let first = only_write(&mut replica, 0);
    let watch = connect(&mut replica, HISTORY, &[("a", 1, put(DISABLED, "here", 1))]);
    let second = only_write(&mut replica, 0);
    assert_eq!((&first.1, first.2), (&second.1, second.2));
    // The first write arrived after all.
    replica.handle(0, OperatorEvent::LostRace { operation: second.0 });
    let stored = Stored::Put(first.1);
    replica
        .handle(0, OperatorEvent::Changed { operation: watch, key: key("a"), revision: 2, stored });
    assert_eq!(applied(&mut replica).remove(0).2, [id]);
}

#[test]
fn a_change_that_is_not_newer_is_ignored() {
    let mut replica = OperatorReplica::default();
    let watch = connect(&mut replica, HISTORY, &[("a", 5, put(DISABLED, "x", 1))]);
    assert_eq!(applied(&mut replica).len(), 1);
    for revision in [5, 4] {
        let (operation, key, stored) = (watch, key("a"), put(ENABLED, "x", 2));
        replica.handle(0, OperatorEvent::Changed { operation, key, revision, stored });
    }
    assert_eq!((updates(&mut replica), replica.counters().stale), (vec![], 2));
    // All keys are read again.
    connect(
        &mut replica,
        HISTORY,
        &[("a", 5, put(DISABLED, "x", 1)), ("b", 6, put(DISABLED, "x", 1))],
    );
    assert_eq!(applied(&mut replica), [(key("b"), DISABLED, vec![])]);
    assert_eq!(replica.counters().histories_lost, 0);
}

#[test]
fn a_new_daemon_applies_only_what_differs_from_the_default() {
    let mut replica = OperatorReplica::default();
    let keys = [("a", 1, put(ENABLED, "x", 1)), ("b", 2, put(DISABLED, "x", 1))];
    let watch = connect(&mut replica, HISTORY, &keys);
    assert_eq!(applied(&mut replica), [(key("b"), DISABLED, vec![])]);
    // The same command again applies again: this daemon may have another state, set with `--local`.
    let (operation, key, stored) = (watch, key("a"), put(ENABLED, "x", 2));
    let changed = OperatorEvent::Changed { operation, key: key.clone(), revision: 3, stored };
    replica.handle(0, changed);
    assert_eq!(applied(&mut replica), [(key, ENABLED, vec![])]);
}

/// What a replica does that had these keys when it finds others in a new connection: what it applies, and what it
/// writes with which expected revision.
#[track_caller]
fn lost(
    history: History,
    before: &[(&str, u64, Stored)],
    after: &[(&str, u64, Stored)],
) -> (Vec<OperatorKey>, Vec<(OperatorKey, u64)>) {
    let mut replica = OperatorReplica::default();
    connect(&mut replica, HISTORY, before);
    applied(&mut replica);
    connect(&mut replica, history, after);
    assert_eq!(replica.counters().histories_lost, 1);
    let applied = applied(&mut replica).into_iter().map(|it| it.0).collect();
    let mut writes = Vec::new();
    for command in commands(&mut replica, 0) {
        let OperatorCommand::Write { operation, key, expect, .. } = command else { panic!() };
        writes.push((key, expect));
        let revision = 1000 + writes.len() as u64;
        replica.handle(0, OperatorEvent::Written { operation, revision });
    }
    assert_eq!((commands(&mut replica, 0), replica.next_poll_ms()), (vec![], None));
    assert_eq!(replica.counters().restored, writes.len() as u64);
    (applied, writes)
}

#[test]
fn entries_of_a_lost_history_are_written_again() {
    let before = [("a", 4, put(DISABLED, "x", 10)), ("b", 9, put(ENABLED, "x", 20))];
    let both = vec![(key("a"), 0), (key("b"), 0)];
    // The bucket was created again, is empty, or is older than what was read.
    assert_eq!(lost(History(2), &before, &[]), (vec![], both.clone()));
    assert_eq!(lost(HISTORY, &before, &[]), (vec![], both));
    let older = [("a", 4, put(DISABLED, "x", 10)), ("b", 5, put(DISABLED, "x", 5))];
    assert_eq!(lost(HISTORY, &before, &older), (vec![], vec![(key("b"), 5)]));
    // One key is missing, although the stream is longer than before.
    let shorter = [("c", 12, put(DISABLED, "x", 1)), ("b", 9, put(ENABLED, "x", 20))];
    assert_eq!(lost(HISTORY, &before, &shorter).1, [(key("a"), 0)]);
}

#[test]
fn a_command_that_was_stored_after_the_history_was_lost_is_adopted() {
    let before = [("a", 4, put(DISABLED, "x", 10))];
    let newer = [("a", 1, put(ENABLED, "y", 11))];
    assert_eq!(lost(History(2), &before, &newer), (vec![key("a")], vec![]));
    // Another daemon has written the same again.
    let mut replica = OperatorReplica::default();
    connect(&mut replica, HISTORY, &before);
    updates(&mut replica);
    connect(&mut replica, History(2), &[("a", 1, put(DISABLED, "x", 10))]);
    assert_eq!((updates(&mut replica), commands(&mut replica, 0)), (vec![], vec![]));
    // It does so while this daemon writes.
    connect(&mut replica, History(3), &[]);
    let (operation, ..) = only_write(&mut replica, 0);
    replica.handle(0, OperatorEvent::LostRace { operation });
    let [OperatorCommand::Get { operation, .. }] = commands(&mut replica, 0)[..] else { panic!() };
    let found = Some((1, put(DISABLED, "x", 10)));
    replica.handle(0, OperatorEvent::Got { operation, found });
    assert_eq!((updates(&mut replica), commands(&mut replica, 0)), (vec![], vec![]));
}

#[test]
fn a_lost_history_is_remembered_until_it_was_read() {
    let mut replica = OperatorReplica::default();
    connect(&mut replica, HISTORY, &[("a", 4, put(DISABLED, "x", 10))]);
    updates(&mut replica);
    replica.handle(0, OperatorEvent::Connected { history: History(2), last: 9 });
    replica.handle(0, OperatorEvent::Disconnected);
    // An older value with a higher revision than before.
    connect(&mut replica, History(2), &[("a", 9, put(ENABLED, "x", 5))]);
    assert_eq!(updates(&mut replica), []);
    let (operation, entry, expect) = only_write(&mut replica, 0);
    assert_eq!((entry.setting, expect), (DISABLED, 9));
    // The server does not store it now: it is tried again a second later.
    let reason = "full".to_owned();
    replica.handle(50, OperatorEvent::Rejected { operation, reason });
    assert_eq!((commands(&mut replica, 1049), replica.next_poll_ms()), (vec![], Some(1050)));
    only_write(&mut replica, 1050);
}

#[test]
fn a_rejected_command_has_the_reason() {
    let mut replica = OperatorReplica::default();
    connect(&mut replica, HISTORY, &[("b", 1, Stored::Unreadable)]);
    let id = replica.ask(0, disable(1));
    let (operation, ..) = only_write(&mut replica, 0);
    replica.handle(0, OperatorEvent::Rejected { operation, reason: "full".to_owned() });
    assert_eq!(failed(&mut replica), [(id, CommandError::Rejected("full".to_owned()))]);
    // A value of another version is not replaced.
    let id = replica.ask(0, CommandRequest { key: key("b"), ..disable(1) });
    assert_eq!(commands(&mut replica, 0), []);
    assert_eq!(failed(&mut replica), [(id, CommandError::Unreadable)]);
}

#[test]
fn a_deleted_key_is_the_default_and_can_be_written() {
    let mut replica = OperatorReplica::default();
    let watch = connect(&mut replica, HISTORY, &[("a", 1, put(DISABLED, "x", 1))]);
    updates(&mut replica);
    let (operation, key, stored) = (watch, key("a"), Stored::Deleted);
    replica.handle(0, OperatorEvent::Changed { operation, key: key.clone(), revision: 2, stored });
    assert_eq!(applied(&mut replica), [(key, ENABLED, vec![])]);
    assert_eq!(replica.entries().count(), 0);
    replica.ask(0, disable(1));
    assert_eq!(only_write(&mut replica, 0).2, 2);
}

#[test]
fn the_number_of_waiting_commands_is_limited() {
    let mut replica = OperatorReplica::default();
    let ids: Vec<_> = (0..65).map(|_| replica.ask(0, disable(1))).collect();
    assert_eq!(failed(&mut replica), [(ids[64], CommandError::Busy)]);
}
