//! The result does not depend on how bytes are split, and no input causes a panic.

use super::*;
use proptest::prelude::*;

/// Reads all requests in `bytes`, in parts of the given lengths, in the same way as a session. Returns the forwarded
/// bytes and the reason for the end.
fn session(bytes: &[u8], cuts: &[usize]) -> (Vec<u8>, Option<Refusal>) {
    let limits = Limits::REQUEST;
    let (mut out, mut scan, mut body) = (Vec::new(), HeadScan::default(), Body::none());
    let (mut from, mut shown, mut head) = (0, 0, RequestHead::default());
    let mut cuts = cuts.iter().cycle();
    let via = ForwardedFor {
        fields: Forwarded::Nothing,
        trusted: false,
        client: None,
        secure: false,
        via: b"",
    };
    loop {
        let rest = &bytes[from..shown];
        let result = if body.is_done() {
            scan.next(rest, &limits).and_then(|found| {
                let Some(found) = found else { return Ok(false) };
                head.read(&rest[found.head.clone()], &found, &limits)?;
                from += found.head.end;
                body = Body::new(head.body, &limits);
                head.prepare(&via);
                head.encode(None, b"x", &via, &mut out);
                Ok(true)
            })
        } else {
            body.run(rest, &limits).map(|run| {
                out.extend_from_slice(&rest[..run.pass]);
                from += run.pass + run.drop;
                run != Run::default()
            })
        };
        match result {
            Err(refusal) => return (out, Some(refusal)),
            Ok(true) => {}
            Ok(false) if shown == bytes.len() => return (out, None),
            Ok(false) => {
                shown = (shown + cuts.next().copied().unwrap_or(1).max(1)).min(bytes.len());
            }
        }
    }
}

/// Valid and invalid pieces of requests.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let words: Vec<&[u8]> = vec![
        b"GET / HTTP/1.1\r\n",
        b"POST /a?b HTTP/1.1\r\n",
        b"HEAD http://a/ HTTP/1.0\r\n",
        b"Host: a\r\n",
        b"Content-Length: 3\r\n",
        b"Content-Length: 03\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"transfer-encoding:CHUNKED \r\n",
        b"Connection: close, b\r\n",
        b"b: 1\r\n",
        b"\r\n",
        b"\r\n",
        b"\r\n",
        b"abc",
        b"3\r\n",
        b"3;x\r\nabc\r\n",
        b"003 \t; x\r\nabc\r\n",
        b"00",
        b"Content-Length:\t3 \r\n",
        b"GET http://a:80/ HTTP/1.7\r\n",
        b"Connection: upgrade\r\nUpgrade: h2c, x\r\n",
        b"0\r\n",
        b"0;y=z\r\nServer-Timing: a\r\nB: c\r\n\r\n",
        b"\n",
        b"\r",
        b" ",
        b"\0",
        b";",
        b"X: \xff\r\n",
        b"\t: \r\n",
    ];
    proptest::collection::vec(proptest::sample::select(words), 0..24)
        .prop_map(|words| words.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_cut_changes_nothing(bytes in pieces(), cuts in proptest::collection::vec(1_usize..40, 1..8)) {
        let whole = session(&bytes, &[usize::MAX / 2]);
        let cut = session(&bytes, &cuts);
        prop_assert_eq!(&whole.1, &cut.1);
        if whole.1.is_none() {
            prop_assert_eq!(&whole.0, &cut.0);
        }
    }

    #[test]
    fn what_goes_on_is_read_again_and_goes_on_alike(bytes in pieces()) {
        let (first, _) = session(&bytes, &[usize::MAX / 2]);
        let (second, refusal) = session(&first, &[usize::MAX / 2]);
        prop_assert_eq!(refusal, None);
        // A zero at the end may be the first digit of a size, and waits for the next byte.
        let waits = first.strip_suffix(b"0").filter(|waits| waits.len() == second.len());
        prop_assert_eq!(waits.unwrap_or(&first), &second[..]);
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        session(&bytes, &[7]);
        let _ = reply(&[&bytes[..], b"\r\n\r\n"].concat(), GET);
    }
}
