//! `ctl`: orders and questions to a running daemon, through its admin address.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::ask::{AdminArgs, escaped};
#[cfg(feature = "databases")]
use crate::dead::{self, DeadCommand};

/// Control a running daemon: weights, workers, fallback; explain its decisions
#[derive(Debug, Args)]
pub struct CtlArgs {
    #[command(flatten)]
    admin: AdminArgs,
    #[command(subcommand)]
    command: CtlCommand,
}

/// What to order or to ask.
#[derive(Debug, Subcommand)]
enum CtlCommand {
    /// Switch the fallback of a pool on or off.
    Fallback {
        /// The pool.
        pool: String,
        /// `on` or `off`.
        #[arg(value_parser = ["on", "off"])]
        state: String,
    },
    /// Give a worker another weight; 0 leaves it the clients that are bound to it.
    Weight {
        /// The pool.
        pool: String,
        /// The worker: its name in `places` of /status.
        worker: String,
        /// From 0 to 256, or `default` for that of the settings.
        weight: String,
    },
    /// Give a worker nothing more.
    Disable {
        /// The pool.
        pool: String,
        /// The worker: its name in `places` of /status.
        worker: String,
    },
    /// Let a worker serve like the others again.
    Enable {
        /// The pool.
        pool: String,
        /// The worker: its name in `places` of /status.
        worker: String,
    },
    /// Leave a worker the clients that are bound to it, and give it no others.
    Drain {
        /// The pool.
        pool: String,
        /// The worker: its name in `places` of /status.
        worker: String,
    },
    /// Replace the workers of a pool, a few at once, each only when another is ready in its place.
    ///
    /// Those that fail to start change nothing: the old ones serve on, and it is tried again.
    Recycle {
        /// The pool.
        pool: String,
    },
    /// Read the configuration file again and take it over without dropping a connection.
    ///
    /// It is checked wholly first. What is wrong with it, or cannot change while the daemon serves, is
    /// named with its line, and nothing changes.
    Reload,
    /// Look at the rows that a database did not accept, try them again, or forget them.
    ///
    /// No daemon needs to run. Each command takes the configuration file, which says where they are.
    #[cfg(feature = "databases")]
    #[command(subcommand)]
    Dead(DeadCommand),
    /// Say why a request went where it went, or what was decided lately in a pool.
    Why {
        /// The number of a request, as in the log, or the name of a pool.
        what: String,
    },
}

/// Gives the order and prints what the daemon says. The exit code is 0 when it was carried out.
#[must_use]
pub fn main(arguments: &CtlArgs) -> ExitCode {
    let (method, path, body) = match &arguments.command {
        #[cfg(feature = "databases")]
        CtlCommand::Dead(command) => return dead::main(command),
        command => call(command),
    };
    match arguments.admin.request(method, &path, body.as_bytes()) {
        Ok(said) if said.status == 200 => {
            let written = io::stdout().lock().write_all(said.visible().as_bytes());
            if written.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Ok(said) => {
            eprint!("roadstead: {}", said.visible());
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("roadstead: {}", exchange::visible(&error.to_string()));
            ExitCode::FAILURE
        }
    }
}

/// The call that carries it: method, path, body.
fn call(command: &CtlCommand) -> (&'static str, String, &str) {
    let worker = |pool: &str, worker: &str, verb: &str| {
        format!("/pools/{}/workers/{}/{verb}", escaped(pool), escaped(worker))
    };
    match command {
        CtlCommand::Fallback { pool, state } => {
            ("POST", format!("/pools/{}/fallback", escaped(pool)), state)
        }
        CtlCommand::Weight { pool, worker: name, weight } => {
            ("POST", worker(pool, name, "weight"), weight)
        }
        CtlCommand::Disable { pool, worker: name } => ("POST", worker(pool, name, "disable"), ""),
        CtlCommand::Enable { pool, worker: name } => ("POST", worker(pool, name, "enable"), ""),
        CtlCommand::Drain { pool, worker: name } => ("POST", worker(pool, name, "drain"), ""),
        CtlCommand::Recycle { pool } => ("POST", format!("/recycle/{}", escaped(pool)), ""),
        CtlCommand::Reload => ("POST", "/reload".to_owned(), ""),
        CtlCommand::Why { what } if what.bytes().all(|byte| byte.is_ascii_digit()) => {
            ("GET", format!("/why/{what}"), "")
        }
        #[cfg(feature = "databases")]
        CtlCommand::Dead(_) => unreachable!("it needs no daemon and is done before"),
        CtlCommand::Why { what } => ("GET", format!("/pools/{}/why", escaped(what)), ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_their_part_of_the_path() {
        let weight = CtlCommand::Weight {
            pool: "a/b".to_owned(),
            worker: "10.0.0.1:80 x".to_owned(),
            weight: "3".to_owned(),
        };
        let path = "/pools/a%2Fb/workers/10.0.0.1%3A80%20x/weight".to_owned();
        assert_eq!(call(&weight), ("POST", path, "3"));
        let why = |what: &str| call(&CtlCommand::Why { what: what.to_owned() }).1;
        assert_eq!((why("17").as_str(), why("api").as_str()), ("/why/17", "/pools/api/why"));
    }
}
