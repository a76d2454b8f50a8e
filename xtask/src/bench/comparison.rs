//! Comparisons of Roadstead with one peer on the page of `bench main`: a row of a table, and a goal. Pure.

use super::goals::Goal;
use super::page::{Template, row};
use super::statistics::{Quartiles, thousands};
use super::trial::Trial;

pub(super) const TEXT: Template = Template(include_str!("../../pages/main.md"));

/// The name of the subject that is compared with the peer.
pub(super) const OURS: &str = "Roadstead";

/// One measurement of both sides.
#[derive(Debug)]
pub(super) struct Comparison<'a> {
    /// The name of the work.
    pub(super) name: &'a str,
    pub(super) unit: &'static str,
    /// The name of the measured value.
    pub(super) value: &'static str,
    /// How the ratio is called.
    pub(super) better: Better,
    pub(super) peer: &'static str,
    /// The minimum for the median of the ratio.
    pub(super) goal: Option<f64>,
}

/// Whether lower or higher is better, and the name of the ratio.
#[derive(Clone, Copy, Debug)]
pub(super) enum Better {
    Less(&'static str),
    More(&'static str),
}

impl Comparison<'_> {
    /// Returns how many times better ours is, round by round, and the name of this ratio.
    fn ratio(&self, trial: &Trial) -> (Quartiles, &'static str) {
        match self.better {
            Better::Less(name) => (trial.ratio(self.value, self.peer, OURS), name),
            Better::More(name) => (trial.ratio(self.value, OURS, self.peer), name),
        }
    }

    /// Returns the goal. A ratio that is not a number does not meet it.
    pub(super) fn goal(&self, trial: &Trial) -> Option<Goal> {
        let (goal, (ratio, times)) = (self.goal?, self.ratio(trial));
        let text = format!("{}: at least {goal:.0} {times}", self.name);
        Some((text, format!("{:.1}", ratio.median), ratio.median >= goal))
    }

    /// Returns the line of the table.
    pub(super) fn row(&self, trial: &Trial) -> String {
        let Self { name, unit, value, peer, .. } = self;
        let [ours, theirs] = [OURS, peer].map(|subject| shown(trial.of(subject, value)));
        let (ratio, times) = self.ratio(trial);
        let goal = match self.goal.zip(self.goal(trial)) {
            None => "–".to_owned(),
            Some((goal, (.., true))) => format!("≥ {goal:.0}, reached"),
            Some((goal, _)) => format!("≥ {goal:.0}, **missed**"),
        };
        let (theirs, ratio) = (format!("{peer}: {theirs}"), format!("{} {times}", shown(ratio)));
        row(&[name, unit, &ours, &theirs, &ratio, &goal])
    }
}

fn shown(quartiles: Quartiles) -> String {
    let Quartiles { low, median, high } = quartiles;
    let number = |value: f64| match value {
        large if large >= 999.5 => thousands(large),
        middle if middle >= 100.0 => format!("{middle:.0}"),
        small => format!("{small:.1}"),
    };
    format!("{} ({}–{})", number(median), number(low), number(high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn compared(theirs: f64, goal: Option<f64>) -> (Option<bool>, String) {
        let us = [50.2, theirs];
        let sample = |_, at: usize| Ok(json!({ "us": us[at] }));
        let trial = Trial::run((1, 0), "work", &[OURS, "a peer"], sample).unwrap();
        let (unit, better) = ("CPU µs a line", Better::Less("times less CPU"));
        let compared = Comparison { name: "work", unit, value: "us", better, peer: "a peer", goal };
        (compared.goal(&trial).map(|(.., met)| met), compared.row(&trial))
    }

    #[test]
    fn a_goal_is_missed_reached_or_absent() {
        assert_eq!(compared(50.2 * 19.9, Some(20.0)).0, Some(false));
        assert_eq!(compared(f64::NAN, Some(20.0)).0, Some(false));
        assert_eq!(compared(50.2 * 20.0, Some(20.0)).0, Some(true));
        assert_eq!(compared(50.2, None).0, None);
    }

    #[test]
    fn a_row_has_every_number() {
        let row = "| work | CPU µs a line | 50.2 (50.2–50.2) | a peer: 1,004 (1,004–1,004) | \
                   20.0 (20.0–20.0) times less CPU | ≥ 21, **missed** |\n";
        assert_eq!(compared(1004.4, Some(21.0)).1, row);
    }
}
