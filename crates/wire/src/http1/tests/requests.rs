//! Rules for requests.

use super::*;

/// Input that violates each rule, and the expected reason.
const BROKEN: &[(Refusal, &str)] = &[
    (
        Refusal::LengthAndCoding,
        "POST / HTTP/1.1\nHost: a\nContent-Length: 5\nTransfer-Encoding: chunked\n\n",
    ),
    (
        Refusal::LengthAndCoding,
        "POST / HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\nContent-Length: 0\n\n",
    ),
    (
        Refusal::LengthAndCoding,
        "POST / HTTP/1.0\nTransfer-Encoding: chunked\nContent-Length: 0\n\n",
    ),
    (Refusal::Coding, "POST / HTTP/1.1\nHost: a\nTransfer-Encoding: gzip\n\n"),
    (Refusal::Coding, "POST / HTTP/1.1\nHost: a\nTransfer-Encoding: identity\n\n"),
    (Refusal::Coding, "POST / HTTP/1.1\nHost: a\nTransfer-Encoding: xchunked\n\n"),
    (Refusal::Coding, "POST / HTTP/1.1\nHost: a\nTransfer-Encoding: \"chunked\"\n\n"),
    (Refusal::Coding, "POST / HTTP/1.1\nHost: a\nTransfer-Encoding: chunked;q=1\n\n"),
    (Refusal::Coding, "POST / HTTP/1.1\nHost: a\nTransfer-Encoding:\n\n"),
    (Refusal::Coding, "POST / HTTP/1.1\nHost: a\nTransfer-Encoding: \u{a0}chunked\n\n"),
    (Refusal::CodingRepeated, "POST / HTTP/1.1\nHost: a\nTransfer-Encoding: gzip, chunked\n\n"),
    (Refusal::CodingRepeated, "POST / HTTP/1.1\nHost: a\nTransfer-Encoding: ,chunked\n\n"),
    (Refusal::CodingRepeated, "POST / HTTP/1.1\nHost: a\nTransfer-Encoding: chunked, identity\n\n"),
    (
        Refusal::CodingRepeated,
        "POST / HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\ntransfer-encoding: chunked\n\n",
    ),
    (Refusal::CodingVersion, "POST / HTTP/1.0\nHost: a\nTransfer-Encoding: chunked\n\n"),
    (Refusal::Length, "POST / HTTP/1.1\nHost: a\nContent-Length: +5\n\n"),
    (Refusal::Length, "POST / HTTP/1.1\nHost: a\nContent-Length: -5\n\n"),
    (Refusal::Length, "POST / HTTP/1.1\nHost: a\nContent-Length: 5_0\n\n"),
    (Refusal::Length, "POST / HTTP/1.1\nHost: a\nContent-Length: 0x5\n\n"),
    (Refusal::Length, "POST / HTTP/1.1\nHost: a\nContent-Length: 5 5\n\n"),
    (Refusal::Length, "POST / HTTP/1.1\nHost: a\nContent-Length: 5, 5\n\n"),
    (Refusal::Length, "POST / HTTP/1.1\nHost: a\nContent-Length:\n\n"),
    (Refusal::Length, "POST / HTTP/1.1\nHost: a\nContent-Length: 9223372036854775808\n\n"),
    (Refusal::Length, "POST / HTTP/1.1\nHost: a\nContent-Length: 36893488147419103237\n\n"),
    (Refusal::Length, "POST / HTTP/1.1\nHost: a\nContent-Length: 5\nContent-Length: x\n\n"),
    (Refusal::Length, "POST / HTTP/1.1\nHost: a\nContent-Length: \u{a0}5\n\n"),
    (Refusal::Lengths, "POST / HTTP/1.1\nHost: a\nContent-Length: 5\nContent-Length: 6\n\n"),
    (Refusal::FieldName, "GET / HTTP/1.1\nHost: a\nA B: c\n\n"),
    (Refusal::FieldName, "GET / HTTP/1.1\nHost: a\nA : c\n\n"),
    (Refusal::FieldName, "GET / HTTP/1.1\nHost: a\nContent-Length : 5\n\n"),
    (Refusal::FieldName, "GET / HTTP/1.1\nHost: a\nTransfer\u{0}-Encoding: chunked\n\n"),
    (Refusal::FieldName, "GET / HTTP/1.1\nHost: a\n: c\n\n"),
    (Refusal::FieldName, "GET / HTTP/1.1\nHost: a\nA(b): c\n\n"),
    (Refusal::Folded, "GET / HTTP/1.1\n Host: a\n\n"),
    (Refusal::Folded, "GET / HTTP/1.1\nHost: a\n\tb\n\n"),
    (Refusal::Folded, "POST / HTTP/1.1\nHost: a\nTransfer-Encoding:\n chunked\n\n"),
    (Refusal::Control, "GET / HTTP/1.1\nHost: a\nA: b\u{0}c\n\n"),
    (Refusal::Control, "GET / HTTP/1.1\nHost: a\nA: b\u{b}c\n\n"),
    (Refusal::Control, "GET / HTTP/1.1\nHost: a\nA: b\u{7f}c\n\n"),
    (Refusal::NoColon, "GET / HTTP/1.1\nHost: a\nAbc\n\n"),
    (Refusal::RequestLine, "GET /\nHost: a\n\n"),
    (Refusal::RequestLine, "GET\nHost: a\n\n"),
    (Refusal::RequestLine, "GET  HTTP/1.1\nHost: a\n\n"),
    (Refusal::RequestLine, "GET\t/ HTTP/1.1\nHost: a\n\n"),
    (Refusal::RequestLine, "\n\nGET / HTTP/1.1\nHost: a\n\n"),
    (Refusal::RequestLine, "GET /\tHTTP/1.1\nHost: a\n\n"),
    (Refusal::RequestLine, "GET /  HTTP/1.1\nHost: a\n\n"),
    (Refusal::RequestLine, "GET  / HTTP/1.1\nHost: a\n\n"),
    (Refusal::RequestLine, "GET /a b HTTP/1.1\nHost: a\n\n"),
    (Refusal::RequestLine, "GET / HTTP/1.1 \nHost: a\n\n"),
    (Refusal::RequestLine, "GET / HTTP/1.1\t\nHost: a\n\n"),
    (Refusal::Version, "GET / HTTP/1.10\nHost: a\n\n"),
    (Refusal::Version, "GET / HTTP/1.x\nHost: a\n\n"),
    (Refusal::Version, "GET / HTTP/3.1\nHost: a\n\n"),
    (Refusal::Version, "GET / HTTP/2.0\nHost: a\n\n"),
    (Refusal::Version, "GET / HTTP/01.1\nHost: a\n\n"),
    (Refusal::Version, "GET / http/1.1\nHost: a\n\n"),
    (Refusal::Method, " GET / HTTP/1.1\nHost: a\n\n"),
    (Refusal::Method, "G=T / HTTP/1.1\nHost: a\n\n"),
    (Refusal::Method, "GETGETGETGETGETGETGETGETGETGETGETX / HTTP/1.1\nHost: a\n\n"),
    (Refusal::Target, "GET /a#b HTTP/1.1\nHost: a\n\n"),
    (Refusal::Target, "GET /\u{e9} HTTP/1.1\nHost: a\n\n"),
    (Refusal::Target, "GET /\u{0} HTTP/1.1\nHost: a\n\n"),
    (Refusal::Target, "GET a HTTP/1.1\nHost: a\n\n"),
    (Refusal::Target, "GET * HTTP/1.1\nHost: a\n\n"),
    (Refusal::Target, "GET ftp://a/ HTTP/1.1\nHost: a\n\n"),
    (Refusal::Target, "GET http:///a HTTP/1.1\nHost: a\n\n"),
    (Refusal::Target, "GET http://u@a/ HTTP/1.1\nHost: a\n\n"),
    (Refusal::Connect, "CONNECT a:443 HTTP/1.1\nHost: a:443\n\n"),
    (Refusal::NoHost, "GET / HTTP/1.1\n\n"),
    (Refusal::HostTwice, "GET / HTTP/1.1\nHost: a\nHost: a\n\n"),
    (Refusal::HostTwice, "GET / HTTP/1.0\nHost: a\nhost: b\n\n"),
    (Refusal::Host, "GET / HTTP/1.1\nHost:\n\n"),
    (Refusal::Host, "GET / HTTP/1.1\nHost: a b\n\n"),
    (Refusal::Host, "GET / HTTP/1.1\nHost: a/b\n\n"),
    (Refusal::Host, "GET / HTTP/1.1\nHost: u@a\n\n"),
    (Refusal::Host, "GET / HTTP/1.1\nHost: a:b\n\n"),
    (Refusal::Host, "GET / HTTP/1.1\nHost: a:80:90\n\n"),
    (Refusal::Host, "GET / HTTP/1.1\nHost: [::1\n\n"),
    (Refusal::Host, "GET / HTTP/1.1\nHost: [::g]\n\n"),
    (Refusal::Host, "GET / HTTP/1.1\nHost: :80\n\n"),
    (Refusal::HostTarget, "GET http://a/ HTTP/1.1\nHost: b\n\n"),
    (Refusal::Expect, "POST / HTTP/1.1\nHost: a\nExpect: 200-ok\n\n"),
    (Refusal::Expect, "POST / HTTP/1.1\nHost: a\nExpect: 100-continue\nExpect: 100-continue\n\n"),
    (
        Refusal::UpgradeBody,
        "POST / HTTP/1.1\nHost: a\nConnection: upgrade\nUpgrade: x\nContent-Length: 5\n\n",
    ),
    (
        Refusal::UpgradeBody,
        "POST / HTTP/1.1\nHost: a\nConnection: upgrade\nUpgrade: x\nTransfer-Encoding: chunked\n\n",
    ),
    (Refusal::Connection, "GET / HTTP/1.1\nHost: a\nConnection: close, Host\n\n"),
    (Refusal::Connection, "GET / HTTP/1.1\nHost: a\nConnection: content-length\n\n"),
    // Without `Expect`, the server would never send 100 (Continue), for which the client waits.
    (
        Refusal::Connection,
        "POST / HTTP/1.1\nHost: a\nConnection: expect\nExpect: 100-continue\nContent-Length: 5\n\n",
    ),
    (Refusal::BodyTooLong, "POST / HTTP/1.1\nHost: a\nContent-Length: 1048577\n\n"),
    (Refusal::Truncated, "POST / HTTP/1.1\nHost: a\nContent-Length: 5\n\nabcd"),
];

