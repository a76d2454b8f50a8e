//! Rules about whole files: names, lengths, required pages.

use super::file::File;
use super::finding::Finding;
use std::path::Path;

/// Longer sources are listed.
const LINES_LISTED: usize = 600;
/// Longer sources fail.
const LINES_MAX: usize = 1000;
/// First lines that exempt a source from the length limit.
const MARKS: [&str; 2] = ["// tidy: table", "// tidy: tests"];

/// Required pages, with their maximum length in lines.
const PAGES: [(&str, usize); 2] = [("README.md", 150), ("ARCHITECTURE.md", 400)];

/// Module names that do not describe their content.
const EMPTY_NAMES: [&str; 7] = ["common", "helper", "helpers", "manager", "misc", "util", "utils"];

/// Returns findings for missing or too long pages.
pub(super) fn required(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (page, lines_max) in PAGES {
        let Some(file) = files.iter().find(|file| file.path == page) else {
            findings.push(Finding::new(page, None, "is missing"));
            continue;
        };
        let lines = file.text.lines().count();
        if lines > lines_max {
            let text = format!("{lines} lines; at most {lines_max}: move detail to docs/");
            findings.push(Finding::new(page, None, text));
        }
    }
    findings
}

/// Returns findings for the name and the length of one file.
pub(super) fn check(file: &File) -> Vec<Finding> {
    if !file.is_rust() {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let path = Path::new(&file.path);
    if path.ends_with("mod.rs") {
        let text = "a module with children is `name.rs` beside `name/`, not `mod.rs`";
        findings.push(Finding::new(&file.path, None, text));
    }
    // Each part of the path is checked, so both `util.rs` and `util/…` are found.
    for part in path.with_extension("").iter().filter_map(|part| part.to_str()) {
        if EMPTY_NAMES.contains(&part) {
            let text = format!("`{part}` says nothing of what is inside: name the idea");
            findings.push(Finding::new(&file.path, None, text));
        }
    }
    let lines = file.text.lines().count();
    if lines > LINES_MAX && !is_excepted(file) {
        let text = format!("{lines} lines; past {LINES_LISTED} look for the second idea");
        findings.push(Finding::new(&file.path, None, text));
    }
    findings
}

/// Returns a note about a file that is long but below the limit.
pub(super) fn long(file: &File) -> Option<String> {
    let lines = file.text.lines().count();
    let listed = file.is_rust() && lines > LINES_LISTED && !is_excepted(file);
    listed.then(|| format!("{} ({lines} lines)", file.path))
}

fn is_excepted(file: &File) -> bool {
    file.text.lines().next().is_some_and(|first| MARKS.contains(&first.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: impl Into<String>) -> File {
        File { path: path.to_owned(), text: text.into() }
    }

    #[test]
    fn names_that_say_nothing_are_found() {
        for path in ["crates/a/src/utils.rs", "crates/a/src/misc/x.rs", "crates/a/tests/common.rs"]
        {
            assert_eq!(check(&file(path, "")).len(), 1, "{path}");
        }
        let findings = check(&file("crates/a/src/x/mod.rs", ""));
        assert!(findings[0].text.contains("not `mod.rs`"), "{findings:?}");
        assert_eq!(check(&file("crates/pool/src/queue.rs", "")), []);
        assert_eq!(check(&file("docs/misc/page.md", "")), []);
    }

    #[test]
    fn length_is_listed_and_then_refused() {
        let lines = |count: usize| "x\n".repeat(count);
        assert_eq!(long(&file("a.rs", lines(600))), None);
        assert!(long(&file("a.rs", lines(601))).is_some());
        assert_eq!(check(&file("a.rs", lines(1000))), []);
        assert_eq!(check(&file("a.rs", lines(1001))).len(), 1);
        let table = format!("// tidy: table\n{}", lines(2000));
        assert_eq!(check(&file("a.rs", table.clone())), []);
        assert_eq!(long(&file("a.rs", table)), None);
    }

    #[test]
    fn pages_are_there_and_short() {
        let readme = file("README.md", "x\n".repeat(151));
        let findings = required(&[readme]);
        assert_eq!(findings.len(), 2);
        assert!(findings[0].text.starts_with("151 lines"), "{findings:?}");
        assert_eq!(findings[1], Finding::new("ARCHITECTURE.md", None, "is missing"));
    }
}
