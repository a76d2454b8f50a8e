//! Stores of names and values: the time of one unit of each task under two allocators, the allocations, and the
//! instructions of a lookup.
//!
//! The examples of `fields` measure and print one line per measurement; this module generates the page.

mod goals;

use super::arguments::Rounds;
use super::callgrind;
use super::ground::Ground;
use super::parts::Parts;
use super::template::{Template, row};
use crate::requirements;
use crate::shell::{self, Failure, Workspace};
use clap::Args;
use goals::{Line, Measured};
use std::fs;
use std::process::Command;
use std::time::Duration;

const TEXT: Template = Template(include_str!("../../pages/fields.md"));

#[derive(Args, Debug)]
pub(crate) struct FieldsArguments {
    #[command(flatten)]
    rounds: Rounds,
    /// Measure only this part; the page is generated from it and from the stored results of the others
    #[arg(long, value_parser = PARTS)]
    only: Option<String>,
}

/// The parts, in the order in which they are measured. `memory` counts and does not time.
const PARTS: [&str; 6] = ["query", "sets", "heads", "lookups", "layouts", "memory"];

/// The tables of the page, each for the tasks whose names begin with this. The case of the original comes first.
const TASKS: [&str; 6] = ["T4", "T1", "T2", "T3", "look-up", "layout"];

/// The stores whose memory is measured by the system.
const STORES: [&str; 6] = [
    "Fields",
    "http::HeaderMap",
    "BTreeMap<String, String>",
    "Vec<(String, String)>",
    "one allocation a string",
    "the reform's layout",
];

/// The operations counted by callgrind, and their names on the page.
const COUNTED: [(&str, &str); 8] = [
    ("look-up", "an absent known name looked up"),
    ("present", "a present known name, the 12th of 20, looked up"),
    ("Fields", "20 members appended, Fields"),
    ("the reform's layout", "20 members appended, the reform's layout"),
    ("the copies alone, nothing kept", "20 members copied, nothing kept"),
    ("http::HeaderMap", "20 members appended, http::HeaderMap"),
    ("head", "a head of 20 parsed and stored, Fields"),
    ("httparse", "the same parsed by httparse, nothing stored"),
];

pub(super) fn run(workspace: &Workspace, arguments: &FieldsArguments) -> Result<(), Failure> {
    requirements::provide(requirements::COUNTING)?;
    workspace.release(&["-p", "roadstead-fields", "--examples"])?;
    let FieldsArguments { rounds: Rounds { rounds, dry }, only } = arguments;
    let ground = Ground::new(workspace, "fields", *rounds, Duration::ZERO, None)?;
    let parts = Parts { folder: &ground.folder, names: &PARTS, dry: *dry };
    let wanted = |part: &str| only.as_deref().is_none_or(|only| only == part);
    let stored = parts.run(wanted, |part| measure(&ground, part))?;
    if !parts.are_all(&stored) {
        return Ok(());
    }
    let page = page(&stored.into_iter().map(|(_, said)| said).collect::<String>())?;
    println!("{page}");
    if *dry { Ok(()) } else { workspace.write("docs/bench-fields.md", &page) }
}

/// Returns the output of an example.
fn say(ground: &Ground, example: &str, arguments: &[&str]) -> Result<String, Failure> {
    let mut command = Command::new(ground.example(example));
    command.args(arguments);
    shell::output(command)
}

/// Measures one part. Each line of the result begins with its kind.
fn measure(ground: &Ground, part: &str) -> Result<String, Failure> {
    if part == "memory" {
        return measure_memory(ground);
    }
    let rounds = ground.rounds.to_string();
    let loads = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = loads.split(' ').next().unwrap_or_default();
    let mut text = format!("part\t{part}\t{rounds}\t{load}\n");
    for (allocator, example) in [("glibc", "measure"), ("mimalloc", "measure_mimalloc")] {
        for line in say(ground, example, &["time", part, &rounds])?.lines() {
            text.push_str(&format!("{allocator}\t{line}\n"));
        }
    }
    Ok(text)
}

fn measure_memory(ground: &Ground) -> Result<String, Failure> {
    let mut text = String::new();
    for line in say(ground, "measure_memory", &[])?.lines() {
        text.push_str(&format!("allocated\t{line}\n"));
    }
    for store in STORES {
        let glibc = say(ground, "measure", &["peak", store])?;
        let mimalloc = say(ground, "measure_mimalloc", &["peak", store])?;
        text.push_str(&format!("peak\t{store}\t{}\t{}\n", glibc.trim(), mimalloc.trim()));
    }
    let nothing = instructions(ground, "nothing")?;
    for (what, shown) in COUNTED {
        // Only the lookup is so short that the surrounding loop is significant.
        let alone = if what == "look-up" { nothing } else { 0.0 };
        let count = instructions(ground, what)? - alone;
        text.push_str(&format!("instructions\t{shown}\t{count:.0}\n"));
    }
    Ok(text)
}

/// Returns the instructions of one `what`, from ten thousand additional ones, counted by callgrind.
fn instructions(ground: &Ground, what: &str) -> Result<f64, Failure> {
    callgrind::of_one([10_000, 20_000], |count| {
        let mut command = Command::new(ground.example("measure"));
        command.args(["count", what, &count.to_string()]);
        command
    })
}

