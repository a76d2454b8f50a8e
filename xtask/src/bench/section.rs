//! A page of results of which one section is measured by itself: the others stay as they are.

use crate::shell::{self, Failure, Workspace};

/// Puts a section on the page at `path` below the checkout, as [`put`] does.
pub(super) fn put_into(
    workspace: &Workspace,
    path: &str,
    section: &str,
    before: &str,
) -> Result<(), Failure> {
    let page = shell::read(&workspace.root.join(path))?;
    workspace.write(path, &put(&page, section, before))
}

/// The section with the command and the date that made it, below its heading.
pub(super) fn made(section: &str, by: &str) -> String {
    section.replacen("\n\n", &format!("\n\nMade by {by}.\n\n"), 1)
}

/// The page with `section`, which begins with its `## ` heading: in the place of the one with the same
/// heading, else before the heading `before`, else at the end.
fn put(page: &str, section: &str, before: &str) -> String {
    let section = section.trim_end();
    let heading = section.lines().next().unwrap_or_default();
    let mut pieces: Vec<&str> = chapters(page);
    let at = |heading: &str| pieces.iter().position(|piece| piece.lines().next() == Some(heading));
    if let Some(place) = at(heading) {
        pieces[place] = section;
    } else {
        pieces.insert(at(before).unwrap_or(pieces.len()), section);
    }
    let mut text = pieces.iter().map(|piece| piece.trim_end()).collect::<Vec<_>>().join("\n\n");
    text.push('\n');
    text
}

/// What stands before the first heading of the second rank, then each with its text.
fn chapters(page: &str) -> Vec<&str> {
    let mut starts = vec![0];
    starts.extend(page.match_indices("\n## ").map(|(at, _)| at + 1));
    starts.push(page.len());
    starts.windows(2).map(|pair| &page[pair[0]..pair[1]]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# Page\n\nIntroduction.\n\n## One\n\n1\n\n### Part\n\n## Method\n\nSo.\n";

    #[test]
    fn a_section_comes_before_another() {
        assert_eq!(
            put(PAGE, "## Two\n\n2\n\n", "## Method"),
            "# Page\n\nIntroduction.\n\n## One\n\n1\n\n### Part\n\n## Two\n\n2\n\n## Method\n\nSo.\n"
        );
    }

    #[test]
    fn a_section_takes_its_own_place_again() {
        assert_eq!(
            put(PAGE, "## One\n\nnew", "## Method"),
            "# Page\n\nIntroduction.\n\n## One\n\nnew\n\n## Method\n\nSo.\n"
        );
        assert_eq!(put(PAGE, "## Method\n\nso", "## No"), PAGE.replace("So.", "so"));
    }

    #[test]
    fn a_section_without_a_place_is_the_last() {
        assert!(put(PAGE, "## Two\n\n2", "## None").ends_with("So.\n\n## Two\n\n2\n"));
    }
}
