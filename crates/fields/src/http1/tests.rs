use super::*;
use crate::{Value, known};

const HEAD: &[u8] =
    b"Host: example.org\r\nUser-Agent:  x \t\r\naccept:*/*\r\nX-Empty:\r\nhost: b\r\n";

fn adopted(lines: &[u8]) -> Result<Fields, HeadError> {
    let mut set = Fields::headers();
    adopt(&mut set, Slice::copy_of(lines))?;
    set.check();
    Ok(set)
}

fn encoded(fields: &Fields) -> Vec<u8> {
    let mut out = b"before".to_vec();
    encode(fields, &mut out).unwrap();
    let parts: Vec<u8> = slices(fields).iter().flat_map(|part| part.to_vec()).collect();
    assert_eq!(out, [b"before", &parts[..]].concat());
    parts
}

#[test]
fn an_adopted_head_is_read_where_it_lies_and_sent_as_it_came() {
    let lines = Slice::copy_of(HEAD);
    let mut set = Fields::headers();
    adopt(&mut set, lines.clone()).unwrap();
    assert_eq!(
        format!("{set:?}"),
        r#"[Host="example.org", User-Agent="x", accept="*/*", X-Empty="", host="b"]"#
    );
    let place = set.get(&known::USER_AGENT).unwrap().bytes().unwrap().as_ptr();
    assert!(lines.as_ptr_range().contains(&place), "no byte was copied");
    assert_eq!(encoded(&set), HEAD);
    assert_eq!(io_slices(&set).count(), 1);
    assert_eq!(slices(&set)[0].as_ptr(), lines.as_ptr());
    assert!(set.stats().adopted);
}

#[test]
fn two_out_and_two_in_are_four_slices() {
    let lines: Vec<u8> =
        (0..20).flat_map(|n| format!("name-{n}: value\r\n").into_bytes()).collect();
    let mut set = adopted(&lines).unwrap();
    set.remove("name-5");
    set.remove("name-12");
    set.append("via", "1.1 x").unwrap();
    set.append("x-forwarded-for", "192.0.2.1").unwrap();
    set.check();
    assert_eq!(slices(&set).len(), 4);
    let sent = encoded(&set);
    assert_eq!(adopted(&sent).unwrap(), set);
}

#[test]
fn one_changed_value_is_three_slices_and_keeps_its_place() {
    let mut set = adopted(HEAD).unwrap();
    set.update("user-agent", "other").unwrap();
    assert_eq!(slices(&set).len(), 3);
    let expected =
        b"Host: example.org\r\nuser-agent: other\r\naccept:*/*\r\nX-Empty:\r\nhost: b\r\n";
    assert_eq!(encoded(&set), expected);
}

#[test]
fn a_null_field_is_not_sent() {
    let mut set = adopted(HEAD).unwrap();
    set.set_value(0, Value::Null).unwrap();
    set.append("gone", Value::Null).unwrap();
    set.check();
    assert!(encoded(&set).starts_with(b"User-Agent"));
    set.set_value(0, "again").unwrap();
    assert!(encoded(&set).starts_with(b"Host: again\r\nUser-Agent"));
    set.check();
}

#[test]
fn a_large_block_is_not_pinned_by_a_small_head() {
    let mut block = block::Block::with_capacity(64 * 1024);
    block.push(HEAD);
    let mut set = Fields::headers();
    adopt(&mut set, block.freeze()).unwrap();
    set.check();
    assert!(!set.stats().adopted);
    assert!(set.bytes_held() < 2048, "{}", set.bytes_held());
    assert_eq!(encoded(&set), HEAD);
}

