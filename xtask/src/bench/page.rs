//! The page of `bench main`: rows of its table, and their goals. Pure.

use super::goals::Goal;
use super::statistics::{Quartiles, thousands};
use super::template::{Template, row};

pub(super) const TEXT: Template = Template(include_str!("../../pages/main.md"));

/// Whether lower or higher is better, and the name of the ratio.
#[derive(Clone, Copy, Debug)]
pub(super) enum Better {
    Less(&'static str),
    More(&'static str),
}

/// One measurement of both sides.
#[derive(Debug)]
pub(super) struct Row {
    /// The name of the work.
    pub(super) name: String,
    pub(super) unit: &'static str,
    pub(super) peer: &'static str,
    pub(super) ours: Quartiles,
    pub(super) theirs: Quartiles,
    /// How many times better ours is, pair by pair.
    pub(super) ratio: Quartiles,
    pub(super) ratio_means: &'static str,
    /// The minimum for the median of the ratio.
    pub(super) goal: Option<f64>,
    /// System calls per line, ours and theirs.
    pub(super) calls: Option<[String; 2]>,
}

impl Row {
    pub(super) fn new(
        name: String,
        (unit, better): (&'static str, Better),
        peer: &'static str,
        [ours, theirs]: &[Vec<f64>; 2],
    ) -> Self {
        let (ratio, ratio_means) = match better {
            Better::Less(means) => (Quartiles::ratio(theirs, ours), means),
            Better::More(means) => (Quartiles::ratio(ours, theirs), means),
        };
        let [ours, theirs] = [ours, theirs].map(|samples| Quartiles::of(samples));
        Self { name, unit, peer, ours, theirs, ratio, ratio_means, goal: None, calls: None }
    }

    /// Returns the goal and whether it was met. A ratio that is not a number does not meet it.
    pub(super) fn goal(&self) -> Option<Goal> {
        let (goal, median) = (self.goal?, self.ratio.median);
        let Self { name, ratio_means, .. } = self;
        let text = format!("{name}: {median:.1} {ratio_means}, at least {goal:.0} wanted");
        Some((text, median >= goal))
    }

    fn goal_in_words(&self) -> String {
        match self.goal.zip(self.goal()) {
            None => "–".to_owned(),
            Some((goal, (_, true))) => format!("≥ {goal:.0}, reached"),
            Some((goal, _)) => format!("≥ {goal:.0}, **missed**"),
        }
    }
}

/// Returns the lines of the table.
pub(super) fn rows(rows: &[Row]) -> String {
    let line = |one: &Row| {
        let Row { name, unit, peer, ratio_means, .. } = one;
        let [ours, theirs, ratio] = [one.ours, one.theirs, one.ratio].map(shown);
        let (theirs, ratio) = (format!("{peer}: {theirs}"), format!("{ratio} {ratio_means}"));
        row(&[name, unit, &ours, &theirs, &ratio, &one.goal_in_words()])
    };
    rows.iter().map(line).collect()
}

/// Returns the page for the documentation.
pub(super) fn page(command: &str, rows: &[Row]) -> String {
    let counted = rows.iter().filter_map(|row| Some((row, row.calls.as_ref()?)));
    let calls: String = counted
        .map(|(one, [ours, theirs])| row(&[&one.name, ours, &format!("{}: {theirs}", one.peer)]))
        .collect();
    TEXT.fill("page", &[("command", &command), ("rows", &self::rows(rows)), ("calls", &calls)])
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

    fn measured(theirs: f64, goal: Option<f64>) -> Row {
        let measure = ("CPU µs a line", Better::Less("times less CPU"));
        let pairs = [vec![50.2], vec![theirs]];
        let calls = Some(["2.0 (read 1.0)".to_owned(), "9.0 (select 5.0)".to_owned()]);
        Row { goal, calls, ..Row::new("work".to_owned(), measure, "a peer", &pairs) }
    }

    #[test]
    fn a_goal_is_missed_reached_or_absent() {
        let met = |theirs, goal| measured(theirs, goal).goal().map(|(_, met)| met);
        assert_eq!(met(50.2 * 19.9, Some(20.0)), Some(false));
        assert_eq!(met(f64::NAN, Some(20.0)), Some(false));
        assert_eq!(met(50.2 * 20.0, Some(20.0)), Some(true));
        assert_eq!(met(50.2, None), None);
    }

    #[test]
    fn the_page_has_every_number_and_the_command() {
        let page = page("cargo xtask bench main", &[measured(1004.4, Some(21.0))]);
        for part in ["`cargo xtask bench main`", " cores", "1,004 (1,004–1,004)", "**missed**"] {
            assert!(page.contains(part), "{part} in\n{page}");
        }
        assert!(page.contains("| work | 2.0 (read 1.0) | a peer: 9.0 (select 5.0) |"), "{page}");
    }
}
