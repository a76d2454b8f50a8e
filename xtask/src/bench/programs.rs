//! `bench programs`: where programs run, how they are connected, the cost of opening one, and a pool of programs
//! against a bare loop.

use super::driver::{Options, Part, Spec, Whole};
use super::goals::at_most;
use super::ground::Ground;
use super::page::{Template, row};
use super::trial::Trial;
use super::{alignment, lines, numbers};
use crate::requirements;
use crate::shell::{Failure, Workspace, command};
use clap::Args;
use serde_json::json;

#[derive(Args, Debug)]
pub(super) struct ProgramsArguments {
    #[command(flatten)]
    options: Options,
    /// One-byte writes of the measurement of access times
    #[arg(long, default_value_t = 10_000_000)]
    writes: u32,
}

static SPEC: Spec = Spec {
    name: "programs",
    parts: &["flights", "opening", "atime", "pools", "alignment"],
    text: TEXT,
    tools: requirements::BENCH,
    rounds: 15,
    milliseconds: 2000,
};
const TEXT: Template = Template(include_str!("../../pages/programs.md"));

pub(super) fn run(workspace: &Workspace, arguments: &ProgramsArguments) -> Result<(), Failure> {
    let ProgramsArguments { options, writes } = arguments;
    let bench = SPEC.open(workspace, options, &format!(" --writes {writes}"))?;
    if ["flights", "opening", "atime", "pools"].iter().any(|part| bench.wants(part)) {
        workspace.release(&["-p", "roadstead-gateway", "--examples"])?;
    }
    if bench.wants("pools") || bench.wants("alignment") {
        workspace.release(&["-p", "roadstead"])?;
    }
    let ground = &bench.ground;
    let measure = |part: &str| match part {
        "flights" => flights(ground),
        "opening" => opening(ground),
        "atime" => atime(ground, *writes),
        "pools" => pools(ground),
        _ => alignment::measure(ground, TEXT),
    };
    bench.run(measure, |_| Whole::default())
}

/// Measures two variants with `crates/gateway/examples/programs.rs`, called with these words.
fn both(
    ground: &Ground,
    variants: [&str; 2],
    words: impl Fn(&str) -> Vec<String>,
) -> Result<Trial, Failure> {
    let all = variants.map(&words);
    ground.rounds(&all[0].join(" "), &variants, |_, at| {
        Ok(json!({ "time": numbers::last(command(ground.example("programs"), &all[at]))? }))
    })
}

/// Measures where the program runs and how it is connected, with 1 and with 64 messages in flight.
fn flights(ground: &Ground) -> Result<Part, Failure> {
    let mut rows = String::new();
    for (in_flight, messages) in [("1", "20000"), ("64", "400000")] {
        for cpu in ["near", "other", "any"] {
            let words =
                |io: &str| ["flights", cpu, io, in_flight, messages].map(str::to_owned).into();
            let trial = both(ground, ["pipe", "socket"], words)?;
            let [pipe, socket] = ["pipe", "socket"].map(|io| trial.of(io, "time").shown());
            let ratio = trial.ratio("time", "socket", "pipe").shown();
            rows += &row(&[&in_flight, &cpu, &pipe, &socket, &ratio]);
        }
    }
    Ok(Part::text(TEXT.fill("flights", &[("rows", &rows)])))
}

/// Measures the time from the request for a program to the report that it runs.
fn opening(ground: &Ground) -> Result<Part, Failure> {
    let (mut rows, mut goals, mut medians) = (String::new(), Vec::new(), Vec::new());
    for (held, limit) in [("10", "1024"), ("10", "20000"), ("10000", "20000")] {
        let words = |how: &str| ["open", how, held, limit, "50"].map(str::to_owned).into();
        let trial = both(ground, ["supervisor", "posix"], words)?;
        let [supervisor, posix] = ["supervisor", "posix"].map(|how| trial.of(how, "time"));
        let ratio = trial.ratio("time", "supervisor", "posix");
        rows += &row(&[&held, &limit, &supervisor.shown(), &posix.shown(), &ratio.shown()]);
        let goal = format!(
            "opening with {held} descriptors and a limit of {limit}: at most 1.3 × posix_spawn"
        );
        goals.push(at_most(goal, ratio.median, 1.3));
        medians.push(supervisor.median);
    }
    let most = medians.iter().copied().fold(0.0, f64::max) / medians[0];
    let goal = "opening costs at most 1.3 × as much with 10,000 descriptors and any limit";
    goals.push(at_most(goal, most, 1.3));
    Ok(Part { goals, ..Part::text(TEXT.fill("opening", &[("rows", &rows)])) })
}

/// Measures access times of pipes, as the author of the ring did.
fn atime(ground: &Ground, writes: u32) -> Result<Part, Failure> {
    // Each run is ten million writes, so three runs are sufficient.
    let ground = &Ground { rounds: 3, ..ground.clone() };
    let words = |kept: &str| vec!["atime".to_owned(), kept.to_owned(), writes.to_string()];
    let trial = both(ground, ["yes", "no"], words)?;
    let [yes, no] = ["yes", "no"].map(|kept| trial.of(kept, "time").shown());
    let ratio = trial.ratio("time", "no", "yes").shown();
    let values: [(&str, &dyn std::fmt::Display); 4] =
        [("writes", &writes), ("yes", &yes), ("no", &no), ("ratio", &ratio)];
    Ok(Part::text(TEXT.fill("atime", &values)))
}

/// Measures twenty programs with a thousand clients.
fn pools(ground: &Ground) -> Result<Part, Failure> {
    let (mut rows, mut goals) = (String::new(), Vec::new());
    for pipeline in [1, 64] {
        let trial = lines::pool(ground, pipeline)?;
        let [ours, bare] = lines::POOL.map(|side| trial.of(side, "cpu_us").shown());
        let ratio = trial.ratio("cpu_us", lines::POOL[0], lines::POOL[1]);
        rows += &row(&[&pipeline, &ours, &bare, &ratio.shown()]);
        let goal = format!("a pool with {pipeline} in flight: at most 1.25 × the bare loop");
        goals.push(at_most(goal, ratio.median, 1.25));
    }
    Ok(Part { goals, ..Part::text(TEXT.fill("pools", &[("rows", &rows)])) })
}
