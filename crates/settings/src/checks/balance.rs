//! Rules between the options of balancing.

use crate::fault::Fault;
use crate::model::{BalanceMethod, Dispatch, Idempotent};
use crate::options::WorkerKind;
use crate::options::{Group, Value};
use crate::walk::Section;

pub(super) fn check(pool: &Section, faults: &mut Vec<Fault>) {
    let group = &pool.group;
    if let Some(fallback) = group.inner("fallback") {
        one_answer(fallback, group, faults);
    }
    let hashed = group.is("balance", BalanceMethod::Hash);
    if let (Some(place), false) = (group.key("hash"), hashed) {
        faults.push(
            Fault::at(place, "`hash` has no effect with this `balance`")
                .expected("`hash` requires `balance = \"hash\"`")
                .suggestion("write `balance = \"hash\"`, or remove it"),
        );
    }
    slow_start(group, faults);
    check_idempotent(pool, faults);
    check_hold_timeout(pool, faults);
    if pool.worker == Some(WorkerKind::Database) {
        for (name, given) in [("sticky", group.key("sticky")), ("hash", group.key("hash"))] {
            let Some(place) = given else { continue };
            faults.push(
                Fault::at(place, format!("`{name}` has no effect in a database pool"))
                    .expected("its workers process requests of all clients in one batch")
                    .suggestion("remove it"),
            );
        }
    }
}

/// `slow_start` requires a balance method with weights.
fn slow_start(group: &Group, faults: &mut Vec<Fault>) {
    let (Some(place), Some(schedule)) = (group.key("slow_start"), group.get("balance")) else {
        return;
    };
    let why = match schedule {
        BalanceMethod::Hash => {
            "with `balance = \"hash\"`, keys would move between servers at each step"
        }
        BalanceMethod::First => "`balance = \"first\"` ignores weights",
        _ => return,
    };
    let zero = matches!(group.value("slow_start"), Some(Value::Time(time)) if time.is_zero());
    if !zero {
        faults.push(
            Fault::at(place, "`slow_start` has no effect in this pool")
                .expected(why)
                .suggestion("remove it, or choose another `balance`"),
        );
    }
}

/// `idempotent` is rejected for workers whose requests are never repeated.
fn check_idempotent(pool: &Section, faults: &mut Vec<Fault>) {
    let group = &pool.group;
    let Some(place) = group.key("idempotent") else { return };
    let session = group.is("dispatch", Dispatch::Session);
    let all = group.is("idempotent", Idempotent::All);
    let (message, expected) = match pool.worker {
        Some(WorkerKind::Database) => (
            "`idempotent` has no effect in a database pool",
            "a batch is repeated only if a key of its table makes that safe",
        ),
        Some(WorkerKind::Handler) => (
            "`idempotent` has no effect in a handler pool",
            "requests that a handler has received are never repeated",
        ),
        _ if session && all => (
            "a request of a `session` program cannot be repeated on another program",
            "`idempotent = \"all\"` requires another `dispatch`",
        ),
        _ => return,
    };
    faults.push(Fault::at(place, message).expected(expected).suggestion("remove it"));
}

/// `hold_timeout` with `sticky` is for servers only. A program that has ended does not come back, and the program that
/// replaces it has no data of its clients. Only a server keeps its identity.
fn check_hold_timeout(pool: &Section, faults: &mut Vec<Fault>) {
    let others = pool.worker.is_some_and(|worker| worker != WorkerKind::Servers);
    let Some(queue) = pool.group.inner("queue") else { return };
    let held = matches!(queue.value("hold_timeout"), Some(Value::Time(hold)) if !hold.is_zero());
    if let (Some(place), true, true) =
        (queue.key("hold_timeout"), held && others, pool.group.key("sticky").is_some())
    {
        faults.push(
            Fault::at(place, "`hold_timeout` waits until the worker of a bound client is available again")
                .expected(
                    "only servers become available again; a program is replaced by a new one without the client's state",
                )
                .suggestion("remove it; `redispatch` in `sticky` determines whether the client is bound to another worker"),
        );
    }
}

/// A fallback has exactly one answer: a line, a file, another pool or a redirect.
fn one_answer(fallback: &Group, pool: &Group, faults: &mut Vec<Fault>) {
    let mut given =
        ["line", "file", "pool", "redirect"].into_iter().filter_map(|name| fallback.key(name));
    match (given.next(), given.next()) {
        (Some(one), Some(other)) => {
            let second = if one.start > other.start { one } else { other };
            faults.push(
                Fault::at(second, "`fallback` has two replies")
                    .expected("expected one of `line`, `file`, `pool` and `redirect`")
                    .suggestion("keep one of them"),
            );
        }
        (None, _) => {
            let place = pool.key("fallback").unwrap_or(0..0);
            faults.push(
                Fault::at(place, "`fallback` has no reply")
                    .expected("expected one of `line`, `file`, `pool` and `redirect`")
                    .suggestion("add `line = \"busy, come back later\"`"),
            );
        }
        _ => {}
    }
}
