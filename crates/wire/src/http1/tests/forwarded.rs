//! Forwarded and generated heads.

use super::*;
use std::net::IpAddr;

const PLAIN: ForwardedFor<'_> = ForwardedFor {
    fields: Forwarded::Nothing,
    trusted: false,
    client: None,
    secure: false,
    via: b"",
};

fn sent(text: &str, from: &ForwardedFor<'_>) -> String {
    let (mut head, _) = request(&wire(text)).unwrap();
    head.prepare(from);
    let mut out = Vec::new();
    head.encode(None, b"server:80", from, &mut out);
    String::from_utf8(out).unwrap().replace("\r\n", "\n")
}

fn answered(text: &str, asked: RequestInfo, client: Version) -> (String, Sending) {
    answered_with(text, asked, client, Added::default())
}

fn answered_with(
    text: &str,
    asked: RequestInfo,
    client: Version,
    added: Added<'_>,
) -> (String, Sending) {
    let (mut head, _) = reply(&wire(text), asked).unwrap();
    let sending = head.prepare(client);
    let mut out = Vec::new();
    head.encode(sending, client, true, added, &mut out);
    (String::from_utf8(out).unwrap().replace("\r\n", "\n"), sending)
}

#[test]
fn a_plain_head_goes_on_byte_by_byte() {
    let text = "GET /a?b HTTP/1.1\nHost:  a \nAccept: */*\nX:y\n\n";
    assert_eq!(sent(text, &PLAIN), text);
}

#[test]
fn what_concerns_one_connection_does_not_go_on() {
    let text = "GET / HTTP/1.1\nHost: a\nConnection: close, X-Mine\nKeep-Alive: 5\nX-Mine: 1\n\
                TE: trailers\nProxy-Connection: b\nUpgrade: h2c\nHTTP2-Settings: x\nY: z\n\n";
    assert_eq!(sent(text, &PLAIN), "GET / HTTP/1.1\nHost: a\nY: z\n\n");
}

#[test]
fn what_servers_take_for_what_we_say_does_not_go_on() {
    let text = "GET / HTTP/1.1\nHost: a\nX_Forwarded_For: 1.1.1.1\nX-FORWARDED_PROTO: https\n\
                x_real-ip: b\nX_Forwarded_Host: c\nX.Original.URL: /\nContent_Length: 5\n\
                x_real_ips: d\nY_Z: e\n\n";
    let expected = "GET / HTTP/1.1\nHost: a\nx_real_ips: d\nY_Z: e\n\n";
    assert_eq!(sent(text, &PLAIN), expected);
    let trusted = ForwardedFor { fields: Forwarded::Standard, trusted: true, ..PLAIN };
    let kept = sent(text, &trusted);
    assert!(!kept.contains("1.1.1.1") && !kept.contains("https"), "{kept}");
}

#[test]
fn the_framing_is_spelled_canonically() {
    let text = "POST / HTTP/1.1\nHost: a\nContent-Length: 007\ncontent-length: 7\n\n";
    assert_eq!(sent(text, &PLAIN), "POST / HTTP/1.1\nHost: a\nContent-Length: 7\n\n");
    let text = "POST / HTTP/1.1\nHost: a\nTransfer-Encoding: CHUNKED\nA: b\n\n";
    let expected = "POST / HTTP/1.1\nHost: a\nA: b\nTransfer-Encoding: chunked\n\n";
    assert_eq!(sent(text, &PLAIN), expected);
}

#[test]
fn targets_go_on_as_paths_in_1_1_and_a_host_is_there() {
    let absolute = sent("GET http://a?q HTTP/1.1\nHost: a\n\n", &PLAIN);
    assert_eq!(absolute, "GET /?q HTTP/1.1\nHost: a\n\n");
    let alone = sent("GET http://a:80/x HTTP/1.0\n\n", &PLAIN).to_ascii_lowercase();
    assert_eq!(alone, "get /x http/1.1\nhost: a:80\n\n");
    assert_eq!(sent("OPTIONS * HTTP/1.1\nHost: a\n\n", &PLAIN), "OPTIONS * HTTP/1.1\nHost: a\n\n");
    assert_eq!(sent("GET /x HTTP/1.0\n\n", &PLAIN), "GET /x HTTP/1.1\nHost: server:80\n\n");
}