fn line(words: &[&str]) -> Result<Line, Failure> {
    let [task, subject, threads, low, median, high, slow] = *words else {
        return Err(Failure::new(format!("no measurement: {}", words.join(" "))));
    };
    let ns = [low, median, high, slow].map(str::to_owned);
    let [task, subject, threads] = [task, subject, threads].map(str::to_owned);
    Ok(Line { task, subject, threads, ns })
}

fn page(parts: &str) -> Result<String, Failure> {
    let (mut glibc, mut mimalloc) = (Vec::new(), Vec::new());
    let (mut allocated, mut counted) = (Vec::new(), Vec::new());
    let (mut runs, mut peak) = (String::new(), String::new());
    let owned = |rest: &[&str]| rest.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    for said in parts.lines() {
        let words: Vec<&str> = said.split('\t').collect();
        match *words {
            ["glibc", ref rest @ ..] => glibc.push(line(rest)?),
            ["mimalloc", ref rest @ ..] => mimalloc.push(line(rest)?),
            ["part", part, rounds, load] => {
                runs.push_str(&format!("{part} {rounds} rounds at load {load}; "));
            }
            ["allocated", ref rest @ ..] => allocated.push(owned(rest)),
            ["peak", ref rest @ ..] => peak.push_str(&format!("| {} |\n", rest.join(" | "))),
            ["instructions", ref rest @ ..] => counted.push(owned(rest)),
            _ => return Err(Failure::new(format!("no measurement: {said}"))),
        }
    }
    let tables = TASKS.map(|begin| table(begin, &glibc, &mimalloc));
    let measured = Measured { lines: &glibc, allocated: &allocated, counted: &counted };
    let rows = |rows: &[Vec<String>]| {
        rows.iter().map(|row| format!("| {} |\n", row.join(" | "))).collect::<String>()
    };
    Ok(TEXT.fill(
        "page",
        &[
            ("runs", &runs.trim_end_matches("; ")),
            ("T4", &tables[0]),
            ("T1", &tables[1]),
            ("T2", &tables[2]),
            ("T3", &tables[3]),
            ("look_up", &tables[4]),
            ("layout", &tables[5]),
            ("allocated", &rows(&allocated)),
            ("peak", &peak),
            ("counted", &rows(&counted)),
            ("goals", &goals::table(&measured)),
        ],
    ))
}

/// Returns the measurements of the tasks whose names begin with this. Those with the same task and number of threads
/// are grouped, with the ratio to the first.
fn table(begin: &str, glibc: &[Line], mimalloc: &[Line]) -> String {
    let line = |line: &Line| {
        let Line { task, subject, threads, ns: _ } = line;
        let of = |all: &[Line]| {
            let mut group =
                all.iter().filter(|other| (&other.task, &other.threads) == (task, threads));
            let first = group.clone().next().and_then(Line::median);
            let same = group.find(|other| &other.subject == subject);
            let shown = same.map(|line| {
                let [low, median, high, slow] = &line.ns;
                let ratio = line.median().zip(first).map(|(ns, first)| ns / first);
                let ratio = ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}"));
                format!("{median} ({low}–{high}) | {ratio} | {slow}")
            });
            shown.unwrap_or_else(|| "– | – | –".to_owned())
        };
        let task = task.strip_prefix(begin).unwrap_or(task).trim_start_matches([' ', ',']);
        row(&[&task, threads, subject, &of(glibc), &of(mimalloc)])
    };
    glibc.iter().filter(|line| line.task.starts_with(begin)).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_rows_under_their_headings() {
        let said = "part\tsets\t15\t0.10\n\
                    glibc\tT1 kept\tFields\t1\t1.0\t2.0\t3.0\t9.0\n\
                    glibc\tT1 kept\tOther\t1\t1.0\t5.0\t7.0\t9.0\n\
                    mimalloc\tT1 kept\tFields\t1\t1.0\t1.5\t3.0\t-\n\
                    glibc\tT4 a row\tRows\t30\t4.0\t5.0\t6.0\t-\n\
                    allocated\tFields\t2\t0\t1020\n\
                    peak\tFields\t1100\t1200\n\
                    instructions\ta look-up\t2\n";
        let page = page(said).unwrap();
        for part in [
            "sets 15 rounds at load 0.10",
            "| kept | 1 | Fields | 2.0 (1.0–3.0) | 1.00 | 9.0 | 1.5 (1.0–3.0) | 1.00 | - |",
            "| kept | 1 | Other | 5.0 (1.0–7.0) | 2.50 | 9.0 | – | – | – |",
            "| a row | 30 | Rows | 5.0 (4.0–6.0) | 1.00 | - | – | – | – |",
            "| Fields | 2 | 0 | 1020 |",
            "| Fields | 1100 | 1200 |",
            "| a look-up | 2 |",
        ] {
            assert!(page.contains(part), "{part} in\n{page}");
        }
        assert!(
            page.find("| a row").unwrap() < page.find("| kept").unwrap(),
            "their own case is on top"
        );
        assert!(self::page("glibc\tT1\tFields\t1").is_err());
    }
}
