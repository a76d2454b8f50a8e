//! Rows into servers and out of them: a listener straight into a database pool with a thousand
//! clients, against bare clients of the same server, and what the parts of that cost.
//!
//! ```text
//!   postgres, mariadb   rows acknowledged a second, against 48 writers that commit row by row
//!   cpu                 CPU a row of the daemon, against a bare loop that echoes the lines and a bare
//!                       client that sends the same batches
//!   methods             how a batch may be sent to PostgreSQL
//!   latency             ten rows a second: what the daemon adds to a bare commit
//!   rows                1000 rows × 12 columns, 100 times, into `Rows` and into what others keep
//! ```

use super::load::{Load, Plan};
use super::server::Server;
use super::statistics::{Pairs, Quartiles};
use super::{page, process, raise_descriptors};
use crate::requirements;
use crate::shell::{self, Failure, Workspace};
use clap::Args;
use serde_json::Value;
use server::{Kind, Server as Database};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

mod parts;

/// Fails by panics, as the tests do that it is made for.
#[allow(clippy::unwrap_used, dead_code, reason = "it is the tests' own")]
#[path = "../../../crates/database/tests/support/server.rs"]
mod server;

const CONNECTIONS: u32 = 1000;
const IN_FLIGHT: u32 = 20;
/// Bare writers that commit row by row: with more, PostgreSQL commits no more rows per second on two processors.
const WRITERS: &str = "48";

const PARTS: [&str; 6] = ["postgres", "mariadb", "cpu", "methods", "latency", "rows"];

#[derive(Args, Debug)]
pub(super) struct DatabaseArguments {
    /// Paired rounds of each measurement
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Seconds that are measured in each round
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// Only this part; it is kept for the page
    #[arg(long, value_parser = PARTS)]
    only: Option<String>,
    /// Build what is measured, and stop
    #[arg(long)]
    build: bool,
    /// Write the page of the parts that were measured so far, and stop
    #[arg(long)]
    page: bool,
    /// Show the tables without writing the page
    #[arg(long)]
    dry: bool,
}

/// What the parts share.
#[derive(Clone)]
struct Ground {
    roadstead: PathBuf,
    bare_writer: PathBuf,
    read_rows: PathBuf,
    echo_bare: PathBuf,
    handler_echo: PathBuf,
    folder: PathBuf,
    rounds: u32,
    seconds: u32,
}

pub(super) fn run(workspace: &Workspace, arguments: &DatabaseArguments) -> Result<(), Failure> {
    requirements::provide(requirements::TESTS)?;
    raise_descriptors();
    let ground = prepare(workspace, arguments)?;
    if arguments.page {
        return write_page(workspace, &ground);
    }
    if arguments.build {
        return Ok(());
    }
    for part in PARTS {
        if arguments.only.as_deref().is_some_and(|only| only != part) {
            continue;
        }
        let text = match part {
            "postgres" => parts::written(&ground, Kind::Postgres),
            "mariadb" => parts::written(&ground, Kind::Mariadb),
            "cpu" => parts::cpu(&ground),
            "methods" => parts::methods(&ground),
            "latency" => parts::latency(&ground),
            _ => parts::read(&ground),
        }?;
        println!("{text}");
        keep(&ground, part, &text)?;
    }
    if arguments.dry { Ok(()) } else { write_page(workspace, &ground) }
}

fn prepare(workspace: &Workspace, arguments: &DatabaseArguments) -> Result<Ground, Failure> {
    eprintln!("building as released");
    let examples = ["bare_writer", "read_rows", "echo_bare", "handler_echo"];
    let mut words = vec!["build", "--release", "-p", "roadstead", "-p", "roadstead-database"];
    words.extend(["-p", "roadstead-event", "--bin", "roadstead"]);
    words.extend(examples.iter().flat_map(|example| ["--example", *example]));
    shell::run(workspace.cargo(words))?;
    let folder = workspace.target.join("bench/database");
    fs::create_dir_all(&folder).map_err(|error| Failure::new(error.to_string()))?;
    let example = |name: &str| workspace.built("release", &format!("examples/{name}"));
    Ok(Ground {
        roadstead: workspace.built("release", "roadstead"),
        bare_writer: example(examples[0]),
        read_rows: example(examples[1]),
        echo_bare: example(examples[2]),
        handler_echo: example(examples[3]),
        folder,
        rounds: arguments.rounds,
        seconds: arguments.seconds,
    })
}

/// Parts may be measured on different occasions; each is kept until the page is written.
fn keep(ground: &Ground, part: &str, text: &str) -> Result<(), Failure> {
    let path = ground.folder.join(format!("{part}.md"));
    fs::write(&path, text).map_err(|error| Failure::new(format!("{}: {error}", path.display())))
}

fn write_page(workspace: &Workspace, ground: &Ground) -> Result<(), Failure> {
    let page::Machine { cores, kernel, date, .. } = page::machine();
    let mut text = format!(
        "# Databases, measured\n\nMade by `cargo xtask bench database`, whose parts are run by `--only`, on {date}: {cores} cores, \
         Linux {kernel}, loopback, PostgreSQL 15 and MariaDB 10.11 of Debian with their defaults: each commit waits\n\
         for the disk. The servers and the load share the cores with what is measured. Figures are medians\n\
         [lower–upper quartile]. Absolute figures depend on the machine and can differ by a factor of two between\n\
         runs; compare the ratios, which are formed between runs a few seconds apart. CPU is that of the daemon and\n\
         its supervisor, or of the bare client.\n"
    );
    for part in PARTS {
        let path = ground.folder.join(format!("{part}.md"));
        if let Ok(part) = fs::read_to_string(path) {
            text.push_str(&format!("\n{}\n", part.trim()));
        }
    }
    let path = workspace.root.join("docs/bench-database.md");
    fs::write(path, text).map_err(|error| Failure::new(format!("docs/bench-database.md: {error}")))
}

/// A server of that kind with the usual table, and how it is reached.
fn database(kind: Kind) -> (Database, String) {
    let server = Database::start(kind, &[]);
    let target = server.database("hits");
    server
        .run("hits", "create table hits (id bigint, at bigint, path varchar(100), status integer)");
    (server, target)
}

/// What a run of the daemon or of a bare client gave.
#[derive(Clone, Copy, Debug)]
struct Run {
    rows: f64,
    seconds: f64,
    /// Of the daemon, or of the bare client.
    cpu_us: f64,
    p50_ms: f64,
    p99_ms: f64,
    /// Rows of a commit.
    batch: f64,
}

impl Run {
    fn rows_a_second(&self) -> f64 {
        self.rows / self.seconds
    }
}

/// Clients that send rows to the daemon, as many as are answered or so many a second.
fn through_daemon(
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
fn cpu_of(server: &Server) -> Result<f64, Failure> {
    let own = server.own(&[]);
    let cpu = own.iter().map(|one| process::cpu_ns(*one)).sum::<std::io::Result<u64>>();
    cpu.map(|ns| ns as f64 / 1e3).map_err(|error| Failure::new(error.to_string()))
}

/// A bare client of the server.
fn bare(
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
fn number_of<'s>(
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
fn rounds(
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

fn quartiles(runs: &[Run], of: impl Fn(&Run) -> f64) -> Quartiles {
    Quartiles::of(&runs.iter().map(of).collect::<Vec<_>>())
}

fn ratios(ours: &[Run], theirs: &[Run], of: impl Fn(&Run) -> f64) -> Quartiles {
    let mut pairs = Pairs::default();
    ours.iter().zip(theirs).for_each(|(ours, theirs)| pairs.push(of(ours), of(theirs)));
    pairs.ours_by_theirs()
}