#[test]
fn an_upgrade_goes_on_with_its_fields() {
    let text = "GET / HTTP/1.1\nHost: a\nConnection: Upgrade, keep-alive\nUpgrade: websocket\n\n";
    let expected = "GET / HTTP/1.1\nHost: a\nUpgrade: websocket\nConnection: upgrade\n\n";
    assert_eq!(sent(text, &PLAIN), expected);
    let asked = RequestInfo { upgrades: switching("websocket"), ..GET };
    let text = "HTTP/1.1 101 Switching Protocols\nConnection: Upgrade\nUpgrade: websocket\n\n";
    let expected = "HTTP/1.1 101 Switching Protocols\nUpgrade: websocket\nConnection: upgrade\n\n";
    assert_eq!(answered(text, asked, Version::Http11).0, expected);
}

#[test]
fn only_we_say_who_asked_unless_the_peer_is_trusted() {
    let client: IpAddr = "192.0.2.1".parse().unwrap();
    let text = "GET / HTTP/1.1\nHost: a\nX-Forwarded-For: 6.6.6.6\nX-Real-IP: 6.6.6.6\n\
                Forwarded: for=6.6.6.6\nX-Forwarded-Proto: gopher\nX-Original-URL: /admin\n\
                X-Rewrite-URL: /admin\nCF-Connecting-IP: 6.6.6.6\nTrue-Client-IP: 6.6.6.6\n\
                X-Client-IP: 6.6.6.6\nX-Forwarded-User: root\n\n";
    assert_eq!(sent(text, &PLAIN), "GET / HTTP/1.1\nHost: a\n\n");
    let via = ForwardedFor { fields: Forwarded::Legacy, client: Some(client), ..PLAIN };
    let expected = "GET / HTTP/1.1\nHost: a\nX-Forwarded-For: 192.0.2.1\n\
                    X-Forwarded-Proto: http\nX-Forwarded-Host: a\n\n";
    assert_eq!(sent(text, &via), expected);
    let trusted = sent(text, &ForwardedFor { trusted: true, ..via });
    assert!(trusted.contains("X-Forwarded-For: 6.6.6.6\n"), "{trusted}");
    assert!(trusted.contains("X-Forwarded-For: 192.0.2.1\n"), "{trusted}");
    assert!(trusted.contains("True-Client-IP: 6.6.6.6\n"), "{trusted}");
    assert!(trusted.contains("Proto: gopher\n") && !trusted.contains("Proto: http"), "{trusted}");

    let text = "GET / HTTP/1.1\nHost: a\n\n";
    let via = ForwardedFor { fields: Forwarded::Standard, secure: true, ..via };
    let v6 = ForwardedFor { client: Some("2001:db8::1".parse().unwrap()), ..via };
    assert!(sent(text, &via).contains("Forwarded: for=192.0.2.1;proto=https;host=\"a\"\n"));
    assert!(sent(text, &v6).contains("Forwarded: for=\"[2001:db8::1]\";"));
    assert!(sent(text, &ForwardedFor { client: None, ..via }).contains("Forwarded: for=unknown;"));
}

#[test]
fn what_a_connection_names_goes_and_ours_does_not_go_with_it() {
    let via = ForwardedFor { fields: Forwarded::Legacy, client: "::1".parse().ok(), ..PLAIN };
    let text = "GET / HTTP/1.1\nHost: a\nConnection: X-Forwarded-For, Accept\nAccept: b\n\n";
    let sent = sent(text, &via);
    assert!(sent.contains("X-Forwarded-For: ::1\n") && !sent.contains("Accept"), "{sent}");
}

#[test]
fn a_reply_goes_to_each_version_in_its_framing() {
    let length = "HTTP/1.1 200 OK\nContent-Length: 5\n\n";
    let chunked = "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\nTrailer: x\n\n";
    let until = "HTTP/1.0 200 Fine\nA: b\n\n";
    let to_10 = |text| answered(text, GET, Version::Http10);
    let to_11 = |text| answered(text, GET, Version::Http11);
    assert_eq!(to_11(length), (length.into(), Sending::Verbatim));
    let keep = "HTTP/1.1 200 OK\nContent-Length: 5\nConnection: keep-alive\n\n";
    assert_eq!(to_10(length), (keep.into(), Sending::Verbatim));
    let canonical = "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n";
    assert_eq!(to_11(chunked), (canonical.into(), Sending::Verbatim));
    assert_eq!(to_10(chunked).1, Sending::Data);
    assert!(!to_10(chunked).0.contains("Transfer"));
    let coded = "HTTP/1.1 200 Fine\nA: b\nTransfer-Encoding: chunked\n\n";
    assert_eq!(to_11(until), (coded.into(), Sending::Chunked));
    assert_eq!(to_10(until).1, Sending::Verbatim);
}

