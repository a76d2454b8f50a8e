//! Cases from the standards, and limits.

use super::*;
use crate::framing::HEAD_MAX;
use crate::framing::{Width, encode};

/// The events of a whole stream.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    Frame(Vec<u8>),
    TooLong(Option<u64>),
    Skimmed(Skimmed),
    Broken(Fault),
    Unterminated(Vec<u8>),
    Partial,
}

use Seen::{Broken, Partial, TooLong, Unterminated};

fn frame(body: &[u8]) -> Seen {
    Seen::Frame(body.to_vec())
}

/// All results of a decoder for `bytes` that arrive in parts of `step` bytes.
fn seen_in(mut decoder: Decoder, frame_max: usize, bytes: &[u8], step: usize) -> Vec<Seen> {
    let (mut held, mut seen) = (Vec::new(), Vec::new());
    for part in bytes.chunks(step) {
        held.extend_from_slice(part);
        let mut from = 0;
        while let Some(piece) = decoder.next(&held, &mut from) {
            assert!(from <= held.len());
            seen.push(match piece {
                Piece::Frame(range) => {
                    assert!(range.len() <= frame_max, "no frame exceeds the limit");
                    frame(&held[range])
                }
                Piece::TooLong { announced } => TooLong(announced),
                Piece::Skimmed(skimmed) => Seen::Skimmed(skimmed),
                Piece::Broken(fault) => Broken(fault),
            });
        }
        let consumed = decoder.consume(held.len(), from);
        held.drain(..consumed);
        let recv_buffer_max = decoder.framing().recv_buffer_max(frame_max);
        assert!(
            held.len() <= recv_buffer_max,
            "{} bytes wait, of at most {recv_buffer_max}",
            held.len()
        );
    }
    seen.extend(decoder.finish(&held).map(|last| match last {
        Last::Frame(range) => frame(&held[range]),
        Last::Unterminated(range) => Unterminated(held[range].to_vec()),
        Last::Partial => Partial,
        Last::TooLong => TooLong(None),
    }));
    assert_eq!(decoder.finish(&held), None, "an end is told once");
    seen
}

/// Like `seen_in`, after checking that the size of the parts makes no difference.
fn seen(framing: Framing, frame_max: usize, bytes: &[u8]) -> Vec<Seen> {
    let all = |step| {
        seen_in(Decoder::new(framing, frame_max, OversizePolicy::Skip), frame_max, bytes, step)
    };
    let whole = all(bytes.len().max(1));
    for step in 1..bytes.len().min(70) {
        assert_eq!(all(step), whole, "in parts of {step}");
    }
    whole
}

#[test]
fn nul_ends_a_frame_and_a_carriage_return_is_a_byte_like_others() {
    assert_eq!(
        seen(Framing::Nul, 3, b"a\r\0\0abc\0abcd\0a\nb\0x"),
        [
            frame(b"a\r"),
            frame(b""),
            frame(b"abc"),
            TooLong(None),
            frame(b"a\nb"),
            Unterminated(b"x".into())
        ]
    );
}

#[test]
fn a_length_is_big_endian() {
    for (width, bytes) in [
        (Width::One, &b"\x02ab\x00\x01c\x03z"[..]),
        (Width::Two, b"\x00\x02ab\x00\x00\x00\x01c\x00\x03z"),
        (Width::Four, b"\0\0\0\x02ab\0\0\0\0\0\0\0\x01c\0\0\0\x03z"),
    ] {
        let expected = [frame(b"ab"), frame(b""), frame(b"c"), Partial];
        assert_eq!(seen(Framing::Len(width), 10, bytes), expected, "{width:?}");
    }
    let mut long = vec![1, 0];
    long.extend([b'x'; 256]);
    assert_eq!(seen(Framing::Len(Width::Two), 256, &long), [frame(&[b'x'; 256])]);
}

#[test]
fn announced_lengths_over_the_limit_are_passed_over_or_end_the_stream() {
    let cases = [
        (Framing::Len(Width::One), &b"\x03abc\x04abcd\x01x"[..]),
        (Framing::Len(Width::Two), b"\0\x03abc\0\x04abcd\0\x01x"),
        (Framing::Len(Width::Four), b"\0\0\0\x03abc\0\0\0\x04abcd\0\0\0\x01x"),
        (Framing::Netstring, b"3:abc,4:abcd,1:x,"),
        (
            Framing::ContentLength,
            b"Content-Length: 3\r\n\r\nabcContent-Length: 4\r\n\r\nabcdContent-Length: 1\r\n\r\nx",
        ),
    ];
    for (framing, bytes) in cases {
        assert_eq!(seen(framing, 3, bytes), [frame(b"abc"), TooLong(Some(4)), frame(b"x")]);
        let strict = Decoder::new(framing, 3, OversizePolicy::End);
        assert_eq!(seen_in(strict, 3, bytes, 5), [frame(b"abc"), Broken(Fault::TooLong)]);
    }
}

