//! Applies the mutant [`Mutant::StaleToken`].

use event::Token;

use crate::plants::Mutant;
use crate::world::World;

impl World {
    /// If the mutant acts: reports an event of a closed stream for the stream that now has its slot.
    pub(crate) fn replant_stale_token(&mut self, shard: usize, token: Token) {
        let place = (shard, token.number() & u64::from(u32::MAX));
        if self.planted.old_places.contains(&place) && self.planted.strikes(Mutant::StaleToken) {
            self.note("PLANT: an old report is told of a new stream", 0, 0);
            self.net.add_stale(shard, token);
        }
    }

    /// Remembers a slot that is free again.
    pub(crate) fn forget_stale_token(&mut self, shard: usize, token: Option<Token>) {
        if let Some(token) = token
            && self.planted.mutant == Some(Mutant::StaleToken)
        {
            self.planted.old_places.insert((shard, token.number() & u64::from(u32::MAX)));
        }
    }
}
