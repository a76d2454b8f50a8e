//! Rows acknowledged a second into SQLite with full sync: a listener straight into the database
//! pool and a thousand clients, against a bare client that commits row by row.
//!
//! Both write the same table, on the same disk, into a new file each time. After each of our runs
//! the rows are counted by another program: a row that was acknowledged and is not there would make
//! any speed worthless.

use super::ground::{Ground, pairs};
use super::load::{Load, Plan};
use super::page::Row;
use super::server::Server;
use crate::shell::{self, Failure};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const CONNECTIONS: u32 = 1000;
const IN_FLIGHT: u32 = 20;
/// How many times the peer's rows must be ours.
const GOAL: f64 = 10.0;

/// The queue takes all that the clients have in flight, so that nothing is refused; the rest is as
/// it is by default.
const CONFIGURATION: &str = r#"[listener.main]
listen = "127.0.0.1:0"
protocol = "lines"
pool = "store"

[pool.store]
database = "sqlite:DATABASE"
create = "create table if not exists hits (id integer, at integer, path text, status integer)"
insert = { table = "hits", columns = ["id", "at", "path", "status"] }
record = "json"
ack = "ok {id}"
sync = "full"
queue = { length = 40000 }
"#;

/// All rounds.
pub(super) fn measure(ground: &Ground) -> Result<Row, Failure> {
    let name = format!("SQLite, full sync, {CONNECTIONS} connections × {IN_FLIGHT} in flight");
    let pairs = pairs(ground, &name, || ours(ground), || peer(ground))?;
    Ok(Row {
        name,
        unit: "rows acknowledged a second",
        peer: "commit row by row",
        ours: pairs.ours(),
        theirs: pairs.theirs(),
        ratio: pairs.ours_by_theirs(),
        ratio_means: "times the rows",
        goal: Some(GOAL),
        calls: None,
    })
}

fn ours(ground: &Ground) -> Result<f64, Failure> {
    let database = fresh(ground, "ours.db")?;
    let file = ground.folder.join("rows.toml");
    let configuration = CONFIGURATION.replace("DATABASE", "ours.db");
    fs::write(&file, configuration)
        .map_err(|error| Failure::new(format!("{}: {error}", file.display())))?;
    let mut command = Command::new(&ground.roadstead);
    command.arg("serve").arg(&file).current_dir(&ground.folder);
    let server = Server::start(command, &ground.folder.join("ours.log"))?;
    let plan = Plan {
        connections: CONNECTIONS,
        rate: None,
        in_flight: IN_FLIGHT,
        seconds: ground.seconds,
        lines: "json",
        reply: "ack",
    };
    let account = Load::start(&ground.roadstead, &server.address, plan)?
        .account()
        .map_err(|failure| Failure::new(format!("{}\n{}", failure.output, server.said())))?;
    server.stop()?;
    let there = count(&database)?;
    if there != account.answered {
        let acknowledged = account.answered;
        return Err(Failure::new(format!("{acknowledged} rows acknowledged, {there} are there")));
    }
    Ok(account.answered as f64 / account.seconds)
}

fn peer(ground: &Ground) -> Result<f64, Failure> {
    let database = fresh(ground, "peer.db")?;
    let mut command = Command::new(&ground.row_by_row);
    command.arg("--seconds").arg(ground.seconds.to_string()).arg(&database);
    let said = shell::output(command)?;
    let json: Value = serde_json::from_str(said.trim())
        .map_err(|error| Failure::new(format!("row_by_row: {error}\n{said}")))?;
    match (json["rows"].as_f64(), json["seconds"].as_f64()) {
        (Some(rows), Some(seconds)) if seconds > 0.0 => Ok(rows / seconds),
        _ => Err(Failure::new(format!("row_by_row gave no rows and seconds\n{said}"))),
    }
}

/// A database file that is not there yet.
fn fresh(ground: &Ground, name: &str) -> Result<PathBuf, Failure> {
    for end in ["", "-wal", "-shm", "-journal"] {
        let path = ground.folder.join(format!("{name}{end}"));
        if path.exists() {
            fs::remove_file(&path)
                .map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
        }
    }
    Ok(ground.folder.join(name))
}

fn count(database: &Path) -> Result<u64, Failure> {
    let mut command = Command::new("sqlite3");
    command.arg(database).arg("select count(*) from hits");
    let said = shell::output(command)?;
    said.trim().parse().map_err(|error| Failure::new(format!("sqlite3: {error}: {said}")))
}
