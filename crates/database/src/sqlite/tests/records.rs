//! Records that are not JSON.

use super::*;
use crate::DatabaseError;

fn place(record: Record) -> Place {
    let mut place = Place::new();
    place.options.job.record = record;
    place
}

#[test]
fn values_with_tabs_between_become_a_row() {
    let place = place(Record::Tsv);
    let mut handler = place.handler();
    let lines =
        ["1\t/a\t200", "2\t/b\\tc\t\\N", "3\t/only two", "x\t/d\t1", "5\t/e\t6\t7", "4\t\t0"];
    let answers = serve(&mut handler, lines);
    assert_eq!(answers[..2], ["ok 1", "ok 2"]);
    assert_eq!(answers[2], "!record not a TSV record: 2 values, not 3 at byte 12");
    assert!(answers[3].starts_with("!row "), "the column wants a number: {}", answers[3]);
    assert_eq!(answers[4], "!record not a TSV record: more than 3 values at byte 8");
    assert_eq!(answers[5], "ok 4", "an empty value is not NULL");
    assert_eq!(place.rows(), ["1 /a 200", "2 /b\tc NULL", "4  0"]);
}

#[test]
fn a_line_of_tsv_follows_the_parameters_of_a_statement() {
    let mut place = Place::statement(
        "insert into hits (id, path, status) values (:id, :path || :_at, length(:path))",
    );
    place.options.job.record = Record::Tsv;
    place.options.job.ack = "{path} {id}".to_owned();
    let mut handler = place.handler();
    assert_eq!(serve(&mut handler, ["7\t/a"]), ["/a 7"], "a parameter is named once");
    assert_eq!(place.rows(), ["7 /a1700000000000000 2"]);
}

#[test]
fn an_acknowledgement_of_what_no_line_has_is_refused_at_the_start() {
    let mut place = place(Record::Tsv);
    place.options.job.ack = "ok {user}".to_owned();
    let error = factory(place.options.clone()).unwrap().check().unwrap_err();
    assert!(matches!(error, DatabaseError::NotInRecord { .. }), "{error}");
    let said = error.to_string();
    assert!(said.contains("no `user`") && said.contains("`path`"), "{said}");
    place.options.job.record = Record::Logfmt;
    factory(place.options).unwrap().check().unwrap();
}

#[test]
fn names_and_values_of_logfmt_become_a_row() {
    let mut place = place(Record::Logfmt);
    place.options.job.unknown_fields = UnknownFields::Ignore;
    let mut handler = place.handler();
    let lines = [
        r#"id=1 path="/a \"b\"" status=200"#,
        "status path=/b more=x id=2",
        "id=3 status=1",
        "id=4 path=/c id=5 status=1",
        r#"id=6 path="/d"#,
        "x=1 x=2 id=7 path= status=",
    ];
    let answers = serve(&mut handler, lines);
    assert_eq!(answers[..2], ["ok 1", "ok 2"]);
    assert_eq!(answers[2], "!row the record has no `path`");
    assert_eq!(answers[3], "!record not a logfmt record: duplicate name `id`");
    assert_eq!(answers[4], "!record not a logfmt record: the end came too early at byte 14");
    assert!(answers[5].starts_with("!row "), "an empty text is no number: {}", answers[5]);
    assert_eq!(place.rows(), [r#"1 /a "b" 200"#, "2 /b NULL"]);
}

#[test]
fn rows_of_one_batch_keep_their_values_apart() {
    let place = place(Record::Tsv);
    let mut handler = place.handler();
    let line = |id: i64| format!("{id}\t/{}\t{}", "x".repeat(usize::try_from(id).unwrap()), id * 2);
    for _ in 0..2 {
        let answers = serve(&mut handler, (1..=100).map(line));
        assert_eq!(answers.len(), 100);
    }
    let rows = place.rows();
    assert_eq!((rows.len(), &*rows[2]), (100, "3 /xxx 6"));
}
