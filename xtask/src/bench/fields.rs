//! The stores of names and values, side by side: what one unit of each task takes under two
//! allocators, what each asks of the allocator, and how many instructions a look-up is.
//!
//! The examples of `fields` measure and print one line a measurement; this makes a page of it.

mod goals;
mod line;

use super::callgrind::whole_run;
use super::page::{self, Machine};
use crate::requirements;
use crate::shell::{self, Failure, Workspace};
use clap::Args;
use goals::Measured;
use line::{Line, median};
use std::fs;
use std::path::Path;
use std::process::Command;

#[derive(Args, Debug)]
pub(crate) struct FieldsArguments {
    /// Rounds of each measurement
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Only this part; the page is made of it and what earlier runs left of the others
    #[arg(long, value_parser = PARTS)]
    only: Option<String>,
    /// Show the page without writing it
    #[arg(long)]
    dry: bool,
}

/// The parts, in the order in which they are measured. `memory` counts and does not time.
const PARTS: [&str; 6] = ["query", "sets", "heads", "lookups", "layouts", "memory"];

/// The tables of the page: how the tasks in them begin, and the heading. The case that the original
/// was measured with comes first.
const TASKS: [(&str, &str); 6] = [
    ("T4", "A query of 1000 rows × 12 columns: the original's own case"),
    ("T1", "1000 sets × 20 members"),
    ("T2", "A head: parsed, stored, asked, sent"),
    ("T3", "A head: two out, two in, sent again"),
    ("look-up", "Looking one name up among twenty"),
    ("layout", "The layouts that were weighed"),
];

/// The stores whose memory is measured as the system sees it.
const STORES: [&str; 6] = [
    "Fields",
    "http::HeaderMap",
    "BTreeMap<String, String>",
    "Vec<(String, String)>",
    "one allocation a string",
    "the reform's layout",
];

/// What is counted by callgrind, and how it is called on the page.
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
    eprintln!("building as released");
    let build = ["build", "--release", "-p", "roadstead-fields", "--examples"];
    shell::run(workspace.cargo(build))?;
    let folder = workspace.target.join("bench/fields");
    let failed =
        |path: &Path, error: &std::io::Error| Failure::new(format!("{}: {error}", path.display()));
    fs::create_dir_all(&folder).map_err(|error| failed(&folder, &error))?;
    for part in PARTS {
        if arguments.only.as_deref().is_none_or(|only| only == part) {
            eprintln!("measuring {part}");
            let said = measure(workspace, part, arguments.rounds)?;
            let path = folder.join(part);
            fs::write(&path, said).map_err(|error| failed(&path, &error))?;
        }
    }
    let stored = |part: &str| fs::read_to_string(folder.join(part)).ok();
    let missing: Vec<_> = PARTS.into_iter().filter(|part| stored(part).is_none()).collect();
    if !missing.is_empty() {
        println!("no page yet; not measured are: {}", missing.join(", "));
        return Ok(());
    }
    let parts: String = PARTS.into_iter().filter_map(stored).collect();
    let page = page(&page::machine(), &parts)?;
    println!("{page}");
    if !arguments.dry {
        let path = workspace.root.join("docs/bench-fields.md");
        fs::write(&path, page).map_err(|error| failed(&path, &error))?;
        println!("wrote docs/bench-fields.md");
    }
    Ok(())
}

/// Measures one part and says what came of it: lines that begin with what they are.
fn measure(workspace: &Workspace, part: &str, rounds: u32) -> Result<String, Failure> {
    let say = |example: &str, arguments: &[&str]| {
        let mut command = Command::new(workspace.built("release", &format!("examples/{example}")));
        command.args(arguments);
        shell::output(command)
    };
    if part == "memory" {
        return measure_memory(workspace, say);
    }
    let loads = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = loads.split(' ').next().unwrap_or_default();
    let mut text = format!("part\t{part}\t{rounds}\t{load}\n");
    for (allocator, example) in [("glibc", "measure"), ("mimalloc", "measure_mimalloc")] {
        for line in say(example, &["time", part, &rounds.to_string()])?.lines() {
            text.push_str(&format!("{allocator}\t{line}\n"));
        }
    }
    Ok(text)
}

