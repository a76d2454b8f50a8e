//! Rows that a database accepts and does not store, in ways that its counts do not show.

use std::time::Duration;

use database::{Action, Job, OnConflict, Retried};

use crate::letters::all;
use crate::place::{Place, hit, insert, is_refused, serve};
use crate::server::Kind;

crate::suite!(a_row_without_a_key_is_refused_where_it_conflicts_on_another);

const IGNORED: &str = "!ignored the database did not store the row and reported no error";

/// An insert of these columns. A row with the same values in `key` may already exist.
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

/// Creates a trigger that stores 1, 11 and 21 under the same key.
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
        // Created while the pool is running.
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

/// An update that a trigger changes counts as two rows, and one that it does not change as none.
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

/// A type of column, a value, the same one in another notation, and another value.
type Keys = &'static [(&'static str, &'static str, &'static str, &'static str)];

const OF_MARIADB: Keys = &[
    ("boolean", "true", "1", "0"),
    ("tinyint unsigned", "255", "\"255\"", "254"),
    ("smallint", "-5", "\"-5\"", "5"),
    ("mediumint zerofill", "7", "\"007\"", "8"),
    ("int unsigned", "1e3", "1000", "100"),
    ("bigint", "9007199254740993", "\"9007199254740993\"", "9007199254740992"),
    ("bigint unsigned", "18446744073709551615", "\"18446744073709551615\"", "18446744073709551614"),
    ("decimal(10,2)", "1.0", "\"1.00\"", "1.01"),
    ("decimal(30,2)", "1234567890123456789012345678.5", "\"1234567890123456789012345678.50\"", "1"),
    ("decimal(12,0) unsigned zerofill", "5", "\"5\"", "50"),
    ("decimal(10,3)", "15e-1", "1.5", "15"),
    ("float", "0.1", "\"0.1\"", "0.2"),
    ("float", "33554432", "\"33554432\"", "33554436"),
    ("float", "0.1234567", "\"0.1234567\"", "0.1234568"),
    ("float", "1e10", "10000000000", "1e9"),
    ("float unsigned", "2.5", "\" 2.5\"", "2"),
    ("float(7,2)", "1234.57", "\"1234.57\"", "1234.56"),
    ("double", "0.1", "\"1e-1\"", "0.2"),
    ("double", "1e300", "\"1e300\"", "1e299"),
    ("double(10,2)", "3.28", "\"3.28\"", "3.27"),
    ("double(10,2)", "-3.28", "\"-3.280\"", "3.28"),
    ("double(10,2)", "19.99", "\"19.99\"", "19.98"),
    ("double(20,3)", "4503599627.137", "\"4503599627.137\"", "4503599627.136"),
    ("bit(1)", "1", "true", "false"),
    ("bit(8)", "5", "\"\\u0005\"", "6"),
    ("bit(8)", "\"5\"", "53", "5"),
    ("bit(64)", "\"zzzzzzzz\"", "8825501086245354106", "8825501086245354107"),
    ("date", "\"20260131\"", "\"2026-01-31\"", "\"2026-01-30\""),
    ("time", "\"10:00:00\"", "\"100000\"", "\"10:00:01\""),
    ("time(1)", "\"-10:00:00.5\"", "\"-10:00:00.50\"", "\"10:00:00.5\""),
    (
        "datetime(3)",
        "\"2026-01-01T11:00:00.120000+01:00\"",
        "\"2026-01-01 10:00:00.12\"",
        "\"2026-01-01 11:00:00.12\"",
    ),
    ("datetime", "\"2026-01-01 00:00:00\"", "\"2026-01-01\"", "\"2026-01-02\""),
    (
        "timestamp(0)",
        "\"2026-01-01 10:00:00\"",
        "\"20260101100000.000\"",
        "\"2026-01-01 10:00:01\"",
    ),
    (
        "timestamp(6)",
        "\"2026-01-01 10:00:00.000001\"",
        "\"2026-01-01T10:00:00.000001Z\"",
        "\"2026-01-01\"",
    ),
    ("year", "2026", "\"2026\"", "2025"),
    ("year", "0", "0", "2000"),
    ("enum('a', 'b')", "\"b\"", "\"b\"", "\"a\""),
    ("enum('a', '2', '?', 'é')", "\"é\"", "\"é\"", "\"2\""),
    ("set('a', 'b')", "\"a,b\"", "\"b,a,b\"", "\"b\""),
    ("set('a', '?', 'b')", "\"a,?\"", "\"?,a,a\"", "\"b,?\""),
    ("set('a', 'b')", "\"\"", "\"\"", "\"b\""),
    ("varchar(9)", "\"ab \"", "\"AB\"", "\"a\""),
    ("varchar(9) collate utf8mb4_nopad_bin", "\"ab \"", "\"ab \"", "\"ab\""),
    ("varchar(9) character set latin1", "\"ä\"", "\"Ä\"", "\"c\""),
    ("varchar(9) character set utf8mb4 collate utf8mb4_bin", "\"€😀\"", "\"€😀 \"", "\"€\""),
    ("varchar(9) character set utf16", "\"é\"", "\"É\"", "\"f\""),
    ("char(3)", "\"a\"", "\"A  \"", "\"b\""),
    ("char(3) collate utf8mb4_nopad_bin", "\"a \"", "\"a\"", "\"A\""),
    ("char(3) collate utf8mb4_general_nopad_ci", "\"a  \"", "\"A\"", "\" a\""),
    ("char(3) character set ucs2 collate ucs2_nopad_bin", "\"ä \"", "\"ä\"", "\"a\""),
    ("tinytext", "\"ab \"", "\"AB\"", "\"a\""),
    ("text", "\"abc\"", "\"ABC\"", "\"ab\""),
    ("json", "{\"a\":1}", "{\"a\":1}", "[]"),
    ("binary(4)", "\"AP8=\"", "\"AP8AAA==\"", "\"AP8AAQ==\""),
    ("varbinary(4)", "\"AP8=\"", "\"AP8=\"", "\"AP8A\""),
    ("blob", "\"AP8=\"", "\"AP8=\"", "\"AP8A\""),
    (
        "uuid",
        "\"123e4567-e89b-12d3-a456-426655440000\"",
        "\"123E4567E89B12D3A456426655440000\"",
        "\"123e4567-e89b-12d3-a456-426655440001\"",
    ),
    ("inet6", "\"::1\"", "\"0:0:0:0:0:0:0:1\"", "\"::2\""),
    ("inet4", "\"1.2.3.4\"", "\"1.2.3.4\"", "\"1.2.3.5\""),
];

