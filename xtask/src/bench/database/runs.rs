//! Runs of the daemon and of bare clients.

use crate::bench::ground::Ground;
use crate::bench::load::{Account, Load, Plan};
use crate::bench::numbers::{self, number};
use crate::bench::process;
use crate::shell::{Failure, command};
use serde_json::{Value, json};
use std::process::Command;

pub(super) use server::Kind;
use server::Server as Database;

/// This code of the tests reports errors by panics.
#[allow(clippy::unwrap_used, dead_code, reason = "it is the tests' own")]
#[path = "../../../../crates/database/tests/support/server.rs"]
mod server;

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

/// Runs clients that send rows to the daemon, at a fixed rate or as fast as they are answered. Returns rows per
/// second, the CPU time of the daemon per row, latencies, and rows per commit.
pub(super) fn through_daemon(
    ground: &Ground,
    server: &Database,
    target: &str,
    plan: Plan,
) -> Result<Value, Failure> {
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
    let Account { answered, seconds, p50_ms, p99_ms } = account;
    let rows = answered as f64;
    are_there(server, rows)?;
    Ok(json!({
        "rows_s": rows / seconds, "cpu_us": cpu_us / rows, "p50_ms": p50_ms, "p99_ms": p99_ms,
        "batch": rows / commits.max(1.0),
    }))
}

/// Fails if the table does not have this number of rows.
fn are_there(server: &Database, rows: f64) -> Result<(), Failure> {
    let there = server.run("hits", "select count(*) from hits").concat();
    if there == format!("{rows:.0}") {
        return Ok(());
    }
    Err(Failure::new(format!("{rows:.0} rows acknowledged, {there} are there")))
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

/// Runs a bare client of the server. Returns rows per second, the CPU time of the client per row, and the median latency.
pub(super) fn bare(
    ground: &Ground,
    server: &Database,
    target: &str,
    words: [&str; 3],
    rate: Option<&str>,
) -> Result<Value, Failure> {
    server.run("hits", "truncate table hits");
    let mut command = command(ground.example("bare_writer"), [target]);
    command.args(words).arg(ground.seconds().to_string()).args(rate);
    let said = numbers::object(command)?;
    let rows = number(&said, "rows")?;
    are_there(server, rows)?;
    Ok(json!({
        "rows_s": rows / number(&said, "seconds")?, "cpu_us": number(&said, "cpu_us")?,
        "p50_ms": number(&said, "p50_ms")?,
    }))
}

/// Runs an example that only echoes, with the same lines. Returns the CPU time per line and the median latency.
pub(super) fn echoed(ground: &Ground, example: &str, plan: Plan) -> Result<Value, Failure> {
    let echo = ground.start(Command::new(ground.example(example)), "echo")?;
    let plan = Plan { reply: "any", ..plan };
    let load = || Load::start(ground, &echo.address, plan)?.account();
    let (cpu_us, account) = process::cpu_us(&echo.own(&[]), load)?;
    echo.stop()?;
    Ok(json!({ "cpu_us": cpu_us / account.answered as f64, "p50_ms": account.p50_ms }))
}
