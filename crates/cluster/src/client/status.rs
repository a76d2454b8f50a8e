//! The state of the cluster, for the admin API and metrics.

use crate::counters::Counters;
use crate::message::Origin;
use crate::operator::{Entry, OperatorCounters, OperatorKey};
use crate::replica::Status;
use crate::state::State;

/// The state of the cluster at this daemon.
#[derive(Clone, Debug, Default)]
pub struct ClusterStatus {
    /// The name of the site.
    pub site: String,
    /// The name of this machine.
    pub machine: String,
    /// The number that identifies this run of the daemon.
    pub origin: u64,
    /// The server of the current connection; `None`: there is none.
    pub server: Option<String>,
    /// Connections that were lost.
    pub reconnects: u64,
    /// Why the last connection was lost or could not be opened.
    pub trouble: Option<String>,
    /// The shared tables.
    pub tables: Vec<TableStatus>,
    /// The settings of operators; `None`: they are not shared.
    pub operator: Option<OperatorStatus>,
    /// Hints about the health of servers.
    pub hints: HintCounters,
    /// Reports of what addresses used; `None`: no limits are shared.
    pub limits: Option<LimitCounters>,
}

/// The state of the settings of operators.
#[derive(Clone, Debug)]
pub struct OperatorStatus {
    /// The state of the connection to their bucket.
    pub state: State,
    /// The last revision that was read.
    pub revision: u64,
    /// What was counted since the start.
    pub counters: OperatorCounters,
    /// The settings that differ from the default.
    pub entries: Vec<(OperatorKey, Entry)>,
    /// Why the bucket cannot be used.
    pub trouble: Option<String>,
}

/// Hints about the health of servers since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HintCounters {
    /// Those that this daemon has sent.
    pub sent: u64,
    /// Those of other daemons.
    pub received: u64,
}

/// Messages about what addresses used, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitCounters {
    /// Those that this daemon has sent.
    pub sent: u64,
    /// Those of other daemons.
    pub received: u64,
}

/// The state of one table.
#[derive(Clone, Debug)]
pub struct TableStatus {
    /// Its name.
    pub name: String,
    /// Its state.
    pub status: Status,
    /// What was counted since the start.
    pub counters: Counters,
    /// Changes that the server has and that were not read.
    pub behind: u64,
    /// Milliseconds since another daemon was found to have the same contents.
    pub proof_age_ms: Option<u64>,
    /// Why the last write was not stored, if any was not.
    pub rejected: Option<String>,
    /// The other daemons that share it.
    pub machines: Vec<MachineStatus>,
}

/// Another daemon that shares a table.
#[derive(Clone, Debug)]
pub struct MachineStatus {
    /// Its name.
    pub name: String,
    /// The number that identifies its run.
    pub origin: Origin,
    /// Milliseconds since its last digest.
    pub heard_ms_ago: u64,
    /// The revision of its last digest.
    pub revision: u64,
    /// The number of entries in its last digest.
    pub entries: u64,
}

/// The result of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// How many pairs of tables were compared: one for each table and other daemon.
    pub compared: usize,
    /// The keys that differ, at most 1000.
    pub keys: Vec<CheckedKey>,
    /// How many keys differ.
    pub differing: usize,
    /// What could not be compared, and why.
    pub failed: Vec<String>,
}

/// A client that two daemons know differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedKey {
    /// The table.
    pub table: String,
    /// The other machine.
    pub machine: String,
    /// The name of the client's key in the bucket.
    pub key: String,
    /// The target and the revision here; `None`: this daemon does not have it.
    pub here: Option<(u64, u64)>,
    /// The target and the revision there.
    pub there: Option<(u64, u64)>,
}

impl CheckReport {
    pub(super) fn without_connection() -> Self {
        let failed = vec![
            "there is no connection to the NATS servers; `ctl cluster status` shows why".to_owned(),
        ];
        Self { failed, ..Self::default() }
    }
}
