//! The bytes of a digest, and of a list of entries, between daemons.
//!
//! ```text
//!   digest:   format (1), origin: 8, epoch: 16, revision: 8, incomplete shards: 32, 256 × (entries: 4, sum: 8)
//!   list:     format (1), n × (key: 16, target: 8, revision: 8)                               little endian
//! ```

use exchange::SharedKey;

use crate::digest::{Digest, Listed, SHARDS, ShardDigest};
use crate::identity::{Epoch, Origin, Target};
use crate::shard_set::ShardSet;

const FORMAT: u8 = 1;
const DIGEST_LENGTH: usize = 1 + 8 + 16 + 8 + 32 + SHARDS * 12;
const LISTED_LENGTH: usize = 32;

/// Takes bytes from the front of a slice.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take()?))
    }
}

impl Digest {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(DIGEST_LENGTH);
        bytes.push(FORMAT);
        bytes.extend(self.origin.0.to_le_bytes());
        bytes.extend(self.epoch.0.to_le_bytes());
        bytes.extend(self.revision.to_le_bytes());
        for shards in (0..=u8::MAX).collect::<Vec<_>>().chunks(8) {
            let bits = shards.iter().rev();
            bytes
                .push(bits.fold(0, |bits, &it| bits << 1 | u8::from(self.incomplete.contains(it))));
        }
        for shard in self.shards.iter() {
            bytes.extend(shard.entries.to_le_bytes());
            bytes.extend(shard.sum.to_le_bytes());
        }
        bytes
    }

    /// Reads a digest. `None`: this version does not know the format.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut bytes = Bytes(bytes);
        if bytes.take()? != [FORMAT] {
            return None;
        }
        let origin = Origin(bytes.number()?);
        let epoch = Epoch(u128::from_le_bytes(bytes.take()?));
        let revision = bytes.number()?;
        let mut incomplete = ShardSet::default();
        let bits: [u8; SHARDS / 8] = bytes.take()?;
        for shard in 0..=u8::MAX {
            if bits[usize::from(shard) / 8] >> (shard % 8) & 1 == 1 {
                incomplete.insert(shard);
            }
        }
        let mut shards = Box::new([ShardDigest::default(); SHARDS]);
        for shard in shards.iter_mut() {
            shard.entries = u32::from_le_bytes(bytes.take()?);
            shard.sum = bytes.number()?;
        }
        bytes.0.is_empty().then_some(Self { origin, epoch, revision, shards, incomplete })
    }
}

pub(crate) fn encode_list(list: &[Listed]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(1 + list.len() * LISTED_LENGTH);
    bytes.push(FORMAT);
    for Listed { key, target, revision } in list {
        bytes.extend(key.bytes());
        bytes.extend(target.0.to_le_bytes());
        bytes.extend(revision.to_le_bytes());
    }
    bytes
}

/// Reads a list. `None`: this version does not know the format.
pub(crate) fn decode_list(bytes: &[u8]) -> Option<Vec<Listed>> {
    let mut bytes = Bytes(bytes);
    if bytes.take()? != [FORMAT] {
        return None;
    }
    let mut list = Vec::with_capacity(bytes.0.len() / LISTED_LENGTH);
    while !bytes.0.is_empty() {
        let key = SharedKey(bytes.take()?).into();
        list.push(Listed { key, target: Target(bytes.number()?), revision: bytes.number()? });
    }
    Some(list)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{Key, Secret};

    #[test]
    fn digests_and_lists_are_read_back_and_others_are_rejected() {
        let mut shards = Box::new([ShardDigest::default(); SHARDS]);
        shards[3] = ShardDigest { entries: 5, sum: u64::MAX - 2 };
        let mut incomplete = ShardSet::default();
        [0, 9, 255].into_iter().for_each(|shard| incomplete.insert(shard));
        let (origin, epoch) = (Origin(u64::MAX), Epoch(u128::MAX / 7));
        let digest = Digest { origin, epoch, revision: 12, shards, incomplete };
        let bytes = digest.encode();
        assert_eq!(Digest::decode(&bytes), Some(digest));
        assert_eq!(Digest::decode(&bytes[..bytes.len() - 1]), None);
        assert_eq!(Digest::decode(&[&bytes[..], &[0]].concat()), None);
        let key = Key::new(Secret(1, 2), b"a");
        let list = [Listed { key, target: Target(7), revision: 8 }];
        assert_eq!(decode_list(&encode_list(&list)).as_deref(), Some(&list[..]));
        assert_eq!(decode_list(&encode_list(&list)[..20]), None);
        assert_eq!(decode_list(b""), None);
    }
}
