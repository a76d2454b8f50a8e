//! Rules between the options of the cluster, and for the pools that share bindings over it.

use crate::fault::{Fault, reject};
use crate::options::{Value, WorkerKind};
use crate::walk::Section;

/// The shortest lifetime of a shared binding, in milliseconds. Uses are reported to other machines late.
const LIFETIME_MIN_MS: u128 = 10_000;
/// The bucket with the commands of operators has this name instead of that of a pool.
const OPERATOR: &str = "operator";

/// Adds a fault for every violated rule of the section.
pub(super) fn check(cluster: &Section, faults: &mut Vec<Fault>) {
    let group = &cluster.group;
    for url in group.texts("nats") {
        let rest = url.strip_prefix("nats://").or_else(|| url.strip_prefix("tls://"));
        let address = rest.unwrap_or(url);
        reject! { faults;
            group.place("nats"), if rest.is_none() && url.contains("://")
                => "this is not the address of a NATS server",
                expected "expected `nats://HOST:PORT` or `tls://HOST:PORT`",
                help "write `nats = [\"nats://10.0.0.1:4222\"]`";
            group.place("nats"), if address.contains('@')
                => "an address in `nats` contains a user or a password",
                expected "configuration files are not secret",
                help "write the user into a file and name it: `credentials = \"/etc/roadstead/nats.creds\"`";
        }
    }
    reject! { faults;
        group.place("nats"), if group.key("nats").is_some() && group.texts("nats").is_empty()
            => "`nats` is empty",
            expected "expected the address of at least one NATS server",
            help "write `nats = [\"nats://10.0.0.1:4222\"]`";
        group.place("site"), if !group.text("site").is_none_or(is_name)
            => "`site` contains characters that the name of a bucket must not contain",
            expected "expected letters, digits, `-` and `_`",
            help "write `site = \"main\"`";
        group.key("tls_certificate"), if group.key("tls_key").is_none()
            => "`tls_certificate` requires `tls_key`",
            help "add `tls_key`, the file with its private key";
        group.key("tls_key"), if group.key("tls_certificate").is_none()
            => "`tls_key` requires `tls_certificate`",
            help "add `tls_certificate`, the file with the certificate of this daemon";
    }
}

/// Adds a fault for every violated rule of a pool whose bindings are shared.
pub(super) fn check_pool(pool: &Section, has_cluster: bool, faults: &mut Vec<Fault>) {
    let Some(sticky) = pool.group.inner("sticky") else { return };
    if !matches!(sticky.value("shared"), Some(Value::Switch(true))) {
        return;
    }
    let at = || sticky.place("shared");
    let lifetime = sticky.get::<std::time::Duration>("lifetime");
    let has_names = pool.worker.is_none_or(|worker| worker == WorkerKind::Servers);
    reject! { faults;
        at(), if !has_cluster => "`shared` requires a section `[cluster]`",
            expected "bindings are shared over NATS servers",
            help "add `[cluster]` with `nats` and `secret`, or remove `shared`";
        at(), if !has_names => "`shared` requires `servers`",
            expected "the programs of another machine are other programs",
            help "remove it";
        at(), if !is_name(&pool.name)
            => format!("the pool `{}` cannot be shared: its name is the name of a bucket", pool.name),
            expected "expected letters, digits, `-` and `_`",
            help "rename the pool";
        at(), if pool.name == OPERATOR
            => "the pool `operator` cannot be shared: the bucket with this name contains the commands of operators",
            expected "expected another name",
            help "rename the pool";
        sticky.place("lifetime"), if lifetime.is_some_and(|it| it.as_millis() < LIFETIME_MIN_MS)
            => "`lifetime` is too short for a binding that machines share",
            expected "expected at least 10s",
            help "raise `lifetime`, or remove `shared`";
    }
}

/// Adds a fault if a listener shares limits and there is no cluster.
pub(super) fn check_listener(listener: &Section, has_cluster: bool, faults: &mut Vec<Fault>) {
    let Some(limits) = listener.group.inner("per_address") else { return };
    let is_shared = matches!(limits.value("shared"), Some(Value::Switch(true)));
    reject! { faults;
        limits.place("shared"), if is_shared && !has_cluster
            => "`shared` requires a section `[cluster]`",
            expected "limits are shared over NATS servers",
            help "add `[cluster]` with `nats` and `secret`, or remove `shared`";
    }
}

fn is_name(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    !text.is_empty() && text.bytes().all(allowed)
}
