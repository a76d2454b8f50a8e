//! Tables that are altered while a pool serves.

use std::time::Duration;

use database::{Action, Job, OnConflict, Query};

use crate::place::{Place, hit, insert, is_refused, serve};
use crate::proxy::{Cut, Proxy};

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

/// An insert and a statement, neither of which is ever tried again for another reason.
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
        // Another row is rejected first, for a reason that needs no other types.
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
    // One whose columns PostgreSQL gives as they are, and one that it is asked to give as text.
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
    if place.is_postgres() {
        // The statement names the key.
        assert!(answers.iter().all(|it| it.starts_with("!database ")), "{answers:?}");
        assert!(place.hits().is_empty(), "{answers:?}");
        return;
    }
    assert_eq!(proxy.cuts(), 1);
    assert!(answers.iter().all(|it| it.starts_with("!commit ")), "{answers:?}");
    assert_eq!(place.hits(), ["1|/1|200", "2|/2|200"]);
}
