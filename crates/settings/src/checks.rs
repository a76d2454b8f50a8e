//! Rules between options.
//!
//! What it is: one small function for each rule that concerns two options or two sections. What it depends on: the
//! result of the walk. What it must never depend on: the text of the file.

mod access_log;
mod addresses;
mod admin;
mod affinity;
mod balance;
mod cluster;
mod database_checks;
mod database_warnings;
mod dead_letter_tables;
mod frames;
mod health;
mod http;
mod identity;
mod memory_warnings;
mod pool_links;
mod pool_names;
mod routes;

use std::collections::HashMap;
use std::net::SocketAddr;

use crate::fault::{Fault, Trust, reject};
use crate::model::{Address, Configuration, Protocol};
use crate::options::{Group, Value, WorkerKind};
use crate::remarks::Remark;
use crate::walk::Section;

/// Returns remarks about options that are valid but probably not intended.
#[must_use]
pub fn warnings(configuration: &Configuration) -> Vec<Remark> {
    let mut remarks = routes::shadowed(configuration);
    remarks.extend(database_warnings::database_warnings(configuration));
    remarks.extend(memory_warnings::memory_warnings(configuration));
    remarks
}

/// Adds a fault for every violated rule.
pub(crate) fn check(sections: &[Section], faults: &mut Vec<Fault>) {
    let of = |kind: &str| sections.iter().filter(|s| s.kind.name == kind).collect::<Vec<_>>();
    let (pools, listeners) = (of("pool"), of("listener"));
    for pool in &pools {
        worker_kind(pool, faults);
        if pool.worker == Some(WorkerKind::Database) {
            database_checks::check(pool, faults);
        }
        if pool.worker == Some(WorkerKind::Servers) {
            http::reject_workers(pool, faults);
        } else if !matches!(pool.worker, Some(WorkerKind::Database | WorkerKind::Handler)) {
            frames::framing(pool, faults);
        }
        identity::check(&pool.group, faults);
        identity::check_terminal(&pool.group, faults);
        if let Some(workers) = pool.group.inner("workers") {
            worker_counts(workers, faults);
        }
    }
    if pools.is_empty() {
        faults.push(
            Fault::at(0..0, "there is no pool to answer requests")
                .expected("expected a section `[pool.NAME]`")
                .suggestion("add `[pool.main]` with a `program` or a `database`")
                .trust(Trust::Absent),
        );
    }
    for pool in &pools {
        balance::check(pool, faults);
        affinity::check(pool, &listeners, &pools, faults);
        cluster::check_pool(pool, !of("cluster").is_empty(), faults);
        health::check(pool, faults);
        frames::check_then_session(pool, &pools, faults);
        http::serving(pool, &pools, faults);
        http::require_http(pool, faults);
        http::check_retry_on(pool, faults);
    }
    for section in sections {
        pool_names::check(&section.group, &pools, faults);
        if let Some(fallback) = section.group.inner("fallback") {
            pool_names::check(fallback, &pools, faults);
        }
    }
    for section in of("admin") {
        admin::check(section, faults);
    }
    for section in of("cluster") {
        cluster::check(section, faults);
    }
    for section in of("access_log") {
        access_log::check(section, faults);
    }
    for listener in listeners {
        frames::check_reply_style(listener, faults);
        addresses::check(listener, faults);
        cluster::check_listener(listener, !of("cluster").is_empty(), faults);
        http::speaks(listener, &pools, faults);
        routes::check(listener, &pools, faults);
    }
    pool_links::check(sections, &pools, faults);
    cycles(&pools, faults);
    http::addresses(&pools, faults);
    dead_letter_tables::check(&pools, faults);
    check_duplicate_addresses(sections, faults);
}

/// A pool must have exactly one kind of worker: programs, a database, servers or a handler.
fn worker_kind(pool: &Section, faults: &mut Vec<Fault>) {
    let title = format!("`[pool.{}]`", pool.name);
    let kinds = ["program", "database", "servers", "handler"];
    let given: Vec<_> =
        kinds.into_iter().filter_map(|kind| Some((kind, pool.group.key(kind)?))).collect();
    match &given[..] {
        [] => faults.push(
            Fault::at(pool.place.clone(), format!("{title} has neither `program` nor `database`"))
                .expected("one of them is required")
                .suggestion(
                    "add `program = [\"perl\", \"parse.pl\"]` or `database = \"sqlite:hits.db\"`",
                )
                .trust(Trust::Absent),
        ),
        [(one, first), (other, second), ..] => {
            let later = if first.start > second.start { first } else { second };
            reject! { faults;
                Some(later.clone()) => format!("{title} has both `{one}` and `{other}`"),
                    expected "a pool has one kind of worker",
                    help "make two pools of it; `then` hands a program's reply to the other";
            }
        }
        [_] => {}
    }
}

