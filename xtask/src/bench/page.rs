//! How results are shown: a table for the terminal and a page for the documentation. Pure, but for
//! the summary of the machine.

use super::process;
use super::statistics::Quartiles;
use crate::shell;
use std::fs;
use std::process::Command;

/// One measurement, both sides.
#[derive(Debug)]
pub(super) struct Row {
    /// The work.
    pub(super) name: String,
    pub(super) unit: &'static str,
    pub(super) peer: &'static str,
    pub(super) ours: Quartiles,
    pub(super) theirs: Quartiles,
    /// How many times better ours is, pair by pair.
    pub(super) ratio: Quartiles,
    pub(super) ratio_means: &'static str,
    /// What the ratio's median must reach.
    pub(super) goal: Option<f64>,
    /// System calls a line, ours and theirs.
    pub(super) calls: Option<[String; 2]>,
}

impl Row {
    /// The goal that this misses, in words. No number misses every goal.
    pub(super) fn missed(&self) -> Option<String> {
        let goal = self.goal?;
        let median = self.ratio.median;
        let reached = median >= goal;
        (!reached).then(|| {
            let Self { name, ratio_means, .. } = self;
            format!("goal missed: {name}: {median:.1} {ratio_means}, at least {goal:.0} wanted")
        })
    }

    fn goal_in_words(&self) -> String {
        match (self.goal, self.missed()) {
            (None, _) => "–".to_owned(),
            (Some(goal), None) => format!("≥ {goal:.0}, reached"),
            (Some(goal), Some(_)) => format!("≥ {goal:.0}, **missed**"),
        }
    }
}

/// What it was measured on. No names: they would say nothing to others.
#[derive(Debug)]
pub(super) struct Machine {
    pub(super) cores: usize,
    pub(super) kernel: String,
    pub(super) date: String,
    pub(super) perl: String,
}

pub(super) fn machine() -> Machine {
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let version = "printf '%vd, IO::Multiplex %s', $^V, IO::Multiplex->VERSION";
    Machine {
        cores: process::processors(),
        kernel: kernel.split('-').next().unwrap_or_default().trim().to_owned(),
        date: said("date", &["-u", "+%F"]),
        perl: said("perl", &["-MIO::Multiplex", "-e", version]),
    }
}

fn said(program: &str, args: &[&str]) -> String {
    let mut command = Command::new(program);
    command.args(args);
    shell::output(command).map_or_else(|_| "unknown".to_owned(), |said| said.trim().to_owned())
}

/// The table for the terminal.
pub(super) fn table(rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows {
        let Row { name, unit, peer, ratio_means, .. } = row;
        let [ours, theirs] = [row.ours, row.theirs].map(shown);
        let ratio = shown(row.ratio);
        let goal = row.goal_in_words().replace("**", "");
        text.push_str(&format!("\n{name}, {unit}\n"));
        text.push_str(&format!("  roadstead          {ours}\n"));
        text.push_str(&format!("  {peer:<18} {theirs}\n"));
        text.push_str(&format!("  {ratio_means:<18} {ratio}    goal {goal}\n"));
        if let Some([ours, theirs]) = &row.calls {
            text.push_str(&format!("  system calls a line: {ours}\n"));
            text.push_str(&format!("  system calls a line, {peer}: {theirs}\n"));
        }
    }
    text
}

/// The table of a page.
pub(super) fn rows(rows: &[Row]) -> String {
    let mut text =
        "| Work | Measure | Roadstead | Peer | Better by | Goal |\n|---|---|---|---|---|---|\n"
            .to_owned();
    for row in rows {
        let Row { name, unit, peer, ratio_means, .. } = row;
        let [ours, theirs, ratio] = [row.ours, row.theirs, row.ratio].map(shown);
        let goal = row.goal_in_words();
        text.push_str(&format!(
            "| {name} | {unit} | {ours} | {peer}: {theirs} | {ratio} {ratio_means} | {goal} |\n"
        ));
    }
    text
}