#[test]
fn what_is_no_head_is_refused_where_it_is_wrong() {
    for (lines, reason, byte) in [
        (&b"a: b\n"[..], HeadReason::LineFeed, 4),
        (b"a: b\rc\r\n", HeadReason::CarriageReturn, 4),
        (b"a: b\r", HeadReason::Unended, 4),
        (b"a: b", HeadReason::Unended, 4),
        (b"a", HeadReason::Unended, 1),
        (b"a: b\r\n c\r\n", HeadReason::Continued, 6),
        (b"\tc: d\r\n", HeadReason::Continued, 0),
        (b"a : b\r\n", HeadReason::Name, 1),
        (b": b\r\n", HeadReason::Name, 0),
        (b"a\r\n", HeadReason::Name, 1),
        (b"a: b\0c\r\n", HeadReason::Control, 4),
        (b"a: b\x7f\r\n", HeadReason::Control, 4),
        (b"a: b\r\n\r\n", HeadReason::Name, 6),
    ] {
        let shown = lines.escape_ascii();
        assert_eq!(adopted(lines), Err(HeadError { reason, byte }), "{shown}");
    }
    assert!(adopted(b"").unwrap().is_empty());
}

#[test]
fn a_line_is_canonical_only_in_one_spelling() {
    for (lines, expected) in [
        ("a: 1\r\nB: 2\r\n", true),
        ("a: 1\r\nb: \r\n", true),
        ("a: 1\r\nb:2\r\n", false),
        ("a: 1\r\nb:\t2\r\n", false),
        ("a: 1\r\nb:  2\r\n", false),
        ("a: 1\r\nb: 2 \r\n", false),
        ("a: 1\r\nb: 2\t\r\n", false),
        ("a: 1\r\n", false),
    ] {
        let mut set = Fields::headers();
        adopt(&mut set, Slice::copy_of(lines.as_bytes())).unwrap();
        assert_eq!(set.is_canonical_line("b"), expected, "adopted: {lines:?}");
        copy(&mut set, lines.as_bytes()).unwrap();
        assert_eq!(set.is_canonical_line("b"), expected, "copied: {lines:?}");
        set.remove("b");
        set.append("b", "3").unwrap();
        assert!(set.is_canonical_line("b"), "written by us: {lines:?}");
    }
}

#[test]
fn limits_hold_for_what_is_adopted() {
    let limits = Limits { fields: 2, bytes: 40, name: 4, value: 5 };
    let mut set = Fields::headers().with_limits(limits);
    for (lines, error) in [
        ("a:1\r\nb:2\r\nc:3\r\n", FieldError::Fields(2)),
        ("names:1\r\n", FieldError::NameLength(4)),
        ("a: 123456\r\n", FieldError::ValueLength(5)),
        ("a: 1                                        \r\n", FieldError::Bytes(40)),
    ] {
        let refused = adopt(&mut set, Slice::copy_of(lines.as_bytes())).unwrap_err();
        assert_eq!(refused.reason, HeadReason::Limit(error), "{lines}");
        assert!(set.is_empty() && !set.stats().adopted);
    }
    adopt(&mut set, Slice::copy_of(b"name: 12345\r\nb:\r\n")).unwrap();
}

#[test]
fn a_packed_set_becomes_lines_where_it_can() {
    let set = Fields::from_iter([("a", Some("1")), ("b", None), ("c", Some(""))]);
    let mut out = Vec::new();
    encode(&set, &mut out).unwrap();
    assert_eq!(out, b"a: 1\r\nc: \r\n");
    for (name, value, reason) in
        [("a b", "1", EncodeReason::Name), ("a", "1\r\nb: 2", EncodeReason::Value)]
    {
        let set = Fields::from_iter([("x", "y"), (name, value)]);
        assert_eq!(encode(&set, &mut out), Err(EncodeError { index: 1, reason }));
        assert_eq!(out.len(), 11, "nothing is left behind");
    }
    assert_eq!(slices(&set).len(), 0);
}

#[test]
fn a_thousand_pooled_heads_hold_no_more_memory_than_one() {
    let mut held = 0;
    for round in 0..1000 {
        let mut set = Fields::pooled_headers();
        adopt(&mut set, Slice::copy_of(HEAD)).unwrap();
        set.remove("host");
        set.append("via", "1.1 x").unwrap();
        held = if round == 0 { set.bytes_held() } else { held };
        assert_eq!(set.bytes_held(), held);
        set.give_back();
    }
}
