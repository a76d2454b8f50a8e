//! Parts of a crate that must not use others of it, until they are crates of their own.

use super::cycles::Imports;
use super::tree::Tree;
use crate::tidy::file::File;
use crate::tidy::finding::Finding;
use crate::tidy::lexer;
use crate::tidy::test_code::test_lines;

/// A part of a crate and what it must not use. A part is a file with all that is below it.
#[derive(Debug)]
pub(super) struct Bound {
    pub(super) part: &'static str,
    pub(super) never: &'static [&'static str],
    /// Names of other crates.
    pub(super) names: &'static [&'static str],
    /// What to do instead.
    pub(super) instead: &'static str,
}

pub(super) const BOUNDS: [Bound; 1] = [Bound {
    part: "crates/gateway/src/core",
    never: &[
        "crates/gateway/src/backends",
        "crates/gateway/src/checks",
        "crates/gateway/src/handlers",
        "crates/gateway/src/hosted",
        "crates/gateway/src/outside",
        "crates/gateway/src/programs",
        "crates/gateway/src/servers",
        "crates/gateway/src/session",
        "crates/gateway/src/shard",
        "crates/gateway/src/workers",
    ],
    names: &["Calls"],
    instead: "the core emits effects and takes reports",
}];

/// Each use of what a part must not use.
pub(super) fn check(tree: &Tree, imports: &Imports<'_>, bounds: &[Bound]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (from, to, line, item) in imports.all() {
        let (from, to) = (&tree.files[from].path, &tree.files[to].path);
        for bound in bounds.iter().filter(|bound| is_in(from, bound.part)) {
            if bound.never.iter().any(|part| is_in(to, part)) {
                let text = format!("`{item}` of {to}: {}", bound.instead);
                findings.push(Finding::new(from, line, text));
            }
        }
    }
    findings
}

/// Each line that says a name which a part must not use. Tests may.
pub(super) fn check_names(files: &[File], bounds: &[Bound]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for bound in bounds {
        for file in files.iter().filter(|file| is_in(&file.path, bound.part)) {
            let code = lexer::views(&file.text).code;
            let lines = code.lines().zip(test_lines(&file.path, &code)).enumerate();
            for (index, (code, _)) in lines.filter(|(_, (_, in_test))| !in_test) {
                for name in bound.names.iter().filter(|name| lexer::has_word(code, name)) {
                    let text = format!("`{name}`: {}", bound.instead);
                    findings.push(Finding::new(&file.path, index + 1, text));
                }
            }
        }
    }
    findings
}

/// Whether a file is this part, or below it.
fn is_in(path: &str, part: &str) -> bool {
    path.strip_prefix(part).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
}
