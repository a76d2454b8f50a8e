//! What a request asks of its pool besides a free worker: found once, when it is admitted.

use std::net::{IpAddr, SocketAddr};
use std::ops::Range;

use exchange::{Peer, RequestId};
use pool::{Ask, PRIORITIES, PRIORITY_DEFAULT};
use settings::Key;
use wire::http1::keys;

use crate::exchanges::SessionId;

/// A key that was found, without a copy where it stands in the request.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Found {
    /// Bytes of the request.
    Within(Range<usize>),
    /// An address, or what a connection is known by.
    Short { bytes: [u8; 16], length: usize },
    /// A value that is written otherwise than it is meant.
    Made(Box<[u8]>),
}

/// What is looked for in the requests of a pool.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wishes {
    pub(crate) sticky: Option<Key>,
    pub(crate) hash: Option<Key>,
    pub(crate) fair: Option<Key>,
    pub(crate) priority: Option<Key>,
}

impl Wishes {
    /// Whether nothing is looked for.
    pub(crate) const fn is_none(&self) -> bool {
        let Self { sticky, hash, fair, priority } = self;
        sticky.is_none() && hash.is_none() && fair.is_none() && priority.is_none()
    }
}

/// What was found in one request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wish {
    key: Option<Found>,
    hash: Option<u64>,
    share: Option<u64>,
    priority: Option<u8>,
    named: Option<u64>,
}

/// Whose a request is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker {
    pub(crate) peer: Peer,
    /// Its connection, where it has one.
    pub(crate) session: Option<SessionId>,
}

impl Wish {
    /// What a request asks; `named`: the worker that it names itself.
    pub(crate) fn of(wishes: &Wishes, from: Asker, body: &[u8], named: Option<u64>) -> Self {
        let look = |key: &Option<Key>| find(key.as_ref()?, from, body);
        let hashed = |found: Found| pool::hash(found.bytes(body));
        let priority = look(&wishes.priority).and_then(|found| match found.bytes(body) {
            [digit @ b'0'..=b'9'] => Some((digit - b'0').min(PRIORITIES - 1)),
            _ => None,
        });
        Self {
            key: look(&wishes.sticky),
            hash: look(&wishes.hash).map(hashed),
            share: look(&wishes.fair).map(hashed),
            priority,
            named,
        }
    }

    /// As the pool wants it; `body` is that of the same request.
    pub(crate) fn ask<'a>(&'a self, id: RequestId, body: &'a [u8]) -> Ask<'a> {
        Ask {
            id: id.as_u64(),
            key: self.key.as_ref().map(|found| found.bytes(body)),
            hash: self.hash,
            named: self.named,
            priority: self.priority.unwrap_or(PRIORITY_DEFAULT),
            share: self.share,
        }
    }
}

impl Found {
    fn bytes<'a>(&'a self, body: &'a [u8]) -> &'a [u8] {
        match self {
            Self::Within(range) => body.get(range.clone()).unwrap_or_default(),
            Self::Short { bytes, length } => &bytes[..*length],
            Self::Made(bytes) => bytes,
        }
    }

    fn address(address: SocketAddr) -> Self {
        let mut bytes = [0; 16];
        let length = match address.ip().to_canonical() {
            IpAddr::V4(ip) => {
                bytes[..4].copy_from_slice(&ip.octets());
                4
            }
            IpAddr::V6(ip) => {
                bytes = ip.octets();
                16
            }
        };
        Self::Short { bytes, length }
    }

    fn connection(session: SessionId) -> Self {
        let SessionId { shard, index, generation } = session;
        let mut bytes = [0; 16];
        for (place, number) in [shard, index, generation].into_iter().enumerate() {
            bytes[place * 4..][..4].copy_from_slice(&number.to_be_bytes());
        }
        Self::Short { bytes, length: 12 }
    }
}

