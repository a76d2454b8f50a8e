//! The stores of names and values, side by side: what one unit of each task takes under two
//! allocators, what each asks of the allocator, and how many instructions a look-up is.
//!
//! The examples of `fields` measure and print one line a measurement; this makes a page of it.

use super::page::{self, Machine};
use crate::requirements;
use crate::shell::{self, Failure, Workspace};
use clap::Args;
use std::fs;
use std::process::Command;

#[derive(Args, Debug)]
pub(crate) struct FieldsArguments {
    /// Rounds of each measurement
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Show the page without writing it
    #[arg(long)]
    dry: bool,
}

/// The tasks of the page: how their lines begin, and the heading that they stand under. The case
/// that the original was measured with comes first.
const TASKS: [(&str, &str); 5] = [
    ("T4", "A query of 1000 rows × 12 columns, 100 times a thread: the original's own case"),
    ("T1", "1000 sets × 20 members"),
    ("T2", "A head: parsed, stored, asked, sent"),
    ("T3", "A head: two out, two in, sent again"),
    ("look-up", "Looking one name up among twenty"),
];

/// One measurement under one allocator: nanoseconds of a unit, lower to upper quartile.
#[derive(Clone, Debug)]
struct Line {
    task: String,
    subject: String,
    threads: String,
    ns: [String; 3],
}

pub(super) fn run(workspace: &Workspace, arguments: &FieldsArguments) -> Result<(), Failure> {
    requirements::provide(requirements::COUNTING)?;
    eprintln!("building as released");
    let build = ["build", "--release", "-p", "roadstead-fields", "--examples"];
    shell::run(workspace.cargo(build))?;
    let rounds = arguments.rounds.to_string();
    let measure = |example: &str, args: &[&str]| {
        let mut command = Command::new(workspace.built("release", &format!("examples/{example}")));
        command.args(args);
        shell::output(command)
    };
    let loads = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = loads.split(' ').next().unwrap_or_default();
    let memory = measure("measure_memory", &[])?;
    eprintln!("measuring under glibc");
    let glibc = lines(&measure("measure", &["time", &rounds])?)?;
    eprintln!("measuring under mimalloc");
    let mimalloc = lines(&measure("measure_mimalloc", &["time", &rounds])?)?;
    let instructions = instructions(workspace)?;
    let command = format!("cargo xtask bench fields --rounds {rounds}");
    let page = page(&command, &page::machine(), &memory, [&glibc, &mimalloc], instructions, load);
    println!("{page}");
    if !arguments.dry {
        fs::write(workspace.root.join("docs/bench-fields.md"), page)
            .map_err(|error| Failure::new(format!("docs/bench-fields.md: {error}")))?;
        println!("wrote docs/bench-fields.md");
    }
    Ok(())
}

fn lines(said: &str) -> Result<Vec<Line>, Failure> {
    let line = |line: &str| {
        let words: Vec<&str> = line.split('\t').collect();
        let [task, subject, threads, low, median, high] = words[..] else {
            return Err(Failure::new(format!("no measurement: {line}")));
        };
        let ns = [low, median, high].map(str::to_owned);
        let [task, subject, threads] = [task, subject, threads].map(str::to_owned);
        Ok(Line { task, subject, threads, ns })
    };
    said.lines().map(line).collect()
}

/// Instructions of one look-up of a known name that is absent, its loop included: what a million
/// more of them add to a run, counted by callgrind.
fn instructions(workspace: &Workspace) -> Result<f64, Failure> {
    let counted = |count: &str| {
        let mut command = Command::new("valgrind");
        command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
        command.arg(workspace.built("release", "examples/measure")).args(["lookups", count]);
        command.stderr(std::process::Stdio::piped());
        let output = command.output();
        let output = output.map_err(|error| Failure::new(format!("valgrind: {error}")))?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let count =
            said.split("Collected : ").nth(1).and_then(|rest| rest.split_whitespace().next());
        count
            .and_then(|count| count.parse::<f64>().ok())
            .ok_or_else(|| Failure::new(format!("callgrind counted nothing\n{said}")))
    };
    Ok((counted("2000000")? - counted("1000000")?) / 1e6)
}

