//! Balancing keys and priority of a request, extracted once when it is admitted.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};

use exchange::{Peer, Place, RequestId};
use fields::Value;
use pool::{PRIORITIES, PRIORITY_DEFAULT, RequestTraits};
use settings::Key;
use wire::http1::keys;

use flow::http_request::HttpRequest;
use flow::ids::SessionId;
use flow::payload::Payload;
use flow::words::words;

/// A key that was found, borrowed from the request if possible.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Found<'a> {
    Bytes(Cow<'a, [u8]>),
    /// An address, or the id of a connection.
    Short {
        bytes: [u8; 16],
        length: usize,
    },
}

/// The keys that are extracted from the requests of a pool.
#[derive(Clone, Debug, Default)]
pub struct PoolKeys {
    /// Session affinity: requests with the same value go to the same worker.
    pub sticky: Option<Key>,
    /// The secret of the cluster, if other daemons share the bindings.
    pub shared: Option<(u64, u64)>,
    /// The key for `hash` balancing.
    pub hash: Option<Key>,
    /// Fair queueing: requests with the same value share one turn.
    pub fair: Option<Key>,
    /// The priority, a digit.
    pub priority: Option<Key>,
}

impl PoolKeys {
    /// Whether no key is configured.
    pub const fn is_none(&self) -> bool {
        let Self { sticky, shared: _, hash, fair, priority } = self;
        sticky.is_none() && hash.is_none() && fair.is_none() && priority.is_none()
    }
}

/// The keys of one request.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestKeys<'a> {
    key: Option<Found<'a>>,
    hash: Option<u64>,
    share: Option<u64>,
    priority: Option<u8>,
    named: Option<u64>,
}

/// The client of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeySource {
    pub(crate) peer: Peer,
    /// Its connection, if it has one.
    pub(crate) session: Option<SessionId>,
}

impl<'a> RequestKeys<'a> {
    /// Extracts the keys. `named`: the affinity target of its cookie.
    pub(crate) fn of(
        keys: &PoolKeys,
        from: KeySource,
        payload: &'a Payload,
        named: Option<u64>,
    ) -> Self {
        let look = |key: &Option<Key>| find(key.as_ref()?, from, payload);
        let hashed = |found: Found<'_>| pool::hash(found.bytes());
        let priority = look(&keys.priority).and_then(|found| match found.bytes() {
            [digit @ b'0'..=b'9'] => Some((digit - b'0').min(PRIORITIES - 1)),
            _ => None,
        });
        Self {
            key: match keys.shared {
                None => look(&keys.sticky),
                Some(secret) => look(&keys.sticky).map(|found| found.shared(secret)),
            },
            hash: look(&keys.hash).map(hashed),
            share: look(&keys.fair).map(hashed),
            priority,
            named,
        }
    }

    /// The keys in the form of the pool.
    pub(crate) fn traits(&self, id: RequestId) -> RequestTraits<'_> {
        RequestTraits {
            id: id.as_u64(),
            key: self.key.as_ref().map(Found::bytes),
            hash: self.hash,
            named: self.named,
            priority: self.priority.unwrap_or(PRIORITY_DEFAULT),
            share: self.share,
            client: None,
        }
    }
}

impl<'a> Found<'a> {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Short { bytes, length } => &bytes[..*length],
        }
    }

    /// The key in the form that other daemons know.
    fn shared(&self, secret: (u64, u64)) -> Self {
        let bytes = pool::shared_key(secret, self.bytes());
        Self::Short { bytes, length: bytes.len() }
    }

    const fn within(bytes: &'a [u8]) -> Self {
        Self::Bytes(Cow::Borrowed(bytes))
    }

    fn address(address: SocketAddr) -> Self {
        let mut bytes = [0; 16];
        let length = match address.ip().to_canonical() {
            IpAddr::V4(ip) => {
                bytes[..4].copy_from_slice(&ip.octets());
                4
            }
            // One client usually has a whole /64 network, and could use each of its addresses.
            IpAddr::V6(ip) => {
                bytes[..8].copy_from_slice(&ip.octets()[..8]);
                8
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

fn find<'a>(key: &Key, from: KeySource, payload: &'a Payload) -> Option<Found<'a>> {
    match key {
        Key::Connection => return from.session.map(Found::connection),
        Key::Source => {
            return match from.peer {
                Peer::Internet(address) => Some(Found::address(address)),
                Peer::Local | Peer::Inside => None,
            };
        }
        _ => {}
    }
    match payload {
        Payload::Frame(frame) => in_frame(key, frame).map(Found::Bytes),
        Payload::Http(request, _) if key.is_http() == Some(true) => {
            in_head(key, from.peer, request)
        }
        // Keys of programs are looked up in the object that they receive.
        Payload::Http(request, body) => {
            let object = request.object(from.peer, body);
            let found = in_frame(key, &object)?.into_owned();
            Some(Found::Bytes(Cow::Owned(found)))
        }
    }
}

/// A key in a frame. HTTP keys never occur in frames.
fn in_frame<'a>(key: &Key, frame: &'a [u8]) -> Option<Cow<'a, [u8]>> {
    let place = match key {
        Key::Line => 0..frame.len(),
        Key::Word(number) => words(frame).nth(usize::try_from(*number).ok()?.checked_sub(1)?)?,
        Key::Field(name) => words(frame).find_map(|word| {
            let value = frame[word.clone()].strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
            Some(word.end - value.len()..word.end)
        })?,
        Key::Member(name) => {
            let mut fields = fields::Fields::new();
            fields::json::decode(&mut fields, frame).ok()?;
            let value = fields.get(name.as_bytes())?.bytes()?;
            return Some(Cow::Owned(value.to_vec()));
        }
        Key::Connection
        | Key::Source
        | Key::Header(_)
        | Key::Cookie(_)
        | Key::Path
        | Key::Segment(_)
        | Key::Query(_) => return None,
    };
    Some(Cow::Borrowed(&frame[place]))
}

