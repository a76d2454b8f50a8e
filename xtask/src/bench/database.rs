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

use super::driver::{Options, Part, Spec, Whole};
use crate::requirements;
use crate::shell::{Failure, Workspace};
use clap::Args;
use runs::Kind;

mod runs;
mod sections;

#[derive(Args, Debug)]
pub(super) struct DatabaseArguments {
    #[command(flatten)]
    options: Options,
    /// Only build the measured programs
    #[arg(long)]
    build: bool,
}

static SPEC: Spec = Spec {
    name: "database",
    parts: &["postgres", "mariadb", "cpu", "methods", "latency", "rows"],
    text: sections::TEXT,
    tools: requirements::TESTS,
    rounds: 15,
    milliseconds: 3000,
};

pub(super) fn run(workspace: &Workspace, arguments: &DatabaseArguments) -> Result<(), Failure> {
    let DatabaseArguments { options, build } = arguments;
    let bench = SPEC.open(workspace, options, "")?;
    if !options.page {
        let mut words = vec!["-p", "roadstead", "-p", "roadstead-database"];
        words.extend(["-p", "roadstead-event", "--bin", "roadstead"]);
        let examples = ["bare_writer", "read_rows", "echo_bare", "handler_echo"];
        words.extend(examples.iter().flat_map(|example| ["--example", *example]));
        workspace.release(&words)?;
    }
    if *build {
        return Ok(());
    }
    let ground = &bench.ground;
    let measure = |part: &str| {
        let text = match part {
            "postgres" => sections::written(ground, Kind::Postgres),
            "mariadb" => sections::written(ground, Kind::Mariadb),
            "cpu" => sections::cpu(ground),
            "methods" => sections::methods(ground),
            "latency" => sections::latency(ground),
            _ => sections::read(ground),
        };
        text.map(Part::text)
    };
    bench.run(measure, |_| Whole::default())
}
