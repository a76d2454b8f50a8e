//! Runs of the daemon and of bare clients, and what is made of many.

use crate::bench::load::{Load, Plan};
use crate::bench::process;
use crate::bench::server::Server;
use crate::bench::statistics::{Pairs, Quartiles};
use crate::shell::{self, Failure};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

pub(super) use server::Kind;
use server::Server as Database;

/// Fails by panics, as the tests do that it is made for.
#[allow(clippy::unwrap_used, dead_code, reason = "it is the tests' own")]
#[path = "../../../../crates/database/tests/support/server.rs"]
mod server;

pub(super) const CONNECTIONS: u32 = 1000;
pub(super) const IN_FLIGHT: u32 = 20;
/// Bare writers that commit row by row: with more, PostgreSQL commits no more rows per second on two processors.
pub(super) const WRITERS: &str = "48";

/// What the parts share.
#[derive(Clone)]
pub(super) struct Ground {
    pub(super) roadstead: PathBuf,
    pub(super) bare_writer: PathBuf,
    pub(super) read_rows: PathBuf,
    pub(super) echo_bare: PathBuf,
    pub(super) handler_echo: PathBuf,
    pub(super) folder: PathBuf,
    pub(super) rounds: u32,
    pub(super) seconds: u32,
}

/// A server of that kind with the usual table, and how it is reached.
pub(super) fn database(kind: Kind) -> (Database, String) {
    let server = Database::start(kind, &[]);
    let target = server.database("hits");
    server
        .run("hits", "create table hits (id bigint, at bigint, path varchar(100), status integer)");
    (server, target)
}

/// What a run of the daemon or of a bare client gave.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) rows: f64,
    pub(super) seconds: f64,
    /// Of the daemon, or of the bare client.
    pub(super) cpu_us: f64,
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    /// Rows of a commit.
    pub(super) batch: f64,
}

impl Run {
    pub(super) fn rows_a_second(&self) -> f64 {
        self.rows / self.seconds
    }
}

/// Clients that send rows to the daemon, as many as are answered or so many a second.
pub(super) fn through_daemon(
    ground: &Ground,
    server: &Database,
    target: &str,
    plan: Plan,
) -> Result<Run, Failure> {
    server.run("hits", "truncate table hits");
    let file = ground.folder.join("rows.toml");
    let configuration = format!(
        "[admin]\nlisten = \"127.0.0.1:0\"\n[listener.main]\nlisten = \"127.0.0.1:0\"\nprotocol = \"lines\"\npool = \"store\"\n\
         [pool.store]\ndatabase = \"{target}\"\ninsert = {{ table = \"hits\", columns = [\"id\", \"at\", \"path\", \"status\"] }}\n\
         record = \"json\"\nack = \"ok {{id}}\"\nqueue = {{ length = 40000 }}\n"
    );
    fs::write(&file, configuration).map_err(|error| Failure::new(error.to_string()))?;
    let mut command = Command::new(&ground.roadstead);
    command.arg("serve").arg(&file);
    let daemon = Server::start(command, &ground.folder.join("daemon.log"))?;
    let before = cpu_of(&daemon)?;
    let commits = commits(server);
    let account = Load::start(&ground.roadstead, &daemon.address, plan)?.account()?;
    let cpu = cpu_of(&daemon)? - before;
    daemon.stop()?;
    // What a session of PostgreSQL has counted is seen by all when it has ended.
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
        cpu_us: cpu / rows,
        p50_ms: account.p50_ms,
        p99_ms: account.p99_ms,
        batch: rows / commits.max(1.0),
    })
}

/// How many transactions a server has committed; its own are few beside them.
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

/// CPU time of all processes of a server, in microseconds: a daemon has a supervisor.
pub(super) fn cpu_of(server: &Server) -> Result<f64, Failure> {
    let own = server.own(&[]);
    let cpu = own.iter().map(|one| process::cpu_ns(*one)).sum::<std::io::Result<u64>>();
    cpu.map(|ns| ns as f64 / 1e3).map_err(|error| Failure::new(error.to_string()))
}

/// A bare client of the server.
pub(super) fn bare(
    ground: &Ground,
    server: &Database,
    target: &str,
    words: [&str; 3],
    rate: Option<&str>,
) -> Result<Run, Failure> {
    server.run("hits", "truncate table hits");
    let mut command = Command::new(&ground.bare_writer);
    command.arg(target).args(words).arg(ground.seconds.to_string()).args(rate);
    let said = shell::output(command)?;
    let number = number_of(&said, "bare_writer")?;
    let rows = number("rows")?;
    let there = server.run("hits", "select count(*) from hits").concat();
    if there != format!("{rows:.0}") {
        return Err(Failure::new(format!("{rows:.0} rows written, {there} are there")));
    }
    let (seconds, cpu_us, p50_ms) = (number("seconds")?, number("cpu_us")?, number("p50_ms")?);
    Ok(Run { rows, seconds, cpu_us, p50_ms, p99_ms: 0.0, batch: 0.0 })
}

/// The numbers of a program that prints one JSON object.
pub(super) fn number_of<'s>(
    said: &'s str,
    who: &'s str,
) -> Result<impl Fn(&str) -> Result<f64, Failure> + 's, Failure> {
    let json: Value = serde_json::from_str(said.trim())
        .map_err(|error| Failure::new(format!("{who}: {error}\n{said}")))?;
    Ok(move |key: &str| {
        json[key].as_f64().ok_or_else(|| Failure::new(format!("{who} gave no {key}\n{said}")))
    })
}

/// Pairs of runs, the order changing from round to round; all runs of both sides.
pub(super) fn rounds(
    ground: &Ground,
    name: &str,
    mut ours: impl FnMut() -> Result<Run, Failure>,
    mut theirs: impl FnMut() -> Result<Run, Failure>,
) -> Result<(Vec<Run>, Vec<Run>), Failure> {
    let mut all = (Vec::new(), Vec::new());
    for round in 0..ground.rounds {
        if round % 2 == 0 {
            all.0.push(ours()?);
            all.1.push(theirs()?);
        } else {
            all.1.push(theirs()?);
            all.0.push(ours()?);
        }
        eprintln!("{name}: round {} of {}", round + 1, ground.rounds);
    }
    Ok(all)
}

pub(super) fn quartiles(runs: &[Run], of: impl Fn(&Run) -> f64) -> Quartiles {
    Quartiles::of(&runs.iter().map(of).collect::<Vec<_>>())
}

pub(super) fn ratios(ours: &[Run], theirs: &[Run], of: impl Fn(&Run) -> f64) -> Quartiles {
    let mut pairs = Pairs::default();
    ours.iter().zip(theirs).for_each(|(ours, theirs)| pairs.push(of(ours), of(theirs)));
    pairs.ours_by_theirs()
}
