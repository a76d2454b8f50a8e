//! Rules about wording: phrases of an older style in pages and comments, and subjects of commits.

use super::file::File;
use super::finding::Finding;
use super::lexer;

/// Phrases that readers stopped at, with what to write instead. All in small letters.
const BANNED: &[(&str, &str)] = &[
    ("anew", "`again`, or name the new thing"),
    ("are told", "`receive` or `are notified`"),
    ("at home", "`on its owner shard`"),
    ("buried", "`written to the dead-letter table`"),
    ("bury", "`write to the dead-letter table`"),
    ("hopeless", "`the circuit breaker is open`"),
    ("in its hands", "`in flight`"),
    ("in vain", "say what was not found"),
    ("is told", "`receives` or `is notified`"),
    ("keeper", "`supervisor`"),
    ("let go", "say what is released"),
    ("mend", "`fix`"),
    ("mended", "`fixed`"),
    ("whoever", "name who it is"),
];

/// The maximum length of the subject of a commit.
const SUBJECT_MAX: usize = 72;

/// Findings in one page, or in the comments of one source. Sources of tests are left out.
pub(super) fn check(file: &File) -> Vec<Finding> {
    let is_test = file.path.contains("/tests") || file.path.starts_with("fuzz/");
    // This file names the phrases.
    if is_test || file.path.ends_with("tidy/wording.rs") {
        return Vec::new();
    }
    let prose = match file.path.rsplit_once('.') {
        Some((_, "md")) => without_code(&file.text),
        Some((_, "rs")) => lexer::views(&file.text).comments,
        _ => return Vec::new(),
    };
    let mut findings = Vec::new();
    for (index, line) in prose.lines().enumerate() {
        let line = line.to_lowercase();
        for (phrase, instead) in BANNED.iter().filter(|(phrase, _)| lexer::has_word(&line, phrase))
        {
            let text = format!("`{phrase}`: write {instead}");
            findings.push(Finding::new(&file.path, index + 1, text));
        }
    }
    findings
}

/// Findings in subjects of commits, one a line.
pub(super) fn subjects(log: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for subject in log.lines() {
        let is_named = subject.split_once(": ").is_some_and(|(area, rest)| {
            let is_area = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-';
            !area.is_empty() && area.chars().all(is_area) && !rest.is_empty()
        });
        if !is_named {
            let text = format!("`{subject}`: write `area: imperative`");
            findings.push(Finding::new("commit", None, text));
        } else if subject.chars().count() > SUBJECT_MAX {
            let text = format!("`{subject}`: at most {SUBJECT_MAX} characters");
            findings.push(Finding::new("commit", None, text));
        }
    }
    findings
}

/// A page with blank lines instead of its code blocks.
fn without_code(page: &str) -> String {
    let (mut text, mut in_code) = (String::new(), false);
    for line in page.lines() {
        let is_fence = line.trim_start().starts_with("```");
        if !in_code && !is_fence {
            text.push_str(line);
        }
        text.push('\n');
        in_code ^= is_fence;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn phrases_are_found_in_pages_and_comments_and_not_in_code() {
        let page = file("docs/a.md", "Good.\n\n```sh\necho anew\n```\nIt is told.\nA wordanew.\n");
        let findings = check(&page);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert_eq!(findings[0].line, Some(6));
        let source = file("crates/a/src/b.rs", "// Whoever asks.\nfn keeper() {} // fine\n");
        assert_eq!(check(&source).len(), 1);
        assert_eq!(check(&file("crates/a/tests/b.rs", "// whoever\n")), []);
    }

    #[test]
    fn subjects_name_their_area_and_are_short() {
        assert_eq!(subjects("pool: start a probe\nadmin-api: x\n"), []);
        let long = format!("pool: {}", "x".repeat(67));
        for subject in ["Fix things", "pool start", ": x", "Pool: x", &*long] {
            assert_eq!(subjects(subject).len(), 1, "{subject}");
        }
    }
}
