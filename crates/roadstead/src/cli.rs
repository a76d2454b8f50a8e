//! The command line, declared once: parsing, `--help` and its words come from here.

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

/// Many connections in, few workers behind.
///
/// Roadstead accepts many client connections and hands each of their requests to one of a few
/// workers: local programs, or a database. It queues what they cannot take at once, refuses what
/// would wait too long, and answers every client in its own order.
#[derive(Debug, Parser)]
#[command(name = "roadstead", version, max_term_width = 100)]
#[command(after_help = "Try `roadstead demo`, or serve a program of your own to everybody:\n\
    \n    roadstead run --listen 127.0.0.1:7000 --workers 1..4 -- awk '{ print length; fflush() }'\n\
    \nand in another terminal:\n\n    printf 'hello\\n' | nc -N 127.0.0.1 7000")]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve a configuration file until a signal ends it.
    ///
    /// SIGTERM and SIGINT drain: listeners close, what was taken is finished, then the daemon ends
    /// with exit code 0, or 1 when the drain deadline cut requests off. A second signal ends at
    /// once. SIGHUP reads the file again, as `roadstead ctl reload` does. When everything is up, one line `ready {…}` with the bound addresses goes to standard
    /// output; the log goes to standard error (RUST_LOG sets its level).
    Serve {
        /// The configuration (see docs/reference.md).
        file: PathBuf,
    },
    /// Check a configuration file and show everything that is wrong with it.
    ///
    /// When a daemon that serves this file answers at its admin address, also says whether a reload can take
    /// the file over, or what needs a restart.
    Check {
        /// The configuration.
        file: PathBuf,
        /// Also connect to its databases: makes what `create` says, and shows what is missing there.
        #[cfg(feature = "databases")]
        #[arg(long)]
        connect: bool,
        /// The admin address of the running daemon, where it is not the one of the file. Without it a daemon
        /// that does not answer is not an error.
        #[cfg(feature = "admin")]
        #[arg(long, value_name = "ADDRESS")]
        admin: Option<String>,
    },
    /// Serve one program on one address, without a configuration file.
    ///
    /// Each line that a client sends goes to one of the programs on its standard input; the line
    /// that it writes on its standard output is the reply. With --http each is one request of HTTP.
    Run(Box<RunArgs>),
    /// Send one line to a pool of a running daemon and print its reply.
    #[cfg(feature = "admin")]
    Ask {
        /// The pool's name.
        pool: String,
        /// The line.
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
    /// Look into the ledger that `load` wrote.
    #[cfg(feature = "databases")]
    #[command(subcommand)]
    Ledger(LedgerCommand),
    #[cfg(all(feature = "admin", feature = "databases"))]
    #[expect(missing_docs, reason = "its arguments say what it is")]
    Demo(DemoArgs),
    #[expect(missing_docs, reason = "its arguments say what it is")]
    Doctor(DoctorArgs),
    /// The worker program of the demo and the tests.
    #[command(hide = true)]
    Worker(WorkerArgs),
    /// Print a page of the documentation that is made from the code.
    #[command(hide = true)]
    Reference {
        /// Which page.
        #[arg(value_enum, default_value_t = Page::Reference)]
        page: Page,
    },
}

/// The pages of `docs/` that are made from the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Page {
    /// Every option of the configuration: `docs/reference.md`.
    Reference,
    /// Every way in which a request can end: `docs/outcomes.md`.
    Outcomes,
}

/// Serve one program on one address.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Where clients connect: HOST:PORT, :PORT, or unix:/path. Port 0 lets the system choose.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7000")]
    pub listen: String,
    /// Where clients of HTTP connect, instead: the program gets one JSON object a request on a line
    /// (method, path, query, headers, body), and answers with one (status, headers, body) or a text.
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["listen", "status"])]
    pub http: Option<String>,
    /// With --http: the program serves HTTP itself. On a listening socket that it inherits as
    /// descriptor 3; `=path`: on a Unix socket that it makes at ROADSTEAD_SOCKET, or {socket} in its
    /// arguments; `=port`: on the port PORT, or {port} in its arguments.
    #[arg(long, value_name = "inherited|path|port", requires = "http", require_equals = true,
          num_args = 0..=1, default_missing_value = "inherited")]
    pub serves: Option<String>,
    /// How many of the program run: MIN..MAX, or one number.
    #[arg(long, value_name = "MIN..MAX", default_value = "1..4")]
    pub workers: String,
    /// Requests that one program has in its hands at once; it must answer them in order. With --serves:
    /// connections to it at once.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub pipeline: i64,
    /// How requests and replies are told apart on the pipes of the program, as in the pool's `framing`. With
    /// jsonrpc and content-length clients speak it too.
    #[arg(long, value_name = "WORD", conflicts_with = "serves")]
    pub framing: Option<String>,
    /// How replies find their requests, as in the pool's `dispatch`: in-order, tagged, session.
    #[arg(long, value_name = "WORD")]
    pub dispatch: Option<String>,
    /// A variable for the program; may be given again.
    #[arg(long, value_name = "NAME=VALUE", value_parser = crate::doctor::variable)]
    pub env: Vec<(String, String)>,
    /// When the program is ready, as in the pool's `ready`: as soon as it runs, or by its first frame.
    #[arg(long, value_name = "start|line")]
    pub ready: Option<String>,
    /// What is done against output that the program keeps in a buffer: no, stdbuf or pty.
    #[arg(long, value_name = "WORD")]
    pub unbuffer: Option<String>,
    /// How long a reply may take; then the program is killed (`response_timeout` of the pool).
    #[arg(long, value_name = "TIME")]
    pub response_timeout: Option<String>,
    /// Requests that may wait (`queue.max_requests` of the pool).
    #[arg(long, value_name = "N")]
    pub queue: Option<i64>,
    /// Where metrics, status and `ask` are served; not at all when it is not given.
    #[arg(long, value_name = "ADDRESS")]
    pub admin: Option<String>,
    /// Mark every reply with `+`, `!` or `-`, for programs whose own lines may begin so.
    #[arg(long)]
    pub status: bool,
    /// The program and its arguments, behind `--`.
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub program: Vec<String>,
}

impl RunArgs {
    /// What clients speak: messages with ids are passed on as they are, everything else is lines.
    fn protocol(&self) -> &str {
        match (&self.http, self.framing.as_deref()) {
            (Some(_), _) => "http",
            (None, Some(framing @ ("jsonrpc" | "content-length"))) => framing,
            (None, _) => "lines",
        }
    }

    /// The same configuration that a file would give.
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
