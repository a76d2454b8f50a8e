//! HTTP/1 through proxies: CPU time, system calls, instructions, allocations, latency and memory, against HAProxy and
//! nginx with expert configurations, and against a bare relay.
//!
//! Each part stores its results, and the page is generated from all stored parts, so that parts can be measured
//! separately.

mod goals;
mod instructions;
mod lines;
mod page;
mod running;
mod subject;
mod windows;

use super::driver::{Options, Part, Spec};
use super::ground::Ground;
use crate::requirements;
use crate::shell::{Failure, Workspace};
use clap::Args;
use serde_json::Value;
use std::process::Command;
use subject::Subject;
use windows::Shape;

pub(super) use lines::{CONNECTIONS, Cost, cost};

#[derive(Args, Debug)]
pub(super) struct HttpArguments {
    #[command(flatten)]
    options: Options,
    /// Measure only the subjects with these names
    #[arg(long, value_delimiter = ',')]
    subjects: Vec<String>,
    /// An additional subject, NAME=COMMAND, in which @PORT@ is its port and @SERVER@ the port of its server; repeatable
    #[arg(long)]
    subject: Vec<String>,
}

static SPEC: Spec = Spec {
    name: "http",
    parts: &[
        "128",
        "few",
        "9000",
        "16k",
        "1m",
        "paced",
        "memory",
        "calls",
        "instructions",
        "shards",
    ],
    text: page::TEXT,
    tools: requirements::BENCH_HTTP,
    rounds: 15,
    milliseconds: 1000,
};

const SMALL: &[Shape] = &[(1, 1, 128), (64, 64, 128), (1000, 1000, 128)];
/// Many connections, few of them active.
const FEW: &[Shape] = &[(1000, 16, 128), (9000, 64, 128)];
const MANY: &[Shape] = &[(9000, 9000, 128)];
const MIDDLE: &[Shape] = &[(1, 1, 16 << 10), (64, 64, 16 << 10), (1000, 1000, 16 << 10)];
/// One shard compared with two.
const SHARDS: &[Shape] = &[(64, 64, 128), (1000, 1000, 128)];
const LARGE: &[Shape] = &[(1, 1, 1 << 20), (64, 64, 1 << 20)];

pub(super) fn run(workspace: &Workspace, arguments: &HttpArguments) -> Result<(), Failure> {
    let options = &arguments.options;
    let bench = SPEC.open(workspace, options, "")?;
    let ground = &bench.ground;
    let subjects =
        if options.page { Subjects::default() } else { prepare(workspace, ground, arguments)? };
    let measure = |part: &str| {
        let values = measure(ground, &subjects, part)?;
        Ok(Part { text: page::part(part, &values), ..Part::values(values) })
    };
    bench.run(measure, |parts| {
        let values = parts.iter().map(|part| part.values.clone());
        let parts: Vec<_> = SPEC.parts.iter().copied().zip(values).collect();
        page::whole(&versions(), &parts)
    })
}

/// Returns the versions that the peers print.
fn versions() -> [String; 2] {
    let said = |program: &str| {
        let output = Command::new(program).arg("-v").output();
        // nginx writes its version to standard error.
        let text = output.map(|output| [output.stdout, output.stderr].concat()).unwrap_or_default();
        String::from_utf8_lossy(&text).lines().next().unwrap_or_default().to_owned()
    };
    let haproxy: String = said("haproxy").split_whitespace().take(3).collect::<Vec<_>>().join(" ");
    let nginx = said("nginx").replace("nginx version: ", "").replace('/', " ");
    [haproxy.replace(" version", ""), nginx]
}

/// The measured subjects.
#[derive(Default)]
struct Subjects {
    all: Vec<Subject>,
    /// The same subjects and HAProxy without splicing, for large bodies.
    large: Vec<Subject>,
    /// Roadstead with one shard and with two.
    shards: Vec<Subject>,
}

fn prepare(
    workspace: &Workspace,
    ground: &Ground,
    arguments: &HttpArguments,
) -> Result<Subjects, Failure> {
    workspace.release(&["-p", "xtask", "--examples"])?;
    workspace.release(&["-p", "roadstead"])?;
    workspace.example("roadstead", "serve_file")?;
    let mut all = subject::all(ground)?;
    for one in &arguments.subject {
        all.push(Subject::given(one)?);
    }
    let wanted = &arguments.subjects;
    let is_wanted = |subject: &Subject| wanted.is_empty() || wanted.contains(&subject.name);
    all.retain(is_wanted);
    let copying = Some(subject::copying(ground)?).filter(is_wanted);
    let large = all.iter().cloned().chain(copying).collect();
    Ok(Subjects { all, large, shards: subject::on_shards(ground)? })
}

fn measure(ground: &Ground, subjects: &Subjects, part: &str) -> Result<Value, Failure> {
    let Subjects { all, large, shards } = subjects;
    match part {
        "128" => windows::shapes(ground, all, SMALL),
        "few" => windows::shapes(ground, all, FEW),
        "9000" => windows::shapes(ground, all, MANY),
        "16k" => windows::shapes(ground, all, MIDDLE),
        "1m" => windows::shapes(ground, large, LARGE),
        "shards" => windows::shapes(ground, shards, SHARDS),
        "paced" => windows::paced(ground, all),
        "memory" => windows::memory(ground, all),
        "calls" => windows::calls(ground, large),
        _ => instructions::measure(ground, all),
    }
}