#[test]
fn a_length_over_the_limit_is_told_before_its_body_comes() {
    for (framing, head) in [
        (Framing::Len(Width::One), &b"\x04"[..]),
        (Framing::Len(Width::Four), b"\0\0\0\x04"),
        (Framing::Netstring, b"4:"),
        // For a message, the decoder waits for the bytes that may contain its id.
        (Framing::ContentLength, b"Content-Length: 4\r\n\r\nxxx"),
    ] {
        let mut decoder = Decoder::new(framing, 3, OversizePolicy::Skip);
        let mut from = 0;
        let told = decoder.next(head, &mut from);
        let behind = if framing == Framing::ContentLength { 3 } else { 0 };
        let expected = (Some(Piece::TooLong { announced: Some(4) }), head.len() - behind);
        assert_eq!((told, from), expected);
        assert_eq!(decoder.next(head, &mut from), None);
    }
}

#[test]
fn lines_over_the_limit_end_the_stream_where_that_is_asked_for() {
    for framing in [Framing::Lines, Framing::JsonRpc] {
        let strict = || Decoder::new(framing, 3, OversizePolicy::End);
        assert_eq!(
            seen_in(strict(), 3, b"abc\nabcd\nx\n", 2),
            [frame(b"abc"), Broken(Fault::TooLong)]
        );
    }
}

#[test]
fn text_in_place_of_a_length_is_said() {
    let text = b"Traceback (most recent call last):\n";
    assert_eq!(seen(Framing::Len(Width::Four), 1 << 20, text), [Broken(Fault::Text)]);
    // A length of 1,701,603,681 bytes that is not text.
    let length = [b"\x00\x00\x00\x01y".as_slice(), &0x656c_6f80_u32.to_be_bytes()].concat();
    assert_eq!(
        seen(Framing::Len(Width::Four), 1 << 20, &length),
        [frame(b"y"), TooLong(Some(0x656c_6f80))]
    );
    // Two bytes of text are a valid length. `is_text` checks the incomplete frame.
    let mut decoder = Decoder::new(Framing::Len(Width::Two), 65_535, OversizePolicy::Skip);
    assert_eq!(decoder.next(text, &mut 0), None);
    assert!(decoder.is_text(text));
    assert!(!decoder.is_text(b"\x00\x05hel"));
    assert!(!decoder.is_text(b""));
    assert!(!Decoder::new(Framing::Lines, 10, OversizePolicy::Skip).is_text(text));
}

#[test]
fn netstrings_are_read_by_the_letter() {
    assert_eq!(
        seen(Framing::Netstring, 20, b"12:hello world!,0:,"),
        [frame(b"hello world!"), frame(b"")]
    );
    for bytes in [
        &b"00:,"[..],
        b"03:abc,",
        b":abc,",
        b"-1:a,",
        b"+1:a,",
        b" 1:a,",
        b"1 :a,",
        b"a",
        b"99999999999999999999:",
    ] {
        assert_eq!(seen(Framing::Netstring, 20, bytes), [Broken(Fault::NetstringLength)]);
    }
    for bytes in [&b"3:abc;1:x,"[..], b"3:abcd,", b"3:ab,1:x,", b"21:aaaaaaaaaaaaaaaaaaaaa;"] {
        assert_eq!(
            seen(Framing::Netstring, 20, bytes).last(),
            Some(&Broken(Fault::NetstringComma))
        );
    }
    for bytes in [&b"3"[..], b"3:", b"3:abc"] {
        assert_eq!(seen(Framing::Netstring, 20, bytes), [Partial]);
    }
    assert_eq!(
        seen(Framing::Netstring, 20, b"9999999999999999999:x"),
        [TooLong(Some(9_999_999_999_999_999_999))]
    );
}

