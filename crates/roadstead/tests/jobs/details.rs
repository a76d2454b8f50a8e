//! Error details are visible only to the operator, with every client protocol.

use crate::daemon::{Daemon, folder, one_pool, read_log};
use crate::server::{Kind, Server};

const TABLE: &str = "create table hits (id bigint primary key, path varchar(20) not null, \
                     secret varchar(20) default 'hush' unique)";

/// Starts a daemon with this option, stores a row, and sends rows that the database rejects. Returns the replies to a
/// line and to a POST, and the log.
fn refused(kind: Kind, option: &str) -> (String, String, String) {
    let server = Server::start(kind, &[]);
    let target = server.database("hits");
    server.run("hits", TABLE);
    let folder = folder();
    let pool = format!(
        "database = \"{target}\"\ninsert = {{ table = \"hits\", columns = [\"id\", \"path\"] }}\n\
         dead_letter_table = \"dead\"\nack = \"ok {{id}}\"\n{option}\n"
    );
    let web = "[listener.web]\nlisten = \"127.0.0.1:0\"\nprotocol = \"http\"\npool = \"main\"\n";
    let daemon = Daemon::serve(folder.path(), &format!("{}{web}", one_pool("", &pool)));
    let mut client = daemon.connect();
    assert_eq!(client.ask(r#"{"id":1,"path":"/a"}"#), "ok 1");
    let line = client.ask(r#"{"id":2,"path":"/b"}"#);
    let body = br#"{"id":3,"path":"/c"}"#;
    let said = roadstead::ask::request(&daemon.listeners["web"], "POST", "/", body).unwrap();
    assert_eq!(said.status, 400);
    let kept = server.run("hits", "select message from dead").concat();
    assert!(kept.contains("hush"), "the table of dead letters is the operator's: {kept}");
    assert!(daemon.stop().success());
    (line, String::from_utf8(said.body).unwrap(), read_log(folder.path()))
}

#[test]
fn details_go_to_the_log_only_where_that_is_asked_for() {
    for kind in [Kind::Postgres, Kind::Mariadb] {
        for (option, logged) in [("", false), ("log_error_details = true", true)] {
            let (line, body, log) = refused(kind, option);
            let code = if kind == Kind::Postgres { "(23505)" } else { "(1062)" };
            assert!(line.starts_with("!row ") && line.ends_with(code), "{line}");
            assert!(body.starts_with("row: ") && body.trim_end().ends_with(code), "{body}");
            assert!(!line.contains("hush") && !body.contains("hush"), "{line}\n{body}");
            assert_eq!(log.contains("hush"), logged, "{kind:?} {option}: {log}");
        }
    }
}
