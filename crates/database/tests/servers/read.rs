//! Requests that are answered with rows.

use std::thread;
use std::time::Duration;

use database::{Action, Format, Job, Query, Record};
use exchange::Stop;

use crate::place::{Place, batch, serve, serve_soon, serve_until};

crate::suite!(
    rows_leave_as_json_lines_or_tsv,
    parameters_are_data,
    bytes_leave_as_base64_where_the_format_has_none,
    a_reply_has_its_limits,
    what_reads_cannot_write,
    a_query_without_end_can_be_stopped,
    a_reader_gives_rows_as_they_are,
);

fn job(query: Query) -> Job {
    Job::new(Action::Query(query))
}

fn hits(place: &Place) -> &Place {
    place.with_hits();
    place.run("insert into hits values (1, '/a', 200), (2, '/b\"', null), (3, '/c', 404)");
    place
}

fn rows_leave_as_json_lines_or_tsv(place: &Place) {
    hits(place);
    let query = Query::new("select id, path, status from hits where id <= :most order by id");
    let with = |rows| Query { rows, ..query.clone() };
    let mut json = place.handler(job(with(Format::Json)));
    let body = r#"{"most":2}"#;
    let two = r#"{"id":1,"path":"/a","status":200},{"id":2,"path":"/b\"","status":null}"#;
    assert_eq!(serve(&mut json, [body, r#"{"most":0}"#]), [format!("[{two}]"), "[]".to_owned()]);
    let mut lines = place.handler(job(with(Format::Lines)));
    assert_eq!(serve(&mut lines, [body]), [two.replace("},{", "}\n{") + "\n"]);
    let mut tsv = place.handler(Job { record: Record::Tsv, ..job(with(Format::Tsv)) });
    assert_eq!(serve(&mut tsv, ["2"]), ["1\t/a\t200\n2\t/b\"\t\\N\n"]);
}

fn parameters_are_data(place: &Place) {
    hits(place);
    let query = Query::new("select id from hits where path = :path");
    let mut handler = place.handler(job(query));
    for (path, reply) in [("/a", r#"[{"id":1}]"#), ("' or 1 = 1 -- ", "[]"), ("\\u0027", "[]")] {
        assert_eq!(serve(&mut handler, [format!(r#"{{"path":"{path}"}}"#)]), [reply], "{path}");
    }
    assert_eq!(serve(&mut handler, ["{}"]), ["!row the record has no `path`"]);
    assert_eq!(serve(&mut handler, [r#"{"path":null}"#]), ["[]"]);
}

fn bytes_leave_as_base64_where_the_format_has_none(place: &Place) {
    let (binary, bytes) = match place {
        it if it.is_sqlite() => ("blob", "x'00ff'"),
        it if it.is_postgres() => ("bytea", "'\\x00ff'"),
        _ => ("varbinary(9)", "x'00ff'"),
    };
    place.run(&format!("create table kept (id bigint, b {binary}, t text)"));
    // Also if the bytes are valid text: the encoding of a column does not depend on its content.
    let plain = bytes.replace("00ff", "6869");
    place.run(&format!(
        "insert into kept values (1, {bytes}, 'a'), (2, {plain}, 'hi'), (3, null, null)"
    ));
    let query = Query::new("select id, b, t from kept order by id");
    let mut json = place.handler(job(query.clone()));
    let rows = [
        r#"{"id":1,"b":"AP8=","t":"a"}"#,
        r#"{"id":2,"b":"aGk=","t":"hi"}"#,
        r#"{"id":3,"b":null,"t":null}"#,
    ];
    let whole = format!("[{}]", rows.join(","));
    assert_eq!(serve(&mut json, ["{}", "{}"]), [&*whole, &*whole]);
    let mut reader = place.options(job(query)).unwrap().reader().unwrap();
    let mut rows = fields::Rows::default();
    reader.read(b"{}", &mut rows).unwrap();
    assert_eq!(rows.row(0).unwrap().get("b"), Some(fields::Value::Bytes(b"\x00\xff")));
    let mut tsv = place.handler(job(Query {
        rows: Format::Tsv,
        ..Query::new("select b, t from kept where id = 2")
    }));
    assert_eq!(serve(&mut tsv, ["{}"]), ["hi\thi\n"]);
    if place.is_mariadb() {
        place.run("create table bits (few bit(12), all_of_them bit(64))");
        place.run("insert into bits values (b'100000000001', ~0)");
        let sql = "select few, all_of_them, cast('a' as binary) as a, cast('a' as char) as c, \
                   1.5 as n, json_object('a', 1) as j, cast('::1' as inet6) as i from bits";
        let mut handler = place.handler(job(Query::new(sql)));
        let row = r#"[{"few":2049,"all_of_them":18446744073709551615,"a":"YQ==","c":"a","n":1.5,"j":"{\"a\": 1}","i":"::1"}]"#;
        assert_eq!(serve(&mut handler, ["{}"]), [row]);
    }
}

fn a_reply_has_its_limits(place: &Place) {
    hits(place);
    let query = Query::new("select id from hits order by id");
    let mut few = place.handler(job(Query { rows_max: 2, ..query.clone() }));
    assert_eq!(serve(&mut few, ["{}", "{}"]), ["!rows more than 2 rows"; 2]);
    let mut exact = place.handler(job(Query { rows_max: 3, reply_max: 28, ..query.clone() }));
    assert_eq!(serve(&mut exact, ["{}"]), [r#"[{"id":1},{"id":2},{"id":3}]"#]);
    let mut short = place.handler(job(Query { reply_max: 20, ..query }));
    assert_eq!(serve(&mut short, ["{}"]), ["!rows more than 20 bytes"]);
}

fn what_reads_cannot_write(place: &Place) {
    hits(place);
    let update = "with x as (select 1) update hits set status = 1";
    let sql = match place {
        it if it.is_sqlite() => update,
        it if it.is_postgres() => {
            it.run(
                "create function wipe() returns bigint language sql as \
                 $$ delete from hits returning id $$",
            );
            "select wipe()"
        }
        it => {
            it.run(
                "create function wipe() returns bigint deterministic begin delete from hits; \
                 return 1; end",
            );
            "select wipe()"
        }
    };
    let tried = place.options(job(Query::new(sql))).and_then(|database| {
        database.check()?;
        let mut handler = exchange::Factory::open(&database).unwrap();
        let answers = serve(&mut handler, ["{}"]);
        assert!(
            answers[0].starts_with("!database ") || answers[0].starts_with("!row "),
            "{answers:?}"
        );
        Ok(())
    });
    // MariaDB and SQLite report it when the query is prepared.
    assert_eq!(tried.is_ok(), place.is_postgres(), "{tried:?}");
    assert_eq!(place.hits().len(), 3);
    let refused = place.options(job(Query::new("delete from hits"))).unwrap_err();
    assert!(refused.to_string().starts_with("`statement`: begins with `delete`"), "{refused}");
}

mod on_servers {
    crate::suite_of_servers!(a_query_that_always_fails_does_not_hold_up_the_others);
    use super::a_query_that_always_fails_does_not_hold_up_the_others;
}

fn a_query_that_always_fails_does_not_hold_up_the_others(place: &Place) {
    let query = Query::new("select f(:code) as v");
    let codes: &[&str] = if place.is_postgres() {
        place.run(
            "create function f(code text) returns text language plpgsql as $$ begin \
             if code <> '' then raise exception 'unlucky' using errcode = code; end if; \
             return 'good'; end $$",
        );
        &["40001", "08001", "57P03", "53200", "25006"]
    } else {
        let codes = &["1213", "1021", "1290", "1429"];
        let raise = |code: &&str| {
            format!(
                "if code = '{code}' then signal sqlstate '45000' \
                 set mysql_errno = {code}, message_text = 'unlucky'; end if; "
            )
        };
        place.run(&format!(
            "create function f(code text) returns text deterministic begin {} \
             return 'good'; end",
            codes.iter().map(raise).collect::<String>()
        ));
        codes
    };
    let mut handler = place.handler(Job { retry: Duration::from_secs(3600), ..job(query) });
    let ask = |code: &str| format!(r#"{{"code":"{code}"}}"#);
    for code in codes {
        let answers = serve_soon(&mut handler, &[ask(code), ask("")]);
        assert!(answers[0].starts_with("!database unlucky"), "{code}: {answers:?}");
        assert_eq!(answers[1], r#"[{"v":"good"}]"#, "{code}");
    }
}

fn a_query_without_end_can_be_stopped(place: &Place) {
    place.with_hits();
    let sql = match place {
        it if it.is_sqlite() => {
            "with recursive n (x) as (select 1 union all select x + 1 from n) select max(x) from n"
        }
        it if it.is_postgres() => "select pg_sleep(3600)::text as never",
        _ => "select sleep(3600) as never",
    };
    let mut handler = place.handler(job(Query::new(sql)));
    let stop = Stop::default();
    let stopper = thread::spawn({
        let stop = stop.clone();
        move || stop.request()
    });
    let answers = serve_until(handler.as_mut(), &batch(["{}", "{}"]), &stop);
    stopper.join().unwrap();
    assert!(answers.iter().all(|it| it.starts_with("!database stopped")), "{answers:?}");
}

fn a_reader_gives_rows_as_they_are(place: &Place) {
    hits(place);
    let query = job(Query::new("select id, path, status from hits where id > :least order by id"));
    let mut reader = place.options(query).unwrap().reader().unwrap();
    let mut rows = fields::Rows::default();
    for (least, count) in [(0, 3), (2, 1), (0, 3)] {
        reader.read(format!(r#"{{"least":{least}}}"#).as_bytes(), &mut rows).unwrap();
        assert_eq!(rows.len(), count);
    }
    let row = rows.row(1).unwrap();
    assert_eq!(row.get("id"), Some(fields::Value::Number(b"2")));
    assert_eq!(row.get("path"), Some(fields::Value::Bytes(b"/b\"")));
    assert_eq!(row.get("status"), Some(fields::Value::Null));
}
