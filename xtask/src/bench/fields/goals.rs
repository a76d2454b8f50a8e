//! The results of the store of names and values, and its goals.

use crate::bench::goals::word;
use crate::bench::page::row;
use crate::shell::Failure;

/// All results: lines of words with tabs between them. The first word is the kind of the line.
pub(super) struct Measured<'a>(pub(super) &'a str);

/// The kinds of lines, with the numbers of their further words.
const KINDS: [(&str, usize); 6] = [
    // Part, rounds, load of the machine.
    ("part", 3),
    // A measurement under an allocator, see `Time`.
    ("glibc", 7),
    ("mimalloc", 7),
    // Store, allocations, reallocations, bytes.
    ("allocated", 4),
    // Store, KiB under glibc, KiB under mimalloc.
    ("peak", 3),
    // The operation and its number of instructions.
    ("instructions", 2),
];

/// One measurement under one allocator: nanoseconds per unit as lower quartile, median, upper quartile, and the 99th
/// percentile within the rounds.
#[derive(Clone, Debug)]
pub(super) struct Time<'a> {
    pub(super) task: &'a str,
    pub(super) subject: &'a str,
    pub(super) threads: &'a str,
    pub(super) ns: [&'a str; 4],
}

impl Time<'_> {
    pub(super) fn median(&self) -> Option<f64> {
        self.ns[1].parse().ok()
    }
}

impl<'a> Measured<'a> {
    /// Fails if a line is none of the kinds.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let is_known = |line: &&str| {
            let words: Vec<&str> = line.split('\t').collect();
            KINDS.contains(&(words[0], words.len() - 1))
        };
        match self.0.lines().find(|line| !is_known(line)) {
            None => Ok(()),
            Some(line) => Err(Failure::new(format!("no measurement: {line}"))),
        }
    }

    /// Returns the further words of all lines of a kind.
    pub(super) fn lines(&self, kind: &str) -> impl Iterator<Item = Vec<&'a str>> {
        let lines = self.0.lines().filter_map(move |line| line.strip_prefix(kind));
        lines.filter_map(|line| Some(line.strip_prefix('\t')?.split('\t').collect()))
    }

    pub(super) fn times(&self, allocator: &str) -> Vec<Time<'a>> {
        let times = self.lines(allocator).filter_map(|words| {
            let [task, subject, threads, low, median, high, slow] = words[..] else { return None };
            Some(Time { task, subject, threads, ns: [low, median, high, slow] })
        });
        times.collect()
    }

    fn ns(&self, task: &str, subject: &str, threads: &str) -> Option<f64> {
        let fits = |time: &Time<'_>| {
            time.task.starts_with(task) && time.subject == subject && time.threads == threads
        };
        self.times("glibc").into_iter().find(fits)?.median()
    }

    fn ratio(&self, task: &str, over: &str, under: &str) -> Option<f64> {
        Some(self.ns(task, over, "1")? / self.ns(task, under, "1")?)
    }

    /// Returns how much more two threads do than one.
    fn scaling(&self, task: &str) -> Option<f64> {
        Some(self.ns(task, "Fields", "1")? / self.ns(task, "Fields", "2")?)
    }

    /// Returns a number of the line of this kind whose first word is `what`.
    fn number(&self, kind: &str, what: &str, column: usize) -> Option<f64> {
        self.lines(kind).find(|words| words[0] == what)?.get(column)?.parse().ok()
    }

    fn allocated(&self, store: &str, column: usize) -> Option<f64> {
        self.number("allocated", store, column)
    }
}

const KEPT: &str = "T1 kept";
const STREAMED: &str = "T1 streamed";
const EDITED: &str = "T3 copy the set, 2 out, 2 in";
const CLASSIC: &str = "one allocation a string";
const REFORM: &str = "the reform's layout";
const MAP: &str = "http::HeaderMap";
const COPIES: &str = "the copies alone, nothing kept";
const PARSER: &str = "httparse alone, nothing stored";

