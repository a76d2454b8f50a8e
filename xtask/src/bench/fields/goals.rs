//! The goals of the store of names and values, and the results.

use crate::bench::goals::word;
use crate::bench::template::row;

/// One measurement under one allocator: nanoseconds per unit as lower quartile to upper quartile, and the 99th
/// percentile within the rounds.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) task: String,
    pub(super) subject: String,
    pub(super) threads: String,
    pub(super) ns: [String; 4],
}

impl Line {
    pub(super) fn median(&self) -> Option<f64> {
        self.ns[1].parse().ok()
    }
}

/// A goal: the subject, the goal in words, the measured value, and whether it was met.
#[derive(Debug, PartialEq)]
struct Goal {
    what: &'static str,
    meant: String,
    measured: f64,
    met: bool,
}

/// The values for all goals, measured under glibc.
pub(super) struct Measured<'a> {
    pub(super) lines: &'a [Line],
    /// Store, allocations, reallocations, bytes.
    pub(super) allocated: &'a [Vec<String>],
    /// The operation and its number of instructions.
    pub(super) counted: &'a [Vec<String>],
}

impl Measured<'_> {
    fn ns(&self, task: &str, subject: &str, threads: &str) -> Option<f64> {
        let fits = |line: &&Line| {
            line.task.starts_with(task) && line.subject == subject && line.threads == threads
        };
        self.lines.iter().find(fits).and_then(Line::median)
    }

    fn ratio(&self, task: &str, over: &str, under: &str) -> Option<f64> {
        Some(self.ns(task, over, "1")? / self.ns(task, under, "1")?)
    }

    fn difference(&self, task: &str, whole: &str, part: &str) -> Option<f64> {
        Some(self.ns(task, whole, "1")? - self.ns(task, part, "1")?)
    }

    /// Returns how much more two threads do than one.
    fn scaling(&self, task: &str) -> Option<f64> {
        Some(self.ns(task, "Fields", "1")? / self.ns(task, "Fields", "2")?)
    }

    fn allocated(&self, store: &str, column: usize) -> Option<f64> {
        number(self.allocated, store, column)
    }
}

fn number(rows: &[Vec<String>], what: &str, column: usize) -> Option<f64> {
    rows.iter().find(|row| row[0] == what)?.get(column)?.parse().ok()
}

fn at_most(what: &'static str, measured: Option<f64>, limit: f64) -> Option<Goal> {
    let measured = measured?;
    Some(Goal { what, meant: format!("≤ {limit}"), measured, met: measured <= limit })
}

fn at_least(what: &'static str, measured: Option<f64>, limit: f64) -> Option<Goal> {
    let measured = measured?;
    Some(Goal { what, meant: format!("≥ {limit}"), measured, met: measured >= limit })
}

fn goals(of: &Measured<'_>) -> Vec<Goal> {
    const KEPT: &str = "T1 kept";
    const STREAMED: &str = "T1 streamed";
    const PARSED: &str = "T2 parse and store, 20";
    let (classic, reform, map) =
        ("one allocation a string", "the reform's layout", "http::HeaderMap");
    let absent = number(of.counted, "an absent known name looked up", 1);
    let edited = "T3 copy the set, 2 out, 2 in";
    let all = [
        at_most("allocations of a set, cold", of.allocated("Fields", 1), 2.0),
        at_most("the same, pooled", of.allocated("Fields, adopted, from the pool", 1), 0.0),
        at_most("blocks of 1000 × 20 rows", of.allocated("Rows, 1000 x 20 of 22 bytes", 1), 3.0),
        at_most("bytes of 1000 × 20 rows", of.allocated("Rows, 1000 x 20 of 22 bytes", 3), 550e3),
        at_most("20 members into a new set, ns", of.ns(KEPT, "Fields", "1"), 350.0),
        at_least(
            "the same, times faster than a string each",
            of.ratio(KEPT, classic, "Fields"),
            3.0,
        ),
        at_least("the same, times faster than HeaderMap", of.ratio(KEPT, map, "Fields"), 2.0),
        at_least("the same, times faster than the reform", of.ratio(KEPT, reform, "Fields"), 1.5),
        at_least(
            "streamed, times faster than a string each",
            of.ratio(STREAMED, classic, "Fields"),
            3.0,
        ),
        at_least("streamed, times faster than HeaderMap", of.ratio(STREAMED, map, "Fields"), 2.0),
        at_least(
            "streamed, times faster than the reform",
            of.ratio(STREAMED, reform, "Fields"),
            1.5,
        ),
        at_least(
            "the most that could be: the reform over the copies alone",
            of.ratio(STREAMED, reform, "the copies alone, nothing kept"),
            1.5,
        ),
        at_least("streamed, two threads over one", of.scaling(STREAMED), 1.9),
        at_least("new sets, two threads over one", of.scaling(KEPT), 1.9),
        at_most(
            "a head of 20 parsed and stored, over httparse alone",
            of.ratio(PARSED, "Fields", "httparse alone, nothing stored"),
            1.4,
        ),
        at_most("an absent known name, instructions", absent, 12.0),
        at_most(
            "an absent known name, ns",
            of.ns("look-up of an absent known", "Fields", "1"),
            2.0,
        ),
        at_most("a present known name, ns", of.ns("look-up of a present", "Fields", "1"), 10.0),
        at_most(
            "an absent name as text, its bit set, ns",
            of.ns("look-up of an absent name given as text whose", "Fields", "1"),
            20.0,
        ),
        at_most(
            "a head sent unchanged, ns",
            of.ns("T3 send unchanged", "Fields, as one slice", "1"),
            60.0,
        ),
        at_most(
            "2 out and 2 in, ns without the copy of the set",
            of.difference(edited, "Fields, as slices", "Fields, only the copy of the set"),
            120.0,
        ),
    ];
    all.into_iter().flatten().collect()
}

/// Returns the goals as a table in which the missed ones are marked.
pub(super) fn table(of: &Measured<'_>) -> String {
    let line = |Goal { what, meant, measured, met }: Goal| {
        let digits = if measured.fract() == 0.0 { 0 } else { 2 };
        row(&[&what, &meant, &format_args!("{measured:.digits$}"), &word(met)])
    };
    goals(of).into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_met_missed_or_not_measured() {
        let line = |subject: &str, ns: &str| Line {
            task: "T1 kept: sets".to_owned(),
            subject: subject.to_owned(),
            threads: "1".to_owned(),
            ns: ["0", ns, "0", "-"].map(str::to_owned),
        };
        let lines = [line("Fields", "100.0"), line("one allocation a string", "250.0")];
        let allocated = [["Fields", "2", "0", "1020"].map(str::to_owned).to_vec()];
        let text = table(&Measured { lines: &lines, allocated: &allocated, counted: &[] });
        for row in [
            "| allocations of a set, cold | ≤ 2 | 2 | met |",
            "| 20 members into a new set, ns | ≤ 350 | 100 | met |",
            "| the same, times faster than a string each | ≥ 3 | 2.50 | **missed** |",
        ] {
            assert!(text.contains(row), "{row} in\n{text}");
        }
        assert_eq!(text.lines().count(), 3, "what was not measured is left out");
    }
}
