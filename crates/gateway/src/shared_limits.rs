//! Limits of addresses that this daemon shares with others: what the shards report, and what other daemons have reported.

use std::sync::Arc;

use exchange::AddressUse;

use crate::fleet::Fleet;
use crate::shard_mail::{AddressUseReply, ShardMail};

/// The maximum number of messages that may wait for a shard. Above it, a report is dropped.
const WAITING_MAX: usize = 16;

impl Fleet {
    /// Asks every shard what addresses used, at listeners whose limits are shared with other daemons.
    pub fn ask_address_uses(&self, reply: &AddressUseReply) {
        self.post_to_all(|| ShardMail::AskAddressUses(Arc::clone(reply)));
    }

    /// Counts what addresses used at another daemon, which is named by a number.
    pub fn apply_address_uses(&self, daemon: u64, listener: &str, uses: Vec<AddressUse>) {
        let Some(listener) = self.listener(listener) else { return };
        let uses: Arc<[AddressUse]> = uses.into();
        self.post_to_all(|| ShardMail::AddressUses { daemon, listener, uses: Arc::clone(&uses) });
    }

    fn post_to_all(&self, mail: impl Fn() -> ShardMail) {
        for shard in (0..).take(self.length()) {
            let mailbox = self.mailbox(shard);
            if mailbox.waiting() < WAITING_MAX {
                // A shard that has ended limits nothing.
                let _ = mailbox.try_send(mail());
            }
        }
    }
}
