//! Rules between the options of a listener that concern client addresses.

use crate::fault::Fault;
use crate::model::{Address, Forwarded};
use crate::options::{Group, Value};
use crate::values;
use crate::walk::Section;

/// Adds a fault for every violated rule.
pub(super) fn check(listener: &Section, faults: &mut Vec<Fault>) {
    let group = &listener.group;
    for option in ["trusted", "allow", "deny"] {
        networks(group, option, faults);
    }
    if let Some(Value::Address(Address::Unix(_))) = group.value("listen") {
        for option in ["allow", "deny", "per_address"] {
            let Some(place) = group.key(option) else { continue };
            faults.push(
                Fault::at(place, "clients of a Unix socket have no IP address")
                    .expected(
                        "the mode of the socket file and its directory determine who may connect",
                    )
                    .suggestion("remove it"),
            );
        }
    }
    if let (true, Some(place)) = (group.is("forwarded", Forwarded::Off), group.key("trusted")) {
        faults.push(
            Fault::at(
                place,
                "`trusted` has no effect: the client's address is not forwarded to servers",
            )
            .expected("`trusted` requires `forwarded = \"x-forwarded\"` or `\"standard\"`")
            .suggestion("remove it, or choose one of these"),
        );
    }
    if let Some(limits) = group.inner("per_address") {
        per_address(limits, group, faults);
    }
}

/// Checks a list of addresses and networks.
fn networks(group: &Group, option: &str, faults: &mut Vec<Fault>) {
    let texts = group.texts(option);
    for text in texts {
        if let (Err(bad), Some(place)) = (values::network(text), group.place(option)) {
            let fault = Fault::at(place, format!("`{text}` {}", bad.why));
            faults.push(match bad.suggestion {
                Some(suggestion) => fault.suggestion(suggestion),
                None => fault,
            });
        }
    }
}

/// At least one limit must be set, and the table must have an entry for every connected client.
fn per_address(limits: &Group, listener: &Group, faults: &mut Vec<Fault>) {
    for (rate, burst) in [("connects", "connects_burst"), ("requests", "requests_burst")] {
        if let (None, Some(place)) = (limits.find(rate), limits.key(burst)) {
            faults.push(
                Fault::at(place, format!("`{burst}` requires `{rate}`"))
                    .expected(format!("`{rate}` is the number per second"))
                    .suggestion(format!("add `{rate} = 10`, or remove it")),
            );
        }
    }
    let limited = ["connections", "connects", "requests"];
    let bursts = ["connects_burst", "requests_burst"];
    if let (true, Some(place)) = (
        limited.iter().chain(&bursts).all(|name| limits.find(name).is_none()),
        listener.key("per_address"),
    ) {
        faults.push(
            Fault::at(place, "`per_address` limits nothing")
                .expected("expected `connections`, `connects` or `requests`")
                .suggestion("add `connections = 100`"),
        );
    }
    let (entries, most) = (limits.number("entries"), listener.number("connections_max"));
    if let (Some(entries), Some(most)) = (entries, most)
        && entries < most
    {
        let place = limits.place("entries").or_else(|| listener.place("connections_max"));
        let message =
            format!("`entries` = {entries} is less than the {most} connections that are allowed");
        faults.push(
            Fault::at(place.unwrap_or(0..0), message)
                .expected("every connected address needs an entry")
                .suggestion(format!("write `entries = {most}` in `per_address`")),
        );
    }
}
