//! What addresses used, at listeners whose limits are shared with other daemons.

use exchange::{AddressUse, ListenerId};

use super::Shard;
use crate::shard_mail::AddressUseReply;

/// The maximum number of addresses in one report of a listener. The others are in the next one.
const USES_MAX: usize = 20_000;

impl Shard {
    pub(super) fn report_address_uses(&mut self, reply: &AddressUseReply) {
        let now = self.engine.now;
        for (listener, limits) in self.listener_limits.shared() {
            let mut uses = Vec::new();
            limits.take_uses(now, USES_MAX, &mut uses);
            if !uses.is_empty() {
                reply(self.fleet.listener_name(listener).to_owned(), uses);
            }
        }
    }

    pub(super) fn handle_address_uses(
        &mut self,
        daemon: u64,
        listener: ListenerId,
        uses: &[AddressUse],
    ) {
        let now = self.engine.now;
        if let Some(limits) = self.listener_limits.shared_at(listener) {
            limits.handle_uses(now, daemon, uses);
        }
    }
}
