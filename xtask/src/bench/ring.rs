//! `bench ring`: a token through rings of `cat`s, over several loops.

use super::driver::{Options, Part, Spec, Whole};
use super::goals::{Goal, at_least, at_most};
use super::numbers;
use super::page::{Template, row};
use super::trial::Trial;
use crate::requirements;
use crate::shell::{self, Failure, Workspace, command};
use clap::Args;
use serde_json::json;
use std::thread::available_parallelism;

#[derive(Args, Debug)]
pub(super) struct RingArguments {
    #[command(flatten)]
    options: Options,
    /// Programs per ring
    #[arg(long, default_value_t = 10)]
    programs: u32,
    /// How often the token of each ring is passed on
    #[arg(long, default_value_t = 10_000)]
    hops: u32,
    /// The number of concurrent rings
    #[arg(long, default_value_t = 8)]
    rings: u32,
}

static SPEC: Spec = Spec {
    name: "ring",
    parts: &["all processors", "one processor"],
    text: Template(include_str!("../../pages/ring.md")),
    tools: requirements::BENCH_RING,
    rounds: 15,
    milliseconds: 0,
};

/// The subjects, with the words of their commands before the shape of the rings.
const SUBJECTS: [(&str, &[&str]); 6] = [
    (BARE, &["bare"]),
    ("event + spawn", &["event"]),
    ("gateway", &["gateway"]),
    ("Erlang/OTP", &[]),
    ("Erlang/OTP, one scheduler", &["+S", "1:1"]),
    ("Erlang/OTP, no busy waiting", &["+sbwt", "none", "+sbwtdcpu", "none", "+sbwtdio", "none"]),
];
const BARE: &str = "bare epoll loop";

fn is_erlang(subject: &str) -> bool {
    subject.starts_with("Erlang")
}

pub(super) fn run(workspace: &Workspace, arguments: &RingArguments) -> Result<(), Failure> {
    let RingArguments { options, programs, hops, rings } = arguments;
    let more = format!(" --programs {programs} --hops {hops} --rings {rings}");
    let bench = SPEC.open(workspace, options, &more)?;
    let (ground, ring) = (&bench.ground, workspace.built("release", "examples/ring"));
    if !options.page {
        workspace.example("roadstead-gateway", "ring")?;
        let script = ground.root.join("xtask/peers/ring.erl");
        shell::run(command(
            "erlc",
            ["-o".as_ref(), ground.folder.as_os_str(), script.as_os_str()],
        ))?;
    }
    let shape = [programs, hops, rings].map(ToString::to_string);
    let [program, folder] = [&ring, &ground.folder].map(|path| path.display().to_string());
    let subjects = SUBJECTS.map(|(name, words)| {
        let all = if is_erlang(name) {
            let run: [&[&str]; 3] =
                [&["erl", "-noshell", "-pa", &folder], words, &["-run", "ring", "main"]];
            run.concat()
        } else {
            [&[program.as_str()], words].concat()
        };
        let words = all.into_iter().map(str::to_owned).chain(shape.clone());
        (name, words.collect::<Vec<_>>())
    });
    let messages = f64::from(*hops) * f64::from(*rings);
    let measure = |place: &str| {
        // One processor: the last.
        let last = available_parallelism().map_or(0, |count| count.get() - 1).to_string();
        let pin = ["taskset", "-c", &last].map(str::to_owned);
        let pinned = |words: &[String]| {
            if place == SPEC.parts[1] { [&pin, words].concat() } else { words.to_vec() }
        };
        let subjects = subjects.clone().map(|(name, words)| (name, pinned(&words)));
        let names = subjects.clone().map(|(name, _)| name);
        let trial = ground.rounds(place, &names, |_, at| {
            let words = &subjects[at].1;
            Ok(json!({ "us": numbers::last(command(&words[0], &words[1..]))? }))
        })?;
        let counts =
            subjects.map(|(_, words)| counted(&words).map(|all| all.map(|it| it / messages)));
        Ok(part(place, &trial, &counts))
    };
    bench.run(measure, |_| Whole::default())
}

/// Returns the context switches and system calls of a command and its child processes, if the kernel reports them.
fn counted(words: &[String]) -> Option<[f64; 2]> {
    let mut perf =
        command("perf", ["stat", "-x", ",", "-e", "context-switches,raw_syscalls:sys_enter", "--"]);
    let output = perf.args(words).output().ok()?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let of = |event: &str| {
        let line = text.lines().find(|line| line.contains(event))?;
        line.split(',').next()?.parse::<f64>().ok()
    };
    Some([of("context-switches")?, of("sys_enter")?])
}

/// Returns the results on all processors or on one. `counts`: context switches and system calls per message.
fn part(place: &str, trial: &Trial, counts: &[Option<[f64; 2]>]) -> Part {
    let erlang = trial.names().filter(|name| is_erlang(name));
    let median = |name: &str| trial.median(name, "us");
    let fastest = erlang.min_by(|one, other| median(one).total_cmp(&median(other)));
    let fastest = fastest.unwrap_or_default();
    let line = |(name, counts): (&str, &Option<[f64; 2]>)| {
        let count =
            |at: usize| counts.map_or_else(|| "–".to_owned(), |all| format!("{:.2}", all[at]));
        let [bare, erlang] = [(name, BARE), (fastest, name)]
            .map(|(over, under)| trial.ratio("us", over, under).shown());
        row(&[&name, &trial.of(name, "us").shown(), &bare, &erlang, &count(0), &count(1)])
    };
    let rows: String = trial.names().zip(counts).map(line).collect();
    let text = SPEC.text.fill("table", &[("place", &place), ("rows", &rows)]);
    Part { goals: goals(place, trial, fastest), ..Part::text(text) }
}

fn goals(place: &str, trial: &Trial, fastest: &str) -> Vec<Goal> {
    let by_bare = |name| trial.ratio("us", name, BARE).median;
    let erlang = trial.ratio("us", fastest, "gateway").median;
    let faster = "the gateway at least 1.2 × as fast as the fastest Erlang";
    vec![
        at_most(
            format!("{place}: event + spawn at most 1.10 × the bare loop"),
            by_bare("event + spawn"),
            1.10,
        ),
        at_most(
            format!("{place}: the gateway at most 1.25 × the bare loop"),
            by_bare("gateway"),
            1.25,
        ),
        at_least(format!("{place}: {faster}"), erlang, 1.2),
    ]
}
