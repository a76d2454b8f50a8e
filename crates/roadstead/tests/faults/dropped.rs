//! Databases that drop rows without an error, under load: temporary triggers, and an SQLite file that is moved away or
//! replaced.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;

use crate::daemon::{Daemon, folder, main_job, read_log, until, worker_program};
use crate::ground::Ground;
use crate::server::{Kind, Server};
use crate::times;
use crate::under_load::Load;

const TABLE: &str = "create table hits (id integer, at integer, path text, status integer)";

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Starts a daemon with the main job on an SQLite file.
fn on_sqlite(folder: &Path) -> Daemon {
    let parse = format!("{}workers = 2\n", worker_program(&[]));
    Daemon::serve(folder, &main_job(folder, &parse, ""))
}

fn answered(daemon: &Daemon) -> u64 {
    daemon.metric("roadstead_requests_finished_total", &["store", "answered"])
}

fn ignored(daemon: &Daemon) -> u64 {
    daemon.metric("roadstead_requests_finished_total", &["store", "\"ignored\""])
}

fn until_more(daemon: &Daemon, count: u64) {
    let before = answered(daemon);
    until("rows are acknowledged", || answered(daemon) >= before + count);
}

/// Copies the rows of all these files into one.
fn unite(files: &[PathBuf], into: &Path) {
    let all = Connection::open(into).unwrap();
    all.execute_batch(TABLE).unwrap();
    for file in files {
        all.execute("attach ? as one", [file.to_str().unwrap()]).unwrap();
        all.execute("insert into hits select * from one.hits", []).unwrap();
        all.execute_batch("detach one").unwrap();
    }
}

#[test]
fn an_sqlite_file_that_is_moved_away_or_replaced_loses_nothing() {
    let folder = folder();
    let daemon = on_sqlite(folder.path());
    let file = folder.path().join("hits.db");
    let count = times(50);
    let load = Load::start(folder.path(), daemon.address());
    let mut files = vec![file.clone()];
    for round in 0..count {
        until_more(&daemon, 100);
        let old = folder.path().join(format!("old{round}.db"));
        let opened =
            read_log(folder.path()).matches("connection to the database works again").count();
        let new = beside(&file, ".new");
        if round % 2 == 1 {
            Connection::open(&new).unwrap().execute_batch(TABLE).unwrap();
        }
        // The log is renamed last: while it exists, the path is not opened again.
        fs::rename(&file, &old).unwrap();
        if round % 2 == 1 {
            fs::rename(&new, &file).unwrap();
        }
        for suffix in ["-shm", "-wal"] {
            fs::rename(beside(&file, suffix), beside(&old, suffix)).unwrap();
        }
        files.push(old);
        until("the path is opened again", || {
            read_log(folder.path()).matches("connection to the database works again").count()
                > opened
        });
        until_more(&daemon, 1);
    }
    let said = load.end();
    assert!(daemon.stop().success());
    let all = folder.path().join("all.db");
    unite(&files, &all);
    let verdict = roadstead::ledger::check(&folder.path().join("ledger"), &all, "hits").unwrap();
    eprintln!("SQLite, moved away or replaced: {count} times\n{said}\n{verdict}");
    assert!(verdict.is_clean(), "{verdict}");
    assert!(verdict.acknowledged > 0 && verdict.failed + verdict.unknown > 0);
}

#[test]
fn an_sqlite_trigger_that_drops_rows_is_told() {
    let folder = folder();
    let daemon = on_sqlite(folder.path());
    let other = Connection::open(folder.path().join("hits.db")).unwrap();
    other.busy_timeout(Duration::from_secs(60)).unwrap();
    let count = times(50);
    let load = Load::start(folder.path(), daemon.address());
    for _ in 0..count {
        until_more(&daemon, 100);
        let before = ignored(&daemon);
        let trigger = "create trigger drops before insert on hits when new.id % 10 = 3 \
                       begin select raise(ignore); end";
        other.execute_batch(trigger).unwrap();
        until("rows are dropped", || ignored(&daemon) >= before + 20);
        other.execute_batch("drop trigger drops").unwrap();
        until_more(&daemon, 1);
    }
    drop(other);
    let (said, verdict) = load.finish();
    eprintln!("SQLite, a trigger that drops rows: {count} times\n{said}\n{verdict}");
    assert!(verdict.is_clean(), "{verdict}");
    assert!(verdict.acknowledged > 0 && verdict.refused >= 20 * u64::from(count));
    assert!(daemon.stop().success());
}

#[test]
fn a_postgres_trigger_that_drops_rows_is_told() {
    let server = Server::start(Kind::Postgres, &[]);
    let way = server.port;
    let count = times(50);
    let ground = Ground::start(server, "", way);
    ground.server.run(
        "hits",
        "create function drops() returns trigger language plpgsql as $$ begin \
         if new.id % 10 = 3 then return null; end if; return new; end $$",
    );
    ground.under("a trigger that drops rows", count, |ground, _| {
        let before = ignored(&ground.daemon);
        let trigger =
            "create trigger drops before insert on hits for each row execute function drops()";
        ground.server.run("hits", trigger);
        until("rows are dropped", || ignored(&ground.daemon) >= before + 20);
        ground.server.run("hits", "drop trigger drops on hits");
    });
}
