//! Rows acknowledged per second into SQLite with full sync: a listener that passes lines to the database pool, with a
//! thousand clients, against a bare client that commits row by row.
//!
//! Both write the same table, on the same disk, into a new file for each run. After each of our runs the rows are
//! counted by another program: a missing acknowledged row would make any speed worthless.

use super::ground::Ground;
use super::load::{Load, Plan};
use super::numbers::Numbers;
use super::page::{Better, Row};
use crate::shell::{self, Failure};
use std::path::{Path, PathBuf};
use std::process::Command;

const CONNECTIONS: u32 = 1000;
const IN_FLIGHT: u32 = 20;
/// The goal for the ratio of our rows to the peer's rows.
const GOAL: f64 = 10.0;

/// The queue holds all requests that the clients have in flight, so that none is rejected. All other options have their
/// defaults.
const CONFIGURATION: &str = r#"[listener.main]
listen = "127.0.0.1:0"
protocol = "lines"
pool = "store"

[pool.store]
database = "sqlite:ours.db"
create = "create table if not exists hits (id integer, at integer, path text, status integer)"
insert = { table = "hits", columns = ["id", "at", "path", "status"] }
input_format = "json"
ack = "ok {id}"
durability = "full"
queue = { max_requests = 40000 }
"#;

/// Measures all rounds.
pub(super) fn measure(ground: &Ground, row_by_row: &Path) -> Result<Row, Failure> {
    let name = format!("SQLite, full sync, {CONNECTIONS} connections × {IN_FLIGHT} in flight");
    let pairs = ground.pairs(&name, || ours(ground), || peer(ground, row_by_row))?;
    let measure = ("rows acknowledged a second", Better::More("times the rows"));
    Ok(Row { goal: Some(GOAL), ..Row::new(name, measure, "commit row by row", &pairs) })
}

fn ours(ground: &Ground) -> Result<f64, Failure> {
    let database = fresh(ground, "ours.db")?;
    let server = ground.serve("rows", CONFIGURATION)?;
    let plan = Plan {
        connections: CONNECTIONS,
        rate: None,
        in_flight: IN_FLIGHT,
        seconds: ground.seconds(),
        lines: "json",
        reply: "ack",
    };
    let account = Load::start(ground, &server.address, plan)?
        .account()
        .map_err(|failure| server.child.failed(&failure.output))?;
    server.stop()?;
    let there = count(&database)?;
    if there != account.answered {
        let acknowledged = account.answered;
        return Err(Failure::new(format!("{acknowledged} rows acknowledged, {there} are there")));
    }
    Ok(account.answered as f64 / account.seconds)
}

fn peer(ground: &Ground, row_by_row: &Path) -> Result<f64, Failure> {
    let database = fresh(ground, "peer.db")?;
    let mut command = Command::new(row_by_row);
    command.arg("--seconds").arg(ground.seconds().to_string()).arg(&database);
    let numbers = Numbers::of(command)?;
    Ok(numbers.get("rows")? / numbers.get("seconds")?)
}

/// Returns the path of a database file that does not exist yet.
fn fresh(ground: &Ground, name: &str) -> Result<PathBuf, Failure> {
    for end in ["", "-wal", "-shm", "-journal"] {
        let path = ground.folder.join(format!("{name}{end}"));
        if path.exists() {
            std::fs::remove_file(&path).map_err(Failure::at(path.display()))?;
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