#[test]
fn each_rule_refuses_what_breaks_it_with_its_reason() {
    for (expected, text) in BROKEN {
        assert_eq!(refused(&wire(text)), *expected, "{text}");
    }
}

#[test]
fn bare_line_feeds_and_returns_are_refused_wherever_they_stand() {
    for text in ["GET / HTTP/1.1\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\n\r\n", "\nGET"] {
        let refusal = HeadScan::default().next(text.as_bytes(), &Limits::REQUEST);
        assert_eq!(refusal, Err(Refusal::LineFeed), "{text}");
    }
    let feeds = b"GET / HTTP/1.1\r\nHost: a\r\nB: c\n";
    let refusal = HeadScan::default().next(feeds, &Limits::REQUEST);
    assert_eq!(refusal, Err(Refusal::LineFeed), "before the head is whole");
    assert_eq!(refused(b"GET / HTTP/1.1\r\nHost: a\r\nB: c\rd\r\n\r\n"), Refusal::CarriageReturn);
    assert_eq!(refused(b"GET / HTTP/1.1\r\nHost: a\r\nB: c\r\r\n\r\n"), Refusal::CarriageReturn);
    assert_eq!(refused(b"GET /\r HTTP/1.1\r\nHost: a\r\n\r\n"), Refusal::Target);
    assert_eq!(refused(b"GET / HTTP/1.1\r\r\nHost: a\r\n\r\n"), Refusal::Version);
}