const OF_POSTGRES: Keys = &[
    ("boolean", "true", "\"yes\"", "false"),
    ("smallint", "-5", "\"-5\"", "5"),
    ("bigint", "9007199254740993", "\"9007199254740993\"", "9007199254740992"),
    ("oid", "4294967295", "\"4294967295\"", "1"),
    ("numeric", "1.0", "\"1.00\"", "1.01"),
    ("numeric(30,2)", "1234567890123456789012345678.5", "\"1234567890123456789012345678.50\"", "1"),
    ("numeric(5,-2)", "1234", "1200", "1300"),
    ("real", "0.1", "\"1e-1\"", "0.2"),
    ("double precision", "0.1", "\"1e-1\"", "0.2"),
    ("money", "\"1.005\"", "\"$1.01\"", "\"$1.02\""),
    ("char(3)", "\"a \"", "\"a\"", "\"b\""),
    ("varchar(3)", "\"a \"", "\"a \"", "\"a\""),
    ("name", "\"a\"", "\"a\"", "\"b\""),
    ("\"char\"", "\"ab\"", "\"a\"", "\"b\""),
    ("text collate nocase", "\"ab\"", "\"AB\"", "\"a\""),
    ("far.citext", "\"ab\"", "\"AB\"", "\"a\""),
    ("short", "\"ab \"", "\"ab\"", "\"a\""),
    ("far.citext[]", "\"{a,B}\"", "[\"A\",\"b\"]", "\"{a}\""),
    ("bytea", "\"AP8=\"", "\"AP8=\"", "\"AP8A\""),
    ("bit(3)", "\"101\"", "\"101\"", "\"100\""),
    ("bit varying(3)", "\"10\"", "\"10\"", "\"100\""),
    ("date", "\"20260131\"", "\"2026-01-31\"", "\"2026-01-30\""),
    ("time(1)", "\"10:00:00.5\"", "\"10:00:00.50\"", "\"10:00:00\""),
    ("timetz(0)", "\"10:00:00+02:00\"", "\"10:00:00+02\"", "\"10:00:00Z\""),
    (
        "timestamp(3)",
        "\"2026-01-01T11:00:00.120000+01:00\"",
        "\"2026-01-01 10:00:00.12\"",
        "\"2026-01-01 11:00:00.12\"",
    ),
    (
        "timestamptz(0)",
        "\"2026-01-01T10:00:00Z\"",
        "\"2026-01-01T11:00:00+01:00\"",
        "\"2026-01-01Z\"",
    ),
    ("interval(0)", "\"1.6 s\"", "\"2 s\"", "\"1 s\""),
    (
        "uuid",
        "\"123e4567-e89b-12d3-a456-426655440000\"",
        "\"123E4567E89B12D3A456426655440000\"",
        "\"123e4567-e89b-12d3-a456-426655440001\"",
    ),
    ("inet", "\"10.0.0.1/32\"", "\"10.0.0.1\"", "\"10.0.0.2\""),
    ("cidr", "\"10.0.0.0/8\"", "\"10/8\"", "\"10.0.0.0/9\""),
    ("macaddr", "\"08:00:2b:01:02:03\"", "\"08002b010203\"", "\"08:00:2b:01:02:04\""),
    ("jsonb", "{\"a\": 1}", "{\"a\":1.0}", "{\"a\":2}"),
    ("mood", "\"good\"", "\"good\"", "\"bad\""),
    ("int4range", "\"[1,3)\"", "\"[1,2]\"", "\"[1,3]\""),
    ("numeric(10,2)[]", "[1.5]", "\"{1.50}\"", "[1.6]"),
    ("pair", "\"(1,a)\"", "\"(01,a)\"", "\"(1,b)\""),
];

