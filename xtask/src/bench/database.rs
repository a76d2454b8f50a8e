//! Rows into servers and out of them: a listener straight into a database pool with a thousand
//! clients, against bare clients of the same server, and what the parts of that cost.
//!
//! ```text
//!   postgres, mariadb   rows acknowledged a second, against 48 writers that commit row by row
//!   cpu                 CPU a row of the daemon, against a bare loop that echoes the lines and a bare
//!                       client that sends the same batches
//!   methods             how a batch may be sent to PostgreSQL
//!   latency             ten rows a second: what the daemon adds to a bare commit
//!   rows                1000 rows × 12 columns, 100 times, into `Rows` and into what others keep
//! ```

use super::{page, process};
use crate::requirements;
use crate::shell::{self, Failure, Workspace};
use clap::Args;
use runs::{Ground, Kind};
use std::fs;

mod parts;
mod runs;

const PARTS: [&str; 6] = ["postgres", "mariadb", "cpu", "methods", "latency", "rows"];

#[derive(Args, Debug)]
pub(super) struct DatabaseArguments {
    /// Paired rounds of each measurement
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Seconds that are measured in each round
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// Only this part; it is kept for the page
    #[arg(long, value_parser = PARTS)]
    only: Option<String>,
    /// Build what is measured, and stop
    #[arg(long)]
    build: bool,
    /// Write the page of the parts that were measured so far, and stop
    #[arg(long)]
    page: bool,
    /// Show the tables without writing the page
    #[arg(long)]
    dry: bool,
}

pub(super) fn run(workspace: &Workspace, arguments: &DatabaseArguments) -> Result<(), Failure> {
    requirements::provide(requirements::TESTS)?;
    process::raise_descriptors();
    let ground = prepare(workspace, arguments)?;
    if arguments.page {
        return write_page(workspace, &ground);
    }
    if arguments.build {
        return Ok(());
    }
    for part in PARTS {
        if arguments.only.as_deref().is_some_and(|only| only != part) {
            continue;
        }
        let text = match part {
            "postgres" => parts::written(&ground, Kind::Postgres),
            "mariadb" => parts::written(&ground, Kind::Mariadb),
            "cpu" => parts::cpu(&ground),
            "methods" => parts::methods(&ground),
            "latency" => parts::latency(&ground),
            _ => parts::read(&ground),
        }?;
        println!("{text}");
        keep(&ground, part, &text)?;
    }
    if arguments.dry { Ok(()) } else { write_page(workspace, &ground) }
}

fn prepare(workspace: &Workspace, arguments: &DatabaseArguments) -> Result<Ground, Failure> {
    eprintln!("building as released");
    let examples = ["bare_writer", "read_rows", "echo_bare", "handler_echo"];
    let mut words = vec!["build", "--release", "-p", "roadstead", "-p", "roadstead-database"];
    words.extend(["-p", "roadstead-event", "--bin", "roadstead"]);
    words.extend(examples.iter().flat_map(|example| ["--example", *example]));
    shell::run(workspace.cargo(words))?;
    let folder = workspace.target.join("bench/database");
    fs::create_dir_all(&folder).map_err(|error| Failure::new(error.to_string()))?;
    let example = |name: &str| workspace.built("release", &format!("examples/{name}"));
    Ok(Ground {
        roadstead: workspace.built("release", "roadstead"),
        bare_writer: example(examples[0]),
        read_rows: example(examples[1]),
        echo_bare: example(examples[2]),
        handler_echo: example(examples[3]),
        folder,
        rounds: arguments.rounds,
        seconds: arguments.seconds,
    })
}

/// Parts may be measured on different occasions; each is kept until the page is written.
fn keep(ground: &Ground, part: &str, text: &str) -> Result<(), Failure> {
    let path = ground.folder.join(format!("{part}.md"));
    fs::write(&path, text).map_err(|error| Failure::new(format!("{}: {error}", path.display())))
}

fn write_page(workspace: &Workspace, ground: &Ground) -> Result<(), Failure> {
    let page::Machine { cores, kernel, date, .. } = page::machine();
    let mut text = format!(
        "# Databases, measured\n\nMade by `cargo xtask bench database`, whose parts are run by `--only`, on {date}: {cores} cores, \
         Linux {kernel}, loopback, PostgreSQL 15 and MariaDB 10.11 of Debian with their defaults: each commit waits\n\
         for the disk. The servers and the load share the cores with what is measured. Figures are medians\n\
         [lower–upper quartile]. Absolute figures depend on the machine and can differ by a factor of two between\n\
         runs; compare the ratios, which are formed between runs a few seconds apart. CPU is that of the daemon and\n\
         its supervisor, or of the bare client.\n"
    );
    for part in PARTS {
        let path = ground.folder.join(format!("{part}.md"));
        if let Ok(part) = fs::read_to_string(path) {
            text.push_str(&format!("\n{}\n", part.trim()));
        }
    }
    let path = workspace.root.join("docs/bench-database.md");
    fs::write(path, text).map_err(|error| Failure::new(format!("docs/bench-database.md: {error}")))
}
