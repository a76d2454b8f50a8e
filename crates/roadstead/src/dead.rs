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

use crate::workshop::database_of;

/// What can be done with the rows that a database did not accept.
#[derive(clap::Subcommand, Clone, Debug)]
pub enum DeadCommand {
    /// Show them, a line of JSON each: its number, when it came (microseconds since 1970), why it was
    /// refused, and the request, as `row` or, where it is no text, as `row_base64`
    List(Which),
    /// Try to store them again; those that are stored are gone from the list
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
            eprintln!("{text}");
            return ExitCode::from(2);
        }
    };
    let mut left = 0_u64;
    let done = letters.each(|letters, letter| {
        if which.number.is_empty() || which.number.contains(&letter.number) {
            left += u64::from(!treat(command, letters, &letter)?);
        }
        Ok::<(), Failed>(())
    });
    match done {
        Ok(()) if left == 0 => ExitCode::SUCCESS,
        Ok(()) => ExitCode::FAILURE,
        Err(Failed(text)) => {
            eprintln!("roadstead: {text}");
            ExitCode::FAILURE
        }
    }
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

/// Does it with one letter. True when nothing is left to do for it.
fn treat(
    command: &DeadCommand,
    letters: &mut Letters,
    letter: &StoredLetter,
) -> Result<bool, Failed> {
    let number = letter.number;
    let mut out = io::stdout().lock();
    match command {
        DeadCommand::List(_) => writeln!(out, "{}", shown(letter))?,
        DeadCommand::Retry(_) => match letters.retry(letter)? {
            Retried::Stored => writeln!(out, "{number} stored")?,
            Retried::Absent => {}
            Retried::Refused(why) => {
                writeln!(out, "{number} refused: {}", exchange::visible(&why))?;
                return Ok(false);
            }
        },
        DeadCommand::Drop(_) => {
            if letters.remove(number)? {
                writeln!(out, "{number} dropped")?;
            }
        }
    }
    Ok(true)
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
    let keeps = |pool: &&Pool| pool.database().is_some_and(|database| database.dead.is_some());
    let pools: Vec<&Pool> = configuration.pools.iter().filter(keeps).collect();
    let names: Vec<String> = pools.iter().map(|pool| format!("`{}`", pool.name)).collect();
    let pool = match (name, pools.as_slice()) {
        (None, [pool]) => *pool,
        (_, []) => {
            return Err(
                "roadstead: no pool keeps dead letters; `dead = \"TABLE\"` would".to_owned()
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