#[test]
fn limits_have_their_own_reasons() {
    let long = |length| format!("GET /{} HTTP/1.1\nHost: a\n\n", "x".repeat(length));
    assert_eq!(refused(&wire(&long(9000))), Refusal::LineTooLong);
    let part = format!("GET /{}", "x".repeat(9000));
    let scanned = HeadScan::default().next(part.as_bytes(), &Limits::REQUEST);
    assert_eq!(scanned, Err(Refusal::LineTooLong), "without its end");

    let field = format!("GET / HTTP/1.1\nHost: a\nA: {}\n\n", "x".repeat(17_000));
    assert_eq!(refused(&wire(&field)), Refusal::HeadTooLong);
    let part = wire(&field);
    let scanned = HeadScan::default().next(&part[..16_500], &Limits::REQUEST);
    assert_eq!(scanned, Err(Refusal::HeadTooLong), "without its end");

    let many = format!("GET / HTTP/1.1\nHost: a\n{}\n", "A: b\n".repeat(100));
    assert_eq!(refused(&wire(&many)), Refusal::TooManyFields);
    let name = format!("GET / HTTP/1.1\nHost: a\n{}: b\n\n", "A".repeat(300));
    assert_eq!(refused(&wire(&name)), Refusal::FieldTooLong);
    let cookies = format!("GET / HTTP/1.1\nHost: a\nCookie: {}\n\n", "a=b;".repeat(180));
    assert_eq!(refused(&wire(&cookies)), Refusal::Cookies);
}