/// `min` and `spare` must be at most `max`.
fn worker_counts(workers: &Group, faults: &mut Vec<Fault>) {
    let Some(max) = workers.number("max") else { return };
    for name in ["min", "spare"] {
        let Some(number) = workers.number(name) else { continue };
        // A default is never above `max`: 1 and 0 are in every range.
        let is_range = workers.place("max") == workers.place(name);
        let fix = match is_range {
            true => format!("write \"{max}..{number}\""),
            false => format!("lower `{name}`, or raise `max` to {number}"),
        };
        reject! { faults;
            workers.place(name), if number > max
                => format!("`{name}` = {number} is more than `max` = {max}"),
                expected format!("expected at most {max}"),
                help fix;
        }
    }
}

/// A reply that is passed from pool to pool must finally reach a client.
fn cycles(pools: &[&Section], faults: &mut Vec<Fault>) {
    let index: HashMap<&str, usize> =
        pools.iter().enumerate().map(|(at, pool)| (pool.name.as_str(), at)).collect();
    let next: Vec<Option<usize>> =
        pools.iter().map(|pool| index.get(pool.group.text("then")?).copied()).collect();
    // Every pool has at most one `then`, so a search that marks the visited pools finds each cycle once.
    let mut walked_from = vec![None; pools.len()];
    for start in 0..pools.len() {
        let mut at = start;
        while walked_from[at].is_none() {
            walked_from[at] = Some(start);
            match next[at] {
                Some(then) => at = then,
                None => break,
            }
        }
        if next[at].is_none() || walked_from[at] != Some(start) {
            continue;
        }
        let mut ring = vec![at];
        while let Some(then) = ring.last().and_then(|last| next[*last]).filter(|then| *then != at) {
            ring.push(then);
        }
        faults.push(cycle(pools, &ring));
    }
}

fn cycle(pools: &[&Section], ring: &[usize]) -> Fault {
    let mut names: Vec<&str> = ring.iter().map(|at| pools[*at].name.as_str()).collect();
    names.push(names[0]);
    // The fault is at the `then` that stands last in the file, because it closes the cycle.
    let place = ring
        .iter()
        .filter_map(|at| pools[*at].group.place("then"))
        .max_by_key(|place| place.start)
        .expect("a pool of a cycle has a `then`");
    Fault::at(place, format!("the `then` of these pools form a cycle: {}", names.join(" → ")))
        .expected("a reply would never reach its client")
        .suggestion("remove one `then` of the cycle")
}

/// Two listeners, or a listener and the admin address, must not use the same address.
fn check_duplicate_addresses(sections: &[Section], faults: &mut Vec<Fault>) {
    let mut taken: Vec<(&Section, &Address)> = Vec::new();
    for section in sections {
        let Some(Value::Address(address)) = section.group.value("listen") else { continue };
        // UDP and TCP have separate ports.
        let datagrams = |section: &Section| section.group.is("protocol", Protocol::Datagrams);
        let conflict = taken.iter().find(|(other, there)| {
            overlap(there, address)
                && (datagrams(other) == datagrams(section) || matches!(there, Address::Unix(_)))
        });
        if let Some((other, there)) = conflict {
            let owner = match other.kind.named {
                true => format!("`[{}.{}]`", other.kind.name, other.name),
                false => format!("`[{}]`", other.kind.name),
            };
            reject! { faults;
                section.group.place("listen") => format!("`{address}` is taken by {owner}"),
                    expected format!("{owner} listens on `{there}`"),
                    help "choose another port, or 0 to let the system choose";
            }
        }
        taken.push((section, address));
    }
}

/// Whether the system would refuse the second of two addresses. With port 0 each listener gets another port.
fn overlap(one: &Address, other: &Address) -> bool {
    match (one, other) {
        (Address::Unix(one), Address::Unix(other)) => one == other,
        (Address::Inherited(one), Address::Inherited(other)) => one == other,
        (Address::Internet(one), Address::Internet(other)) => {
            let takes = |one: &SocketAddr, other: &SocketAddr| {
                // The unspecified IPv6 address includes every IPv4 address.
                one.ip().is_unspecified() && (one.is_ipv6() || other.is_ipv4())
            };
            let overlap = takes(one, other) || takes(other, one) || one.ip() == other.ip();
            one.port() != 0 && one.port() == other.port() && overlap
        }
        _ => false,
    }
}
