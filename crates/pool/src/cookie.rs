//! The value of a cookie that names the worker of a client: encoding and decoding.
//!
//! There are four modes: *insert* adds a cookie of ours; *rewrite* replaces the value that the worker gave to its own
//! cookie; *prefix* puts our value before the worker's value and removes it again; *passive* sets nothing and learns
//! the worker's value (the affinity table stores it, so nothing is done here).
//!
//! A value never reveals an address or a name. An *opaque* value is a keyed digest of the worker's name. A *signed*
//! value also has the time and a code (HMAC-SHA-256, truncated to 128 bits), so that it cannot be forged, and cannot be
//! used beyond its lifetime or in another pool.

use std::hash::Hasher;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use siphasher::sip::SipHasher24;

/// How the cookie of a client is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CookieMode {
    /// A cookie of ours is added.
    Insert,
    /// The value of the worker's cookie is replaced by ours.
    Rewrite,
    /// Our value is put before the worker's value, separated by `~`.
    Prefix,
    /// The worker's value is learnt.
    Passive,
}

/// The content of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CookieValue {
    /// A digest of the worker's name.
    Opaque,
    /// The digest, the time of its creation, and a code over both.
    Signed,
}

/// Why a value names no worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CookieFault {
    /// The value was not made by this daemon.
    Foreign,
    /// The code is wrong.
    Forged,
    /// The value is older than its lifetime, or from the future.
    Old,
}

/// The length of a signed value in bytes: digest, seconds since the Unix epoch, code.
const SIGNED: usize = 8 + 4 + 16;
/// The maximum difference between the clocks of two machines, in seconds.
const SECONDS_AHEAD: u32 = 300;
/// Separates our value from the worker's.
const BETWEEN: u8 = b'~';

/// Encodes and decodes the cookie values of one pool.
///
/// ```
/// use pool::{CookieCodec, CookieFault, CookieValue};
/// let codec = CookieCodec::new(b"a secret of 16 bytes or more", "api", CookieValue::Signed, 90);
/// let value = codec.write("10.0.0.1:8000", 1_800_000_000);
/// assert_eq!(codec.read(value.as_bytes(), 1_800_000_090), Ok(codec.name("10.0.0.1:8000")));
/// assert_eq!(codec.read(value.as_bytes(), 1_800_000_091), Err(CookieFault::Old));
/// ```
#[derive(Clone)]
pub struct CookieCodec {
    value: CookieValue,
    mac: Hmac<Sha256>,
    names: (u64, u64),
    lifetime_s: u32,
}

impl std::fmt::Debug for CookieCodec {
    /// Omits the secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CookieCodec").field("value", &self.value).finish_non_exhaustive()
    }
}

impl CookieCodec {
    /// Creates the codec of a pool. Machines that share clients must have the same secret.
    #[must_use]
    pub fn new(secret: &[u8], pool: &str, value: CookieValue, lifetime_s: u32) -> Self {
        let keyed = |secret: &[u8]| {
            <Hmac<Sha256> as KeyInit>::new_from_slice(secret).expect("a key of any length will do")
        };
        let mut derive = keyed(secret);
        derive.update(b"roadstead worker names of pool ");
        derive.update(pool.as_bytes());
        let names = derive.finalize().into_bytes();
        let half = |at: usize| {
            u64::from_le_bytes(names[at..at + 8].try_into().expect("a digest has 32 bytes"))
        };
        let mut mac = keyed(secret);
        mac.update(b"roadstead cookie of pool ");
        mac.update(pool.as_bytes());
        mac.update(&[0]);
        Self { value, mac, names: (half(0), half(8)), lifetime_s }
    }

    /// Returns the digest of a worker's name.
    #[must_use]
    pub fn name(&self, worker: &str) -> u64 {
        let mut hasher = SipHasher24::new_with_keys(self.names.0, self.names.1);
        hasher.write(worker.as_bytes());
        hasher.finish()
    }

    /// Returns the value for a client of this worker. `second` counts from the Unix epoch.
    #[must_use]
    pub fn write(&self, worker: &str, second: u32) -> String {
        let name = self.name(worker).to_be_bytes();
        match self.value {
            CookieValue::Opaque => hex(&name),
            CookieValue::Signed => {
                let mut bytes = Vec::with_capacity(SIGNED);
                bytes.extend_from_slice(&name);
                bytes.extend_from_slice(&second.to_be_bytes());
                let mut mac = self.mac.clone();
                mac.update(&bytes);
                bytes.extend_from_slice(&mac.finalize().into_bytes()[..16]);
                hex(&bytes)
            }
        }
    }

    /// Returns the worker that a value names, as [`name`](Self::name) returns it.
    ///
    /// # Errors
    /// When the value was not made by this codec, was changed, or is too old.
    pub fn read(&self, value: &[u8], second: u32) -> Result<u64, CookieFault> {
        self.read_aged(value, second).map(|(name, _)| name)
    }

    /// Like [`read`](Self::read), with the age in seconds if the value contains it.
    ///
    /// # Errors
    /// Like [`read`](Self::read).
    pub fn read_aged(&self, value: &[u8], second: u32) -> Result<(u64, Option<u32>), CookieFault> {
        let name = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        match self.value {
            CookieValue::Opaque => {
                let [high, low] = unhex(value).ok_or(CookieFault::Foreign)?;
                Ok((name(high, low), None))
            }
            CookieValue::Signed => {
                let words: [u32; SIGNED / 4] = unhex(value).ok_or(CookieFault::Foreign)?;
                let mut bytes = [0; SIGNED];
                for (to, word) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
                    *to = word.to_be_bytes();
                }
                let mut mac = self.mac.clone();
                mac.update(&bytes[..12]);
                mac.verify_truncated_left(&bytes[12..]).map_err(|_| CookieFault::Forged)?;
                let [high, low, made, ..] = words;
                let ahead = made.saturating_sub(second);
                let age = second.saturating_sub(made);
                if age > self.lifetime_s || ahead > SECONDS_AHEAD {
                    return Err(CookieFault::Old);
                }
                Ok((name(high, low), Some(age)))
            }
        }
    }
}

