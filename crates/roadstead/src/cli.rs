//! Declares the command line. The parser and the text of `--help` are generated from these declarations.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use settings::{Flag, FlagValue};

#[cfg(feature = "admin")]
use crate::ask::AdminArgs;
#[cfg(feature = "admin")]
use crate::ctl::CtlArgs;
#[cfg(all(feature = "admin", feature = "databases"))]
use crate::demo::DemoArgs;
use crate::doctor::DoctorArgs;
#[cfg(feature = "databases")]
use crate::ledger::LedgerCommand;
use crate::load::cli::LoadArgs;
use crate::worker::WorkerArgs;

/// Accept many client connections and serve them with a few workers.
///
/// Roadstead accepts many client connections and passes each request to one of a few workers: local programs, upstream
/// servers, or databases. It queues requests while all workers are busy, pauses clients or rejects requests when the
/// queue is full, and sends the replies to each client in the order of its requests.
#[derive(Debug, Parser)]
#[command(name = "roadstead", version, max_term_width = 100)]
#[command(after_help = "Try `roadstead demo`, or serve a program of your own to everybody:\n\
    \n    roadstead run --listen 127.0.0.1:7000 --workers 1..4 -- awk '{ print length; fflush() }'\n\
    \nand in another terminal:\n\n    printf 'hello\\n' | nc -N 127.0.0.1 7000")]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the daemon with a configuration file.
    ///
    /// On SIGTERM or SIGINT the daemon drains: it closes its listeners, finishes the accepted requests, and exits with
    /// code 0, or with code 1 if the drain timeout cut off requests. A second signal stops it immediately. SIGHUP
    /// reloads the file, like `roadstead ctl reload`. When startup is complete, the daemon prints one line `ready {…}`
    /// with the bound addresses to standard output. The log goes to standard error; RUST_LOG sets its level.
    Serve {
        /// The configuration file (see docs/reference.md).
        file: PathBuf,
    },
    /// Validate a configuration file and print every error.
    ///
    /// If a running daemon that uses this file answers at its admin address, also print whether it can reload the file,
    /// or which changes need a restart.
    Check {
        /// The configuration file.
        file: PathBuf,
        /// Also connect to the databases: run their `create` statements, and report what is missing. Connect to the Unix
        /// sockets of servers as well, and report those that were moved.
        #[cfg(feature = "databases")]
        #[arg(long)]
        connect: bool,
        /// The admin address of the running daemon, if it differs from the address in the file. With this option, it is
        /// an error if no daemon answers.
        #[cfg(feature = "admin")]
        #[arg(long, value_name = "ADDRESS")]
        admin: Option<String>,
    },
    /// Serve one program on one address, without a configuration file.
    ///
    /// Each line of a client is written to the standard input of one of the programs. The line that the program writes
    /// to its standard output is the reply. With --http, each HTTP request is one line.
    Run(Box<RunArgs>),
    /// Send one line to a pool of a running daemon and print the reply.
    #[cfg(feature = "admin")]
    Ask {
        /// The name of the pool.
        pool: String,
        /// The line to send.
        line: String,
        #[command(flatten)]
        #[expect(missing_docs, reason = "its arguments say what it is")]
        admin: AdminArgs,
    },
    #[cfg(feature = "admin")]
    #[expect(missing_docs, reason = "its arguments say what it is")]
    Ctl(CtlArgs),
    #[expect(missing_docs, reason = "its arguments say what it is")]
    Load(LoadArgs),
    /// Check a ledger that `load` has written.
    #[cfg(feature = "databases")]
    #[command(subcommand)]
    Ledger(LedgerCommand),
    #[cfg(all(feature = "admin", feature = "databases"))]
    #[expect(missing_docs, reason = "its arguments say what it is")]
    Demo(DemoArgs),
    #[expect(missing_docs, reason = "its arguments say what it is")]
    Doctor(DoctorArgs),
    /// The built-in worker program of the demo and the tests.
    #[command(hide = true)]
    Worker(WorkerArgs),
    /// Print a documentation page that is generated from the code.
    #[command(hide = true)]
    Reference {
        /// The page to print.
        #[arg(value_enum, default_value_t = Page::Reference)]
        page: Page,
    },
}

/// The pages of `docs/` that are generated from the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Page {
    /// Every option of the configuration: `docs/reference.md`.
    Reference,
    /// Every possible outcome of a request: `docs/outcomes.md`.
    Outcomes,
}

