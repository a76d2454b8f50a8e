//! The behaviour that programs rely on in the original store, topic by topic. The topics have the numbers of its test
//! file. Not every case of that file is included, and names and calls are those of this crate.

use fields::{Case, Fields, Value};

fn abc() -> Fields {
    // Two names differ only in case, and one name occurs twice.
    Fields::from_iter([("a", "1"), ("b", "2"), ("A", "3"), ("a", "4"), ("c", "5")])
}

fn shown(fields: &Fields) -> String {
    format!("{fields:?}")
}

fn texts<'a>(values: impl Iterator<Item = Value<'a>>) -> Vec<&'a str> {
    values.filter_map(Value::text).collect()
}

#[test]
fn case_2_0_an_empty_set_has_no_fields() {
    let fields = Fields::new();
    assert_eq!((fields.len(), fields.is_empty(), fields.title()), (0, true, None));
    assert_eq!(fields.bytes_held(), 0);
}

#[test]
fn case_2_1_1_a_set_is_made_with_fields() {
    assert_eq!(shown(&Fields::from_iter([("a", "1"), ("b", "2")])), r#"[a="1", b="2"]"#);
}

#[test]
fn case_2_1_2_ten_growing_updates_across_reallocations() {
    let mut fields = Fields::from_iter([("x", "0"), ("grows", ""), ("y", "1")]);
    for round in 1..=10 {
        let text = "grow ".repeat(round * 10);
        assert_eq!(fields.update("grows", &text), Ok(1));
        assert_eq!(fields.get("grows").and_then(Value::text), Some(&*text));
        assert_eq!(texts(["x", "y"].into_iter().filter_map(|name| fields.get(name))), ["0", "1"]);
        fields.check();
    }
}

#[test]
fn case_2_1_3_a_set_is_made_with_a_name() {
    let mut fields = Fields::named("query");
    fields.extend([("a", "1")]);
    assert_eq!(fields.title(), Some("query"));
    let sets = [Fields::new(), fields, Fields::named("db")];
    assert_eq!(Fields::find_named(&sets, "query").map(Fields::len), Some(1));
    assert!(Fields::find_named(&sets, "form").is_none());
}

#[test]
fn case_2_1_4_a_name_may_be_made_of_parts() {
    let fields = Fields::named(format!("section {}", 1));
    assert_eq!(fields.title(), Some("section 1"));
}

#[test]
fn case_2_2_1_room_is_made_before_it_is_needed() {
    let mut fields = Fields::with_capacity(20, 1000);
    let held = fields.bytes_held();
    (0..20).for_each(|number| assert_eq!(fields.append("name", "value"), Ok(number)));
    assert_eq!(fields.bytes_held(), held);
}

#[test]
fn case_2_2_2_a_smaller_size_cuts_fields_off() {
    let mut fields = abc();
    fields.truncate(2);
    fields.shrink_to(0, 0);
    assert_eq!(shown(&fields), r#"[a="1", b="2"]"#);
    assert_eq!(fields.bytes_held(), 2 * 16 + 4);
    fields.append("d", "6").unwrap();
    assert_eq!(shown(&fields), r#"[a="1", b="2", d="6"]"#);
}

#[test]
fn case_2_3_the_size_is_the_number_of_fields() {
    assert_eq!(abc().len(), 5);
}

#[test]
fn case_2_4_1_get_finds_the_first_of_a_name() {
    let fields = abc();
    assert_eq!(fields.get("a"), Some(Value::Bytes(b"1")));
    assert_eq!(fields.get("A"), Some(Value::Bytes(b"3")));
    assert_eq!(fields.get("absent"), None);
}

#[test]
fn case_2_4_2_a_default_stands_for_what_is_missing_or_empty() {
    let fields = Fields::from_iter([("null", None), ("empty", Some("")), ("there", Some("x"))]);
    for (name, expected) in [("null", "d"), ("empty", "d"), ("absent", "d"), ("there", "x")] {
        assert_eq!(fields.get_or(name, b"d"), expected.as_bytes(), "{name}");
    }
}

#[test]
fn case_2_4_3_get_all_finds_each_in_order() {
    let fields = abc();
    assert_eq!(texts(fields.get_all("a")), ["1", "4"]);
    assert_eq!(texts(fields.get_all("a").rev()), ["4", "1"]);
    assert_eq!(fields.get_all("absent").count(), 0);
    assert_eq!(["a", "b", "x"].map(|name| fields.get_all(name).count()), [2, 1, 0]);
}

#[test]
fn case_2_5_1_get_may_ignore_case() {
    let fields = abc();
    assert_eq!(fields.get_ignore_case("A"), Some(Value::Bytes(b"1")));
    assert_eq!(fields.get_ignore_case("C"), Some(Value::Bytes(b"5")));
    assert_eq!(fields.get_exact("C"), None);
}

#[test]
fn case_2_5_2_get_all_may_ignore_case() {
    assert_eq!(texts(abc().with_case(Case::Ignored).get_all("A")), ["1", "3", "4"]);
}

#[test]
fn case_2_5_3_a_whole_set_may_ignore_case() {
    let fields = abc().with_case(Case::Ignored);
    assert_eq!(texts(fields.get_all("A")), ["1", "3", "4"]);
    assert_eq!(fields.get_exact("A"), Some(Value::Bytes(b"3")));
    assert_eq!(shown(&fields), shown(&abc()), "the spelling stays");
}

#[test]
fn case_2_6_a_name_is_unique_when_it_stands_once_or_not_at_all() {
    let fields = abc();
    assert!(!fields.is_unique("a"));
    assert!(fields.is_unique("A") && fields.is_unique("b") && fields.is_unique("absent"));
}

#[test]
fn case_2_7_unique_may_ignore_case() {
    let fields = abc();
    assert!(!fields.is_unique_with("A", Case::Ignored));
    assert!(fields.is_unique_with("B", Case::Ignored));
}

#[test]
fn case_2_8_truncate_keeps_the_first() {
    let mut fields = abc();
    fields.truncate(3);
    assert_eq!(shown(&fields), r#"[a="1", b="2", A="3"]"#);
    fields.truncate(7);
    assert_eq!(fields.len(), 3);
    fields.truncate(0);
    assert_eq!((fields.len(), fields.bytes_used()), (0, 0));
}

#[test]
fn case_2_9_truncate_after_values_moved() {
    let mut fields = abc();
    fields.set_value(0, "a longer value, which lies behind all others").unwrap();
    fields.truncate(1);
    assert_eq!(shown(&fields), r#"[a="a longer value, which lies behind all others"]"#);
    fields.check();
}

#[test]
fn case_2_9_1_truncate_after_values_moved_and_fields_came() {
    let mut fields = abc();
    fields.set_value(4, "moved").unwrap();
    fields.append("d", "6").unwrap();
    fields.set_value(1, "moved as well").unwrap();
    fields.truncate(4);
    fields.check();
    fields.append("e", "7").unwrap();
    assert_eq!(shown(&fields), r#"[a="1", b="moved as well", A="3", a="4", e="7"]"#);
    fields.check();
}

#[test]
fn case_2_10_find_gives_the_number_of_the_first() {
    let fields = abc();
    assert_eq!(fields.position("a"), Some(0));
    assert_eq!(fields.position("A"), Some(2));
    assert_eq!(fields.position("absent"), None);
    assert_eq!(fields.position_from("a", 1), Some(3));
    assert_eq!(fields.position_from("a", 99), None);
    assert!(fields.contains("c") && !fields.contains("C"));
}

#[test]
fn case_2_11_find_may_ignore_case() {
    let fields = abc();
    assert_eq!(fields.position_with("C", Case::Ignored), Some(4));
    assert_eq!(fields.position_with("A", Case::Ignored), Some(0));
}

#[test]
fn case_2_12_delete_by_number() {
    let mut fields = abc();
    assert!(fields.remove_at(1));
    assert_eq!(shown(&fields), r#"[a="1", A="3", a="4", c="5"]"#);
    assert!(!fields.remove_at(4));
    fields.check();
}

#[test]
fn case_2_13_delete_by_name_takes_the_first_and_says_so() {
    let mut fields = abc();
    assert!(fields.remove_first("a"));
    assert_eq!(shown(&fields), r#"[b="2", A="3", a="4", c="5"]"#);
    assert!(!fields.remove_first("absent"));
    assert_eq!(fields.with_case(Case::Ignored).remove("a"), 2);
}

#[test]
fn case_2_14_update_keeps_the_place_and_returns_it() {
    let mut fields = abc();
    assert_eq!(fields.update("b", "changed"), Ok(1));
    assert_eq!(fields.update("new", "6"), Ok(5));
    assert_eq!(shown(&fields), r#"[a="1", b="changed", A="3", a="4", c="5", new="6"]"#);
}

#[test]
fn case_2_15_update_may_ignore_case() {
    let mut fields = abc().with_case(Case::Ignored);
    assert_eq!(fields.update("B", "changed"), Ok(1));
    assert_eq!(fields.len(), 5);
    assert_eq!(fields.get_exact("B"), Some(Value::Bytes(b"changed")));
}

#[test]
fn case_2_16_insert_leaves_one_of_the_name() {
    let mut fields = abc().with_case(Case::Ignored);
    assert_eq!(fields.replace_all("a", "only"), Ok(0));
    assert_eq!(shown(&fields), r#"[a="only", b="2", c="5"]"#);
    fields.check();
}

#[test]
fn case_2_17_put_takes_duplicates() {
    let mut fields = Fields::new();
    assert_eq!([fields.append("a", "1"), fields.append("a", "1")], [Ok(0), Ok(1)]);
    assert_eq!(texts(fields.get_all("a")), ["1", "1"]);
}

#[test]
fn case_2_18_put_takes_duplicates_in_other_case() {
    let mut fields = Fields::headers();
    assert_eq!([fields.append("Via", "1"), fields.append("via", "2")], [Ok(0), Ok(1)]);
    assert_eq!(texts(fields.get_all("VIA")), ["1", "2"]);
    assert_eq!(shown(&fields), r#"[Via="1", via="2"]"#);
}

#[test]
fn case_2_19_1_split_makes_a_set_of_each_prefix() {
    let fields = Fields::from_iter([("x.a", "1"), ("plain", "2"), ("y.b", "3"), ("x.c.d", "4")]);
    let sets = fields.split_by(b'.');
    let all: Vec<_> = sets.iter().map(|set| (set.title(), shown(set))).collect();
    assert_eq!(all[0], (Some("x"), r#"[a="1", c.d="4"]"#.to_owned()));
    assert_eq!(all[1], (None, r#"[plain="2"]"#.to_owned()));
    assert_eq!(all[2], (Some("y"), r#"[b="3"]"#.to_owned()));
    assert_eq!(all.len(), 3);
}

#[test]
fn case_2_19_2_split_at_another_byte() {
    let sets = Fields::from_iter([("x.a", "1"), ("x/b", "2")]).split_by(b'/');
    assert_eq!(sets[0].title(), None);
    assert_eq!((sets[1].title(), shown(&sets[1])), (Some("x"), r#"[b="2"]"#.to_owned()));
    assert!(Fields::new().split_by(b'.').is_empty());
}

#[test]
fn case_2_20_and_2_21_name_and_value_by_number() {
    let fields = abc();
    let field = fields.field(2).unwrap();
    assert_eq!((field.name, field.value), (&b"A"[..], Value::Bytes(b"3")));
    assert_eq!(fields.field(5), None, "one past the end is none");
    assert_eq!(fields.into_iter().len(), 5);
}

#[test]
fn case_2_22_1_merge_takes_what_is_absent() {
    let mut high = Fields::from_iter([("a", "1")]);
    let low = Fields::from_iter([("a", "2"), ("b", "3"), ("b", "4"), ("A", "5")]);
    assert_eq!(high.merge_missing(&low), Ok(2));
    assert_eq!(shown(&high), r#"[a="1", b="3", A="5"]"#);
    assert_eq!(low.len(), 4);
}

#[test]
fn case_2_22_2_merge_may_ignore_case() {
    let mut high = Fields::from_iter([("a", "1")]).with_case(Case::Ignored);
    let low = Fields::from_iter([("A", "2"), ("b", "3"), ("B", "4")]);
    assert_eq!(high.merge_missing(&low), Ok(1));
    assert_eq!(shown(&high), r#"[a="1", b="3"]"#);
}

#[test]
fn case_2_23_move_appends_all_and_empties_the_source() {
    let mut to = Fields::from_iter([("a", "1")]);
    let mut from = abc();
    to.append_all(&mut from).unwrap();
    assert_eq!((to.len(), from.len()), (6, 0));
    assert_eq!(texts(to.get_all("a")), ["1", "1", "4"]);
}

#[test]
fn case_2_24_put_if_absent_returns_the_place_either_way() {
    let mut fields = abc();
    assert_eq!(fields.append_if_absent("b", "other"), Ok(1));
    assert_eq!(fields.append_if_absent("d", "6"), Ok(5));
    assert_eq!(fields.get("b"), Some(Value::Bytes(b"2")));
}

#[test]
fn case_2_25_to_2_28_put_if_absent_may_ignore_case() {
    let mut fields = Fields::headers();
    assert_eq!(fields.append_if_absent("Host", "x"), Ok(0));
    assert_eq!(fields.append_if_absent("HOST", "y"), Ok(0));
    assert_eq!(fields.append_if_absent("Via", Value::Null), Ok(1));
    assert_eq!(fields.append_if_absent("via", "z"), Ok(1), "a NULL field is there");
    assert_eq!(shown(&fields), r#"[Host="x", Via=NULL]"#);
}

#[test]
fn case_2_29_what_was_taken_is_empty_and_usable() {
    let mut fields = Fields::named("a");
    fields.append("x", "1").unwrap();
    let taken = std::mem::take(&mut fields);
    assert_eq!((taken.len(), fields.len(), fields.title()), (1, 0, None));
    fields.append("y", "2").unwrap();
    assert_eq!(shown(&fields), r#"[y="2"]"#);
}

#[test]
fn case_2_30_update_takes_the_new_capitals() {
    let mut fields = abc().with_case(Case::Ignored);
    fields.update("B", "2").unwrap();
    assert_eq!(fields.names().nth(1), Some(&b"B"[..]));
    fields.update("b", "a longer one").unwrap();
    assert_eq!(fields.names().nth(1), Some(&b"b"[..]));
    fields.check();
}

#[test]
fn case_3_0_names_and_values_by_pattern() {
    let fields = Fields::from_iter([("path", "/a"), ("part", "b"), ("host", "c")]);
    let names: Vec<_> = fields.matching(b"pa*t?").map(|field| field.name).collect();
    assert_eq!(names, [b"path"]);
    assert_eq!(texts(fields.matching(b"pa*").map(|field| field.value)), ["/a", "b"]);
    assert_eq!(fields.names().count(), 3);
    assert_eq!(texts(fields.values()), ["/a", "b", "c"]);
}

#[test]
fn untested_there_null_and_format_and_retain() {
    let mut fields = Fields::from_iter([("a", Some("1")), ("b", None), ("c", Some("x\ny"))]);
    assert!(fields.field(1).unwrap().value.is_null());
    assert_eq!(fields.values().filter(|value| value.is_null()).count(), 1);
    assert_eq!(fields.to_string(), "a: 1\nb:\nc: x\n\ty\n");
    assert_eq!(fields.format("- ", "=").to_string(), "- a=1\n- b=\n- c=x\n\ty\n");
    fields.retain(|field| !field.value.is_null());
    assert_eq!(fields.len(), 2);
    fields.check();
}

#[test]
fn untested_there_copy_and_stats() {
    let fields = abc();
    let mut copy = fields.clone();
    assert_eq!(copy, fields);
    copy.set_value(0, "x").unwrap();
    assert_ne!(copy, fields);
    assert_eq!(fields.get("a"), Some(Value::Bytes(b"1")));
    let stats = fields.stats();
    assert_eq!((stats.fields, stats.bytes_live, stats.bytes_used), (5, 10, 10));
    assert!(stats.bytes_held >= 90 && !stats.adopted);
}

#[test]
fn untested_there_the_last_field_and_iteration_from_the_back() {
    let fields = abc();
    assert_eq!(fields.iter().next_back().unwrap().name, b"c");
    let back: Vec<_> = (&fields).into_iter().rev().map(|field| field.name).collect();
    assert_eq!(back, [&b"c"[..], b"a", b"A", b"b", b"a"]);
}

#[test]
fn values_are_changed_by_number() {
    let mut fields = abc();
    assert!(fields.set_value(1, "changed").unwrap());
    assert!(!fields.set_value(5, "past the end").unwrap());
    assert_eq!(fields.set_value(99, "x"), Ok(false));
    assert_eq!(shown(&fields), r#"[a="1", b="changed", A="3", a="4", c="5"]"#);
}

#[test]
fn a_flat_list_has_names_and_values_in_turn() {
    let fields = Fields::from_iter([("a", Some("1")), ("b", None)]);
    let list: Vec<_> = fields.iter().flat_map(|f| [Some(f.name), f.value.bytes()]).collect();
    assert_eq!(list, [Some(&b"a"[..]), Some(b"1"), Some(b"b"), None]);
}

#[test]
fn defaults_come_second_and_say_so() {
    let mut section = Fields::from_iter([("port", "80")]);
    let given = section.len();
    let defaults = Fields::from_iter([("port", "8080"), ("host", "any")]);
    assert_eq!(section.merge_missing(&defaults), Ok(1));
    assert_eq!(section.get_and_mark_read("port"), Some(Value::Bytes(b"80")));
    assert_eq!(section.get_and_mark_read("host"), Some(Value::Bytes(b"any")));
    assert!(section.position("host") >= Some(given), "what was defaulted lies behind what was set");
    assert_eq!(section.unread().count(), 0);
}

#[test]
fn a_shared_set_is_copied_when_it_is_changed() {
    use std::sync::Arc;
    let mut ours = Arc::new(abc());
    let theirs = Arc::clone(&ours);
    Arc::make_mut(&mut ours).append("d", "6").unwrap();
    let seen = std::thread::scope(|scope| scope.spawn(|| theirs.len()).join());
    assert_eq!((seen.unwrap(), ours.len()), (5, 6));
}
