//! Import cycles between the files of one crate.
//!
//! A module may use its child, so each parent counts as using its children, and a child that uses its parent closes a
//! cycle. A child that only contains `impl` blocks of a type counts as one module with the file that defines the type,
//! if that file is above it or beside it.

use super::graph::{self, Graph};
use super::names::Target;
use super::parts::Parts;
use super::tree::{Kind, Tree};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Uses of one file by another: the line and the item of each.
type Uses = BTreeMap<(usize, usize), Vec<(usize, String)>>;

/// The files of a crate and their uses of each other.
#[derive(Debug)]
pub(super) struct Imports<'a> {
    tree: &'a Tree,
    parts: &'a Parts,
    files: Vec<usize>,
    uses: Uses,
}

/// A strongly connected component.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Component {
    /// The members of the cycle: files, or folders with their files.
    pub(super) members: Vec<usize>,
    /// The members and the shortest cycle, as text for people.
    pub(super) text: String,
}

impl<'a> Imports<'a> {
    pub(super) fn new(tree: &'a Tree, parts: &'a Parts, krate: usize) -> Self {
        let files: Vec<usize> = tree.files_of(krate).collect();
        let mut uses = Uses::new();
        for file in &files {
            for mention in &tree.files[*file].mentions {
                let targets = if mention.is_macro && mention.path.len() == 1 {
                    textual_macro(tree, mention.module, &mention.path)
                } else {
                    tree.resolve(mention.module, &mention.path)
                };
                for target in targets {
                    let Some(to) = tree.file_of(target) else { continue };
                    if to != *file && tree.krate_of(to) == krate {
                        let item = item_name(tree, target, &mention.path);
                        let known = uses.entry((*file, to)).or_default();
                        if !known.iter().any(|(_, one)| *one == item) {
                            known.push((mention.line, item));
                        }
                    }
                }
            }
        }
        Self { tree, parts, files, uses }
    }

    /// Returns the cycles between files. A type and the parts of its `impl` count as one file.
    pub(super) fn file_cycles(&self) -> Vec<Component> {
        let mut graph = Graph::new();
        for (from, to) in self.uses.keys() {
            self.connect(&mut graph, *from, *to);
        }
        for file in &self.files {
            if let Some(parent) = self.tree.parent_file(*file)
                && self.parts.module_of(*file) == *file
            {
                self.connect(&mut graph, parent, *file);
            }
        }
        let components = graph::components(&graph);
        components
            .into_iter()
            .map(|component| {
                let of = |file: usize| Some(self.parts.module_of(file));
                let text = self.describe(&graph, &component, "files", &of);
                let inside = |file: &usize| component.contains(&self.parts.module_of(*file));
                let members = self.files.iter().copied().filter(inside).collect();
                Component { members, text }
            })
            .collect()
    }

    /// Returns the cycles between modules of one parent, each with everything below it, unless they appear as cycles
    /// between files.
    pub(super) fn folder_cycles(&self) -> Vec<Component> {
        let known = self.file_cycles();
        let mut found = Vec::new();
        for parent in &self.files {
            let of = |file: usize| self.child_above(*parent, self.parts.module_of(file));
            let mut graph = Graph::new();
            for (from, to) in self.uses.keys() {
                if let (Some(from), Some(to)) = (of(*from), of(*to))
                    && from != to
                {
                    graph.entry(from).or_default().insert(to);
                    graph.entry(to).or_default();
                }
            }
            for component in graph::components(&graph) {
                let shown =
                    |one: &Component| component.iter().all(|file| one.members.contains(file));
                if known.iter().any(shown) {
                    continue;
                }
                let text = self.describe(&graph, &component, "folders", &of);
                found.push(Component { members: component, text });
            }
        }
        found
    }

    fn connect(&self, graph: &mut Graph, from: usize, to: usize) {
        let (from, to) = (self.parts.module_of(from), self.parts.module_of(to));
        graph.entry(to).or_default();
        if from != to {
            graph.entry(from).or_default().insert(to);
        }
    }

    /// Returns the child of `parent` that is this file or contains it.
    fn child_above(&self, parent: usize, file: usize) -> Option<usize> {
        let line = self.tree.line_of(file);
        let place = line.iter().position(|one| *one == parent)?;
        line[..place].last().copied()
    }

    fn describe(
        &self,
        graph: &Graph,
        component: &[usize],
        what: &str,
        node_of: &dyn Fn(usize) -> Option<usize>,
    ) -> String {
        let path = |file: usize| self.tree.files[file].path.as_str();
        let members: Vec<&str> = component.iter().map(|file| path(*file)).collect();
        let mut text = format!("cycle of {} {what}: {}", members.len(), members.join(", "));
        let cycle = graph::shortest_cycle(graph, component);
        for (index, from) in cycle.iter().enumerate() {
            let to = cycle[(index + 1) % cycle.len()];
            let uses = self.between(*from, to, node_of);
            write!(text, "\n    {} -> {}: {uses}", path(*from), path(to)).expect("a string");
        }
        text
    }

    /// Returns every use of one member of a component by another, one line each.
    pub(super) fn all_uses(&self, component: &Component) -> Vec<String> {
        let inside = |file: usize| component.members.contains(&self.parts.module_of(file));
        let outer = self.uses.iter().filter(|((from, to), _)| {
            self.parts.module_of(*from) != self.parts.module_of(*to) && inside(*from) && inside(*to)
        });
        outer
            .flat_map(|((from, to), uses)| {
                let (from, to) = (&self.tree.files[*from].path, &self.tree.files[*to].path);
                uses.iter().map(move |(line, item)| format!("{from}:{line} -> {to}: {item}"))
            })
            .collect()
    }

    fn between(&self, from: usize, to: usize, node_of: &dyn Fn(usize) -> Option<usize>) -> String {
        let mut shown = Vec::new();
        for ((user, used), uses) in &self.uses {
            if node_of(*user) == Some(from) && node_of(*used) == Some(to) {
                let user = &self.tree.files[*user].path;
                shown.extend(uses.iter().map(|(line, item)| format!("{item} at {user}:{line}")));
            }
        }
        if shown.is_empty() { "its child".to_owned() } else { shown.join(", ") }
    }
}

/// Resolves a macro that is in scope by a path, or because its definition comes earlier in the text.
fn textual_macro(tree: &Tree, module: usize, path: &[String]) -> Vec<Target> {
    let found = tree.resolve(module, path);
    if !found.is_empty() {
        return found;
    }
    let krate = tree.modules[module].krate;
    let scopes = tree.modules.iter().enumerate().filter(|(_, scope)| scope.krate == krate);
    let definitions = scopes.flat_map(|(scope, defined)| {
        let macros = defined.definitions.iter().enumerate().filter(|(_, definition)| {
            definition.name == path[0] && matches!(definition.kind, Kind::Macro)
        });
        macros.map(move |(index, _)| Target::Definition(scope, index))
    });
    definitions.collect()
}

fn item_name(tree: &Tree, target: Target, path: &[String]) -> String {
    match target {
        Target::Definition(module, index) => tree.modules[module].definitions[index].name.clone(),
        Target::Module(_) | Target::Made(_) => path.last().cloned().unwrap_or_default(),
    }
}
