//! A part of the measurements of the loop: measured by itself, kept, and put on the page with the
//! others, so that the whole need not be measured anew for one of them.

use crate::shell::Failure;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// What a part showed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Part {
    /// Its section of the page.
    pub(super) text: String,
    /// What was asked for, in words, and whether it was so.
    pub(super) goals: Vec<(String, bool)>,
    /// What goals over several parts need.
    pub(super) numbers: BTreeMap<String, f64>,
    /// When, and by which command.
    pub(super) made: String,
}

impl Part {
    pub(super) fn of(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Keeps it in a folder.
    pub(super) fn keep(&self, folder: &Path, name: &str) -> Result<(), Failure> {
        let goals: Vec<Value> = self.goals.iter().map(|(goal, met)| json!([goal, met])).collect();
        let said = json!({
            "text": self.text, "goals": goals, "numbers": self.numbers, "made": self.made,
        });
        let path = folder.join(format!("{name}.json"));
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&path, said.to_string()))
            .map_err(|error| Failure::new(format!("{}: {error}", path.display())))
    }

    /// The one that was kept last, if there is one.
    pub(super) fn kept(folder: &Path, name: &str) -> Option<Self> {
        let said = fs::read_to_string(folder.join(format!("{name}.json"))).ok()?;
        Self::read(&serde_json::from_str(&said).ok()?)
    }

    fn read(said: &Value) -> Option<Self> {
        let text = |key: &str| said[key].as_str().map(str::to_owned);
        let goal = |goal: &Value| Some((goal[0].as_str()?.to_owned(), goal[1].as_bool()?));
        let number = |(name, value): (&String, &Value)| Some((name.clone(), value.as_f64()?));
        Some(Self {
            text: text("text")?,
            made: text("made")?,
            goals: said["goals"].as_array()?.iter().map(goal).collect::<Option<_>>()?,
            numbers: said["numbers"].as_object()?.iter().map(number).collect::<Option<_>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_comes_back() {
        let folder = std::env::temp_dir().join(format!("parts-{}", std::process::id()));
        let part = Part {
            text: "### A part\n".to_owned(),
            goals: vec![("quick".to_owned(), true), ("small".to_owned(), false)],
            numbers: BTreeMap::from([("calls".to_owned(), 2.5)]),
            made: "today".to_owned(),
        };
        part.keep(&folder, "one").unwrap();
        assert_eq!(Part::kept(&folder, "one"), Some(part));
        assert_eq!(Part::kept(&folder, "two"), None);
        fs::remove_dir_all(&folder).unwrap();
    }
}
