//! A part of the measurements of the loop: measured by itself, kept, and put on the page with the
//! others, so that the whole need not be measured anew for one of them.

use crate::bench::goals::Goal;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What a part showed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Part {
    /// Its section of the page.
    pub(super) text: String,
    /// What was asked for.
    pub(super) goals: Vec<Goal>,
    /// What goals over several parts need.
    pub(super) numbers: BTreeMap<String, f64>,
    /// When, and by which command.
    pub(super) made: String,
}

impl Part {
    pub(super) fn of(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// As it is kept.
    pub(super) fn to_text(&self) -> String {
        let Self { text, goals, numbers, made } = self;
        json!({ "text": text, "goals": goals, "numbers": numbers, "made": made }).to_string()
    }

    pub(super) fn read(text: &str) -> Option<Self> {
        let mut said: Value = serde_json::from_str(text).ok()?;
        let mut take = |key: &str| said[key].take();
        Some(Self {
            text: serde_json::from_value(take("text")).ok()?,
            goals: serde_json::from_value(take("goals")).ok()?,
            numbers: serde_json::from_value(take("numbers")).ok()?,
            made: serde_json::from_value(take("made")).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_comes_back() {
        let part = Part {
            text: "### A part\n".to_owned(),
            goals: vec![("quick".to_owned(), true), ("small".to_owned(), false)],
            numbers: BTreeMap::from([("calls".to_owned(), 2.5)]),
            made: "today".to_owned(),
        };
        assert_eq!(Part::read(&part.to_text()), Some(part));
        assert_eq!(Part::read("{}"), None);
    }
}