fn measure_memory(
    workspace: &Workspace,
    say: impl Fn(&str, &[&str]) -> Result<String, Failure>,
) -> Result<String, Failure> {
    let mut text = String::new();
    for line in say("measure_memory", &[])?.lines() {
        text.push_str(&format!("allocated\t{line}\n"));
    }
    for store in STORES {
        let glibc = say("measure", &["peak", store])?;
        let mimalloc = say("measure_mimalloc", &["peak", store])?;
        text.push_str(&format!("peak\t{store}\t{}\t{}\n", glibc.trim(), mimalloc.trim()));
    }
    let nothing = instructions(workspace, "nothing")?;
    for (what, shown) in COUNTED {
        // Only the look-up is so short that the loop around it counts.
        let alone = if what == "look-up" { nothing } else { 0.0 };
        let count = instructions(workspace, what)? - alone;
        text.push_str(&format!("instructions\t{shown}\t{count:.0}\n"));
    }
    Ok(text)
}

/// Instructions of one `what`: what ten thousand more of them add to a run, counted by callgrind.
fn instructions(workspace: &Workspace, what: &str) -> Result<f64, Failure> {
    let counted = |count: &str| {
        let mut command = Command::new(workspace.built("release", "examples/measure"));
        command.args(["count", what, count]);
        whole_run(command)
    };
    Ok((counted("20000")? - counted("10000")?) / 1e4)
}

fn line(words: &[&str]) -> Result<Line, Failure> {
    let [task, subject, threads, low, median, high, slow] = *words else {
        return Err(Failure::new(format!("no measurement: {}", words.join(" "))));
    };
    let ns = [low, median, high, slow].map(str::to_owned);
    let [task, subject, threads] = [task, subject, threads].map(str::to_owned);
    Ok(Line { task, subject, threads, ns })
}

fn page(machine: &Machine, parts: &str) -> Result<String, Failure> {
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
    let Machine { cores, kernel, date, perl: _ } = machine;
    let mut text = format!(
        "# Names and values, measured\n\n\
         Made by `cargo xtask bench fields` on {date}: {cores} cores, Linux {kernel}. Nanoseconds of one unit of wall\n\
         time (with several threads: over all units of all of them), medians (lower to upper quartile); p99 is\n\
         that of parts of ten sets or a hundred units within the rounds, where one thread works. Absolute numbers\n\
         depend on the machine and can differ by a factor of two between runs; compare the ratios: within a\n\
         task all subjects ran in every round, in random order. {cores} cores cannot show all of the contention in malloc that the authors of the\n\
         original saw on 32.\n\n\
         Parts: {}; the load is that of the minute before.\n",
        runs.trim_end_matches("; ")
    );
    for (begin, heading) in TASKS {
        text.push_str(&format!("\n## {heading}\n\n"));
        text.push_str(&table(begin, &glibc, &mimalloc));
    }
    let measured = Measured { lines: &glibc, allocated: &allocated, counted: &counted };
    let goals = goals::table(&measured);
    let rows = |rows: &[Vec<String>]| {
        rows.iter().map(|row| format!("| {} |\n", row.join(" | "))).collect::<String>()
    };
    let (allocated, counted) = (rows(&allocated), rows(&counted));
    text.push_str(&format!(
        "\n## Memory\n\nWhat is asked of the allocator:\n\n\
         | Store, 20 members unless said | Allocations | Reallocations | Bytes added |\n|---|---|---|---|\n{allocated}\n\
         By how much the process grows when 1000 sets of 20 members are alive, with what the allocator adds:\n\n\
         | Store | KiB, glibc | KiB, mimalloc |\n|---|---|---|\n{peak}\n\
         ## Instructions\n\nCounted by callgrind, glibc:\n\n| What | Instructions |\n|---|---|\n{counted}\n\
         ## Goals\n\nUnder glibc, one thread unless said:\n\n{goals}"
    ));
    text.push_str(METHOD);
    Ok(text)
}

