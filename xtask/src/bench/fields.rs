//! Stores of names and values: the time of one unit of each task under two allocators, the allocations, and the
//! instructions of a lookup.
//!
//! The examples of `fields` measure and print one line per measurement; this module generates the page.

mod goals;

use super::callgrind;
use super::driver::{Options, Part, Spec, Whole};
use super::ground::Ground;
use super::page::{Template, row};
use crate::requirements;
use crate::shell::{self, Failure, Workspace, command};
use goals::{Measured, Time};
use std::fs;

static SPEC: Spec = Spec {
    name: "fields",
    // In the order in which they are measured. `memory` counts and does not time.
    parts: &["query", "sets", "heads", "lookups", "layouts", "memory"],
    text: Template(include_str!("../../pages/fields.md")),
    tools: requirements::COUNTING,
    rounds: 15,
    milliseconds: 0,
};

/// The tables of the page: the placeholder, and the beginning of the names of their tasks.
const TASKS: [(&str, &str); 6] = [
    ("T4", "T4"),
    ("T1", "T1"),
    ("T2", "T2"),
    ("T3", "T3"),
    ("look_up", "look-up"),
    ("layout", "layout"),
];

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

pub(super) fn run(workspace: &Workspace, options: &Options) -> Result<(), Failure> {
    let bench = SPEC.open(workspace, options, "")?;
    if !options.page {
        workspace.release(&["-p", "roadstead-fields", "--examples"])?;
    }
    let measure = |part: &str| {
        let text = measure(&bench.ground, part)?;
        Measured(&text).check()?;
        Ok(Part::values(text.into()))
    };
    bench.run(measure, |parts| {
        let text: String = parts.iter().filter_map(|part| part.values.as_str()).collect();
        Whole { values: values(&Measured(&text)), ..Whole::default() }
    })
}

/// Returns the output of an example.
fn say(ground: &Ground, example: &str, arguments: &[&str]) -> Result<String, Failure> {
    shell::output(command(ground.example(example), arguments))
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
    let run = |count: u32| command(ground.example("measure"), ["count", what, &count.to_string()]);
    callgrind::of_one([10_000, 20_000], run)
}

/// Returns the values of the page.
fn values(measured: &Measured<'_>) -> Vec<(&'static str, String)> {
    let rows = |kind| {
        let lines = measured.lines(kind).map(|words| format!("| {} |\n", words.join(" | ")));
        lines.collect::<String>()
    };
    let runs = measured.lines("part").map(|words| match words[..] {
        [part, rounds, load] => format!("{part} {rounds} rounds at load {load}"),
        _ => words.join(" "),
    });
    let (glibc, mimalloc) = (measured.times("glibc"), measured.times("mimalloc"));
    let tables = TASKS.map(|(place, begin)| (place, table(begin, &glibc, &mimalloc)));
    let mut values = vec![
        ("runs", runs.collect::<Vec<_>>().join("; ")),
        ("allocated", rows("allocated")),
        ("peak", rows("peak")),
        ("counted", rows("instructions")),
        ("goals", goals::table(measured)),
    ];
    values.extend(tables);
    values
}

/// Returns the measurements of the tasks whose names begin with this. Those with the same task and number of threads
/// are grouped, with the ratio to the first.
fn table(begin: &str, glibc: &[Time<'_>], mimalloc: &[Time<'_>]) -> String {
    let line = |time: &Time<'_>| {
        let Time { task, subject, threads, ns: _ } = time;
        let of = |all: &[Time<'_>]| {
            let mut group =
                all.iter().filter(|other| (&other.task, &other.threads) == (task, threads));
            let first = group.clone().next().and_then(Time::median);
            let same = group.find(|other| &other.subject == subject);
            let shown = same.map(|time| {
                let [low, median, high, slow] = &time.ns;
                let ratio = time.median().zip(first).map(|(ns, first)| ns / first);
                let ratio = ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}"));
                format!("{median} ({low}–{high}) | {ratio} | {slow}")
            });
            shown.unwrap_or_else(|| "– | – | –".to_owned())
        };
        let task = task.strip_prefix(begin).unwrap_or(task).trim_start_matches([' ', ',']);
        row(&[&task, threads, subject, &of(glibc), &of(mimalloc)])
    };
    glibc.iter().filter(|time| time.task.starts_with(begin)).map(line).collect()
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
        let values = values(&Measured(said));
        for (place, part) in [
            ("runs", "sets 15 rounds at load 0.10"),
            ("T1", "| kept | 1 | Fields | 2.0 (1.0–3.0) | 1.00 | 9.0 | 1.5 (1.0–3.0) | 1.00 | - |"),
            ("T1", "| kept | 1 | Other | 5.0 (1.0–7.0) | 2.50 | 9.0 | – | – | – |"),
            ("T4", "| a row | 30 | Rows | 5.0 (4.0–6.0) | 1.00 | - | – | – | – |"),
            ("allocated", "| Fields | 2 | 0 | 1020 |"),
            ("peak", "| Fields | 1100 | 1200 |"),
            ("counted", "| a look-up | 2 |"),
        ] {
            let (_, value) = values.iter().find(|(name, _)| *name == place).unwrap();
            assert!(value.contains(part), "{part} in\n{value}");
        }
        assert!(Measured(said).check().is_ok());
        assert!(Measured("glibc\tT1\tFields\t1").check().is_err());
    }
}
