//! The grammar of header lines (RFC 9110 §5), checked eight bytes at a time.

/// The bytes that are allowed in a token.
const TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let marks = b"!#$%&'*+-.^_`|~0123456789";
    let mut index = 0;
    while index < marks.len() {
        table[marks[index] as usize] = true;
        index += 1;
    }
    let mut letter = b'a';
    while letter <= b'z' {
        table[letter as usize] = true;
        table[letter.to_ascii_uppercase() as usize] = true;
        letter += 1;
    }
    table
};

/// The index of the first byte at or after `from` that is not allowed in a token, or the length.
#[inline]
pub(crate) fn token_end(bytes: &[u8], from: usize) -> usize {
    let Some(mut rest) = bytes.get(from..) else { return from };
    while let Some((word, behind)) = rest.split_first_chunk::<8>() {
        let found = unusual(u64::from_le_bytes(*word));
        if found == 0 {
            rest = behind;
            continue;
        }
        rest = &rest[found.trailing_zeros() as usize / 8..];
        if !TOKEN[rest[0] as usize] {
            return bytes.len() - rest.len();
        }
        rest = &rest[1..];
    }
    let length = rest.iter().position(|&byte| !TOKEN[byte as usize]);
    bytes.len() - rest.len() + length.unwrap_or(rest.len())
}

#[inline]
pub(crate) fn is_token(bytes: &[u8]) -> bool {
    words_pass(bytes, unusual) || !bytes.is_empty() && token_end(bytes, 0) == bytes.len()
}

/// Whether `found` returns 0 for all words. The last word may overlap the one before. False if there are fewer than
/// eight bytes.
#[inline]
fn words_pass(bytes: &[u8], found: impl Fn(u64) -> u64) -> bool {
    let Some(last) = bytes.last_chunk::<8>() else { return false };
    let mut all = found(u64::from_le_bytes(*last));
    let mut rest = bytes;
    while let Some((word, behind)) = rest.split_first_chunk::<8>() {
        all |= found(u64::from_le_bytes(*word));
        rest = behind;
    }
    all == 0
}

/// Sets the high bit of each byte that is not a letter, digit or hyphen. Other bytes are rare in names.
#[inline]
const fn unusual(word: u64) -> u64 {
    const LOW: u64 = !HIGH;
    const BLANKS: u64 = ONES * 0x20;
    const HYPHENS: u64 = ONES * b'-' as u64;
    let low = word & LOW;
    let letters = within(low | BLANKS, b'a', b'z');
    let digits = within(low, b'0', b'9');
    let others = (low ^ HYPHENS) + LOW;
    !(letters | digits | !others) & HIGH | word & HIGH
}

/// Sets the high bit of each byte from `first` to `last`. All bytes must be below 128, so that sums stay below 256 and
/// do not carry into the next byte.
#[inline]
const fn within(word: u64, first: u8, last: u8) -> u64 {
    let (from, behind) = (0x80 - first as u64, 0x7f - last as u64);
    (word + ONES * from) & !(word + ONES * behind)
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Sets the high bit of each byte that is below 32 or equal to 127. Bytes above the lowest match may be marked wrongly,
/// because a borrow propagates through them.
const fn controls(word: u64) -> u64 {
    let below = word.wrapping_sub(ONES * 32) & !word;
    let delete = word ^ (ONES * 127);
    (below | delete.wrapping_sub(ONES) & !delete) & HIGH
}

/// The index of the first control character other than a tab at or after `from`, or the length.
#[inline]
pub(crate) fn value_end(bytes: &[u8], from: usize) -> usize {
    let Some(mut rest) = bytes.get(from..) else { return from };
    while let Some((word, behind)) = rest.split_first_chunk::<8>() {
        let found = controls(u64::from_le_bytes(*word));
        if found == 0 {
            rest = behind;
            continue;
        }
        rest = &rest[found.trailing_zeros() as usize / 8..];
        if rest[0] != b'\t' {
            return bytes.len() - rest.len();
        }
        rest = &rest[1..];
    }
    let is_control = |&byte: &u8| byte != b'\t' && (byte < 32 || byte == 127);
    let length = rest.iter().position(is_control);
    bytes.len() - rest.len() + length.unwrap_or(rest.len())
}

#[inline]
pub(crate) fn is_value(bytes: &[u8]) -> bool {
    words_pass(bytes, controls) || value_end(bytes, 0) == bytes.len()
}

const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// The bytes without leading and trailing blanks, which are not part of a value.
#[inline]
pub(crate) fn trimmed(bytes: &[u8]) -> &[u8] {
    let start = bytes.iter().take_while(|&&byte| is_blank(byte)).count();
    let end = bytes[start..].iter().rev().take_while(|&&byte| is_blank(byte)).count();
    &bytes[start..bytes.len() - end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_character_is_found_wherever_it_stands() {
        for length in 0..40 {
            for place in 0..length {
                for byte in 0..=255 {
                    let mut text = vec![b'\t'; length];
                    text[place] = byte;
                    let bad = byte != b'\t' && (byte < 32 || byte == 127);
                    let expected = if bad { place } else { length };
                    assert_eq!(value_end(&text, 0), expected, "{byte} at {place} of {length}");
                    assert_eq!(value_end(&text, length + 1), length + 1);
                }
            }
        }
    }

    #[test]
    fn the_end_of_a_token_is_found_wherever_it_stands() {
        for length in 0..40 {
            for place in 0..length {
                for byte in 0..=255 {
                    let mut text = vec![b'-'; length];
                    text[place] = byte;
                    let expected = if TOKEN[byte as usize] { length } else { place };
                    assert_eq!(token_end(&text, 0), expected, "{byte} at {place} of {length}");
                    assert_eq!(token_end(&text, length + 1), length + 1);
                }
            }
        }
    }

    #[test]
    fn tokens_are_what_rfc_9110_says() {
        let all: Vec<u8> = (0..=255).filter(|byte| is_token(&[*byte])).collect();
        let expected =
            b"!#$%&'*+-.0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ^_`abcdefghijklmnopqrstuvwxyz|~";
        assert_eq!(all, expected);
        assert!(!is_token(b"") && is_token(b"a") && !is_token(b"a b"));
    }

    #[test]
    fn blanks_around_a_value_go() {
        assert_eq!(trimmed(b" \t a b \t"), b"a b");
        assert_eq!(trimmed(b" \t"), b"");
        assert_eq!(trimmed(b""), b"");
    }
}