/// The page for the documentation.
pub(super) fn page(command: &str, machine: &Machine, rows: &[Row]) -> String {
    let Machine { cores, kernel, date, perl } = machine;
    let mut text = format!(
        "# The main job, measured\n\n\
         Made by `{command}` on {date}: {cores} cores, Linux {kernel}, loopback, Perl {perl}.\n\
         Figures are medians (lower to upper quartile). Absolute figures depend on the machine and can differ by a\n\
         factor of two between runs; compare the ratios, which are formed between runs a few seconds apart.\n\n"
    );
    text.push_str(&self::rows(rows));
    let counted: Vec<_> = rows.iter().filter_map(|row| Some((row, row.calls.as_ref()?))).collect();
    if !counted.is_empty() {
        text.push_str("\nSystem calls a line, counted by strace in one further run each:\n\n");
        text.push_str("| Work | Roadstead | Peer |\n|---|---|---|\n");
        for (row, [ours, theirs]) in counted {
            text.push_str(&format!("| {} | {ours} | {}: {theirs} |\n", row.name, row.peer));
        }
    }
    text.push_str(METHOD);
    text
}

const METHOD: &str = "
## Method

Rounds are pairs: both sides run right after each other, each started anew, and which goes first alternates.

*Lines to programs.* `roadstead run --workers 20..20 -- roadstead worker --echo` against `xtask/peers/io_multiplex.pl 20
roadstead worker --echo`: the same twenty programs on pipes, one line in flight each, answers in order, no database. The
load is `roadstead load`, paced open-loop from an absolute schedule. CPU time is the run time of all threads in
nanoseconds, of the daemon with its keeper and of the Perl process; the programs count for neither. It is taken over a
window between the last accept and the first close. The lines in the window are counted in the bytes that the programs
wrote in it. A run in which a line is refused, lost or misdirected does not count; it ends the measurement.

*Rows.* `roadstead serve` with a listener straight into a SQLite pool (`sync = \"full\"`, `record = \"json\"`,
`ack = \"ok {id}\"`), clients saturating it, against one bare client that commits each row by itself
(`cargo run --release -p roadstead-database --example row_by_row`): the same table, the same disk, a new file each time.
Each acknowledgement is compared with the line that it answers, and the rows are counted by `sqlite3` after each run. The
load runs on the same machine and takes its share of the cores.
";

fn shown(quartiles: Quartiles) -> String {
    let Quartiles { low, median, high } = quartiles;
    let number = |value: f64| match value {
        large if large >= 999.5 => thousands(large),
        middle if middle >= 100.0 => format!("{middle:.0}"),
        small => format!("{small:.1}"),
    };
    format!("{} ({}–{})", number(median), number(low), number(high))
}

/// `12345.6` as `12,346`.
fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(value: f64) -> Quartiles {
        Quartiles { low: value, median: value, high: value }
    }

    fn row(ratio: f64, goal: Option<f64>) -> Row {
        Row {
            name: "work".to_owned(),
            unit: "CPU µs a line",
            peer: "a peer",
            ours: all(26.0),
            theirs: all(1004.4),
            ratio: all(ratio),
            ratio_means: "times less CPU",
            goal,
            calls: Some(["2.0 (read 1.0)".to_owned(), "9.0 (select 5.0)".to_owned()]),
        }
    }

    #[test]
    fn a_goal_is_missed_reached_or_absent() {
        assert!(row(19.9, Some(20.0)).missed().is_some());
        assert!(row(f64::NAN, Some(20.0)).missed().is_some());
        assert_eq!(row(20.0, Some(20.0)).missed(), None);
        assert_eq!(row(1.0, None).missed(), None);
    }

    #[test]
    fn the_page_has_every_number_and_the_command() {
        let machine = Machine {
            cores: 2,
            kernel: "6.1.0".to_owned(),
            date: "2026-01-02".to_owned(),
            perl: "5.36".to_owned(),
        };
        let page = page("cargo xtask bench main", &machine, &[row(19.0, Some(20.0))]);
        for part in ["`cargo xtask bench main`", "2 cores", "1,004 (1,004–1,004)", "**missed**"] {
            assert!(page.contains(part), "{part} in\n{page}");
        }
        assert!(page.contains("| work | 2.0 (read 1.0) | a peer: 9.0 (select 5.0) |"), "{page}");
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!(shown(all(1_234_567.0)), "1,234,567 (1,234,567–1,234,567)");
        assert_eq!(shown(all(999.6)), "1,000 (1,000–1,000)");
        assert_eq!(shown(all(26.04)), "26.0 (26.0–26.0)");
    }
}
