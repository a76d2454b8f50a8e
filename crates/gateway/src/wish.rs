//! What a request asks of its pool besides a free worker: found once, when it is admitted.

use std::net::{IpAddr, SocketAddr};
use std::ops::Range;

use exchange::{Peer, RequestId};
use pool::{Ask, PRIORITIES, PRIORITY_DEFAULT};
use settings::Key;
use wire::http1::{keys, object};

use crate::exchanges::SessionId;
use crate::table::Place;

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
    /// What was asked over HTTP comes as an object, in which its head stands.
    pub(crate) of_objects: bool,
}

/// A request, as keys are looked for in it.
#[derive(Clone, Copy)]
struct Sought<'a> {
    from: Asker,
    body: &'a [u8],
    /// Its head, where that was asked over HTTP and is not how its body begins; of a frame that was not
    /// asked over HTTP an empty one.
    head: Option<&'a [u8]>,
}

impl Wishes {
    /// Whether nothing is looked for.
    pub(crate) const fn is_none(&self) -> bool {
        let Self { sticky, hash, fair, priority, of_objects: _ } = self;
        sticky.is_none() && hash.is_none() && fair.is_none() && priority.is_none()
    }

    /// Whether something is looked for in heads.
    fn reads_heads(&self) -> bool {
        let Self { sticky, hash, fair, priority, of_objects: _ } = self;
        let keys = [sticky, hash, fair, priority];
        keys.into_iter().flatten().any(|key| key.is_http() == Some(true))
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
    /// What a request asks; `is_object`: it was asked over HTTP and is an object now; `named`: the worker
    /// that it names itself.
    pub(crate) fn of(
        wishes: &Wishes,
        from: Asker,
        (body, is_object): (&[u8], bool),
        named: Option<u64>,
    ) -> Self {
        let made = (is_object && wishes.reads_heads()).then(|| object::head(body)).flatten();
        let head = wishes.of_objects.then(|| made.as_deref().unwrap_or_default());
        let sought = Sought { from, body, head };
        let look = |key: &Option<Key>| find(key.as_ref()?, sought);
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
            client: None,
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
        let SessionId { shard, place: Place { index, generation } } = session;
        let mut bytes = [0; 16];
        for (place, number) in [shard, index, generation].into_iter().enumerate() {
            bytes[place * 4..][..4].copy_from_slice(&number.to_be_bytes());
        }
        Self::Short { bytes, length: 12 }
    }
}

fn find(key: &Key, sought: Sought<'_>) -> Option<Found> {
    let Sought { from, body, head } = sought;
    let in_head = |find: &dyn Fn(&[u8]) -> Option<Range<usize>>| match head {
        None => find(body).map(Found::Within),
        Some(head) => find(head).map(|place| Found::Made(head[place].into())),
    };
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
        Key::Header(name) => in_head(&|head| keys::field(head, name.as_bytes())),
        Key::Cookie(name) => in_head(&|head| keys::cookie(head, name.as_bytes())),
        Key::Path => in_head(&keys::path),
        Key::Segment(number) => in_head(&|head| segment(head, *number)),
        Key::Query(name) => in_head(&|head| keys::parameter(head, name.as_bytes())),
        Key::Member(name) => {
            let mut fields = fields::Fields::new();
            fields::json::decode(&mut fields, body).ok()?;
            let value = fields.get(name.as_bytes())?.bytes()?;
            Some(Found::Made(value.into()))
        }
    }
}

/// Where a part of the path stands, counted from 1; what is empty between two `/` is none.
fn segment(head: &[u8], number: u32) -> Option<Range<usize>> {
    let path = keys::path(head)?;
    let mut end = path.start;
    let parts = head[path].split(|byte| *byte == b'/').map(|part| {
        let start = end;
        end = start + part.len() + 1;
        start..end - 1
    });
    let nth = usize::try_from(number).ok()?.checked_sub(1)?;
    parts.filter(|part| !part.is_empty()).nth(nth)
}

/// Where the words of a request stand.
pub(crate) fn words(body: &[u8]) -> impl Iterator<Item = Range<usize>> + '_ {
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
        let sought = Sought { from, body: body.as_bytes(), head: None };
        find(&key, sought).map(|found| found.bytes(body.as_bytes()).to_vec())
    }

    #[test]
    fn a_connection_is_itself_and_no_other_whatever_its_address() {
        let id = |shard, index, generation| SessionId::new(shard, Place::new(index, generation));
        let of = |session| {
            let from = Asker { peer: Peer::Local, session };
            let sought = Sought { from, body: b"x", head: None };
            find(&Key::Connection, sought).map(|found| found.bytes(b"x").to_vec())
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
            (Key::Segment(1), "GET /app//7/x?y HTTP/1.1\r\n\r\n", Some("app")),
            (Key::Segment(2), "GET /app//7/x?y HTTP/1.1\r\n\r\n", Some("7")),
            (Key::Segment(3), "GET /app//7/x?y HTTP/1.1\r\n\r\n", Some("x")),
            (Key::Segment(4), "GET /app//7/x?y HTTP/1.1\r\n\r\n", None),
            (Key::Segment(1), "GET / HTTP/1.1\r\n\r\n", None),
        ] {
            assert_eq!(found(key.clone(), body).as_deref(), due.map(str::as_bytes), "{key} {body}");
        }
        let from = Asker { peer: Peer::Local, session: None };
        assert_eq!(find(&Key::Source, Sought { from, body: b"x", head: None }), None);
    }

    #[test]
    fn a_priority_is_one_digit_and_anything_else_is_none() {
        let wishes = Wishes { priority: Some(Key::Word(1)), ..Wishes::default() };
        let priority = |body: &[u8]| {
            let from = Asker { peer: Peer::Inside, session: None };
            Wish::of(&wishes, from, (body, false), None).ask(RequestId::new(1), body).priority
        };
        assert_eq!(priority(b"0 x"), 0);
        assert_eq!(priority(b"9"), 9);
        assert_eq!((priority(b"10"), priority(b"x"), priority(b"")), (5, 5, 5));
    }

    #[test]
    fn keys_of_http_are_found_in_objects_and_never_in_frames() {
        let wishes = Wishes {
            sticky: Some(Key::Header("x-who".to_owned())),
            fair: Some(Key::Path),
            of_objects: true,
            ..Wishes::default()
        };
        let object =
            br#"{"method":"GET","path":"/a","query":"","headers":{"x-who":"ann"},"body":""}"#;
        let wish = |body: &[u8], is_object| {
            let from = Asker { peer: Peer::Inside, session: None };
            let wish = Wish::of(&wishes, from, (body, is_object), None);
            let ask = wish.ask(RequestId::new(1), body);
            (ask.key.map(<[u8]>::to_vec), ask.share)
        };
        assert_eq!(wish(object, true), (Some(b"ann".to_vec()), Some(pool::hash(b"/a"))));
        let frame = b"GET /a HTTP/1.1\r\nx-who: ann\r\n\r\n";
        for (body, is_object) in [(&object[..], false), (frame, false), (b"no object", true)] {
            assert_eq!(wish(body, is_object), (None, None), "{is_object}");
        }
    }
}
