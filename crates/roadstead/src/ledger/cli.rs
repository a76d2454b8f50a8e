//! `roadstead ledger`.

use std::path::PathBuf;
use std::process::ExitCode;

use super::check;

/// What `roadstead ledger` can do.
#[derive(clap::Subcommand, Clone, Debug)]
pub enum LedgerCommand {
    /// Hold the ledger of a `load` run against the rows in a SQLite database
    ///
    /// Ends with status 0 when they agree and 1 when they do not: when an acknowledged line is
    /// missing (lost), a line is there more than once (twice), a row was never sent (phantom), a
    /// refused or failed line is there (wrong refusal), a row holds something else than was sent
    /// (altered), or a reply was for another line (misdirected). Status 2: it could not be checked.
    Check(CheckArgs),
}

/// What to hold against what.
#[derive(clap::Args, Clone, Debug)]
pub struct CheckArgs {
    /// The file that `roadstead load --ledger` wrote
    #[arg(long, value_name = "FILE")]
    ledger: PathBuf,

    /// The SQLite database
    #[arg(long, value_name = "FILE")]
    database: PathBuf,

    /// The table, which has a column `id`; columns `path` and `status` are compared where they are
    #[arg(long, default_value = "hits")]
    table: String,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs `roadstead ledger`.
#[must_use]
pub fn main(command: &LedgerCommand) -> ExitCode {
    let LedgerCommand::Check(args) = command;
    match check(&args.ledger, &args.database, &args.table) {
        Ok(verdict) => {
            if args.json {
                println!("{}", verdict.to_json());
            } else {
                println!("{verdict}");
            }
            ExitCode::from(u8::from(!verdict.is_clean()))
        }
        Err(error) => {
            eprintln!("roadstead ledger: {}", exchange::visible(&error.to_string()));
            ExitCode::from(2)
        }
    }
}
