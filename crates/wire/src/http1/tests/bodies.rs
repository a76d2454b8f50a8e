//! Rules for bodies.

use super::*;

const HEAD: &str = "POST / HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\n";

/// The forwarded bytes of a body and the number of data bytes, for any size of the parts.
fn read(kind: BodyKind, bytes: &[u8], step: usize) -> Result<(Vec<u8>, usize), Refusal> {
    let mut body = Body::new(kind, &Limits::REQUEST);
    let (mut passed, mut from, mut shown) = (Vec::new(), 0, 0);
    while !body.is_done() {
        let run = body.run(&bytes[from..shown], &Limits::REQUEST)?;
        passed.extend_from_slice(&bytes[from..from + run.pass]);
        from += run.pass + run.drop;
        if run == Run::default() {
            if shown == bytes.len() {
                return body.end().map(|()| (passed, from));
            }
            shown = (shown + step).min(bytes.len());
        }
    }
    Ok((passed, from))
}

fn data(kind: BodyKind, bytes: &[u8], step: usize) -> Vec<u8> {
    let mut body = Body::new(kind, &Limits::REQUEST);
    let (mut data, mut from, mut shown) = (Vec::new(), 0, 0);
    while !body.is_done() && from < bytes.len() {
        match body.next(&bytes[from..shown], &Limits::REQUEST).unwrap() {
            None => shown = (shown + step).min(bytes.len()),
            Some(Span { kind, length }) => {
                if kind == Kind::Data {
                    data.extend_from_slice(&bytes[from..from + length]);
                }
                from += length;
            }
        }
    }
    data
}

#[test]
fn broken_chunks_are_refused_with_their_reason() {
    for (expected, text) in [
        (Refusal::ChunkSize, "\n"),
        (Refusal::ChunkSize, "+5\nabcde\n"),
        (Refusal::ChunkSize, "0x5\nabcde\n"),
        (Refusal::ChunkSize, " 5\nabcde\n"),
        (Refusal::ChunkSize, "5 5\nabcde\n"),
        (Refusal::ChunkSize, "5 \u{b}\nabcde\n"),
        (Refusal::ChunkSize, " \n"),
        (Refusal::ChunkSize, "00000000000000000\n\n"),
        (Refusal::ChunkSize, "5_0\n"),
        (Refusal::ChunkSize, ";a\n"),
        (Refusal::ChunkSize, "g\n"),
        (Refusal::ChunkSize, "00000000000000005\nabcde\n"),
        (Refusal::ChunkSize, "10000000000000000\n"),
        (Refusal::ChunkEnd, "5\nabcdef\n"),
        (Refusal::ChunkEnd, "5\nabcde5\n"),
        (Refusal::ChunkExtension, "5;a\u{0}\nabcde\n"),
        (Refusal::BodyTooLong, "fffffffffffffff\n"),
        (Refusal::BodyTooLong, "100001\n"),
        (Refusal::Trailers, "0\nA b: c\n\n"),
        (Refusal::Trailers, "0\nA: b\u{0}\n\n"),
        (Refusal::Trailers, "0\n: b\n\n"),
        (Refusal::Trailers, "0\n A: b\n\n"),
        (Refusal::Trailers, "0\nA\n\n"),
        (Refusal::Truncated, "5\nabcde\n0\nA: b\n"),
    ] {
        assert_eq!(refused(&wire(&format!("{HEAD}{text}"))), expected, "{text}");
        assert_eq!(read(BodyKind::Chunked, &wire(text), 1).unwrap_err(), expected, "{text}");
    }
    for (expected, text) in [
        (Refusal::ChunkSize, "5\nabcde\r\n"),
        (Refusal::ChunkEnd, "5\rabcde\r\n"),
        (Refusal::ChunkEnd, "5\r\nabcde\n"),
        (Refusal::ChunkExtension, "5;a\nabcde\r\n"),
        (Refusal::LineFeed, "0\r\nA: b\n\r\n"),
        (Refusal::ChunkEnd, "5;a\rb\r\nabcde\r\n"),
    ] {
        assert_eq!(read(BodyKind::Chunked, text.as_bytes(), 99).unwrap_err(), expected, "{text}");
    }
}