/// An HTTP key in the head that a server receives.
fn in_head<'a>(key: &Key, peer: Peer, request: &'a HttpRequest) -> Option<Found<'a>> {
    let fields = &request.head().fields;
    Some(match key {
        Key::Header(name) => match fields.get(name.as_bytes()).and_then(Value::bytes) {
            Some(value) => Found::within(value),
            None => Found::Bytes(Cow::Owned(request.added_field(peer, name.as_bytes())?)),
        },
        Key::Cookie(name) => Found::within(keys::cookie(fields, name.as_bytes())?),
        Key::Path => Found::Bytes(request.path()),
        // A slash that is added before the path starts no new segment.
        Key::Segment(number) => Found::within(segment(request.target_parts().0, *number)?),
        Key::Query(name) => {
            let (_, query) = request.target_parts();
            Found::within(keys::parameter(query?, name.as_bytes())?)
        }
        Key::Connection
        | Key::Source
        | Key::Line
        | Key::Word(_)
        | Key::Field(_)
        | Key::Member(_) => return None,
    })
}

/// A segment of a path, counted from 1. Empty segments are skipped.
fn segment(path: &[u8], number: u32) -> Option<&[u8]> {
    let nth = usize::try_from(number).ok()?.checked_sub(1)?;
    path.split(|byte| *byte == b'/').filter(|part| !part.is_empty()).nth(nth)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use exchange::Slice;
    use wire::http1::{Forwarded, HeadScan, Limits, Via};

    use super::*;
    use flow::forwarding::Forwarding;

    fn request(text: &str) -> HttpRequest {
        let found = HeadScan::default().next(text.as_bytes(), &Limits::REQUEST).unwrap().unwrap();
        let read = HttpRequest::read(text.as_bytes(), &found, &Limits::REQUEST).unwrap();
        let host = "nobody.example".to_owned();
        let via = Via::new("edge").unwrap();
        read.submitted(&Arc::new(Forwarding { fields: Forwarded::Legacy, via, host }))
    }

    fn found(key: Key, body: &str) -> Option<Vec<u8>> {
        let peer = Peer::Internet("[::ffff:10.0.0.7]:99".parse().unwrap());
        let from = KeySource { peer, session: None };
        let payload = match body.ends_with("\r\n\r\n") {
            true => Payload::Http(request(body), Slice::default()),
            false => Payload::Frame(Slice::from(body)),
        };
        find(&key, from, &payload).map(|found| found.bytes().to_vec())
    }

    #[test]
    fn a_connection_is_itself_and_no_other_whatever_its_address() {
        let id = |shard, index, generation| SessionId::new(shard, Place::new(index, generation));
        let of = |session| {
            let from = KeySource { peer: Peer::Local, session };
            let payload = Payload::Frame(Slice::from("x"));
            find(&Key::Connection, from, &payload).map(|found| found.bytes().to_vec())
        };
        let one = of(Some(id(1, 2, 3)));
        assert_eq!(one, of(Some(id(1, 2, 3))));
        for other in [id(0, 2, 3), id(1, 3, 3), id(1, 2, 4), id(2, 1, 3), id(258, 0, 3)] {
            assert_ne!(one, of(Some(other)), "{other:?}");
        }
        assert_eq!(of(None), None, "a datagram");
    }

    #[test]
    fn the_addresses_of_one_ipv6_network_are_one_source() {
        let of = |address: &str| {
            let peer = Peer::Internet(address.parse().unwrap());
            let payload = Payload::Frame(Slice::from("x"));
            let from = KeySource { peer, session: None };
            find(&Key::Source, from, &payload).unwrap().bytes().to_vec()
        };
        assert_eq!(of("[2001:db8:0:7::1]:1"), of("[2001:db8:0:7:ffff::2]:2"));
        assert_ne!(of("[2001:db8:0:7::1]:1"), of("[2001:db8:0:8::1]:1"));
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
            (Key::Segment(1), "GET /app//7/x?y HTTP/1.0\r\n\r\n", Some("app")),
            (Key::Segment(2), "GET /app//7/x?y HTTP/1.0\r\n\r\n", Some("7")),
            (Key::Segment(3), "GET /app//7/x?y HTTP/1.0\r\n\r\n", Some("x")),
            (Key::Segment(4), "GET /app//7/x?y HTTP/1.0\r\n\r\n", None),
            (Key::Segment(1), "GET / HTTP/1.0\r\n\r\n", None),
        ] {
            assert_eq!(found(key.clone(), body).as_deref(), due.map(str::as_bytes), "{key} {body}");
        }
        let from = KeySource { peer: Peer::Local, session: None };
        assert_eq!(find(&Key::Source, from, &Payload::default()), None);
    }

    #[test]
    fn a_priority_is_one_digit_and_anything_else_is_none() {
        let keys = PoolKeys { priority: Some(Key::Word(1)), ..PoolKeys::default() };
        let priority = |body: &[u8]| {
            let from = KeySource { peer: Peer::Inside, session: None };
            let payload = Payload::Frame(Slice::from(body));
            RequestKeys::of(&keys, from, &payload, None).traits(RequestId::new(1)).priority
        };
        assert_eq!(priority(b"0 x"), 0);
        assert_eq!(priority(b"9"), 9);
        assert_eq!((priority(b"10"), priority(b"x"), priority(b"")), (5, 5, 5));
    }

    #[test]
    fn keys_of_http_are_found_in_heads_and_never_in_frames() {
        let keys = PoolKeys {
            sticky: Some(Key::Header("x-who".to_owned())),
            fair: Some(Key::Path),
            ..PoolKeys::default()
        };
        let keys = |payload: &Payload| {
            let from = KeySource { peer: Peer::Inside, session: None };
            let keys = RequestKeys::of(&keys, from, payload, None);
            let ask = keys.traits(RequestId::new(1));
            (ask.key.map(<[u8]>::to_vec), ask.share)
        };
        let text = "GET /a HTTP/1.1\r\nHost: h\r\nX-Who: ann\r\n\r\n";
        let http = Payload::Http(request(text), Slice::from("body"));
        assert_eq!(keys(&http), (Some(b"ann".to_vec()), Some(pool::hash(b"/a"))));
        let object =
            r#"{"method":"GET","path":"/a","query":"","headers":{"x-who":"ann"},"body":""}"#;
        for frame in [object, text, "no object"] {
            assert_eq!(keys(&Payload::Frame(Slice::from(frame))), (None, None), "{frame}");
        }
    }

    #[test]
    fn fields_that_are_ours_and_changed_targets_are_what_a_server_sees() {
        let text = "GET http://h?user=ann&x HTTP/1.0\r\nCookie: b=1; a=2\r\n\r\n";
        let header = |name: &str| Key::Header(name.to_owned());
        for (key, due) in [
            (Key::Path, Some("/")),
            (Key::Query("user".to_owned()), Some("ann")),
            (Key::Query("x".to_owned()), None),
            (Key::Cookie("a".to_owned()), Some("2")),
            (header("via"), Some("1.0 edge")),
            (header("Host"), Some("nobody.example")),
            (header("X-Forwarded-For"), Some("10.0.0.7")),
            (header("x-other"), None),
        ] {
            assert_eq!(found(key.clone(), text).as_deref(), due.map(str::as_bytes), "{key}");
        }
        let mut changed = request("GET /a?x=1 HTTP/1.0\r\n\r\n");
        changed.set_target(&mut b"/b/c?x=2".to_vec());
        let payload = Payload::Http(changed, Slice::default());
        let from = KeySource { peer: Peer::Inside, session: None };
        let member = Key::Member("query".to_owned());
        for (key, due) in [
            (member, "x=2"),
            (Key::Path, "/b/c"),
            (Key::Segment(2), "c"),
            (Key::Query("x".to_owned()), "2"),
        ] {
            let found = find(&key, from, &payload).map(|found| found.bytes().to_vec());
            assert_eq!(found.as_deref(), Some(due.as_bytes()), "{key}");
        }
    }
}
