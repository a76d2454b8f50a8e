//! `roadstead ledger`.

use std::path::PathBuf;
use std::process::ExitCode;

use super::check;

/// The commands of `roadstead ledger`.
#[derive(clap::Subcommand, Clone, Debug)]
pub enum LedgerCommand {
    /// Compare the ledger of a `load` run with the rows in an SQLite database
    ///
    /// The exit code is 0 if they agree and 1 if they do not: an acknowledged line is missing (lost), a line is stored
    /// more than once (twice), a row was never sent (phantom), a refused or failed line is stored (wrong refusal), a
    /// row differs from the sent line (altered), or a reply was for another line (misdirected). It is 2 if the check
    /// could not be made.
    Check(CheckArgs),
}

/// The arguments of `roadstead ledger check`.
#[derive(clap::Args, Clone, Debug)]
pub struct CheckArgs {
    /// The file that `roadstead load --ledger` wrote
    #[arg(long, value_name = "FILE")]
    ledger: PathBuf,

    /// The SQLite database
    #[arg(long, value_name = "FILE")]
    database: PathBuf,

    /// The table. It must have a column `id`; the columns `path` and `status` are compared if they exist
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
