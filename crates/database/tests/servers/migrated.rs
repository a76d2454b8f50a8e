//! Tables that are altered while a pool is running.

use std::time::Duration;

use database::{Action, DatabaseError, Job, OnConflict, Query, Server};
use exchange::Factory;

use crate::place::{Place, hit, insert, is_refused, options_of, serve};
use crate::proxy::{Cut, Proxy};
use crate::server::Kind;

crate::suite!(a_query_has_the_columns_that_its_table_has_now);

mod on_servers {
    crate::suite_of_servers!(
        rows_are_judged_by_the_types_that_their_columns_have_now,
        a_column_that_has_gone_is_no_fault_of_the_rows,
        rows_are_not_sent_again_when_their_key_has_gone,
    );
    use super::{
        a_column_that_has_gone_is_no_fault_of_the_rows,
        rows_are_judged_by_the_types_that_their_columns_have_now,
        rows_are_not_sent_again_when_their_key_has_gone,
    };
}

/// An insert and a statement. Neither is ever retried for another reason.
fn jobs() -> [Job; 2] {
    let sql = "insert into kinds (id, v) values (:id, :v)";
    let insert = Job { retry: Duration::ZERO, ..Job::new(Action::insert("kinds", ["id", "v"])) };
    let statement = Job { action: Action::Statement(sql.to_owned()), ..insert.clone() };
    [insert, statement]
}

fn alter(place: &Place, of: &str) {
    place.run(&match place.is_postgres() {
        true => format!("alter table kinds alter column v type {of}"),
        false => format!("alter table kinds modify column v {of}"),
    });
}

