//! Rules between the options of the admin address.

use crate::fault::{Fault, reject};
use crate::model::Address;
use crate::options::Value;
use crate::walk::Section;

/// Adds a fault for every violated rule.
pub(super) fn check(admin: &Section, faults: &mut Vec<Fault>) {
    let group = &admin.group;
    let Some(Value::Address(listen)) = group.value("listen") else { return };
    let at = || group.place("listen");
    reject! { faults;
        at(), if matches!(listen, Address::Inherited(_))
            => "the admin address cannot be an inherited socket",
            expected "only listeners can use sockets that a service manager passes",
            help "write an address such as \"127.0.0.1:7070\" or \"unix:/run/roadstead/admin.sock\"";
        at(), if !matches!(listen, Address::Inherited(_)) && !listen.is_local() && group.find("token").is_none()
            => format!("the admin address `{listen}` is not local and has no `token`"),
            expected "anyone who can reach it could control the daemon",
            help "add `token = \"env:ADMIN_TOKEN\"`, or listen on 127.0.0.1 or a Unix socket";
        group.key("group"), if matches!(listen, Address::Internet(_))
            => "`group` requires a Unix socket",
            expected "the group of a client is known only on a Unix socket",
            help "remove it, or write `listen = \"unix:/run/roadstead/admin.sock\"`";
    }
    for host in group.texts("allowed_hosts").iter().filter(|host| !is_host(host)) {
        reject! { faults;
            group.place("allowed_hosts") => format!("`{host}` is not a host name"),
                expected "expected a name or an address, without a scheme or a port",
                help "write `allowed_hosts = [\"admin.example.org\"]`";
        }
    }
}

/// Whether the text is a host name or an address as it appears in `Host`, without a port.
fn is_host(text: &str) -> bool {
    let is_address =
        text.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>().is_ok();
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    is_address || text.chars().all(allowed)
}
