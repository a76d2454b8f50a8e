//! Character classes (RFC 9110 §5.6, RFC 3986 §3.2), as tables.

const TOKEN: u8 = 1;
/// Characters of a target: visible ASCII except `#`.
const TARGET: u8 = 2;
/// Characters of a host other than an address in brackets: unreserved and sub-delims. Percent signs are excluded,
/// because recipients compare an encoded name in different ways.
const HOST: u8 = 4;
/// All characters except control characters. Tabs are included.
const TEXT: u8 = 8;

const fn put(table: &mut [u8; 256], bytes: &[u8], class: u8) {
    let mut index = 0;
    while index < bytes.len() {
        table[bytes[index] as usize] |= class;
        index += 1;
    }
}

const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

const CLASSES: [u8; 256] = {
    let mut table = [0; 256];
    put(&mut table, LETTERS, TOKEN | HOST);
    put(&mut table, b"!#$%&'*+-.^_`|~", TOKEN);
    put(&mut table, b"-._~!$&'()*+,;=", HOST);
    let mut byte = 0;
    while byte < 256 {
        if byte > 32 && byte < 127 && byte != 35 {
            table[byte] |= TARGET;
        }
        if byte == 9 || byte >= 32 && byte != 127 {
            table[byte] |= TEXT;
        }
        byte += 1;
    }
    table
};

const fn has(byte: u8, class: u8) -> bool {
    CLASSES[byte as usize] & class != 0
}

fn length(bytes: &[u8], class: u8) -> usize {
    bytes.iter().position(|&byte| !has(byte, class)).unwrap_or(bytes.len())
}

/// The length of the token at the front, in bytes.
pub(super) fn token_length(bytes: &[u8]) -> usize {
    length(bytes, TOKEN)
}

/// The number of bytes at the front that are allowed in a target.
pub(super) fn target_length(bytes: &[u8]) -> usize {
    length(bytes, TARGET)
}

/// The number of bytes at the front before the first control character. Tabs do not count as control characters.
pub(super) fn text_length(bytes: &[u8]) -> usize {
    length(bytes, TEXT)
}

/// Whether the bytes are `host [":" port]`. The host is a name, an IPv4 address, or an IPv6 address in brackets. It
/// must not be empty.
pub(super) fn is_authority(bytes: &[u8]) -> bool {
    let port = if let [b'[', rest @ ..] = bytes {
        let Some(end) = rest.iter().position(|&byte| byte == b']') else { return false };
        let address = std::str::from_utf8(&rest[..end]).unwrap_or_default();
        if address.parse::<std::net::Ipv6Addr>().is_err() {
            return false;
        }
        &rest[end + 1..]
    } else {
        let end = length(bytes, HOST);
        if end == 0 {
            return false;
        }
        &bytes[end..]
    };
    match port {
        [] => true,
        [b':', digits @ ..] => digits.len() <= 5 && digits.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

/// The elements of a list without surrounding blanks. Empty elements are skipped.
pub(super) fn elements(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|&byte| byte == b',').map(trimmed).filter(|element| !element.is_empty())
}

/// The bytes without leading and trailing blanks. Only SP and HTAB are blanks.
pub(super) fn trimmed(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = bytes {
        bytes = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = bytes {
        bytes = rest;
    }
    bytes
}
