//! What may stand where (RFC 9110 §5.6, RFC 3986 §3.2), as tables.

const TOKEN: u8 = 1;
/// Visible ASCII but `#`: what a target is made of.
const TARGET: u8 = 2;
/// What a host that is no address in brackets is made of: unreserved and sub-delims. Percent
/// signs are left out: a name that has to be decoded is compared differently by everyone.
const HOST: u8 = 4;
/// All but controls; tabs are no controls here.
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

/// How many bytes at the front belong to a token.
pub(super) fn token_length(bytes: &[u8]) -> usize {
    length(bytes, TOKEN)
}

/// How many bytes at the front may stand in a target.
pub(super) fn target_length(bytes: &[u8]) -> usize {
    length(bytes, TARGET)
}

/// How many bytes at the front are no controls.
pub(super) fn text_length(bytes: &[u8]) -> usize {
    length(bytes, TEXT)
}

/// `host [":" port]`: a name or an IPv4 address, or an IPv6 address in brackets. Empty is none.
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

/// The elements of a list, without the blanks around them; empty ones are left out.
pub(super) fn elements(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|&byte| byte == b',').map(trimmed).filter(|element| !element.is_empty())
}

/// The bytes without the blanks around them: nothing but SP and HTAB is a blank.
pub(super) fn trimmed(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = bytes {
        bytes = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = bytes {
        bytes = rest;
    }
    bytes
}