#[test]
fn a_reply_without_a_body_says_what_it_may() {
    let head = RequestInfo { method: Method::Head, ..GET };
    let text = "HTTP/1.1 200 OK\nContent-Length: 5\n\n";
    assert_eq!(answered(text, head, Version::Http11).0, text);
    let not_modified = "HTTP/1.1 304 Not Modified\nContent-Length: 5\n\n";
    assert_eq!(answered(not_modified, GET, Version::Http11).0, not_modified);
    // Equal lengths are written once. Chunks are not sent to a client that does not support them.
    let twice = "HTTP/1.1 200 OK\nContent-Length: 5\nContent-Length: 5\n\n";
    assert_eq!(answered(twice, head, Version::Http11).0, text);
    let chunked = "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n";
    assert_eq!(answered(chunked, head, Version::Http11).0, chunked);
    assert!(!answered(chunked, head, Version::Http10).0.contains("Transfer"));
    let none = answered("HTTP/1.1 204 No\nContent-Length: 0\n\n", GET, Version::Http11).0;
    assert_eq!(none, "HTTP/1.1 204 No\n\n");
    let early = "HTTP/1.1 103 Early Hints\nLink: a\n\n";
    assert_eq!(answered(early, GET, Version::Http11).0, early);
}

const DATE: &[u8] = b"Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n";

#[test]
fn a_forwarded_message_gets_a_via_behind_those_that_it_has() {
    let via = Via::new("edge").unwrap();
    let from = ForwardedFor { via: via.line(Version::Http10), ..PLAIN };
    let text = "GET / HTTP/1.0\nVia: 1.1 a\nHost: b\n\n";
    let expected = "GET / HTTP/1.1\nVia: 1.1 a\nHost: b\nVia: 1.0 edge\n\n";
    assert_eq!(sent(text, &from), expected);

    let added = Added { via: via.line(Version::Http11), date: b"" };
    let to_11 = |text| answered_with(text, GET, Version::Http11, added).0;
    let text = "HTTP/1.1 200 OK\nVia: 1.0 a\nContent-Length: 0\n\n";
    let expected = "HTTP/1.1 200 OK\nVia: 1.0 a\nContent-Length: 0\nVia: 1.1 edge\n\n";
    assert_eq!(to_11(text), expected);
    let interim = "HTTP/1.1 103 Early Hints\nLink: a\n\n";
    assert_eq!(to_11(interim), interim);

    assert_eq!(Via::none().line(Version::Http11), b"");
    for (name, taken) in [("a.b:80", true), ("[::1]:80", true), ("x!", true)] {
        assert_eq!(Via::new(name).is_some(), taken, "{name}");
    }
    for name in ["", "a b", "a\r\nb: c", "a/b", "a (b)"] {
        assert!(Via::new(name).is_none(), "{name}");
    }
}

#[test]
fn a_reply_without_a_date_gets_the_time_of_its_receipt() {
    let added = Added { date: DATE, via: b"" };
    let to_11 = |text| answered_with(text, GET, Version::Http11, added).0;
    let dated = "HTTP/1.1 200 OK\nDate: x\nContent-Length: 0\n\n";
    assert_eq!(to_11(dated), dated);
    let said = to_11("HTTP/1.1 500 No\nContent-Length: 0\n\n");
    assert_eq!(said.matches("Date: Sun, 06 Nov 1994 08:49:37 GMT\n").count(), 1, "{said}");
    let interim = "HTTP/1.1 103 Early Hints\nLink: a\n\n";
    assert_eq!(to_11(interim), interim);
}

