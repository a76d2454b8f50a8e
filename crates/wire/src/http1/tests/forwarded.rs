//! What goes on, and what is written.

use super::*;
use std::net::IpAddr;

const PLAIN: Via = Via { fields: Forwarded::Nothing, trusted: false, client: None, secure: false };

fn sent(text: &str, via: &Via) -> String {
    let (mut head, _) = request(&wire(text)).unwrap();
    head.prepare(via);
    let mut out = Vec::new();
    head.encode(None, b"server:80", via, &mut out);
    String::from_utf8(out).unwrap().replace("\r\n", "\n")
}

fn answered(text: &str, asked: Asked, client: Version) -> (String, Sending) {
    let (mut head, _) = reply(&wire(text), asked).unwrap();
    let sending = head.prepare(client);
    let mut out = Vec::new();
    head.encode(sending, client, true, &mut out);
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
                x_real-ip: b\nX_Forwarded_Host: c\nx_forwarded_fort: d\nY_Z: e\n\n";
    let expected = "GET / HTTP/1.1\nHost: a\nx_forwarded_fort: d\nY_Z: e\n\n";
    assert_eq!(sent(text, &PLAIN), expected);
    let trusted = Via { fields: Forwarded::Standard, trusted: true, ..PLAIN };
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
    let asked = Asked { upgrade: true, ..GET };
    let text = "HTTP/1.1 101 Switching Protocols\nConnection: Upgrade\nUpgrade: websocket\n\n";
    let expected = "HTTP/1.1 101 Switching Protocols\nUpgrade: websocket\nConnection: upgrade\n\n";
    assert_eq!(answered(text, asked, Version::Http11).0, expected);
}

#[test]
fn only_we_say_who_asked_unless_the_peer_is_trusted() {
    let client: IpAddr = "192.0.2.1".parse().unwrap();
    let text = "GET / HTTP/1.1\nHost: a\nX-Forwarded-For: 6.6.6.6\nX-Real-IP: 6.6.6.6\n\
                Forwarded: for=6.6.6.6\nX-Forwarded-Proto: gopher\n\n";
    assert_eq!(sent(text, &PLAIN), "GET / HTTP/1.1\nHost: a\n\n");
    let via = Via { fields: Forwarded::Legacy, client: Some(client), ..PLAIN };
    let expected = "GET / HTTP/1.1\nHost: a\nX-Forwarded-For: 192.0.2.1\n\
                    X-Forwarded-Proto: http\nX-Forwarded-Host: a\n\n";
    assert_eq!(sent(text, &via), expected);
    let trusted = sent(text, &Via { trusted: true, ..via });
    assert!(trusted.contains("X-Forwarded-For: 6.6.6.6\n"), "{trusted}");
    assert!(trusted.contains("X-Forwarded-For: 192.0.2.1\n"), "{trusted}");
    assert!(trusted.contains("Proto: gopher\n") && !trusted.contains("Proto: http"), "{trusted}");

    let text = "GET / HTTP/1.1\nHost: a\n\n";
    let via = Via { fields: Forwarded::Standard, secure: true, ..via };
    let v6 = Via { client: Some("2001:db8::1".parse().unwrap()), ..via };
    assert!(sent(text, &via).contains("Forwarded: for=192.0.2.1;proto=https;host=\"a\"\n"));
    assert!(sent(text, &v6).contains("Forwarded: for=\"[2001:db8::1]\";"));
    assert!(sent(text, &Via { client: None, ..via }).contains("Forwarded: for=unknown;"));
}

#[test]
fn what_a_connection_names_goes_and_ours_does_not_go_with_it() {
    let via = Via { fields: Forwarded::Legacy, client: "::1".parse().ok(), ..PLAIN };
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
    let head = Asked { method: Method::Head, ..GET };
    let text = "HTTP/1.1 200 OK\nContent-Length: 5\n\n";
    assert_eq!(answered(text, head, Version::Http11).0, text);
    let not_modified = "HTTP/1.1 304 Not Modified\nContent-Length: 5\n\n";
    assert_eq!(answered(not_modified, GET, Version::Http11).0, not_modified);
    // One length is told once, and chunks are told to nobody who knows none.
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
    write_answer(&answer, Method::Get, Version::Http11, &mut out);
    let (head, end) = reply(&out, GET).unwrap();
    assert_eq!((head.status, head.reason()), (503, &b"Service Unavailable"[..]));
    assert_eq!((head.body, &out[end..]), (BodyKind::Length(5), &b"full\n"[..]));
    out.clear();
    write_answer(&Answer { keep_alive: false, ..answer }, Method::Head, Version::Http11, &mut out);
    let (head, end) = reply(&out, Asked { method: Method::Head, ..GET }).unwrap();
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
