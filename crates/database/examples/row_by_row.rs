//! A bare client of SQLite, without Roadstead: the baseline for the group commit.
//!
//! Commits each row separately, as a program does that must answer for each row, or every `--batch` rows, which is the
//! maximum that is possible. Prints one JSON object.
//!
//! ```text
//! cargo run --release -p roadstead-database --example row_by_row -- --seconds 5 /tmp/peer.db
//! ```

use std::error::Error;
use std::time::{Duration, Instant};

use rusqlite::Connection;

const USAGE: &str = "row_by_row [--rows N | --seconds S] [--batch N] [--sync full|normal] FILE";

struct Options {
    file: String,
    rows: i64,
    time: Duration,
    batch: i64,
    sync: String,
}

fn options() -> Result<Options, Box<dyn Error>> {
    let mut options = Options {
        file: String::new(),
        rows: i64::MAX,
        time: Duration::MAX,
        batch: 1,
        sync: "full".to_owned(),
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value; {USAGE}"));
        match word.as_str() {
            "--rows" => options.rows = value()?.parse::<i64>()?,
            "--seconds" => options.time = Duration::try_from_secs_f64(value()?.parse::<f64>()?)?,
            "--batch" => options.batch = value()?.parse::<i64>()?.max(1),
            "--sync" => options.sync = value()?,
            _ if !word.starts_with('-') => options.file = word,
            _ => return Err(format!("unknown option {word}; {USAGE}").into()),
        }
    }
    let endless = options.rows == i64::MAX && options.time == Duration::MAX;
    if options.file.is_empty() || endless || !matches!(options.sync.as_str(), "full" | "normal") {
        return Err(USAGE.into());
    }
    Ok(options)
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = options()?;
    let connection = Connection::open(&options.file)?;
    connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", &options.sync)?;
    connection.execute_batch(
        "create table if not exists hits (id integer, at integer, path text, status integer)",
    )?;
    let mut begin = connection.prepare("begin immediate")?;
    let mut insert = connection.prepare("insert into hits values (?, ?, ?, ?)")?;
    let mut commit = connection.prepare("commit")?;

    let start = Instant::now();
    let mut rows = 0;
    while rows < options.rows && start.elapsed() < options.time {
        begin.execute([])?;
        for row in rows..options.rows.min(rows + options.batch) {
            insert.execute((row, 1_700_000_000_000_i64, "/index.html", 200))?;
        }
        commit.execute([])?;
        rows = options.rows.min(rows + options.batch);
    }
    let seconds = start.elapsed().as_secs_f64();
    println!(
        r#"{{"rows":{rows},"seconds":{seconds:.6},"batch":{},"sync":"{}"}}"#,
        options.batch, options.sync
    );
    Ok(())
}
