//! Other workers and other slots of a pool that several shards serve.
//!
//! A place is a server's for good: one that comes later stands behind all that were there before, on
//! every shard, so that whatever is said of a place means the same server. A server that left has no
//! slots. Tokens that are too many are kept back at home as they come: until all have come the word is
//! closed, so that each comes there.

use std::sync::Arc;
use std::time::Instant;

use super::{Hand, Pool, Shared};
use crate::Payload;
use crate::pool::PlaceNews;
use crate::tokens::Tokens;

/// What a branch knows of a server of which its home has told nothing.
const UNTOLD: PlaceNews =
    PlaceNews { worker: None, serves: false, open: false, weight: 0, out: None };

impl Shared {
    /// The words of further places, each with so many tokens.
    fn lengthen(&mut self, words: &[Arc<Tokens>], slots: &[u32]) {
        let before = self.words.len();
        self.words.extend(words.iter().skip(before).cloned());
        self.hands.resize(self.words.len(), Hand::default());
        let new = slots.iter().take(self.words.len()).skip(before);
        self.slots += new.clone().map(|&slots| u64::from(slots)).sum::<u64>();
        self.allotted.extend(new);
    }

    /// A place has so many slots. Gives how many tokens are to be put in.
    fn allot(&mut self, place: u32, slots: u32) -> u32 {
        let Some(allotted) = self.allotted.get_mut(place as usize) else { return 0 };
        let before = std::mem::replace(allotted, slots);
        let Some((hand, _)) = self.hand(place) else { return 0 };
        hand.owed += before.saturating_sub(slots);
        let kept = hand.owed.min(slots.saturating_sub(before));
        hand.owed -= kept;
        let more = slots.saturating_sub(before + kept);
        self.slots += u64::from(more);
        self.collect(place);
        more
    }

    /// Keeps back what is too many and can be had. Where more is to come the word is closed.
    fn collect(&mut self, place: u32) {
        let (mut kept, mut is_new) = (0, false);
        if let Some((hand, word)) = self.hand(place) {
            while hand.owed > 0 {
                if hand.tokens > 0 {
                    hand.tokens -= 1;
                } else if hand.out || !word.take_or_close() {
                    hand.out = true;
                    break;
                }
                hand.owed -= 1;
                kept += 1;
            }
            is_new = hand.out && !std::mem::replace(&mut hand.touched, true);
        }
        self.slots -= kept;
        if is_new {
            self.touched.push(place);
        }
    }
}

impl<P: Payload> Pool<P> {
    /// The workers of a pool that several shards serve have so many slots from now on, by place; none:
    /// it left. Words of further places, which hold as many tokens, stand behind those that were there.
    /// [`Self::handle_settings`] with the same workers follows.
    pub fn handle_slots(&mut self, now: Instant, words: &[Arc<Tokens>], slots: &[u32]) {
        self.begin(now);
        let Some(shared) = &mut self.shared else { return };
        shared.lengthen(words, slots);
        if !shared.is_home {
            return;
        }
        for (place, &slots) in (0..).zip(slots) {
            let more = self.shared.as_mut().map_or(0, |shared| shared.allot(place, slots));
            self.give_back(place, more);
        }
    }

    /// What its home said of places before this branch knew them is known of them now.
    pub(in crate::pool) fn tell_new_places(&mut self) {
        let Some(shared) = self.shared.as_ref().filter(|shared| !shared.is_home) else { return };
        for place in self.roster.places() {
            let profile = self.roster.at_mut(place);
            if profile.told.is_none() {
                let told = shared.news.places.get(place as usize).copied().unwrap_or(UNTOLD);
                profile.told = Some(told);
                profile.set_weight(Some(told.weight));
            }
        }
    }
}
