//! Rules between the options of balancing.

use crate::fault::{Fault, reject};
use crate::model::{BalanceMethod, Dispatch, Idempotent};
use crate::options::{Group, Value, WorkerKind};
use crate::walk::Section;

pub(super) fn check(pool: &Section, faults: &mut Vec<Fault>) {
    let group = &pool.group;
    if let Some(fallback) = group.inner("fallback") {
        one_answer(fallback, group, faults);
    }
    reject! { faults;
        group.key("hash"), if !group.is("balance", BalanceMethod::Hash)
            => "`hash` has no effect with this `balance`",
            expected "`hash` requires `balance = \"hash\"`",
            help "write `balance = \"hash\"`, or remove it";
    }
    slow_start(group, faults);
    check_idempotent(pool, faults);
    check_hold_timeout(pool, faults);
    for name in ["sticky", "hash"] {
        reject! { faults;
            group.key(name), if pool.worker == Some(WorkerKind::Database)
                => format!("`{name}` has no effect in a database pool"),
                expected "its workers process requests of all clients in one batch",
                help "remove it";
        }
    }
}

/// `slow_start` requires a balance method with weights.
fn slow_start(group: &Group, faults: &mut Vec<Fault>) {
    let why = match group.get("balance") {
        Some(BalanceMethod::Hash) => {
            "with `balance = \"hash\"`, keys would move between servers at each step"
        }
        Some(BalanceMethod::First) => "`balance = \"first\"` ignores weights",
        _ => return,
    };
    let zero = matches!(group.value("slow_start"), Some(Value::Time(time)) if time.is_zero());
    reject! { faults;
        group.key("slow_start"), if !zero => "`slow_start` has no effect in this pool",
            expected why,
            help "remove it, or choose another `balance`";
    }
}

/// `idempotent` is rejected for workers whose requests are never repeated.
fn check_idempotent(pool: &Section, faults: &mut Vec<Fault>) {
    let group = &pool.group;
    let (worker, at) = (pool.worker, || group.key("idempotent"));
    let is_session = !matches!(worker, Some(WorkerKind::Database | WorkerKind::Handler))
        && group.is("dispatch", Dispatch::Session);
    reject! { faults;
        at(), if worker == Some(WorkerKind::Database)
            => "`idempotent` has no effect in a database pool",
            expected "a batch is repeated only if a key of its table makes that safe",
            help "remove it";
        at(), if worker == Some(WorkerKind::Handler)
            => "`idempotent` has no effect in a handler pool",
            expected "requests that a handler has received are never repeated",
            help "remove it";
        at(), if is_session && group.is("idempotent", Idempotent::All)
            => "a request of a `session` program cannot be repeated on another program",
            expected "`idempotent = \"all\"` requires another `dispatch`",
            help "remove it";
    }
}

/// `hold_timeout` with `sticky` is for servers only. A program that has ended does not come back, and the program that
/// replaces it has no data of its clients. Only a server keeps its identity.
fn check_hold_timeout(pool: &Section, faults: &mut Vec<Fault>) {
    let others = pool.worker.is_some_and(|worker| worker != WorkerKind::Servers);
    let Some(queue) = pool.group.inner("queue") else { return };
    let held = matches!(queue.value("hold_timeout"), Some(Value::Time(hold)) if !hold.is_zero());
    reject! { faults;
        queue.key("hold_timeout"), if held && others && pool.group.key("sticky").is_some()
            => "`hold_timeout` waits until the worker of a bound client is available again",
            expected "only servers become available again; a program is replaced by a new one without the client's state",
            help "remove it; `redispatch` in `sticky` determines whether the client is bound to another worker";
    }
}

/// A fallback has exactly one answer: a line, a file, another pool or a redirect.
fn one_answer(fallback: &Group, pool: &Group, faults: &mut Vec<Fault>) {
    let given = ["line", "file", "pool", "redirect"].map(|name| fallback.key(name));
    let mut given: Vec<_> = given.into_iter().flatten().take(2).collect();
    given.sort_by_key(|place| place.start);
    reject! { faults;
        given.get(1).cloned() => "`fallback` has two replies",
            expected "expected one of `line`, `file`, `pool` and `redirect`",
            help "keep one of them";
        pool.key("fallback").or(Some(0..0)), if given.is_empty() => "`fallback` has no reply",
            expected "expected one of `line`, `file`, `pool` and `redirect`",
            help "add `line = \"busy, come back later\"`";
    }
}
