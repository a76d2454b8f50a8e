//! The bytes that the gateway sent on each stream.
//!
//! The digest of a world changes with every event in the world. Its transcript changes only with the bytes that another
//! party receives from the gateway: an internal change of the gateway that is not visible outside leaves the
//! transcripts of all seeds unchanged.

use std::collections::BTreeMap;

/// A summary of the bytes on all streams of a world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transcript {
    /// The number of streams on which bytes were sent.
    pub streams: u64,
    /// The number of bytes on all streams.
    pub bytes: u64,
    /// A digest of the bytes and their receivers.
    pub digest: u64,
}

/// The bytes that were sent to one party.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) bytes: u64,
    pub(crate) digest: u64,
}

/// The bytes of each stream until now.
#[derive(Debug, Default)]
pub(crate) struct Transcripts(pub(crate) BTreeMap<(&'static str, usize), Sent>);

/// The offset basis of 64-bit FNV-1a.
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