/// The measurements of the tasks that begin so, those of a task and its number of threads together,
/// with the ratio to the first.
fn table(begin: &str, glibc: &[Line], mimalloc: &[Line]) -> String {
    let mut text = String::from(
        "| Task | Threads | Store | ns, glibc | × the first | p99 | ns, mimalloc | × the first | p99 |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    for line in glibc.iter().filter(|line| line.task.starts_with(begin)) {
        let Line { task, subject, threads, ns: _ } = line;
        let of = |all: &[Line]| {
            let mut group =
                all.iter().filter(|other| (&other.task, &other.threads) == (task, threads));
            let first = group.clone().next().and_then(median);
            let same = group.find(|other| &other.subject == subject);
            let shown = same.map(|line| {
                let [low, median, high, slow] = &line.ns;
                format!("{median} ({low}–{high}) | {} | {slow}", ratio(line, first))
            });
            shown.unwrap_or_else(|| "– | – | –".to_owned())
        };
        let task = task.strip_prefix(begin).unwrap_or(task).trim_start_matches([' ', ',']);
        text.push_str(&format!(
            "| {task} | {threads} | {subject} | {} | {} |\n",
            of(glibc),
            of(mimalloc)
        ));
    }
    text
}

fn ratio(line: &Line, first: Option<f64>) -> String {
    let ratio = median(line).zip(first).map(|(ns, first)| ns / first);
    ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}"))
}

const METHOD: &str = "
## What the missed ones mean

- *The reform.* The layout is rebuilt in the two dozen lines that store and do nothing else: no tag, no limit, no
  look-up. The row below it is what no store can pass, since all have to copy the text. Making the tags of 20 names takes
  what stands in the table of heads; without them a set would be stored as fast as the reform's, and an absent name would
  cost a walk over all of them (F among the layouts).
- *A string each.* With one thread glibc's quick lists make an allocation cheap; with two and more it is dearer, and the
  ratio above the goal: see the table of sets.
- *New sets by two threads.* glibc returns the memory of a thousand freed sets to the system and takes it again page by
  page, under one lock of the process. mimalloc keeps it, and there two threads get done what two should. A set that is
  used again needs no allocator and scales with both.

## Method

The stores: `Fields` and `Rows` of this house; `http::HeaderMap`, with values copied, and with values that are parts of
the block that was received, as hyper has them; `BTreeMap<String, String>`; `Vec<(String, String)>`; one allocation for
each string, as the original had before its reform; and the layout after it, rebuilt: one buffer of strings ended by NUL,
a list of places that is walked when the buffer moves, lengths not kept. The last two only store: they do no more for a
look-up than keep the text, where `Fields` makes a tag of each name and `HeaderMap` a hash.

`T1` copies 20 real header names with values of 22 bytes into new sets, all of which stay alive, or into one set again
and again. `T2` reads a head that lies in one block: `Fields` indexes it there with its own reader, the others copy what
httparse found; beside them httparse alone, which stores nothing. The eight look-ups are three names that the head has or
may have and five that it has not; sending copies into a new buffer. `T3` copies a stored head, takes two fields out,
puts two in, and sends it. `T4` keeps all rows of a query until its end, 20 queries on each thread in each round; once with
SQLite before it, a database in memory for each thread so that they share no lock, and once without. Bytes added are those
asked for; what an allocator rounds up is not in them.

The layouts are each in the fewest lines that store and find, without limits, marks or a filter, so they are compared with
each other and not with `Fields`. C hashes names itself, so its look-ups are also those of another hash.
";

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
        let machine = Machine {
            cores: 2,
            kernel: "6.1.0".to_owned(),
            date: "2026-01-02".to_owned(),
            perl: String::new(),
        };
        let page = page(&machine, said).unwrap();
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
        assert!(self::page(&machine, "glibc\tT1\tFields\t1").is_err());
    }
}
