//! What the client is started with.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use exchange::{AddressUse, BindingChange, BindingUse, HealthNotice, PoolId};

use crate::key::Secret;
use crate::operator::{Author, CommandError, OperatorKey, Setting};
use crate::settings::Settings;

/// The maximum number of batches of uses that wait for the thread. A shard sends one per turn of its loop.
const BATCHES_MAX: usize = 1024;

/// The servers, and the identity of this daemon.
#[derive(Clone, Debug)]
pub struct ClusterConfig {
    /// Addresses of NATS servers, like `nats://host:4222`. One of them is used at a time.
    pub servers: Vec<String>,
    /// The certificates for encrypted connections. `None`: only a server that requires TLS gets it.
    pub tls: Option<TlsFiles>,
    /// The file with the credentials. It is read for each connection.
    pub credentials: Option<PathBuf>,
    /// The name of the site: the first part of the names of all buckets and subjects.
    pub site: String,
    /// The name of this machine, for people.
    pub machine: String,
    /// The secret of the cluster: digests are keyed with it.
    pub secret: Secret,
    /// The number of servers that store each bucket.
    pub replicas: usize,
}

/// The files for encrypted connections.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The certificates of the authorities that are trusted. `None`: those of the system.
    pub ca: Option<PathBuf>,
    /// The certificate of this daemon and its private key.
    pub certificate: Option<(PathBuf, PathBuf)>,
}

/// The uses of clients, from the shard that has the table.
pub type Uses = Receiver<Vec<BindingUse>>;

/// Takes the changes of other daemons to the shard. `Err`: it has no room now, and is called again later.
pub type Changes =
    Box<dyn FnMut(Vec<BindingChange>) -> Result<(), Vec<BindingChange>> + Send + 'static>;

/// One shared table.
pub struct TableConfig {
    /// Its name in the bucket: letters, digits, `-` and `_`.
    pub name: String,
    /// Its limits.
    pub settings: Settings,
    /// The uses of clients.
    pub uses: Uses,
    /// Takes the changes.
    pub changes: Changes,
}

impl fmt::Debug for TableConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, settings, .. } = self;
        formatter
            .debug_struct("TableConfig")
            .field("name", name)
            .field("settings", settings)
            .finish_non_exhaustive()
    }
}

/// Receives the outcome of a command. It is called once and must not block. A command that is stored has a remark about
/// this daemon, which may be empty. Otherwise the error has a text with the reason.
pub type CommandReply = Box<dyn FnOnce(Result<String, (CommandError, String)>) + Send>;

/// Applies a setting of an operator at this daemon, and then calls the replies of the commands that are stored with it.
/// It must not block. Without an author, the key was deleted.
pub type ApplySetting =
    Box<dyn FnMut(&OperatorKey, Setting, Option<&Author>, Vec<CommandReply>) + Send>;

/// What daemons share besides tables.
#[derive(Default)]
pub struct Sharing {
    /// Applies the settings of operators; `None`: they are not shared.
    pub operator: Option<ApplySetting>,
    /// Hints about the health of servers; `None`: there are none.
    pub health: Option<HealthHints>,
    /// Limits of addresses; `None`: none are shared.
    pub limits: Option<LimitSharing>,
}

impl fmt::Debug for Sharing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Sharing").finish_non_exhaustive()
    }
}

/// What the clients of a listener used since the last report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressUses {
    /// The name of the listener, which is the same in all daemons.
    pub listener: String,
    /// The addresses.
    pub uses: Vec<AddressUse>,
}

/// Limits of addresses that daemons share approximately.
pub struct LimitSharing {
    /// Asks the shards for what was used. It must not block.
    pub ask: Box<dyn FnMut() + Send>,
    /// What the shards report.
    pub reports: Receiver<AddressUses>,
    /// Takes what was used at another daemon, which is named by a number, to the shards. It must not block.
    pub apply: Box<dyn FnMut(u64, AddressUses) + Send>,
}

impl fmt::Debug for LimitSharing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("LimitSharing").finish_non_exhaustive()
    }
}

/// Takes the names of a pool and of one of its servers.
pub type CheckNow = Box<dyn FnMut(&str, &str) + Send>;

/// Hints between daemons that the health of a server may have changed.
pub struct HealthHints {
    /// What this daemon has found.
    pub notices: Receiver<HealthNotice>,
    /// The names of the pools.
    pub pools: BTreeMap<PoolId, String>,
    /// Checks a server of a pool now, because another daemon has found a change. It must not block.
    pub check: CheckNow,
}

impl fmt::Debug for HealthHints {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("HealthHints").field("pools", &self.pools).finish_non_exhaustive()
    }
}

/// Creates the channel of a table. Sending to it never blocks, and makes no system call.
#[must_use]
pub fn uses() -> (SyncSender<Vec<BindingUse>>, Uses) {
    sync_channel(BATCHES_MAX)
}