#[test]
fn extensions_and_trailers_have_limits() {
    let long = wire(&format!("5;{}\nabcde\n0\n\n", "x".repeat(256)));
    assert_eq!(read(BodyKind::Chunked, &long, 7).unwrap_err(), Refusal::ChunkExtension);
    let blanks = wire(&format!("5{}\nabcde\n0\n\n", " ".repeat(257)));
    assert_eq!(read(BodyKind::Chunked, &blanks, 7).unwrap_err(), Refusal::ChunkExtension);
    let many = wire(&format!("{}0\n\n", "1;xxxxxxxxxxxxxxxx\na\n".repeat(300)));
    assert_eq!(read(BodyKind::Chunked, &many, 7).unwrap_err(), Refusal::ChunkExtension);
    let trailers = wire(&format!("0\n{}\n", "A: b\n".repeat(1000)));
    assert_eq!(read(BodyKind::Chunked, &trailers, 7).unwrap_err(), Refusal::Trailers);
    let endless = format!("0\r\nA: {}", "b".repeat(5000));
    assert_eq!(read(BodyKind::Chunked, endless.as_bytes(), 64).unwrap_err(), Refusal::Trailers);
}

#[test]
fn a_chunk_size_is_forwarded_in_one_spelling() {
    let text = wire("005 \nabcde\n0a\t ; x \n0123456789\n000 ;y\n\nGET");
    let expected = wire("5\nabcde\na\n0123456789\n0\n\n");
    for step in [1, 2, 3, 5, 1000] {
        let (passed, from) = read(BodyKind::Chunked, &text, step).unwrap();
        assert_eq!(passed, expected, "{step}");
        assert_eq!(&text[from..], b"GET");
        assert_eq!(data(BodyKind::Chunked, &text, step), b"abcde0123456789");
    }
}

#[test]
fn extensions_and_unknown_trailers_do_not_go_on() {
    let text = wire(
        "5;a=\"b\";c\nabcde\n00A\n0123456789\n0;last\nX-Evil: 1\nServer-Timing: a\n\
         Content-Length: 5\n\nGET",
    );
    let expected = wire("5\nabcde\nA\n0123456789\n0\nServer-Timing: a\n\n");
    for step in [1, 2, 3, 5, 1000] {
        let (passed, from) = read(BodyKind::Chunked, &text, step).unwrap();
        assert_eq!(passed, expected, "{step}");
        assert_eq!(&text[from..], b"GET");
        assert_eq!(data(BodyKind::Chunked, &text, step), b"abcde0123456789");
    }
}

#[test]
fn a_body_ends_where_its_framing_says() {
    for step in [1, 4, 100] {
        assert_eq!(read(BodyKind::Length(5), b"abcdeGET", step), Ok((b"abcde".to_vec(), 5)));
        assert_eq!(read(BodyKind::None, b"GET", step), Ok((vec![], 0)));
        assert_eq!(read(BodyKind::UntilEnd, b"abcde", step), Ok((b"abcde".to_vec(), 5)));
    }
    assert_eq!(read(BodyKind::UntilEnd, &[0; 1 << 20], 4096).unwrap().1, 1 << 20);
    let over = read(BodyKind::UntilEnd, &vec![0; (1 << 20) + 1], 4096);
    assert_eq!(over, Err(Refusal::BodyTooLong));
}

#[test]
fn what_lies_ahead_can_go_on_unseen() {
    let limits = Limits::REQUEST;
    let mut body = Body::new(BodyKind::Length(100), &limits);
    assert_eq!(body.ahead(), 100);
    body.passed(99);
    assert_eq!(body.run(b"abc", &limits), Ok(Run { pass: 1, data: 1, drop: 0 }));
    assert!(body.is_done());

    let mut body = Body::new(BodyKind::Chunked, &limits);
    assert_eq!(body.ahead(), 0);
    assert_eq!(body.run(b"10\r\nab", &limits), Ok(Run { pass: 6, data: 2, drop: 0 }));
    assert_eq!(body.ahead(), 14);
    body.passed(14);
    assert_eq!(body.ahead(), 0);
    assert_eq!(body.run(b"\r\n0\r\n\r\nGET", &limits), Ok(Run { pass: 7, data: 0, drop: 0 }));
    assert!(body.is_done());

    let mut body = Body::new(BodyKind::UntilEnd, &Limits::REPLY);
    body.passed(1 << 40);
    assert!(!body.is_done());
    assert_eq!(body.end(), Ok(()));
}
