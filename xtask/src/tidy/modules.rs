//! Rules about modules: no import cycles inside a crate, no crate that is too large, no large struct that is passed
//! between modules.

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
use cycles::Imports;
use parts::Parts;
use tree::{Texts, Tree};

/// Checks all crates of the checkout.
pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let tree = read(files);
    let parts = Parts::new(&tree);
    let unread = tree
        .unread
        .iter()
        .map(|(path, error)| Finding::new(path, None, format!("cannot be read as Rust: {error}")));
    let mut findings: Vec<Finding> = unread.collect();
    for (number, krate) in tree.crates.iter().enumerate() {
        let imports = Imports::new(&tree, &parts, number);
        let cycles = imports.file_cycles().into_iter().chain(imports.folder_cycles());
        findings.extend(cycles.map(|cycle| Finding::new(&krate.name, None, cycle.text)));
    }
    findings.extend(sizes::large_crates(&tree));
    findings.extend(sizes::wide_structs(&tree, &parts));
    findings
}

/// Returns each use of one member of a cycle by another, in one crate.
pub(super) fn uses_in_cycles(files: &[File], of: &str) -> Vec<String> {
    let tree = read(files);
    let parts = Parts::new(&tree);
    let mut lines = Vec::new();
    for krate in (0..tree.crates.len()).filter(|krate| tree.crates[*krate].name == of) {
        let imports = Imports::new(&tree, &parts, krate);
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
