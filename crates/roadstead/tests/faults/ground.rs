//! The main job on a database server, under load, with a check of the ledger afterwards.

use std::path::Path;

use roadstead::ledger::Verdict;
use rusqlite::Connection;
use tempfile::TempDir;

use crate::daemon::{Daemon, folder, main_job, read_log, until, worker_program};
use crate::server::{Kind, Server};
use crate::under_load::Load;

const CREATE: &str =
    "create table hits (id bigint not null, at bigint, path varchar(200), status integer)";

/// A database server and a daemon. The table has no key, so that rows stored twice are visible.
pub(crate) struct Ground {
    pub(crate) server: Server,
    pub(crate) daemon: Daemon,
    folder: TempDir,
    configuration: String,
}

impl Ground {
    /// Starts both. `store`: further options of the pool. `way`: the port that leads to the server.
    pub(crate) fn start(server: Server, store: &str, way: u16) -> Self {
        let target = server.database("hits");
        let target = target.replace(&format!(":{}/", server.port), &format!(":{way}/"));
        server.run("hits", CREATE);
        // A superuser can write even if other users cannot.
        let target = target.replace("//root@", &format!("//{}@", plain_user(&server)));
        let folder = folder();
        let configuration = job(folder.path(), &target, store);
        let daemon = Daemon::serve(folder.path(), &configuration);
        // The daemon restarts at the same address, as under a service manager.
        let listen = format!("[listener.main]\nlisten = \"{}\"", daemon.address());
        let configuration =
            configuration.replacen("[listener.main]\nlisten = \"127.0.0.1:0\"", &listen, 1);
        Self { server, daemon, folder, configuration }
    }

    /// Returns the number of rows that are in the database and were acknowledged.
    pub(crate) fn stored(&self) -> u64 {
        self.daemon.metric("roadstead_requests_finished_total", &["store", "answered"])
    }

    /// Returns the number of rows that are known not to be stored.
    pub(crate) fn failed(&self) -> u64 {
        self.daemon.metric("roadstead_requests_finished_total", &["store", "failed"])
    }

    /// Returns how often the daemon has logged that its connections failed.
    pub(crate) fn outages(&self) -> usize {
        read_log(self.folder.path()).matches("the connection to the database failed").count()
    }

    /// Waits until `count` more rows are stored.
    pub(crate) fn until_more(&self, count: u64) {
        let before = self.stored();
        until("rows are acknowledged", || self.stored() >= before + count);
    }

    /// Kills the daemon and starts another one at the same address.
    pub(crate) fn kill_daemon(&mut self) {
        self.daemon.kill();
        self.daemon = Daemon::serve(self.folder.path(), &self.configuration);
    }

    /// Causes a fault repeatedly under load, and compares the rows with the ledger.
    pub(crate) fn under(
        mut self,
        what: &str,
        count: u32,
        mut fault: impl FnMut(&mut Self, u32),
    ) -> Verdict {
        let load = Load::start(self.folder.path(), self.daemon.address());
        for round in 0..count {
            self.until_more(100);
            fault(&mut self, round);
            self.until_more(1);
        }
        let said = load.end();
        copy(&self.server, self.folder.path());
        let (ledger, database) =
            (self.folder.path().join("ledger"), self.folder.path().join("hits.db"));
        let verdict = roadstead::ledger::check(&ledger, &database, "hits").unwrap();
        eprintln!("{:?}, {what}: {count} times\n{said}\n{verdict}", self.server.kind);
        assert!(verdict.is_clean(), "{verdict}");
        assert!(verdict.acknowledged > 0);
        assert!(self.daemon.stop().success());
        verdict
    }
}

/// Returns a user with only the privileges that storing rows requires. The server's own client is a superuser.
fn plain_user(server: &Server) -> &'static str {
    if server.kind == Kind::Mariadb {
        // Entries without a user name would come before those of any host.
        for host in ["localhost", "127.0.0.1"] {
            server.run("hits", &format!("create user plain@'{host}'"));
            server.run("hits", &format!("grant all on hits.* to plain@'{host}'"));
        }
    }
    "plain"
}

/// The main job on that server.
fn job(folder: &Path, target: &str, store: &str) -> String {
    let job = main_job(folder, &format!("{}workers = 2\n", worker_program(&[])), store);
    let lines = job.lines().filter(|line| !line.starts_with("create = ")).map(|line| {
        match line.strip_prefix("database = ") {
            Some(_) => format!("database = \"{target}\""),
            None => line.to_owned(),
        }
    });
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

/// Copies the rows of the server into the file that the checker reads.
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