#[test]
fn what_is_in_order_is_read() {
    let text = wire(
        "POST http://Example.org:80/a/b?c=d&e HTTP/1.1\nhost: example.org:80\nX:\t é \t\n\
         Content-Length: 007\nContent-Length: 7\nCookie: a=b; c=d\n\nabcdefg",
    );
    let (head, end) = request(&text).unwrap();
    assert_eq!((head.method(), head.method_bytes()), (Method::Post, &b"POST"[..]));
    assert_eq!((head.path(), head.query()), (&b"/a/b"[..], Some(&b"c=d&e"[..])));
    assert_eq!(head.host(), b"Example.org:80");
    assert_eq!(head.fields.get("x").unwrap().text(), Some("é"));
    assert_eq!((head.body, &text[end..]), (BodyKind::Length(7), &b"abcdefg"[..]));
    assert!(head.connection.keep_alive);
}

#[test]
fn targets_of_all_forms_are_read() {
    for (target, path) in [
        ("GET / ", "/"),
        ("GET /a|b{c}\"^` ", "/a|b{c}\"^`"),
        ("OPTIONS * ", "*"),
        ("GET http://a ", ""),
        ("GET HTTP://a?q ", "?q"),
        ("GET https://a/b?c ", "/b?c"),
        ("PROPFIND /dav ", "/dav"),
    ] {
        let text = format!("{target}HTTP/1.1\nHost: a\n\n");
        let (head, _) = request(&wire(&text)).unwrap();
        assert_eq!(head.path_and_query(), path.as_bytes(), "{target}");
    }
    for host in ["a", "a:80", "1.2.3.4:", "[::1]:80", "a_b.example", "xn--a"] {
        assert!(request(&wire(&format!("GET / HTTP/1.1\nHost: {host}\n\n"))).is_ok(), "{host}");
    }
}

