//! Sizes: the lines of a crate, and structs with many fields that are passed between modules.

use super::names::Target;
use super::parts::Parts;
use super::tree::{Kind, Tree};
use crate::tidy::finding::Finding;
use std::collections::BTreeMap;

/// The maximum number of lines of a crate, without tests.
const CRATE_LINES_MAX: usize = 12_000;
/// A struct with more fields may be passed to at most one module.
const FIELDS_MAX: usize = 12;

/// Returns findings for crates with too many lines. A library and the programs beside it count together.
pub(super) fn large_crates(tree: &Tree) -> Vec<Finding> {
    let mut lines: BTreeMap<&str, usize> = BTreeMap::new();
    for (file, source) in tree.files.iter().enumerate() {
        *lines.entry(&tree.crates[tree.krate_of(file)].name).or_default() += source.lines;
    }
    let large = lines.into_iter().filter(|(_, lines)| *lines > CRATE_LINES_MAX);
    let finding = |(name, lines): (&str, usize)| {
        let text = format!("{lines} lines without tests; at most {CRATE_LINES_MAX}: split it");
        Finding::new(name, None, text)
    };
    large.map(finding).collect()
}

/// Returns findings for structs with too many fields that more than one other module takes by `&mut`.
pub(super) fn wide_structs(tree: &Tree, parts: &Parts) -> Vec<Finding> {
    // By struct: the modules that take it, each with the place of its first such parameter.
    let mut found: BTreeMap<(usize, usize), BTreeMap<usize, String>> = BTreeMap::new();
    for (user, source) in tree.files.iter().enumerate() {
        for mention in &source.borrowed {
            for target in tree.resolve(mention.module, &mention.path) {
                let Target::Definition(module, index) = target else { continue };
                let is_wide = matches!(
                    tree.modules[module].definitions[index].kind,
                    Kind::Struct(fields) if fields > FIELDS_MAX
                );
                let taker = parts.module_of(user);
                if is_wide && taker != parts.module_of(tree.modules[module].file) {
                    let place = format!("{}:{}", source.path, mention.line);
                    found.entry((module, index)).or_default().entry(taker).or_insert(place);
                }
            }
        }
    }
    let passed = found.into_iter().filter(|(_, takers)| takers.len() > 1);
    let finding = |((module, index), takers): ((usize, usize), BTreeMap<usize, String>)| {
        let (path, name) = (
            &tree.files[tree.modules[module].file].path,
            &tree.modules[module].definitions[index].name,
        );
        let takers: Vec<String> = takers.into_values().collect();
        let text = format!(
            "`{name}` has more than {FIELDS_MAX} fields; one module may take it by `&mut`, not these: {}",
            takers.join(", ")
        );
        Finding::new(path, None, text)
    };
    passed.map(finding).collect()
}
