//! Rows that the database does not store although it reports no error.

use database::{Action, Affected, Job, OnConflict};

use crate::place::{Place, hit, insert, serve, statement};

crate::suite!(
    an_update_that_matches_no_row_is_not_acknowledged,
    a_conflict_on_another_key_refuses_the_row,
    a_key_that_the_table_has_not_is_named,
    the_number_of_rows_may_be_acknowledged,
    what_a_statement_returns_may_be_acknowledged,
);

const IGNORED: &str = "!ignored the database did not store the row and reported no error";
const NO_ROW: &str = "!norow the statement changed no row";

/// Creates a trigger that drops the rows with the status 13. MariaDB has no such triggers.
fn dropping(place: &Place) {
    place.with_hits();
    drop_unlucky(place);
}

fn drop_unlucky(place: &Place) {
    place.run(if place.is_sqlite() {
        "create trigger t before insert on hits when new.status = 13 \
         begin select raise(ignore); end"
    } else {
        "create or replace function f() returns trigger language plpgsql as $$ begin \
         if new.status = 13 then return null; end if; return new; end $$; \
         create trigger t before insert on hits for each row execute function f()"
    });
}

fn unlucky(id: usize) -> String {
    format!(r#"{{"id":{id},"path":"/{id}","status":13}}"#)
}

fn check(place: &Place, job: Job, bad: &[usize], count: usize, refusal: &str) {
    place.run("delete from hits");
    let mut handler = place.handler(job);
    let bodies = (0..count).map(|id| if bad.contains(&id) { unlucky(id) } else { hit(id) });
    let answers = serve(&mut handler, bodies);
    for (id, answer) in answers.iter().enumerate() {
        let expected = if bad.contains(&id) { refusal.to_owned() } else { format!("ok {id}") };
        assert_eq!(*answer, expected, "{id} of {count} with {bad:?}");
    }
    assert_eq!(place.run("select count(*) from hits"), [(count - bad.len()).to_string()]);
}

const INSERT: &str = "insert into hits (id, path, status) values (:id, :path, :status)";

fn a_row_that_a_trigger_drops_is_not_acknowledged(place: &Place) {
    dropping(place);
    for (job, refusal) in [(insert(), IGNORED), (statement(INSERT), NO_ROW)] {
        for position in 0..9 {
            check(place, job.clone(), &[position], 9, refusal);
        }
        check(place, job.clone(), &[0, 1, 2, 17, 31, 32, 50, 77, 98, 99], 100, refusal);
        check(place, job.clone(), &[0, 255, 256, 299], 300, refusal);
        check(place, job, &[0, 1, 2, 3, 4], 5, refusal);
    }
}

#[test]
fn sqlite_a_row_that_a_trigger_drops_is_not_acknowledged() {
    a_row_that_a_trigger_drops_is_not_acknowledged(&Place::sqlite());
}

#[test]
fn postgres_a_row_that_a_trigger_drops_is_not_acknowledged() {
    a_row_that_a_trigger_drops_is_not_acknowledged(&Place::postgres());
}

#[test]
fn a_row_that_a_rule_drops_is_not_acknowledged() {
    let place = Place::postgres();
    place
        .with_hits()
        .run("create rule r as on insert to hits where new.status = 13 do instead nothing");
    check(&place, insert(), &[0, 4, 8], 9, IGNORED);
}

#[test]
fn a_row_that_a_rule_stores_twice_does_not_stand_for_one_that_it_drops() {
    let place = Place::postgres();
    place.with_hits().run(
        "create table copies (id bigint, path varchar(20), status integer); \
         create view shown as select * from copies; \
         create rule r as on insert to copies do instead insert into hits \
         select new.id * 10 + n, new.path, new.status from generate_series(1, new.status) n",
    );
    // The copies of each row are counted, behind a view as well.
    for table in ["copies", "shown"] {
        let job = Job {
            action: Action::insert(table, ["id", "path", "status"]),
            ack: "ok {rows}".to_owned(),
            ..insert()
        };
        let row = |id: usize, copies| format!(r#"{{"id":{id},"path":"/","status":{copies}}}"#);
        let check = |copies: &[usize]| {
            place.run("delete from hits");
            let mut handler = place.handler(job.clone());
            let rows = copies.iter().enumerate().map(|(id, copies)| row(id, *copies));
            let answers = serve(&mut handler, rows);
            let expected = copies.iter().map(|copies| match copies {
                0 => IGNORED.to_owned(),
                copies => format!("ok {copies}"),
            });
            assert_eq!(answers, expected.collect::<Vec<_>>(), "{table}: {copies:?}");
            let stored = copies.iter().sum::<usize>().to_string();
            assert_eq!(place.run("select count(*) from hits"), [stored], "{table}: {copies:?}");
        };
        check(&[0, 2]);
        check(&[2, 0, 1, 1]);
        check(&[2, 2, 2]);
        check(&(0..600).map(|id| id % 3).collect::<Vec<_>>());
    }
}

#[test]
fn rows_are_counted_by_a_rule_that_was_made_later() {
    let place = Place::postgres();
    place.with_hits().run("create table copies (id bigint)");
    let mut handler = place.handler(Job { ack: "ok".to_owned(), ..insert() });
    assert_eq!(serve(&mut handler, [hit(1), hit(2)]), ["ok"; 2]);
    place.run(
        "create rule r as on insert to hits do instead insert into copies \
         select new.id from generate_series(1, 2)",
    );
    assert_eq!(serve(&mut handler, [hit(3), hit(4)]), ["ok"; 2]);
    assert_eq!(place.run("select count(*) from copies"), ["4"]);
}

fn an_update_that_matches_no_row_is_not_acknowledged(place: &Place) {
    place.with_hits();
    place.run("insert into hits values (1, '/1', 0), (3, '/3', 7)");
    let update = "update hits set status = :status where id = :id";
    let record = |id, status| format!(r#"{{"id":{id},"status":{status}}}"#);
    let mut handler = place.handler(statement(update));
    // A row that has the value already is matched, and acknowledged.
    let answers = serve(&mut handler, [record(1, 5), record(2, 6), record(3, 7), record(4, 8)]);
    assert_eq!(answers, ["ok 1", NO_ROW, "ok 3", NO_ROW]);
    assert_eq!(place.hits(), ["1|/1|5", "3|/3|7"]);
    let mut handler = place.handler(statement("delete from hits where id = :id"));
    assert_eq!(serve(&mut handler, [record(1, 0), record(1, 0)]), ["ok 1", NO_ROW]);
}

#[test]
fn a_letter_that_a_trigger_drops_is_no_reason_to_keep_its_batch_back() {
    for place in [Place::sqlite(), Place::postgres()] {
        dropping(&place);
        let job = Job { dead: Some("dead".to_owned()), ..insert() };
        let mut handler = place.handler(job.clone());
        assert_eq!(serve(&mut handler, [hit(1), unlucky(2)]), ["ok 1", IGNORED]);
        let code_and_row = "select code, cast(length(\"row\") as char(2)) from dead";
        assert_eq!(place.run(code_and_row), [format!("ignored|{}", unlucky(2).len())]);
        place.run(if place.is_sqlite() {
            "create trigger d before insert on dead begin select raise(ignore); end"
        } else {
            "create function d() returns trigger language plpgsql as $$ begin return null; end $$; \
             create trigger d before insert on dead for each row execute function d()"
        });
        assert_eq!(serve(&mut handler, [unlucky(3), hit(4)]), [IGNORED, "ok 4"]);
        assert_eq!(place.run("select count(*) from dead"), ["1"]);
        let mut letters = place.options(job).unwrap().letters().unwrap();
        let retried = letters.each(|letters, letter| {
            let refused = letters.retry(&letter)?;
            assert!(matches!(refused, database::Retried::Refused(_)), "{refused:?}");
            Ok::<(), database::DatabaseError>(())
        });
        retried.unwrap();
    }
}

/// The usual insert. A row with the same values in `key` may already exist.
fn keyed(key: &[&str]) -> Job {
    let mut job = insert();
    if let Action::Insert { on_conflict, .. } = &mut job.action {
        *on_conflict = OnConflict::Nothing(key.iter().map(|&it| it.to_owned()).collect());
    }
    job
}

fn a_conflict_on_another_key_refuses_the_row(place: &Place) {
    place.with_hits();
    place.run("create unique index paths on hits (path)");
    place.run("insert into hits values (1, '/1', 7), (5, '/5', 7)");
    let with = |id, path: &str| format!(r#"{{"id":{id},"path":"{path}","status":200}}"#);
    let mut handler = place.handler(keyed(&["id"]));
    let bodies = [
        // Exists, with other values outside the key.
        with(1, "/other"),
        with(2, "/5"),
        with(3, "/3"),
        // The previous row has this key.
        with(3, "/again"),
        with(4, "/3"),
        with(6, "/6"),
    ];
    let answers = serve(&mut handler, bodies);
    for (answer, expected) in answers.iter().zip(["ok 1", "!row ", "ok 3", "ok 3", "!row ", "ok 6"])
    {
        assert!(answer.starts_with(expected), "{answers:?}");
    }
    assert_eq!(place.hits(), ["1|/1|7", "3|/3|200", "5|/5|7", "6|/6|200"]);
    let mut handler = place.handler(keyed(&["path"]));
    let answers = serve(&mut handler, [with(1, "/new"), with(9, "/6"), with(7, "/7")]);
    assert!(answers[0].starts_with("!row "), "{answers:?}");
    assert_eq!(answers[1..], ["ok 9", "ok 7"]);
    assert_eq!(place.run("select count(*) from hits"), ["5"]);
}

fn a_key_that_the_table_has_not_is_named(place: &Place) {
    place.with_hits();
    let said = |key: &[&str]| place.options(keyed(key)).and_then(|it| it.check());
    assert!(said(&["id"]).is_ok());
    for key in [&["path"][..], &["id", "path"]] {
        let error = said(key).unwrap_err().to_string();
        let expected = format!(
            "table `hits` has no unique key of exactly the columns ({}); it has (",
            key.join(", ")
        );
        assert!(error.starts_with(&expected) && error.contains("(id)"), "{error}");
        let (_, add) = error.split_once("; add it in the database: ").expect("the SQL");
        place.run(add);
        assert!(said(key).is_ok(), "{add}");
    }
    assert!(said(&["absent"]).unwrap_err().to_string().contains("not of `columns`: `absent`"));
    assert!(said(&[]).unwrap_err().to_string().contains("needs the columns of a `key`"));
}

fn the_number_of_rows_may_be_acknowledged(place: &Place) {
    place.with_hits();
    let counting = |job: Job| Job { ack: "{id} {rows}".to_owned(), ..job };
    let mut handler = place.handler(counting(insert()));
    assert_eq!(serve(&mut handler, [hit(1), hit(2)]), ["1 1", "2 1"]);
    let mut handler = place.handler(counting(keyed(&["id"])));
    assert_eq!(serve(&mut handler, [hit(3), hit(2), hit(4)]), ["3 1", "2 0", "4 1"]);
    let update = "update hits set status = :id where id < :id";
    let mut handler = place.handler(counting(statement(update)));
    let record = |id| format!(r#"{{"id":{id}}}"#);
    let answers = serve(&mut handler, [record(3), record(1), record(9)]);
    assert_eq!(answers, ["3 2", NO_ROW, "9 4"]);
    let any = Job { affected: Affected::Any, ..counting(statement(update)) };
    let answers = serve(&mut place.handler(any), [record(1), record(2)]);
    assert_eq!(answers, ["1 0", "2 1"]);
}

#[test]
fn a_row_is_found_by_the_collation_of_its_key() {
    for place in [Place::sqlite(), Place::postgres()] {
        let (column, key) = match place.is_sqlite() {
            true => (["text", "text collate nocase"], ["collate nocase", "collate binary"]),
            false => {
                place.run(
                    "create collation ci (provider = icu, locale = 'und-u-ks-level2', \
                     deterministic = false)",
                );
                (["text", "text collate ci"], ["collate ci", "collate \"C\""])
            }
        };
        let with = |path: &str, status| format!(r#"{{"id":1,"path":"{path}","status":{status}}}"#);
        let make = |number: usize| {
            place.run(&format!(
                "create table hits (id bigint, path {} not null, status integer); \
                 create unique index paths on hits (path {})",
                column[number], key[number]
            ));
            if place.is_sqlite() {
                place.run(
                    "create trigger t before insert on hits when new.status = 13 \
                     begin select raise(ignore); end",
                );
            } else {
                place.run(
                    "create or replace function f() returns trigger language plpgsql as $$ begin \
                     if new.status = 13 then return null; end if; return new; end $$; \
                     create trigger t before insert on hits for each row execute function f()",
                );
            }
            place.handler(keyed(&["path"]))
        };
        let mut handler = make(0);
        assert_eq!(serve(&mut handler, [with("a", 1), with("A", 2)]), ["ok 1"; 2]);
        assert_eq!(serve(&mut handler, [with("A", 13), with("b", 13)]), ["ok 1", IGNORED]);
        place.run("drop table hits");
        // The key distinguishes them, so the dropped row does not exist.
        let mut handler = make(1);
        let answers = serve(&mut handler, [with("a", 1), with("A", 13), with("a", 13)]);
        assert_eq!(answers, ["ok 1", IGNORED, "ok 1"]);
        place.run("drop table hits");
    }
}

#[test]
fn a_row_that_a_trigger_changes_when_it_comes_again_counts_as_there() {
    let place = Place::mariadb();
    place.with_hits();
    place.run(
        "create trigger t before update on hits for each row \
         set new.status = if(old.status > 0, old.status + 1, old.status)",
    );
    place.run("insert into hits values (1, '/1', 7), (2, '/2', 0)");
    let mut handler = place.handler(Job { ack: "{id} {rows}".to_owned(), ..keyed(&["id"]) });
    // The first update counts as two rows, the second as none.
    assert_eq!(serve(&mut handler, [hit(1), hit(2)]), ["1 0", "2 0"]);
    assert_eq!(serve(&mut handler, [hit(1)]), ["1 0"]);
    assert_eq!(serve(&mut handler, [hit(2), hit(3), hit(1)]), ["2 0", "3 1", "1 0"]);
}

#[test]
fn redirected_rows_are_acknowledged_where_any_number_of_rows_will_do() {
    for place in [Place::sqlite(), Place::postgres()] {
        place.with_hits().run("create table elsewhere (id bigint)");
        place.run(if place.is_sqlite() {
            "create trigger t before insert on hits when new.status = 13 \
             begin insert into elsewhere values (new.id); select raise(ignore); end"
        } else {
            "create function f() returns trigger language plpgsql as $$ begin \
             if new.status = 13 then insert into elsewhere values (new.id); return null; end if; \
             return new; end $$; \
             create trigger t before insert on hits for each row execute function f()"
        });
        let elsewhere = || place.run("select id from elsewhere order by id");
        let bodies = || [hit(1), unlucky(2), hit(3)];
        // Nothing of a rejected row remains, even if a trigger stored it elsewhere.
        assert_eq!(serve(&mut place.handler(insert()), bodies()), ["ok 1", IGNORED, "ok 3"]);
        assert_eq!(elsewhere(), [""; 0]);
        place.run("delete from hits");
        let any = Job { affected: Affected::Any, ..insert() };
        assert_eq!(serve(&mut place.handler(any), bodies()), ["ok 1", "ok 2", "ok 3"]);
        assert_eq!(elsewhere(), ["2"]);
    }
}

#[test]
fn what_a_key_does_not_excuse_is_not_acknowledged() {
    for place in [Place::sqlite(), Place::postgres()] {
        dropping(&place);
        place.run("insert into hits values (1, '/1', 7)");
        let mut handler = place.handler(keyed(&["id"]));
        let there = r#"{"id":1,"path":"/","status":13}"#.to_owned();
        let answers = serve(&mut handler, [hit(1), unlucky(2), hit(3), there]);
        assert_eq!(answers, ["ok 1", IGNORED, "ok 3", "ok 1"]);
        assert_eq!(place.hits(), ["1|/1|7", "3|/3|200"]);
    }
}

fn what_a_statement_returns_may_be_acknowledged(place: &Place) {
    place.with_hits();
    if place.is_mariadb() {
        let sql = format!("{INSERT} returning id");
        let error = place.options(statement(&sql)).unwrap_err();
        assert_eq!(
            (error.byte(), &error.to_string()[..27]),
            (Some(65), "`statement`: `returning` is")
        );
        return;
    }
    let sql = format!("{INSERT} returning id + 1 as next, path, status");
    let ack = "{next} {path} {status} {name} {rows}".to_owned();
    let mut handler = place.handler(Job { ack, ..statement(&sql) });
    let record = |id, path: &str, status: &str| {
        format!(r#"{{"id":{id},"path":"{path}","status":{status},"name":"n{id}"}}"#)
    };
    let bodies = [
        record(1, "a", "7"),
        record(2, "two\\nlines", "8"),
        record(1, "b", "9"),
        record(4, "c", "null"),
    ];
    let answers = serve(&mut handler, bodies);
    assert_eq!((&*answers[0], &*answers[3]), ("2 a 7 n1 1", "5 c  n4 1"));
    assert_eq!(answers[1], "!row the statement returned a line end, which its reply cannot hold");
    assert!(answers[2].starts_with("!row "), "{answers:?}");
    assert_eq!(place.run("select id from hits order by id"), ["1", "4"]);
}

#[test]
fn a_returned_type_that_is_not_read_is_named() {
    let place = Place::postgres();
    place.with_hits();
    let job = |ack: &str, sql: &str| Job { ack: ack.to_owned(), ..statement(sql) };
    let sql = format!("{INSERT} returning now() as stored");
    let error = place.options(job("{stored}", &sql)).unwrap().check().unwrap_err();
    let expected = "`ack`: the statement returns `stored` as timestamptz, which is not read; \
                    return `stored::text`";
    assert_eq!(error.to_string(), expected);
    assert!(place.options(job("ok", &sql)).unwrap().check().is_ok());
    let sql = "insert into hits (id, path) values (:rows, 'x')";
    let error = place.options(job("{rows}", sql)).unwrap().check().unwrap_err();
    assert!(
        error.to_string().contains("is the number of rows and a name in the record"),
        "{error}"
    );
}

#[test]
fn a_row_that_is_there_is_acknowledged_beside_a_rule() {
    let place = Place::postgres();
    place
        .with_hits()
        .run("create rule r as on insert to hits where new.status = 13 do instead nothing");
    let mut job = Job { ack: "ok {id} {rows}".to_owned(), ..insert() };
    if let Action::Insert { on_conflict, .. } = &mut job.action {
        *on_conflict = OnConflict::Nothing(vec!["id".to_owned()]);
    }
    let mut handler = place.handler(job);
    assert_eq!(serve(&mut handler, [hit(1)]), ["ok 1 1"]);
    assert_eq!(serve(&mut handler, [hit(1)]), ["ok 1 0"]);
    let answers = serve(&mut handler, [hit(1), unlucky(2), hit(3), unlucky(1)]);
    assert_eq!(answers, ["ok 1 0", IGNORED, "ok 3 1", "ok 1 0"]);
    assert_eq!(place.hits(), ["1|/1|200", "3|/3|200"]);
}

/// The key of an open connection may become stricter: rows that were equal become different.
#[test]
fn a_row_is_found_by_the_key_that_the_table_has_now() {
    let collation = "create collation ci (provider = icu, locale = 'und-u-ks-level2', \
                     deterministic = false); ";
    for (place, create, change, there) in [
        (
            Place::sqlite(),
            "create table hits (id bigint, path text not null, status integer); \
             create unique index paths on hits (path collate nocase)",
            "drop index paths; create unique index paths on hits (path)",
            "\"A\"",
        ),
        (
            Place::sqlite(),
            "create table hits (id bigint, path text primary key not null collate nocase, \
             status integer)",
            "create table other (id bigint, path text primary key not null, status integer); \
             insert into other select * from hits; drop table hits; \
             alter table other rename to hits",
            "\"A\"",
        ),
        (
            Place::postgres(),
            &*format!(
                "{collation} create table hits \
                 (id bigint, path text collate ci primary key, status integer)"
            ),
            "alter table hits alter path type text collate \"C\"",
            "\"A\"",
        ),
        (
            Place::postgres(),
            "create table hits (id bigint, path text, status integer); \
             create unique index paths on hits (path) nulls not distinct",
            "drop index paths; create unique index paths on hits (path)",
            "null",
        ),
    ] {
        place.run(create);
        drop_unlucky(&place);
        let row = |id: usize, path: &str, status: usize| {
            format!(r#"{{"id":{id},"path":{path},"status":{status}}}"#)
        };
        let again = there.to_lowercase();
        let mut handler = place.handler(keyed(&["path"]));
        let rows = [row(1, there, 1), row(2, &again, 2), row(3, &again, 13)];
        assert_eq!(serve(&mut handler, rows), ["ok 1", "ok 2", "ok 3"], "{change}");
        place.run(change);
        if change.contains("drop table") {
            drop_unlucky(&place);
        }
        // The key distinguishes them now, so the dropped row does not exist.
        assert_eq!(serve(&mut handler, [row(4, &again, 13)]), [IGNORED], "{change}");
        let rows = [row(5, &again, 13), row(6, "\"b\"", 6), row(7, "\"b\"", 7)];
        assert_eq!(serve(&mut handler, rows), [IGNORED, "ok 6", "ok 7"], "{change}");
        assert_eq!(place.run("select id from hits order by id"), ["1", "6"], "{change}");
    }
}