/// A goal in words, the kind of its limit, the limit, and the measured value.
type Goal = (&'static str, char, f64, Option<f64>);

fn goals(of: &Measured<'_>) -> [Goal; 21] {
    let ns = |task| of.ns(task, "Fields", "1");
    let edited = |subject| of.ns(EDITED, subject, "1");
    let edit = edited("Fields, as slices").zip(edited("Fields, only the copy of the set"));
    let absent = of.number("instructions", "an absent known name looked up", 1);
    let pooled = of.allocated("Fields, adopted, from the pool", 1);
    let rows = |column| of.allocated("Rows, 1000 x 20 of 22 bytes", column);
    let parsed = of.ratio("T2 parse and store, 20", "Fields", PARSER);
    let by_text = ns("look-up of an absent name given as text whose");
    let unchanged = of.ns("T3 send unchanged", "Fields, as one slice", "1");
    let possible = of.ratio(STREAMED, REFORM, COPIES);
    [
        ("allocations of a set, cold", '≤', 2.0, of.allocated("Fields", 1)),
        ("the same, pooled", '≤', 0.0, pooled),
        ("blocks of 1000 × 20 rows", '≤', 3.0, rows(1)),
        ("bytes of 1000 × 20 rows", '≤', 550e3, rows(3)),
        ("20 members into a new set, ns", '≤', 350.0, ns(KEPT)),
        ("the same, times faster than a string each", '≥', 3.0, of.ratio(KEPT, CLASSIC, "Fields")),
        ("the same, times faster than HeaderMap", '≥', 2.0, of.ratio(KEPT, MAP, "Fields")),
        ("the same, times faster than the reform", '≥', 1.5, of.ratio(KEPT, REFORM, "Fields")),
        (
            "streamed, times faster than a string each",
            '≥',
            3.0,
            of.ratio(STREAMED, CLASSIC, "Fields"),
        ),
        ("streamed, times faster than HeaderMap", '≥', 2.0, of.ratio(STREAMED, MAP, "Fields")),
        ("streamed, times faster than the reform", '≥', 1.5, of.ratio(STREAMED, REFORM, "Fields")),
        ("the most that could be: the reform over the copies alone", '≥', 1.5, possible),
        ("streamed, two threads over one", '≥', 1.9, of.scaling(STREAMED)),
        ("new sets, two threads over one", '≥', 1.9, of.scaling(KEPT)),
        ("a head of 20 parsed and stored, over httparse alone", '≤', 1.4, parsed),
        ("an absent known name, instructions", '≤', 12.0, absent),
        ("an absent known name, ns", '≤', 2.0, ns("look-up of an absent known")),
        ("a present known name, ns", '≤', 10.0, ns("look-up of a present")),
        ("an absent name as text, its bit set, ns", '≤', 20.0, by_text),
        ("a head sent unchanged, ns", '≤', 60.0, unchanged),
        (
            "2 out and 2 in, ns without the copy of the set",
            '≤',
            120.0,
            edit.map(|(all, copy)| all - copy),
        ),
    ]
}

/// Returns the goals as a table in which the missed ones are marked. What was not measured is left out.
pub(super) fn table(of: &Measured<'_>) -> String {
    let line = |(what, sign, limit, measured): Goal| {
        let measured = measured?;
        let met = if sign == '≤' { measured <= limit } else { measured >= limit };
        let digits = if measured.fract() == 0.0 { 0 } else { 2 };
        let meant = format!("{sign} {limit}");
        Some(row(&[&what, &meant, &format_args!("{measured:.digits$}"), &word(met)]))
    };
    goals(of).into_iter().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_met_missed_or_not_measured() {
        let text = "glibc\tT1 kept: sets\tFields\t1\t0\t100.0\t0\t-\n\
                    glibc\tT1 kept: sets\tone allocation a string\t1\t0\t250.0\t0\t-\n\
                    allocated\tFields\t2\t0\t1020\n";
        let text = table(&Measured(text));
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
