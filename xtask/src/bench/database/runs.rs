//! Runs of the daemon and of bare clients, and their statistics.

use crate::bench::ground::Ground;
use crate::bench::load::{Load, Plan};
use crate::bench::numbers::Numbers;
use crate::bench::process;
use crate::shell::Failure;
use std::process::Command;

pub(super) use server::Kind;
use server::Server as Database;

/// This code of the tests reports errors by panics.
#[allow(clippy::unwrap_used, dead_code, reason = "it is the tests' own")]
#[path = "../../../../crates/database/tests/support/server.rs"]
mod server;

pub(super) const CONNECTIONS: u32 = 1000;
pub(super) const IN_FLIGHT: u32 = 20;
/// The number of bare writers that commit row by row. With more, PostgreSQL commits no more rows per second on two
/// processors.
pub(super) const WRITERS: &str = "48";

/// Starts a server of this kind with the usual table. Also returns its address for clients.
pub(super) fn database(kind: Kind) -> (Database, String) {
    let server = Database::start(kind, &[]);
    let target = server.database("hits");
    server
        .run("hits", "create table hits (id bigint, at bigint, path varchar(100), status integer)");
    (server, target)
}

/// The result of a run of the daemon or of a bare client.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) rows: f64,
    pub(super) seconds: f64,
    /// CPU time of the daemon, or of the bare client.
    pub(super) cpu_us: f64,
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    /// Rows per commit.
    pub(super) batch: f64,
}

impl Run {
    pub(super) fn rows_a_second(&self) -> f64 {
        self.rows / self.seconds
    }
}

/// Runs clients that send rows to the daemon, at a fixed rate or as fast as they are answered.
pub(super) fn through_daemon(
    ground: &Ground,
    server: &Database,
    target: &str,
    plan: Plan,
) -> Result<Run, Failure> {
    server.run("hits", "truncate table hits");
    let configuration = format!(
        "[admin]\nlisten = \"127.0.0.1:0\"\n[listener.main]\nlisten = \"127.0.0.1:0\"\nprotocol = \"lines\"\npool = \"store\"\n\
         [pool.store]\ndatabase = \"{target}\"\ninsert = {{ table = \"hits\", columns = [\"id\", \"at\", \"path\", \"status\"] }}\n\
         input_format = \"json\"\nack = \"ok {{id}}\"\nqueue = {{ max_requests = 40000 }}\n"
    );
    let daemon = ground.serve("rows", &configuration)?;
    let commits = commits(server);
    let load = || Load::start(ground, &daemon.address, plan)?.account();
    let (cpu_us, account) = process::cpu_us(&daemon.own(&[]), load)?;
    daemon.stop()?;
    // The counters of a PostgreSQL session are visible to others after the session has ended.
    let commits = self::commits(server) - commits;
    let there: u64 = server.run("hits", "select count(*) from hits").concat().parse().unwrap_or(0);
    if there != account.answered {
        let text = format!("{} rows acknowledged, {there} are there", account.answered);
        return Err(Failure::new(text));
    }
    let rows = there as f64;
    Ok(Run {
        rows,
        seconds: account.seconds,
        cpu_us: cpu_us / rows,
        p50_ms: account.p50_ms,
        p99_ms: account.p99_ms,
        batch: rows / commits.max(1.0),
    })
}

/// Returns the number of transactions that a server has committed. Its internal ones are comparatively few.
fn commits(server: &Database) -> f64 {
    let sql = match server.kind {
        Kind::Postgres => "select xact_commit from pg_stat_database where datname = 'hits'",
        Kind::Mariadb => {
            "select variable_value from information_schema.global_status \
             where variable_name = 'Com_commit'"
        }
    };
    server.run("hits", sql).concat().parse().unwrap_or(0.0)
}

/// Runs a bare client of the server.
pub(super) fn bare(
    ground: &Ground,
    server: &Database,
    target: &str,
    words: [&str; 3],
    rate: Option<&str>,
) -> Result<Run, Failure> {
    server.run("hits", "truncate table hits");
    let mut command = Command::new(ground.example("bare_writer"));
    command.arg(target).args(words).arg(ground.seconds().to_string()).args(rate);
    let said = Numbers::of(command)?;
    let rows = said.get("rows")?;
    let there = server.run("hits", "select count(*) from hits").concat();
    if there != format!("{rows:.0}") {
        return Err(Failure::new(format!("{rows:.0} rows written, {there} are there")));
    }
    Ok(Run {
        rows,
        seconds: said.get("seconds")?,
        cpu_us: said.get("cpu_us")?,
        p50_ms: said.get("p50_ms")?,
        p99_ms: 0.0,
        batch: 0.0,
    })
}
