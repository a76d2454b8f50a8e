//! Numbers that a statement of MariaDB calculates with are numbers, of which no digit is lost.

use database::{Action, Format, Job, Query};

use crate::place::{Place, serve};

const BIG: &str = "9007199254740993";

fn job(sql: &str) -> Job {
    Job::new(Action::Statement(sql.to_owned()))
}

fn fresh(place: &Place) {
    place.run("drop table if exists held");
    place.run(
        "create table held (id bigint primary key, n bigint, big bigint unsigned, \
         price decimal(20,4), f double, token varchar(30))",
    );
    place.run(&format!("insert into held values (1, {BIG}, 0, 123456789012345.6789, 1, 'abc')"));
}

#[test]
fn a_calculation_loses_no_digit_of_a_number() {
    let place = Place::mariadb();
    for (sql, request, column, expected) in [
        ("insert into held (id, n) values (:id, least(:a, :b))", r#""a":10,"b":9"#, "n", "9"),
        (
            "insert into held (id, n) values (:id, greatest(:a, :b))",
            r#""a":"10","b":"9""#,
            "n",
            "10",
        ),
        ("insert into held (id, f) values (:id, least(:a, :b))", r#""a":10.5,"b":9.5"#, "f", "9.5"),
        (
            "insert into held (id, big) values (:id, greatest(:a, 1))",
            r#""a":18446744073709551615"#,
            "big",
            "18446744073709551615",
        ),
        (
            "insert into held (id, big) values (:id, :a - 1)",
            r#""a":18446744073709551615"#,
            "big",
            "18446744073709551614",
        ),
        (
            "insert into held (id, n) values (:id, (select max(h.n) + :x from held h))",
            r#""x":0"#,
            "n",
            BIG,
        ),
        ("insert into held (id, n) select :id, n * :x from held", r#""x":1"#, "n", BIG),
        (
            "insert into held (id, price) select :id, price * :x from held",
            r#""x":1"#,
            "price",
            "123456789012345.6789",
        ),
        (
            "insert into held (id, n) select :id, coalesce(max(n), 0) + :x from held",
            r#""x":"0""#,
            "n",
            BIG,
        ),
        ("insert into held (id, n) values (:id, abs(:x))", r#""x":"-9007199254740993""#, "n", BIG),
        (
            "insert into held (id, n) values (:id, if(:a > :b, 1, 2))",
            r#""a":10.5,"b":9.5"#,
            "n",
            "1",
        ),
        ("insert into held (id, f) values (:id, :x * 2)", r#""x":0.25"#, "f", "0.5"),
    ] {
        fresh(&place);
        let mut handler = place.handler(job(sql));
        let answers = serve(&mut handler, [format!(r#"{{"id":2,{request}}}"#)]);
        assert_eq!(answers, ["ok"], "{sql}");
        let stored = place.run(&format!("select {column} from held where id = 2"));
        assert_eq!(stored, [expected], "{sql}");
    }
    fresh(&place);
    let mut handler = place.handler(job("update held set n = greatest(n, :n) where id = 1"));
    assert_eq!(serve(&mut handler, [r#"{"n":9007199254740994}"#]), ["ok"]);
    assert_eq!(place.run("select n from held"), ["9007199254740994"]);
}

#[test]
fn a_number_that_would_be_calculated_with_as_a_double_is_refused() {
    let place = Place::mariadb();
    fresh(&place);
    for (sql, value) in [
        ("update held set price = price + :x where id = 1", "0.1"),
        ("update held set price = greatest(price, :x) where id = 1", "0.1"),
        ("update held set n = n + :x where id = 1", "\"abc\""),
        ("update held set n = 1 where n > greatest(:x, 1)", "10"),
        ("update held set n = 1 where coalesce(n) = :x", BIG),
    ] {
        let mut handler = place.handler(job(sql));
        let answers = serve(&mut handler, [format!(r#"{{"x":{value}}}"#)]);
        assert!(answers[0].starts_with("!row"), "{sql}: {answers:?}");
    }
    let exact = "update held set price = price + cast(:x as decimal(65,30)) where id = 1";
    let mut handler = place.handler(job(exact));
    assert_eq!(serve(&mut handler, [r#"{"x":0.0001}"#]), ["ok"]);
    assert_eq!(place.run("select price from held"), ["123456789012345.6790"]);
}

#[test]
fn a_calculation_finds_only_the_rows_of_the_number() {
    let place = Place::mariadb();
    for (sql, value, left) in [
        ("delete from held where id between :x - 1 and :x + 1", "9007199254740993", &["1"][..]),
        ("delete from held where id = -:x", "-9007199254740993", &["1", "…2", "…4"]),
        ("delete from held where id = :x + 1", "9007199254740992", &["1", "…2", "…4"]),
        ("delete from held where id - :x = 0", "9007199254740993", &["1", "…2", "…4"]),
    ] {
        place.run("drop table if exists held");
        place.run("create table held (id bigint primary key)");
        place.run(
            "insert into held values (1), (9007199254740992), (9007199254740993), (9007199254740994)",
        );
        let mut handler = place.handler(job(sql));
        assert_eq!(serve(&mut handler, [format!(r#"{{"x":{value}}}"#)]), ["ok"], "{sql}");
        let kept = place.run("select id from held order by id");
        let kept: Vec<_> = kept.iter().map(|it| it.replace("900719925474099", "…")).collect();
        assert_eq!(kept, left, "{sql}");
    }
    let query = Query { rows: Format::Tsv, ..Query::new("select :a + :b, 0.1000 * :a") };
    let mut handler = place.handler(Job::new(Action::Query(query)));
    assert_eq!(serve(&mut handler, [r#"{"a":1,"b":2}"#]), ["3\t0.1000\n"]);
}

/// The server reads the text `1e3` as one day and `abc` as none, and takes -1 rows for all of them.
#[test]
fn an_interval_and_a_limit_are_numbers() {
    let place = Place::mariadb();
    for (sql, value, answer, left) in [
        ("delete from aged where at < now() - interval :x day", "1e3", "ok", "3"),
        ("delete from aged where at < now() - interval :x day", "\"abc\"", "!row", "4"),
        ("delete from aged where at < subdate(now(), :x)", "1000", "ok", "3"),
        ("delete from aged where at < date_sub(now(), interval :x hour)", "1.0e18", "!", "4"),
        ("delete from aged order by at limit :x", "-1", "!row", "4"),
        ("delete from aged order by at limit :x", "2", "ok", "2"),
    ] {
        place.run("drop table if exists aged");
        place.run("create table aged (id int primary key, at datetime)");
        place.run(
            "insert into aged select 1, now() - interval 1 hour union select 2, now() - interval 2 day \
             union select 3, now() - interval 400 day union select 4, now() - interval 2000 day",
        );
        let mut handler = place.handler(job(sql));
        let answers = serve(&mut handler, [format!(r#"{{"x":{value}}}"#)]);
        assert!(answers[0].starts_with(answer), "{sql} {value}: {answers:?}");
        assert_eq!(place.run("select count(*) from aged"), [left], "{sql} {value}");
    }
}