fn page(
    command: &str,
    machine: &Machine,
    memory: &str,
    allocators: [&[Line]; 2],
    instructions: f64,
    load: &str,
) -> String {
    let Machine { cores, kernel, date, perl: _ } = machine;
    let mut text = format!(
        "# Names and values, measured\n\n\
         Made by `{command}` on {date}: {cores} cores, Linux {kernel}. Nanoseconds of one unit of wall time\n\
         (with several threads: over all units of all of them), medians (lower to upper quartile). Absolute\n\
         numbers are worth ±30 % on a shared machine; within a task the subjects ran in turn, round after\n\
         round, so their ratios count. {cores} cores cannot show all of the contention in malloc that the\n\
         authors of the original saw on 32.\n"
    );
    text.push_str(&format!(
        "Load of the machine over the minute before: {load}; above 1 the times are doubtful.\n"
    ));
    for (begin, heading) in TASKS {
        text.push_str(&format!("\n## {heading}\n\n"));
        text.push_str(
            "| Task | Threads | Store | ns, glibc | ns, mimalloc |\n|---|---|---|---|---|\n",
        );
        let [glibc, mimalloc] = allocators;
        for line in glibc.iter().filter(|line| line.task.starts_with(begin)) {
            let same = |other: &&Line| {
                (&other.task, &other.subject, &other.threads)
                    == (&line.task, &line.subject, &line.threads)
            };
            let other = mimalloc.iter().find(same).map(shown).unwrap_or_default();
            let Line { task, subject, threads, ns: _ } = line;
            let task = task.strip_prefix(begin).unwrap_or(task).trim();
            text.push_str(&format!(
                "| {task} | {threads} | {subject} | {} | {other} |\n",
                shown(line)
            ));
        }
    }
    text.push_str(&format!(
        "\nA look-up of an absent known name is {instructions:.1} instructions with its loop, counted by callgrind.\n"
    ));
    text.push_str("\n## What is asked of the allocator\n\n");
    text.push_str("| Store, 20 members unless said | Allocations | Reallocations | Bytes added |\n|---|---|---|---|\n");
    for line in memory.lines() {
        text.push_str(&format!("| {} |\n", line.replace('\t', " | ")));
    }
    text.push_str(METHOD);
    text
}

fn shown(line: &Line) -> String {
    let [low, median, high] = &line.ns;
    format!("{median} ({low}–{high})")
}

const METHOD: &str = "
## Method

The stores: `Fields` and `Rows` of this house; `http::HeaderMap`; a `Vec<(String, String)>`; one allocation for each
string, as the original had before its reform; and the layout after it, rebuilt: one buffer of strings ended by NUL, a
list of places that is walked when the buffer moves, lengths not kept. The last two only store: they do no more for a
look-up than keep the text, where `Fields` makes a tag of each name and `HeaderMap` a hash.

`T1` copies 20 real header names with values of 22 bytes into new sets, all of which stay alive, or into one set again
and again. `T2` reads a head that lies in one block: `Fields` indexes it there with its own reader, the others copy what
httparse found; beside them httparse alone, which stores nothing. The eight look-ups are three names that the head has or
may have and five that it has not; sending copies into a new buffer. `T3` copies a stored head, takes two fields out,
puts two in, and sends it. `T4` keeps all rows of a query until its end; the database itself is left out, so only what is
stored counts. Bytes added are those asked for; what an allocator rounds up is not in them.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_rows_under_their_headings() {
        let said = "T1 kept\tFields\t1\t1.0\t2.0\t3.0\nT4 a row\tRows\t30\t4.0\t5.0\t6.0";
        let all = lines(said).unwrap();
        let machine = Machine {
            cores: 2,
            kernel: "6.1.0".to_owned(),
            date: "2026-01-02".to_owned(),
            perl: String::new(),
        };
        let page = page("command", &machine, "Fields\t2\t0\t1020", [&all, &all], 9.5, "0.10");
        for part in [
            "| kept | 1 | Fields | 2.0 (1.0–3.0) | 2.0 (1.0–3.0) |",
            "| a row | 30 | Rows | 5.0 (4.0–6.0) |",
            "| Fields | 2 | 0 | 1020 |",
            "9.5 instructions",
        ] {
            assert!(page.contains(part), "{part} in\n{page}");
        }
        assert!(
            page.find("| a row").unwrap() < page.find("| kept").unwrap(),
            "their own case is on top"
        );
    }

    #[test]
    fn what_is_no_measurement_is_an_error() {
        assert!(lines("T1\tFields\t1").is_err());
    }
}
