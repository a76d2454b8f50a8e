//! Settings of servers and spellings of names under which types must still be recognised.

use database::{Action, Job};

use crate::place::{Place, serve};
use crate::server::{Kind, Server};

/// Otherwise PostgreSQL reads the text `NULL`.
#[test]
fn null_is_null_where_the_server_reads_arrays_without_it() {
    let place = Place::postgres();
    let name = place.login().database;
    place.run(&format!(
        "alter database {name} set array_nulls = off; create table kept (id bigint, v text)"
    ));
    let mut handler = place.handler(Job::new(Action::insert("kept", ["id", "v"])));
    assert_eq!(serve(&mut handler, [r#"{"id":1,"v":null}"#, r#"{"id":2,"v":"NULL"}"#]), ["ok"; 2]);
    assert_eq!(place.run("select id from kept where v is null"), ["1"]);
}

/// Otherwise values are checked against the columns of another table, or not at all.
#[test]
fn names_without_quotes_are_those_that_postgresql_reads() {
    let place = Place::postgres();
    place.run(
        "create table hits (id bigint, v numeric(10,2)); create table \"Hits\" (id bigint, v text); \
         create schema sx; create table sx.hits (id bigint, v numeric(10,2)); \
         create table \"a.b\" (id bigint, \"V\" numeric(10,2), v text)",
    );
    for sql in [
        "insert into Hits (Id, V) values (:id, :v)",
        "INSERT INTO SX.Hits (Id, V) VALUES (:id, :v)",
        "insert into \"a.b\" (ID, \"V\") values (:id, :v)",
    ] {
        let mut handler = place.handler(Job::new(Action::Statement(sql.to_owned())));
        let answers = serve(&mut handler, [r#"{"id":1,"v":1.555}"#, r#"{"id":2,"v":1.5}"#]);
        assert!(answers[0].starts_with("!row column `v`"), "{sql}: {answers:?}");
        assert_eq!(answers[1], "ok", "{sql}");
    }
    let sql = "insert into \"Hits\" (id, v) values (:id, :v)".to_owned();
    let mut handler = place.handler(Job::new(Action::Statement(sql)));
    assert_eq!(serve(&mut handler, [r#"{"id":1,"v":1.555}"#]), ["ok"]);
    // A change of the column is noticed as well.
    let sql = "insert into Hits (Id, V) values (:id, :v)".to_owned();
    let mut handler = place.handler(Job::new(Action::Statement(sql)));
    assert_eq!(serve(&mut handler, [r#"{"id":3,"v":1.55}"#]), ["ok"]);
    place.run("alter table hits alter column v type numeric(10,1)");
    let answers = serve(&mut handler, [r#"{"id":4,"v":1.55}"#]);
    assert!(answers[0].starts_with("!row column `v`"), "{answers:?}");
}

#[test]
fn a_point_within_a_name_is_no_schema_in_a_statement() {
    let place = Place::mariadb();
    place.run("create table `a.b` (id bigint, v decimal(10,2), bits bit(8))");
    let sql = "insert into `a.b` (id, v) values (:id, :v)".to_owned();
    let mut handler = place.handler(Job::new(Action::Statement(sql)));
    let answers = serve(&mut handler, [r#"{"id":1,"v":1.555}"#, r#"{"id":2,"v":1.5}"#]);
    assert!(answers[0].starts_with("!row column `v`") && answers[1] == "ok", "{answers:?}");
}

/// With this setting the catalog shows `"bytea"` and `"jsonb"`.
#[test]
fn types_are_known_where_the_server_quotes_all_names() {
    let place = Place::postgres();
    let name = place.login().database;
    place.run(&format!(
        "alter database {name} set quote_all_identifiers = on; \
         create table kept (id bigint, b bytea, j jsonb, n numeric(10,2))"
    ));
    let mut handler = place.handler(Job::new(Action::insert("kept", ["id", "b", "j", "n"])));
    let rows =
        [r#"{"id":1,"b":"AP9c","j":"1","n":1.5}"#, r#"{"id":2,"b":null,"j":null,"n":1.555}"#];
    let answers = serve(&mut handler, rows);
    assert!(answers[0] == "ok" && answers[1].starts_with("!row column `n`"), "{answers:?}");
    assert_eq!(place.run("select encode(b, 'hex'), jsonb_typeof(j) from kept"), ["00ff5c|string"]);
}

#[test]
fn json_is_known_where_mariadb_shows_names_without_quotes() {
    let place = Place::mariadb();
    place.run("create table kept (id bigint, v json)");
    let insert = || Job::new(Action::insert("kept", ["id", "v"]));
    let mut answers = Vec::new();
    for (id, setting) in
        ["sql_quote_show_create = 0", "sql_quote_show_create = 1"].iter().enumerate()
    {
        place.run(&format!("set global {setting}"));
        let row = format!(r#"{{"id":{id},"v":"1"}}"#);
        answers.extend(serve(&mut place.handler(insert()), [row]));
    }
    assert_eq!(answers, ["ok"; 2]);
    assert_eq!(place.run("select json_type(v) from kept"), ["STRING"; 2]);
}

/// Settings of old servers.
#[test]
fn text_is_text_whatever_character_set_a_server_thinks_of() {
    let mut server = Server::prepare_forever(Kind::Mariadb);
    server.set(&[
        "skip-character-set-client-handshake",
        "character-set-server=latin1",
        "sql-mode=EMPTY_STRING_IS_NULL",
    ]);
    server.restart();
    server.database("own");
    let place = Place::Server(Box::leak(Box::new(server)), "own".to_owned());
    place.run("create table kept (id bigint, v text)");
    let mut handler = place.handler(Job::new(Action::insert("kept", ["id", "v"])));
    let rows = ["{\"id\":1,\"v\":\"é€\"}", "{\"id\":2,\"v\":\"\"}"];
    assert_eq!(serve(&mut handler, rows), ["ok"; 2]);
    let found = place.run("select id, hex(v) from kept where v is not null order by id");
    assert_eq!(found, ["1|C3A9E282AC", "2|"]);
}
