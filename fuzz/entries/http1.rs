//! What is fuzzed in `wire::http1`: each function takes any bytes and panics where something that
//! must hold does not. The fuzz targets call them, and so does a seeded loop in the tests of the room.

use wire::http1::{
    Added, Body, BodyKind, Forwarded, ForwardedFor, HeadScan, Limits, Method, Refusal, ReplyHead,
    RequestHead, RequestInfo, Run, Upgrades, Version, object,
};

const FROM: ForwardedFor<'_> = ForwardedFor {
    fields: Forwarded::Nothing,
    trusted: false,
    client: None,
    secure: false,
    via: b"",
};

/// Requests one behind the other: what goes on is read alike by httparse, is read again by us, and
/// goes on as it is the second time; however it is cut, the same is read.
pub(crate) fn requests(bytes: &[u8]) {
    let (first, refusal) = session(bytes, usize::MAX, read_request);
    let (cut, cut_refusal) = session(bytes, 3, read_request);
    assert_eq!(refusal, cut_refusal);
    assert!(refusal.is_some() || first == cut, "a cut changes nothing");
    let (second, refusal) = session(&first, usize::MAX, read_request);
    assert_eq!(refusal, None, "{}", first.escape_ascii());
    assert_alike(&first, &second);
}

/// What went on is the same the second time. A zero at the end may be the first digit of a size, and waits
/// for what follows: there is one where the first time was refused behind a size of zero.
fn assert_alike(first: &[u8], second: &[u8]) {
    let first = match first.strip_suffix(b"0") {
        Some(waits) if waits.len() == second.len() => waits,
        _ => first,
    };
    assert_eq!(first.escape_ascii().to_string(), second.escape_ascii().to_string());
}

/// The same for replies to GET.
pub(crate) fn replies(bytes: &[u8]) {
    let (first, refusal) = session(bytes, usize::MAX, read_reply);
    let (cut, cut_refusal) = session(bytes, 3, read_reply);
    assert_eq!(refusal, cut_refusal);
    assert!(refusal.is_some() || first == cut, "a cut changes nothing");
    let (second, refusal) = session(&first, usize::MAX, read_reply);
    assert_eq!(refusal, None, "{}", first.escape_ascii());
    assert_alike(&first, &second);
}

/// What programs answer as an object: what is taken becomes a reply that is read again, whose length
/// is that of its body, and which says nothing that only we say.
pub(crate) fn objects(bytes: &[u8]) {
    for method in [Method::Get, Method::Head] {
        let Ok((mut head, body)) = object::read(bytes, method) else { continue };
        assert!((200..=599).contains(&head.status));
        let length = match head.body {
            BodyKind::Length(length) => length,
            BodyKind::None => 0,
            other => panic!("an object has no body like {other:?}"),
        };
        assert!(method == Method::Head || length == body.len() as u64, "{length}");
        for ours in ["connection", "transfer-encoding", "upgrade", "trailer", "keep-alive"] {
            let is_ours = |name: &[u8]| name.eq_ignore_ascii_case(ours.as_bytes());
            assert!(!head.fields.iter().any(|field| is_ours(field.name)), "{ours}");
        }
        let sending = head.prepare(Version::Http11);
        let mut out = Vec::new();
        head.encode(sending, Version::Http11, true, Added::default(), &mut out);
        let read = read_reply(&mut HeadScan::default(), &out);
        assert!(matches!(read, Ok(Some((length, ..))) if length == out.len()), "{read:?}");
    }
}

/// The object of a request is one, whatever is in the request.
fn like_object(head: &RequestHead, body: &[u8]) {
    let mut out = Vec::new();
    object::open(head, head.path_and_query(), None, &mut out);
    object::close(body, &mut out);
    let read: serde_json::Value = serde_json::from_slice(&out).expect("it is JSON");
    assert_eq!(read["method"].as_str().map(str::as_bytes), Some(head.method_bytes()));
    assert!(read["path"].is_string() && read["headers"].is_object() && read["body"].is_string());
}

/// A head that was read, as it goes on, with its body.
type Read = Result<Option<(usize, Vec<u8>, Body)>, Refusal>;

fn session(
    bytes: &[u8],
    step: usize,
    read: fn(&mut HeadScan, &[u8]) -> Read,
) -> (Vec<u8>, Option<Refusal>) {
    let (mut out, mut scan, mut body) = (Vec::new(), HeadScan::default(), Body::none());
    let (mut from, mut shown) = (0, 0);
    loop {
        let rest = &bytes[from..shown];
        let more = if body.is_done() {
            match read(&mut scan, rest) {
                Err(refusal) => return (out, Some(refusal)),
                Ok(None) => false,
                Ok(Some((length, head, next))) => {
                    out.extend(head);
                    from += length;
                    body = next;
                    true
                }
            }
        } else {
            match body.run(rest, &Limits::REQUEST) {
                Err(refusal) => return (out, Some(refusal)),
                Ok(run) => {
                    out.extend_from_slice(&rest[..run.pass]);
                    from += run.pass + run.drop;
                    run != Run::default()
                }
            }
        };
        if !more && shown == bytes.len() {
            return (out, None);
        }
        if !more {
            shown = shown.saturating_add(step).min(bytes.len());
        }
    }
}

fn read_request(scan: &mut HeadScan, bytes: &[u8]) -> Read {
    let limits = Limits::REQUEST;
    let Some(found) = scan.next(bytes, &limits)? else { return Ok(None) };
    let mut head = RequestHead::default();
    head.read(&bytes[found.head.clone()], &found, &limits)?;
    let length = found.head.end;
    like_httparse(&head, &bytes[found.head]);
    like_object(&head, &bytes[length..]);
    head.prepare(&FROM);
    let mut out = Vec::new();
    head.encode(None, b"server", &FROM, &mut out);
    let body = Body::new(head.body, &limits);
    Ok(Some((length, out, body)))
}

fn like_httparse(head: &RequestHead, bytes: &[u8]) {
    let mut headers = [httparse::EMPTY_HEADER; 100];
    let mut request = httparse::Request::new(&mut headers);
    // It knows no minor version above 1, which is read as 1 here.
    let mut bytes = bytes.to_vec();
    let version = bytes.iter().position(|&byte| byte == b'\r').expect("a line ends") - 1;
    bytes[version] = bytes[version].min(b'1');
    let parsed = request.parse(&bytes).expect("what is accepted here is accepted by others");
    assert!(parsed.is_complete());
    assert_eq!(request.method.map(str::as_bytes), Some(head.method_bytes()));
    assert_eq!(request.version == Some(1), head.version == Version::Http11);
    assert_eq!(request.headers.len(), head.fields.len());
    for (field, header) in head.fields.iter().zip(request.headers.iter()) {
        assert_eq!(field.name, header.name.as_bytes());
        assert_eq!(field.value.bytes(), Some(header.value));
    }
}

fn read_reply(scan: &mut HeadScan, bytes: &[u8]) -> Read {
    let limits = Limits::REPLY;
    let Some(found) = scan.next(bytes, &limits)? else { return Ok(None) };
    let asked = RequestInfo { method: Method::Get, upgrades: Upgrades::NONE };
    let mut head = ReplyHead::default();
    head.read(&bytes[found.head.clone()], &found, asked, &limits)?;
    let body = Body::new(head.body, &limits);
    let sending = head.prepare(Version::Http10);
    let _ = sending;
    let mut out = Vec::new();
    // Towards a client that takes all framings as they are.
    let sending = wire::http1::Sending::Verbatim;
    head.encode(sending, Version::Http11, true, Added::default(), &mut out);
    Ok(Some((found.head.end, out, body)))
}
