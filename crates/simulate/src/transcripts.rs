//! What the gateway has sent on each stream.
//!
//! The digest of a world changes with everything that happens in it. Its transcript changes only with
//! the bytes that somebody gets from the gateway: a change inside the gateway that nobody outside can see
//! leaves the transcripts of all seeds as they are.

use std::collections::BTreeMap;

/// The bytes of all streams of a world, as numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transcript {
    /// Streams on which something was sent.
    pub streams: u64,
    /// What was sent on all of them together.
    pub bytes: u64,
    /// One number for which bytes were sent to whom.
    pub digest: u64,
}

/// What was sent to one party.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) bytes: u64,
    pub(crate) digest: u64,
}

/// The bytes of each stream so far.
#[derive(Debug, Default)]
pub(crate) struct Transcripts(pub(crate) BTreeMap<(&'static str, usize), Sent>);

/// FNV-1a, 64 bits.
pub(crate) const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;

pub(crate) const PRIME: u64 = 0x0000_0100_0000_01b3;

pub(crate) fn fnv(digest: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(digest, |digest, byte| (digest ^ u64::from(*byte)).wrapping_mul(PRIME))
}

impl Transcripts {
    pub(crate) fn sent(&mut self, to: (&'static str, usize), bytes: &[u8]) {
        let sent = self.0.entry(to).or_insert(Sent { bytes: 0, digest: OFFSET });
        sent.bytes += bytes.len() as u64;
        sent.digest = fnv(sent.digest, bytes);
    }

    pub(crate) fn transcript(&self) -> Transcript {
        let mut whole = Transcript { digest: OFFSET, ..Transcript::default() };
        for ((kind, number), sent) in &self.0 {
            whole.streams += 1;
            whole.bytes += sent.bytes;
            whole.digest = fnv(whole.digest, kind.as_bytes());
            for word in [*number as u64, sent.bytes, sent.digest] {
                whole.digest = fnv(whole.digest, &word.to_le_bytes());
            }
        }
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_counts_and_how_it_is_cut_does_not() {
        let whole = |sent: &[(usize, &[u8])]| {
            let mut transcripts = Transcripts::default();
            sent.iter().for_each(|(to, bytes)| transcripts.sent(("client", *to), bytes));
            transcripts.transcript()
        };
        let one = whole(&[(1, b"ab"), (2, b"c"), (1, b"d")]);
        assert_eq!((one.streams, one.bytes), (2, 4));
        assert_eq!(one, whole(&[(2, b"c"), (1, b"abd")]));
        assert_ne!(one, whole(&[(2, b"c"), (1, b"adb")]));
        assert_ne!(one, whole(&[(1, b"c"), (2, b"abd")]));
        assert_ne!(one, whole(&[(1, b"abd"), (2, b"c"), (3, b"")]));
    }
}
