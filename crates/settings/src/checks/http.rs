//! What holds between listeners of HTTP and pools of servers.

use crate::diagnostics::Fault;
use crate::options::{Choice, Of};
use crate::walk::{Section, Value};
use crate::{Address, Framing, Protocol};

/// Each server is a worker: there is nothing to count.
pub(super) fn no_count_of_workers(pool: &Section, faults: &mut Vec<Fault>) {
    if let Some(place) = pool.group.key("workers") {
        let message = format!("`[pool.{}]` has as many workers as `servers`", pool.name);
        faults.push(
            Fault::at(place, message)
                .expected("does not belong here")
                .mend("remove it; `server_requests_max` limits what one server has at once"),
        );
    }
}

/// Who speaks HTTP is answered by servers, databases or programs, and servers answer nobody else.
pub(super) fn speaks(listener: &Section, pools: &[&Section], faults: &mut Vec<Fault>) {
    let protocol = listener.group.value("protocol");
    let http = matches!(protocol, Some(Value::Word(Choice::Protocol(Protocol::Http))));
    for group in super::routes::with_routes(listener) {
        let Some(Value::Text(name)) = group.value("pool") else { continue };
        let Some(pool) = pools.iter().find(|pool| pool.name == *name) else { continue };
        let servers = pool.worker == Some(Of::Servers);
        let program = pool.worker == Some(Of::Program);
        let answers = servers || program || pool.worker == Some(Of::Database);
        let (Some(place), Some(_)) = (group.place("pool"), pool.worker) else { continue };
        if http && !answers {
            let message = format!(
                "a listener of HTTP needs `servers`, a `database` or a `program`, and \
                 `[pool.{name}]` has none of them"
            );
            faults.push(
                Fault::at(place, message)
                    .mend("name a pool with one of them, or choose another `protocol`"),
            );
        } else if let (true, true, Some(why)) = (http, program, takes_no_object(pool)) {
            let message = format!(
                "a program behind HTTP gets an object and gives one answer, and {why} in \
                 `[pool.{name}]`"
            );
            faults.push(
                Fault::at(place, message)
                    .expected("`framing` as `lines`, `nul`, `len4`, `netstring` or `oneshot`")
                    .mend("choose such a `framing` without `stream`, or another `protocol`"),
            );
        } else if servers && !http {
            let message =
                format!("`[pool.{name}]` has servers, which speak HTTP, and its clients do not");
            faults.push(Fault::at(place, message).mend("write `protocol = \"http\"`"));
        }
    }
}

/// Why the programs of a pool cannot be asked with one object and answer with one frame.
fn takes_no_object(pool: &Section) -> Option<&'static str> {
    if pool.group.key("stream").is_some() {
        return Some("a reply is many frames");
    }
    match pool.group.value("framing") {
        Some(Value::Word(Choice::Framing(Framing::JsonRpc | Framing::ContentLength))) => {
            Some("messages are JSON-RPC")
        }
        Some(Value::Word(Choice::Framing(Framing::Raw))) => Some("nothing ends a frame"),
        _ => None,
    }
}

/// Each server of a pool is there once, and can be connected to.
pub(super) fn addresses(pools: &[&Section], faults: &mut Vec<Fault>) {
    for pool in pools {
        let Some(Value::Groups(servers)) = pool.group.value("servers") else { continue };
        let mut seen: Vec<&Address> = Vec::new();
        for server in servers {
            let Some(Value::Address(address)) = server.value("address") else { continue };
            let Some(place) = server.place("address") else { continue };
            if let Address::Inherited(_) = address {
                let message = format!("`{address}` cannot be connected to");
                faults.push(Fault::at(place, message).mend("write an address with a port"));
            } else if seen.contains(&address) {
                let message = format!("`{address}` is in `[pool.{}]` twice", pool.name);
                faults.push(Fault::at(place, message).mend("keep one of the two"));
            }
            seen.push(address);
        }
    }
}
