//! The state of the cluster as JSON and as metrics.

use cluster::{
    Author, CheckReport, CheckedKey, ClusterStatus, Counters, Entry, LimitCounters, MachineStatus,
    OperatorCounters, OperatorKey, OperatorStatus, Setting, State, TableStatus,
};
use gateway::metrics::{
    ClusterCommands, ClusterConnection, ClusterLimits, ClusterMetrics, ClusterPool,
};
use serde_json::{Value, json};

pub(super) fn status(status: &ClusterStatus) -> String {
    let ClusterStatus {
        site,
        machine,
        origin,
        server,
        reconnects,
        trouble,
        tables,
        operator,
        hints,
        limits,
    } = status;
    let json = json!({
        "site": site,
        "machine": machine,
        "origin": format!("{origin:016x}"),
        "server": server,
        "reconnects": reconnects,
        "trouble": trouble,
        "pools": tables.iter().map(table).collect::<Vec<_>>(),
        "commands": operator.as_ref().map(commands),
        "health_hints": { "sent": hints.sent, "received": hints.received },
        "limit_reports": limits.map(|it| json!({ "sent": it.sent, "received": it.received })),
    });
    format!("{json:#}")
}

/// What operators have set on all machines.
fn commands(operator: &OperatorStatus) -> Value {
    let OperatorStatus { state, revision, counters, entries, trouble } = operator;
    let OperatorCounters { stored, failed, conflicts, histories_lost, restored, .. } = counters;
    json!({
        "state": state.as_str(),
        "is_read": *state == State::InSync,
        "revision": revision,
        "trouble": trouble,
        "entries": entries.iter().map(|(key, entry)| command(key, entry)).collect::<Vec<_>>(),
        "stored": stored,
        "failed": failed,
        "conflicts": conflicts,
        "new_histories": histories_lost,
        "restored": restored,
    })
}

fn command(key: &OperatorKey, Entry { setting, author }: &Entry) -> Value {
    let mut json = match (key, setting) {
        (OperatorKey::Worker { pool, worker }, Setting::Worker { admin_state, weight }) => {
            json!({ "pool": pool, "server": worker, "state": admin_state.as_str(), "weight": weight })
        }
        (key, setting) => {
            let state = if *setting == Setting::Fallback(true) { "on" } else { "off" };
            json!({ "pool": key.pool(), "fallback": state })
        }
    };
    let Author { who, machine, when } = author;
    json["who"] = who.as_str().into();
    json["machine"] = machine.as_str().into();
    json["when"] = when.as_str().into();
    json
}

fn table(table: &TableStatus) -> Value {
    let TableStatus { name, status, counters, behind, proof_age_ms, rejected, machines } = table;
    let Counters {
        written, acknowledged, lost_races, rejected: refused, unknown, conflicts, ..
    } = counters;
    json!({
        "name": name,
        "state": status.state.as_str(),
        "keys": status.entries,
        "keys_stored": status.listed,
        "revision": status.revision,
        "behind": behind,
        "waiting": status.pending,
        "in_flight": status.in_flight,
        "proof_age_seconds": proof_age_ms.map(seconds),
        "incomplete_shards": status.incomplete_shards,
        "write_error": rejected,
        "machines": machines.iter().map(machine).collect::<Vec<_>>(),
        "writes": {
            "sent": written,
            "accepted": acknowledged,
            "lost_races": lost_races,
            "rejected": refused,
            "unknown": unknown,
        },
        "conflicts": conflicts,
        "snapshots": counters.snapshots,
        "resumes": counters.resumes,
        "new_histories": counters.epochs,
        "differing_shards": counters.shard_mismatches,
        "evicted": counters.evicted,
    })
}

fn machine(machine: &MachineStatus) -> Value {
    let MachineStatus { name, origin, heard_ms_ago, revision, entries } = machine;
    json!({
        "name": name,
        "origin": format!("{:016x}", origin.0),
        "heard_seconds_ago": seconds(*heard_ms_ago),
        "revision": revision,
        "keys": entries,
    })
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds of an age are far below 2^53")]
fn seconds(ms: u64) -> f64 {
    ms as f64 / 1000.0
}

pub(super) fn check(report: &CheckReport) -> String {
    let CheckReport { compared, keys, differing, failed } = report;
    let side = |side: &Option<(u64, u64)>| {
        side.map(|(target, revision)| {
            json!({ "worker": format!("{target:016x}"), "revision": revision })
        })
    };
    let key = |it: &CheckedKey| {
        let CheckedKey { table, machine, key, here, there } = it;
        json!({ "pool": table, "machine": machine, "key": key, "here": side(here), "there": side(there) })
    };
    let json = json!({
        "compared": compared,
        "differing": differing,
        "keys": keys.iter().map(key).collect::<Vec<_>>(),
        "not_compared": failed,
    });
    format!("{json:#}")
}

pub(super) fn metrics(status: &ClusterStatus) -> String {
    let ClusterStatus { server, reconnects, tables, operator, hints, limits, .. } = status;
    let metrics = ClusterMetrics {
        connection: ClusterConnection {
            connected: u8::from(server.is_some()),
            reconnects: *reconnects,
            hints_sent: hints.sent,
            hints_received: hints.received,
        },
        limits: limits.map(|LimitCounters { sent, received }| ClusterLimits { sent, received }),
        commands: operator.as_ref().map(|operator| ClusterCommands {
            in_sync: u8::from(operator.state == State::InSync),
            entries: operator.entries.len(),
            stored: operator.counters.stored,
            failed: operator.counters.failed,
            conflicts: operator.counters.conflicts,
            restored: operator.counters.restored,
        }),
        pools: tables.iter().map(|table| (table.name.clone(), pool(table))).collect(),
    };
    metrics.render()
}

fn pool(table: &TableStatus) -> ClusterPool {
    let TableStatus { status, counters, behind, proof_age_ms, machines, .. } = table;
    ClusterPool {
        in_sync: u8::from(status.state == State::InSync),
        keys: status.entries,
        waiting: status.pending,
        behind: *behind,
        machines: machines.len(),
        proof_age_seconds: proof_age_ms.map_or(-1.0, seconds),
        writes: counters.written,
        write_failures: counters.rejected + counters.unknown,
        conflicts: counters.conflicts,
        differing_shards: counters.shard_mismatches,
    }
}