#[test]
fn one_empty_line_before_a_request_means_nothing() {
    let (head, end) = request(b"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    assert_eq!((head.path(), end), (&b"/"[..], 29));
}

#[test]
fn the_connection_goes_on_as_version_and_fields_say() {
    for (text, expected) in [
        ("HTTP/1.1\nHost: a\n\n", true),
        ("HTTP/1.1\nHost: a\nConnection: close\n\n", false),
        ("HTTP/1.1\nHost: a\nConnection: keep-alive, Close\n\n", false),
        ("HTTP/1.1\nHost: a\nConnection: x\nConnection: close\n\n", false),
        ("HTTP/1.0\n\n", false),
        ("HTTP/1.0\nConnection: Keep-Alive\n\n", true),
    ] {
        let (head, _) = request(&wire(&format!("GET / {text}"))).unwrap();
        assert_eq!(head.connection.keep_alive, expected, "{text}");
    }
}

#[test]
fn each_hop_is_counted_and_the_last_one_is_told() {
    let counted = |value: &str| {
        let text = format!("OPTIONS * HTTP/1.1\nHost: a\nMax-Forwards:{value}\n\n");
        let (mut head, _) = request(&wire(&text)).unwrap();
        let goes = head.decrement_max_forwards()?;
        let left = head.fields.get("max-forwards").unwrap().text().unwrap().to_owned();
        Ok((goes, left))
    };
    for (value, goes, left) in [
        (" 1", true, "0"),
        ("\t010 ", true, "9"),
        (" 0", false, "0"),
        (" 99999999999999999999999", true, "18446744073709551614"),
    ] {
        assert_eq!(counted(value), Ok((goes, left.to_owned())), "{value}");
    }
    for value in ["", " x", " -1", " 1, 2", " 1\nMax-Forwards: 1"] {
        assert_eq!(counted(value), Err(Refusal::MaxForwards), "{value}");
    }
    let (mut head, _) = request(&wire("OPTIONS * HTTP/1.1\nHost: a\n\n")).unwrap();
    assert_eq!(head.decrement_max_forwards(), Ok(true), "without the field it goes on");
}

#[test]
fn a_trace_shows_no_secret() {
    let text =
        "TRACE /a HTTP/1.1\nHost: a\nCookie: b\nAuthorization: c\nX:d\nproxy-authorization: e\n\n";
    let (head, _) = request(&wire(text)).unwrap();
    let mut out = Vec::new();
    head.write_trace(&mut out);
    assert_eq!(out, wire("TRACE /a HTTP/1.1\nHost: a\nX: d\n\n"));
}

#[test]
fn another_protocol_is_asked_for_by_both_fields_and_in_1_1_only() {
    for (text, expected) in [
        ("HTTP/1.1\nHost: a\nConnection: Upgrade\nUpgrade: websocket\n\n", true),
        ("HTTP/1.1\nHost: a\nUpgrade: websocket\n\n", false),
        ("HTTP/1.1\nHost: a\nConnection: upgrade\n\n", false),
        ("HTTP/1.0\nConnection: upgrade\nUpgrade: websocket\n\n", false),
    ] {
        let (head, _) = request(&wire(&format!("GET / {text}"))).unwrap();
        assert_eq!(head.upgrade, expected, "{text}");
        let (head, _) = request(&wire(&format!("HEAD / {text}"))).unwrap();
        assert!(!head.upgrade, "no protocol begins behind a reply without a body: {text}");
    }
}

#[test]
fn a_continue_is_expected_for_a_body_in_1_1_only() {
    for (text, expected) in [
        ("HTTP/1.1\nHost: a\nExpect: 100-Continue\nContent-Length: 5\n\n", true),
        ("HTTP/1.1\nHost: a\nExpect: 100-continue\nContent-Length: 0\n\n", false),
        ("HTTP/1.0\nExpect: 100-continue\nContent-Length: 5\n\n", false),
    ] {
        let (head, _) = request(&wire(&format!("POST / {text}"))).unwrap();
        assert_eq!(head.expects_continue, expected, "{text}");
    }
}
