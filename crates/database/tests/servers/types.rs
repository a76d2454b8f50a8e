//! Each kind of JSON value in each type of column: the value that is read back must be exactly the given one, or the
//! row must be rejected.

use std::fmt::Write as _;

use database::{Action, Format, Job, Query, Record};

use crate::place::{Place, serve};

crate::suite!(
    values_are_read_back_as_they_were_given_or_refused,
    a_statement_keeps_types_as_an_insert_does,
    a_statement_with_comments_keeps_types_as_well,
    the_update_of_a_row_that_exists_keeps_types_as_well,
    a_parameter_of_two_columns_keeps_both_types,
    bytes_go_both_ways_in_tsv_as_they_are,
    refused_values_leave_their_neighbours_alone,
    a_column_that_takes_a_value_since_it_was_altered_gets_it,
);

/// The given value, and the value that is read back; `!` and a part of the message if it is rejected.
type Cells = &'static [(&'static str, &'static str)];

/// A type of column on SQLite, PostgreSQL and MariaDB; empty if the database has no such type, or it is tested
/// separately.
struct Column([&'static str; 3], Cells);

const SAME: &str = "";
const TEXT: [&str; 3] = ["text", "text", "text"];

const COLUMNS: &[Column] = &[
    // Booleans.
    Column(["boolean", "boolean", ""], &[("true", SAME), ("false", SAME), ("null", SAME)]),
    Column(["integer", "integer", "boolean"], &[("true", "1"), ("false", "0"), ("null", SAME)]),
    Column(TEXT, &[("true", "\"true\""), ("false", "\"false\"")]),
    Column(["", "date", "date"], &[("true", "!row "), ("false", "!row ")]),
    Column(["", "time", "time"], &[("true", "!row "), ("false", "!row ")]),
    Column(["", "timestamp", "datetime"], &[("true", "!row "), ("false", "!row ")]),
    Column(["", "timestamptz", "timestamp"], &[("true", "!row "), ("false", "!row ")]),
    Column(["", "", "year"], &[("true", "!row "), ("false", "!row ")]),
    // Numbers in text keep their digits.
    Column(
        TEXT,
        &[
            ("1.10", "\"1.10\""),
            ("1e3", "\"1e3\""),
            ("-0", "\"-0\""),
            ("9007199254740993", "\"9007199254740993\""),
            ("18446744073709551616", "\"18446744073709551616\""),
            ("\"1.10\"", SAME),
            ("\"0123\"", SAME),
            ("\"true\"", SAME),
            ("\"\"", SAME),
            ("[1, \"a\"]", "\"[1, \\\"a\\\"]\""),
        ],
    ),
    // A database truncates blanks, and nothing else.
    Column(
        ["", "varchar(3)", "varchar(3)"],
        &[
            ("\"ab \"", SAME),
            ("\"ab  \"", "!row column `v`"),
            ("\"äöü\"", SAME),
            ("\"abcd\"", "!row "),
            ("\"abc\\t\"", "!row "),
            ("\"ab\\t\\n\"", "!row "),
        ],
    ),
    Column(["", "", "char(3)"], &[("\"abc\\t\"", "!row column `v`"), ("\"ab\\t\"", SAME)]),
    // Integers.
    Column(
        ["bigint", "bigint", "bigint"],
        &[
            ("9007199254740993", SAME),
            ("9223372036854775807", SAME),
            ("-9223372036854775808", SAME),
            ("\"9007199254740993\"", "9007199254740993"),
            ("9223372036854775808", "!row "),
            ("\"9223372036854775808\"", "!row "),
            ("18446744073709551615", "!row "),
            ("123456789012345678901234567890", "!row "),
        ],
    ),
    Column(["", "bigint", "bigint"], &[("1.5", "!row "), ("\"1.5\"", "!row "), ("1e400", "!row ")]),
    Column(["", "", "bigint unsigned"], &[("18446744073709551615", SAME), ("-1", "!row ")]),
    Column(["", "smallint", "smallint"], &[("32768", "!row "), ("32767", SAME)]),
    // Floating point.
    Column(
        ["real", "double precision", "double"],
        &[
            ("0.1", SAME),
            ("-2.5", SAME),
            ("9007199254740992", "9007199254740992.0"),
            ("9007199254740993", "!row column `v`"),
            ("\"9007199254740993\"", "!row column `v`"),
            ("\"\\t9007199254740993\\n\"", "!row column `v`"),
            ("18446744073709551615", "!row column `v`"),
            ("0.10000000000000000001", "!row column `v`"),
            ("0.10000000000000001", "0.1"),
            ("0.12345678901234567", "!row column `v`"),
            ("0.12345678901234566", SAME),
            ("1e400", "!row column `v`"),
            ("1e-400", "!row column `v`"),
        ],
    ),
    Column(
        ["", "double precision", ""],
        &[("\"0x20000000000001\"", "!row column `v`"), ("\"-Infinity\"", SAME), ("\"NaN\"", SAME)],
    ),
    Column(["", "real", ""], &[("\"Infinity\"", SAME)]),
    Column(["", "real", "float"], &[("0.1", SAME), ("16777217", "!row column `v`")]),
    Column(
        ["", "", "double(10,2)"],
        &[("19.99", SAME), ("19.5", "19.5"), ("19.999", "!row column `v`")],
    ),
    Column(["", "", "float(7,2)"], &[("19.5", SAME), ("19.999", "!row column `v`")]),
    Column(
        ["", "", "double(10,2)"],
        &[("-0.1", SAME), ("3.28", SAME), ("-19.25", SAME), ("123.45", SAME)],
    ),
    // Digits of a long notation are dropped before its exponent is applied.
    Column(
        ["", "numeric(10,2)", "decimal(10,2)"],
        &[("1.50", SAME), ("\"15e-1\"", "1.50"), ("-0.10", SAME), ("1.5000e0", "1.50")],
    ),
    Column(
        ["", "", "decimal(10,2)"],
        &[(
            "0.000000000000000000000000000000000000000000000000000000000000000000000000005e75",
            "!row column `v`",
        )],
    ),
    // Other notations are read as the bytes of a text.
    Column(
        ["", "", "bit(24)"],
        &[
            ("5", SAME),
            ("16777215", SAME),
            ("true", "1"),
            ("1e3", "!row column `v`"),
            ("1.5", "!row column `v`"),
            ("-1", "!row column `v`"),
            ("16777216", "!row column `v`"),
        ],
    ),
    Column(
        ["", "", "bit(64)"],
        &[("9223372036854775808", SAME), ("18446744073709551615", SAME), ("-1", "!row column `v`")],
    ),
    Column(
        ["", "", "year"],
        &[("2024", SAME), ("24", "!row column `v`"), ("\"5\"", "!row column `v`")],
    ),
    // A text that is not one of the words but a number is the index of a word.
    Column(
        ["", "", "enum('new','paid','sent')"],
        &[
            ("\"paid\"", SAME),
            ("\"PAID\"", "!row column `v`"),
            ("\"paid \"", "!row column `v`"),
            ("\"páid\"", "!row column `v`"),
            ("\"2\"", "!row column `v`"),
            ("\" 2\"", "!row column `v`"),
            ("\"\\t+2\"", "!row column `v`"),
            ("\"0\"", "!row column `v`"),
            ("\"4\"", "!row column `v`"),
            ("\"2x\"", "!row "),
            ("2", "!row column `v`"),
            ("null", SAME),
        ],
    ),
    Column(
        ["", "", "enum('10','it''s ''3''','2') character set latin1"],
        &[
            ("\"10\"", SAME),
            ("\"2\"", SAME),
            ("\"it's '3'\"", SAME),
            ("\"1\"", "!row column `v`"),
            ("\"3\"", "!row column `v`"),
            ("\"\u{a0}3\"", "!row column `v`"),
        ],
    ),
    Column(
        ["", "", "set('a','b','8')"],
        &[
            ("\"a,b\"", SAME),
            ("\"b,a,b\"", "\"a,b\""),
            ("\"a,B\"", "!row column `v`"),
            ("\"b,8\"", SAME),
            ("\"8\"", SAME),
            ("\"\"", SAME),
            ("\"3\"", "!row column `v`"),
            ("\"0\"", "!row column `v`"),
        ],
    ),
    // Domains of domains, and arrays of them.
    Column(["", "n2", ""], &[("1.23", SAME), ("1.234", "!row column `v`")]),
    Column(
        ["", "n2[]", ""],
        &[
            ("[1.23,null]", SAME),
            ("[\"\\t1.234\"]", "!row column `v`"),
            ("[1.234]", "!row column `v`"),
        ],
    ),
    Column(["", "n3", ""], &[("[1.23]", SAME), ("[1.23,1.234]", "!row column `v`")]),
    Column(["", "b2", ""], &[("\"AP8=\"", SAME), ("\"x\"", "!row column `v`")]),
    Column(["", "b2[]", ""], &[("[\"x\"]", "!row column `v`")]),
    Column(["", "j2[]", ""], &[("[\"1\"]", SAME)]),
    Column(["", "c2[]", ""], &[("[\"abc\"]", SAME), ("[\"abc   \"]", "!row column `v`")]),
    // Decimals.
    Column(
        ["", "numeric", "decimal(40,20)"],
        &[("12345678901234567890.12345678901234567890", SAME)],
    ),
    Column(
        ["", "numeric(10,2)", "decimal(10,2)"],
        &[
            ("1.10", SAME),
            ("1.1", "1.10"),
            ("1.100", "1.10"),
            ("1.105", "!row column `v`"),
            ("\"1.105\"", "!row column `v`"),
            ("\"\\t1.105\"", "!row column `v`"),
            ("\"1.105\\r\\n\"", "!row column `v`"),
            ("\"\\t1.10\"", "1.10"),
            ("123456789.5", "!row "),
        ],
    ),
    Column(
        ["numeric", "", ""],
        &[
            ("1.5", SAME),
            ("9007199254740993", SAME),
            ("9223372036854775808", "!row column `v`"),
            ("\"\\t12345678901234567891\"", "!row column `v`"),
        ],
    ),
    // JSON.
    Column(
        ["json", "jsonb", "json"],
        &[
            ("\"hello\"", SAME),
            ("\"1\"", SAME),
            ("\"true\"", SAME),
            ("\"a \\\"b\\\" \\\\ \\n é\"", SAME),
            ("\"{\\\"a\\\":1}\"", SAME),
            ("1", SAME),
            ("1.5", SAME),
            ("9007199254740993", SAME),
            ("true", SAME),
            ("false", SAME),
            ("null", SAME),
            ("[1, 2]", SAME),
            ("{\"a\": [true, null]}", SAME),
        ],
    ),
    Column(
        ["", "json", "json"],
        &[("1.10", SAME), ("18446744073709551616", SAME), ("\"x\"", SAME)],
    ),
    Column(
        [
            "",
            "",
            "longtext character set utf8mb4 collate utf8mb4_bin \
                  check (json_valid(v) and json_length(v) > 0)",
        ],
        &[("\"1\"", SAME), ("\"x\"", SAME), ("[]", "!row ")],
    ),
    Column(["", "jsonb", ""], &[("1.10", SAME), ("123456789012345678901234567890.1", SAME)]),
    // Arrays.
    Column(
        ["", "integer[]", ""],
        &[
            ("[1, 2, null]", "[1,2,null]"),
            ("[]", SAME),
            ("[[1, 2], [3, 4]]", "[[1,2],[3,4]]"),
            ("null", SAME),
            ("\"{1,2}\"", "[1,2]"),
            ("[1.5]", "!row "),
            ("[\"a\"]", "!row "),
            ("{\"a\":1}", "!row column `v`"),
            ("1", "!row column `v`"),
        ],
    ),
    Column(
        ["", "text[]", ""],
        &[
            ("[\"a\",\"b \\\"c\\\" \\\\ {},\",\"\",\"NULL\",null]", SAME),
            ("[1.10, true]", "[\"1.10\",\"true\"]"),
        ],
    ),
    Column(["", "boolean[]", ""], &[("[true, false]", "[true,false]")]),
    Column(
        ["", "bigint[]", ""],
        &[("[9007199254740993]", SAME), ("[9223372036854775808]", "!row ")],
    ),
    Column(
        ["", "double precision[]", ""],
        &[("[0.5]", SAME), ("[9007199254740993]", "!row column `v`")],
    ),
    Column(["", "jsonb[]", ""], &[("[\"a\", {\"b\": [1]}]", "[\"a\",{\"b\": [1]}]")]),
    // Bytes.
    Column(
        ["blob", "bytea", "blob"],
        &[
            ("\"AP8=\"", SAME),
            ("\"aGk=\"", SAME),
            ("\"\"", SAME),
            ("null", SAME),
            ("\"\\\\x00ff\"", "!row column `v`"),
            ("\"no base64!\"", "!row column `v`"),
            ("\"aGk\"", "!row column `v`"),
            ("5", "!row column `v`"),
            ("true", "!row column `v`"),
            ("[1]", "!row column `v`"),
        ],
    ),
    Column(["", "", "varbinary(9)"], &[("\"AP8=\"", SAME)]),
    // Numbers and ranges that only PostgreSQL has.
    Column(
        ["", "xid", ""],
        &[
            ("\"4294967295\"", "\"4294967295\""),
            ("\"abc\"", "!row column `v`"),
            ("\"12x\"", "!row column `v`"),
            ("4294967297", "!row column `v`"),
        ],
    ),
    Column(["", "xid8", ""], &[("\"18446744073709551615\"", SAME), ("-1", "!row column `v`")]),
    Column(["", "oid", ""], &[("-1", "!row column `v`")]),
    Column(
        ["", "floats", ""],
        &[("\"[1.5,2)\"", SAME), ("\"[16777217,16777219]\"", "!row column `v`")],
    ),
    Column(["", "f1", ""], &[("\"[16777217,16777219]\"", "!row column `v`")]),
    Column(["", "f1[]", ""], &[("[\"[16777217,16777219]\"]", "!row column `v`")]),
    // Times.
    Column(
        ["", "timestamp", "datetime(6)"],
        &[
            ("\"2024-01-01T10:00:00Z\"", "\"2024-01-01 10:00:00\""),
            ("\"2024-01-01T01:30:00+02:00\"", "\"2023-12-31 23:30:00\""),
            ("\"2024-02-29T23:30:00-05:30\"", "\"2024-03-01 05:00:00\""),
            ("\"2024-01-01T10:00:00\"", "\"2024-01-01 10:00:00\""),
            ("\"2024-01-01T10:00:00.1234567Z\"", "!row column `v`"),
            ("\"2024-01-01T10:00:00+2 hours\"", "!row column `v`"),
            ("\"2024-1-1 00:00:00+02\"", "\"2023-12-31 22:00:00\""),
            ("\"20240101T000000+0200\"", "\"2023-12-31 22:00:00\""),
            ("\"2024/01/01 10:00:00\"", "\"2024-01-01 10:00:00\""),
            ("\"20240101100000\"", "\"2024-01-01 10:00:00\""),
            ("\"20240101T1000\"", "\"2024-01-01 10:00:00\""),
            ("\"2024-01-01\"", "\"2024-01-01 00:00:00\""),
            ("\"Mon, 01 Jan 2024 00:00:00 +0200\"", "!row column `v`"),
            ("\"Mon Jan  1 00:00:00 PST 2024\"", "!row column `v`"),
            ("\"1/1/2024 00:00:00 -0800\"", "!row column `v`"),
            ("\"12024-01-01T00:00:00+02:00\"", "!row column `v`"),
        ],
    ),
    Column(["", "", "datetime"], &[("\"0000-00-00 00:00:00\"", SAME)]),
    Column(["", "timestamp", ""], &[("\"infinity\"", SAME), ("\"-infinity\"", SAME)]),
    Column(
        ["", "tsrange", ""],
        &[
            ("\"[2024-01-01T00:00:00+02:00,)\"", "\"[\\\"2023-12-31 22:00:00\\\",)\""),
            ("\"[2024-01-01 00:00:00 CET,)\"", "!row column `v`"),
            ("\"empty\"", SAME),
        ],
    ),
    Column(["", "daterange", ""], &[("\"[2024-01-01 10:00,)\"", "!row column `v`")]),
    Column(
        ["", "time with time zone", ""],
        &[("\"10:00:00+05\"", SAME), ("\"10:00:00.1234567+05\"", "!row column `v`")],
    ),
    Column(
        ["", "", "timestamp(6) null"],
        &[
            ("\"2024-07-01T10:00:00+02:00\"", "\"2024-07-01 08:00:00\""),
            ("\"2024-07-01T08:00:00.000001Z\"", "\"2024-07-01 08:00:00.000001\""),
        ],
    ),
    Column(
        ["", "timestamptz", ""],
        &[
            ("\"2024-07-01T10:00:00.5+02:00\"", "\"2024-07-01 08:00:00.5+00\""),
            ("\"2024-07-01T10:00:00.1234567Z\"", "!row column `v`"),
        ],
    ),
    Column(
        ["", "timestamp(0)", "datetime"],
        &[
            ("\"2024-01-01T10:00:00.5Z\"", "!row column `v`"),
            ("\"2024-01-01T10:00:00.000Z\"", "\"2024-01-01 10:00:00\""),
        ],
    ),
    Column(
        ["", "date", "date"],
        &[
            ("\"2024-02-29\"", SAME),
            ("\"2024-02-29T10:00:00Z\"", "!row column `v`"),
            ("\"2024.01.01 10.11.12\"", "!row column `v`"),
            ("\"Jan 1 2024 +05\"", "!row column `v`"),
        ],
    ),
    Column(["", "timestamptz(3)", ""], &[("\"20240101T1011.9996Z\"", "!row column `v`")]),
    Column(TEXT, &[("\"2024-01-01T10:00:00+02:00\"", SAME)]),
    Column(
        ["", "time(0)", "time"],
        &[
            ("\"10:00:00\"", SAME),
            ("\"10:00:00.5\"", "!row column `v`"),
            ("\"10:00:00 bc\"", "!row column `v`"),
            ("\"10:00:00+05\"", "!row column `v`"),
            ("\"2024-01-01 10:00:00\"", "!row column `v`"),
        ],
    ),
];

fn index(place: &Place) -> usize {
    if place.is_sqlite() {
        0
    } else if place.is_postgres() {
        1
    } else {
        2
    }
}

/// Checks every cell of the table, and reports all errors.
fn check(place: &Place, job: impl Fn(&str) -> Job) {
    let mut wrong = String::new();
    if place.is_postgres() {
        place.run(
            "create type floats as range (subtype = float4); create domain f1 as floats; \
             create domain n1 as numeric(5,2); create domain n2 as n1; create domain n3 as n2[]; \
             create domain b1 as bytea; create domain b2 as b1; \
             create domain j1 as jsonb; create domain j2 as j1; \
             create domain c1 as varchar(5); create domain c2 as c1",
        );
    }
    for (number, Column(types, cells)) in COLUMNS.iter().enumerate() {
        let of = types[index(place)];
        if of.is_empty() {
            continue;
        }
        let table = format!("t{number}");
        place.run(&format!("create table {table} (id bigint, v {of})"));
        let mut handler = place.handler(job(&table));
        let read = Query::new(&format!("select v from {table} where id = :id"));
        let mut reader = place.handler(Job::new(Action::Query(read)));
        for (id, (given, back)) in cells.iter().enumerate() {
            let answer = serve(&mut handler, [format!(r#"{{"id":{id},"v":{given}}}"#)]).remove(0);
            let found = serve(&mut reader, [format!(r#"{{"id":{id}}}"#)]).remove(0);
            let fits = match back.strip_prefix('!') {
                Some(_) => answer.starts_with(back) && found == "[]",
                None => {
                    let back = if *back == SAME { given } else { back };
                    answer == "ok" && found == format!("[{{\"v\":{back}}}]")
                }
            };
            if !fits {
                writeln!(wrong, "{given} in {of}: {answer}, {found}; not {back}").unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

fn values_are_read_back_as_they_were_given_or_refused(place: &Place) {
    check(place, |table| Job::new(Action::insert(table, ["id", "v"])));
}

fn a_statement_keeps_types_as_an_insert_does(place: &Place) {
    check(place, |table| {
        let sql = format!("insert into {table} (id, v) values (:id, :v)");
        Job::new(Action::Statement(sql))
    });
}

fn a_statement_with_comments_keeps_types_as_well(place: &Place) {
    check(place, |table| {
        let sql = format!("insert into {table} (id, v) values (:id /* it's */, :v -- it's\n)");
        Job::new(Action::Statement(sql))
    });
}

fn the_update_of_a_row_that_exists_keeps_types_as_well(place: &Place) {
    let of = ["integer", "numeric(10,2)", "decimal(10,2)"][index(place)];
    place.run(&format!("create table kept (id bigint primary key, v {of})"));
    let update = match place.is_mariadb() {
        true => "on duplicate key update V = :v",
        false => "on conflict (id) do update set V = :v",
    };
    let sql = format!("insert into kept (id) values (:id) {update}");
    let mut handler = place.handler(Job::new(Action::Statement(sql)));
    let rows = [r#"{"id":1,"v":2}"#, r#"{"id":1,"v":3}"#, r#"{"id":1,"v":9007199254740993.555}"#];
    let answers = serve(&mut handler, rows);
    assert_eq!(answers[..2], ["ok"; 2]);
    assert!(answers[2].starts_with("!row column `v`"), "{answers:?}");
    assert_eq!(place.run("select round(v, 0) from kept")[0].split('.').next(), Some("3"));
}

fn a_parameter_of_two_columns_keeps_both_types(place: &Place) {
    // PostgreSQL gives a parameter one type only.
    let of = [["integer", "text"], ["text", "varchar(3)"], ["decimal(5,2)", "text"]][index(place)];
    place.run(&format!("create table kept (id bigint primary key, a {}, b {})", of[0], of[1]));
    let update = match place.is_mariadb() {
        true => "on duplicate key update a = :v, b = :v",
        false => "on conflict (id) do update set a = :v, b = :v",
    };
    let sql = format!("insert into kept (id, a) values (:id, :v) {update}");
    let mut handler = place.handler(Job::new(Action::Statement(sql)));
    let (kept, cut) =
        [("7", "9007199254740993.5"), ("\"ab\"", "\"abc \""), ("-0", "1.555")][index(place)];
    let rows = [kept, kept, cut].map(|v| format!(r#"{{"id":1,"v":{v}}}"#));
    let answers = serve(&mut handler, rows);
    assert_eq!(answers[..2], ["ok"; 2]);
    assert!(answers[2].starts_with("!row column `v`"), "{answers:?}");
    assert_eq!(place.run("select a, b from kept"), [["7|7", "ab|ab", "0.00|-0"][index(place)]]);
}

fn bytes_go_both_ways_in_tsv_as_they_are(place: &Place) {
    let of = ["blob", "bytea", "blob"][index(place)];
    place.run(&format!("create table kept (id bigint, v {of})"));
    let job = Job::new(Action::insert("kept", ["id", "v"]));
    let mut handler = place.handler(Job { record: Record::Tsv, ..job });
    let answers = serve(&mut handler, [&b"1\thi"[..], b"2\t\\\\x00", b"3\t\xff\x01", b"4\t\\N"]);
    assert_eq!(answers, ["ok"; 4]);
    let read = |rows| Query { rows, ..Query::new("select v from kept order by id") };
    let mut tsv = place.handler(Job::new(Action::Query(read(Format::Tsv))));
    assert_eq!(serve(&mut tsv, ["{}"]), ["hi\n\\\\x00\n\u{fffd}\u{1}\n\\N\n"]);
    let mut json = place.handler(Job::new(Action::Query(read(Format::Json))));
    let rows = r#"[{"v":"aGk="},{"v":"XHgwMA=="},{"v":"/wE="},{"v":null}]"#;
    assert_eq!(serve(&mut json, ["{}"]), [rows]);
}

fn refused_values_leave_their_neighbours_alone(place: &Place) {
    let of = ["real", "double precision", "double"][index(place)];
    place.run(&format!("create table kept (id bigint, v {of})"));
    let job =
        Job { dead: Some("dead".to_owned()), ..Job::new(Action::insert("kept", ["id", "v"])) };
    let mut handler = place.handler(job);
    let value = |id: usize| if id % 3 == 1 { "9007199254740993" } else { "0.5" };
    let bodies = (0..100).map(|id| format!(r#"{{"id":{id},"v":{}}}"#, value(id)));
    let answers = serve(&mut handler, bodies);
    for (id, answer) in answers.iter().enumerate() {
        assert_eq!(answer.starts_with("!row column `v`"), id % 3 == 1, "{id}: {answer}");
        assert_eq!(answer == "ok", id % 3 != 1, "{id}: {answer}");
    }
    assert_eq!(place.run("select count(*) from kept"), ["67"]);
    assert_eq!(place.run("select count(*) from dead"), ["33"]);
}

fn a_column_that_takes_a_value_since_it_was_altered_gets_it(place: &Place) {
    let of = ["real", "double precision", "double"][index(place)];
    place.run(&format!("create table kept (id bigint, v {of})"));
    let mut handler = place.handler(Job::new(Action::insert("kept", ["id", "v"])));
    let row = |id: usize| format!(r#"{{"id":{id},"v":9007199254740993}}"#);
    let refused = serve(&mut handler, [row(1)]);
    assert!(refused[0].starts_with("!row column `v`"), "{refused:?}");
    place.run(match place {
        it if it.is_sqlite() => "drop table kept; create table kept (id bigint, v text)",
        it if it.is_postgres() => "alter table kept alter column v type text",
        _ => "alter table kept modify column v text",
    });
    assert_eq!(serve(&mut handler, [row(2)]), ["ok"]);
    assert_eq!(place.run("select id, v from kept"), ["2|9007199254740993"]);
}
