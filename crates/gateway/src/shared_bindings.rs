//! The bindings of clients that this daemon shares with others, and what it reports to them, as the shards see it.

use std::collections::BTreeMap;
use std::sync::mpsc::SyncSender;

use exchange::{BindingUse, HealthNotice, PoolId};

/// What shards need to share bindings with other daemons. It is set before the shards are built.
#[derive(Debug)]
pub struct SharedBindings {
    /// The secret of the cluster, from which the keys of clients are made.
    pub secret: (u64, u64),
    /// Receives the uses of bindings, for each pool that shares them.
    pub uses: BTreeMap<PoolId, SyncSender<Vec<BindingUse>>>,
    /// Receives changes of the health of servers.
    pub health: SyncSender<HealthNotice>,
}