/// Puts our value before the worker's value (mode `prefix`).
#[must_use]
pub fn prefixed(ours: &str, workers: &[u8]) -> Vec<u8> {
    [ours.as_bytes(), &[BETWEEN], workers].concat()
}

/// Returns our value and the worker's value; `None` if ours is missing.
#[must_use]
pub fn split_prefixed(value: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = value.iter().position(|byte| *byte == BETWEEN)?;
    Some((&value[..at], &value[at + 1..]))
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

/// Decodes words of eight lower-case hexadecimal digits each, the most significant digit first.
#[inline]
fn unhex<const WORDS: usize>(digits: &[u8]) -> Option<[u32; WORDS]> {
    let (eights, rest) = digits.as_chunks::<8>();
    if !rest.is_empty() || eights.len() != WORDS {
        return None;
    }
    let mut words = [0; WORDS];
    for (to, eight) in words.iter_mut().zip(eights) {
        *to = unhex_word(*eight)?;
    }
    Some(words)
}

/// Decodes eight digits together, one byte each: `0` to `9` are 0x30 to 0x39, and `a` to `f` are 0x61 to 0x66.
#[inline]
fn unhex_word(digits: [u8; 8]) -> Option<u32> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let digits = u64::from_be_bytes(digits);
    // One bit for each byte that is a letter. Some bytes that are no digits have it too.
    let letters = digits >> 6 & ONES;
    let low = digits ^ (ONES * 0x30) ^ (letters * (0x30 ^ 0x60));
    let values = low.wrapping_add(letters * 9);
    // Every value must be below 16; values above 9 must be letters, and the values of letters must be above 9.
    let is_fit = low & (ONES * 0xf0) == 0 && values & (ONES * 0x10) == 0;
    if !is_fit || (values + ONES * 6) >> 4 & ONES != letters {
        return None;
    }
    let pairs = (values | values >> 4) & 0x00ff_00ff_00ff_00ff;
    let halves = (pairs | pairs >> 8) & 0x0000_ffff_0000_ffff;
    u32::try_from((halves | halves >> 16) & 0xffff_ffff).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &[u8] = b"0123456789abcdef";
    const WORKER: &str = "10.0.0.1:8000";

    fn codec(value: CookieValue) -> CookieCodec {
        CookieCodec::new(SECRET, "api", value, 60)
    }

    #[test]
    fn a_value_comes_back_and_tells_nothing() {
        for value in [CookieValue::Opaque, CookieValue::Signed] {
            let codec = codec(value);
            let written = codec.write(WORKER, 1000);
            assert_eq!(codec.read(written.as_bytes(), 1000), Ok(codec.name(WORKER)));
            assert!(!written.contains("10.0.0.1") && !written.contains(&hex(WORKER.as_bytes())));
            assert_ne!(codec.name(WORKER), codec.name("10.0.0.2:8000"));
        }
    }

    #[test]
    fn every_bit_of_a_signed_value_counts() {
        let codec = codec(CookieValue::Signed);
        let written = codec.write(WORKER, 1000).into_bytes();
        for at in 0..written.len() {
            let mut changed = written.clone();
            changed[at] = if changed[at] == b'0' { b'1' } else { b'0' };
            assert_eq!(codec.read(&changed, 1000), Err(CookieFault::Forged), "at {at}");
        }
    }

    #[test]
    fn a_value_is_good_in_its_time_and_in_its_pool_only() {
        let codec = codec(CookieValue::Signed);
        let written = codec.write(WORKER, 1000);
        assert!(codec.read(written.as_bytes(), 1060).is_ok());
        assert_eq!(codec.read(written.as_bytes(), 1061), Err(CookieFault::Old));
        assert!(codec.read(written.as_bytes(), 700).is_ok());
        assert_eq!(codec.read(written.as_bytes(), 699), Err(CookieFault::Old));
        let other = CookieCodec::new(SECRET, "web", CookieValue::Signed, 60);
        assert_eq!(other.read(written.as_bytes(), 1000), Err(CookieFault::Forged));
        assert_ne!(other.name(WORKER), codec.name(WORKER));
    }

    #[test]
    fn what_is_not_ours_is_told_apart() {
        let long = "0".repeat(1000);
        for foreign in ["", "0", "zz", "10.0.0.1:8000", "0011", "ABCDEF0123456789", &long] {
            for value in [CookieValue::Opaque, CookieValue::Signed] {
                let read = codec(value).read(foreign.as_bytes(), 0);
                assert_eq!(read, Err(CookieFault::Foreign), "{foreign}");
            }
        }
    }

    #[test]
    fn every_byte_is_a_digit_or_none_wherever_it_stands() {
        for at in 0..8 {
            for byte in 0..=255_u8 {
                let mut digits = *b"09afa059";
                digits[at] = byte;
                let text = std::str::from_utf8(&digits).ok();
                let lower = !byte.is_ascii_uppercase() && byte != b'+';
                let due = text.filter(|_| lower).and_then(|it| u32::from_str_radix(it, 16).ok());
                assert_eq!(unhex_word(digits), due, "{byte} at {at}");
            }
        }
    }

    #[test]
    fn a_prefix_is_put_on_and_taken_off() {
        let value = prefixed("abc", b"their~own");
        assert_eq!(split_prefixed(&value), Some((&b"abc"[..], &b"their~own"[..])));
        assert_eq!(split_prefixed(b"theirs"), None);
    }
}