#[test]
fn heads_are_read_as_the_language_server_protocol_says() {
    let good: &[&[u8]] = &[
        b"Content-Length: 2\r\n\r\n{}",
        b"Content-Length: 2\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n{}",
        b"Content-Type: application/vscode-jsonrpc; charset=utf8\r\nContent-Length: 2\r\n\r\n{}",
        b"X-Other: a:b\r\ncontent-LENGTH:2 \r\nX-Empty:\r\n\r\n{}",
        b"Content-Length:\t002\r\n\r\n{}",
    ];
    for bytes in good {
        assert_eq!(seen(Framing::ContentLength, 10, bytes), [frame(b"{}")]);
    }
    let bad: &[(&[u8], Fault)] = &[
        (b"Content-Length: 2\n\n{}", Fault::LineFeed),
        (b"Content-Length: 2\r\n\n{}", Fault::LineFeed),
        (b"\r\n{}", Fault::NoLength),
        (b"Content-Type: x\r\n\r\n{}", Fault::NoLength),
        (b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", Fault::Length),
        (b"Content-Length: 2, 2\r\n\r\n{}", Fault::Length),
        (b"Content-Length: -2\r\n\r\n{}", Fault::Length),
        (b"Content-Length: +2\r\n\r\n{}", Fault::Length),
        (b"Content-Length: 0x2\r\n\r\n{}", Fault::Length),
        (b"Content-Length:\r\n\r\n{}", Fault::Length),
        (b"Content-Length: 18446744073709551616\r\n\r\n", Fault::Length),
        (b"Content-Length : 2\r\n\r\n{}", Fault::Header),
        (b"Content-Length: 1\r\n Content-Length: 2\r\n\r\n{}", Fault::Header),
        (b": 2\r\n\r\n{}", Fault::Header),
        (b"server is listening\r\n", Fault::Header),
    ];
    for (bytes, fault) in bad {
        assert_eq!(seen(Framing::ContentLength, 10, bytes), [Broken(*fault)]);
    }
    assert_eq!(seen(Framing::ContentLength, 10, b"Content-Length: 2\r\n\r\n{"), [Partial]);
    assert_eq!(seen(Framing::ContentLength, 10, b"Content-Le"), [Partial]);
}

#[test]
fn a_head_may_be_as_long_as_its_limit_and_no_longer() {
    let head = |length: usize| {
        let rest = "X: \r\nContent-Length: 0\r\n\r\n".len();
        format!("X: {}\r\nContent-Length: 0\r\n\r\n", "x".repeat(length - rest)).into_bytes()
    };
    let all = |bytes: &[u8], step| {
        let decoder = Decoder::new(Framing::ContentLength, 10, OversizePolicy::Skip);
        seen_in(decoder, 10, bytes, step)
    };
    for step in [1, 1000, 5000] {
        assert_eq!(all(&head(HEAD_MAX), step), [frame(b"")]);
        assert_eq!(all(&head(HEAD_MAX + 1), step), [Broken(Fault::Head)]);
        assert_eq!(all(&[b'x'; 10_000], step), [Broken(Fault::Head)]);
    }
}

#[test]
fn blank_lines_between_json_messages_mean_nothing() {
    assert_eq!(
        seen(Framing::JsonRpc, 10, b"{}\n\n \t\r\n{\"a\":1}\r\nx\n  "),
        [frame(b"{}"), frame(b"{\"a\":1}"), frame(b"x")]
    );
    assert_eq!(seen(Framing::JsonRpc, 10, b"{}"), [Unterminated(b"{}".into())]);
}

#[test]
fn the_end_of_the_stream_is_the_end_of_a_oneshot() {
    assert_eq!(seen(Framing::Oneshot, 5, b""), [frame(b"")]);
    assert_eq!(seen(Framing::Oneshot, 5, b"a\nb\0c"), [frame(b"a\nb\0c")]);
    assert_eq!(seen(Framing::Oneshot, 5, b"a\nb\0cd"), [TooLong(None)]);
}

#[test]
fn raw_bytes_come_in_chunks_of_the_limit_at_most() {
    let decoder = Decoder::new(Framing::Raw, 4, OversizePolicy::Skip);
    assert_eq!(
        seen_in(decoder, 4, b"abcdefghij", 10),
        [frame(b"abcd"), frame(b"efgh"), frame(b"ij")]
    );
}

#[test]
fn an_endless_frame_is_reported_once_and_holds_no_memory() {
    for &framing in Framing::ALL {
        let head: &[u8] = match framing {
            Framing::Len(Width::One) => b"\xff",
            Framing::Len(Width::Two) => b"\xff\xff",
            Framing::Len(Width::Four) => b"\xff\xff\xff\xff",
            Framing::Netstring => b"4000000000000:",
            Framing::ContentLength => b"Content-Length: 4000000000000\r\n\r\n",
            Framing::Raw => continue,
            _ => b"",
        };
        let mut decoder = Decoder::new(framing, 100, OversizePolicy::Skip);
        let (mut held, mut reports) = (head.to_vec(), 0);
        let rounds = if framing == Framing::Len(Width::One) { 2 } else { 600 };
        for _ in 0..rounds {
            held.extend_from_slice(&[b'x'; 100]);
            let mut from = 0;
            while let Some(piece) = decoder.next(&held, &mut from) {
                assert!(matches!(piece, Piece::TooLong { .. }), "{piece:?}");
                reports += 1;
            }
            held.drain(..decoder.consume(held.len(), from));
            assert!(held.len() <= framing.recv_buffer_max(100));
        }
        assert_eq!((reports, held.len()), (1, 0), "{framing:?}");
        assert!(decoder.is_begun(0));
        assert_eq!(decoder.finish(&held), None, "it was reported");
    }
}

#[test]
fn what_was_begun_is_known() {
    for (framing, begun) in [
        (Framing::Nul, &b"a"[..]),
        (Framing::Len(Width::Two), b"\0"),
        (Framing::Netstring, b"1"),
        (Framing::ContentLength, b"C"),
        (Framing::Oneshot, b"a"),
    ] {
        let mut decoder = Decoder::new(framing, 10, OversizePolicy::Skip);
        assert!(!decoder.is_begun(0));
        assert_eq!(decoder.next(begun, &mut 0), None);
        assert!(decoder.is_begun(begun.len()));
    }
}

#[test]
fn a_caller_that_stops_after_a_piece_loses_nothing() {
    for &framing in Framing::ALL {
        if matches!(framing, Framing::Raw | Framing::Oneshot) {
            continue;
        }
        let mut held = Vec::new();
        for body in [&b"{1}"[..], b"{over the limit}", b"{2}"] {
            encode(framing, body, &mut held).unwrap();
        }
        let mut decoder = Decoder::new(framing, 5, OversizePolicy::Skip);
        let mut seen = Vec::new();
        loop {
            let mut from = 0;
            let Some(piece) = decoder.next(&held, &mut from) else { break };
            if let Piece::Frame(range) = piece {
                seen.push(held[range].to_vec());
            }
            held.drain(..from);
        }
        assert_eq!(seen, [b"{1}", b"{2}"], "{framing:?}");
    }
}

mod properties {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn framings() -> impl Strategy<Value = Framing> {
        proptest::sample::select(Framing::ALL)
    }

    /// Bytes that often have a meaning in a framing.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let words: &[&[u8]] = &[
            b"\n",
            b"\r\n",
            b"\r",
            b"\0",
            b"\0\0\0\x05",
            b"\0\x04",
            b"\x03",
            b"5:hello,",
            b"2:ab",
            b"0:,",
            b",",
            b"9:",
            b"Content-Length: 4\r\n",
            b"\r\n\r\n",
            b"content-length:40\r\n\r\n",
            b"{}",
            b"{\"id\":1}",
            b"hello",
        ];
        let word = proptest::sample::select(words).prop_map(<[u8]>::to_vec);
        vec(prop_oneof![4 => word, 1 => vec(any::<u8>(), 0..6)], 0..20).prop_map(|it| it.concat())
    }

    /// Raw has no frames, so only the concatenated bytes are compared.
    fn joined(framing: Framing, seen: Vec<Seen>) -> Vec<Seen> {
        if framing != Framing::Raw {
            return seen;
        }
        let bytes = seen.into_iter().flat_map(|seen| match seen {
            Seen::Frame(bytes) => bytes,
            other => panic!("raw tells of chunks only: {other:?}"),
        });
        vec![Seen::Frame(bytes.collect())]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn any_bytes_in_any_parts_give_the_same_frames(
            framing in framings(), bytes in bytes(), step in 1_usize..40, frame_max in 0_usize..20,
            over in proptest::sample::select(&[OversizePolicy::Skip, OversizePolicy::End][..]),
        ) {
            let max = if framing == Framing::Raw { frame_max.max(1) } else { frame_max };
            let all = |step| {
                let decoder = Decoder::new(framing, frame_max, over);
                joined(framing, seen_in(decoder, max, &bytes, step))
            };
            prop_assert_eq!(all(step), all(bytes.len().max(1)));
        }

        #[test]
        fn what_was_encoded_is_decoded(
            framing in framings(), bodies in vec(bytes(), 1..5), step in 1_usize..40,
        ) {
            let (mut stream, mut expected) = (Vec::new(), Vec::new());
            for mut body in bodies {
                let length = body.trim_ascii_end().len();
                match framing {
                    // Bytes that would be treated as a line end or be ignored.
                    Framing::Lines => while body.ends_with(b"\r") { body.pop(); },
                    Framing::JsonRpc => body.truncate(length),
                    _ => {}
                }
                let before = stream.len();
                if encode(framing, &body, &mut stream).is_err() {
                    prop_assert_eq!(stream.len(), before);
                } else if framing != Framing::JsonRpc || !body.trim_ascii().is_empty() {
                    expected.push(frame(&body));
                }
            }
            if framing == Framing::Oneshot || framing == Framing::Raw {
                expected = vec![frame(&stream)];
            }
            let decoder = Decoder::new(framing, 1000, OversizePolicy::Skip);
            prop_assert_eq!(joined(framing, seen_in(decoder, 1000, &stream, step)), expected);
        }
    }
}

