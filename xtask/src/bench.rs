//! Measurements against the peers, as the design says how: paired rounds in turn, medians with
//! quartiles, ratios within a pair, and beside CPU time what does not depend on the machine's mood.
//!
//! ```text
//!   bench main   lines   1000 × 1/s and 30 × 50/s handed to 20 programs: CPU a line,
//!                        against IO::Multiplex with the same programs and the same load
//!                rows    rows acknowledged a second into SQLite with full sync,
//!                        against a bare client that commits row by row
//!   bench fields         what storing and finding names and values takes, against other stores
//!   bench ring   a token through rings of `cat`s: a bare loop, event + spawn, the gateway, Erlang
//!   bench programs       placement, pipes or sockets, opening, a pool against a bare loop
//!   bench loop   an echo of 64 bytes by the loop over each kernel, against a bare loop over epoll,
//!                mio, tokio, libevent and IO::Multiplex; what single calls cost
//!   bench threads        connect, receive, close: pools of threads, a thread for each, none
//!   bench database       rows into PostgreSQL and MariaDB and out of them, against bare clients
//!   bench balance        a request in a pool, by schedule and number of workers; bound clients; requests
//!                that fail when servers do, against HAProxy and nginx
//!   bench paths  instructions of six paths through the data plane, held against those on the page
//!   bench http   requests through a proxy, against a bare relay, HAProxy and nginx
//! ```

mod accepts;
mod alignment;
mod balance;
mod callgrind;
mod database;
mod event;
mod fields;
mod ground;
mod growth;
mod http;
mod lines;
mod load;
mod order;
mod page;
mod paths;
mod process;
mod programs;
mod ring;
mod rows;
mod section;
mod server;
mod statistics;
mod system_calls;
mod threads;
mod trial;

use crate::requirements;
use crate::shell::{self, Failure, Workspace};
use clap::{Args, Subcommand};
use page::Row;
use std::fs;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(crate) struct BenchArguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// The main job: lines to programs, rows to SQLite; writes docs/bench-main.md
    Main(MainArguments),
    /// HTTP/1 through proxies; writes docs/bench-http.md
    Http(http::HttpArguments),
    /// Instructions of a request in a pool, and of one of HTTP with what balances it; bytes of a bound
    /// client; writes docs/bench-balance.md
    Balance(balance::BalanceArguments),
    /// Rows into databases and out of them; writes docs/bench-database.md
    Database(database::DatabaseArguments),
    /// Instructions of six paths through the data plane, held against docs/bench-paths.md
    Paths(paths::PathsArguments),
    /// Stores of names and values; writes docs/bench-fields.md
    Fields(fields::FieldsArguments),
    /// Threads behind connections; writes docs/bench-threads.md
    Threads(threads::ThreadsArguments),
    /// A token through rings of programs; writes docs/bench-ring.md
    Ring(ring::RingArguments),
    /// What programs cost; writes docs/bench-programs.md
    Programs(programs::ProgramsArguments),
    /// The event loop: an echo at 1 to 9500 connections; writes docs/bench-loop.md
    Loop(event::LoopArguments),
}

/// Where the results of the main job stand.
const PAGE: &str = "docs/bench-main.md";

#[derive(Args, Debug)]
struct MainArguments {
    /// Paired rounds of each measurement
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Seconds that are measured in each round
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// Only this part; `lines` and `rows` then write nothing, others their section of the page
    #[arg(long, value_parser = ["lines", "rows", "accepts", "saturated", "growth", "instructions"])]
    only: Option<String>,
    /// Show the table without writing the page
    #[arg(long)]
    dry: bool,
}

impl MainArguments {
    fn wants(&self, part: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == part)
    }
}

pub(crate) fn run(workspace: &Workspace, arguments: &BenchArguments) -> Result<(), Failure> {
    match &arguments.what {
        What::Main(arguments) => run_main(workspace, arguments),
        What::Balance(arguments) => balance::run(workspace, arguments),
        What::Threads(arguments) => threads::run(workspace, arguments),
        What::Database(arguments) => database::run(workspace, arguments),
        What::Paths(arguments) => paths::run(workspace, arguments),
        What::Fields(arguments) => fields::run(workspace, arguments),
        What::Http(arguments) => http::run(workspace, arguments),
        What::Loop(arguments) => event::run(workspace, arguments),
        What::Ring(arguments) => ring::run(workspace, arguments),
        What::Programs(arguments) => programs::run(workspace, arguments),
    }
}

fn run_main(workspace: &Workspace, arguments: &MainArguments) -> Result<(), Failure> {
    requirements::provide(requirements::BENCH)?;
    process::raise_descriptors();
    let ground = ground::prepare(workspace, arguments.rounds, arguments.seconds)?;
    if arguments.wants("rows") {
        let example = ["-p", "roadstead-database", "--example", "row_by_row"];
        shell::run(workspace.cargo(["build", "--release"].iter().chain(&example)))?;
    }
    let wanted = |part: &str| arguments.wants(part);
    let command = format!(
        "cargo xtask bench main --rounds {} --seconds {}",
        arguments.rounds, arguments.seconds
    );
    let mut rows = Vec::new();
    if wanted("lines") {
        for shape in lines::SHAPES {
            rows.push(lines::measure(&ground, shape)?);
        }
    }
    if wanted("rows") {
        rows.push(rows::measure(&ground)?);
    }
    if !rows.is_empty() {
        println!("{}", page::table(&rows));
    }
    if !arguments.dry && arguments.only.is_none() {
        fs::write(workspace.root.join(PAGE), page::page(&command, &page::machine(), &rows))
            .map_err(|error| Failure::new(format!("{PAGE}: {error}")))?;
        println!("wrote {PAGE}");
    }
    let put = |part: &str, section: &str| {
        println!("{section}");
        if arguments.dry {
            return Ok(());
        }
        let made = format!("`{command} --only {part}` on {}", page::machine().date);
        section::put_into(workspace, PAGE, &section::made(section, &made), "## Method")
    };
    if wanted("accepts") {
        put("accepts", &accepts::section(&accepts::measure(&ground)?))?;
    }
    if wanted("saturated") {
        let row = lines::saturated(&ground)?;
        put("saturated", &lines::saturated_section(&row))?;
        rows.push(row);
    }
    if wanted("growth") {
        put("growth", &growth::measure(&ground, &bare_echo(workspace)?)?)?;
    }
    if wanted("instructions") {
        put("instructions", &growth::instructions(&ground, &bare_echo(workspace)?)?)?;
    }
    verdict(&rows)
}

/// The bare loop, as it is released.
fn bare_echo(workspace: &Workspace) -> Result<PathBuf, Failure> {
    let example = ["build", "--release", "-p", "roadstead-event", "--example", "echo_bare"];
    shell::run(workspace.cargo(example))?;
    Ok(workspace.built("release", "examples/echo_bare"))
}

/// A goal that was missed is a failure, after everything was shown.
fn verdict(rows: &[Row]) -> Result<(), Failure> {
    let missed: Vec<String> = rows.iter().filter_map(Row::missed).collect();
    if missed.is_empty() { Ok(()) } else { Err(Failure::new(missed.join("\n"))) }
}
