//! Sizes: the lines of a crate, and structs with many fields that are passed between modules.

use super::names::{Names, Target};
use super::parts::Parts;
use super::tree::{Kind, Tree};
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of lines of a crate, without tests.
pub(super) const CRATE_LINES_MAX: usize = 12_000;
/// A struct with more fields may be passed to at most one module.
pub(super) const FIELDS_MAX: usize = 12;

/// A struct with many fields, and the other modules that take it by `&mut`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wide {
    /// The path of its file, and its name.
    pub(super) name: String,
    pub(super) fields: usize,
    /// For each module, the first such parameter: path and line.
    pub(super) takers: Vec<String>,
}

/// Returns the lines of a crate, without tests.
pub(super) fn lines(tree: &Tree, krate: usize) -> usize {
    tree.files_of(krate).map(|file| tree.files[file].lines).sum()
}

/// Returns the structs with too many fields that more than one module takes by `&mut`.
pub(super) fn wide_structs(tree: &Tree, names: &Names<'_>, parts: &Parts) -> Vec<Wide> {
    let mut found: BTreeMap<(usize, usize), BTreeMap<usize, String>> = BTreeMap::new();
    for (user, source) in tree.files.iter().enumerate() {
        for mention in &source.borrowed {
            for target in names.resolve(mention.module, &mention.path) {
                let Target::Definition(module, index) = target else { continue };
                let Kind::Struct(fields) = tree.modules[module].definitions[index].kind else {
                    continue;
                };
                let taker = parts.module_of(user);
                if fields > FIELDS_MAX && taker != parts.module_of(tree.modules[module].file) {
                    let place = format!("{}:{}", source.path, mention.line);
                    let takers = found.entry((module, index)).or_default();
                    takers.entry(taker).or_insert(place);
                }
            }
        }
    }
    let passed = found.into_iter().filter(|(_, takers)| takers.len() > 1);
    let mut structs: Vec<Wide> = passed
        .filter_map(|((module, index), takers)| {
            let definition = &tree.modules[module].definitions[index];
            let Kind::Struct(fields) = definition.kind else { return None };
            let path = &tree.files[tree.modules[module].file].path;
            let places: BTreeSet<String> = takers.into_values().collect();
            Some(Wide {
                name: format!("{path} {}", definition.name),
                fields,
                takers: places.into_iter().collect(),
            })
        })
        .collect();
    structs.sort_by(|one, other| one.name.cmp(&other.name));
    structs
}