#[test]
fn a_message_that_is_too_long_is_told_with_its_beginning_however_it_arrives() {
    let long = format!("{{\"id\":7,\"method\":\"m\",\"params\":\"{}\"}}", "x".repeat(100));
    let mut framed = Vec::new();
    for framing in [Framing::JsonRpc, Framing::ContentLength] {
        for (before, over) in [
            ("", OversizePolicy::Skip),
            ("", OversizePolicy::End),
            (&*long, OversizePolicy::Skip),
            ("[1]", OversizePolicy::End),
        ] {
            framed.clear();
            for message in [before, &long, "[2]"].into_iter().filter(|it| !it.is_empty()) {
                encode(framing, message.as_bytes(), &mut framed).unwrap();
            }
            for step in 1..framed.len() {
                let mut decoder = Decoder::new(framing, 40, over);
                let (mut held, mut starts) = (Vec::new(), Vec::new());
                for part in framed.chunks(step) {
                    held.extend_from_slice(part);
                    let mut from = 0;
                    while let Some(piece) = decoder.next(&held, &mut from) {
                        if matches!(piece, Piece::TooLong { .. } | Piece::Broken(Fault::TooLong)) {
                            starts.push(decoder.start_of_too_long(&held)[..40].to_vec());
                        }
                    }
                    let consumed = decoder.consume(held.len(), from);
                    held.drain(..consumed);
                    assert!(held.len() <= framing.recv_buffer_max(40), "in parts of {step}");
                }
                let expected = if before == long { 2 } else { 1 };
                assert_eq!(
                    starts,
                    vec![long.as_bytes()[..40].to_vec(); expected],
                    "in parts of {step}"
                );
            }
        }
    }
}

