//! The bindings of clients that this daemon shares with others, as the shards see them.

use std::collections::BTreeMap;
use std::sync::mpsc::SyncSender;

use exchange::{BindingChange, BindingUse, PoolId};

use crate::fleet::Fleet;
use crate::shard_mail::ShardMail;

/// The maximum number of messages with changes that wait for a shard.
const CHANGES_WAITING_MAX: usize = 16;

/// What shards need to share bindings with other daemons. It is set before the shards are built.
#[derive(Debug)]
pub struct SharedBindings {
    /// The secret of the cluster, from which the keys of clients are made.
    pub secret: (u64, u64),
    /// Receives the uses of bindings, for each pool that shares them.
    pub uses: BTreeMap<PoolId, SyncSender<Vec<BindingUse>>>,
}

impl Fleet {
    /// Sends changes by other daemons to the shard that owns a pool. If it `is_limited`, few messages may wait.
    ///
    /// # Errors
    /// The changes: too many wait, or the shard has ended.
    pub fn send_binding_changes(
        &self,
        pool: PoolId,
        changes: Vec<BindingChange>,
        is_limited: bool,
    ) -> Result<(), Vec<BindingChange>> {
        let mailbox = self.mailbox(self.owner(pool));
        if !is_limited {
            mailbox.post(ShardMail::Bindings { pool, changes });
            return Ok(());
        }
        if mailbox.waiting() >= CHANGES_WAITING_MAX {
            return Err(changes);
        }
        match mailbox.try_send(ShardMail::Bindings { pool, changes }) {
            Err(ShardMail::Bindings { changes, .. }) => Err(changes),
            _ => Ok(()),
        }
    }
}
