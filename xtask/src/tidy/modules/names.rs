//! Resolves a path to the file that defines what it names; re-exports are followed.

use super::tree::{Kind, Tree};
use std::collections::HashSet;

/// What a path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// A module as such: naming it uses nothing of it.
    Module(usize),
    /// A definition of a module, by its index; for an enum's variant, the enum.
    Definition(usize, usize),
    /// A name that the module has, but not in its text: a macro makes it.
    Made(usize),
}

/// Where a name can be looked up.
#[derive(Debug)]
pub(super) struct Names<'a> {
    tree: &'a Tree,
}

/// A name that is being looked up, so that imports in a circle end.
type Seen = HashSet<(usize, String)>;

/// The result of one look-up.
enum Found {
    Here(Vec<Target>),
    /// It comes from a crate that is not of this workspace.
    Elsewhere,
    Nowhere,
}

impl<'a> Names<'a> {
    pub(super) fn new(tree: &'a Tree) -> Self {
        Self { tree }
    }

    /// Everything that a path can name in the scope of a module; nothing if it is foreign.
    pub(super) fn resolve(&self, module: usize, path: &[String]) -> Vec<Target> {
        match self.path(module, path, &mut Seen::new()) {
            Found::Here(targets) => targets,
            Found::Elsewhere | Found::Nowhere => Vec::new(),
        }
    }

    /// The file in which a target is defined.
    pub(super) fn file_of(&self, target: Target) -> Option<usize> {
        match target {
            Target::Module(_) => None,
            Target::Definition(module, _) | Target::Made(module) => {
                Some(self.tree.modules[module].file)
            }
        }
    }

    fn path(&self, module: usize, path: &[String], seen: &mut Seen) -> Found {
        let Some((first, rest)) = path.split_first() else { return Found::Nowhere };
        match first.as_str() {
            "crate" => {
                let root = self.tree.crates[self.tree.modules[module].krate].root;
                self.below(root, rest, seen)
            }
            "self" => self.below(module, rest, seen),
            "super" => match self.tree.modules[module].parent {
                Some(parent) => self.above(parent, rest, seen),
                None => Found::Nowhere,
            },
            "Self" => Found::Nowhere,
            _ => match self.name(module, first, seen) {
                Found::Here(targets) => self.after(targets, rest, seen),
                Found::Elsewhere => Found::Elsewhere,
                Found::Nowhere if rest.is_empty() => Found::Nowhere,
                Found::Nowhere => self.foreign(first, rest, seen),
            },
        }
    }

    /// After a `super`, another may follow.
    fn above(&self, module: usize, rest: &[String], seen: &mut Seen) -> Found {
        if rest.first().is_some_and(|next| next == "super") {
            self.path(module, rest, seen)
        } else {
            self.below(module, rest, seen)
        }
    }

    /// A path that begins with the name of a crate.
    fn foreign(&self, name: &str, rest: &[String], seen: &mut Seen) -> Found {
        let ours = self.tree.crates.iter().find(|one| one.is_library && one.name == name);
        match ours {
            Some(krate) => self.below(krate.root, rest, seen),
            None => Found::Elsewhere,
        }
    }

    fn below(&self, module: usize, rest: &[String], seen: &mut Seen) -> Found {
        let Some((name, after)) = rest.split_first() else {
            return Found::Here(vec![Target::Module(module)]);
        };
        match self.name(module, name, seen) {
            Found::Here(targets) => self.after(targets, after, seen),
            Found::Elsewhere => Found::Elsewhere,
            Found::Nowhere => Found::Here(vec![Target::Made(module)]),
        }
    }

    fn after(&self, targets: Vec<Target>, rest: &[String], seen: &mut Seen) -> Found {
        if rest.is_empty() {
            return Found::Here(targets);
        }
        // What follows the name of a type is its own; only a module is looked into.
        let inner = targets.iter().find_map(|target| match target {
            Target::Module(module) => Some(*module),
            Target::Definition(..) | Target::Made(_) => None,
        });
        let others = targets.iter().any(|target| match target {
            Target::Definition(module, index) => {
                matches!(
                    self.tree.modules[*module].definitions[*index].kind,
                    Kind::Struct(_) | Kind::Enum(_)
                )
            }
            _ => false,
        });
        match inner {
            Some(module) if !others => self.below(module, rest, seen),
            _ => Found::Here(targets),
        }
    }

    /// A name in the scope of a module, or visible in it from outside.
    fn name(&self, module: usize, name: &str, seen: &mut Seen) -> Found {
        if !seen.insert((module, name.to_owned())) {
            return Found::Nowhere;
        }
        let found = self.name_once(module, name, seen);
        seen.remove(&(module, name.to_owned()));
        found
    }

    fn name_once(&self, module: usize, name: &str, seen: &mut Seen) -> Found {
        let scope = &self.tree.modules[module];
        let mut targets = Vec::new();
        for (index, definition) in scope.definitions.iter().enumerate() {
            if definition.name == name {
                targets.push(match definition.kind {
                    Kind::Module(inner) => Target::Module(inner),
                    _ => Target::Definition(module, index),
                });
            }
        }
        let mut is_foreign = false;
        for import in scope.imports.iter().filter(|one| one.name.as_deref() == Some(name)) {
            match self.path(module, &import.path, seen) {
                Found::Here(found) => targets.extend(found),
                // A crate's own name leads into it.
                Found::Nowhere if import.path.len() == 1 => {
                    match self.foreign(&import.path[0], &[], seen) {
                        Found::Here(found) => targets.extend(found),
                        _ => is_foreign = true,
                    }
                }
                Found::Elsewhere | Found::Nowhere => is_foreign = true,
            }
        }
        if !targets.is_empty() {
            return Found::Here(targets);
        }
        if is_foreign {
            return Found::Elsewhere;
        }
        if scope.macro_words.contains(name) {
            return Found::Here(vec![Target::Made(module)]);
        }
        self.through_globs(module, name, seen)
    }

    fn through_globs(&self, module: usize, name: &str, seen: &mut Seen) -> Found {
        let mut is_foreign = false;
        for import in self.tree.modules[module].imports.iter().filter(|one| one.name.is_none()) {
            match self.path(module, &import.path, seen) {
                Found::Here(targets) => {
                    for target in targets {
                        match self.inside(target, name, seen) {
                            Found::Nowhere => {}
                            found => return found,
                        }
                    }
                }
                Found::Elsewhere => is_foreign = true,
                Found::Nowhere => {}
            }
        }
        // What a foreign `*` brings is not known.
        if is_foreign { Found::Elsewhere } else { Found::Nowhere }
    }

    /// A name that `target::*` brings.
    fn inside(&self, target: Target, name: &str, seen: &mut Seen) -> Found {
        match target {
            Target::Module(module) => self.name(module, name, seen),
            Target::Definition(module, index) => {
                match &self.tree.modules[module].definitions[index].kind {
                    Kind::Enum(variants) if variants.iter().any(|one| one == name) => {
                        Found::Here(vec![target])
                    }
                    _ => Found::Nowhere,
                }
            }
            Target::Made(_) => Found::Nowhere,
        }
    }
}
