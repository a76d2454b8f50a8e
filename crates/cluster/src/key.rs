//! The key of a client, as all daemons of a cluster know it.

use std::fmt;
use std::hash::Hasher;

use exchange::SharedKey;
use sha2::{Digest as _, Sha256};
use siphasher::sip128::{Hasher128, SipHasher13};

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/// The value of each digit of the alphabet. Other bytes have [`NO_DIGIT`].
const VALUES: &[u8; 256] = &values();
const NO_DIGIT: u8 = 64;

const fn values() -> [u8; 256] {
    let mut values = [NO_DIGIT; 256];
    let mut value = 0;
    while value < NO_DIGIT {
        values[ALPHABET[value as usize] as usize] = value;
        value += 1;
    }
    values
}

/// The secret of a cluster. All its daemons have the same.
#[derive(Clone, Copy)]
pub struct Secret(pub u64, pub u64);

impl Secret {
    /// Derives the numbers from the text of a configuration.
    #[must_use]
    pub fn from_text(text: &[u8]) -> Self {
        let mut digest = Sha256::new();
        digest.update(b"roadstead shared bindings");
        digest.update(text);
        let digest = digest.finalize();
        let number = |at: usize| {
            digest[at..at + 8].iter().fold(0, |number, &byte| number << 8 | u64::from(byte))
        };
        Self(number(0), number(8))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(…)")
    }
}

/// A hash of 128 bits of a client's key, keyed by the secret of the cluster. The original key (an address or the value
/// of a cookie) never leaves the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key([u8; 16]);

impl Key {
    /// The length of the key's name in the bucket, in bytes.
    pub const NAME_LENGTH: usize = 25;

    /// Hashes the key of a client.
    #[must_use]
    pub fn new(secret: Secret, client: &[u8]) -> Self {
        let mut hasher = SipHasher13::new_with_keys(secret.0, secret.1);
        hasher.write(client);
        Self(hasher.finish128().as_bytes())
    }

    /// One of 256 parts of the table. Digests are compared by shard.
    #[must_use]
    pub const fn shard(&self) -> u8 {
        self.0[0]
    }

    /// The key in the form of the table of a pool.
    #[must_use]
    pub const fn shared(&self) -> SharedKey {
        SharedKey(self.0)
    }

    pub(crate) const fn bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// The hash for the index of the table: a part of the key, which is a keyed hash already.
    pub(crate) fn hash(&self) -> u64 {
        self.0[8..].iter().fold(0, |hash, &byte| hash << 8 | u64::from(byte))
    }

    /// Returns the key's name in the bucket: the shard in two hexadecimal digits, a dot, and the hash in base64url.
    ///
    /// ```
    /// use cluster::{Key, Secret};
    ///
    /// let key = Key::new(Secret(1, 2), b"192.0.2.1");
    /// let name = key.name();
    /// assert!(name.starts_with(&format!("{:02x}.", key.shard())));
    /// assert_eq!(Key::from_name(&name), Some(key));
    /// ```
    #[must_use]
    pub fn name(&self) -> String {
        let mut name = format!("{:02x}.", self.shard());
        for part in self.0.chunks(3) {
            let bits = (0..3)
                .fold(0, |bits, at| bits << 8 | usize::from(part.get(at).copied().unwrap_or(0)));
            for digit in 0..=part.len() {
                name.push(char::from(ALPHABET[bits >> (18 - 6 * digit) & 63]));
            }
        }
        name
    }

    /// Reads a name from the bucket. Only names that [`Key::name`] returns are accepted.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let (_, digits) = name.split_once('.')?;
        if name.len() != Self::NAME_LENGTH {
            return None;
        }
        let (mut bytes, mut length, mut bits, mut held) = ([0; 16], 0, 0_u32, 0);
        for digit in digits.bytes() {
            let value = VALUES[usize::from(digit)];
            if value == NO_DIGIT {
                return None;
            }
            bits = bits << 6 | u32::from(value);
            held += 6;
            if held >= 8 && length < bytes.len() {
                held -= 8;
                bytes[length] = u8::try_from(bits >> held & 255).ok()?;
                length += 1;
            }
        }
        let key = Self(bytes);
        (key.name() == name).then_some(key)
    }
}

impl From<SharedKey> for Key {
    fn from(key: SharedKey) -> Self {
        Self(key.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_back_and_others_are_rejected() {
        for number in 0..1000_u32 {
            let key = Key::new(Secret(3, 4), &number.to_le_bytes());
            let name = key.name();
            assert_eq!(name.len(), Key::NAME_LENGTH);
            assert_eq!(Key::from_name(&name), Some(key));
            assert_eq!(Key::from_name(&name[1..]), None);
            assert_eq!(Key::from_name(&name.replacen('.', "-", 1)), None);
            let other = if name.starts_with('0') { "1" } else { "0" };
            assert_eq!(Key::from_name(&format!("{other}{}", &name[1..])), None, "another shard");
        }
        for name in ["_epoch", "", "é0.AAAAAAAAAAAAAAAAAAAAAA", "00.AAAAAAAAAAAAAAAAAAAAAB"] {
            assert_eq!(Key::from_name(name), None, "{name}");
        }
        assert_ne!(Key::new(Secret(3, 4), b"a"), Key::new(Secret(3, 5), b"a"));
    }
}