#[test]
fn a_length_is_forwarded_in_one_spelling() {
    let canonical = "POST / HTTP/1.1\nHost: a\nContent-Length: 7\n\n";
    for spelling in [":7", ":\t7", ":  7", ": 7 ", ": 7\t", ": 07", ":0000000000007", ": 7"] {
        let text = format!("POST / HTTP/1.1\nHost: a\nContent-Length{spelling}\n\n");
        assert_eq!(sent(&text, &PLAIN), canonical, "{spelling:?}");
        let head = RequestInfo { method: Method::Head, ..GET };
        let reply = format!("HTTP/1.1 200 OK\nContent-Length{spelling}\n\n");
        for asked in [GET, head] {
            let (said, _) = answered(&reply, asked, Version::Http11);
            assert_eq!(said, "HTTP/1.1 200 OK\nContent-Length: 7\n\n", "{spelling:?}");
        }
    }
    let coded = "HTTP/1.1 200 OK\nTransfer-Encoding:\tChunked \n\n";
    let head = RequestInfo { method: Method::Head, ..GET };
    let expected = "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n";
    assert_eq!(answered(coded, head, Version::Http11).0, expected);
}

#[test]
fn a_full_head_keeps_its_framing() {
    let limits = Limits { head: 60, fields: 2, ..Limits::REQUEST };
    let text = wire("POST / HTTP/1.1\nHost: abcdefghi\nContent-Length:7\n\n");
    let limits = Limits { head: text.len().min(limits.head), ..limits };
    let (mut head, _) = request_within(&text, &limits).unwrap();
    head.prepare(&PLAIN);
    let mut out = Vec::new();
    head.encode(None, b"server:80", &PLAIN, &mut out);
    let sent = String::from_utf8(out).unwrap();
    assert!(sent.contains("\r\nContent-Length: 7\r\n"), "{sent}");
}

#[test]
fn a_higher_minor_version_goes_on_as_1_1() {
    for version in ["1.2", "1.9"] {
        let text = format!("GET /a HTTP/{version}\nHost: a\n\n");
        let (head, _) = request(&wire(&text)).unwrap();
        assert!(head.version == Version::Http11 && head.connection.keep_alive, "{version}");
        assert_eq!(sent(&text, &PLAIN), "GET /a HTTP/1.1\nHost: a\n\n");
        let text = format!("HTTP/{version} 200 OK\nContent-Length: 0\n\n");
        let expected = "HTTP/1.1 200 OK\nContent-Length: 0\n\n";
        assert_eq!(answered(&text, GET, Version::Http11).0, expected);
    }
}

#[test]
fn the_host_of_an_absolute_target_replaces_the_field() {
    for (target, host) in [
        ("http://a:80", "a"),
        ("http://a", "a:80"),
        ("HTTP://A:", "a:80"),
        ("https://a:443", "a"),
        ("http://[::1]:80", "[::1]"),
        ("http://a:8080", "A:8080"),
    ] {
        let text = format!("GET {target}/x HTTP/1.1\nHost: {host}\n\n");
        let named = target.split_once("//").unwrap().1;
        assert_eq!(sent(&text, &PLAIN), format!("GET /x HTTP/1.1\nHost: {named}\n\n"));
    }
    for (target, host) in [
        ("http://a:80", "a:8080"),
        ("http://a:443", "a"),
        ("https://a:80", "a"),
        ("http://a:8080", "a"),
        ("http://a", "b:80"),
    ] {
        let text = format!("GET {target}/ HTTP/1.1\nHost: {host}\n\n");
        assert_eq!(request(&wire(&text)).unwrap_err(), Refusal::HostTarget, "{target} {host}");
    }
}

#[test]
fn a_426_says_which_protocol_is_wanted() {
    let text = "HTTP/1.1 426 Upgrade Required\nUpgrade: TLS/1.0\nConnection: upgrade, X-A\nX-A: b\n\
                Content-Length: 0\n\n";
    let expected = "HTTP/1.1 426 Upgrade Required\nUpgrade: TLS/1.0\nContent-Length: 0\n\
                    Connection: upgrade\n\n";
    assert_eq!(answered(text, GET, Version::Http11).0, expected);
    let old = answered(text, GET, Version::Http10).0;
    assert!(!old.contains("pgrade:") && !old.contains(": upgrade"), "{old}");
    let without = "HTTP/1.1 426 Upgrade Required\nContent-Length: 0\n\n";
    assert_eq!(answered(without, GET, Version::Http11).0, without);
    let ok = answered(&text.replace("426", "200"), GET, Version::Http11).0;
    assert!(!ok.contains("TLS"), "only a 426: {ok}");
}

