//! Rows that a database takes and does not store, in ways that its counts do not show.

use std::time::Duration;

use database::{Action, Job, OnConflict, Retried};

use crate::letters::all;
use crate::place::{Place, hit, insert, is_refused, serve};
use crate::server::Kind;

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
    crate::suite_of_servers!(
        a_row_whose_key_a_trigger_changes_is_not_acknowledged_for_another,
        a_counter_keeps_a_zero,
    );
    use super::{
        a_counter_keeps_a_zero, a_row_whose_key_a_trigger_changes_is_not_acknowledged_for_another,
    };
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
        ("uuid", "\"123e4567-e89b-12d3-a456-426655440000\""),
        ("inet6", "\"::1\""),
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

fn a_counter_keeps_a_zero(place: &Place) {
    let counter = match place.is_postgres() {
        true => "id bigserial primary key",
        false => "id bigint auto_increment primary key",
    };
    place.run(&format!("create table kinds ({counter}, v integer)"));
    let job = Job { ack: "ok {id}".to_owned(), ..Job::new(Action::insert("kinds", ["id", "v"])) };
    let mut handler = place.handler(job);
    let rows = [r#"{"id":0,"v":1}"#, r#"{"id":5,"v":2}"#];
    assert_eq!(serve(&mut handler, rows), ["ok 0", "ok 5"]);
    assert_eq!(place.run("select id, v from kinds order by v"), ["0|1", "5|2"]);
}

/// The rule stores as many rows as were sent, but not one for each.
#[test]
fn rows_are_sent_one_by_one_from_a_rule_on_that_was_made_later() {
    let place = Place::postgres();
    place.with_hits().run("create table copies (id bigint)");
    for ack in ["ok", "ok {rows}"] {
        let mut handler = place.handler(Job { ack: ack.to_owned(), ..insert() });
        assert!(serve(&mut handler, [hit(1)])[0].starts_with("ok"));
        place.run(
            "create rule r as on insert to hits do instead insert into copies \
             select new.id from generate_series(1, new.status)",
        );
        let row = |id: usize, n: usize| format!(r#"{{"id":{id},"path":"/","status":{n}}}"#);
        let answers = serve(&mut handler, [row(10, 0), row(11, 2)]);
        assert_eq!(answers[0], IGNORED, "{answers:?}");
        assert!(answers[1].starts_with("ok"), "{answers:?}");
        assert_eq!(place.run("select id from copies"), ["11"; 2]);
        place.run("drop rule r on hits; delete from hits; delete from copies");
    }
}

#[test]
fn a_rule_at_the_server_of_a_foreign_table_does_not_hide_a_row() {
    let (place, remote) = (Place::postgres(), Place::postgres());
    remote.run(
        "create table kinds (id bigint, v integer); create table copies (id bigint); \
         create rule r as on insert to kinds do instead insert into copies \
         select new.id from generate_series(1, new.v)",
    );
    place.run(&format!(
        "create extension postgres_fdw; create server far foreign data wrapper postgres_fdw \
         options (host '127.0.0.1', port '{}', dbname '{}', batch_size '100'); \
         create user mapping for public server far \
         options (user 'roadstead', password_required 'false')",
        remote.port(),
        remote.way_in().database
    ));
    let partitioned = "create table kinds (id bigint, v integer) partition by list (v); \
                       create table near partition of kinds for values in (5)";
    let far = "server far options (table_name 'kinds')";
    let behind_a_view = "create view kinds as select * from far";
    for table in [
        format!("create foreign table kinds (id bigint, v integer) {far}"),
        format!("{partitioned}; create foreign table f partition of kinds default {far}"),
        format!("create foreign table far (id bigint, v integer) {far}; {behind_a_view}"),
        // Attached while the pool serves.
        partitioned.to_owned(),
    ] {
        place.run(&table);
        let job = Job { retry: Duration::ZERO, ..Job::new(Action::insert("kinds", ["id", "v"])) };
        let mut handler = place.handler(job);
        if table == partitioned {
            assert_eq!(serve(&mut handler, [r#"{"id":1,"v":5}"#]), ["ok"]);
            place.run(&format!("create foreign table f partition of kinds default {far}"));
        }
        let row = |id: usize, v: usize| format!(r#"{{"id":{id},"v":{v}}}"#);
        // PostgreSQL crashes where the other server stores several rows for one and was sent no others.
        let answers = serve(&mut handler, [row(1, 0), row(2, 1), row(3, 0), row(4, 1)]);
        assert_eq!(answers, [IGNORED, "ok", IGNORED, "ok"], "{table}");
        assert_eq!(remote.run("select id from copies"), ["2", "4"], "{table}");
        remote.run("delete from copies");
        let kind = match table.contains("create view") {
            true => "drop view kinds; drop foreign table far",
            false if table.starts_with("create foreign") => "drop foreign table kinds",
            false => "drop table kinds",
        };
        place.run(kind);
    }
}

/// Without its key the statement would store rows twice.
#[test]
fn rows_are_not_stored_where_their_key_was_dropped() {
    let place = Place::mariadb();
    for (made, dropped) in [
        ("primary key (id)", "drop primary key"),
        ("unique k (id)", "drop key k"),
        ("unique k (id)", "drop key k, add key k (id)"),
        ("unique k (id), key o (id)", "drop key k"),
    ] {
        for columns in ["id", "id, v"] {
            // The flags of the columns do not show this one.
            if columns != "id" && dropped.contains("add") {
                continue;
            }
            let made = made.replace("(id)", &format!("({columns})"));
            let dropped = dropped.replace("(id)", &format!("({columns})"));
            place.run(&format!(
                "create table kinds (id bigint not null, v integer not null, {made})"
            ));
            let key: Vec<&str> = columns.split(", ").collect();
            let mut handler = place.handler(keyed(&["id", "v"], &key));
            let row = |id: usize| format!(r#"{{"id":{id},"v":1}}"#);
            assert_eq!(serve(&mut handler, [row(1)]), ["ok"]);
            place.run(&format!("alter table kinds {dropped}"));
            let answers = serve(&mut handler, [row(1), row(2), row(2)]);
            let said = format!("{made}, {dropped}: {answers:?}");
            assert!(answers.iter().all(|it| it.starts_with("!database ")), "{said}");
            assert_eq!(place.run("select count(*) from kinds"), ["1"], "{said}");
            place.run("drop table kinds");
        }
    }
}

#[test]
fn boxes_are_stored_with_any_number_of_others() {
    let place = Place::postgres();
    place.run("create table kinds (id bigint, b box)");
    let mut handler = place.handler(Job::new(Action::insert("kinds", ["id", "b"])));
    let rows = (0..60).map(|id| format!(r#"{{"id":{id},"b":"(1,1),(0,{id})"}}"#));
    assert_eq!(serve(&mut handler, rows), vec!["ok"; 60]);
    assert_eq!(place.run("select count(distinct b::text) from kinds"), ["60"]);
}

#[test]
fn numbers_are_read_with_all_digits_whatever_the_server_is_set_to() {
    let place = Place::postgres();
    let Place::Server(server, name) = &place else { unreachable!("it is a server") };
    assert_eq!(server.kind, Kind::Postgres);
    server.run("postgres", &format!("alter database {name} set extra_float_digits = 0"));
    let query = database::Query::new(
        "select array[0.1::float8 + 0.2] as f, to_json(0.1::float8 + 0.2) as j where :x::int = 1",
    );
    let mut handler = place.handler(Job::new(Action::Query(query)));
    let read = r#"[{"f":[0.30000000000000004],"j":0.30000000000000004}]"#;
    assert_eq!(serve(&mut handler, [r#"{"x":1}"#]), [read]);
}