#[test]
fn what_a_message_is_that_is_too_long_is_told_however_it_arrives() {
    let (long, nested) = ("x".repeat(100), r#"[{"id":8}],"#.repeat(9));
    let messages = [
        (format!(r#"{{"result":"{long}","jsonrpc":"2.0","id":7}}"#), Skimmed::Reply(b"7".into())),
        (format!(r#"{{"id":"a","result":"{long}"}}"#), Skimmed::Reply(br#""a""#.into())),
        (format!(r#"{{"result":[{nested}{{"id":7}}]}}"#), Skimmed::Unknown),
        (format!(r#"{{"method":"{long}"}}"#), Skimmed::Notification),
        (long, Skimmed::Unknown),
    ];
    for framing in [Framing::JsonRpc, Framing::ContentLength] {
        let (mut framed, mut expected) = (Vec::new(), Vec::new());
        for (message, skimmed) in &messages {
            let announced = framing == Framing::ContentLength;
            let length = announced.then_some(message.len() as u64);
            expected.extend([TooLong(length), Seen::Skimmed(skimmed.clone()), frame(b"[1]")]);
            for message in [&**message, "[1]"] {
                encode(framing, message.as_bytes(), &mut framed).unwrap();
            }
        }
        for step in 1..framed.len() {
            let decoder = Decoder::new(framing, 40, OversizePolicy::Skip).skimming();
            assert_eq!(seen_in(decoder, 40, &framed, step), expected, "in parts of {step}");
        }
    }
}
