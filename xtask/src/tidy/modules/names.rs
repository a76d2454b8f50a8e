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

/// The names that are being looked up, so that circular imports end.
type Seen = HashSet<(usize, String)>;

/// What a name means: nothing that is known, or all of its targets in this workspace. They are empty if the name comes
/// from another crate.
type Found = Option<Vec<Target>>;

impl Tree {
    /// Returns everything that a path can name in the scope of a module, or nothing if it is foreign.
    pub(super) fn resolve(&self, module: usize, path: &[String]) -> Vec<Target> {
        self.path(module, path, &mut Seen::new()).unwrap_or_default()
    }

    /// Returns the file in which a target is defined.
    pub(super) fn file_of(&self, target: Target) -> Option<usize> {
        match target {
            Target::Module(_) => None,
            Target::Definition(module, _) | Target::Made(module) => Some(self.modules[module].file),
        }
    }

    fn path(&self, module: usize, path: &[String], seen: &mut Seen) -> Found {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => self.below(self.crates[self.modules[module].krate].root, rest, seen),
            "self" => self.below(module, rest, seen),
            "super" => {
                let parent = self.modules[module].parent?;
                // After a `super` may come another.
                let is_last = rest.first().is_none_or(|next| next != "super");
                if is_last { self.below(parent, rest, seen) } else { self.path(parent, rest, seen) }
            }
            "Self" => None,
            _ => match self.name(module, first, seen) {
                Some(targets) => self.after(targets, rest, seen),
                None if rest.is_empty() => None,
                None => self.foreign(first, rest, seen),
            },
        }
    }

    /// Resolves a path that begins with the name of a crate.
    fn foreign(&self, name: &str, rest: &[String], seen: &mut Seen) -> Found {
        let ours = self.crates.iter().find(|one| one.is_library && one.name == name);
        ours.map_or_else(|| Some(Vec::new()), |krate| self.below(krate.root, rest, seen))
    }

    fn below(&self, module: usize, rest: &[String], seen: &mut Seen) -> Found {
        let Some((name, after)) = rest.split_first() else {
            return Some(vec![Target::Module(module)]);
        };
        match self.name(module, name, seen) {
            Some(targets) => self.after(targets, after, seen),
            None => Some(vec![Target::Made(module)]),
        }
    }

    fn after(&self, targets: Vec<Target>, rest: &[String], seen: &mut Seen) -> Found {
        // A name after a type belongs to the type. Only modules are searched.
        let is_type = |target: &Target| match target {
            Target::Definition(module, index) => matches!(
                self.modules[*module].definitions[*index].kind,
                Kind::Struct(_) | Kind::Enum(_)
            ),
            Target::Module(_) | Target::Made(_) => false,
        };
        let inner = targets.iter().find_map(|target| match target {
            Target::Module(module) => Some(*module),
            Target::Definition(..) | Target::Made(_) => None,
        });
        match inner {
            Some(module) if !rest.is_empty() && !targets.iter().any(is_type) => {
                self.below(module, rest, seen)
            }
            _ => Some(targets),
        }
    }

    /// Looks up a name in the scope of a module, or one that is visible in it from outside.
    fn name(&self, module: usize, name: &str, seen: &mut Seen) -> Found {
        if !seen.insert((module, name.to_owned())) {
            return None;
        }
        let found = self.name_once(module, name, seen);
        seen.remove(&(module, name.to_owned()));
        found
    }

    fn name_once(&self, module: usize, name: &str, seen: &mut Seen) -> Found {
        let scope = &self.modules[module];
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
            let found = match (self.path(module, &import.path, seen), &import.path[..]) {
                // The name of a crate refers to its root.
                (None, [krate]) => self.foreign(krate, &[], seen),
                (found, _) => found,
            };
            let found = found.unwrap_or_default();
            is_foreign |= found.is_empty();
            targets.extend(found);
        }
        if is_foreign || !targets.is_empty() {
            return Some(targets);
        }
        if scope.macro_words.contains(name) {
            return Some(vec![Target::Made(module)]);
        }
        self.through_globs(module, name, seen)
    }

    fn through_globs(&self, module: usize, name: &str, seen: &mut Seen) -> Found {
        let mut is_foreign = false;
        for import in self.modules[module].imports.iter().filter(|one| one.name.is_none()) {
            let Some(targets) = self.path(module, &import.path, seen) else { continue };
            // The names that a foreign `*` imports are unknown.
            is_foreign |= targets.is_empty();
            let found = targets.into_iter().find_map(|target| self.inside(target, name, seen));
            if found.is_some() {
                return found;
            }
        }
        is_foreign.then(Vec::new)
    }

    /// Looks up a name that `target::*` imports.
    fn inside(&self, target: Target, name: &str, seen: &mut Seen) -> Found {
        match target {
            Target::Module(module) => self.name(module, name, seen),
            Target::Definition(module, index) => {
                match &self.modules[module].definitions[index].kind {
                    Kind::Enum(variants) if variants.iter().any(|one| one == name) => {
                        Some(vec![target])
                    }
                    _ => None,
                }
            }
            Target::Made(_) => None,
        }
    }
}
