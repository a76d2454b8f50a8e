use super::*;
use crate::http1;
use block::Slice;

const FIELDS: usize = 8;

fn adopted() -> Fields {
    let line = |number: usize| format!("name-{number}: value {number}\r\n");
    let lines: String = (0..FIELDS).map(line).collect();
    let mut set = Fields::headers();
    http1::adopt(&mut set, Slice::from(&*lines)).unwrap();
    set
}

/// All possible edits: for each field its removal, a value of the same length, a value of another length, or NULL; and
/// one appended field.
fn edit(set: &mut Fields, edit: usize) {
    let index = edit / 4;
    match edit % 4 {
        _ if edit == EDITS - 1 => drop(set.append("appended", "value")),
        0 => drop(set.remove_at(index)),
        1 => drop(set.set_value(index, "value x")),
        2 => drop(set.set_value(index, "another value")),
        _ => drop(set.set_value(index, Value::Null)),
    }
}

const EDITS: usize = FIELDS * 4 + 1;

fn encoded(set: &Fields) -> Vec<u8> {
    let mut expected = Vec::new();
    http1::encode_any(set, &mut expected).unwrap();
    let mut sent = Vec::new();
    http1::encode(set, &mut sent).unwrap();
    assert_eq!(sent, expected);
    let slices = http1::slices(set);
    assert_eq!(slices.iter().flat_map(|slice| slice.to_vec()).collect::<Vec<_>>(), expected);
    assert_eq!(http1::io_slices(set).count(), slices.len());
    sent
}

#[test]
fn two_edits_of_an_adopted_set_are_sent_in_four_parts() {
    for first in 0..EDITS {
        for second in 0..EDITS {
            let mut set = adopted();
            edit(&mut set, first);
            edit(&mut set, second);
            set.check();
            encoded(&set);
            let parts = http1::slices(&set).len();
            assert!(parts <= 4, "{parts} parts after {first} and {second}:\n{set}");
        }
    }
}

#[test]
fn changes_alone_are_sent_in_four_parts_however_many() {
    for step in 1..FIELDS {
        let mut set = adopted();
        set.append("appended", "1").unwrap();
        set.append("appended", "2").unwrap();
        for number in 0..3 * FIELDS {
            // All fields except the last adopted one, in a non-sequential order.
            let index = number * step % (FIELDS + 2);
            if index != FIELDS - 1 {
                set.set_value(index, &"v".repeat(number % 7)).unwrap();
            }
            set.check();
            encoded(&set);
            assert!(http1::slices(&set).len() <= 4, "{set}");
        }
        assert!(set.stats().bytes_used <= 2 * set.stats().bytes_live + 512);
    }
}

#[test]
fn a_field_that_has_no_line_does_not_part_those_around_it() {
    let mut set = adopted();
    set.append("a", "1").unwrap();
    set.append("b", Value::Null).unwrap();
    set.append("c", "3").unwrap();
    assert!(encoded(&set).ends_with(b"a: 1\r\nc: 3\r\n"));
}
