//! What holds between listeners of HTTP and pools of servers.

use crate::diagnostics::Fault;
use crate::options::{Choice, Of};
use crate::walk::{Section, Value};
use crate::{Address, Protocol};

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

/// Who speaks HTTP is answered by servers or by a query, and servers answer nobody else.
pub(super) fn speaks(listener: &Section, pools: &[&Section], faults: &mut Vec<Fault>) {
    let protocol = listener.group.value("protocol");
    let http = matches!(protocol, Some(Value::Word(Choice::Protocol(Protocol::Http))));
    for group in super::routes::with_routes(listener) {
        let Some(Value::Text(name)) = group.value("pool") else { continue };
        let Some(pool) = pools.iter().find(|pool| pool.name == *name) else { continue };
        let servers = pool.worker == Some(Of::Servers);
        let answers = servers || pool.group.key("query").is_some();
        let (Some(place), Some(_)) = (group.place("pool"), pool.worker) else { continue };
        if http && !answers {
            let message = format!(
                "a listener of HTTP needs `servers` or a `query`, and `[pool.{name}]` has neither"
            );
            faults.push(
                Fault::at(place, message)
                    .mend("name a pool with `servers` or a `query`, or choose another `protocol`"),
            );
        } else if servers && !http {
            let message =
                format!("`[pool.{name}]` has servers, which speak HTTP, and its clients do not");
            faults.push(Fault::at(place, message).mend("write `protocol = \"http\"`"));
        }
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