fn rows_are_judged_by_the_types_that_their_columns_have_now(place: &Place) {
    let row = |id: usize, v: &str| format!(r#"{{"id":{id},"v":{v}}}"#);
    for job in jobs() {
        place.run("create table kinds (id bigint primary key, v integer)");
        let mut handler = place.handler(job);
        assert_eq!(serve(&mut handler, [row(1, "1")]), ["ok"]);
        alter(place, "bigint");
        let answers = serve(&mut handler, [row(2, "1"), row(3, "3000000000"), row(4, "1e30")]);
        assert_eq!([&*answers[0], &*answers[1]], ["ok"; 2], "{answers:?}");
        assert!(is_refused(&answers[2]), "{answers:?}");
        alter(place, "varchar(20)");
        let long = format!("\"{}\"", "x".repeat(21));
        let answers = serve(&mut handler, [row(5, "\"text\""), row(6, &long), row(7, "7")]);
        assert_eq!([&*answers[0], &*answers[2]], ["ok"; 2], "{answers:?}");
        assert!(is_refused(&answers[1]), "{answers:?}");
        alter(place, "varchar(40)");
        // Another row is rejected first, for a reason that does not depend on the types.
        assert_eq!(serve(&mut handler, [row(7, "1"), row(8, &long)])[1], "ok");
        let stored = place.run("select id from kinds order by id");
        assert_eq!(stored, ["1", "2", "3", "5", "7", "8"]);
        place.run("drop table kinds");
    }
}

fn a_column_that_has_gone_is_no_fault_of_the_rows(place: &Place) {
    for job in jobs() {
        place.run("create table kinds (id bigint primary key, v integer)");
        let mut handler = place.handler(job);
        let row = |id: usize| format!(r#"{{"id":{id},"v":1}}"#);
        assert_eq!(serve(&mut handler, [row(1)]), ["ok"]);
        place.run("alter table kinds drop column v");
        let answers = serve(&mut handler, [row(2), row(3)]);
        assert!(answers.iter().all(|it| it.starts_with("!database ")), "{answers:?}");
        place.run("alter table kinds add column v integer");
        crate::server::eventually("rows are stored again", || {
            let mut handler = place.handler(jobs()[0].clone());
            place.run("delete from kinds");
            serve(&mut handler, [row(4)]) == ["ok"]
        });
        place.run("drop table kinds");
    }
}

fn a_query_has_the_columns_that_its_table_has_now(place: &Place) {
    // One whose columns PostgreSQL sends in binary, and one that must be converted to text.
    for of in ["integer", "decimal(9, 2)"] {
        place.run(&format!(
            "create table kinds (id bigint primary key, a varchar(9), b varchar(9), n {of})"
        ));
        place.run("insert into kinds values (1, 'one', 'two', 3)");
        let query = Query::new("select * from kinds where id = :id");
        let job = Job { retry: Duration::ZERO, ..Job::new(Action::Query(query)) };
        let mut handler = place.handler(job);
        let mut read = || -> serde_json::Value {
            let answer = serve(&mut handler, [r#"{"id":1}"#]).concat();
            serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{of}: {answer}"))
        };
        let names = |rows: &serde_json::Value| -> Vec<String> {
            rows[0].as_object().unwrap().keys().cloned().collect()
        };
        assert_eq!(names(&read()), ["a", "b", "id", "n"], "{of}");
        place.run("alter table kinds drop column a");
        let rows = read();
        assert_eq!(names(&rows), ["b", "id", "n"], "{of}");
        assert_eq!(rows[0]["b"], "two", "{of}");
        place.run("alter table kinds rename column b to c");
        let rows = read();
        assert_eq!(names(&rows), ["c", "id", "n"], "{of}");
        assert_eq!(rows[0]["c"], "two", "{of}");
        if of == "integer" || !place.is_postgres() {
            place.run("alter table kinds add column d varchar(9) default 'four'");
            let rows = read();
            assert_eq!(names(&rows), ["c", "d", "id", "n"], "{of}");
            assert_eq!(rows[0]["d"], "four", "{of}");
        }
        drop(handler);
        place.run("drop table kinds");
    }
}

fn rows_are_not_sent_again_when_their_key_has_gone(place: &Place) {
    place.with_hits();
    let mut job = insert();
    if let Action::Insert { on_conflict, .. } = &mut job.action {
        *on_conflict = OnConflict::Nothing(vec!["id".to_owned()]);
    }
    let proxy = Proxy::to(place.port());
    let mut handler = place.handler_by(&proxy, job);
    place.run(match place.is_postgres() {
        true => "alter table hits drop constraint hits_pkey",
        false => "alter table hits drop primary key",
    });
    proxy.cut(Cut::AfterCommit);
    let answers = serve(&mut handler, [hit(1), hit(2)]);
    // The statement of PostgreSQL names the key; for MariaDB the key is checked before COMMIT.
    assert!(answers.iter().all(|it| it.starts_with("!database ")), "{answers:?}");
    assert!(place.hits().is_empty(), "{answers:?}");
}

/// MariaDB prepares its statements again by itself, and rounds or truncates values that no longer fit.
#[test]
fn values_are_not_changed_by_a_column_that_was_narrowed() {
    let place = Place::mariadb();
    for (before, after, given, expected) in [
        ("decimal(8,3)", "decimal(5,2)", "1.234", "!row column `v`"),
        ("double", "float", "16777217", "!row column `v`"),
        ("double", "double(10,2)", "1.234", "!row column `v`"),
        ("datetime(6)", "datetime", "\"2024-01-01T10:00:00.5\"", "!row column `v`"),
        ("varchar(20)", "varchar(3)", "\"ab    \"", "!row column `v`"),
        ("text", "date", "\"2024-01-01 10:00:00\"", "!row column `v`"),
        ("text", "blob", "\"\\\\x00\"", "!row column `v`"),
        ("text", "json", "\"1\"", "ok"),
        ("longtext", "json", "\"1\"", "ok"),
    ] {
        for job in jobs() {
            place
                .run(&format!("create or replace table kinds (id bigint primary key, v {before})"));
            let mut handler = place.handler(job);
            let row = |id: usize| format!(r#"{{"id":{id},"v":{given}}}"#);
            assert_eq!(serve(&mut handler, [row(1)]), ["ok"], "{before}");
            place.run(&format!("delete from kinds; alter table kinds modify column v {after}"));
            let answers = serve(&mut handler, [row(2), r#"{"id":3,"v":null}"#.to_owned()]);
            assert!(answers[0].starts_with(expected), "{before}, {after}: {answers:?}");
            assert_eq!(answers[1], "ok", "{before}, {after}");
            if expected == "ok" {
                assert_eq!(place.run("select v from kinds where id = 2"), ["\"1\""]);
            }
        }
    }
}

/// PostgreSQL plans its statements again by itself, and rounds or truncates values that no longer fit.
#[test]
fn values_are_not_changed_by_a_column_of_postgresql_that_was_narrowed() {
    let place = Place::postgres();
    for (before, after, given, expected) in [
        ("numeric(8,3)", "numeric(5,2)", "1.234", "!row column `v`"),
        ("numeric", "integer", "1.5", "!row "),
        ("double precision", "real", "0.123456789012", "!row column `v`"),
        ("timestamp", "timestamp(0)", "\"2024-01-01 10:00:00.6\"", "!row column `v`"),
        ("time", "time(0)", "\"10:00:00.6\"", "!row column `v`"),
        ("varchar(20)", "varchar(3)", "\"ab    \"", "!row column `v`"),
        ("text", "varchar(3)", "\"ab    \"", "!row column `v`"),
        ("numeric(8,3)[]", "numeric(5,2)[]", "[1.234]", "!row column `v`"),
        ("numeric(8,3)", "numeric(9,3)", "1.234", "ok"),
    ] {
        let returning = "insert into kinds (id, v) values (:id, :v) returning id as kept";
        let returning =
            Job { action: Action::Statement(returning.to_owned()), ..jobs()[0].clone() };
        for job in jobs().into_iter().chain([returning]) {
            place.run(&format!("create table kinds (id bigint primary key, v {before})"));
            let mut handler = place.handler(job);
            let row = |id: usize| format!(r#"{{"id":{id},"v":{given}}}"#);
            assert_eq!(serve(&mut handler, [row(1)]), ["ok"], "{before}");
            place.run(&format!(
                "delete from kinds; alter table kinds alter column v type {after} using null"
            ));
            let answers = serve(&mut handler, [row(2), r#"{"id":3,"v":null}"#.to_owned()]);
            assert!(answers[0].starts_with(expected), "{before}, {after}: {answers:?}");
            assert_eq!(answers[1], "ok", "{before}, {after}");
            drop(handler);
            place.run("drop table kinds");
        }
    }
}

/// The insert requires no additional rights. Without the right to read the columns, the change is not noticed.
#[test]
fn whoever_may_not_read_a_table_may_insert() {
    let place = Place::mariadb();
    place.with_hits();
    let server = place.login();
    let (name, user) = (&server.database, format!("writer_{}", server.database));
    place.run(&format!(
        "create user {user}@'127.0.0.1'; grant insert on {name}.* to {user}@'127.0.0.1'"
    ));
    let job = Job { retry: Duration::ZERO, ..insert() };
    let options = options_of(Kind::Mariadb, Server { user, ..server }, job);
    let mut handler = options.unwrap().open().unwrap();
    assert_eq!(serve(&mut handler, [hit(1)]), ["ok 1"]);
}

#[test]
fn a_letter_is_not_stored_in_a_column_that_was_narrowed() {
    let place = Place::mariadb();
    place.run("create table kinds (id bigint primary key, v decimal(8,3) check (v <> 0))");
    let [job, _] = jobs();
    let job = Job { dead: Some("dead".to_owned()), ..job };
    let mut handler = place.handler(job.clone());
    assert!(is_refused(&serve(&mut handler, [r#"{"id":1,"v":0.000}"#])[0]));
    drop(handler);
    place.run("update dead set `row` = '{\"id\":1,\"v\":1.234}'");
    let mut letters = place.options(job).unwrap().letters().unwrap();
    let mut found = Vec::new();
    let each = letters.each(|_, letter| {
        found.push(letter);
        Ok::<(), DatabaseError>(())
    });
    each.unwrap();
    place.run("alter table kinds modify column v decimal(5,2)");
    letters.retry(&found[0]).unwrap_err();
    assert_eq!(place.run("select count(*) from kinds"), ["0"]);
    assert_eq!(place.run("select count(*) from dead"), ["1"]);
}

#[test]
fn rows_are_stored_when_the_right_to_read_their_columns_is_revoked() {
    let place = Place::mariadb();
    place.run("create table kinds (id bigint, v integer)");
    let user = place.login().database;
    for host in ["localhost", "127.0.0.1"] {
        place.run(&format!("create user {user}@'{host}'"));
        place.run(&format!("grant select, insert on kinds to {user}@'{host}'"));
    }
    let row = |id: usize| format!(r#"{{"id":{id},"v":1}}"#);
    let mut number = 0;
    for job in jobs() {
        let login = Server { user: user.clone(), ..place.login() };
        let mut handler = options_of(Kind::Mariadb, login, job).unwrap().open().unwrap();
        assert_eq!(serve(&mut handler, [row(1)]), ["ok"]);
        for host in ["localhost", "127.0.0.1"] {
            place.run(&format!("revoke select on kinds from {user}@'{host}'"));
        }
        assert_eq!(serve(&mut handler, [row(2), row(3)]), ["ok"; 2]);
        assert_eq!(serve(&mut handler, [row(4)]), ["ok"]);
        number += 4;
        assert_eq!(place.run("select count(*) from kinds"), [number.to_string()]);
        for host in ["localhost", "127.0.0.1"] {
            place.run(&format!("grant select on kinds to {user}@'{host}'"));
        }
    }
}
