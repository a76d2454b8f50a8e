//! Rules for replies.

use super::*;

const BROKEN: &[(Refusal, &str)] = &[
    (
        Refusal::LengthAndCoding,
        "HTTP/1.1 200 OK\nContent-Length: 5\nTransfer-Encoding: chunked\n\n",
    ),
    (Refusal::Coding, "HTTP/1.1 200 OK\nTransfer-Encoding: gzip\n\n"),
    (Refusal::CodingRepeated, "HTTP/1.1 200 OK\nTransfer-Encoding: gzip, chunked\n\n"),
    (
        Refusal::CodingRepeated,
        "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\nTransfer-Encoding: chunked\n\n",
    ),
    (Refusal::CodingVersion, "HTTP/1.0 200 OK\nTransfer-Encoding: chunked\n\n"),
    (Refusal::Length, "HTTP/1.1 200 OK\nContent-Length: 5x\n\n"),
    (Refusal::Length, "HTTP/1.1 200 OK\nContent-Length: 5,5\n\n"),
    (Refusal::Lengths, "HTTP/1.1 200 OK\nContent-Length: 5\nContent-Length: 6\n\n"),
    (Refusal::Lengths, "HTTP/1.1 304 Not Modified\nContent-Length: 5\nContent-Length: 6\n\n"),
    (Refusal::ChunkSize, "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n0x5\n"),
    (Refusal::FieldName, "HTTP/1.1 200 OK\nContent-Length : 5\n\n"),
    (Refusal::Folded, "HTTP/1.1 200 OK\nA: b\n c\n\n"),
    (Refusal::Control, "HTTP/1.1 200 OK\nA: b\u{0}\n\n"),
    (Refusal::NoColon, "HTTP/1.1 200 OK\nA\n\n"),
    (Refusal::Version, "HTTP/2.0 200 OK\n\n"),
    (Refusal::Version, "ICY/1.00 200 OK\n\n"),
    (Refusal::Switched, "HTTP/1.1 101 Switching\nConnection: upgrade\nUpgrade: x\n\n"),
    (Refusal::Connection, "HTTP/1.1 200 OK\nConnection: transfer-encoding\n\n"),
    (Refusal::StatusLine, "HTTP/1.1\n\n"),
    (Refusal::StatusLine, "hello\n\n"),
    (Refusal::StatusLine, "\nHTTP/1.1 200 OK\n\n"),
    (Refusal::StatusLine, "HTTP/1.1  200 OK\n\n"),
    (Refusal::StatusLine, "HTTP/1.1 20 OK\n\n"),
    (Refusal::StatusLine, "HTTP/1.1 2000 OK\n\n"),
    (Refusal::StatusLine, "HTTP/1.1 099 OK\n\n"),
    (Refusal::StatusLine, "HTTP/1.1 200 O\u{1}K\n\n"),
    (Refusal::Truncated, "HTTP/1.1 200 OK\nContent-Length: 5\n\nabcd"),
    (Refusal::Truncated, "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n5\nabcde\n"),
    (Refusal::Truncated, "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n0\n"),
];

#[test]
fn each_rule_refuses_what_breaks_it_with_its_reason() {
    for (expected, text) in BROKEN {
        assert_eq!(reply_refused(&wire(text)), *expected, "{text}");
    }
    assert_eq!(reply_refused(b"HTTP/1.1 200 O\rK\r\n\r\n"), Refusal::StatusLine);
    let feeds = HeadScan::default().next(b"HTTP/1.1 200 OK\n\n", &Limits::REPLY);
    assert_eq!(feeds, Err(Refusal::LineFeed));
}

#[test]
fn the_framing_follows_from_status_method_and_fields() {
    let head = RequestInfo { method: Method::Head, ..GET };
    for (text, asked, body, keep_alive) in [
        ("HTTP/1.1 200 OK\nContent-Length: 5\n\n", GET, BodyKind::Length(5), true),
        ("HTTP/1.1 200 OK\nContent-Length: 5\n\n", head, BodyKind::None, true),
        ("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n", GET, BodyKind::Chunked, true),
        ("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n", head, BodyKind::None, true),
        ("HTTP/1.1 200 OK\n\n", GET, BodyKind::UntilEnd, false),
        ("HTTP/1.1 200 OK\n\n", head, BodyKind::None, true),
        ("HTTP/1.0 200 OK\nContent-Length: 5\n\n", GET, BodyKind::Length(5), false),
        (
            "HTTP/1.0 200 OK\nConnection: keep-alive\nContent-Length: 5\n\n",
            GET,
            BodyKind::Length(5),
            true,
        ),
        ("HTTP/1.1 204 No Content\n\n", GET, BodyKind::None, true),
        ("HTTP/1.1 204 No Content\nContent-Length: 0\n\n", GET, BodyKind::None, true),
        ("HTTP/1.1 204 No Content\nContent-Length: 5\n\n", GET, BodyKind::None, false),
        ("HTTP/1.1 204 No Content\nTransfer-Encoding: chunked\n\n", GET, BodyKind::None, false),
        ("HTTP/1.1 304 Not Modified\nContent-Length: 5\n\n", GET, BodyKind::None, true),
        ("HTTP/1.1 100 Continue\n\n", GET, BodyKind::None, true),
        ("HTTP/1.1 200\n\n", GET, BodyKind::UntilEnd, false),
        (
            "HTTP/1.1 200 \nContent-Length: 0\nConnection: close\n\n",
            GET,
            BodyKind::Length(0),
            false,
        ),
    ] {
        let (reply, _) = reply(&wire(text), asked).unwrap();
        assert_eq!((reply.body, reply.connection.keep_alive), (body, keep_alive), "{text}");
    }
}

#[test]
fn another_protocol_begins_only_where_it_was_asked_for() {
    let asked = RequestInfo { upgrades: switching("x"), ..GET };
    let text = wire("HTTP/1.1 101 Switching Protocols\nConnection: Upgrade\nUpgrade: x\n\n");
    let (head, _) = reply(&text, asked).unwrap();
    assert!(!head.is_interim() && head.status == 101);
    for fields in ["Upgrade: x\n", "Connection: upgrade\n", "Connection: upgrade\nUpgrade: h2c\n"] {
        let text = wire(&format!("HTTP/1.1 101 Switching Protocols\n{fields}\n"));
        assert_eq!(reply(&text, asked).unwrap_err(), Refusal::Switched, "{fields}");
    }
}

#[test]
fn an_invalid_status_is_forwarded_and_understood_as_a_500() {
    for (status, understood) in [(599, 599), (600, 500), (999, 500)] {
        let text = format!("HTTP/1.1 {status} Odd\nContent-Length: 3\n\n");
        let (mut head, _) = reply(&wire(&text), GET).unwrap();
        assert_eq!((head.status, head.body), (status, BodyKind::Length(3)));
        assert_eq!(head.effective_status(), understood);
        let sending = head.prepare(Version::Http11);
        let mut out = Vec::new();
        head.encode(sending, Version::Http11, true, Added::default(), &mut out);
        assert_eq!(out, wire(&text));
    }
}

#[test]
fn interim_replies_are_told_apart() {
    for (status, interim) in [(100, true), (103, true), (101, false), (200, false)] {
        let text = format!("HTTP/1.1 {status} x\nConnection: upgrade\nUpgrade: x\n\n");
        let (head, _) =
            reply(&wire(&text), RequestInfo { upgrades: switching("x"), ..GET }).unwrap();
        assert_eq!(head.is_interim(), interim, "{status}");
    }
}
