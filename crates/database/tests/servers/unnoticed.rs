//! Rows that a database takes and does not store, in ways that its counts do not show.

use std::time::Duration;

use database::{Action, Job, OnConflict, Retried};

use crate::letters::all;
use crate::place::{Place, is_refused, serve};

crate::suite!(a_row_without_a_key_is_refused_where_it_conflicts_on_another);

const IGNORED: &str = "!ignored the database did not store the row and reported no error";

/// An insert of these columns, where a row with the same values in `key` may be there.
fn keyed(columns: &[&str], key: &[&str]) -> Job {
    let mut action = Action::insert("kinds", columns.iter().copied());
    if let Action::Insert { on_conflict, .. } = &mut action {
        *on_conflict = OnConflict::Nothing(key.iter().map(|&it| it.to_owned()).collect());
    }
    Job { retry: Duration::ZERO, ..Job::new(action) }
}

fn a_row_without_a_key_is_refused_where_it_conflicts_on_another(place: &Place) {
    for key in [&["k"][..], &["a", "k"]] {
        for ack in ["ok", "ok {rows}"] {
            place.run(&format!(
                "create table kinds (a integer not null, k integer, u integer, \
                 unique ({}), unique (u))",
                key.join(", ")
            ));
            let job = Job {
                ack: ack.to_owned(),
                dead: Some("dead".to_owned()),
                ..keyed(&["a", "k", "u"], key)
            };
            let mut handler = place.handler(job.clone());
            let row = |k: &str, u: usize| format!(r#"{{"a":1,"k":{k},"u":{u}}}"#);
            assert!(serve(&mut handler, [row("null", 1)])[0].starts_with("ok"));
            let answers = serve(&mut handler, [row("null", 1), row("7", 2), row("null", 3)]);
            assert!(is_refused(&answers[0]), "{key:?}: {answers:?}");
            assert!(answers[1].starts_with("ok") && answers[2].starts_with("ok"), "{answers:?}");
            let mut letters = place.options(job).unwrap().letters().unwrap();
            let letter = all(&mut letters).remove(0);
            let again = letters.retry(&letter).unwrap();
            assert!(matches!(again, Retried::Refused(_)), "{key:?}: {again:?}");
            assert_eq!(place.run("select count(*) from dead"), ["1"]);
            place.run("drop table kinds");
            place.run("drop table dead");
        }
    }
}

/// Makes a trigger that stores 1, 11 and 21 under the same key.
fn shorten_keys(place: &Place) {
    place.run(&match place.is_postgres() {
        true => "create or replace function f() returns trigger language plpgsql as $$ begin \
                 new.id = new.id % 10; return new; end $$; \
                 create trigger t before insert on kinds for each row execute function f()"
            .to_owned(),
        false => "create trigger t before insert on kinds for each row set new.id = new.id % 10"
            .to_owned(),
    });
}

mod on_servers {
    crate::suite_of_servers!(a_row_whose_key_a_trigger_changes_is_not_acknowledged_for_another,);
    use super::a_row_whose_key_a_trigger_changes_is_not_acknowledged_for_another;
}

fn a_row_whose_key_a_trigger_changes_is_not_acknowledged_for_another(place: &Place) {
    for (ack, [there, new]) in [("ok", ["ok", "ok"]), ("ok {rows}", ["ok 0", "ok 1"])] {
        place.run("create table kinds (id bigint primary key, v integer)");
        let job = Job {
            ack: ack.to_owned(),
            dead: Some("dead".to_owned()),
            ..keyed(&["id", "v"], &["id"])
        };
        let row = |id: usize| format!(r#"{{"id":{id},"v":{id}}}"#);
        let mut handler = place.handler(job.clone());
        assert_eq!(serve(&mut handler, [row(1)]), [new]);
        // Made while the pool serves.
        shorten_keys(place);
        assert_eq!(serve(&mut handler, [row(11)]), [IGNORED], "{ack}");
        let answers = serve(&mut handler, [row(1), row(21), row(12), row(3), row(22), row(3)]);
        let expected = [there, IGNORED, new, new, IGNORED, there];
        assert_eq!(answers, expected, "{ack}");
        assert_eq!(place.run("select v from kinds order by v"), ["1", "3", "12"], "{ack}");
        assert_eq!(place.run("select count(*) from dead"), ["3"], "{ack}");
        let mut letters = place.options(job).unwrap().letters().unwrap();
        for letter in all(&mut letters) {
            let again = letters.retry(&letter).unwrap();
            assert!(matches!(again, Retried::Refused(_)), "{again:?}");
        }
        place.run("drop table kinds");
        place.run("drop table dead");
    }
}

/// An update that a trigger changes counts as two rows, and one that it does not as none.
#[test]
fn counts_of_updates_do_not_stand_for_rows_that_are_not_stored() {
    let place = Place::mariadb();
    place.run("create table kinds (id bigint primary key, v integer)");
    place.run("insert into kinds values (1, 0), (2, 0)");
    place.run("create trigger t before insert on kinds for each row set new.id = new.id % 10");
    place.run(
        "create trigger u before update on kinds for each row set new.v = if(new.id = 1, 7, new.v)",
    );
    let mut handler = place.handler(keyed(&["id", "v"], &["id"]));
    let answers = serve(&mut handler, [r#"{"id":11,"v":1}"#, r#"{"id":12,"v":1}"#]);
    assert_eq!(answers, [IGNORED; 2]);
}

#[test]
fn a_key_is_found_as_mariadb_stores_it() {
    let place = Place::mariadb();
    for (of, value) in [
        ("decimal(10,2)", "1.0"),
        ("decimal(30,2)", "1234567890123456789012345678.5"),
        ("bigint", "9007199254740993"),
        ("bigint unsigned", "18446744073709551615"),
        ("float", "0.1"),
        ("double", "0.1"),
        ("datetime(3)", "\"2026-01-01T11:00:00.120000+01:00\""),
        ("timestamp(0)", "\"2026-01-01 10:00:00\""),
        ("date", "\"20260131\""),
        ("time(1)", "\"10:00:00.5\""),
        ("year", "2026"),
        ("enum('a', 'b')", "\"b\""),
        ("set('a', 'b')", "\"a,b\""),
        ("bit(8)", "5"),
        ("varchar(9)", "\"ab \""),
        ("varchar(9) character set latin1", "\"ä\""),
        ("varchar(9) character set utf8mb4 collate utf8mb4_bin", "\"€😀\""),
        ("char(3)", "\"a\""),
        ("binary(4)", "\"AP8=\""),
        ("varbinary(4)", "\"AP8=\""),
    ] {
        place.run(&format!("create table kinds (id {of} primary key, v integer)"));
        let mut handler = place.handler(keyed(&["id", "v"], &["id"]));
        let row = || format!(r#"{{"id":{value},"v":1}}"#);
        assert_eq!(serve(&mut handler, [row()]), ["ok"], "{of}");
        assert_eq!(serve(&mut handler, [row()]), ["ok"], "{of}, alone");
        assert_eq!(serve(&mut handler, [row(), row()]), ["ok"; 2], "{of}");
        assert_eq!(place.run("select count(*) from kinds"), ["1"], "{of}");
        place.run("drop table kinds");
    }
    // As many as several statements and several lookups have.
    place.run("create table kinds (id bigint primary key, v integer)");
    let mut handler = place.handler(keyed(&["id", "v"], &["id"]));
    let rows = |from: usize| (from..from + 1777).map(|id| format!(r#"{{"id":{id},"v":1}}"#));
    assert_eq!(serve(&mut handler, rows(0)), vec!["ok"; 1777]);
    assert_eq!(serve(&mut handler, rows(1)), vec!["ok"; 1777]);
    assert_eq!(place.run("select count(*) from kinds"), ["1778"]);
}
