//! `roadstead ctl dead`: handles dead letters, which are rows that a database did not accept.
//!
//! It needs no running daemon and does not disturb one: it reads the configuration and connects to the database of the
//! pool itself. On a retry, one transaction inserts the row and deletes the dead letter. So exactly one of the two
//! exists at any time.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use database::{DatabaseError, Letters, Retried, StoredLetter};
use serde_json::json;
use settings::Pool;

use crate::handler_registry::database_of;

/// Commands for dead letters.
#[derive(clap::Subcommand, Clone, Debug)]
pub enum DeadCommand {
    /// Print the dead letters, one JSON object per line
    ///
    /// Each object has the number, the time (microseconds since 1970), the reason of the rejection, and the request: as
    /// `row`, or as `row_base64` if it is not text.
    List(Which),
    /// Try to store the dead letters again
    ///
    /// Letters that are stored, or whose key is already in the table, are removed from the list. The last line counts
    /// the letters that were stored, already there, rejected and left. The exit code is 1 unless all are stored.
    Retry(Which),
    /// Delete dead letters
    Drop(Which),
}

/// Selects dead letters.
#[derive(clap::Args, Clone, Debug)]
pub struct Which {
    /// The configuration file
    file: PathBuf,
    /// The name of the pool. Optional if only one pool has dead letters
    #[arg(long)]
    pool: Option<String>,
    /// Only the dead letter with this number. May be repeated
    #[arg(long, value_name = "N")]
    number: Vec<i64>,
    /// All dead letters (`drop` requires this or --number)
    #[arg(long, conflicts_with = "number")]
    all: bool,
}

/// The number of consecutive letters that cannot be stored before the retry stops, because the database is at fault.
const FAILED_MAX: u32 = 8;

/// Runs `roadstead ctl dead`. The exit code is 0 if everything succeeded, 1 if some of it failed, and 2 if the
/// configuration or the command line is wrong.
#[must_use]
pub fn main(command: &DeadCommand) -> ExitCode {
    let (DeadCommand::List(which) | DeadCommand::Retry(which) | DeadCommand::Drop(which)) = command;
    if matches!(command, DeadCommand::Drop(_)) && which.number.is_empty() && !which.all {
        eprintln!("roadstead: say which: `--number N`, or `--all`");
        return ExitCode::from(2);
    }
    let mut letters = match open(&which.file, which.pool.as_deref()) {
        Ok(letters) => letters,
        Err(text) => {
            eprintln!("{}", exchange::visible(&text));
            return ExitCode::from(2);
        }
    };
    let mut missing = which.number.clone();
    let mut is_meant = |letter: &StoredLetter| {
        missing.retain(|number| *number != letter.number);
        which.number.is_empty() || which.number.contains(&letter.number)
    };
    let done = match command {
        DeadCommand::Retry(_) => retry(&mut letters, is_meant),
        DeadCommand::List(_) | DeadCommand::Drop(_) => letters
            .each(|letters, letter| match is_meant(&letter) {
                true => treat(command, letters, &letter),
                false => Ok(()),
            })
            .map(|()| true),
    };
    for number in done.iter().flat_map(|_| &missing) {
        eprintln!("roadstead: there is no dead letter with the number {number}");
    }
    match done {
        Ok(true) if !missing.is_empty() => ExitCode::FAILURE,
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(Failed(text)) => {
            eprintln!("roadstead: {}", exchange::visible(&text));
            ExitCode::FAILURE
        }
    }
}

/// The results of a retry.
#[derive(Debug, Default)]
struct Counts {
    all: u64,
    stored: u64,
    /// A row with the same key was already in the table.
    present: u64,
    refused: u64,
    /// Another process had already handled the letter.
    absent: u64,
}

impl Counts {
    /// Returns the number of letters that were not tried, could not be stored, or have an unknown outcome.
    const fn left(&self) -> u64 {
        self.all.saturating_sub(self.stored + self.present + self.refused + self.absent)
    }
}

