//! Determines which files count as one module: the file of a type, and the files that only contain parts of its `impl`.
//!
//! Such a part contains `impl` blocks of types that one file above it or beside it defines, and no other item that
//! another file can name.

use super::tree::Tree;

/// For each file, the file of which it is a part, or the file itself.
#[derive(Debug)]
pub(super) struct Parts {
    whole: Vec<usize>,
}

impl Parts {
    pub(super) fn new(tree: &Tree) -> Self {
        Self { whole: (0..tree.files.len()).map(|file| whole(tree, file)).collect() }
    }

    /// Returns the file that represents the module of a file.
    pub(super) fn module_of(&self, file: usize) -> usize {
        let mut at = file;
        // Each step leads up, or beside to a file with items that other files can name, which is therefore not a part.
        // So the loop ends.
        while self.whole[at] != at {
            at = self.whole[at];
        }
        at
    }
}

/// Returns the file that defines the type whose `impl` this file continues, or the file itself.
fn whole(tree: &Tree, file: usize) -> usize {
    let source = &tree.files[file];
    let (Some(parent), false) = (tree.parent_file(file), source.offers) else { return file };
    let mut homes = Vec::new();
    for (module, path) in &source.impls {
        let targets = path.as_ref().map(|path| tree.resolve(*module, path)).unwrap_or_default();
        let Some(home) = targets.into_iter().find_map(|target| tree.file_of(target)) else {
            return file;
        };
        if home != file && !homes.contains(&home) {
            homes.push(home);
        }
    }
    let [home] = homes[..] else { return file };
    let is_near = tree.line_of(file).contains(&home) || tree.parent_file(home) == Some(parent);
    if is_near && tree.krate_of(home) == tree.krate_of(file) { home } else { file }
}