/// Serve one program on one address.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The address for clients: HOST:PORT, :PORT, or unix:/path. With port 0 the system chooses a free port.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7000")]
    pub listen: String,
    /// The address for HTTP clients, instead of --listen. The program reads one JSON object per request and line
    /// (method, path, query, headers, body), and answers with one JSON object (status, headers, body) or a text.
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["listen", "status"])]
    pub http: Option<String>,
    /// With --http: the program is an HTTP server. `inherited`: it serves on a listening socket that it inherits as
    /// descriptor 3. `path`: it creates a Unix socket at ROADSTEAD_SOCKET, or {socket} in its arguments. `port`: it
    /// listens on the port PORT, or {port} in its arguments.
    #[arg(long, value_name = "inherited|path|port", requires = "http", require_equals = true,
          num_args = 0..=1, default_missing_value = "inherited")]
    pub serves: Option<String>,
    /// The number of processes of the program: MIN..MAX, or one number.
    #[arg(long, value_name = "MIN..MAX", default_value = "1..4")]
    pub workers: String,
    /// The maximum number of requests in flight per process. The program must answer them in order. With --serves: the
    /// maximum number of connections to each process.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub pipeline: i64,
    /// How requests and replies are framed on the pipes of the program, as in the pool's `framing`. With jsonrpc and
    /// content-length, clients use the same framing.
    #[arg(long, value_name = "WORD", conflicts_with = "serves")]
    pub framing: Option<String>,
    /// How replies are matched to requests, as in the pool's `dispatch`: in-order, tagged, session.
    #[arg(long, value_name = "WORD")]
    pub dispatch: Option<String>,
    /// An environment variable for the program. May be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = crate::doctor::variable)]
    pub env: Vec<(String, String)>,
    /// When the program counts as ready, as in the pool's `ready`: when it has started, or after its first frame.
    #[arg(long, value_name = "start|line")]
    pub ready: Option<String>,
    /// How to disable output buffering in the program: no, stdbuf or pty.
    #[arg(long, value_name = "WORD")]
    pub unbuffer: Option<String>,
    /// The maximum duration of a reply. The program is killed when it expires (`response_timeout` of the pool).
    #[arg(long, value_name = "TIME")]
    pub response_timeout: Option<String>,
    /// The maximum number of queued requests (`queue.max_requests` of the pool).
    #[arg(long, value_name = "N")]
    pub queue: Option<i64>,
    /// The address for metrics, status and `ask`. Without this option they are not served.
    #[arg(long, value_name = "ADDRESS")]
    pub admin: Option<String>,
    /// Prefix each reply with `+`, `!` or `-`, for programs whose replies may begin with one of these characters.
    #[arg(long)]
    pub status: bool,
    /// The program and its arguments, after `--`.
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub program: Vec<String>,
}

impl RunArgs {
    /// Returns the protocol of the clients. The framings `jsonrpc` and `content-length`, whose messages have ids, are
    /// also the protocol of the clients; otherwise clients send lines.
    fn protocol(&self) -> &str {
        match (&self.http, self.framing.as_deref()) {
            (Some(_), _) => "http",
            (None, Some(framing @ ("jsonrpc" | "content-length"))) => framing,
            (None, _) => "lines",
        }
    }

    /// Returns the equivalent of a configuration file.
    #[must_use]
    pub fn flags(&self) -> Vec<Flag> {
        let text = |path: &str, value: &str, shown: String| Flag {
            path: path.to_owned(),
            value: FlagValue::Text(value.to_owned()),
            shown,
        };
        let mut flags = vec![
            match &self.http {
                Some(http) => text("listener.main.listen", http, format!("--http {http}")),
                None => {
                    text("listener.main.listen", &self.listen, format!("--listen {}", self.listen))
                }
            },
            text("listener.main.pool", "main", String::new()),
            text("listener.main.protocol", self.protocol(), String::new()),
            text("pool.main.workers", &self.workers, format!("--workers {}", self.workers)),
            Flag {
                path: "pool.main.pipeline".to_owned(),
                value: FlagValue::Integer(self.pipeline),
                shown: format!("--pipeline {}", self.pipeline),
            },
        ];
        if let Some(socket) = &self.serves {
            flags.push(text("pool.main.framing", "http", String::new()));
            flags.push(text("pool.main.socket", socket, format!("--serves={socket}")));
        }
        let words = [
            ("framing", "framing", &self.framing),
            ("dispatch", "dispatch", &self.dispatch),
            ("ready", "ready", &self.ready),
            ("unbuffer", "unbuffer", &self.unbuffer),
            ("response_timeout", "response-timeout", &self.response_timeout),
        ];
        for (option, name, value) in words {
            if let Some(value) = value {
                flags.push(text(
                    &format!("pool.main.{option}"),
                    value,
                    format!("--{name} {value}"),
                ));
            }
        }
        if let Some(length) = self.queue {
            flags.push(Flag {
                path: "pool.main.queue.max_requests".to_owned(),
                value: FlagValue::Integer(length),
                shown: format!("--queue {length}"),
            });
        }
        if !self.env.is_empty() {
            let shown: Vec<String> =
                self.env.iter().map(|(name, value)| format!("--env {name}={value}")).collect();
            flags.push(Flag {
                path: "pool.main.env".to_owned(),
                value: FlagValue::Table(self.env.clone()),
                shown: shown.join(" "),
            });
        }
        if self.status {
            flags.push(text("listener.main.reply", "status", "--status".to_owned()));
        }
        if let Some(admin) = &self.admin {
            flags.push(text("admin.listen", admin, format!("--admin {admin}")));
        }
        flags.push(Flag {
            path: "pool.main.program".to_owned(),
            value: FlagValue::List(self.program.clone()),
            shown: format!("-- {}", self.program.join(" ")),
        });
        flags
    }
}
