//! The protocols that a request may switch to.

use super::grammar::token_length;

/// The maximum number of protocols of a request that are forwarded.
pub(super) const FORWARDED_MAX: usize = 4;

/// The protocols that a server may switch to for a request: the forwarded ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Upgrades {
    /// A case-insensitive hash of each protocol. 0 means no protocol.
    hashes: [u32; FORWARDED_MAX],
}

impl Upgrades {
    pub(super) fn of<'a>(protocols: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut upgrades = Self::default();
        for (place, protocol) in upgrades.hashes.iter_mut().zip(protocols) {
            *place = hash(protocol);
        }
        upgrades
    }

    /// No protocols.
    pub const NONE: Self = Self { hashes: [0; FORWARDED_MAX] };

    /// Whether `protocols` is not empty and contains only protocols of this set.
    pub(super) fn allow<'a>(&self, protocols: impl Iterator<Item = &'a [u8]>) -> bool {
        let mut any = false;
        for protocol in protocols {
            any = true;
            if !self.hashes.contains(&hash(protocol)) {
                return false;
            }
        }
        any
    }
}

/// The FNV-1a hash of the lower-case bytes. It is never 0.
fn hash(protocol: &[u8]) -> u32 {
    let step = |hash: u32, byte: &u8| {
        (hash ^ u32::from(byte.to_ascii_lowercase())).wrapping_mul(0x0100_0193)
    };
    protocol.iter().fold(0x811c_9dc5, step).max(1)
}

/// Whether this is a protocol (a name with an optional version, RFC 9110 §7.8) other than HTTP. HTTP/2 without TLS
/// (`h2c`) is not proxied, because a client that requested it would use it after our 101. Invalid values (`"h2c"`,
/// `h2c;q=1`) are not forwarded either, because servers may interpret them differently.
pub(super) fn may_begin(protocol: &[u8]) -> bool {
    let end = token_length(protocol);
    let (name, version) = protocol.split_at(end);
    let is_protocol = match version {
        [] => end > 0,
        [b'/', version @ ..] => {
            end > 0 && !version.is_empty() && token_length(version) == version.len()
        }
        _ => false,
    };
    let begins =
        |with: &[u8]| name.get(..with.len()).is_some_and(|it| it.eq_ignore_ascii_case(with));
    is_protocol && !begins(b"h2") && !begins(b"http")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_and_what_is_no_protocol_may_not_begin() {
        for protocol in ["websocket", "WebSocket", "foo/2", "TLS/1.3", "connect-udp"] {
            assert!(may_begin(protocol.as_bytes()), "{protocol}");
        }
        for protocol in [
            "h2c", "H2C", "h2c/1", "h2", "h2c-14", "HTTP/2.0", "\"h2c\"", "h2c;q=1", "a;q=1", "a/",
            "/a", "a/b/c", "", "a b", "a=h2c",
        ] {
            assert!(!may_begin(protocol.as_bytes()), "{protocol}");
        }
    }

    #[test]
    fn a_server_may_switch_to_what_was_asked_for_and_to_nothing_else() {
        let of = |protocols: &'static str| protocols.split_terminator(',').map(str::as_bytes);
        let asked = Upgrades::of(of("websocket,foo/2"));
        for (switched, allowed) in [
            ("WebSocket", true),
            ("foo/2,websocket", true),
            ("", false),
            ("foo", false),
            ("websocket,h2c", false),
        ] {
            assert_eq!(asked.allow(of(switched)), allowed, "{switched}");
        }
        assert!(!Upgrades::default().allow(of("websocket")));
    }
}