#[test]
fn an_upgrade_to_http_2_without_tls_is_not_forwarded() {
    let text = "POST / HTTP/1.1\nHost: a\nConnection: Upgrade, HTTP2-Settings\nUpgrade: H2C\n\
                HTTP2-Settings: AAMAAABkAAQ\nContent-Length: 3\n\n";
    let (head, _) = request(&wire(text)).unwrap();
    assert!(!head.upgrade, "it may have a body, for it asks for nothing");
    assert_eq!(sent(text, &PLAIN), "POST / HTTP/1.1\nHost: a\nContent-Length: 3\n\n");
    let text =
        "GET / HTTP/1.1\nHost: a\nConnection: upgrade\nUpgrade: h2c,websocket\nUpgrade: h2c\n\n";
    let expected = "GET / HTTP/1.1\nHost: a\nUpgrade: websocket\nConnection: upgrade\n\n";
    assert_eq!(sent(text, &PLAIN), expected);
    for other in ["h2c/1", "h2", "HTTP/2.0", "\"h2c\"", "h2c;q=1"] {
        let text = format!("GET / HTTP/1.1\nHost: a\nConnection: upgrade\nUpgrade: {other}\n\n");
        assert_eq!(sent(&text, &PLAIN), "GET / HTTP/1.1\nHost: a\n\n");
        let text = text.replace("Upgrade: ", "Upgrade: websocket, ");
        assert_eq!(sent(&text, &PLAIN), expected, "{other}");
    }
    let many = "GET / HTTP/1.1\nHost: a\nConnection: upgrade\nUpgrade: a,b/1\nUpgrade: c,d,e,f\n\n";
    let four = "GET / HTTP/1.1\nHost: a\nUpgrade: a, b/1, c, d\nConnection: upgrade\n\n";
    assert_eq!(sent(many, &PLAIN), four);
    let (mut head, _) = request(&wire(text)).unwrap();
    head.ignore_upgrade();
    head.prepare(&PLAIN);
    let mut out = Vec::new();
    head.encode(None, b"", &PLAIN, &mut out);
    assert_eq!(out, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
}

#[test]
fn what_programs_would_take_for_their_proxy_does_not_go_on() {
    let text = "GET / HTTP/1.1\nHost: a\nProxy: http://evil\npROXY: b\nX-Proxy: c\n\n";
    assert_eq!(sent(text, &PLAIN), "GET / HTTP/1.1\nHost: a\nX-Proxy: c\n\n");
}

#[test]
fn answers_of_our_own_are_whole_replies() {
    let answer = Answer {
        status: 503,
        content_type: "text/plain",
        lines: b"Retry-After: 1\r\n",
        body: b"full\n",
        keep_alive: true,
    };
    let mut out = Vec::new();
    write_answer(&answer, Method::Get, Version::Http11, DATE, &mut out);
    let (head, end) = reply(&out, GET).unwrap();
    assert_eq!((head.status, head.reason()), (503, &b"Service Unavailable"[..]));
    assert!(head.fields.contains("date"), "our own answers are dated");
    assert_eq!((head.body, &out[end..]), (BodyKind::Length(5), &b"full\n"[..]));
    out.clear();
    let closing = Answer { keep_alive: false, ..answer };
    write_answer(&closing, Method::Head, Version::Http11, DATE, &mut out);
    let (head, end) = reply(&out, RequestInfo { method: Method::Head, ..GET }).unwrap();
    assert!(!head.connection.keep_alive && end == out.len() && head.has_length());
}

#[test]
fn numbers_are_written_in_full() {
    for number in [0, 9, 10, 255, 1_048_576, u64::MAX] {
        let (digits, start) = decimal(number);
        assert_eq!(&digits[start..], number.to_string().as_bytes());
    }
    for length in [0, 1, 15, 16, 0xabcdef, usize::MAX] {
        let (digits, start) = chunk_head(length);
        assert_eq!(digits[start..], *format!("{length:x}\r\n").as_bytes());
    }
}
