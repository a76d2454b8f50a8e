//! Database servers that are killed, stopped, switched to read-only, locked, full or cut off under load, and daemons
//! that are killed: no acknowledged row is missing, no row is stored twice, and no row exists that was not sent.

use crate::daemon::until;
use crate::ground::Ground;
use crate::proxy::{Cut, Proxy};
use crate::server::{Kind, Server, eventually};
use crate::times;
use crate::tmpfs::Tmpfs;
use crate::untested::untested_without_root;

/// Causes a fault `count` times on a server of this kind.
fn under(kind: Kind, what: &str, count: u32, mut fault: impl FnMut(&mut Ground)) {
    let server = Server::start(kind, &[]);
    let way = server.port;
    Ground::start(server, "", way).under(what, count, |ground, _| fault(ground));
}

fn killed(ground: &mut Ground) {
    ground.server.kill();
    ground.server.restart();
}

#[test]
fn a_postgres_that_is_killed_loses_nothing() {
    under(Kind::Postgres, "killed", times(20), killed);
}

#[test]
fn a_mariadb_that_is_killed_loses_nothing() {
    under(Kind::Mariadb, "killed", times(20), killed);
}

fn stopped_at_once(ground: &mut Ground) {
    ground.server.stop_at_once();
    ground.server.restart();
}

#[test]
fn a_postgres_that_is_stopped_at_once_loses_nothing() {
    under(Kind::Postgres, "stopped at once", times(20), stopped_at_once);
}

#[test]
fn a_mariadb_that_is_stopped_at_once_loses_nothing() {
    under(Kind::Mariadb, "stopped at once", times(20), stopped_at_once);
}

/// Switches a server to read-only until batches have failed, and back.
fn read_only(kind: Kind) {
    under(kind, "switched to read-only", times(10), |ground| {
        let switch = |on: bool| match kind {
            Kind::Postgres => {
                let set = format!("alter system set default_transaction_read_only = {on}");
                ground.server.run("postgres", &set);
                ground.server.run("postgres", "select pg_reload_conf()");
            }
            Kind::Mariadb => {
                drop(ground.server.run("hits", &format!("set global read_only = {on}")));
            }
        };
        let before = ground.outages();
        switch(true);
        until("a batch has run into it", || ground.outages() > before);
        assert_eq!(ground.server.run("hits", "select 1"), ["1"], "it can be read meanwhile");
        switch(false);
    });
}

#[test]
fn a_postgres_that_is_switched_to_read_only_is_waited_for() {
    read_only(Kind::Postgres);
}

#[test]
fn a_mariadb_that_is_switched_to_read_only_is_waited_for() {
    read_only(Kind::Mariadb);
}

/// Holds a lock on the whole table until batches have failed.
fn locked(kind: Kind) {
    let (lock, unlock) = match kind {
        Kind::Postgres => (
            "begin; lock table hits in exclusive mode; select pg_sleep(3600)",
            "select pg_terminate_backend(pid) from pg_stat_activity \
             where pid <> pg_backend_pid() and query like '%pg_sleep(3600)'",
        ),
        Kind::Mariadb => (
            "lock tables hits write; select sleep(3600)",
            "select concat('kill ', id) from information_schema.processlist \
             where id <> connection_id() and info like 'select sleep(3600)%'",
        ),
    };
    let server = Server::start(kind, &[]);
    let way = server.port;
    let count = times(20);
    let ground = Ground::start(server, "lock_timeout = \"1s\"\n", way);
    ground.under("locked", count, |ground, _| {
        let before = ground.failed();
        let mut holder = ground.server.session("hits", lock);
        until("batches fail for the lock", || ground.failed() > before);
        for kill in ground.server.run("hits", unlock) {
            if kind == Kind::Mariadb {
                ground.server.run("hits", &kill);
            }
        }
        let _ = holder.kill();
        let _ = holder.wait();
    });
}

#[test]
fn a_postgres_that_is_locked_fails_batches_and_serves_again() {
    locked(Kind::Postgres);
}

#[test]
fn a_mariadb_that_is_locked_fails_batches_and_serves_again() {
    locked(Kind::Mariadb);
}

/// Cuts the connection in every phase of a transaction, `count` times each.
fn cut(kind: Kind) {
    let server = Server::start(kind, &[]);
    let proxy = Proxy::to(server.port);
    let count = times(20) * u32::try_from(Cut::ALL.len()).unwrap();
    let ground = Ground::start(server, "workers = 2\norder = \"any\"\n", proxy.port());
    ground.under("cut", count, |_, round| {
        let before = proxy.cuts();
        proxy.cut(Cut::ALL[round as usize % Cut::ALL.len()]);
        until("it is cut", || proxy.cuts() > before);
    });
}

#[test]
fn a_way_to_postgres_that_is_cut_loses_nothing() {
    cut(Kind::Postgres);
}

#[test]
fn a_way_to_mariadb_that_is_cut_loses_nothing() {
    cut(Kind::Mariadb);
}

/// Fills the disk of a server until rows fail, and frees space again.
fn full(kind: Kind) {
    let count = times(20);
    let settings: &[&str] = match kind {
        Kind::Postgres => &["max_wal_size=32MB", "min_wal_size=32MB"],
        Kind::Mariadb => &["innodb-log-file-size=16M", "innodb-buffer-pool-size=16M"],
    };
    // The space for the server's own files, and for the rows of each round.
    let disk = match Tmpfs::mount(200 + 20 * count) {
        Ok(disk) => disk,
        Err(why) => {
            return untested_without_root(&format!("{kind:?} on a full disk"), &why);
        }
    };
    let server = Server::start_on(kind, settings, disk.folder());
    let way = server.port;
    let ground = Ground::start(server, "retry_timeout = \"500ms\"\n", way);
    // Large rows, so that the free space in the server's files is soon used up.
    let filler = "alter table hits add filler varchar(500) not null default (repeat('x', 400))";
    ground.server.run("hits", filler);
    ground.under("disk full", count, |ground, _| {
        let before = ground.failed();
        disk.fill();
        until("rows fail", || ground.failed() > before);
        disk.make_room();
        // A server may give up when it cannot write its log.
        eventually("it serves", || ground.server.answers_or_is_gone());
        ground.server.revive();
    });
}

#[test]
fn a_postgres_on_a_full_disk_loses_nothing() {
    full(Kind::Postgres);
}

#[test]
fn a_mariadb_on_a_full_disk_loses_nothing() {
    full(Kind::Mariadb);
}

/// Kills the daemon while it stores rows.
fn daemon_killed(kind: Kind) {
    let count = times(50);
    under(kind, "the daemon killed", count, |ground| {
        ground.kill_daemon();
    });
}

#[test]
fn a_daemon_before_postgres_that_is_killed_loses_nothing() {
    daemon_killed(Kind::Postgres);
}

#[test]
fn a_daemon_before_mariadb_that_is_killed_loses_nothing() {
    daemon_killed(Kind::Mariadb);
}
