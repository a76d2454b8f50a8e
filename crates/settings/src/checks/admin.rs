//! Rules between the options of the admin address.

use crate::fault::Fault;
use crate::model::Address;
use crate::options::Value;
use crate::walk::Section;

/// Adds a fault for every violated rule.
pub(super) fn check(admin: &Section, faults: &mut Vec<Fault>) {
    let group = &admin.group;
    let Some(Value::Address(listen)) = group.value("listen") else { return };
    if let (Address::Inherited(_), Some(place)) = (listen, group.place("listen")) {
        faults.push(
            Fault::at(place, "the admin address cannot be an inherited socket")
                .expected("only listeners can use sockets that a service manager passes")
                .suggestion("write an address such as \"127.0.0.1:7070\" or \"unix:/run/roadstead/admin.sock\""),
        );
        return;
    }
    if let (false, None, Some(place)) =
        (listen.is_local(), group.find("token"), group.place("listen"))
    {
        faults.push(
            Fault::at(
                place,
                format!("the admin address `{listen}` is not local and has no `token`"),
            )
            .expected("anyone who can reach it could control the daemon")
            .suggestion(
                "add `token = \"env:ADMIN_TOKEN\"`, or listen on 127.0.0.1 or a Unix socket",
            ),
        );
    }
    if let (Address::Internet(_), Some(place)) = (listen, group.key("group")) {
        faults.push(
            Fault::at(place, "`group` requires a Unix socket")
                .expected("the group of a client is known only on a Unix socket")
                .suggestion("remove it, or write `listen = \"unix:/run/roadstead/admin.sock\"`"),
        );
    }
    let hosts = group.texts("allowed_hosts");
    for host in hosts.iter().filter(|host| !is_host(host)) {
        let place = group.place("allowed_hosts").unwrap_or(0..0);
        faults.push(
            Fault::at(place, format!("`{host}` is not a host name"))
                .expected("expected a name or an address, without a scheme or a port")
                .suggestion("write `allowed_hosts = [\"admin.example.org\"]`"),
        );
    }
}

/// Whether the text is a host name or an address as it appears in `Host`, without a port.
fn is_host(text: &str) -> bool {
    let is_address =
        text.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>().is_ok();
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    is_address || text.chars().all(allowed)
}
