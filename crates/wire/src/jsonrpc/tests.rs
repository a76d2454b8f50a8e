//! Valid messages, and messages that are constructed to be misinterpreted.

use super::*;

/// The text at a position.
fn at<'a>(frame: &'a str, place: &Option<Range<usize>>) -> Option<&'a str> {
    place.clone().map(|place| &frame[place])
}

fn fault(frame: &str) -> Fault {
    scan(frame.as_bytes()).expect_err(frame)
}

#[test]
fn requests_notifications_and_responses_are_told_apart() {
    for (frame, kind) in [
        (r#"{"jsonrpc":"2.0","id":1,"method":"a"}"#, Kind::Request),
        (r#"{"id":null,"method":"a"}"#, Kind::Request),
        (r#"{"method":"a","params":[1,{"id":2}]}"#, Kind::Notification),
        (r#"{"id":1,"result":null}"#, Kind::Response),
        (r#"{"id":null,"error":{"code":1,"message":"","id":5}}"#, Kind::Response),
        (r#" { "result" : {} , "error" : null , "id" : "x" } "#, Kind::Response),
    ] {
        assert_eq!(scan(frame.as_bytes()).unwrap().kind(), kind, "{frame}");
    }
}

#[test]
fn an_id_is_kept_as_it_is_written() {
    for id in [
        "0",
        "-1",
        "1.5",
        "1e3",
        "123456789012345678901234567890",
        "null",
        r#""""#,
        r#""a\"b""#,
        r#""\u0069""#,
        r#""é""#,
    ] {
        let frame =
            format!("{{\"params\":{{\"x\":[{{\"id\":9}}]}}, \"id\" : {id} ,\"method\":\"m\"}}");
        let message = scan(frame.as_bytes()).unwrap();
        assert_eq!(at(&frame, &message.id), Some(id));
        let place = message.id.unwrap();
        let sent = rewrite(frame.as_bytes(), &place, b"77").concat();
        let again = scan(&sent).unwrap();
        assert_eq!(&sent[again.id.clone().unwrap()], b"77");
        let restored = rewrite(&sent, &again.id.unwrap(), id.as_bytes()).concat();
        assert_eq!(restored, frame.as_bytes());
    }
}

#[test]
fn ids_of_other_kinds_are_refused() {
    for id in ["true", "false", "[]", "{}", "[1]"] {
        assert_eq!(fault(&format!(r#"{{"method":"a","id":{id}}}"#)), Fault::Id);
    }
    let long = |length: usize| format!(r#"{{"method":"a","id":"{}"}}"#, "x".repeat(length - 2));
    assert!(scan(long(ID_MAX).as_bytes()).is_ok());
    assert_eq!(fault(&long(ID_MAX + 1)), Fault::IdLong);
}

#[test]
fn what_two_readers_could_read_differently_is_refused() {
    for frame in [
        r#"{"id":1,"method":"a","id":2}"#,
        r#"{"id":1,"method":"a","\u0069d":2}"#,
        r#"{"id":1,"method":"a","i\u0064":2}"#,
        r#"{"id":1,"method":"a","method":"b"}"#,
        r#"{"method":"a","params":{},"params":{}}"#,
        r#"{"id":1,"result":1,"result":2}"#,
        r#"{"method":"a","params":{"_meta":{},"_meta":{}}}"#,
        r#"{"method":"a","params":{"_meta":{"progressToken":1,"progressToken":2}}}"#,
        r#"{"method":"a","params":{"progressToken":1,"progressToken":2}}"#,
    ] {
        assert_eq!(fault(frame), Fault::Duplicate, "{frame}");
    }
    for frame in [
        r#"{"id":1,"method":"a","ID":2}"#,
        r#"{"Id":2,"method":"a"}"#,
        r#"{"\u0049D":2,"method":"a"}"#,
        r#"{"method":"a","Method":"b"}"#,
        r#"{"id":1,"method":"a","id\u0000x":2}"#,
        r#"{"method":"a","paramſ":{}}"#,
        r#"{"method":"a","params":{"_META":{}}}"#,
        r#"{"method":"a","params":{"_meta":{"progre\u017fsTo\u212aen":1}}}"#,
    ] {
        assert_eq!(fault(frame), Fault::Case, "{frame}");
    }
    // Names in other places are not checked.
    let frame = r#"{"method":"a","params":{"x":{"id":1,"ID":2,"id":3},"ID":1,"Token":2}}"#;
    assert!(scan(frame.as_bytes()).is_ok());
}

#[test]
fn tokens_are_found_where_they_belong() {
    let frame = r#"{"method":"m","params":{"arguments":{"progressToken":0,"_meta":{"progressToken":1}},
        "_meta":{"other":{"progressToken":2},"progressToken":"p"},"progressToken":3,"requestId":"r",
        "id":4,"token":5,"workDoneToken":"w","partialResultToken":6}}"#;
    let message = scan(frame.as_bytes()).unwrap();
    let tokens = &message.tokens;
    for (place, written) in [
        (&tokens.meta_progress, r#""p""#),
        (&tokens.progress, "3"),
        (&tokens.request_id, r#""r""#),
        (&tokens.cancelled_id, "4"),
        (&tokens.token, "5"),
        (&tokens.work_done, r#""w""#),
        (&tokens.partial_result, "6"),
    ] {
        assert_eq!(at(frame, place), Some(written));
    }
    assert!(at(frame, &message.params).unwrap().starts_with(r#"{"arguments"#));
    let frame = r#"{"method":"m","params":{"token":{},"id":[],"_meta":7}}"#;
    assert_eq!(scan(frame.as_bytes()).unwrap().tokens, Tokens::default());
}

#[test]
fn several_places_are_rewritten_at_once_and_the_message_fits_in_a_line() {
    let frame = b"{\n \"params\": {\"_meta\": {\"progressToken\": \"a\"}},\n \"id\": 1, \"method\": \"m\"\n}";
    let message = scan(frame).unwrap();
    let edits = [(message.tokens.meta_progress.unwrap(), &b"70"[..]), (message.id.unwrap(), b"71")];
    let mut out = b"kept\n".to_vec();
    splice(frame, &edits, &mut out);
    let expected = r#"{  "params": {"_meta": {"progressToken": 70}},  "id": 71, "method": "m" }"#;
    assert_eq!(String::from_utf8(out).unwrap(), format!("kept\n{expected}"));
}

#[test]
fn a_written_message_holds_nothing_that_any_reader_takes_for_a_line_end() {
    let inner = r#"{"jsonrpc":"2.0","id":0,"method":"get"}"#;
    for blank in ["\n", "\r", "\r\n", "\n\r", "\t\r\r"] {
        let frame =
            format!(r#"{{"jsonrpc":"2.0","method":"note","params":[{blank}{inner}{blank}]}}"#);
        scan(frame.as_bytes()).unwrap();
        let mut out = Vec::new();
        splice(frame.as_bytes(), &[], &mut out);
        let blanks = blank.replace(['\r', '\n'], " ");
        assert_eq!(String::from_utf8(out).unwrap(), frame.replace(blank, &blanks));
    }
    // In strings these characters are text, and their escapes have the same meaning.
    let frame =
        "{\"method\":\"m\",\"params\":{\"a\u{85}\":\"\u{2028}b\u{2029}\u{2027}\u{a0}\u{e2}\"}}";
    scan(frame.as_bytes()).unwrap();
    let mut out = Vec::new();
    splice(frame.as_bytes(), &[], &mut out);
    let expected =
        "{\"method\":\"m\",\"params\":{\"a\\u0085\":\"\\u2028b\\u2029\u{2027}\u{a0}\u{e2}\"}}";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
    // The other characters that some readers treat as line ends do not occur in JSON.
    for control in ["\u{b}", "\u{c}", "\u{1c}", "\u{1d}", "\u{1e}"] {
        for frame in
            [format!("{{\"method\":\"a{control}b\"}}"), format!("{{\"method\":{control}\"a\"}}")]
        {
            assert!(matches!(fault(&frame), Fault::Syntax(_)), "{frame:?}");
        }
    }
}

#[test]
fn batches_and_what_is_no_message_are_refused_with_their_reason() {
    for (frame, expected) in [
        (r#"[{"id":1,"method":"a"}]"#, Fault::Batch),
        ("[]", Fault::Batch),
        ("1", Fault::NotObject),
        (r#""id""#, Fault::NotObject),
        ("null", Fault::NotObject),
        ("{}", Fault::Nothing),
        (r#"{"id":1}"#, Fault::Nothing),
        (r#"{"result":1}"#, Fault::Nothing),
        (r#"{"id":1,"method":"a","result":1}"#, Fault::Method),
        (r#"{"id":1,"method":7}"#, Fault::Method),
        ("", Fault::Syntax(0)),
        ("Listening on stdio", Fault::Syntax(0)),
        (r#"{"method":"a"} x"#, Fault::Syntax(15)),
        (r#"{"method":"a"}{"method":"b"}"#, Fault::Syntax(14)),
        (r#"{"method":"a",}"#, Fault::Syntax(14)),
        (r#"{'method':"a"}"#, Fault::Syntax(1)),
        (r#"{"method" "a"}"#, Fault::Syntax(10)),
        ("{\"method\":\"a\nb\"}", Fault::Syntax(12)),
        (r#"{"method":"\x"}"#, Fault::Syntax(12)),
        (r#"{"method":"\u12g4"}"#, Fault::Syntax(15)),
        (r#"{"id":01,"method":"a"}"#, Fault::Syntax(7)),
        (r#"{"id":1.,"method":"a"}"#, Fault::Syntax(8)),
        (r#"{"id":-,"method":"a"}"#, Fault::Syntax(7)),
        (r#"{"id":1e,"method":"a"}"#, Fault::Syntax(8)),
        (r#"{"id":nul,"method":"a"}"#, Fault::Syntax(6)),
    ] {
        assert_eq!(fault(frame), expected, "{frame}");
    }
    assert_eq!(scan(b"{\"method\":\"\xff\"}"), Err(Fault::Syntax(11)));
    assert_eq!((fault("").code(), fault("[]").code()), (-32700, -32600));
}

#[test]
fn values_may_be_nested_as_deeply_as_the_limit_and_no_deeper() {
    for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
        // The message itself is one level.
        let frame = |levels: usize| {
            let inner = [open.repeat(levels - 1), "1".into(), close.repeat(levels - 1)].concat();
            format!(r#"{{"method":"m","params":{inner}}}"#)
        };
        assert!(scan(frame(DEPTH_MAX).as_bytes()).is_ok());
        assert_eq!(fault(&frame(DEPTH_MAX + 1)), Fault::Deep);
        assert_eq!(fault(&frame(100_000)), Fault::Deep);
    }
}

#[test]
fn the_longest_number_of_a_message_is_told_as_it_is_written() {
    for (params, longest) in
        [(r#"{"a":"12345"}"#, 0), ("[1,-23,4]", 3), (r#"{"a":[{"b":-1.50e+10}],"c":7}"#, 9)]
    {
        let frame = format!(r#"{{"method":"m","params":{params}}}"#);
        assert_eq!(scan(frame.as_bytes()).unwrap().measure.longest_number, longest, "{frame}");
    }
}

#[test]
fn a_method_is_known_however_it_is_written() {
    for written in ["initialize", r"initi\u0061lize", r"\u0069nitialize"] {
        let frame = format!(r#"{{"method":"{written}"}}"#);
        let message = scan(frame.as_bytes()).unwrap();
        assert!(message.is_method(frame.as_bytes(), "initialize"));
        assert!(!message.is_method(frame.as_bytes(), "initialized"));
    }
    let frame = br#"{"method":"$\/cancelRequest"}"#;
    assert!(scan(frame).unwrap().is_method(frame, "$/cancelRequest"));
}

#[test]
fn what_a_notification_is_about_is_found_by_its_method() {
    let written = |frame: &str| {
        let message = scan(frame.as_bytes()).unwrap();
        let bytes = frame.as_bytes();
        let place =
            |place: Option<&Range<usize>>| place.map(|place| frame[place.clone()].to_owned());
        (place(message.cancels(bytes)), place(message.reports(bytes)))
    };
    let two = |cancels: Option<&str>, reports: Option<&str>| {
        (cancels.map(str::to_owned), reports.map(str::to_owned))
    };
    let params = r#"{"requestId":1,"id":2,"progressToken":3,"token":4}"#;
    for (method, expected) in [
        ("notifications/cancelled", two(Some("1"), None)),
        ("$/cancelRequest", two(Some("2"), None)),
        ("notifications/progress", two(None, Some("3"))),
        ("$/progress", two(None, Some("4"))),
        ("notifications/message", two(None, None)),
    ] {
        let frame = format!(r#"{{"method":"{method}","params":{params}}}"#);
        assert_eq!(written(&frame), expected, "{method}");
        let frame = format!(r#"{{"id":9,"method":"{method}","params":{params}}}"#);
        assert_eq!(written(&frame), two(None, None), "a request is no notification");
    }
}

#[test]
fn a_cancellation_of_ours_is_one_that_we_would_know() {
    for dialect in [Dialect::Mcp, Dialect::Lsp] {
        let mut out = Vec::new();
        write_cancel(dialect, Tag::new(70).unwrap(), &mut out);
        let message = scan(&out).unwrap();
        assert_eq!(message.kind(), Kind::Notification);
        assert_eq!(&out[message.cancels(&out).unwrap().clone()], b"70");
    }
}

#[test]
fn a_tag_is_read_as_it_was_written_and_not_otherwise() {
    for number in [0, 1, 10, Tag::MAX.number()] {
        let tag = Tag::new(number).unwrap();
        assert_eq!(Tag::parse(tag.to_string().as_bytes()), Some(tag));
    }
    for written in
        ["", "01", "-1", "+1", "1.0", "1e0", r#""1""#, "null", " 1", "2147483648", "99999999999"]
    {
        assert_eq!(Tag::parse(written.as_bytes()), None, "{written}");
    }
    assert_eq!(Tag::MAX.next().number(), 0);
    assert_eq!(Tag::new(Tag::MAX.number() + 1), None);
}

mod properties {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn text() -> impl Strategy<Value = Vec<u8>> {
        let words: &[&str] = &[
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            " ",
            "\n",
            "\"id\"",
            "\"method\"",
            "\"params\"",
            "\"a\"",
            "\"_meta\"",
            "\"progressToken\"",
            "\"result\"",
            "\"\\u0069d\"",
            "\"ID\"",
            "1",
            "-0.5e1",
            "null",
            "true",
            "\\",
            "\"",
            "{\"id\":1,\"method\":\"m\"",
        ];
        let word = proptest::sample::select(words).prop_map(|word| word.as_bytes().to_vec());
        vec(prop_oneof![20 => word, 1 => vec(any::<u8>(), 0..4)], 0..24).prop_map(|it| it.concat())
    }

    fn value() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            ".{0,8}".prop_map(Into::into),
        ];
        let name =
            prop_oneof!["[a-z]{1,3}", Just("progressToken".to_owned()), Just("_meta".to_owned())];
        leaf.prop_recursive(4, 40, 5, move |inner| {
            prop_oneof![
                vec(inner.clone(), 0..5).prop_map(Into::into),
                vec((name.clone(), inner), 0..5)
                    .prop_map(|it| serde_json::Value::Object(it.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn any_bytes_are_read_as_another_reader_reads_them(bytes in text()) {
            let other = serde_json::from_slice::<serde_json::Value>(&bytes);
            match scan(&bytes) {
                Ok(message) => {
                    let other = other.expect("what is taken is JSON");
                    if let Some(place) = message.id {
                        let id: serde_json::Value = serde_json::from_slice(&bytes[place]).unwrap();
                        prop_assert_eq!(&id, &other["id"]);
                    }
                }
                Err(Fault::Syntax(place)) => {
                    prop_assert!(other.is_err());
                    prop_assert!(place <= bytes.len());
                }
                Err(_) => {}
            }
        }

        #[test]
        fn an_id_rewritten_changes_nothing_else(
            id in prop_oneof![any::<i64>().prop_map(serde_json::Value::from), ".{0,8}".prop_map(Into::into)],
            params in value(), pretty in any::<bool>(),
        ) {
            let message = serde_json::json!({ "method": "m", "id": id, "params": params });
            let written = if pretty { serde_json::to_vec_pretty(&message) } else { serde_json::to_vec(&message) };
            let frame = written.unwrap();
            let found = scan(&frame).unwrap();
            prop_assert_eq!(&frame[found.id.clone().unwrap()], serde_json::to_vec(&id).unwrap());
            let mut edits = vec![(found.id.unwrap(), &b"5"[..])];
            if let Some(place) = found.tokens.meta_progress {
                edits.push((place, b"6"));
            }
            edits.sort_by_key(|(place, _)| place.start);
            let mut out = Vec::new();
            splice(&frame, &edits, &mut out);
            prop_assert!(!out.contains(&b'\n'));
            let mut expected = message;
            expected["id"] = 5.into();
            if edits.len() > 1 {
                expected["params"]["_meta"]["progressToken"] = 6.into();
            }
            prop_assert_eq!(serde_json::from_slice::<serde_json::Value>(&out).unwrap(), expected);
        }
    }
}
