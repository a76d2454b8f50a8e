//! Names for lookups: bytes and a tag.
//!
//! A tag consists of the length of the name and a hash that ignores case. A lookup compares the bytes only if the tags
//! are equal. A tag also selects one of 64 bits. A set has this bit if it may contain the name: each name in [`known`]
//! has a bit that no other known name has, and all other names share the remaining bits. A set without the bit need not
//! be searched.

/// How the names of a set are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// Byte by byte, for rows and parameters.
    Exact,
    /// Without case, for header fields. The spelling is preserved.
    Ignored,
}

/// The name of a field: text, bytes, or a [`Name`] whose tag is computed at compile time.
pub trait AsName {
    /// The bytes of the name.
    fn as_name(&self) -> &[u8];

    /// The tag of the name.
    #[inline]
    fn tag(&self) -> Tag {
        Tag::of(self.as_name())
    }
}

impl AsName for [u8] {
    #[inline]
    fn as_name(&self) -> &[u8] {
        self
    }
}

impl<const N: usize> AsName for [u8; N] {
    #[inline]
    fn as_name(&self) -> &[u8] {
        self
    }
}

impl AsName for Vec<u8> {
    #[inline]
    fn as_name(&self) -> &[u8] {
        self
    }
}

impl AsName for str {
    #[inline]
    fn as_name(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl AsName for String {
    #[inline]
    fn as_name(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl<N: AsName + ?Sized> AsName for &N {
    #[inline]
    fn as_name(&self) -> &[u8] {
        (**self).as_name()
    }

    #[inline]
    fn tag(&self) -> Tag {
        (**self).tag()
    }
}

/// A name whose tag is computed at compile time.
///
/// ```
/// use fields::{Fields, Name};
///
/// const TRACE: Name = Name::new("X-Trace");
/// let mut fields = Fields::headers();
/// fields.append(&TRACE, "17")?;
/// assert!(fields.contains("x-trace"));
/// # Ok::<(), fields::FieldError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    text: &'static str,
    tag: Tag,
}

impl Name {
    /// Creates a name from its text.
    #[must_use]
    pub const fn new(text: &'static str) -> Self {
        Self { text, tag: Tag::of(text.as_bytes()) }
    }

    /// The text of the name.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        self.text
    }
}

impl AsName for Name {
    #[inline]
    fn as_name(&self) -> &[u8] {
        self.text.as_bytes()
    }

    #[inline]
    fn tag(&self) -> Tag {
        self.tag
    }
}

/// Several names. One comparison tests whether a set may contain one of them.
///
/// ```
/// use fields::{Fields, NameSet, known};
///
/// const ENDS: NameSet = NameSet::of(&[&known::CONNECTION, &known::TRAILER]);
/// let mut fields = Fields::headers();
/// assert!(!fields.may_have_any(ENDS));
/// fields.append("connection", "close")?;
/// assert!(fields.may_have_any(ENDS));
/// # Ok::<(), fields::FieldError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct NameSet(u64);

impl NameSet {
    /// Creates a set of these names.
    #[must_use]
    pub const fn of(names: &[&Name]) -> Self {
        let (mut bits, mut rest) = (0, names);
        while let [name, behind @ ..] = rest {
            bits |= name.tag.bit();
            rest = behind;
        }
        Self(bits)
    }

    /// The bits of all names.
    #[inline]
    pub(crate) const fn bits(self) -> u64 {
        self.0
    }
}

/// A tag that is compared before the bytes of two names. It is equal for names that differ only in case.
///
/// ```text
///   | bit 6 | hash 10 | length 16 |
/// ```
///
/// The bit is the number of the bit that a set has if it may contain the name. It is derived from eight additional bits
/// of the hash. Only the lower 16 bits of the length are stored. A name that does not fit is longer than any set
/// accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag(u32);

/// A factor with evenly distributed bits (the golden ratio).
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
/// Makes the upper and lower case of a letter equal. It also makes some other bytes equal, which only costs an
/// additional comparison of such names.
const FOLD: u64 = 0x2020_2020_2020_2020;

impl Tag {
    /// The tag of a name.
    #[inline]
    #[must_use]
    pub const fn of(name: &[u8]) -> Self {
        let hash = hash(name, SEED);
        let bit = BITS[slot_of(hash)] as u32;
        let [low, high, ..] = name.len().to_le_bytes();
        let rest = (hash >> 30 & 0x03ff_0000) as u32;
        Self(bit << 26 | rest | u16::from_le_bytes([low, high]) as u32)
    }

    /// The length of the name, up to 65,535 bytes.
    #[inline]
    pub(crate) const fn length(self) -> usize {
        (self.0 & 0xffff) as usize
    }

    /// The bit that a set has if it may contain a name with this tag.
    #[inline]
    pub(crate) const fn bit(self) -> u64 {
        1 << (self.0 >> 26)
    }
}

/// Hashes three words: the first, the last, and in names of more than 16 bytes the middle one. In short names the words
/// overlap. Bytes between the words are not hashed, so the cost does not depend on the length. Names that differ only
/// in those bytes have equal hashes and are compared byte by byte.
#[inline]
const fn hash(name: &[u8], seed: u64) -> u64 {
    let (first, last) = match (name.first_chunk::<8>(), name.last_chunk::<8>()) {
        (Some(first), Some(last)) => (u64::from_le_bytes(*first), u64::from_le_bytes(*last)),
        _ => (short_word(name), 0),
    };
    let mut word = (first | FOLD) ^ (last | FOLD).rotate_left(23);
    if name.len() > 16 {
        let (_, middle) = name.split_at(name.len() / 2 - 4);
        if let Some(middle) = middle.first_chunk::<8>() {
            word ^= (u64::from_le_bytes(*middle) | FOLD).rotate_left(41);
        }
    }
    word.wrapping_mul(FACTOR.wrapping_add(seed))
}

/// The eight bits of a hash that select the bit of a set.
#[inline]
const fn slot_of(hash: u64) -> usize {
    (hash >> 56) as usize
}

/// A word with all bytes of a name of at most seven bytes.
#[inline]
const fn short_word(name: &[u8]) -> u64 {
    if let (Some(first), Some(last)) = (name.first_chunk::<4>(), name.last_chunk::<4>()) {
        return (u32::from_le_bytes(*first) as u64) << 32 | u32::from_le_bytes(*last) as u64;
    }
    match name {
        [] => 0,
        [first, .., last] | [first @ last] => {
            (*first as u64) << 16 | (name[name.len() / 2] as u64) << 8 | *last as u64
        }
    }
}

/// Whether two names with equal tags are equal.
#[inline]
pub(crate) fn same(one: &[u8], other: &[u8], case: Case) -> bool {
    match case {
        Case::Exact => one == other,
        Case::Ignored => one.len() == other.len() && same_but_for_case(one, other),
    }
}

/// Compares names of equal length without case, eight bytes at a time. The last word may overlap the one before.
#[inline]
fn same_but_for_case(one: &[u8], other: &[u8]) -> bool {
    let (Some(last), Some(other_last)) = (one.last_chunk::<8>(), other.last_chunk::<8>()) else {
        return same_short(one, other);
    };
    let (mut one, mut other) = (one, other);
    while let (Some((word, behind)), Some((other_word, other_behind))) =
        (one.split_first_chunk::<8>(), other.split_first_chunk::<8>())
    {
        if unlike(*word, *other_word) != 0 {
            return false;
        }
        (one, other) = (behind, other_behind);
    }
    unlike(*last, *other_last) == 0
}

/// Compares names of fewer than eight bytes. Names of at least four bytes are compared as two halves, which may
/// overlap.
#[inline]
fn same_short(one: &[u8], other: &[u8]) -> bool {
    match (halves(one), halves(other)) {
        (Some(one), Some(other)) => unlike(one, other) == 0,
        _ => one.eq_ignore_ascii_case(other),
    }
}

#[inline]
fn halves(name: &[u8]) -> Option<[u8; 8]> {
    let ([a, b, c, d], [e, f, g, h]) = (name.first_chunk()?, name.last_chunk()?);
    Some([*a, *b, *c, *d, *e, *f, *g, *h])
}

/// The bits in which two words differ. The case of letters is ignored.
#[inline]
fn unlike(one: [u8; 8], other: [u8; 8]) -> u64 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    const ONES: u64 = 0x0101_0101_0101_0101;
    let (one, other) = (u64::from_le_bytes(one), u64::from_le_bytes(other));
    // The high bit of each byte that is a letter: at least `a`, at most `z`, and ASCII.
    let small = (one | FOLD) & LOW;
    let from_a = small + ONES * (0x80 - b'a' as u64);
    let behind_z = small + ONES * (0x80 - b'z' as u64 - 1);
    let letters = from_a & !behind_z & !one & !LOW;
    (one ^ other) & !(letters >> 2)
}

macro_rules! known {
    ($($ident:ident $text:literal)*) => {
        /// Names of header fields that a proxy looks up. One bit tells whether a set may contain such a name.
        pub mod known {
            use super::Name;
            $(
                #[doc = concat!("`", $text, "`")]
                pub const $ident: Name = Name::new($text);
            )*
        }
        const KNOWN: &[&str] = &[$($text),*];
    };
}

known! {
    ACCEPT "accept"
    ACCEPT_ENCODING "accept-encoding"
    ACCEPT_LANGUAGE "accept-language"
    AUTHORIZATION "authorization"
    CACHE_CONTROL "cache-control"
    CONNECTION "connection"
    CONTENT_ENCODING "content-encoding"
    CONTENT_LENGTH "content-length"
    CONTENT_TYPE "content-type"
    COOKIE "cookie"
    DATE "date"
    ETAG "etag"
    EXPECT "expect"
    FORWARDED "forwarded"
    HOST "host"
    IF_MODIFIED_SINCE "if-modified-since"
    IF_NONE_MATCH "if-none-match"
    KEEP_ALIVE "keep-alive"
    LAST_MODIFIED "last-modified"
    LOCATION "location"
    ORIGIN "origin"
    PROXY_AUTHORIZATION "proxy-authorization"
    PROXY_CONNECTION "proxy-connection"
    RANGE "range"
    REFERER "referer"
    SERVER "server"
    SET_COOKIE "set-cookie"
    TE "te"
    TRAILER "trailer"
    TRANSFER_ENCODING "transfer-encoding"
    UPGRADE "upgrade"
    USER_AGENT "user-agent"
    VARY "vary"
    VIA "via"
    WWW_AUTHENTICATE "www-authenticate"
    X_FORWARDED_FOR "x-forwarded-for"
    X_FORWARDED_PROTO "x-forwarded-proto"
    X_REQUEST_ID "x-request-id"
}

/// The number of bits for all names that are not known. They follow the bits of the known names.
const SHARED: usize = 64 - KNOWN.len();

/// The first seed for which no two known names have the same slot.
const SEED: u64 = {
    let mut seed = 1;
    while !distinct(seed) {
        seed += 1;
    }
    seed
};

const fn distinct(seed: u64) -> bool {
    let mut taken = [false; 256];
    let mut index = 0;
    while index < KNOWN.len() {
        let place = slot_of(hash(KNOWN[index].as_bytes(), seed));
        if taken[place] {
            return false;
        }
        taken[place] = true;
        index += 1;
    }
    true
}

/// The number of the bit for each slot.
const BITS: [u8; 256] = {
    let mut bits = [0; 256];
    let mut slot = 0;
    while slot < 256 {
        let [bit, ..] = (KNOWN.len() + slot % SHARED).to_le_bytes();
        bits[slot] = bit;
        slot += 1;
    }
    let mut index = 0;
    while index < KNOWN.len() {
        let [bit, ..] = index.to_le_bytes();
        bits[slot_of(hash(KNOWN[index].as_bytes(), SEED))] = bit;
        index += 1;
    }
    bits
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_does_not_change_a_tag_and_one_letter_does() {
        for name in ["a", "te", "via", "host", "accept", "keep-alive", "x-forwarded-proto"] {
            let tag = Tag::of(name.as_bytes());
            assert_eq!(Tag::of(name.to_ascii_uppercase().as_bytes()), tag, "{name}");
            for place in 0..name.len() {
                let mut other = name.as_bytes().to_vec();
                other[place] = if other[place] == b'q' { b'z' } else { b'q' };
                assert_ne!(Tag::of(&other), tag, "{name} at {place}");
            }
        }
    }

    #[test]
    fn names_are_compared_as_the_standard_library_does() {
        for length in [1, 3, 4, 5, 7, 8, 9, 16, 19] {
            for place in 0..length {
                for (one, other) in (0..=255).flat_map(|a| (0..=255).map(move |b| (a, b))) {
                    let (mut first, mut second) = (vec![b'x'; length], vec![b'X'; length]);
                    (first[place], second[place]) = (one, other);
                    let expected = first.eq_ignore_ascii_case(&second);
                    assert_eq!(same(&first, &second, Case::Ignored), expected, "{one} {other}");
                }
            }
        }
        assert!(!same(b"abc", b"ab", Case::Ignored));
    }

    #[test]
    fn each_known_name_has_a_bit_of_its_own() {
        let mut all = 0;
        for name in KNOWN {
            let bit = Tag::of(name.as_bytes()).bit();
            assert_eq!(all & bit, 0, "{name}");
            all |= bit;
        }
        assert_eq!(all, (1 << KNOWN.len()) - 1);
        assert_eq!(known::HOST.tag(), Tag::of(b"Host"));
    }
}
