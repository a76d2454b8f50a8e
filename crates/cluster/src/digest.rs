//! Proof by content that two daemons have the same table.
//!
//! The digest of a shard is the number of entries that the server has, and the sum (exclusive or) of their keyed hashes.
//! It is a function of the stream up to a revision, so two daemons can compare it only at the same revision: each takes
//! its digest when the watch delivers a mark (a write of the key `_epoch`, every 10 s).

use std::hash::Hasher;

use exchange::mutant::{Mutant, active};
use siphasher::sip::SipHasher13;

use crate::identity::{Epoch, Origin, Target};
use crate::key::{Key, Secret};
use crate::shard_set::ShardSet;

/// The number of shards.
pub const SHARDS: usize = 256;

/// The digest of one shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShardDigest {
    /// The number of entries.
    pub entries: u32,
    /// The exclusive or of the keyed hashes of all entries.
    pub sum: u64,
}

impl ShardDigest {
    pub(crate) fn add(&mut self, secret: Secret, listed: &Listed) {
        self.entries += 1;
        self.sum ^= hash(secret, listed);
    }

    pub(crate) fn remove(&mut self, secret: Secret, listed: &Listed) {
        self.entries -= 1;
        self.sum ^= hash(secret, listed);
    }
}

/// The digest of a table at a revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digest {
    /// The daemon whose table it is.
    pub origin: Origin,
    /// The epoch of the bucket.
    pub epoch: Epoch,
    /// The revision up to which the stream was read.
    pub revision: u64,
    pub(crate) shards: Box<[ShardDigest; SHARDS]>,
    /// Shards that must not be compared: they are being fetched, or the daemon has no room for all of their entries.
    pub(crate) incomplete: ShardSet,
}

impl Digest {
    /// The number of entries that the server has, as far as they are known.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.shards.iter().map(|shard| u64::from(shard.entries)).sum()
    }

    /// The digest of a shard, unless it is incomplete.
    #[must_use]
    pub fn shard(&self, shard: u8) -> Option<ShardDigest> {
        (!self.incomplete.contains(shard)).then_some(self.shards[usize::from(shard)])
    }

    /// Whether the other digest is one of the same contents: of the same epoch, at the same revision.
    #[must_use]
    pub fn is_comparable(&self, other: &Self) -> bool {
        (self.epoch, self.revision) == (other.epoch, other.revision)
    }

    /// Returns the shards that differ. Shards that are incomplete in one of the digests are left out.
    pub(crate) fn differing(&self, other: &Self) -> ShardSet {
        let mut differing = ShardSet::default();
        for shard in 0..=u8::MAX {
            if let (Some(one), Some(two)) = (self.shard(shard), other.shard(shard))
                && one != two
            {
                differing.insert(shard);
            }
        }
        differing
    }
}

/// An entry as the server has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Listed {
    /// The client.
    pub key: Key,
    /// Its target.
    pub target: Target,
    /// The revision of the last write.
    pub revision: u64,
}

/// A client that two daemons know differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The client.
    pub key: Key,
    /// The entry in the first list.
    pub ours: Option<Listed>,
    /// The entry in the second list.
    pub theirs: Option<Listed>,
}

/// Compares two lists of entries, each sorted by key, key by key.
///
/// ```
/// use cluster::{Key, Listed, Secret, Target, differences};
///
/// let key = Key::new(Secret(1, 2), b"client");
/// let ours = [Listed { key, target: Target(1), revision: 5 }];
/// let theirs = [Listed { key, target: Target(2), revision: 5 }];
/// assert!(differences(&ours, &ours).is_empty());
/// assert_eq!(differences(&ours, &theirs)[0].theirs, Some(theirs[0]));
/// ```
#[must_use]
pub fn differences(ours: &[Listed], theirs: &[Listed]) -> Vec<Difference> {
    let (mut ours, mut theirs) = (ours.iter().peekable(), theirs.iter().peekable());
    let mut found = Vec::new();
    loop {
        let key = match (ours.peek(), theirs.peek()) {
            (Some(one), Some(other)) => one.key.min(other.key),
            (Some(only), None) | (None, Some(only)) => only.key,
            (None, None) => return found,
        };
        let one = ours.next_if(|listed| listed.key == key).copied();
        let other = theirs.next_if(|listed| listed.key == key).copied();
        if one != other {
            found.push(Difference { key, ours: one, theirs: other });
        }
    }
}

fn hash(secret: Secret, listed: &Listed) -> u64 {
    let mut hasher = SipHasher13::new_with_keys(secret.0, !secret.1);
    hasher.write(listed.key.bytes());
    hasher.write_u64(listed.revision);
    if !active(Mutant::DigestWithoutTargets) {
        hasher.write_u64(listed.target.0);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(number: u8, target: u64, revision: u64) -> Listed {
        Listed { key: Key::new(Secret(0, 0), &[number]), target: Target(target), revision }
    }

    #[test]
    fn a_digest_depends_on_every_part_and_not_on_the_order() {
        let of = |entries: &[Listed]| {
            let mut digest = ShardDigest::default();
            entries.iter().for_each(|listed| digest.add(Secret(5, 6), listed));
            digest
        };
        let (one, two) = (listed(1, 1, 1), listed(2, 2, 2));
        assert_eq!(of(&[one, two]), of(&[two, one]));
        for other in [listed(1, 9, 1), listed(1, 1, 9), listed(9, 1, 1)] {
            assert_ne!(of(&[one, two]), of(&[other, two]));
        }
        let mut less = of(&[one, two]);
        less.remove(Secret(5, 6), &two);
        assert_eq!(less, of(&[one]));
    }

    #[test]
    fn differences_are_listed_key_by_key() {
        let mut ours = [listed(1, 1, 1), listed(2, 2, 2), listed(3, 3, 3)];
        let mut theirs = [listed(2, 2, 2), listed(3, 4, 3), listed(4, 4, 4)];
        ours.sort();
        theirs.sort();
        let mut found: Vec<_> = differences(&ours, &theirs)
            .iter()
            .map(|it| (it.ours.map(|it| it.target.0), it.theirs.map(|it| it.target.0)))
            .collect();
        found.sort_unstable();
        assert_eq!(found, [(None, Some(4)), (Some(1), None), (Some(3), Some(4))]);
    }
}
