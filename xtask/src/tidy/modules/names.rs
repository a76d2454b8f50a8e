//! Resolves a path to the file that defines the named item. Re-exports are followed.

use super::tree::{Kind, Tree};
use std::collections::HashSet;

/// The target of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// A module. Naming a module does not count as using its items.
    Module(usize),
    /// A definition of a module, by its index; for a variant of an enum, the enum.
    Definition(usize, usize),
    /// A name that a macro in the module defines, so it does not appear as a definition in the text.
    Made(usize),
}

/// Looks up names.
#[derive(Debug)]
pub(super) struct Names<'a> {
    tree: &'a Tree,
}

/// The names that are being looked up, so that circular imports end.
type Seen = HashSet<(usize, String)>;

/// The result of one lookup.
enum Found {
    Here(Vec<Target>),
    /// The name comes from a crate outside this workspace.
    Elsewhere,
    Nowhere,
}

impl<'a> Names<'a> {
    pub(super) fn new(tree: &'a Tree) -> Self {
        Self { tree }
    }

    /// Returns everything that a path can name in the scope of a module, or nothing if it is foreign.
    pub(super) fn resolve(&self, module: usize, path: &[String]) -> Vec<Target> {
        match self.path(module, path, &mut Seen::new()) {
            Found::Here(targets) => targets,
            Found::Elsewhere | Found::Nowhere => Vec::new(),
        }
    }

    /// Returns the file in which a target is defined.
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

    /// Resolves the rest after a `super`, which may be another `super`.
    fn above(&self, module: usize, rest: &[String], seen: &mut Seen) -> Found {
        if rest.first().is_some_and(|next| next == "super") {
            self.path(module, rest, seen)
        } else {
            self.below(module, rest, seen)
        }
    }

    /// Resolves a path that begins with the name of a crate.
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
        // A name after a type belongs to the type. Only modules are searched.
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

    /// Looks up a name in the scope of a module, or one that is visible in it from outside.
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
                // The name of a crate refers to its root.
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
        // The names that a foreign `*` imports are unknown.
        if is_foreign { Found::Elsewhere } else { Found::Nowhere }
    }

    /// Looks up a name that `target::*` imports.
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
