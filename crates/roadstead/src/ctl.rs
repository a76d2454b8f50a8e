//! `roadstead ctl`: orders for a running daemon, through its admin address.

use std::io::{self, Write};
use std::process::ExitCode;

use crate::ask;

/// What a running daemon can be told to do.
#[derive(clap::Subcommand, Clone, Debug)]
pub enum CtlCommand {
    /// Replace the workers of a pool, a few at once, each only when another is ready in its place
    ///
    /// Those that fail to start change nothing: the old ones serve on, and it is tried again.
    Recycle {
        /// The pool's name
        pool: String,
        /// The admin address of the daemon
        #[arg(long, default_value = "127.0.0.1:7070", value_name = "ADDRESS")]
        admin: String,
    },
}

/// Runs `roadstead ctl`. The exit code is 0 when the daemon does it, 1 when not.
#[must_use]
pub fn main(command: &CtlCommand) -> ExitCode {
    let CtlCommand::Recycle { pool, admin } = command;
    match ask::request(admin, "POST", &format!("/recycle/{pool}"), b"") {
        Ok(said) if said.status == 200 => {
            let written = io::stdout().lock().write_all(&said.body);
            if written.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Ok(said) => {
            eprint!("roadstead: {}", String::from_utf8_lossy(&said.body));
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("roadstead: {error}");
            ExitCode::FAILURE
        }
    }
}
