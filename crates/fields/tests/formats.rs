//! For each format: the encoded form, decoding of that form, and rejected input.

use fields::{
    Case, EncodeReason, Fields, Rows, Schema, Value, cgi, fastcgi, json, logfmt, netstring, tsv,
};

fn shown(fields: &Fields) -> String {
    format!("{fields:?}")
}

fn set() -> Fields {
    Fields::from_iter([("name", "a value"), ("empty", ""), ("name", "again")])
}

#[test]
fn netstrings_go_there_and_back() {
    let mut out = Vec::new();
    netstring::encode(&set(), &mut out).unwrap();
    assert_eq!(out, b"4:name,7:a value,5:empty,0:,4:name,5:again,");
    let mut back = Fields::new();
    netstring::decode(&mut back, &out).unwrap();
    assert_eq!(back, set());
    let null = Fields::from_iter([("a", Value::Null)]);
    assert_eq!(netstring::encode(&null, &mut out).unwrap_err().reason, EncodeReason::Null);
    for (bytes, said) in [
        (&b"1:a,"[..], "the end came too early at byte 5"),
        (b"01:a,1:b,", "no length at byte 1"),
        (b"1:a,x:b,", "no length at byte 5"),
        (b"1:a;1:b,", "unexpected byte at byte 4"),
        (b"99999999999:a,", "no length at byte 1"),
        (b"9999999999:a,", "the end came too early at byte 14"),
    ] {
        let error = netstring::decode(&mut back, bytes).unwrap_err();
        assert_eq!(error.to_string(), said, "{}", bytes.escape_ascii());
    }
    assert_eq!(back, set(), "an error adds nothing");
}

#[test]
fn the_head_of_scgi_leaves_the_body() {
    let set = Fields::from_iter([("CONTENT_LENGTH", "2"), ("SCGI", "1")]);
    let mut out = Vec::new();
    netstring::encode_scgi(&set, &mut out).unwrap();
    assert_eq!(out, b"24:CONTENT_LENGTH\x002\x00SCGI\x001\x00,");
    out.extend_from_slice(b"hi");
    let mut back = Fields::new();
    assert_eq!(netstring::decode_scgi(&mut back, &out), Ok(28));
    assert_eq!(back, set);
    let error = netstring::decode_scgi(&mut back, b"3:a\0b,").unwrap_err();
    assert_eq!(error.to_string(), "the end came too early at byte 6");
    for (name, value, reason) in [("", "", EncodeReason::Name), ("a", "\0", EncodeReason::Value)] {
        let unfit = Fields::from_iter([(name, value)]);
        assert_eq!(netstring::encode_scgi(&unfit, &mut out).unwrap_err().reason, reason);
    }
}

#[test]
fn variables_go_there_and_back() {
    let mut out = Vec::new();
    cgi::encode(&set(), &mut out).unwrap();
    assert_eq!(out, b"name=a value\0empty=\0name=again\0");
    let mut back = Fields::new();
    cgi::decode(&mut back, &out).unwrap();
    assert_eq!(back, set());
    for (bytes, said) in [
        (&b"a=b"[..], "the end came too early at byte 4"),
        (b"a=b\0c\0", "no name at byte 5"),
        (b"=b\0", "no name at byte 1"),
    ] {
        assert_eq!(cgi::decode(&mut back, bytes).unwrap_err().to_string(), said);
    }
    let unfit = Fields::from_iter([("a=b", "c")]);
    assert_eq!(cgi::encode(&unfit, &mut out).unwrap_err().reason, EncodeReason::Name);
}

#[test]
fn header_fields_become_variables() {
    let mut head = Fields::headers();
    for (name, value) in [
        ("Host", "x"),
        ("content-type", "text/plain"),
        ("Content-Length", "5"),
        ("Proxy", "evil"),
        ("X_Forwarded_For", "evil"),
        ("Cookie", "a=1"),
        ("Accept", "b"),
        ("cookie", "c=2"),
        ("ACCEPT", "d"),
    ] {
        head.append(name, value).unwrap();
    }
    let mut variables = Fields::new();
    cgi::variables(&head, &mut variables).unwrap();
    assert_eq!(
        variables.to_string(),
        "HTTP_HOST: x\nCONTENT_TYPE: text/plain\nCONTENT_LENGTH: 5\nHTTP_COOKIE: a=1; c=2\n\
         HTTP_ACCEPT: b, d\n"
    );
}

