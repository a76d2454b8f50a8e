//! Rows acknowledged per second into SQLite with full sync: a listener that passes lines to the database pool, with a
//! thousand clients, against a bare client that commits row by row.
//!
//! Both write the same table, on the same disk, into a new file for each run. After each of our runs the rows are
//! counted by another program: a missing acknowledged row would make any speed worthless.

use super::comparison::{Better, Comparison, OURS};
use super::driver::Part;
use super::ground::Ground;
use super::load::{Load, Plan, saturating};
use super::numbers;
use crate::shell::{self, Failure, command};
use serde_json::json;
use std::path::{Path, PathBuf};

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

const PEER: &str = "commit row by row";

/// Measures all rounds.
pub(super) fn measure(ground: &Ground) -> Result<Part, Failure> {
    let Plan { connections, in_flight, .. } = saturating(0);
    let name = format!("SQLite, full sync, {connections} connections × {in_flight} in flight");
    let trial = ground.rounds(&name, &[OURS, PEER], |_, at| {
        let rows_s = if at == 0 { ours(ground) } else { peer(ground) };
        Ok(json!({ "rows_s": rows_s? }))
    })?;
    let compared = Comparison {
        name: &name,
        unit: "rows acknowledged a second",
        value: "rows_s",
        better: Better::More("times the rows"),
        peer: PEER,
        goal: Some(GOAL),
    };
    let goals = compared.goal(&trial).into_iter().collect();
    Ok(Part { goals, ..Part::values(json!({ "rows": compared.row(&trial), "calls": "" })) })
}

fn ours(ground: &Ground) -> Result<f64, Failure> {
    let database = fresh(ground, "ours.db")?;
    let server = ground.serve("rows", CONFIGURATION)?;
    let account = Load::start(ground, &server.address, saturating(ground.seconds()))?
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

fn peer(ground: &Ground) -> Result<f64, Failure> {
    let database = fresh(ground, "peer.db")?;
    let seconds = ground.seconds().to_string();
    let mut command = command(ground.example("row_by_row"), ["--seconds", &seconds]);
    command.arg(&database);
    let said = numbers::object(command)?;
    Ok(numbers::number(&said, "rows")? / numbers::number(&said, "seconds")?)
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
    let count = "select count(*) from hits".as_ref();
    let said = shell::output(command("sqlite3", [database.as_os_str(), count]))?;
    said.trim().parse().map_err(|error| Failure::new(format!("sqlite3: {error}: {said}")))
}
