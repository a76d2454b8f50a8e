//! Writes pages: the texts in `xtask/pages` are pieces of Markdown with placeholders for figures. Pure, except for the
//! description of the machine.
//!
//! ```text
//!   <!-- NAME -->     a piece begins; it ends where the next one does
//!   @place@           a placeholder
//!   @cores@ @kernel@ @date@ @perl@     placeholders for the description of the machine
//! ```

use super::process;
use crate::shell;
use std::fmt::Display;
use std::fs;

/// The text of a page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Template(pub(super) &'static str);

impl Template {
    /// Returns a piece with its placeholders.
    fn piece(self, name: &str) -> &'static str {
        let begin = format!("<!-- {name} -->\n");
        let (_, rest) = self.0.split_once(&begin).unwrap_or_else(|| panic!("no piece `{name}`"));
        rest.split_once("<!-- ").map_or(rest, |(piece, _)| piece)
    }

    /// Returns whether a piece has a placeholder.
    pub(super) fn has(self, name: &str, place: &str) -> bool {
        self.piece(name).contains(&format!("@{place}@"))
    }

    /// Returns a piece with these values in its placeholders, without empty lines around the piece or the values.
    pub(super) fn fill(self, name: &str, values: &[(&str, &dyn Display)]) -> String {
        let mut text = self.piece(name).trim_matches('\n').to_owned();
        for (place, value) in values {
            let value = value.to_string();
            text = text.replace(&format!("@{place}@"), value.trim_end_matches('\n'));
        }
        for (place, say) in MACHINE {
            let place = format!("@{place}@");
            if text.contains(&place) {
                text = text.replace(&place, &say());
            }
        }
        // A value may be empty.
        while text.contains("\n\n\n") {
            text = text.replace("\n\n\n", "\n\n");
        }
        text + "\n"
    }
}

/// Formats a line of a table.
pub(super) fn row(cells: &[&dyn Display]) -> String {
    let cells: String = cells.iter().map(|cell| format!(" {cell} |")).collect();
    format!("|{cells}\n")
}

/// Returns the page with `section`, which begins with its `## ` heading. It replaces the section with the same heading;
/// otherwise it becomes the last but one, because pages end with their method or their goals.
pub(super) fn put(page: &str, section: &str) -> String {
    let starts = page.match_indices("\n## ").map(|(at, _)| at + 1);
    let ends: Vec<usize> = starts.chain([page.len()]).collect();
    let mut pieces = vec![&page[..ends[0]]];
    pieces.extend(ends.windows(2).map(|pair| &page[pair[0]..pair[1]]));
    let heading = section.lines().next();
    match pieces.iter().position(|piece| piece.lines().next() == heading) {
        Some(place) => pieces[place] = section,
        None => pieces.insert((pieces.len() - 1).max(1), section),
    }
    pieces.iter().map(|piece| piece.trim_end()).collect::<Vec<_>>().join("\n\n") + "\n"
}

/// Returns a fact about the machine.
type Say = fn() -> String;

/// The facts about the machine. They contain no host names, which would be useless to others.
const MACHINE: [(&str, Say); 4] =
    [("cores", cores), ("kernel", kernel), ("date", date), ("perl", perl)];

fn cores() -> String {
    process::processors().to_string()
}

fn kernel() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    release.split('-').next().unwrap_or_default().trim().to_owned()
}

pub(super) fn date() -> String {
    said("date", &["-u", "+%F"])
}

fn perl() -> String {
    let version = "printf '%vd, IO::Multiplex %s', $^V, IO::Multiplex->VERSION";
    said("perl", &["-MIO::Multiplex", "-e", version])
}

fn said(program: &str, args: &[&str]) -> String {
    let output = shell::output(shell::command(program, args));
    output.map_or_else(|_| "unknown".to_owned(), |said| said.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_is_filled_and_ends_where_the_next_begins() {
        let text = "<!-- one -->\n\n@a@ of @cores@ @b@\n\n<!-- two -->\n\n@a@\n";
        let filled = Template(text).fill("one", &[("a", &1)]);
        assert_eq!(filled, format!("1 of {} @b@\n", cores()));
        assert_eq!(Template(text).fill("two", &[("a", &"x")]), "x\n");
    }

    #[test]
    fn a_row_has_its_cells() {
        assert_eq!(row(&[&"a", &1.5]), "| a | 1.5 |\n");
    }

    const PAGE: &str = "# Page\n\nIntroduction.\n\n## One\n\n1\n\n### Part\n\n## Method\n\nSo.\n";

    #[test]
    fn a_section_comes_before_the_last() {
        assert_eq!(
            put(PAGE, "## Two\n\n2\n\n"),
            "# Page\n\nIntroduction.\n\n## One\n\n1\n\n### Part\n\n## Two\n\n2\n\n## Method\n\nSo.\n"
        );
        assert_eq!(put("# Page\n", "## Two"), "# Page\n\n## Two\n");
    }

    #[test]
    fn a_section_takes_its_own_place_again() {
        assert_eq!(
            put(PAGE, "## One\n\nnew"),
            "# Page\n\nIntroduction.\n\n## One\n\nnew\n\n## Method\n\nSo.\n"
        );
        assert_eq!(put(PAGE, "## Method\n\nso"), PAGE.replace("So.", "so"));
    }
}
