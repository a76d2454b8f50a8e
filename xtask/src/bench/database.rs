//! Rows into databases and out of them: a listener that passes lines to a database pool, with a thousand clients,
//! against bare clients of the same server, and the cost of the parts.
//!
//! ```text
//!   postgres, mariadb   rows acknowledged per second, against 48 writers that commit row by row
//!   cpu                 CPU per row of the daemon, against a bare loop that echoes the lines and a bare
//!                       client that sends the same batches
//!   methods             how a batch may be sent to PostgreSQL
//!   latency             ten rows per second: the latency that the daemon adds to a bare commit
//!   rows                1000 rows × 12 columns, 100 times, into `Rows` and into other data structures
//! ```

use super::arguments::Rounds;
use super::ground::Ground;
use super::parts::Parts;
use super::process;
use crate::requirements;
use crate::shell::{Failure, Workspace};
use clap::Args;
use runs::Kind;
use std::time::Duration;

mod runs;
mod sections;

const PARTS: [&str; 6] = ["postgres", "mariadb", "cpu", "methods", "latency", "rows"];

#[derive(Args, Debug)]
pub(super) struct DatabaseArguments {
    #[command(flatten)]
    rounds: Rounds,
    /// Seconds measured per round
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// Measure only this part; its result is stored for the page
    #[arg(long, value_parser = PARTS)]
    only: Option<String>,
    /// Only build the measured programs
    #[arg(long)]
    build: bool,
    /// Only write the page of the stored parts
    #[arg(long)]
    page: bool,
}

pub(super) fn run(workspace: &Workspace, arguments: &DatabaseArguments) -> Result<(), Failure> {
    let DatabaseArguments { rounds: Rounds { rounds, dry }, seconds, only, build, page } =
        arguments;
    let window = Duration::from_secs((*seconds).into());
    let ground = Ground::new(workspace, "database", *rounds, window, None)?;
    if !page {
        requirements::provide(requirements::TESTS)?;
        process::raise_descriptors();
        let mut words = vec!["-p", "roadstead", "-p", "roadstead-database"];
        words.extend(["-p", "roadstead-event", "--bin", "roadstead"]);
        let examples = ["bare_writer", "read_rows", "echo_bare", "handler_echo"];
        words.extend(examples.iter().flat_map(|example| ["--example", *example]));
        workspace.release(&words)?;
    }
    if *build {
        return Ok(());
    }
    let parts = Parts { folder: &ground.folder, names: &PARTS, dry: *dry };
    let wanted = |part: &str| !page && only.as_deref().is_none_or(|only| only == part);
    let kept = parts.run(wanted, |part| {
        let text = match part {
            "postgres" => sections::written(&ground, Kind::Postgres),
            "mariadb" => sections::written(&ground, Kind::Mariadb),
            "cpu" => sections::cpu(&ground),
            "methods" => sections::methods(&ground),
            "latency" => sections::latency(&ground),
            _ => sections::read(&ground),
        }?;
        println!("{text}");
        Ok(text)
    })?;
    if *dry {
        return Ok(());
    }
    let kept: Vec<&str> = kept.iter().map(|(_, text)| text.as_str()).collect();
    let page = sections::TEXT.fill("page", &[("parts", &kept.join("\n"))]);
    workspace.write("docs/bench-database.md", &page)
}
