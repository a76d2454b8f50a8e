//! Rules between HTTP listeners and pools of servers, or of programs that serve HTTP.

use std::ops::Range;

use crate::fault::{Fault, reject};
use crate::model::{Address, Framing, HttpSocket, Pool, Protocol, RetryFault, RetryOn};
use crate::options::{Needs, Setting, Value, WorkerKind};
use crate::walk::Section;

/// `workers` is rejected for servers: each server is a worker.
pub(super) fn reject_workers(pool: &Section, faults: &mut Vec<Fault>) {
    reject! { faults;
        pool.group.key("workers")
            => format!("`[pool.{}]` has one worker per entry of `servers`", pool.name),
            expected "does not belong here",
            help "remove it; `upstream.max_concurrent` limits the concurrent requests of one server";
    }
}

/// `retries` requires HTTP messages: another worker that has a request may already have executed it. Limits of response
/// heads require workers that send heads.
pub(super) fn require_http(pool: &Section, faults: &mut Vec<Fault>) {
    let message =
        || format!("`[pool.{}]` has neither servers nor programs that serve HTTP", pool.name);
    if pool.worker.is_none() || serves(pool) || pool.worker == Some(WorkerKind::Servers) {
        return;
    }
    reject! { faults;
        pool.group.key("retries") => message(),
            expected "a request that another worker has received may have had an effect, so it is not repeated",
            help "remove `retries`";
    }
    for (option, place) in pool.group.needing(Pool::OPTIONS, Needs::HttpWorkers) {
        reject! { faults;
            Some(place) => message(),
                expected "its replies have no HTTP head",
                help format!("remove `{option}`; `reply_max` limits a reply of a program");
        }
    }
}

/// `retries.on` must contain names of failures and statuses only.
pub(super) fn check_retry_on(pool: &Section, faults: &mut Vec<Fault>) {
    let Some(retries) = pool.group.inner("retries") else { return };
    let entries = retries.texts("on");
    if let Err(entry) = RetryOn::read(entries) {
        let words = RetryFault::ALL.map(|(word, _)| format!("`{word}`")).join(", ");
        reject! { faults;
            retries.place("on") => format!("`{entry}` is neither a failure nor a status"),
                expected format!("expected {words}, or statuses from 400 to 599"),
                help "write for example on = [\"connect\", \"reset\", \"502..504\"]";
        }
    }
}

/// Every kind of worker can answer HTTP clients, except programs that give no single answer. Servers answer only HTTP
/// clients.
pub(super) fn speaks(listener: &Section, pools: &[&Section], faults: &mut Vec<Fault>) {
    let protocol = listener.group.value("protocol");
    if protocol.is_none() {
        // The intended protocol is unknown, and it has another error.
        return;
    }
    let http = listener.group.is("protocol", Protocol::Http);
    for group in super::routes::with_routes(listener) {
        let Some(name) = group.text("pool") else { continue };
        let Some(pool) = pools.iter().find(|pool| pool.name == *name) else { continue };
        let (serves, servers) = (serves(pool), pool.worker == Some(WorkerKind::Servers));
        let program = pool.worker == Some(WorkerKind::Program);
        let (Some(place), Some(_)) = (group.place("pool"), pool.worker) else { continue };
        if let (true, true, false, Some(why)) = (http, program, serves, takes_no_object(pool)) {
            let suggestion = if why == JSON_RPC {
                "write `protocol = \"jsonrpc\"` or `\"content-length\"`, or have the program serve HTTP itself"
            } else {
                "choose one of these `framing`s without `stream`, or another `protocol`"
            };
            faults.push(no_object(place, name, why).suggestion(suggestion));
        } else if !http && (serves || servers) {
            let who = if serves { "programs" } else { "servers" };
            reject! { faults;
                Some(place) => format!(
                    "the {who} of `[pool.{name}]` speak HTTP, but the clients of this listener do not"
                ), help "write `protocol = \"http\"`";
            }
        }
    }
}

/// Returns a fault for a pool whose programs cannot answer one object with one frame, at the option that sends HTTP
/// requests to the pool.
pub(super) fn no_object(place: Range<usize>, name: &str, why: &str) -> Fault {
    let message = format!(
        "a program behind HTTP gets an object and gives one answer, and {why} in `[pool.{name}]`"
    );
    Fault::at(place, message)
        .expected("`framing` as `lines`, `nul`, `len4`, `netstring`, `oneshot` or `http`")
}

/// Whether the workers of a pool are programs that serve HTTP.
pub(super) fn serves(pool: &Section) -> bool {
    pool.worker == Some(WorkerKind::Program) && pool.group.is("framing", Framing::Http)
}

/// Checks the options that require programs that serve HTTP, and those that exclude them.
pub(super) fn serving(pool: &Section, pools: &[&Section], faults: &mut Vec<Fault>) {
    let (group, serving) = (&pool.group, serves(pool));
    let is_path = group.is("socket", HttpSocket::Path);
    reject! { faults;
        group.key("socket"), if !serving => "a program on pipes has no socket",
            expected "`socket` requires `framing = \"http\"`",
            help "add `framing = \"http\"`, or remove `socket`";
        group.place("socket"), if serving && is_path && group.key("user").is_some()
            => "another user cannot create a socket in the daemon's directory",
            expected "expected `inherited` or `port` with `user`",
            help "choose one of these";
    }
    for (name, place) in group.needing(Pool::OPTIONS, Needs::Pipes).filter(|_| serving) {
        reject! { faults;
            Some(place) => format!("`{name}` has no effect on a program that serves HTTP"),
                help "remove it";
        }
    }
    if let Some((name, place)) = group.given_text("then") {
        let next = pools.iter().find(|next| next.name == *name);
        let takes_http = |next: &&Section| serves(next) || next.worker == Some(WorkerKind::Servers);
        reject! { faults;
            Some(place), if !serving && next.is_some_and(takes_http) => format!(
                "the workers of `[pool.{name}]` expect HTTP requests, and a reply of this pool is not one"
            ), help "remove `then`";
        }
    }
}

const JSON_RPC: &str = "its messages are JSON-RPC";

/// Returns the reason why the programs of a pool cannot receive one object and answer with one frame.
pub(super) fn takes_no_object(pool: &Section) -> Option<&'static str> {
    if pool.group.key("stream").is_some() {
        return Some("its replies have several frames");
    }
    match pool.group.get("framing") {
        // A message without an `id` gets no answer, but an HTTP request always does. Requests and notifications of the
        // program have no HTTP request that they could belong to.
        Some(Framing::JsonRpc | Framing::ContentLength) => Some(JSON_RPC),
        Some(Framing::Raw) => Some("the end of its frames is not marked"),
        _ => None,
    }
}

/// Each server of a pool must occur once, and its address must be one to connect to.
pub(super) fn addresses(pools: &[&Section], faults: &mut Vec<Fault>) {
    for pool in pools {
        let servers = pool.group.groups("servers");
        let mut seen: Vec<&Address> = Vec::new();
        for server in servers {
            let Some(Value::Address(address)) = server.value("address") else { continue };
            let is_inherited = matches!(address, Address::Inherited(_));
            reject! { faults;
                server.place("address"), if is_inherited
                    => format!("it is not possible to connect to `{address}`"),
                    help "write an address with a port";
                server.place("address"), if !is_inherited && seen.contains(&address)
                    => format!("`{address}` is in `[pool.{}]` twice", pool.name),
                    help "keep one of the two";
            }
            seen.push(address);
        }
    }
}
