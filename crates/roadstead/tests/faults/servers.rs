//! Servers of databases that are killed, stopped and switched to read-only under load: no acknowledged
//! row is missing, none is there twice, none is there that nobody sent.

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;

use crate::daemon::{Daemon, folder, main_job, until, worker_program};
use crate::server::{Kind, Server};
use crate::times;
use crate::under_load::Load;

const CREATE: &str =
    "create table hits (id bigint not null, at bigint, path varchar(200), status integer)";

/// The main job on that server.
fn job(folder: &Path, target: &str) -> String {
    let job = main_job(folder, &format!("{}workers = 2\n", worker_program(&[])), "");
    let lines = job.lines().filter(|line| !line.starts_with("create = ")).map(|line| {
        match line.strip_prefix("database = ") {
            Some(_) => format!("database = \"{target}\""),
            None => line.to_owned(),
        }
    });
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

/// Copies what is in the server where the checker looks.
fn copy(server: &Server, folder: &Path) {
    let rows = server.run("hits", "select id, at, path, status from hits");
    let mut to = Connection::open(folder.join("hits.db")).unwrap();
    to.execute_batch("create table hits (id integer, at integer, path text, status integer)")
        .unwrap();
    let whole = to.transaction().unwrap();
    for row in rows {
        let values: Vec<&str> = row.split('|').collect();
        whole
            .execute("insert into hits values (?, ?, ?, ?)", rusqlite::params_from_iter(values))
            .unwrap();
    }
    whole.commit().unwrap();
}

/// Makes a fault again and again under load, and holds the rows against the ledger.
fn under(kind: Kind, count: u32, mut fault: impl FnMut(&mut Server)) {
    let mut server = Server::start(kind, &[]);
    let target = server.database("hits");
    server.run("hits", CREATE);
    let folder = folder();
    let daemon = Daemon::serve(folder.path(), &job(folder.path(), &target));
    let time = Duration::from_secs(3 + 5 * u64::from(count));
    let load = Load::start(folder.path(), daemon.address(), time);
    let stored = || daemon.metric("roadstead_ends_total", &["store", "answered"]);
    for _ in 0..count {
        let before = stored();
        until("rows are acknowledged", || stored() > before + 100);
        fault(&mut server);
        let before = stored();
        until("rows are acknowledged again", || stored() > before);
    }
    let said = load.end();
    copy(&server, folder.path());
    let (ledger, database) = (folder.path().join("ledger"), folder.path().join("hits.db"));
    let verdict = roadstead::ledger::check(&ledger, &database, "hits").unwrap();
    eprintln!("{kind:?}: {count} faults\n{said}\n{verdict}");
    assert!(verdict.is_clean(), "{verdict}");
    assert!(verdict.acknowledged > 0);
    assert!(daemon.stop().success());
}

#[test]
fn a_postgres_that_is_killed_loses_nothing() {
    under(Kind::Postgres, times(20), |server| {
        server.kill();
        server.restart();
    });
}

#[test]
fn a_postgres_that_is_stopped_at_once_loses_nothing() {
    under(Kind::Postgres, times(20), |server| {
        server.stop_at_once();
        server.restart();
    });
}

#[test]
fn a_mariadb_that_is_killed_loses_nothing() {
    under(Kind::Mariadb, times(20), |server| {
        server.kill();
        server.restart();
    });
}

#[test]
fn a_postgres_that_is_switched_to_read_only_is_waited_for() {
    under(Kind::Postgres, times(10), |server| {
        let switch = |to: &str| {
            server
                .run("postgres", &format!("alter system set default_transaction_read_only = {to}"));
            server.run("postgres", "select pg_reload_conf()");
        };
        switch("on");
        let refused = server.session("hits", "select 1").wait();
        assert!(refused.is_ok(), "it can be read meanwhile");
        switch("off");
    });
}
