use proptest::prelude::*;

use super::*;

fn shown(text: &str) -> String {
    let mut fields = Fields::new();
    match decode(&mut fields, text.as_bytes()) {
        Ok(()) => format!("{fields:?}"),
        Err(error) => {
            assert!(fields.is_empty(), "an error adds nothing");
            error.to_string()
        }
    }
}

#[test]
fn each_kind_of_value_is_kept_apart() {
    assert_eq!(
        shown(r#" {"s":"x","e":"","n":null,"t":true,"f":false,"i":-12,"r":1.50e3} "#),
        r#"[s="x", e="", n=NULL, t=true, f=false, i=-12, r=1.50e3]"#
    );
    assert_eq!(shown("{}"), "[]");
}

#[test]
fn numbers_keep_every_digit() {
    assert_eq!(
        shown(r#"{"a":123456789012345678901234567890,"b":0.10000000000000000001}"#),
        "[a=123456789012345678901234567890, b=0.10000000000000000001]"
    );
}

#[test]
fn strings_and_names_are_unescaped() {
    assert_eq!(
        shown(r#"{"\u0061\n":"\"\\\u0000\ud83d\ude00"}"#),
        r#"[a\n="\"\\\x00\xf0\x9f\x98\x80"]"#
    );
}

#[test]
fn nested_values_are_their_text() {
    assert_eq!(shown(r#"{"a":[1, {"b":2}],"c":{}}"#), r#"[a=[1, {\"b\":2}], c={}]"#);
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(shown(&deep).starts_with("[a=[["), "depth costs no stack");
}

#[test]
fn json_is_written_as_it_stands_on_one_line() {
    let mut fields = Fields::new();
    decode(&mut fields, b"{\"a\":[1,\r\n\"x\"],\"b\":true,\"c\":\"[\"}").unwrap();
    let mut out = Vec::new();
    encode(&fields, &mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), r#"{"a":[1,  "x"],"b":true,"c":"["}"#);
    let mut fields = Fields::new();
    fields.append("a", Value::Json(b"[1")).unwrap();
    let unfit = encode(&fields, &mut Vec::new()).unwrap_err();
    assert_eq!(unfit, EncodeError { index: 0, reason: EncodeReason::Value });
}

#[test]
fn errors_name_the_reason_and_the_byte() {
    for (text, expected) in [
        ("", "the text ends before the end of a value at byte 1"),
        ("hello", "expected a JSON value at byte 1"),
        ("nothing", "expected a JSON value at byte 2"),
        ("[1]", "expected one JSON object, not an array at byte 1"),
        ("17", "expected one JSON object, not integer `17` at byte 2"),
        ("\"{}\"", "expected one JSON object, not string \"{}\" at byte 4"),
        (r#"{"a":1"#, "the text ends before the end of an object at byte 7"),
        (r#"{"a":1} x"#, "trailing characters at byte 9"),
        (r#"{"a":1}{"a":2}"#, "trailing characters at byte 8"),
        (r#"{"a":}"#, "expected a JSON value at byte 6"),
        (r#"{"a":1,}"#, "trailing comma at byte 8"),
        (r#"{a:1}"#, "expected a name in double quotes at byte 2"),
        (r#"{"a":01}"#, "invalid number at byte 7"),
        (r#"{"a":"\ud800"}"#, "unexpected end of hex escape at byte 13"),
        (
            "{\"a\":\"x\ty\"}",
            "control character (\\u0000-\\u001F) found while parsing a string at byte 7",
        ),
        ("{\n\"a\":1,\n?}", "expected a name in double quotes at byte 10"),
        (r#"{"a":1,"b":2,"a":3}"#, "duplicate name `a` at byte 18"),
        (r#"{"a":1,"\u0061":3}"#, "duplicate name `a` at byte 17"),
    ] {
        assert_eq!(shown(text), expected, "{text}");
    }
}

#[test]
fn what_is_not_utf8_is_refused_where_it_begins() {
    let mut fields = Fields::new();
    let error = decode(&mut fields, b"{\"a\":\"x\xff\"}").unwrap_err();
    assert_eq!(error, JsonError { reason: JsonReason::Utf8, byte: 8 });
}

#[test]
fn names_of_earlier_records_are_no_duplicates_and_survive_an_error() {
    let mut fields = Fields::new();
    decode(&mut fields, br#"{"a":1}"#).unwrap();
    decode(&mut fields, br#"{"a":2}"#).unwrap();
    decode(&mut fields, br#"{"b":3,"b":4}"#).unwrap_err();
    assert_eq!(format!("{fields:?}"), "[a=1, a=2]");
}

#[test]
fn an_object_with_too_many_members_is_refused() {
    let object = |count: usize| {
        let members: Vec<_> = (0..count).map(|i| format!("\"{i}\":{i}")).collect();
        format!("{{{}}}", members.join(","))
    };
    let mut fields = Fields::new();
    decode(&mut fields, object(MEMBERS_MAX).as_bytes()).unwrap();
    assert_eq!(fields.len(), MEMBERS_MAX);
    let error = decode(&mut fields, object(MEMBERS_MAX + 1).as_bytes()).unwrap_err();
    assert_eq!(error.reason, JsonReason::Members);
}

/// Bytes that are similar enough to JSON to reach every branch.
fn nearly_json() -> impl Strategy<Value = Vec<u8>> {
    const PIECES: [&[u8]; 20] = [
        b"{",
        b"}",
        b"[",
        b"]",
        b"\"",
        b":",
        b",",
        b"\"a\":",
        b"\"b\":1,",
        b"\\u",
        b"\\ud83d",
        b"\\",
        b"1e9",
        b"-",
        b"null",
        b"tru",
        b" ",
        b"\n",
        b"\xff",
        b"\0",
    ];
    let piece = proptest::sample::select(&PIECES[..]);
    proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn nothing_panics_and_errors_lie_within(
        mut text in prop_oneof![nearly_json(), proptest::collection::vec(any::<u8>(), 0..64)],
        wrap in any::<bool>(),
    ) {
        if wrap {
            text = [b"{\"k\":\"", &text[..], b"\"}"].concat();
        }
        let mut fields = Fields::new();
        let read = decode(&mut fields, &text);
        let model = serde_json::from_slice::<serde_json::Value>(&text);
        match read {
            Ok(()) => prop_assert!(fields.iter().all(|field| field.name.len() <= text.len())),
            Err(error) => {
                prop_assert!(fields.is_empty());
                prop_assert!((1..=text.len() + 1).contains(&error.byte), "{:?}", error);
                let ours = matches!(error.reason, JsonReason::Duplicate(_) | JsonReason::Members);
                prop_assert!(ours || !matches!(model, Ok(serde_json::Value::Object(_))), "{}", error);
            }
        }
    }

    #[test]
    fn what_serde_json_writes_is_read_back(
        members in proptest::collection::btree_map(any::<String>(), proptest::option::of(any::<String>()), 0..8),
    ) {
        let object: serde_json::Map<_, _> =
            members.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect();
        let text = serde_json::Value::Object(object).to_string();
        let mut fields = Fields::new();
        decode(&mut fields, text.as_bytes()).unwrap();
        prop_assert_eq!(fields.len(), members.len());
        for (field, (name, value)) in fields.iter().zip(&members) {
            prop_assert_eq!(field.name, name.as_bytes());
            prop_assert_eq!(field.value.bytes(), value.as_ref().map(String::as_bytes));
        }
    }
}