#[test]
fn fastcgi_lengths_are_one_byte_or_four() {
    let long = "v".repeat(128);
    let set = Fields::from_iter([("short", "x"), ("long", &long), (&*long, "")]);
    let mut out = Vec::new();
    fastcgi::encode(&set, &mut out).unwrap();
    assert!(out.starts_with(b"\x05\x01shortx\x04\x80\x00\x00\x80longvvv"));
    let mut back = Fields::new();
    fastcgi::decode(&mut back, &out).unwrap();
    assert_eq!(back, set);
    for end in 1..8 {
        assert!(fastcgi::decode(&mut back, &out[..end.min(out.len())]).is_err() || end == 8);
    }
    assert_eq!(back, set);
}

#[test]
fn logfmt_quotes_what_it_must() {
    let set = Fields::from_iter([
        ("at", Some("17")),
        ("path", Some("/a \"b\" \\ c\n\r\t=")),
        ("user", None),
        ("empty", Some("")),
    ]);
    let mut out = Vec::new();
    logfmt::encode(&set, &mut out).unwrap();
    assert_eq!(out, br#"at=17 path="/a \"b\" \\ c\n\r\t=" user empty="#);
    let mut back = Fields::new();
    logfmt::decode(&mut back, &out).unwrap();
    assert_eq!(back, set);
    for (line, said) in [
        (r#"a="b"#, "the end came too early at byte 5"),
        (r#"a="b\"#, "the end came too early at byte 6"),
        (r#"a="\x""#, "unknown escape at byte 5"),
        (r#"a="b"c"#, "unexpected byte at byte 6"),
        (r#"a=b=c"#, "unexpected byte at byte 4"),
        (r#"=b"#, "no name at byte 1"),
    ] {
        let error = logfmt::decode(&mut back, line.as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), said, "{line}");
    }
    logfmt::decode(&mut Fields::new(), b"  \t ").unwrap();
}

#[test]
fn tsv_has_values_only() {
    let set = Fields::from_iter([("a", Some("1\t2\n\r\\")), ("b", None), ("c", Some(""))]);
    let mut out = Vec::new();
    tsv::encode(&set, &mut out);
    assert_eq!(out, b"1\\t2\\n\\r\\\\\t\\N\t");
    let mut back = Fields::new();
    tsv::decode(&mut back, ["a", "b", "c"], &out).unwrap();
    assert_eq!(back, set);
    for (line, said) in [
        ("1\t2", "2 values, not 3 at byte 4"),
        ("", "1 values, not 3 at byte 1"),
        ("1\t2\t3\t4", "more than 3 values at byte 7"),
        ("1\t\\x\t", "unknown escape at byte 3"),
        ("1\t2\t\\", "unknown escape at byte 5"),
    ] {
        let error = tsv::decode(&mut back, ["a", "b", "c"], line.as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), said, "{line}");
    }
    assert_eq!(back, set);
}

#[test]
fn json_keeps_kinds_apart() {
    let text = r#"{"s":"x\n\"","e":"","n":null,"i":-12,"r":1.50e3}"#;
    let mut set = Fields::new();
    json::decode(&mut set, text.as_bytes()).unwrap();
    let mut out = Vec::new();
    json::encode(&set, &mut out).unwrap();
    assert_eq!(out, text.as_bytes());
    for value in [Value::Bytes(b"\xff"), Value::Number(b"x"), Value::Number(b"true")] {
        let unfit = Fields::from_iter([("a", value)]);
        assert_eq!(json::encode(&unfit, &mut out).unwrap_err().reason, EncodeReason::Value);
        assert_eq!(out, text.as_bytes());
    }
}

#[test]
fn a_row_is_written_like_a_set() {
    let mut rows = Rows::new(Schema::new(["a", "b"], Case::Exact));
    rows.push([Value::Number(b"1"), Value::Null]).unwrap();
    let row = rows.row(0).unwrap();
    let mut out = Vec::new();
    json::encode(&row, &mut out).unwrap();
    out.push(b' ');
    tsv::encode(&row, &mut out);
    out.push(b' ');
    logfmt::encode(&row, &mut out).unwrap();
    assert_eq!(out, b"{\"a\":1,\"b\":null} 1\t\\N a=1 b");
    assert_eq!(shown(&row.to_fields()), "[a=1, b=NULL]");
}
