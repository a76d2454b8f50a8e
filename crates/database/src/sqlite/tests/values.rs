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
