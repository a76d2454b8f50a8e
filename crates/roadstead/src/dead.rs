//! `roadstead ctl dead`: the rows that a database did not accept.
//!
//! It needs no running daemon, and does not disturb one: it reads the configuration and talks to the
//! database of the pool itself. A letter that is tried again becomes a row and is gone in one
//! transaction, so it is never both and never neither.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use database::{DatabaseError, Letters, Retried, StoredLetter};
use serde_json::json;
use settings::Pool;

use crate::handler_registry::database_of;

/// What can be done with the rows that a database did not accept.
#[derive(clap::Subcommand, Clone, Debug)]
pub enum DeadCommand {
    /// Show them, a line of JSON each: its number, when it came (microseconds since 1970), why it was
    /// refused, and the request, as `row` or, where it is no text, as `row_base64`
    List(Which),
    /// Try to store them again; those that are stored, or whose key is in the table already, are gone from the
    /// list. The last line says how many are stored, already there, refused and left
    Retry(Which),
    /// Forget them
    Drop(Which),
}

/// Which of them.
#[derive(clap::Args, Clone, Debug)]
pub struct Which {
    /// The configuration
    file: PathBuf,
    /// The pool; may be left out where only one keeps them
    #[arg(long)]
    pool: Option<String>,
    /// Only the one with this number; may be given often
    #[arg(long, value_name = "N")]
    number: Vec<i64>,
    /// All of them; `drop` wants to hear that
    #[arg(long, conflicts_with = "number")]
    all: bool,
}

/// Letters in a row that cannot be stored now before the rest is left: the database is at fault.
const FAILED_MAX: u32 = 8;

/// Runs `roadstead ctl dead`. The exit code is 0 when all was done, 1 when some of it could not be,
/// 2 when the configuration or the command line is wrong.
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
    let is_meant =
        |letter: &StoredLetter| which.number.is_empty() || which.number.contains(&letter.number);
    let done = match command {
        DeadCommand::Retry(_) => retry(&mut letters, is_meant),
        DeadCommand::List(_) | DeadCommand::Drop(_) => letters
            .each(|letters, letter| match is_meant(&letter) {
                true => treat(command, letters, &letter),
                false => Ok(()),
            })
            .map(|()| true),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(Failed(text)) => {
            eprintln!("roadstead: {}", exchange::visible(&text));
            ExitCode::FAILURE
        }
    }
}

/// What became of the letters that were tried again.
#[derive(Debug, Default)]
struct Counts {
    all: u64,
    stored: u64,
    /// A row with the same key was there already.
    present: u64,
    refused: u64,
    /// Others were faster.
    absent: u64,
}

impl Counts {
    /// Those that were not tried, could not be stored, or that nobody knows of.
    const fn left(&self) -> u64 {
        self.all.saturating_sub(self.stored + self.present + self.refused + self.absent)
    }
}

/// Tries to store the letters that are meant, and says at the end what became of them. True when all
/// are stored.
fn retry(letters: &mut Letters, is_meant: impl Fn(&StoredLetter) -> bool) -> Result<bool, Failed> {
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
            Retried::Refused(why) => ("refused", Some(why)),
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
    eprintln!("roadstead: {stored} stored, {present}{refused} refused, {left} left");
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

/// Shows or drops one letter.
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

/// The dead letters of a pool.
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
                "roadstead: no pool keeps dead letters; `dead_letter_table = \"TABLE\"` would"
                    .to_owned(),
            );
        }
        (None, _) => {
            let names = names.join(", ");
            return Err(format!("roadstead: several pools keep dead letters: name one of {names}"));
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
