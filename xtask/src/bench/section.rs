//! Replaces one section of a page of results. The other sections stay unchanged.

use crate::shell::{self, Failure, Workspace};

/// Writes a section to the page at `path` below the checkout, as [`put`] does.
pub(super) fn put_into(
    workspace: &Workspace,
    path: &str,
    section: &str,
    before: &str,
) -> Result<(), Failure> {
    let page = shell::read(&workspace.root.join(path))?;
    workspace.write(path, &put(&page, section, before))
}

/// Adds the command and the date below the heading of a section.
pub(super) fn made(section: &str, by: &str) -> String {
    section.replacen("\n\n", &format!("\n\nMade by {by}.\n\n"), 1)
}

/// Returns the page with `section`, which begins with its `## ` heading. It replaces the section with the same heading;
/// otherwise it is inserted before the heading `before`; otherwise it is appended.
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

/// Returns the text before the first heading of level 2, and then each section.
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
