//! The examples as they are shipped, with the real interpreter; only their ports are chosen by the
//! system.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rusqlite::Connection;

use crate::client::Client;
use crate::daemon::{Daemon, folder};

/// Copies an example into a folder of the test and serves one of its configurations there.
fn serve(folder: &Path, example: &str, file: &str) -> Daemon {
    let from = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(example);
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, folder.join(path.file_name().unwrap())).unwrap();
    }
    let configuration = fs::read_to_string(folder.join(file)).unwrap();
    let configuration = configuration.replace("127.0.0.1:7000", "127.0.0.1:0");
    Daemon::serve(folder, &configuration.replace("127.0.0.1:7070", "127.0.0.1:0"))
}

fn perl_has(module: &str) -> bool {
    Command::new("perl")
        .arg(format!("-M{module}"))
        .args(["-e", "1"])
        .output()
        .is_ok_and(|out| out.status.success())
}

#[test]
fn hits_with_a_perl_worker_does_what_its_page_says() {
    assert!(perl_has("strict"), "this test needs perl: apt-get install perl");
    let folder = folder();
    let daemon = serve(folder.path(), "hits", "hits.toml");
    let mut client = Client::connect(&daemon.listeners["hits"]);
    client.send("7 1764000000000000 /a/17 200\n8 1764000000000001 /b/3 404\nnonsense\n");
    client.finish();
    let replies = client.rest();
    assert_eq!(replies, ["ok 7", "ok 8", "!record four words are needed: ID AT PATH STATUS"]);
    assert_eq!(rows(&folder.path().join("hits.db")), 2);
    assert!(daemon.stop().success());
}

#[test]
fn hits_with_a_database_handle_in_each_worker_stores_the_same() {
    assert!(
        perl_has("DBD::SQLite"),
        "this test needs DBD::SQLite: apt-get install libdbd-sqlite3-perl"
    );
    let folder = folder();
    let daemon = serve(folder.path(), "hits", "dbi.toml");
    let mut client = Client::connect(daemon.listeners.values().next().unwrap());
    client.send("7 1764000000000000 /a/17 200\n8 1764000000000001 /b/3 404\n");
    client.finish();
    assert_eq!(client.rest(), ["ok 7", "ok 8"]);
    let databases: Vec<PathBuf> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|it| it == "db"))
        .collect();
    assert_eq!(databases.iter().map(|path| rows(path)).sum::<i64>(), 2);
    assert!(daemon.stop().success());
}

fn rows(database: &Path) -> i64 {
    let database = Connection::open(database).unwrap();
    database.query_row("select count(*) from hits", [], |row| row.get(0)).unwrap()
}
