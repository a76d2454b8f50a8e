//! Which files count as one module: the file of a type, and the files that only hold parts of its `impl`.
//!
//! Such a part has `impl` blocks of types that one file above it or beside it defines, and besides them
//! nothing that another file can name.

use super::names::Names;
use super::tree::Tree;

/// For each file, the file of which it is a part: itself, if it is none.
#[derive(Debug)]
pub(super) struct Parts {
    whole: Vec<usize>,
}

impl Parts {
    pub(super) fn new(tree: &Tree, names: &Names<'_>) -> Self {
        Self { whole: (0..tree.files.len()).map(|file| whole(tree, names, file)).collect() }
    }

    /// The file that stands for the module to which a file belongs.
    pub(super) fn module_of(&self, file: usize) -> usize {
        let mut at = file;
        // A step leads up, or beside to a file that others can name and that is therefore no part.
        while self.whole[at] != at {
            at = self.whole[at];
        }
        at
    }
}

/// The file whose type's `impl` this file carries a part of, or the file itself.
fn whole(tree: &Tree, names: &Names<'_>, file: usize) -> usize {
    let source = &tree.files[file];
    let (Some(parent), false) = (tree.parent_file(file), source.offers) else { return file };
    let mut homes = Vec::new();
    for (module, path) in &source.impls {
        let targets = path.as_ref().map(|path| names.resolve(*module, path)).unwrap_or_default();
        let Some(home) = targets.into_iter().find_map(|target| names.file_of(target)) else {
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
