//! A part of the measurements of the event loop. It is measured separately, stored, and written to the page together
//! with the others, so that measuring one part does not require measuring all.

use crate::bench::goals::Goal;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The result of a part.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Part {
    /// Its section of the page.
    pub(super) text: String,
    /// The goals.
    pub(super) goals: Vec<Goal>,
    /// The numbers for goals over several parts.
    pub(super) numbers: BTreeMap<String, f64>,
    /// The date and the command.
    pub(super) made: String,
}

impl Part {
    pub(super) fn of(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Returns the stored form.
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
