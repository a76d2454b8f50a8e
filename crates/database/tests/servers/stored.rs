//! The stored rows and the form of their values.

use database::{Action, Job, OnConflict, Record};

use crate::place::{Place, hit, insert, serve, statement};

crate::suite!(
    rows_are_stored_and_then_acknowledged,
    values_are_data_and_never_sql,
    null_and_nul_are_what_they_are,
    numbers_keep_their_digits,
    a_large_batch_is_stored_whole,
    a_row_that_is_there_may_stay,
    a_row_twice_in_a_batch_may_be_ignored,
    a_statement_runs_row_by_row_with_names,
    what_belongs_to_the_request_may_be_stored,
    create_makes_what_is_missing,
    tsv_and_logfmt_are_read_too,
);

fn rows_are_stored_and_then_acknowledged(place: &Place) {
    let mut handler = place.with_hits().handler(insert());
    assert_eq!(serve(&mut handler, [hit(1), hit(2), hit(3)]), ["ok 1", "ok 2", "ok 3"]);
    assert_eq!(place.hits(), ["1|/1|200", "2|/2|200", "3|/3|200"]);
    assert_eq!(serve(&mut handler, [hit(4)]), ["ok 4"]);
    assert_eq!(place.hits().len(), 4);
}

fn values_are_data_and_never_sql(place: &Place) {
    let mut handler = place.with_hits().handler(insert());
    let paths = [
        "'); drop table hits",
        "\\'; --",
        "{1,2}",
        "\"a\"",
        "NULL",
        "\\N",
        "$1 :id ?",
        "\\\\x00",
        "ä€😀",
        "",
        " ",
        "%s`",
        "{}",
        "\\",
        "a,b",
        "E'\\x'",
    ];
    let records = paths.iter().enumerate().map(|(id, path)| {
        let path = path.replace('\\', "\\\\").replace('"', "\\\"");
        format!(r#"{{"id":{id},"path":"{path}","status":null}}"#)
    });
    let answers = serve(&mut handler, records);
    let expected: Vec<String> = (0..paths.len()).map(|id| format!("ok {id}")).collect();
    assert_eq!(answers, expected);
    for (id, path) in paths.iter().enumerate() {
        let hex = match place {
            it if it.is_postgres() => "encode(convert_to(path, 'UTF8'), 'hex')",
            _ => "lower(hex(path))",
        };
        let stored = place.run(&format!("select {hex} from hits where id = {id}")).concat();
        let expected: String = path.bytes().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(stored, expected, "{path}");
    }
}

fn null_and_nul_are_what_they_are(place: &Place) {
    let mut handler = place.with_hits().handler(insert());
    let nul = r#"{"id":2,"path":"a\u0000b","status":1}"#.to_owned();
    let null = r#"{"id":3,"path":"/3","status":null}"#.to_owned();
    let answers = serve(&mut handler, [hit(1), nul, null]);
    assert_eq!((&*answers[0], &*answers[2]), ("ok 1", "ok 3"));
    if place.is_postgres() {
        // Text in PostgreSQL cannot contain a NUL.
        assert!(answers[1].starts_with("!row invalid byte sequence"), "{}", answers[1]);
        assert_eq!(place.hits(), ["1|/1|200", "3|/3|NULL"]);
    } else {
        assert_eq!(answers[1], "ok 2");
        assert_eq!(place.run("select hex(path) from hits where id = 2"), ["610062"]);
    }
}

fn numbers_keep_their_digits(place: &Place) {
    let exact = if place.is_sqlite() { "text" } else { "numeric(40, 10)" };
    place.run(&format!("create table numbers (a bigint, b double precision, c {exact})"));
    let job = Job::new(Action::insert("numbers", ["a", "b", "c"]));
    let mut handler = place.handler(job);
    let record =
        r#"{"a":-9223372036854775808,"b":0.1,"c":123456789012345678901234567890.0123456789}"#;
    assert_eq!(serve(&mut handler, [record]), ["ok"]);
    assert_eq!(
        place.run("select a, b, c from numbers"),
        ["-9223372036854775808|0.1|123456789012345678901234567890.0123456789"]
    );
}

fn a_large_batch_is_stored_whole(place: &Place) {
    let mut handler = place.with_hits().handler(insert());
    for (start, count) in [(0, 3000), (3000, 1), (3001, 777)] {
        let answers = serve(&mut handler, (start..start + count).map(hit));
        let expected: Vec<String> = (start..start + count).map(|id| format!("ok {id}")).collect();
        assert_eq!(answers, expected);
    }
    assert_eq!(place.run("select count(*) from hits"), ["3778"]);
}

fn ignoring() -> Job {
    let mut job = insert();
    if let Action::Insert { on_conflict, .. } = &mut job.action {
        *on_conflict = OnConflict::Nothing(vec!["id".to_owned()]);
    }
    job
}

fn a_row_that_is_there_may_stay(place: &Place) {
    let mut handler = place.with_hits().handler(ignoring());
    place.run("insert into hits values (2, '/old', 1)");
    assert_eq!(serve(&mut handler, [hit(1), hit(2), hit(3)]), ["ok 1", "ok 2", "ok 3"]);
    assert_eq!(place.hits(), ["1|/1|200", "2|/old|1", "3|/3|200"]);
    let long = format!(r#"{{"id":4,"path":"{}","status":1}}"#, "x".repeat(21));
    let null = r#"{"id":5,"path":null,"status":1}"#.to_owned();
    let answers = serve(&mut handler, [long, null]);
    assert!(place.is_sqlite() || answers[0].starts_with("!row "), "only conflicts are ignored");
    assert!(answers[1].starts_with("!row "), "only conflicts are ignored: {answers:?}");
}

fn a_row_twice_in_a_batch_may_be_ignored(place: &Place) {
    let mut handler = place.with_hits().handler(ignoring());
    assert_eq!(serve(&mut handler, [hit(1), hit(1), hit(2), hit(1)]).len(), 4);
    assert_eq!(place.hits(), ["1|/1|200", "2|/2|200"]);
}

fn a_statement_runs_row_by_row_with_names(place: &Place) {
    place.with_hits();
    let mut handler = place.handler(statement(
        "insert into hits (id, path, status) values (:id, ':' || :path, :status) -- :none",
    ));
    if place.is_mariadb() {
        handler = place.handler(statement(
            "insert into hits (id, path, status) values (:id, concat(':', :path), :status)",
        ));
    }
    assert_eq!(serve(&mut handler, (1..=600).map(hit)).last().unwrap(), "ok 600");
    assert_eq!(place.run("select count(*), min(path) from hits"), ["600|:/1"]);
    let mut update = place.handler(statement("update hits set status = :status where id = :id"));
    let record = |id, status| format!(r#"{{"id":{id},"status":{status}}}"#);
    assert_eq!(serve(&mut update, [record(1, 7), record(2, 8)]), ["ok 1", "ok 2"]);
    assert_eq!(place.hits()[..2], ["1|:/1|7", "2|:/2|8"]);
}

fn what_belongs_to_the_request_may_be_stored(place: &Place) {
    place.run("create table asked (n bigint, at bigint, who varchar(40))");
    let mut handler = place.handler(Job {
        ack: "ok {_id} {_client}".to_owned(),
        ..Job::new(Action::Statement("insert into asked values (:_id, :_at, :_client)".to_owned()))
    });
    assert_eq!(serve(&mut handler, ["{}", "{}"]), ["ok 0 unix", "ok 1 unix"]);
    assert_eq!(
        place.run("select n, at, who from asked order by n"),
        ["0|1700000000000000|unix", "1|1700000000000000|unix"]
    );
}

fn create_makes_what_is_missing(place: &Place) {
    let job = Job {
        create: Some("create table if not exists made (id bigint)".to_owned()),
        ..Job::new(Action::insert("made", ["id"]))
    };
    for id in 1..=2 {
        let mut handler = place.handler(job.clone());
        assert_eq!(serve(&mut handler, [format!(r#"{{"id":{id}}}"#)]), ["ok"]);
    }
    assert_eq!(place.run("select count(*) from made"), ["2"]);
}

fn tsv_and_logfmt_are_read_too(place: &Place) {
    place.with_hits();
    let mut tsv = place.handler(Job { record: Record::Tsv, ..insert() });
    assert_eq!(serve(&mut tsv, ["1\t/a\\tb\t200", "2\t/c\t\\N"]), ["ok 1", "ok 2"]);
    let two = serve(&mut tsv, ["7\t/a\t1\n8\t/b\t1"]);
    assert!(two[0].starts_with("!record") && two[0].contains("several lines"), "{two:?}");
    let mut logfmt = place.handler(Job { record: Record::Logfmt, ..insert() });
    assert_eq!(serve(&mut logfmt, ["id=3 path=/d status"]), ["ok 3"]);
    assert_eq!(place.run("select id, status from hits where status is not null"), ["1|200"]);
    assert_eq!(place.run("select count(*) from hits"), ["3"]);
}

#[test]
fn a_column_of_a_composite_type_takes_its_notation() {
    let place = Place::postgres();
    place.run(
        "create type part as (s text, n integer); create domain piece as part; \
         create table made (id bigint primary key, a part, b piece, c part[])",
    );
    let columns = ["id", "a", "b", "c"];
    let mut job = Job { ack: "ok".to_owned(), ..Job::new(Action::insert("made", columns)) };
    for key in [false, true] {
        if let (true, Action::Insert { on_conflict, .. }) = (key, &mut job.action) {
            *on_conflict = OnConflict::Nothing(vec!["id".to_owned()]);
        }
        place.run("delete from made");
        let rows = [
            r#"{"id":1,"a":"(x,5)","b":"(\"y z\",)","c":"{\"(x,1)\",\"(y,2)\"}"}"#,
            r#"{"id":2,"a":null,"b":null,"c":null}"#,
            r#"{"id":3,"a":"(x,y)","b":null,"c":null}"#,
        ];
        let answers = serve(&mut place.handler(job.clone()), rows);
        assert_eq!([&*answers[0], &*answers[1]], ["ok"; 2], "{answers:?}");
        assert!(answers[2].starts_with("!row "), "{answers:?}");
        let stored =
            place.run("select (a).s, (a).n, (b).s, (c[2]).n, a is null from made order by id");
        assert_eq!(stored, ["x|5|y z|2|f", "||||t"]);
    }
}