/// A row is acknowledged if it already exists, in any notation of its key, and rejected if it conflicts only on another
/// key.
fn keys_are_found(place: &Place, keys: Keys) {
    let mut wrong = Vec::new();
    for (of, value, same, other) in keys {
        place.run(&format!("create table kinds (id {of} not null, v integer unique, unique (id))"));
        let mut handler = place.handler(keyed(&["id", "v"], &["id"]));
        let row = |id: &str, v: usize| format!(r#"{{"id":{id},"v":{v}}}"#);
        let mut answers = serve(&mut handler, [row(value, 1)]);
        let table = || place.is_mariadb().then(|| place.run("checksum table kinds extended"));
        let before = table();
        for id in [value, same] {
            answers.extend(serve(&mut handler, [row(id, 2)]));
        }
        answers.extend(serve(&mut handler, [row(value, 3), row(same, 4)]));
        let conflict = serve(&mut handler, [row(other, 1)]).remove(0);
        let count = place.run("select count(*) from kinds").remove(0);
        let is_same = table() == before;
        if answers != ["ok"; 5] || !is_refused(&conflict) || count != "1" || !is_same {
            wrong.push(format!("{of} {value}: {answers:?}, {conflict}, {count} rows"));
        }
        place.run("drop table kinds");
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_key_is_found_as_postgres_stores_it() {
    let place = Place::postgres();
    place.run(
        "create schema far; create extension citext schema far; \
         create collation nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false); \
         create domain short as char(3); create type mood as enum ('bad', 'good'); \
         create type pair as (n integer, t text)",
    );
    keys_are_found(&place, OF_POSTGRES);
}

#[test]
fn a_key_is_found_as_mariadb_stores_it() {
    let place = Place::mariadb();
    keys_are_found(&place, OF_MARIADB);
    // More rows than one statement and one lookup contain.
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
        remote.login().database
    ));
    let partitioned = "create table kinds (id bigint, v integer) partition by list (v); \
                       create table near partition of kinds for values in (5)";
    let far = "server far options (table_name 'kinds')";
    let behind_a_view = "create view kinds as select * from far";
    for table in [
        format!("create foreign table kinds (id bigint, v integer) {far}"),
        format!("{partitioned}; create foreign table f partition of kinds default {far}"),
        format!("create foreign table far (id bigint, v integer) {far}; {behind_a_view}"),
        // Attached while the pool is running.
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
        // PostgreSQL crashes if the other server stores several rows for one and was sent no others.
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
            // The flags of the columns do not show this change.
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
