use super::*;

const ANY: &str = "create table if not exists hits (id integer primary key, path, status)";

fn kept(value: &str) -> String {
    let place = Place::with_create(ANY);
    let body = format!(r#"{{"id":1,"path":{value},"status":null}}"#);
    assert_eq!(serve(&mut place.handler(), [body]), ["ok 1"]);
    let connection = Connection::open(place.path()).unwrap();
    let sql = "select typeof(path) || ' ' || quote(path) from hits where status is null";
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}

#[test]
fn each_kind_keeps_its_type() {
    assert_eq!(kept("null"), "null NULL");
    assert_eq!(kept(r#""""#), "text ''");
    assert_eq!(kept("17"), "integer 17");
    assert_eq!(kept("-9223372036854775808"), "integer -9223372036854775808");
    assert_eq!(kept("1.5e3"), "real 1500.0");
    assert_eq!(kept("true"), "integer 1");
    assert_eq!(kept("123456789012345678901"), "text '123456789012345678901'");
    assert_eq!(kept(r#"{"a": [1]}"#), r#"text '{"a": [1]}'"#);
}

#[test]
fn what_looks_like_sql_is_a_value() {
    assert_eq!(kept(r#""'); drop table hits; --""#), "text '''); drop table hits; --'");
}

#[test]
fn a_nul_is_kept_in_the_row_and_in_the_reply() {
    let mut place = Place::new();
    place.options.job.ack = "{path}".to_owned();
    let body = r#"{"id":1,"path":"a\u0000b","status":0}"#;
    assert_eq!(serve(&mut place.handler(), [body]), ["a\0b"]);
    assert_eq!(place.rows(), ["1 a\0b 0"]);
}

/// Otherwise the types of the table `hits` would be those of `log.hits`: its text would be stored as bytes.
#[test]
fn a_table_with_a_point_in_its_name_is_not_another_table() {
    let create = "create table if not exists \"log.hits\" (id integer, v text, n integer); \
                  create table if not exists hits (id integer, v blob, n text)";
    let statement = "insert into \"log.hits\" (id, v, n) values (:id, :v, :n)";
    let schema = "insert into main.\"log.hits\" (id, v, n) values (:id, :v, :n)";
    let statements = [statement, schema].map(|sql| Action::Statement(sql.to_owned()));
    for action in statements.into_iter().chain([Action::insert("log.hits", ["id", "v", "n"])]) {
        let mut place = Place::with_create(create);
        place.options.job.action = action;
        let rows = [r#"{"id":1,"v":"test","n":1}"#, r#"{"id":2,"v":"a","n":9007199254740993e2}"#];
        let answers = serve(&mut place.handler(), rows);
        assert_eq!(answers[0], "ok 1");
        assert!(answers[1].starts_with("!row column `n`"), "{answers:?}");
        let connection = Connection::open(place.path()).unwrap();
        let sql = "select typeof(v) || ' ' || v from \"log.hits\"";
        let stored: String = connection.query_row(sql, [], |row| row.get(0)).unwrap();
        assert_eq!(stored, "text test");
    }
}
