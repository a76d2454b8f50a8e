//! Runs a benchmark: measures its parts, stores them, and writes its page.
//!
//! Each part is measured separately and stored in the build folder. The page is generated from the stored parts, so
//! that one part can be measured again without the others. If other parts are not stored, a part that is a section of
//! its own replaces this section on the existing page.

use super::goals::{self, Goal};
use super::ground::Ground;
use super::page::{self, Template, date};
use super::process;
use crate::requirements::{self, Requirement};
use crate::shell::{self, Failure, Workspace};
use clap::Args;
use serde_json::{Value, json};
use std::fmt::{self, Display};
use std::fs;
use std::time::Duration;

/// The options of all benchmarks.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct Options {
    /// The number of rounds of each measurement; 15 by default, 5 for `balance`
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
    /// Milliseconds measured per round
    #[arg(long, value_parser = clap::value_parser!(u64).range(20..))]
    milliseconds: Option<u64>,
    /// The seed for the order of the subjects within the rounds; random by default
    #[arg(long)]
    seed: Option<u64>,
    /// Measure only the parts whose names begin with this; the page keeps the others
    #[arg(long, value_name = "PART")]
    only: Option<String>,
    /// Print the results without storing them or writing the page
    #[arg(long)]
    pub(super) dry: bool,
    /// Do not measure; write the page from the stored parts
    #[arg(long)]
    pub(super) page: bool,
}

/// What a benchmark consists of.
#[derive(Debug)]
pub(super) struct Spec {
    /// The name of the command, of the folder with the results, and of the page.
    pub(super) name: &'static str,
    /// The names of the parts, in the order of the page.
    pub(super) parts: &'static [&'static str],
    pub(super) text: Template,
    pub(super) tools: &'static [Requirement],
    /// The default number of rounds.
    pub(super) rounds: u32,
    /// The default time measured per round.
    pub(super) milliseconds: u64,
}

/// The result of a part.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Part {
    /// Its text on the page. `@made@` in it is replaced by the command and the date.
    pub(super) text: String,
    pub(super) goals: Vec<Goal>,
    /// Values for the page, and for goals over several parts.
    pub(super) values: Value,
    /// The command and the date, set when the part was measured.
    pub(super) made: String,
}

/// The contents of a page besides the texts of its parts.
#[derive(Debug, Default)]
pub(super) struct Whole {
    /// Goals over several parts.
    pub(super) goals: Vec<Goal>,
    /// Values for the placeholders of the page.
    pub(super) values: Vec<(&'static str, String)>,
}

impl Part {
    pub(super) fn text(text: String) -> Self {
        Self { text, ..Self::default() }
    }

    pub(super) fn values(values: Value) -> Self {
        Self { values, ..Self::default() }
    }

    /// Returns whether its text contains its goals.
    fn lists_goals(&self) -> bool {
        self.text.contains(&goals::list(&self.goals))
    }

    /// Returns its section for a page whose other sections were made by other commands.
    fn section(&self) -> String {
        if self.text.contains(&self.made) {
            return self.text.clone();
        }
        self.text.replacen("\n\n", &format!("\n\nMade by {}.\n\n", self.made), 1)
    }

    fn to_json(&self) -> Value {
        let Self { text, goals, values, made } = self;
        json!({ "text": text, "goals": goals, "values": values, "made": made })
    }

    fn read(text: &str) -> Option<Self> {
        let mut stored: Value = serde_json::from_str(text).ok()?;
        let mut take = |key: &str| stored.get_mut(key).map(Value::take);
        Some(Self {
            text: serde_json::from_value(take("text")?).ok()?,
            goals: serde_json::from_value(take("goals")?).ok()?,
            values: take("values")?,
            made: serde_json::from_value(take("made")?).ok()?,
        })
    }
}

impl Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.text.is_empty() { write!(f, "{:#}", self.values) } else { f.write_str(&self.text) }
    }
}

/// A benchmark that is being run.
#[derive(Debug)]
pub(super) struct Bench<'a> {
    spec: &'static Spec,
    workspace: &'a Workspace,
    options: &'a Options,
    pub(super) ground: Ground,
    /// The command that repeats the measurement, with its date.
    made: String,
}

impl Spec {
    /// Provides the tools, unless nothing is measured. `more`: further options of the command.
    pub(super) fn open<'a>(
        &'static self,
        workspace: &'a Workspace,
        options: &'a Options,
        more: &str,
    ) -> Result<Bench<'a>, Failure> {
        let Self { name, parts, .. } = self;
        let only = options.only.as_deref().unwrap_or_default();
        if !parts.iter().any(|part| part.starts_with(only)) {
            return Err(Failure::new(format!("the parts are {}", parts.join(", "))));
        }
        if !options.page {
            requirements::provide(self.tools)?;
            process::raise_descriptors();
        }
        let rounds = options.rounds.unwrap_or(self.rounds);
        let milliseconds = options.milliseconds.unwrap_or(self.milliseconds);
        let window = Duration::from_millis(milliseconds);
        let ground = Ground::new(workspace, name, rounds, window, options.seed)?;
        let mut command = format!("cargo xtask bench {name} --rounds {rounds}");
        if milliseconds > 0 {
            command.push_str(&format!(" --milliseconds {milliseconds}"));
        }
        command.push_str(&format!("{more} --seed {}", ground.seed));
        if !only.is_empty() {
            command.push_str(&format!(" --only {only}"));
        }
        let made = format!("`{command}` on {}", date());
        Ok(Bench { spec: self, workspace, options, ground, made })
    }
}

