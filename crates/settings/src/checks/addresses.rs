//! Rules between the options of a listener that concern client addresses.

use crate::fault::{Fault, reject};
use crate::model::{Address, Forwarded, Listener};
use crate::options::{Group, Needs, Setting, Value};
use crate::values;
use crate::walk::Section;

/// Adds a fault for every violated rule.
pub(super) fn check(listener: &Section, faults: &mut Vec<Fault>) {
    let group = &listener.group;
    for option in ["trusted", "allow", "deny"] {
        for text in group.texts(option) {
            if let (Err(bad), Some(place)) = (values::network(text), group.place(option)) {
                let fault = Fault::at(place, format!("`{text}` {}", bad.why));
                faults.push(fault.suggested(bad.suggestion));
            }
        }
    }
    if let Some(Value::Address(Address::Unix(_))) = group.value("listen") {
        for (_, place) in group.needing(Listener::OPTIONS, Needs::ClientAddress) {
            reject! { faults;
                Some(place) => "clients of a Unix socket have no IP address",
                    expected "the mode of the socket file and its directory determine who may connect",
                    help "remove it";
            }
        }
    }
    reject! { faults;
        group.key("trusted"), if group.is("forwarded", Forwarded::Off)
            => "`trusted` has no effect: the client's address is not forwarded to servers",
            expected "`trusted` requires `forwarded = \"x-forwarded\"` or `\"standard\"`",
            help "remove it, or choose one of these";
    }
    if let Some(limits) = group.inner("per_address") {
        per_address(limits, group, faults);
    }
}

/// At least one limit must be set, and the table must have an entry for every connected client.
fn per_address(limits: &Group, listener: &Group, faults: &mut Vec<Fault>) {
    for (rate, burst) in [("connects", "connects_burst"), ("requests", "requests_burst")] {
        reject! { faults;
            limits.key(burst), if limits.find(rate).is_none()
                => format!("`{burst}` requires `{rate}`"),
                expected format!("`{rate}` is the number per second"),
                help format!("add `{rate} = 10`, or remove it");
        }
    }
    let limited = ["connections", "connects", "requests", "connects_burst", "requests_burst"];
    reject! { faults;
        listener.key("per_address"), if limited.iter().all(|name| limits.find(name).is_none())
            => "`per_address` limits nothing",
            expected "expected `connections`, `connects` or `requests`",
            help "add `connections = 100`";
    }
    let (entries, most) = (limits.number("entries"), listener.number("connections_max"));
    if let (Some(entries), Some(most)) = (entries, most) {
        let place = limits.place("entries").or_else(|| listener.place("connections_max"));
        reject! { faults;
            place.or(Some(0..0)), if entries < most
                => format!("`entries` = {entries} is less than the {most} connections that are allowed"),
                expected "every connected address needs an entry",
                help format!("write `entries = {most}` in `per_address`");
        }
    }
}
