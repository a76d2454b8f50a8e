//! The state of the cluster as JSON and as metrics.

use std::fmt::Write as _;

use cluster::{
    Author, CheckReport, CheckedKey, ClusterStatus, Counters, Entry, LimitCounters, MachineStatus,
    OperatorCounters, OperatorKey, OperatorStatus, Setting, State, TableStatus,
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

/// A metric of each shared pool: name, kind, help, value.
type Family = (&'static str, &'static str, &'static str, fn(&TableStatus) -> f64);

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
const FAMILIES: &[Family] = &[
    (
        "roadstead_cluster_in_sync",
        "gauge",
        "1 while the bindings of the pool are read and written as they happen.",
        |it| f64::from(u8::from(it.status.state == State::InSync)),
    ),
    ("roadstead_cluster_keys", "gauge", "Clients whose binding this daemon knows.", |it| {
        it.status.entries as f64
    }),
    ("roadstead_cluster_waiting", "gauge", "Bindings that wait to be written.", |it| {
        it.status.pending as f64
    }),
    (
        "roadstead_cluster_behind",
        "gauge",
        "Changes that the NATS servers have and that were not read.",
        |it| it.behind as f64,
    ),
    (
        "roadstead_cluster_machines",
        "gauge",
        "Other machines that share the bindings and were heard in the last 2 minutes.",
        |it| it.machines.len() as f64,
    ),
    (
        "roadstead_cluster_proof_age_seconds",
        "gauge",
        "Time since another machine was found to have the same bindings; -1: never.",
        |it| it.proof_age_ms.map_or(-1.0, seconds),
    ),
    (
        "roadstead_cluster_writes_total",
        "counter",
        "Bindings that were sent to the NATS servers.",
        |it| it.counters.written as f64,
    ),
    (
        "roadstead_cluster_write_failures_total",
        "counter",
        "Bindings that the NATS servers did not store, or whose outcome is unknown.",
        |it| (it.counters.rejected + it.counters.unknown) as f64,
    ),
    (
        "roadstead_cluster_conflicts_total",
        "counter",
        "Clients that two machines bound at the same time; one binding was replaced.",
        |it| it.counters.conflicts as f64,
    ),
    (
        "roadstead_cluster_differing_shards_total",
        "counter",
        "Parts of the table that differed from those of another machine and were read again.",
        |it| it.counters.shard_mismatches as f64,
    ),
];

/// A metric of hints about the health of servers: name, kind, help, value.
type HintFamily = (&'static str, &'static str, &'static str, fn(&ClusterStatus) -> u64);

const HINT_FAMILIES: &[HintFamily] = &[
    (
        "roadstead_cluster_health_hints_sent_total",
        "counter",
        "Changes of the health of servers that this daemon has reported to other machines.",
        |it| it.hints.sent,
    ),
    (
        "roadstead_cluster_health_hints_received_total",
        "counter",
        "Changes of the health of servers that other machines have reported.",
        |it| it.hints.received,
    ),
];

/// A metric of limits of addresses: name, kind, help, value.
type LimitFamily = (&'static str, &'static str, &'static str, fn(&LimitCounters) -> u64);

const LIMIT_FAMILIES: &[LimitFamily] = &[
    (
        "roadstead_cluster_limit_reports_sent_total",
        "counter",
        "Messages with which this daemon has reported what addresses used.",
        |it| it.sent,
    ),
    (
        "roadstead_cluster_limit_reports_received_total",
        "counter",
        "Messages with which other machines have reported what addresses used.",
        |it| it.received,
    ),
];

/// A metric of the commands that machines share: name, kind, help, value.
type CommandFamily = (&'static str, &'static str, &'static str, fn(&OperatorStatus) -> u64);

const COMMAND_FAMILIES: &[CommandFamily] = &[
    (
        "roadstead_cluster_commands_in_sync",
        "gauge",
        "1 while the commands of operators are read and stored as they happen.",
        |it| u64::from(it.state == State::InSync),
    ),
    (
        "roadstead_cluster_command_entries",
        "gauge",
        "Servers and fallbacks for which operators have set another state or weight than the default.",
        |it| it.entries.len() as u64,
    ),
    (
        "roadstead_cluster_commands_stored_total",
        "counter",
        "Commands of this daemon that were stored for all machines.",
        |it| it.counters.stored,
    ),
    (
        "roadstead_cluster_commands_failed_total",
        "counter",
        "Commands of this daemon that were not stored, or whose outcome is unknown.",
        |it| it.counters.failed,
    ),
    (
        "roadstead_cluster_command_conflicts_total",
        "counter",
        "Writes of commands that were repeated because another machine was faster.",
        |it| it.counters.conflicts,
    ),
    (
        "roadstead_cluster_commands_restored_total",
        "counter",
        "Entries that this daemon stored again because the NATS servers had lost them.",
        |it| it.counters.restored,
    ),
];

pub(super) fn metrics(status: &ClusterStatus) -> String {
    let mut text = String::new();
    let mut family = |name: &str, kind: &str, help: &str, lines: &dyn Fn(&mut String)| {
        let written = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        debug_assert!(written.is_ok(), "memory takes all");
        lines(&mut text);
    };
    let single = |name: &'static str, value: u64| {
        move |text: &mut String| text.push_str(&format!("{name} {value}\n"))
    };
    let name = "roadstead_cluster_connected";
    let help = "1 while there is a connection to a NATS server.";
    family(name, "gauge", help, &single(name, u64::from(status.server.is_some())));
    let name = "roadstead_cluster_reconnects_total";
    let help = "Connections to NATS servers that were lost.";
    family(name, "counter", help, &single(name, status.reconnects));
    for (name, kind, help, value) in HINT_FAMILIES {
        family(name, kind, help, &single(name, value(status)));
    }
    if let Some(limits) = &status.limits {
        for (name, kind, help, value) in LIMIT_FAMILIES {
            family(name, kind, help, &single(name, value(limits)));
        }
    }
    if let Some(operator) = &status.operator {
        for (name, kind, help, value) in COMMAND_FAMILIES {
            family(name, kind, help, &single(name, value(operator)));
        }
    }
    for (name, kind, help, value) in FAMILIES {
        family(name, kind, help, &|text| {
            for table in &status.tables {
                text.push_str(&format!("{name}{{pool=\"{}\"}} {}\n", table.name, value(table)));
            }
        });
    }
    text
}
