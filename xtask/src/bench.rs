//! Benchmarks against other software, with the method of the design: paired rounds in alternating order, medians with
//! quartiles, and ratios within a pair. Besides CPU time they report numbers that do not depend on the load of the
//! machine.
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
//!   bench paths  instructions of six paths through the data plane, compared with those on the page
//!   bench http   requests through a proxy, against a bare relay, HAProxy and nginx
//! ```

mod accepts;
mod alignment;
mod arguments;
mod balance;
mod callgrind;
mod child;
mod clients;
mod database;
mod event;
mod fields;
mod goals;
mod ground;
mod growth;
mod http;
mod lines;
mod load;
mod numbers;
mod order;
mod page;
mod parts;
mod paths;
mod process;
mod programs;
mod ring;
mod rows;
mod section;
mod server;
mod statistics;
mod system_calls;
mod template;
mod threads;
mod trial;

use crate::requirements;
use crate::shell::{Failure, Workspace};
use arguments::Rounds;
use clap::{Args, Subcommand};
use ground::Ground;
use std::time::Duration;

#[derive(Args, Debug)]
pub(crate) struct BenchArguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Measure the main use case: lines to programs, rows to SQLite; writes docs/bench-main.md
    Main(MainArguments),
    /// Measure HTTP/1 through proxies; writes docs/bench-http.md
    Http(http::HttpArguments),
    /// Measure requests in a pool, HTTP requests with balancing features, and memory per bound client; writes
    /// docs/bench-balance.md
    Balance(balance::BalanceArguments),
    /// Measure rows into and out of databases; writes docs/bench-database.md
    Database(database::DatabaseArguments),
    /// Count instructions of six paths through the data plane and compare them with docs/bench-paths.md
    Paths(paths::PathsArguments),
    /// Measure stores of names and values; writes docs/bench-fields.md
    Fields(fields::FieldsArguments),
    /// Measure threads behind connections; writes docs/bench-threads.md
    Threads(threads::ThreadsArguments),
    /// Measure a token through rings of programs; writes docs/bench-ring.md
    Ring(ring::RingArguments),
    /// Measure the cost of programs; writes docs/bench-programs.md
    Programs(programs::ProgramsArguments),
    /// Measure the event loop: an echo at 1 to 9500 connections; writes docs/bench-loop.md
    Loop(event::LoopArguments),
}

/// The page with the results of the main use case.
const PAGE: &str = "docs/bench-main.md";

#[derive(Args, Debug)]
struct MainArguments {
    #[command(flatten)]
    rounds: Rounds,
    /// Seconds measured per round
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// Measure only this part. `lines` and `rows` then write nothing; other parts write their section of the page
    #[arg(long, value_parser = ["lines", "rows", "accepts", "saturated", "growth", "instructions"])]
    only: Option<String>,
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
    workspace.release(&["-p", "roadstead"])?;
    let MainArguments { rounds: Rounds { rounds, dry }, seconds, only } = arguments;
    let window = Duration::from_secs((*seconds).into());
    let ground = Ground::new(workspace, "main", *rounds, window, None)?;
    let wanted = |part: &str| only.as_deref().is_none_or(|only| only == part);
    let command = format!("cargo xtask bench main --rounds {rounds} --seconds {seconds}");
    let mut rows = Vec::new();
    if wanted("lines") {
        for shape in lines::SHAPES {
            rows.push(lines::measure(&ground, shape)?);
        }
    }
    if wanted("rows") {
        let row_by_row = workspace.example("roadstead-database", "row_by_row")?;
        rows.push(rows::measure(&ground, &row_by_row)?);
    }
    if !rows.is_empty() {
        let page = page::page(&command, &rows);
        println!("{page}");
        if !dry && only.is_none() {
            workspace.write(PAGE, &page)?;
        }
    }
    let put = |part: &str, section: &str| {
        println!("{section}");
        if *dry {
            return Ok(());
        }
        let made = format!("`{command} --only {part}` on {}", template::date());
        section::put_into(workspace, PAGE, &section::made(section, &made), "## Method")
    };
    if wanted("accepts") {
        put("accepts", &accepts::measure(&ground)?)?;
    }
    if wanted("saturated") {
        let row = lines::saturated(&ground)?;
        put("saturated", &lines::saturated_section(&row))?;
        rows.push(row);
    }
    let bare = || workspace.example("roadstead-event", "echo_bare");
    if wanted("growth") {
        put("growth", &growth::measure(&ground, &bare()?)?)?;
    }
    if wanted("instructions") {
        put("instructions", &growth::instructions(&ground, &bare()?)?)?;
    }
    goals::verdict(rows.iter().filter_map(page::Row::goal))
}
