//! Benchmarks against other software, with the method of the design: rounds in random order, medians with quartiles, and
//! ratios within a round. Besides CPU time they report numbers that do not depend on the load of the machine.
//!
//! [`driver`] runs all of them except `paths`: a benchmark lists its parts and measures one of them.
//!
//! ```text
//!   bench main   lines   1000 × 1/s and 30 × 50/s handed to 20 programs: CPU per line,
//!                        against IO::Multiplex with the same programs and the same load
//!                rows    rows acknowledged per second into SQLite with full sync,
//!                        against a bare client that commits row by row
//!   bench fields         the cost of storing and finding names and values, against other stores
//!   bench ring   a token through rings of `cat`s: a bare loop, event + spawn, the gateway, Erlang
//!   bench programs       placement, pipes or sockets, opening, a pool against a bare loop
//!   bench loop   an echo of 64 bytes by the loop over each kernel, against a bare loop over epoll,
//!                mio, tokio, libevent and IO::Multiplex; the cost of single calls
//!   bench threads        connect, receive, close: thread pools, one thread per connection, no threads
//!   bench database       rows into PostgreSQL and MariaDB and out of them, against bare clients
//!   bench balance        a request in a pool, by schedule and number of workers; bound clients; requests
//!                that fail when servers do, against HAProxy and nginx
//!   bench cluster        bindings that two daemons share over NATS, against the peers of HAProxy
//!   bench paths  instructions of six paths through the data plane, compared with those on the page
//!   bench http   requests through a proxy, against a bare relay, HAProxy and nginx
//! ```

mod accepts;
mod alignment;
mod balance;
mod callgrind;
mod child;
mod clients;
mod cluster;
mod comparison;
mod database;
mod driver;
mod event;
mod fields;
mod goals;
mod ground;
mod growth;
mod http;
mod lines;
mod load;
mod numbers;
mod page;
mod paths;
mod process;
mod programs;
mod ring;
mod rows;
mod server;
mod statistics;
mod system_calls;
mod threads;
mod trial;

use crate::requirements;
use crate::shell::{Failure, Workspace};
use clap::{Args, Subcommand};
use driver::{Options, Spec, Whole};

#[derive(Args, Debug)]
pub(crate) struct BenchArguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Measure the main use case: lines to programs, rows to SQLite; writes docs/bench-main.md
    Main(Options),
    /// Measure HTTP/1 through proxies; writes docs/bench-http.md
    Http(http::HttpArguments),
    /// Measure requests in a pool, HTTP requests with balancing features, and memory per bound client; writes
    /// docs/bench-balance.md
    Balance(balance::BalanceArguments),
    /// Measure bindings that several daemons share; writes docs/bench-cluster.md
    Cluster(cluster::ClusterArguments),
    /// Measure rows into and out of databases; writes docs/bench-database.md
    Database(database::DatabaseArguments),
    /// Count instructions of six paths through the data plane and compare them with docs/bench-paths.md
    Paths(paths::PathsArguments),
    /// Measure stores of names and values; writes docs/bench-fields.md
    Fields(Options),
    /// Measure threads behind connections; writes docs/bench-threads.md
    Threads(Options),
    /// Measure a token through rings of programs; writes docs/bench-ring.md
    Ring(ring::RingArguments),
    /// Measure the cost of programs; writes docs/bench-programs.md
    Programs(programs::ProgramsArguments),
    /// Measure the event loop: an echo at 1 to 9500 connections; writes docs/bench-loop.md
    Loop(Options),
}

static MAIN: Spec = Spec {
    name: "main",
    parts: &["lines", "rows", "accepts", "saturated", "growth", "instructions"],
    text: comparison::TEXT,
    tools: requirements::BENCH,
    rounds: 15,
    milliseconds: 5000,
};

pub(crate) fn run(workspace: &Workspace, arguments: &BenchArguments) -> Result<(), Failure> {
    match &arguments.what {
        What::Main(arguments) => run_main(workspace, arguments),
        What::Balance(arguments) => balance::run(workspace, arguments),
        What::Cluster(arguments) => cluster::run(workspace, arguments),
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

fn run_main(workspace: &Workspace, options: &Options) -> Result<(), Failure> {
    let bench = MAIN.open(workspace, options, "")?;
    if !options.page {
        workspace.release(&["-p", "roadstead"])?;
    }
    if bench.wants("rows") {
        workspace.example("roadstead-database", "row_by_row")?;
    }
    if bench.wants("growth") || bench.wants("instructions") {
        workspace.example("roadstead-event", "echo_bare")?;
    }
    let ground = &bench.ground;
    let measure = |part: &str| match part {
        "lines" => lines::measure(ground),
        "rows" => rows::measure(ground),
        "accepts" => accepts::measure(ground),
        "saturated" => lines::saturated(ground),
        "growth" => growth::measure(ground),
        _ => growth::instructions(ground),
    };
    // The parts without a text have rows of the first tables.
    bench.run(measure, |parts| {
        let of = |what| parts.iter().filter_map(|part| part.values[what].as_str()).collect();
        Whole { values: vec![("rows", of("rows")), ("calls", of("calls"))], ..Whole::default() }
    })
}
