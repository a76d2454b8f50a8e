//! Rules about modules: no import cycles inside a crate, no crate that is too large, no large struct that is passed
//! between modules.

mod baseline;
mod cycles;
mod graph;
mod names;
mod parts;
mod reader;
mod sizes;
#[cfg(test)]
mod tests;
mod tokens;
mod tree;

use super::file::File;
use super::finding::Finding;
use baseline::{BASELINE, Baseline};
use cycles::{Component, Imports};
use names::Names;
use parts::Parts;
use std::collections::BTreeMap;
use tree::{Texts, Tree};

/// The file of the baseline.
const BASELINE_FILE: &str = "xtask/src/tidy/modules/baseline.rs";

/// The result of the rules.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) findings: Vec<Finding>,
    /// Violations that the baseline still allows.
    pub(super) notes: Vec<String>,
}

/// Checks all crates of the checkout.
pub(super) fn check(files: &[File]) -> Report {
    check_with(files, &BASELINE)
}

fn check_with(files: &[File], baseline: &Baseline) -> Report {
    let tree = read(files);
    let names = Names::new(&tree);
    let parts = Parts::new(&tree, &names);
    let mut report = Report::default();
    for (path, error) in &tree.unread {
        report.findings.push(Finding::new(path, None, format!("cannot be read as Rust: {error}")));
    }
    check_cycles(&tree, &names, &parts, baseline, &mut report);
    check_sizes(&tree, &names, &parts, baseline, &mut report);
    report
}

/// Returns each use of one member of a cycle by another, in one crate.
pub(super) fn uses_in_cycles(files: &[File], of: &str) -> Vec<String> {
    let tree = read(files);
    let names = Names::new(&tree);
    let parts = Parts::new(&tree, &names);
    let mut lines = Vec::new();
    for krate in (0..tree.crates.len()).filter(|krate| label(&tree, *krate) == of) {
        let imports = Imports::new(&tree, &names, &parts, krate);
        for component in imports.file_cycles() {
            lines.push(component.text.clone());
            lines.extend(imports.all_uses(&component));
        }
        lines.extend(imports.folder_cycles().into_iter().map(|component| component.text));
    }
    lines
}

/// Reads every library and program of the checkout.
fn read(files: &[File]) -> Tree {
    let texts: Texts<'_> = files
        .iter()
        .filter(|file| file.is_rust())
        .map(|file| (file.path.as_str(), file.text.as_str()))
        .collect();
    let mut tree = Tree::default();
    for path in texts.keys() {
        if let Some((folder, root)) = path.split_once("/src/")
            && (root == "lib.rs" || root == "main.rs" || is_program(root))
        {
            let name = folder.rsplit('/').next().unwrap_or(folder);
            reader::read(&mut tree, &texts, name, path);
        }
    }
    tree
}

/// Returns whether this is a separate program below `src`.
fn is_program(path: &str) -> bool {
    path.strip_prefix("bin/").is_some_and(|name| !name.contains('/'))
}

/// Returns the name of a crate in the tables of the baseline.
fn label(tree: &Tree, krate: usize) -> &str {
    &tree.crates[krate].name
}

fn check_cycles(
    tree: &Tree,
    names: &Names<'_>,
    parts: &Parts,
    baseline: &Baseline,
    report: &mut Report,
) {
    let mut found: BTreeMap<&str, (Vec<Component>, Vec<Component>)> = BTreeMap::new();
    for krate in 0..tree.crates.len() {
        let imports = Imports::new(tree, names, parts, krate);
        let (files, folders) = found.entry(label(tree, krate)).or_default();
        files.extend(imports.file_cycles());
        folders.extend(imports.folder_cycles());
    }
    for (name, (files, folders)) in &found {
        let count = |all: &[Component]| all.iter().map(|one| one.members.len()).sum::<usize>();
        let allowed = baseline.cycles.iter().find(|(allowed, ..)| allowed == name);
        let (files_allowed, folders_allowed) =
            allowed.map_or((0, 0), |(_, files, folders)| (*files, *folders));
        let texts = || files.iter().chain(folders).map(|one| one.text.clone());
        let mut is_worse = false;
        for (what, now, allowed) in [
            ("files in import cycles", count(files), files_allowed),
            ("folders in import cycles", count(folders), folders_allowed),
        ] {
            is_worse |= now > allowed;
            report.findings.extend(compare(name, what, now, allowed));
        }
        if is_worse {
            report.findings.extend(texts().map(|text| Finding::new(name, None, text)));
        } else {
            report.notes.extend(texts().map(|text| format!("{name}: {text}")));
        }
    }
    let gone = baseline.cycles.iter().filter(|(name, ..)| !found.contains_key(name));
    report.findings.extend(gone.map(|(name, ..)| not_there(name)));
}

fn check_sizes(
    tree: &Tree,
    names: &Names<'_>,
    parts: &Parts,
    baseline: &Baseline,
    report: &mut Report,
) {
    let mut lines: BTreeMap<&str, usize> = BTreeMap::new();
    for krate in 0..tree.crates.len() {
        *lines.entry(label(tree, krate)).or_default() += sizes::lines(tree, krate);
    }
    let large: Vec<(String, usize)> = lines
        .iter()
        .filter(|(_, lines)| **lines > sizes::CRATE_LINES_MAX)
        .map(|(name, lines)| ((*name).to_owned(), lines.div_ceil(1000)))
        .collect();
    let what =
        format!("thousand lines without tests (a crate has {} at most)", sizes::CRATE_LINES_MAX);
    report.findings.extend(compare_all(&what, &large, baseline.large_crates));

    let wide = sizes::wide_structs(tree, names, parts);
    let found: Vec<(String, usize)> =
        wide.iter().map(|one| (one.name.clone(), one.takers.len())).collect();
    let what =
        format!("modules take it by `&mut` (with more than {} fields: one)", sizes::FIELDS_MAX);
    report.findings.extend(compare_all(&what, &found, baseline.wide_structs));
    for (name, thousands) in large {
        report.notes.push(format!("{name}: {thousands} thousand lines without tests"));
    }
    for one in wide {
        let (name, fields, takers) = (one.name, one.fields, one.takers.join(", "));
        report.notes.push(format!("{name}: {fields} fields, taken by `&mut` at {takers}"));
    }
}

/// Compares a table of figures with the allowed one.
fn compare_all(what: &str, found: &[(String, usize)], allowed: &[(&str, usize)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, now) in found {
        let limit = allowed.iter().find(|(known, _)| known == name).map_or(0, |(_, limit)| *limit);
        findings.extend(compare(name, what, *now, limit));
    }
    for (name, limit) in allowed {
        if !found.iter().any(|(known, _)| known == name) {
            findings.extend(compare(name, what, 0, *limit));
        }
    }
    findings
}

/// Returns a finding if a figure differs from the allowed one, in either direction.
fn compare(place: &str, what: &str, now: usize, allowed: usize) -> Option<Finding> {
    if now == allowed {
        return None;
    }
    let text = if now > allowed {
        format!("{now} {what}; {allowed} are allowed")
    } else {
        format!("{now} {what}, no longer {allowed}: lower the figure in {BASELINE_FILE}")
    };
    Some(Finding::new(place, None, text))
}

fn not_there(name: &str) -> Finding {
    Finding::new(name, None, format!("there is no such crate: remove it from {BASELINE_FILE}"))
}
