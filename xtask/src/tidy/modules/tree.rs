//! The modules of a crate, read from its files: what each file defines, imports and names.
//!
//! Test code is left out: items behind `cfg(test)` and `cfg(doctest)`, and the files that they declare.

use std::collections::{BTreeMap, HashSet};

/// Texts by path, from the root of the checkout, with `/`.
pub(super) type Texts<'a> = BTreeMap<&'a str, &'a str>;

/// All crates that were read.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) crates: Vec<Crate>,
    pub(super) modules: Vec<Module>,
    pub(super) files: Vec<SourceFile>,
    /// Files that could not be read as Rust, with the reason.
    pub(super) unread: Vec<(String, String)>,
}

/// One root with the modules below it: a library or a program.
#[derive(Debug)]
pub(super) struct Crate {
    /// The name by which other crates use it; a program has none that they could use.
    pub(super) name: String,
    pub(super) is_library: bool,
    pub(super) root: usize,
}

/// A module: a file, or an inline module of one.
#[derive(Debug)]
pub(super) struct Module {
    pub(super) parent: Option<usize>,
    pub(super) krate: usize,
    pub(super) file: usize,
    pub(super) definitions: Vec<Definition>,
    pub(super) imports: Vec<Import>,
    /// Every word in calls of macros that stand as items: some of them are names that the macro defines.
    pub(super) macro_words: HashSet<String>,
}

/// A name that a module defines.
#[derive(Debug)]
pub(super) struct Definition {
    pub(super) name: String,
    pub(super) kind: Kind,
}

/// What a name stands for.
#[derive(Debug)]
pub(super) enum Kind {
    Module(usize),
    /// With the number of its fields.
    Struct(usize),
    /// With its variants.
    Enum(Vec<String>),
    /// By `macro_rules!`.
    Macro,
    /// A trait, an alias, a function, a constant.
    Other,
}

/// One leaf of a `use`.
#[derive(Debug)]
pub(super) struct Import {
    /// The name it gives, or nothing for `*`.
    pub(super) name: Option<String>,
    pub(super) path: Vec<String>,
}

/// A file of the tree.
#[derive(Debug)]
pub(super) struct SourceFile {
    pub(super) path: String,
    pub(super) module: usize,
    /// Lines without test code.
    pub(super) lines: usize,
    pub(super) mentions: Vec<Mention>,
    /// Self types of the `impl` blocks, and the module in which they stand.
    pub(super) impls: Vec<(usize, Option<Vec<String>>)>,
    /// It has an item that other files can name: then it is more than a part of an `impl`.
    pub(super) offers: bool,
    /// Types of `&mut` parameters.
    pub(super) borrowed: Vec<Mention>,
}

/// A path that stands in a file.
#[derive(Clone, Debug)]
pub(super) struct Mention {
    /// The module in whose scope it stands.
    pub(super) module: usize,
    pub(super) path: Vec<String>,
    pub(super) line: usize,
    /// A macro's name: it may be in scope by the order of the text.
    pub(super) is_macro: bool,
}

impl Tree {
    /// The files of one crate.
    pub(super) fn files_of(&self, krate: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.files.len()).filter(move |file| self.krate_of(*file) == krate)
    }

    pub(super) fn krate_of(&self, file: usize) -> usize {
        self.modules[self.files[file].module].krate
    }

    /// The module above a file's module, if it is no root.
    pub(super) fn parent_file(&self, file: usize) -> Option<usize> {
        let parent = self.modules[self.files[file].module].parent?;
        Some(self.modules[parent].file)
    }

    /// The files from a file up to its root, the file itself first.
    pub(super) fn line_of(&self, file: usize) -> Vec<usize> {
        let mut line = vec![file];
        while let Some(parent) = self.parent_file(line[line.len() - 1]) {
            line.push(parent);
        }
        line
    }
}
