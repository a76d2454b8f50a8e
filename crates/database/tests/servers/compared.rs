//! A value that a statement or a query compares selects the same rows in every database: none by a conversion.

use database::{Action, Format, Job, Query};

use crate::place::{Place, serve};

crate::suite!(
    a_value_of_another_type_selects_no_row,
    large_numbers_are_compared_exactly,
    the_rows_of_a_query_are_those_of_the_value,
);

fn statement(sql: &str) -> Job {
    Job::new(Action::Statement(sql.to_owned()))
}

fn a_value_of_another_type_selects_no_row(place: &Place) {
    place.run("create table held (id bigint primary key, token varchar(20) not null)");
    for (sql, values) in [
        ("delete from held where token = :v", &["0", "false", "7.0", "\"\""][..]),
        ("delete from held where token in ('x', :v)", &["0", "false"]),
        ("delete from held where (id = id and token >= :v and token <= (:v))", &["0", "false"]),
        ("delete from held where token between :v and :v", &["0", "false"]),
        ("update held set token = 'lost' where held.token = :v", &["0", "false"]),
        (
            "update held set token = 'lost' where id = :v",
            &["\"abc\"", "\"\"", "\"1abc\"", "\"0x1\""],
        ),
        ("delete from held where id in (17, :v)", &["\"abc\"", "\"\"", "\"1abc\""]),
    ] {
        let mut handler = place.handler(statement(sql));
        for value in values {
            place.run("delete from held");
            place.run("insert into held values (0, 'secret'), (1, '007'), (7, '7')");
            let answers = serve(&mut handler, [format!(r#"{{"v":{value}}}"#)]);
            assert!(answers[0].starts_with('!'), "{sql} {value}: {answers:?}");
            let kept = place.run("select id, token from held order by id");
            assert_eq!(kept, ["0|secret", "1|007", "7|7"], "{sql} {value}");
        }
    }
    let mut handler = place.handler(statement("delete from held where token = :v"));
    assert_eq!(serve(&mut handler, [r#"{"v":7}"#]), ["ok"]);
    assert_eq!(place.run("select id from held order by id"), ["0", "1"]);
}

fn large_numbers_are_compared_exactly(place: &Place) {
    place.run("create table held (id bigint primary key, v integer)");
    place.run("insert into held values (9007199254740992, 1), (9007199254740993, 1)");
    let mut handler = place.handler(statement("update held set v = 2 where id = :id"));
    serve(
        &mut handler,
        ["9007199254740993", "\"9007199254740993\"", "9007199254740993.0"]
            .map(|id| format!(r#"{{"id":{id}}}"#)),
    );
    let kept = place.run("select id, v from held order by id");
    assert_eq!(kept, ["9007199254740992|1", "9007199254740993|2"]);
}

fn the_rows_of_a_query_are_those_of_the_value(place: &Place) {
    place.run("create table held (id bigint primary key, token varchar(20) not null)");
    place.run("insert into held values (0, 'secret'), (7, '7')");
    let query = Query { rows: Format::Tsv, ..Query::new("select id from held where token = :v") };
    let mut handler = place.handler(Job::new(Action::Query(query)));
    let answers =
        serve(&mut handler, [r#"{"v":0}"#, r#"{"v":false}"#, r#"{"v":7}"#, r#"{"v":"secret"}"#]);
    assert_eq!(answers, ["", "", "7\n", "0\n"]);
}

#[test]
fn a_comparison_that_cannot_be_checked_is_told() {
    let place = Place::mariadb();
    place.run("create table held (id bigint primary key, token varchar(20) not null)");
    let doubts = |sql: &str| {
        let doubts = place.options(statement(sql)).unwrap().doubts().unwrap();
        doubts.into_iter().filter(|it| it.starts_with("cannot check ")).count()
    };
    assert_eq!(doubts("delete from held where token = :v and id > :v limit 1"), 0);
    assert_eq!(doubts("delete from held where lower(token) = :v"), 1);
    let mut handler = place.handler(statement("delete from held where lower(token) = :v"));
    place.run("insert into held values (0, 'secret')");
    let answers = serve(&mut handler, [r#"{"v":0}"#, r#"{"v":false}"#]);
    assert!(answers.iter().all(|it| it.starts_with('!')), "{answers:?}");
    assert_eq!(place.run("select id from held"), ["0"]);
}

#[test]
fn a_time_that_mariadb_does_not_have_removes_no_row() {
    let place = Place::mariadb();
    for (of, held, values) in [
        ("datetime", "2024-01-02 21:00:00", &["2024-01-02 10:00 pm", "5000-01-01 bc"][..]),
        ("timestamp", "2024-01-02 21:00:00", &["2024-12-31T23:59:60Z", "2024-12-31T24:00:00"]),
        ("datetime", "2024-01-02 21:00:00", &["2024-12-31 24:00", "10000-01-01", "2024-02-30"]),
        ("date", "2024-01-02", &["10000-01-01", "5000-01-01 bc"]),
        ("time", "21:00:00", &["10:00 pm", "838:59:59.9", "24:60:00"]),
    ] {
        place.run("drop table if exists held");
        place.run(&format!("create table held (id int primary key, held {of} not null)"));
        place.run(&format!("insert into held values (1, '{held}')"));
        for sql in ["delete from held where held >= :v", "delete from held where held < :v"] {
            let mut handler = place.handler(statement(sql));
            for value in values {
                let answers = serve(&mut handler, [format!(r#"{{"v":"{value}"}}"#)]);
                assert!(answers[0].starts_with("!row"), "{sql} {value}: {answers:?}");
            }
        }
        assert_eq!(place.run("select id from held"), ["1"], "{of}");
        let mut handler = place.handler(statement("delete from held where held = :v"));
        assert_eq!(serve(&mut handler, [format!(r#"{{"v":"{held}"}}"#)]), ["ok"], "{of}");
    }
}
