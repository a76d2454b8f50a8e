//! The five defects that were found by running the original store. Each is a test of the behaviour of this crate. Also
//! tests of behaviour that the original does not test.

use fields::{Fields, Limits, Value};

#[test]
fn a_field_is_found_in_both_spellings_after_its_capitals_changed() {
    let mut fields = Fields::headers();
    fields.append("content-type", "text/plain").unwrap();
    assert_eq!(fields.update("Content-Type", "text/html"), Ok(0));
    assert_eq!(fields.len(), 1);
    assert_eq!(fields.field(0).unwrap().name, b"Content-Type");
    for spelling in ["content-type", "Content-Type", "CONTENT-TYPE"] {
        assert_eq!(fields.get(spelling), Some(Value::Bytes(b"text/html")), "{spelling}");
    }
    assert_eq!(fields.update("content-type", "a"), Ok(0), "the next update adds no second one");
    assert_eq!(fields.len(), 1);
}

#[test]
fn null_values_are_merged_like_others() {
    let mut high = Fields::from_iter([("a", "1")]);
    let low = Fields::from_iter([("b", None), ("a", Some("2")), ("b", Some("3"))]);
    assert_eq!(high.merge_missing(&low), Ok(1));
    assert_eq!(format!("{high:?}"), r#"[a="1", b=NULL]"#);
}

#[test]
fn an_empty_value_over_null_is_empty_and_null_over_empty_is_null() {
    let mut fields = Fields::from_iter([("a", None::<&str>)]);
    assert!(fields.set_value(0, "").unwrap());
    assert_eq!(fields.get("a"), Some(Value::Bytes(b"")));
    assert!(fields.set_value(0, Value::Null).unwrap());
    assert_eq!(fields.get("a"), Some(Value::Null));
    fields.update("a", "").unwrap();
    assert_eq!(fields.get("a"), Some(Value::Bytes(b"")));
}

#[test]
fn two_thousand_growing_updates_leave_twice_the_live_bytes_at_most() {
    // With another field behind it, the value cannot grow in place.
    for behind in [false, true] {
        let mut fields = Fields::from_iter([("grows", "")]);
        if behind {
            fields.append("other", "x").unwrap();
        }
        for length in 0..2000 {
            fields.set_value(0, &"v".repeat(length)).unwrap();
            fields.check();
        }
        let stats = fields.stats();
        assert!(stats.bytes_used <= 2 * stats.bytes_live + 512, "{stats:?}");
        assert!(stats.bytes_held <= 2 * (2 * stats.bytes_live + 512) + 64, "{stats:?}");
    }
}

#[test]
fn a_hundred_thousand_fields_that_came_and_went_leave_nothing() {
    let mut fields = Fields::new();
    for number in 0..100_000 {
        fields.append("name", "some value").unwrap();
        if number % 2 == 0 {
            assert!(fields.remove_at(0));
        } else {
            assert_eq!(fields.remove("name"), 1);
        }
    }
    assert_eq!((fields.len(), fields.bytes_used()), (0, 0));
    assert!(fields.bytes_held() < 256, "{}", fields.bytes_held());

    let mut fields = Fields::from_iter([("stays", "x")]);
    for _ in 0..100_000 {
        fields.append("comes", "some value").unwrap();
        fields.append("goes", "some value").unwrap();
        fields.remove("comes");
        fields.remove("goes");
        assert!(fields.bytes_used() <= 2 * fields.stats().bytes_live + 512);
    }
    assert!(fields.bytes_held() < 4096, "{}", fields.bytes_held());
}

#[test]
fn nul_bytes_survive_copy_move_and_merge() {
    let all = b"\0a\0\0b\n".as_slice();
    let fields = Fields::from_iter([(all, all)]);
    let copy = fields.clone();
    let mut moved = Fields::new();
    moved.append_all(&mut fields.clone()).unwrap();
    let mut merged = Fields::new();
    merged.merge_missing(&fields).unwrap();
    let split = fields.split_by(b'.').remove(0);
    for set in [copy, moved, merged, split] {
        assert_eq!(set.get(all), Some(Value::Bytes(all)));
        assert_eq!(set, fields);
    }
}

#[test]
fn names_survive_many_rows_in_one_set() {
    let mut row = Fields::from_iter([("id", "1"), ("path", "/"), ("user", "x")]);
    let mut held = 0;
    for number in 0..1000 {
        row.clear_values();
        assert_eq!(row.values().filter(|value| value.is_null()).count(), 3);
        let digits = format!("{number:03}");
        row.set_value(0, &digits).unwrap();
        row.set_value(2, if number % 2 == 0 { Some("even") } else { None }).unwrap();
        row.check();
        assert_eq!(row.get("id").and_then(Value::text), Some(&*digits));
        assert_eq!(row.get("path"), Some(Value::Null));
        assert_eq!(row.get("user").unwrap().is_null(), number % 2 == 1);
        held = if number == 10 { row.bytes_held() } else { held };
    }
    assert_eq!(row.bytes_held(), held, "rows of one size need no more memory");
}

#[test]
fn recycling_gives_back_what_was_not_needed() {
    let mut fields = Fields::with_capacity(1000, 100_000);
    fields.append("a", "b").unwrap();
    fields.recycle(10, 1000);
    assert!(fields.bytes_held() <= 10 * 16 + 1000, "{}", fields.bytes_held());
    let mut fields = Fields::with_capacity(1000, 100_000);
    let held = fields.bytes_held();
    fields.append("a", &"b".repeat(50_000)).unwrap();
    (0..500).for_each(|_| assert!(fields.append("c", "").unwrap() > 0));
    fields.recycle(10, 1000);
    assert_eq!(fields.bytes_held(), held, "more than a quarter was in use");
}

#[test]
fn limits_refuse_and_change_nothing() {
    let limits = Limits { fields: 2, bytes: 20, name: 4, value: 10 };
    let mut fields = Fields::new().with_limits(limits);
    let said = |result: Result<usize, fields::FieldError>| result.unwrap_err().to_string();
    assert_eq!(said(fields.append("names", "")), "a name of more than 4 bytes");
    assert_eq!(said(fields.append("n", &"v".repeat(11))), "a value of more than 10 bytes");
    fields.append("a", "0123456789").unwrap();
    let before = fields.clone();
    assert_eq!(said(fields.append("b", "0123456789")), "names and values of more than 20 bytes");
    assert_eq!(fields, before);
    fields.append("b", "0").unwrap();
    assert_eq!(said(fields.append("c", "")), "more than 2 fields");
    assert_eq!(
        fields.update("a", "01234567890").unwrap_err().to_string(),
        "a value of more than 10 bytes"
    );
    assert!(fields.set_value(0, "").unwrap());
    assert!(fields.set_value(0, "0123456789").unwrap(), "room comes back");
    assert!(!fields.set_value(7, "").unwrap());
    fields.check();
}

#[test]
fn a_line_of_a_head_cannot_be_split() {
    let mut fields = Fields::headers();
    for value in ["a\r\nb: c", "a\nb", "a\rb", "a\0b", "\x7f"] {
        let error = fields.append("a", value).unwrap_err();
        assert_eq!(error.to_string(), "a value that holds a control character", "{value:?}");
    }
    for name in ["", " a", "a b", "a:", "a\r\n", "é"] {
        let error = fields.append(name, "").unwrap_err();
        assert_eq!(error.to_string(), "a name that is empty or not a token", "{name:?}");
    }
    let index = fields.append("a", " trimmed\t").unwrap();
    fields.set_value(index, "a\nb").unwrap_err();
    assert_eq!(fields.get("A"), Some(Value::Bytes(b"trimmed")));
    fields.check();
}

#[test]
fn what_must_not_be_shown_is_not() {
    let mut fields = Fields::headers();
    fields.append_sensitive("Authorization", "secret").unwrap();
    fields.append("Host", "x").unwrap();
    assert_eq!(format!("{fields:?}"), r#"[Authorization=(hidden), Host="x"]"#);
    assert_eq!(fields.to_string(), "Authorization: (hidden)\nHost: x\n");
    for set in [fields.clone(), fields.iter().collect(), fields.split_by(b'.').remove(0)] {
        assert!(!format!("{set:?} {set}").contains("secret"));
    }
    fields.set_value(0, "other secret").unwrap();
    assert!(!format!("{fields:?}").contains("secret"), "a new value is as secret as the old");
    assert!(fields.set_sensitive(0, false));
    assert!(format!("{fields:?}").contains("other secret"));
}

#[test]
fn what_nobody_asked_for_is_told() {
    let mut fields = Fields::from_iter([("used", "1"), ("forgotten", "2")]);
    assert_eq!(fields.get_and_mark_read("used"), Some(Value::Bytes(b"1")));
    assert_eq!(fields.get_and_mark_read("absent"), None);
    assert!(fields.is_read(0));
    let names: Vec<_> = fields.unread().map(|field| field.name).collect();
    assert_eq!(names, [b"forgotten"]);
}

#[test]
fn an_empty_value_behind_what_was_cut_off_is_still_empty() {
    let mut fields = Fields::from_iter([("a", "12345678"), ("", "")]);
    fields.append("b", "").unwrap();
    fields.set_value(0, "123456789").unwrap();
    fields.remove_at(0);
    fields.check();
    assert_eq!(format!("{fields:?}"), r#"[="", b=""]"#);
}

/// A peer sends one name a hundred thousand times. In the original, each removal moved all following fields.
#[test]
fn a_name_that_is_there_many_times_is_removed_in_one_walk() {
    const MANY: usize = 100_000;
    let many = || {
        let mut fields = Fields::new();
        for number in 0..MANY {
            fields.append(if number % 3 == 0 { "keep" } else { "drop" }, "x").unwrap();
        }
        fields
    };
    let mut fields = many();
    assert_eq!(fields.remove("drop"), MANY - MANY.div_ceil(3));
    assert_eq!(fields.len(), MANY.div_ceil(3));
    assert!(!fields.contains("drop"));
    let mut fields = many();
    assert_eq!(fields.replace_all("drop", "one"), Ok(1));
    assert_eq!(fields.len(), MANY.div_ceil(3) + 1);
    assert_eq!(fields.get("drop"), Some(Value::Bytes(b"one")));
}

/// The first example of the README: a client fills the set, and internal code adds a field.
#[test]
fn a_set_that_a_peer_has_filled_takes_no_further_field_and_does_not_panic() {
    let lines: String = (0..Limits::default().fields).map(|n| format!("X-{n}: 1\r\n")).collect();
    let mut head = Fields::headers();
    fields::http1::adopt(&mut head, block::Slice::copy_of(lines.as_bytes())).unwrap();
    assert!(head.append("Via", "1.1 example").is_err());
    assert_eq!(head.len(), Limits::default().fields as usize);
}
