//! Rows that the database does not accept, among accepted ones.

use database::{Action, Job};
use exchange::Factory;

use crate::place::{Place, hit, insert, is_refused, options_of, serve, statement};
use crate::server::Kind;

crate::suite!(
    a_poison_row_in_every_position_is_refused_alone,
    ten_poison_rows_are_refused_and_no_others,
    a_batch_of_nothing_but_poison_stores_nothing,
    each_kind_of_poison_has_its_own_words,
    a_row_that_a_trigger_raises_against_is_refused,
    a_statement_refuses_its_rows_too,
    a_record_that_is_none_is_refused_before_the_database,
);

mod on_servers {
    crate::suite_of_servers!(
        a_bad_value_of_each_type_is_refused_alone,
        a_row_without_a_partition_is_refused_alone,
        whatever_a_trigger_raises_is_the_rows,
        a_value_that_a_function_does_not_take_is_refused_alone,
    );
    use super::{
        a_bad_value_of_each_type_is_refused_alone, a_row_without_a_partition_is_refused_alone,
        a_value_that_a_function_does_not_take_is_refused_alone,
        whatever_a_trigger_raises_is_the_rows,
    };
}

/// Rejected by every database: the path must not be NULL.
fn poison(id: usize) -> String {
    format!(r#"{{"id":{id},"path":null,"status":0}}"#)
}

fn check(place: &Place, job: Job, bad: &[usize], count: usize) {
    place.run("delete from hits");
    let mut handler = place.handler(job);
    let bodies = (0..count).map(|id| if bad.contains(&id) { poison(id) } else { hit(id) });
    let answers = serve(&mut handler, bodies);
    for (id, answer) in answers.iter().enumerate() {
        if bad.contains(&id) {
            assert!(is_refused(answer), "{id} of {count} with {bad:?}: {answer}");
        } else {
            assert_eq!(*answer, format!("ok {id}"), "{count} with {bad:?}");
        }
    }
    let good = (0..count).filter(|id| !bad.contains(id)).map(|id| format!("{id}|/{id}|200"));
    assert_eq!(place.hits().len(), count - bad.len());
    assert!(good.eq(place.hits()), "{count} with {bad:?}");
}

fn a_poison_row_in_every_position_is_refused_alone(place: &Place) {
    place.with_hits();
    // `id` sorts text and numbers alike only up to this number.
    for position in 0..9 {
        check(place, insert(), &[position], 9);
    }
}

fn ten_poison_rows_are_refused_and_no_others(place: &Place) {
    place.with_hits();
    check(place, insert(), &[0, 1, 2, 17, 31, 32, 50, 77, 98, 99], 100);
}

fn a_batch_of_nothing_but_poison_stores_nothing(place: &Place) {
    place.with_hits();
    check(place, insert(), &[0, 1, 2, 3, 4], 5);
    check(place, insert(), &[0], 1);
}

fn each_kind_of_poison_has_its_own_words(place: &Place) {
    place.with_hits();
    let mut handler = place.handler(insert());
    let record = |id: &str, path: &str, status: &str| {
        format!(r#"{{"id":{id},"path":{path},"status":{status}}}"#)
    };
    let long = format!("\"{}\"", "x".repeat(21));
    let answers = serve(
        &mut handler,
        [
            hit(1),
            record("1", "\"/twice\"", "0"),
            record("2", "\"/2\"", "\"no number\""),
            record("3", &long, "0"),
            record("99999999999999999999999", "\"/4\"", "0"),
            hit(5),
        ],
    );
    assert_eq!((&*answers[0], &*answers[5]), ("ok 1", "ok 5"));
    assert!(is_refused(&answers[1]), "{answers:?}");
    if place.is_sqlite() {
        // Without `strict` SQLite stores any value; its own tests cover the rest.
        return;
    }
    for answer in &answers[1..5] {
        assert!(is_refused(answer), "{answers:?}");
    }
    let words = if place.is_postgres() {
        ["duplicate key value", "invalid input syntax", "value too long", "out of range"]
    } else {
        ["Duplicate entry", "Incorrect integer value", "Data too long", "Out of range value"]
    };
    for (answer, words) in answers[1..5].iter().zip(words) {
        assert!(answer.contains(words), "{answer} has {words}");
    }
    assert_eq!(place.hits(), ["1|/1|200", "5|/5|200"]);
}

fn a_row_that_a_trigger_raises_against_is_refused(place: &Place) {
    place.with_hits();
    if place.is_sqlite() {
        place.run(
            "create trigger t before insert on hits when new.status = 13 \
             begin select raise(abort, 'unlucky'); end",
        );
    } else if place.is_postgres() {
        place.run(
            "create function f() returns trigger language plpgsql as $$ begin \
             if new.status = 13 then raise exception 'unlucky'; end if; return new; end $$; \
             create trigger t before insert on hits for each row execute function f()",
        );
    } else {
        place.run(
            "create trigger t before insert on hits for each row \
             if new.status = 13 then signal sqlstate '45000' set message_text = 'unlucky'; end if",
        );
    }
    let mut handler = place.handler(insert());
    let unlucky = r#"{"id":2,"path":"/2","status":13}"#.to_owned();
    let code = match place {
        it if it.is_sqlite() => "1811",
        it if it.is_postgres() => "P0001",
        _ => "1644",
    };
    let refused = format!("!row unlucky ({code})");
    assert_eq!(serve(&mut handler, [hit(1), unlucky, hit(3)]), ["ok 1", &refused, "ok 3"]);
    assert_eq!(place.hits(), ["1|/1|200", "3|/3|200"]);
}

fn a_statement_refuses_its_rows_too(place: &Place) {
    place.with_hits();
    let sql = "insert into hits (id, path, status) values (:id, :path, :status)";
    for bad in [&[0][..], &[8], &[3, 4], &[0, 2, 4, 6, 8]] {
        check(place, statement(sql), bad, 9);
    }
    // More than are sent together, if they are sent together.
    check(place, statement(sql), &[0, 255, 256, 299], 300);
}

fn a_record_that_is_none_is_refused_before_the_database(place: &Place) {
    place.run("create table one (id bigint)");
    let mut handler = place.handler(Job::new(Action::insert("one", ["id"])));
    let answers =
        serve(&mut handler, ["", "x", "[]", r#"{"i":1}"#, r#"{"id":1,"id":2}"#, r#"{"id":3}"#]);
    assert!(
        answers[..5].iter().all(|it| it.starts_with("!record ") || is_refused(it)),
        "{answers:?}"
    );
    assert_eq!(answers[3], "!row the record has no `id`");
    assert_eq!(answers[5], "ok");
    assert_eq!(place.run("select count(*) from one"), ["1"]);
}

/// Stores a bad value between two good ones in `kinds (id, v)`, with an insert and with a statement.
fn refuses_alone(place: &Place, what: &str, good: &str, bad: &str) {
    let sql = "insert into kinds (id, v) values (:id, :v)";
    let insert = Job { ack: "ok".to_owned(), ..Job::new(Action::insert("kinds", ["id", "v"])) };
    let statement = Job { action: Action::Statement(sql.to_owned()), ..insert.clone() };
    for job in [insert, statement] {
        refuses_alone_by(place, job, what, good, bad);
    }
}

fn refuses_alone_by(place: &Place, job: Job, what: &str, good: &str, bad: &str) {
    place.run("delete from kinds");
    let mut handler = place.handler(job);
    let row = |id: usize, value: &str| format!(r#"{{"id":{id},"v":{value}}}"#);
    let answers = serve(&mut handler, [row(1, good), row(2, bad), row(3, good)]);
    assert!(is_refused(&answers[1]), "{what}: {answers:?}");
    assert_eq!([&*answers[0], &*answers[2]], ["ok"; 2], "{what}: {answers:?}");
    assert_eq!(place.run("select id from kinds order by id"), ["1", "3"], "{what}");
}

fn a_bad_value_of_each_type_is_refused_alone(place: &Place) {
    let enumeration = if place.is_postgres() {
        place.run("create type letter as enum ('a', 'b')");
        "letter"
    } else {
        "enum('a', 'b')"
    };
    for (of, good, bad) in [
        ("double precision", "1.5", r#""abc""#),
        ("double precision", "1.5", r#""1.5x""#),
        ("decimal(5, 2)", "1.5", r#""abc""#),
        ("integer", "1", r#""abc""#),
        ("integer", "1", r#""1x""#),
        ("smallint", "1", "70000"),
        (enumeration, r#""a""#, r#""c""#),
        ("date", r#""2026-11-22""#, r#""2026-02-30""#),
        ("time", r#""12:00:00""#, r#""soon""#),
        ("timestamp", r#""2026-11-22 12:00:00""#, r#""never""#),
        ("boolean", "true", r#""perhaps""#),
        ("uuid", r#""6ccd780c-baba-1026-9564-5b8c656024db""#, r#""6ccd""#),
        ("char(3)", r#""abc""#, r#""abcd""#),
        ("varchar(3)", r#""abc""#, r#""abcd""#),
    ] {
        place.run(&format!("create table kinds (id bigint primary key, v {of})"));
        refuses_alone(place, of, good, bad);
        place.run("drop table kinds");
    }
}

fn a_row_without_a_partition_is_refused_alone(place: &Place) {
    if place.is_postgres() {
        place.run(
            "create table kinds (id bigint, v integer) partition by range (v); \
             create table low partition of kinds for values from (0) to (10)",
        );
    } else {
        place.run(
            "create table kinds (id bigint, v integer) \
             partition by range (v) (partition low values less than (10))",
        );
    }
    refuses_alone(place, "partition", "1", "10");
}

fn whatever_a_trigger_raises_is_the_rows(place: &Place) {
    place.run("create table kinds (id bigint primary key, v integer)");
    let (make, states): (_, &[&str]) = if place.is_postgres() {
        place
            .run("create function f() returns trigger language plpgsql as 'begin return new; end'");
        place.run("create trigger t before insert on kinds for each row execute function f()");
        // No case of a CASE; an unassigned state; an unsupported feature; no data; the state of a cursor.
        (
            "create or replace function f() returns trigger language plpgsql as $$ begin \
          if new.v = 13 then raise exception 'unlucky' using errcode = 'STATE'; end if; \
          return new; end $$",
            &["20000", "MY001", "0A000", "02000", "24000", "P0001"],
        )
    } else {
        (
            "create or replace trigger t before insert on kinds for each row if new.v = 13 then \
          signal sqlstate 'STATE' set message_text = 'unlucky'; end if",
            &["MY001", "02000", "20000", "08001", "45000"],
        )
    };
    for state in states {
        place.run(&make.replace("STATE", state));
        refuses_alone(place, state, "1", "13");
    }
}

fn a_value_that_a_function_does_not_take_is_refused_alone(place: &Place) {
    place.run("create table kinds (id bigint primary key, v integer)");
    let sql = if place.is_postgres() {
        // 0A000, the state of an unsupported feature.
        "insert into kinds (id, v) values (:id, cast(cast(:v as numeric) as integer))"
    } else {
        "insert into kinds (id, v) values (:id, exp(:v))"
    };
    let bad = if place.is_postgres() { r#""NaN""# } else { "1000" };
    let job = Job { ack: "ok".to_owned(), ..statement(sql) };
    refuses_alone_by(place, job, "function", "1", bad);
}

#[test]
fn a_row_that_row_level_security_rejects_is_refused_alone() {
    let place = Place::postgres();
    place.run(
        "create table kinds (id bigint primary key, v integer); \
         alter table kinds enable row level security; alter table kinds force row level security; \
         create policy p on kinds using (true) with check (v = 1); \
         do $$ begin if not exists (select from pg_roles where rolname = 'guest') then \
         create role guest login; end if; end $$; \
         grant all on kinds to guest",
    );
    let sql = "insert into kinds (id, v) values (:id, :v)";
    for action in [Action::insert("kinds", ["id", "v"]), Action::Statement(sql.to_owned())] {
        place.run("delete from kinds");
        let login = database::Server { user: "guest".to_owned(), ..place.login() };
        let job = Job { ack: "ok".to_owned(), ..Job::new(action) };
        let options = options_of(Kind::Postgres, login, job).unwrap();
        let mut handler = options.open().unwrap_or_else(|error| panic!("{error}"));
        let row = |id| format!(r#"{{"id":{id},"v":{}}}"#, if id == 7 { 2 } else { 1 });
        let answers = serve(&mut handler, (1..=20).map(row));
        for (answer, id) in answers.iter().zip(1..) {
            let expected = match id {
                7 => "!row new row violates row-level security policy for table \"kinds\" (42501)",
                _ => "ok",
            };
            assert_eq!(answer, expected, "{id}");
        }
        assert_eq!(place.run("select count(*) from kinds"), ["19"]);
    }
}
