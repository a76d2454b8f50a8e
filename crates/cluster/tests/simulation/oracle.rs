//! What must hold after the quiet time.

use std::collections::BTreeMap;

use cluster::{Change, ChangeKind, Key, Listed, State, Subject, Value};

use crate::world::{CLIENTS, DAEMONS, LATE, UNBOUND, World, client};

/// The bindings in the bucket.
fn stored(world: &World) -> BTreeMap<Key, Listed> {
    let changes = world.bucket.changes(0).into_iter();
    changes
        .filter_map(|change| match change {
            Change {
                subject: Subject::Client(key),
                revision,
                kind: ChangeKind::Put(Value::Binding { target, .. }),
            } => Some((key, Listed { key, target, revision })),
            _ => None,
        })
        .collect()
}

pub(crate) fn judge(world: &World) -> Vec<String> {
    let mut violations = world.violations.clone();
    let stored = stored(world);
    let quiet_at = world.plan.faults_ms;
    // One write may be in flight: a mark.
    for (number, daemon) in world.daemons.iter().enumerate() {
        daemon.replica.check();
        let status = daemon.replica.status();
        if status.state != State::InSync || status.pending > 0 || status.in_flight > 1 {
            violations.push(format!("{number} is not in sync: {status:?}"));
        }
        let epochs = daemon.replica.counters().epochs;
        if epochs > 0 && !world.is_replaced && world.plan.settings.lifetime_ms > 100_000 {
            violations.push(format!("{number} saw {epochs} new epochs of the same bucket"));
        }
        if world.plan.is_small {
            continue;
        }
        if status.incomplete_shards > 0 {
            violations
                .push(format!("{number}: {} shards are incomplete", status.incomplete_shards));
        }
        let is_recent = |at: u64| at >= daemon.clock_ms + quiet_at;
        if !status.proof.is_some_and(|proof| is_recent(proof.at_ms)) {
            violations.push(format!("{number} has no recent proof: {:?}", status.proof));
        }
        let listed: Vec<_> = (0..=u8::MAX).flat_map(|it| daemon.replica.listing(it)).collect();
        let all: Vec<_> = stored.values().copied().collect();
        for difference in cluster::differences(&listed, &all) {
            violations.push(format!("{number} differs from the bucket: {difference:?}"));
        }
    }
    for number in 0..CLIENTS + UNBOUND + LATE {
        judge_client(world, &stored, client(number), &mut violations);
    }
    violations
}

/// Every daemon that knows a client has the same target for it.
fn judge_client(
    world: &World,
    stored: &BTreeMap<Key, Listed>,
    key: Key,
    violations: &mut Vec<String>,
) {
    let peek = |daemon: usize| world.daemons[daemon].replica.peek(world.clock(daemon), &key);
    let mut found: Vec<_> = (0..DAEMONS).map(peek).collect();
    if world.plan.has_reader && !world.plan.is_small {
        let lifetime_ms = world.plan.settings.lifetime_ms;
        let read = |it: usize| world.daemons[it].reader.find(world.clock(it), &key, lifetime_ms);
        found.extend((0..DAEMONS).map(read));
    }
    if let Some(listed) = stored.get(&key) {
        // An entry that no daemon has used for its lifetime is not bound, although the server has it a little longer.
        let is_one = found.iter().flatten().all(|target| *target == listed.target);
        if !is_one {
            violations.push(format!("{key:?} is {listed:?} and has {found:?}"));
        }
    } else if world.unbound.contains(&key)
        && !world.is_replaced
        && !world.plan.is_small
        && found.iter().any(Option::is_some)
    {
        violations.push(format!("{key:?} was unbound and has {found:?}"));
    }
}