impl Bench<'_> {
    /// Returns whether a part is measured.
    pub(super) fn wants(&self, part: &str) -> bool {
        let only = self.options.only.as_deref().unwrap_or_default();
        !self.options.page && part.starts_with(only)
    }

    /// Measures the wanted parts, and writes the page if all are stored. Fails if a goal was missed.
    pub(super) fn run(
        &self,
        mut measure: impl FnMut(&str) -> Result<Part, Failure>,
        whole: impl FnOnce(&[Part]) -> Whole,
    ) -> Result<(), Failure> {
        let (mut parts, mut measured, mut missing) = (Vec::new(), Vec::new(), Vec::new());
        for &name in self.spec.parts {
            if self.wants(name) {
                eprintln!("measuring {name}");
                let part = self.finished(measure(name)?);
                println!("{part}");
                if !self.options.dry {
                    shell::write(&self.ground.folder.join(name), &part.to_json().to_string())?;
                }
                measured.push(part.clone());
                parts.push(part);
            } else {
                let stored = fs::read_to_string(self.ground.folder.join(name));
                match stored.ok().and_then(|text| Part::read(&text)) {
                    Some(part) => parts.push(part),
                    None => missing.push(name),
                }
            }
        }
        let mut goals: Vec<Goal> = parts.iter().flat_map(|part| part.goals.clone()).collect();
        if missing.is_empty() {
            let Whole { goals: of_whole, values } = whole(&parts);
            goals.extend(of_whole.iter().cloned());
            self.write(&self.page(&parts, of_whole, values))?;
        } else {
            println!("not measured yet, so the rest of the page is kept: {}", missing.join(", "));
            for part in measured.iter().filter(|part| self.is_section(part)) {
                let page = shell::read(&self.workspace.root.join(self.path()))?;
                self.write(&page::put(&page, &part.section()))?;
            }
        }
        goals::verdict(goals)
    }

    /// Completes a part with the command, the date, and its goals if its text has a place for them.
    fn finished(&self, mut part: Part) -> Part {
        let goals = goals::list(&part.goals);
        part.text = part.text.replace("@made@", &self.made).replace("@goals@", goals.trim_end());
        part.made.clone_from(&self.made);
        part
    }

    /// Returns the page for the documentation.
    fn page(&self, parts: &[Part], of_whole: Vec<Goal>, values: Vec<(&str, String)>) -> String {
        let mut made: Vec<&str> = parts.iter().map(|part| part.made.as_str()).collect();
        made.sort_unstable();
        made.dedup();
        let texts: Vec<&str> = parts.iter().map(|part| part.text.as_str()).collect();
        let listed = parts.iter().filter(|part| !part.lists_goals());
        let mut goals: Vec<Goal> = listed.flat_map(|part| part.goals.clone()).collect();
        goals.extend(of_whole);
        let (made, texts, goals) = (made.join("; "), texts.join("\n"), goals::list(&goals));
        let mut all: Vec<(&str, &dyn Display)> =
            values.iter().map(|(place, value)| (*place, value as _)).collect();
        all.extend([("made", &made as _), ("parts", &texts as _), ("goals", &goals as _)]);
        self.spec.text.fill("page", &all)
    }

    /// Returns whether a part can be replaced on the page: it is a section, and the page lists none of its goals.
    fn is_section(&self, part: &Part) -> bool {
        let no_goals = part.goals.is_empty() || part.lists_goals();
        part.text.starts_with("## ") && (no_goals || !self.spec.text.has("page", "goals"))
    }

    fn path(&self) -> String {
        format!("docs/bench-{}.md", self.spec.name)
    }

    fn write(&self, page: &str) -> Result<(), Failure> {
        if self.options.dry { Ok(()) } else { self.workspace.write(&self.path(), page) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_comes_back() {
        let part = Part {
            text: "### A part\n".to_owned(),
            goals: vec![goals::at_most("quick", 1.0, 2.0), goals::at_most("small", 3.0, 2.0)],
            values: json!({ "calls": 2.5 }),
            made: "today".to_owned(),
        };
        assert_eq!(Part::read(&part.to_json().to_string()), Some(part));
        assert_eq!(Part::read("{}"), None);
    }
}
