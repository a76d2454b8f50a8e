//! Rows that a database does not store although it reports no error: what clients receive.

use crate::daemon::{Daemon, folder, one_pool};
use crate::server::{Kind, Server};

const IGNORED: &str = "ignored the database did not store the row and reported no error";

fn pool(target: &str, more: &str) -> String {
    format!("database = \"{target}\"\nack = \"ok {{id}}\"\n{more}\n")
}

const INSERT: &str = "insert = { table = \"hits\", columns = [\"id\", \"path\"] }";

/// Starts the same pool with a listener for lines and one for HTTP.
fn serve(folder: &std::path::Path, pool: &str) -> Daemon {
    let web = "[listener.web]\nlisten = \"127.0.0.1:0\"\nprotocol = \"http\"\npool = \"main\"\n";
    Daemon::serve(folder, &format!("{}{web}", one_pool("", pool)))
}

fn post(daemon: &Daemon, body: &str) -> (u16, String) {
    let said = roadstead::ask::request(&daemon.listeners["web"], "POST", "/", body.as_bytes());
    let said = said.unwrap();
    (said.status, String::from_utf8(said.body).unwrap())
}

#[test]
fn a_row_that_a_trigger_drops_is_told_by_every_protocol() {
    let server = Server::start(Kind::Postgres, &[]);
    let target = server.database("hits");
    server.run(
        "hits",
        "create table hits (id bigint primary key, path varchar(20)); \
         create function f() returns trigger language plpgsql as $$ begin \
         if new.path = '/no' then return null; end if; return new; end $$; \
         create trigger t before insert on hits for each row execute function f()",
    );
    let folder = folder();
    let daemon = serve(folder.path(), &pool(&target, INSERT));
    let mut client = daemon.connect();
    assert_eq!(client.ask(r#"{"id":1,"path":"/a"}"#), "ok 1");
    assert_eq!(client.ask(r#"{"id":2,"path":"/no"}"#), format!("!{IGNORED}"));
    let (status, body) = post(&daemon, r#"{"id":3,"path":"/no"}"#);
    assert_eq!((status, body), (409, format!("{}\n", IGNORED.replacen(' ', ": ", 1))));
    assert_eq!(post(&daemon, r#"{"id":4,"path":"/b"}"#), (201, "ok 4".to_owned()));
    assert_eq!(server.run("hits", "select id from hits order by id"), ["1", "4"]);
    assert_eq!(
        daemon.metric("roadstead_requests_finished_total", &["\"ignored\"", "\"refused\""]),
        2
    );
    assert!(daemon.stop().success());
    // If the trigger stores rows in another table, they count as stored.
    let daemon = serve(folder.path(), &pool(&target, &format!("{INSERT}\naffected = \"any\"")));
    assert_eq!(daemon.connect().ask(r#"{"id":5,"path":"/no"}"#), "ok 5");
}

#[test]
fn an_update_of_nothing_is_not_found() {
    for kind in [Kind::Postgres, Kind::Mariadb] {
        let server = Server::start(kind, &[]);
        let target = server.database("hits");
        server.run("hits", "create table hits (id bigint primary key, path varchar(20))");
        server.run("hits", "insert into hits values (1, '/a')");
        let folder = folder();
        let update = "statement = \"update hits set path = :path where id = :id\"";
        let daemon = serve(folder.path(), &pool(&target, update));
        let mut client = daemon.connect();
        assert_eq!(client.ask(r#"{"id":1,"path":"/a"}"#), "ok 1");
        assert_eq!(client.ask(r#"{"id":2,"path":"/b"}"#), "!norow the statement changed no row");
        let (status, body) = post(&daemon, r#"{"id":2,"path":"/b"}"#);
        assert_eq!((status, &*body), (404, "norow: the statement changed no row\n"));
    }
}

#[test]
fn only_a_conflict_on_the_key_is_acknowledged() {
    for kind in [Kind::Postgres, Kind::Mariadb] {
        let server = Server::start(kind, &[]);
        let target = server.database("hits");
        server.run("hits", "create table hits (id bigint primary key, path varchar(20) unique)");
        let folder = folder();
        let insert = "insert = { table = \"hits\", columns = [\"id\", \"path\"], \
                      on_conflict = \"nothing\", key = [\"id\"] }";
        let daemon = serve(folder.path(), &pool(&target, insert));
        let mut client = daemon.connect();
        assert_eq!(client.ask(r#"{"id":1,"path":"/a"}"#), "ok 1");
        assert_eq!(client.ask(r#"{"id":1,"path":"/b"}"#), "ok 1");
        assert!(client.ask(r#"{"id":2,"path":"/a"}"#).starts_with("!row "));
        assert_eq!(server.run("hits", "select id, path from hits"), ["1|/a"]);
    }
}