/// Tries to store the selected letters and prints the counts at the end. Returns `true` if all were stored.
fn retry(
    letters: &mut Letters,
    mut is_meant: impl FnMut(&StoredLetter) -> bool,
) -> Result<bool, Failed> {
    let mut counts = Counts::default();
    letters.each(|_, letter| {
        counts.all += u64::from(is_meant(&letter));
        Ok::<(), Failed>(())
    })?;
    let mut failed = 0;
    let done = letters.each(|letters, letter| {
        if !is_meant(&letter) {
            return Ok(());
        }
        let number = letter.number;
        let retried =
            letters.retry(&letter).map_err(|error| Failed(format!("{number}: {error}")))?;
        let (what, why) = match &retried {
            Retried::Stored => ("stored", None),
            Retried::Present => ("already there", None),
            Retried::Refused(why) => ("rejected", Some(why)),
            Retried::Failed(why) => ("failed", Some(why)),
            Retried::Unknown(why) => ("unknown", Some(why)),
            Retried::Absent => {
                counts.absent += 1;
                return Ok(());
            }
        };
        let colon = if why.is_some() { ": " } else { "" };
        let why = exchange::visible(why.map_or("", String::as_str));
        writeln!(io::stdout().lock(), "{number} {what}{colon}{why}")?;
        counts.stored += u64::from(retried == Retried::Stored);
        counts.present += u64::from(retried == Retried::Present);
        counts.refused += u64::from(matches!(retried, Retried::Refused(_)));
        failed = if matches!(retried, Retried::Failed(_)) { failed + 1 } else { 0 };
        if failed == FAILED_MAX {
            return Err(Failed(format!("{FAILED_MAX} in a row could not be stored")));
        }
        Ok(())
    });
    if let Err(Failed(text)) = &done {
        eprintln!("roadstead: stopped at {text}");
    }
    let Counts { stored, present, refused, .. } = counts;
    let left = counts.left();
    let present = if present > 0 { format!("{present} already there, ") } else { String::new() };
    eprintln!("roadstead: {stored} stored, {present}{refused} rejected, {left} left");
    Ok(done.is_ok() && refused == 0 && left == 0)
}

struct Failed(String);

impl From<DatabaseError> for Failed {
    fn from(error: DatabaseError) -> Self {
        Self(error.to_string())
    }
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Self(error.to_string())
    }
}

/// Prints or deletes one letter.
fn treat(
    command: &DeadCommand,
    letters: &mut Letters,
    letter: &StoredLetter,
) -> Result<(), Failed> {
    let number = letter.number;
    let mut out = io::stdout().lock();
    if matches!(command, DeadCommand::List(_)) {
        writeln!(out, "{}", shown(letter))?;
    } else if letters.remove(number)? {
        writeln!(out, "{number} dropped")?;
    }
    Ok(())
}

fn shown(letter: &StoredLetter) -> String {
    let (name, row) = match letter.in_base64() {
        Some(row) => ("row_base64", row),
        None => ("row", String::from_utf8_lossy(&letter.row).into_owned()),
    };
    let letter = json!({
        "number": letter.number,
        "at": letter.at_us,
        "code": letter.code,
        "message": letter.message,
        name: row,
    });
    exchange::visible(&letter.to_string()).into_owned()
}

/// Opens the dead letters of a pool.
fn open(file: &Path, name: Option<&str>) -> Result<Letters, String> {
    let configuration = settings::load(file).map_err(|diagnostics| diagnostics.to_string())?;
    let keeps =
        |pool: &&Pool| pool.database().is_some_and(|database| database.dead_letter_table.is_some());
    let pools: Vec<&Pool> = configuration.pools.iter().filter(keeps).collect();
    let names: Vec<String> = pools.iter().map(|pool| format!("`{}`", pool.name)).collect();
    let pool = match (name, pools.as_slice()) {
        (None, [pool]) => *pool,
        (_, []) => {
            return Err(
                "roadstead: no pool has a dead-letter table; add `dead_letter_table = \"TABLE\"`"
                    .to_owned(),
            );
        }
        (None, _) => {
            let names = names.join(", ");
            return Err(format!("roadstead: several pools have dead letters: name one of {names}"));
        }
        (Some(name), _) => {
            let found = pools.iter().find(|pool| pool.name == name);
            *found.ok_or_else(|| {
                format!("roadstead: pool `{name}` keeps no dead letters, but {}", names.join(", "))
            })?
        }
    };
    let database = database_of(pool).map_err(|error| format!("roadstead: {error}"))?;
    database.letters().map_err(|error| format!("roadstead: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_keeps_its_bytes_also_where_they_are_no_text() {
        let letter = |row: &[u8]| StoredLetter {
            number: 7,
            at_us: 1,
            row: row.to_vec(),
            code: "22021".to_owned(),
            message: "no".to_owned(),
        };
        let text = r#"{"at":1,"code":"22021","message":"no","number":7,"row":"a\t\u00e9"}"#;
        let same: serde_json::Value = serde_json::from_str(text).unwrap();
        let shown =
            |row: &[u8]| serde_json::from_str::<serde_json::Value>(&shown(&letter(row))).unwrap();
        assert_eq!(shown("a\té".as_bytes()), same);
        let row = "\u{7f}\u{9b}2J\u{202e}\u{e0041}";
        let line = super::shown(&letter(row.as_bytes()));
        assert!(line.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{line:?}");
        assert_eq!(shown(row.as_bytes())["row"], row, "the same for a reader of JSON");
        let bytes = shown(b"a\t\xff");
        assert_eq!(bytes["row_base64"], "YQn/");
        assert!(bytes.get("row").is_none());
    }
}
