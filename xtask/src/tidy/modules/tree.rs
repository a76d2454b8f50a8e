//! The modules of a crate, read from its files: what each file defines, imports and names.
//!
//! Test code is excluded: items with `cfg(test)` and `cfg(doctest)`, and the files that they declare.

use std::collections::{BTreeMap, HashSet};

/// Texts by path, from the root of the checkout, with `/`.
pub(super) type Texts<'a> = BTreeMap<&'a str, &'a str>;

/// All crates that were read.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) crates: Vec<Crate>,
    pub(super) modules: Vec<Module>,
    pub(super) files: Vec<SourceFile>,
    /// Files that could not be parsed as Rust, with the reason.
    pub(super) unread: Vec<(String, String)>,
}

/// One root with the modules below it: a library or a program.
#[derive(Debug)]
pub(super) struct Crate {
    /// The name by which other crates use it. A program has no such name.
    pub(super) name: String,
    pub(super) is_library: bool,
    pub(super) root: usize,
}

/// A module: a file, or an inline module in a file.
#[derive(Debug, Default)]
pub(super) struct Module {
    pub(super) parent: Option<usize>,
    pub(super) krate: usize,
    pub(super) file: usize,
    pub(super) definitions: Vec<Definition>,
    pub(super) imports: Vec<Import>,
    /// Every word in macro calls that are items. Some of them are names that the macro defines.
    pub(super) macro_words: HashSet<String>,
}

/// A name that a module defines.
#[derive(Debug)]
pub(super) struct Definition {
    pub(super) name: String,
    pub(super) kind: Kind,
}

/// The kind of a definition.
#[derive(Debug)]
pub(super) enum Kind {
    Module(usize),
    /// A struct, with the number of its fields.
    Struct(usize),
    /// An enum, with its variants.
    Enum(Vec<String>),
    /// A macro, defined by `macro_rules!`.
    Macro,
    /// A trait, an alias, a function, a constant.
    Other,
}

/// One leaf of a `use`.
#[derive(Debug)]
pub(super) struct Import {
    /// The name that it defines, or `None` for `*`.
    pub(super) name: Option<String>,
    pub(super) path: Vec<String>,
}

/// A file of the tree.
#[derive(Debug, Default)]
pub(super) struct SourceFile {
    pub(super) path: String,
    pub(super) module: usize,
    /// The number of lines without test code.
    pub(super) lines: usize,
    pub(super) mentions: Vec<Mention>,
    /// The self types of the `impl` blocks, and the module that contains them.
    pub(super) impls: Vec<(usize, Option<Vec<String>>)>,
    /// Whether the file has an item that other files can name. Then it is more than a part of an `impl`.
    pub(super) offers: bool,
    /// The types of `&mut` parameters.
    pub(super) borrowed: Vec<Mention>,
}

/// A path in a file.
#[derive(Clone, Debug)]
pub(super) struct Mention {
    /// The module that contains the path.
    pub(super) module: usize,
    pub(super) path: Vec<String>,
    pub(super) line: usize,
    /// Whether it is the name of a macro, which may be in scope by the order of the text.
    pub(super) is_macro: bool,
}

impl Tree {
    /// Returns the files of one crate.
    pub(super) fn files_of(&self, krate: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.files.len()).filter(move |file| self.krate_of(*file) == krate)
    }

    pub(super) fn krate_of(&self, file: usize) -> usize {
        self.modules[self.files[file].module].krate
    }

    /// Returns the module above the module of a file, if it is not a root.
    pub(super) fn parent_file(&self, file: usize) -> Option<usize> {
        let parent = self.modules[self.files[file].module].parent?;
        Some(self.modules[parent].file)
    }

    /// Returns the files from a file up to its root, the file itself first.
    pub(super) fn line_of(&self, file: usize) -> Vec<usize> {
        let mut line = vec![file];
        while let Some(parent) = self.parent_file(line[line.len() - 1]) {
            line.push(parent);
        }
        line
    }
}
