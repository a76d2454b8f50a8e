//! `ctl`: commands and queries for a running daemon, through its admin address.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::ask::{AdminArgs, escaped};
#[cfg(feature = "databases")]
use crate::dead::{self, DeadCommand};

/// Control a running daemon: set weights, change workers, switch the fallback, explain decisions
#[derive(Debug, Args)]
pub struct CtlArgs {
    #[command(flatten)]
    admin: AdminArgs,
    #[command(subcommand)]
    command: CtlCommand,
}

/// Which machines a command applies to.
#[derive(Clone, Copy, Debug, Default, Args)]
struct Scope {
    /// Change only this daemon. Without it, machines of a cluster share the command if the pool has `servers`.
    #[arg(long)]
    local: bool,
}

impl Scope {
    /// The query of the request.
    const fn query(self) -> &'static str {
        if self.local { "?local" } else { "" }
    }
}

/// The commands of `ctl`.
#[derive(Debug, Subcommand)]
enum CtlCommand {
    /// Show the state of listeners, pools and workers, as JSON.
    Status,
    /// Switch the fallback of a pool on or off.
    Fallback {
        /// The name of the pool.
        pool: String,
        /// `on` or `off`.
        #[arg(value_parser = ["on", "off"])]
        state: String,
        #[command(flatten)]
        scope: Scope,
    },
    /// Set the weight of a worker. With weight 0, it serves only the clients that are bound to it.
    Weight {
        /// The name of the pool.
        pool: String,
        /// The name of the worker, as in `places` of /status.
        worker: String,
        /// A number from 0 to 256, or `default` for the configured weight.
        weight: String,
        #[command(flatten)]
        scope: Scope,
    },
    /// Send no more requests to a worker.
    Disable {
        /// The name of the pool.
        pool: String,
        /// The name of the worker, as in `places` of /status.
        worker: String,
        #[command(flatten)]
        scope: Scope,
    },
    /// Use a worker again after `disable` or `drain`.
    Enable {
        /// The name of the pool.
        pool: String,
        /// The name of the worker, as in `places` of /status.
        worker: String,
        #[command(flatten)]
        scope: Scope,
    },
    /// Send a worker only requests of clients that are bound to it.
    Drain {
        /// The name of the pool.
        pool: String,
        /// The name of the worker, as in `places` of /status.
        worker: String,
        #[command(flatten)]
        scope: Scope,
    },
    /// Replace the workers of a pool, a few at a time.
    ///
    /// An old worker is stopped only when its replacement is ready. If a replacement fails to start, the old worker
    /// stays in service and the start is tried again.
    Recycle {
        /// The name of the pool.
        pool: String,
    },
    /// Show the shared bindings, or compare them with those of other machines.
    #[command(subcommand)]
    Cluster(ClusterCommand),
    /// Reload the configuration file without dropping a connection.
    ///
    /// The file is validated first. If it contains errors or changes that need a restart, they are reported with their
    /// lines, and the running configuration is kept.
    Reload,
    /// List, retry or drop dead letters: rows that a database did not accept.
    ///
    /// Each command takes the configuration file and connects to the database that it names. The daemon may run or be
    /// stopped, and `--admin` is not used.
    #[cfg(feature = "databases")]
    #[command(subcommand)]
    Dead(DeadCommand),
    /// Explain why a request was sent to its worker, or list the recent decisions of a pool.
    Why {
        /// The number of a request, as in the log, or the name of a pool.
        what: String,
    },
}

/// Sends the command and prints the response of the daemon. The exit code is 0 if the command succeeded.
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

/// Returns the HTTP request of a command: method, path and body.
fn call(command: &CtlCommand) -> (&'static str, String, &str) {
    let worker = |pool: &str, worker: &str, verb: &str, scope: Scope| {
        format!("/pools/{}/workers/{}/{verb}{}", escaped(pool), escaped(worker), scope.query())
    };
    match command {
        CtlCommand::Status => ("GET", "/status".to_owned(), ""),
        CtlCommand::Fallback { pool, state, scope } => {
            ("POST", format!("/pools/{}/fallback{}", escaped(pool), scope.query()), state)
        }
        CtlCommand::Weight { pool, worker: name, weight, scope } => {
            ("POST", worker(pool, name, "weight", *scope), weight)
        }
        CtlCommand::Disable { pool, worker: name, scope } => {
            ("POST", worker(pool, name, "disable", *scope), "")
        }
        CtlCommand::Enable { pool, worker: name, scope } => {
            ("POST", worker(pool, name, "enable", *scope), "")
        }
        CtlCommand::Drain { pool, worker: name, scope } => {
            ("POST", worker(pool, name, "drain", *scope), "")
        }
        CtlCommand::Recycle { pool } => ("POST", format!("/recycle/{}", escaped(pool)), ""),
        CtlCommand::Cluster(ClusterCommand::Status) => ("GET", "/cluster".to_owned(), ""),
        CtlCommand::Cluster(ClusterCommand::Check) => ("GET", "/cluster/check".to_owned(), ""),
        CtlCommand::Reload => ("POST", "/reload".to_owned(), ""),
        CtlCommand::Why { what } if what.bytes().all(|byte| byte.is_ascii_digit()) => {
            ("GET", format!("/why/{what}"), "")
        }
        #[cfg(feature = "databases")]
        CtlCommand::Dead(_) => unreachable!("it needs no daemon and is done before"),
        CtlCommand::Why { what } => ("GET", format!("/pools/{}/why", escaped(what)), ""),
    }
}

/// The commands of `ctl cluster`.
#[derive(Debug, Subcommand)]
enum ClusterCommand {
    /// Show the connection, the shared bindings of each pool, the other machines, and what operators have set.
    Status,
    /// Compare the bindings with those of the other machines, key by key. Changes that are under way are left out.
    Check,
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
            scope: Scope::default(),
        };
        let path = "/pools/a%2Fb/workers/10.0.0.1%3A80%20x/weight".to_owned();
        assert_eq!(call(&weight), ("POST", path, "3"));
        let local = CtlCommand::Disable {
            pool: "a".to_owned(),
            worker: "b?c".to_owned(),
            scope: Scope { local: true },
        };
        assert_eq!(call(&local).1, "/pools/a/workers/b%3Fc/disable?local");
        let why = |what: &str| call(&CtlCommand::Why { what: what.to_owned() }).1;
        assert_eq!((why("17").as_str(), why("api").as_str()), ("/why/17", "/pools/api/why"));
    }
}