fn find(key: &Key, from: Asker, body: &[u8]) -> Option<Found> {
    match key {
        Key::Connection => from.session.map(Found::connection),
        Key::Source => match from.peer {
            Peer::Internet(address) => Some(Found::address(address)),
            Peer::Local | Peer::Inside => None,
        },
        Key::Line => Some(Found::Within(0..body.len())),
        Key::Word(number) => {
            words(body).nth(usize::try_from(*number).ok()?.checked_sub(1)?).map(Found::Within)
        }
        Key::Field(name) => words(body).find_map(|word| {
            let value = body[word.clone()].strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
            Some(Found::Within(word.end - value.len()..word.end))
        }),
        Key::Header(name) => keys::field(body, name.as_bytes()).map(Found::Within),
        Key::Cookie(name) => keys::cookie(body, name.as_bytes()).map(Found::Within),
        Key::Path => keys::path(body).map(Found::Within),
        Key::Query(name) => keys::parameter(body, name.as_bytes()).map(Found::Within),
        Key::Member(name) => {
            let mut fields = fields::Fields::new();
            fields::json::decode(&mut fields, body).ok()?;
            let value = fields.get(name.as_bytes())?.bytes()?;
            Some(Found::Made(value.into()))
        }
    }
}

/// Where the words of a request stand.
fn words(body: &[u8]) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        let start = at + body[at..].iter().position(|byte| !blank(byte))?;
        let length = body[start..].iter().position(blank).unwrap_or(body.len() - start);
        at = start + length;
        Some(start..at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(key: Key, body: &str) -> Option<Vec<u8>> {
        let peer = Peer::Internet("[::ffff:10.0.0.7]:99".parse().unwrap());
        let from = Asker { peer, session: None };
        find(&key, from, body.as_bytes()).map(|found| found.bytes(body.as_bytes()).to_vec())
    }

    #[test]
    fn a_connection_is_itself_and_no_other_whatever_its_address() {
        let id = |shard, index, generation| SessionId { shard, index, generation };
        let of = |session| {
            let from = Asker { peer: Peer::Local, session };
            find(&Key::Connection, from, b"x").map(|found| found.bytes(b"x").to_vec())
        };
        let one = of(Some(id(1, 2, 3)));
        assert_eq!(one, of(Some(id(1, 2, 3))));
        for other in [id(0, 2, 3), id(1, 3, 3), id(1, 2, 4), id(2, 1, 3), id(258, 0, 3)] {
            assert_ne!(one, of(Some(other)), "{other:?}");
        }
        assert_eq!(of(None), None, "a datagram");
    }

    #[test]
    fn keys_are_found_where_they_stand() {
        let field = |name: &str| Key::Field(name.to_owned());
        let member = |name: &str| Key::Member(name.to_owned());
        for (key, body, due) in [
            (Key::Source, "x", Some("\n\0\0\u{7}")),
            (Key::Line, "a b", Some("a b")),
            (Key::Word(1), "  get\tx ", Some("get")),
            (Key::Word(2), "get x", Some("x")),
            (Key::Word(3), "get x", None),
            (Key::Word(1), "", None),
            (field("user"), "a=1 user=ann b", Some("ann")),
            (field("user"), "username=x user= y", Some("")),
            (field("user"), "user", None),
            (member("user"), r#"{"a":{"user":"no"},"user":"a\u006en"}"#, Some("ann")),
            (member("n"), r#"{"n":17}"#, Some("17")),
            (member("user"), "not json", None),
        ] {
            assert_eq!(found(key.clone(), body).as_deref(), due.map(str::as_bytes), "{key} {body}");
        }
        let local = Asker { peer: Peer::Local, session: None };
        assert_eq!(find(&Key::Source, local, b"x"), None);
    }

    #[test]
    fn a_priority_is_one_digit_and_anything_else_is_none() {
        let wishes = Wishes { priority: Some(Key::Word(1)), ..Wishes::default() };
        let priority = |body: &[u8]| {
            let from = Asker { peer: Peer::Inside, session: None };
            Wish::of(&wishes, from, body, None).ask(RequestId::new(1, 0), body).priority
        };
        assert_eq!(priority(b"0 x"), 0);
        assert_eq!(priority(b"9"), 9);
        assert_eq!((priority(b"10"), priority(b"x"), priority(b"")), (5, 5, 5));
    }
}
