//! Other machines of the site, and the NATS servers over which they share bindings.

use std::path::PathBuf;
use std::time::Duration;

use crate::options::{Reload, options};
use crate::values::Secret;

options! {
    /// The cluster (`[cluster]`).
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Cluster of Any reload Restart {
        /// Addresses of the NATS servers, like `nats://10.0.0.1:4222`; `tls://` encrypts the connection. One of them is
        /// used at a time. They need JetStream, and version 2.12 or newer.
        nats: Vec<String> as names = required;
        /// Secret from which the keys of clients are made, as `env:NAME` or `file:PATH`; at least 16 characters. All
        /// machines need the same. Keys of clients never leave the machine in another form.
        secret: Secret as secret = required;
        /// Name of the site: letters, digits, `-` and `_`. Daemons with the same name share their bindings. It is a part
        /// of the names of buckets and subjects, so several sites can use the same servers.
        site: String as name = "roadstead";
        /// Name of this machine in the status. Default: its host name.
        machine: Option<String> as name;
        /// Number of NATS servers that store each bucket. Default: the number of addresses in `nats`, at most 3.
        replicas: Option<u32> as count(1, 5);
        /// Whether commands of operators for pools with `servers` (`ctl disable`, `enable`, `drain`, `weight` and
        /// `fallback`) apply to all machines of the site. Off: they apply to the daemon that receives them.
        share_commands: bool as switch = "true";
        /// File with the credentials of a NATS user. The user determines the account. Without it, the connection has no
        /// user, or that of the certificate.
        credentials: Option<PathBuf> as name;
        /// File with the certificates of the authorities that the NATS servers must have, in PEM. Without it, those of
        /// the system. It encrypts the connection.
        tls_ca: Option<PathBuf> as name;
        /// File with the certificate of this daemon, in PEM, and `tls_key`, its private key. It encrypts the connection.
        tls_certificate: Option<PathBuf> as name;
        /// File with the private key of `tls_certificate`, in PEM.
        tls_key: Option<PathBuf> as name;
        /// How long the start of the daemon waits for the bindings of the other machines. After that it serves, and
        /// clients may be bound to other workers than before.
        start_timeout: Duration as time_or_zero = "5s", reload(Reload::Restart);
    }
}

impl Cluster {
    /// The number of NATS servers that store each bucket.
    #[must_use]
    pub fn stored_by(&self) -> usize {
        self.replicas.map_or_else(|| self.nats.len().min(3), |count| count as usize)
    }
}
