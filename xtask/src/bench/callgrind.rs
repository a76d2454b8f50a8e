//! Counts the user-space instructions of a program with callgrind.

use crate::shell::{self, Failure};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use tempfile::NamedTempFile;

/// Returns the instructions per operation, from the difference of two runs with `few` and `many` operations.
pub(super) fn of_one(
    [few, many]: [u32; 2],
    command: impl Fn(u32) -> Command,
) -> Result<f64, Failure> {
    let out = NamedTempFile::new().map_err(Failure::at("a temporary file"))?;
    let run = |count| profile(&command(count), out.path()).map(|profile| profile.instructions());
    Ok((run(many)? - run(few)?) / f64::from(many - few))
}

/// Runs a program that ends by itself. Returns its costs, which callgrind writes into the file `out`.
pub(super) fn profile(command: &Command, out: &Path) -> Result<Profile, Failure> {
    let file = format!("--callgrind-out-file={}", out.display());
    let mut counting = shell::command("valgrind", ["--tool=callgrind", &file]);
    counting.arg(command.get_program()).args(command.get_args());
    shell::run(counting)?;
    Profile::read(out)
}

/// The costs of one run, read from callgrind's output file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Profile {
    /// Instructions by source file.
    pub(super) files: BTreeMap<String, f64>,
    /// Calls by called function.
    pub(super) calls: BTreeMap<String, f64>,
}

const ALLOCATORS: [&str; 6] =
    ["malloc", "calloc", "realloc", "posix_memalign", "aligned_alloc", "memalign"];

impl Profile {
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        Ok(Self::of(&shell::read(path)?))
    }

    pub(super) fn instructions(&self) -> f64 {
        self.files.values().sum()
    }

    /// Returns the number of calls of allocators. `malloc'2` is a malloc that was called from within another.
    pub(super) fn allocations(&self) -> f64 {
        let is_allocator = |name: &str| ALLOCATORS.contains(&name.split('\'').next().unwrap_or(""));
        self.calls.iter().filter(|(name, _)| is_allocator(name)).map(|(_, calls)| calls).sum()
    }

    /// Returns the cost per operation, where `other` is a run with `more` additional operations.
    pub(super) fn of_one_more(&self, other: Self, more: f64) -> Self {
        let each = |few: &BTreeMap<String, f64>, many: BTreeMap<String, f64>| {
            let less = |name: &String| few.get(name).copied().unwrap_or_default();
            let one = |(name, count)| (count - less(&name)) / more;
            many.into_iter().map(|it| (it.0.clone(), one(it))).collect()
        };
        Self { files: each(&self.files, other.files), calls: each(&self.calls, other.calls) }
    }

    /// Parses callgrind's format: positions, costs, and calls, whose costs are counted elsewhere. A name is written
    /// only at its first occurrence, and its number at every occurrence: `cfn=(12) malloc`, later `cfn=(12)`.
    fn of(text: &str) -> Self {
        let (mut files, mut functions) = (BTreeMap::new(), BTreeMap::new());
        let (mut file, mut called, mut is_call) = ("", "", false);
        let mut profile = Self::default();
        for line in text.lines() {
            if let Some((key, value)) = line.split_once('=') {
                match key {
                    "fl" | "fi" | "fe" => file = looked_up(&mut files, value),
                    "cfi" | "cfl" => _ = looked_up(&mut files, value),
                    "fn" => _ = looked_up(&mut functions, value),
                    "cfn" => called = looked_up(&mut functions, value),
                    "calls" => {
                        is_call = true;
                        let calls = value.split(' ').next().and_then(|count| count.parse().ok());
                        add(&mut profile.calls, called, calls.unwrap_or(0.0));
                    }
                    _ => {}
                }
                continue;
            }
            let cost = line.split_once(' ').and_then(|(position, cost)| {
                let is_position =
                    position.starts_with(|c: char| c.is_ascii_digit() || "+-*".contains(c));
                cost.trim().parse::<f64>().ok().filter(|_| is_position)
            });
            if let Some(cost) = cost.filter(|_| !std::mem::take(&mut is_call)) {
                add(&mut profile.files, file, cost);
            }
        }
        profile
    }
}

fn add(costs: &mut BTreeMap<String, f64>, name: &str, cost: f64) {
    match costs.get_mut(name) {
        Some(sum) => *sum += cost,
        None => _ = costs.insert(name.to_owned(), cost),
    }
}

/// Returns the name of a number. `named` stores it.
fn looked_up<'t>(named: &mut BTreeMap<&'t str, &'t str>, text: &'t str) -> &'t str {
    let (number, name) = text.split_once(' ').unwrap_or((text, ""));
    if !name.is_empty() {
        named.insert(number, name.trim());
    }
    named.get(number).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_of_a_file_are_told_apart_and_those_of_calls_are_left_out() {
        let said = "events: Ir\nfl=(1) /a/src/turn.rs\nfn=(1) turn\n12 10\n+1 5\nfi=(2) /a/src/slab.rs\n7 3\nfe=(1)\n+2 2\ncfi=(3) /b/other.rs\ncfn=(2) other\ncalls=4 9\n* 1000\n* 1\nfl=(3)\nfn=(2)\n1 900\n";
        let profile = Profile::of(said);
        assert_eq!((profile.instructions(), profile.files["/a/src/slab.rs"]), (921.0, 3.0));
        assert_eq!(profile.calls, BTreeMap::from([("other".to_owned(), 4.0)]));
        assert_eq!(Profile::default().of_one_more(profile, 3.0).files["/b/other.rs"], 300.0);
    }

    #[test]
    fn calls_of_allocators_are_counted() {
        let text = "fn=(1) main\n1 10\ncfn=(2) malloc\ncalls=3 0\n1 30\ncfn=(3) free\ncalls=9 0\n\
                    fn=(4) other\ncfn=(2)\ncalls=4 0\n2 40\ntotals: 1234\n";
        assert_eq!(Profile::of(text).allocations(), 7.0);
    }
}
