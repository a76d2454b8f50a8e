//! Reads a file with `syn` into the tree, and then the files that it declares.

use super::tokens;
use super::tree::{Crate, Definition, Import, Kind, Mention, Module, SourceFile, Texts, Tree};
use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Item, Meta, Type, UseTree, Visibility};

/// Reads a library or a program from its root file.
pub(super) fn read(tree: &mut Tree, texts: &Texts<'_>, name: &str, root: &str) {
    let krate = tree.crates.len();
    let is_library = root.ends_with("/lib.rs");
    let name = name.replace('-', "_");
    tree.crates.push(Crate { name, is_library, root: tree.modules.len() });
    let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
    file(tree, texts, &Place { krate, parent: None, path: root, folder });
}

/// The position of a file in the tree.
#[derive(Debug)]
struct Place<'a> {
    krate: usize,
    parent: Option<usize>,
    path: &'a str,
    /// The folder of the files of its child modules.
    folder: &'a str,
}

/// Reads a file as a module.
///
/// Returns the module, or nothing if the file does not exist or is not Rust.
fn file(tree: &mut Tree, texts: &Texts<'_>, place: &Place<'_>) -> Option<usize> {
    let text = texts.get(place.path)?;
    let syntax = match syn::parse_file(text) {
        Ok(syntax) => syntax,
        Err(error) => {
            tree.unread.push((place.path.to_owned(), error.to_string()));
            return None;
        }
    };
    if is_test(&syntax.attrs) {
        return None;
    }
    let module = tree.modules.len();
    let file = tree.files.len();
    let Place { krate, parent, path, folder } = *place;
    tree.modules.push(Module { parent, krate, file, ..Module::default() });
    let (path, lines) = (path.to_owned(), text.lines().count());
    tree.files.push(SourceFile { path, module, lines, ..SourceFile::default() });
    let folder = folder.to_owned();
    let mut reader =
        Reader { tree, texts, file, module, folder, functions: 0, in_parameter: false };
    reader.visit_file(&syntax);
    Some(module)
}

struct Reader<'a, 'b> {
    tree: &'a mut Tree,
    texts: &'a Texts<'b>,
    file: usize,
    module: usize,
    /// The folder of the files of the module's children.
    folder: String,
    /// The number of enclosing functions. Items inside a function have no name outside.
    functions: usize,
    /// Whether a parameter of a function is being read.
    in_parameter: bool,
}

impl Reader<'_, '_> {
    fn define(&mut self, name: &impl ToString, kind: Kind, visibility: Option<&Visibility>) {
        if self.functions > 0 {
            return;
        }
        let name = name.to_string();
        self.tree.modules[self.module].definitions.push(Definition { name, kind });
        if !matches!(visibility, Some(Visibility::Inherited)) {
            self.source().offers = true;
        }
    }

    fn source(&mut self) -> &mut SourceFile {
        &mut self.tree.files[self.file]
    }

    fn mention(&mut self, path: Vec<String>, line: usize, is_macro: bool) {
        let module = self.module;
        self.source().mentions.push(Mention { module, path, line, is_macro });
    }

    fn leave_out(&mut self, span: Span) {
        let lines = span.end().line - span.start().line + 1;
        let source = self.source();
        source.lines = source.lines.saturating_sub(lines);
    }

    fn scan(&mut self, tokens: proc_macro2::TokenStream) {
        for (path, line) in tokens::paths(tokens) {
            self.mention(path, line, false);
        }
    }

    fn import(&mut self, before: &[String], tree: &UseTree) {
        let mut leaf = |name: Option<String>, path: Vec<String>, span: Span| {
            if name.is_some() {
                self.mention(path.clone(), span.start().line, false);
            }
            self.tree.modules[self.module].imports.push(Import { name, path });
        };
        let with = |name: String| [before, &[name]].concat();
        match tree {
            UseTree::Path(path) => self.import(&with(path.ident.to_string()), &path.tree),
            UseTree::Name(name) if name.ident == "self" => {
                leaf(before.last().cloned(), before.to_vec(), name.ident.span());
            }
            UseTree::Name(name) => {
                let text = name.ident.to_string();
                leaf(Some(text.clone()), with(text), name.ident.span());
            }
            UseTree::Rename(rename) if rename.ident == "self" => {
                leaf(Some(rename.rename.to_string()), before.to_vec(), rename.ident.span());
            }
            UseTree::Rename(rename) => {
                let path = with(rename.ident.to_string());
                leaf(Some(rename.rename.to_string()), path, rename.ident.span());
            }
            UseTree::Glob(glob) => leaf(None, before.to_vec(), glob.star_token.span()),
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.import(before, tree);
                }
            }
        }
    }

    fn child(&mut self, item: &syn::ItemMod) {
        let name = item.ident.to_string();
        let folder = format!("{}/{name}", self.folder);
        if let Some((_, items)) = &item.content {
            let module = self.tree.modules.len();
            let outer = &self.tree.modules[self.module];
            let (krate, file) = (outer.krate, outer.file);
            let parent = Some(self.module);
            self.tree.modules.push(Module { parent, krate, file, ..Module::default() });
            self.define(&name, Kind::Module(module), Some(&item.vis));
            let folder = std::mem::replace(&mut self.folder, folder);
            let outer = std::mem::replace(&mut self.module, module);
            for item in items {
                self.visit_item(item);
            }
            self.module = outer;
            self.folder = folder;
            return;
        }
        let own = &self.tree.files[self.file].path;
        let beside = own.rsplit_once('/').map_or("", |(folder, _)| folder);
        let path = match path_attribute(&item.attrs) {
            Some(path) => format!("{beside}/{path}"),
            None => format!("{folder}.rs"),
        };
        let krate = self.tree.modules[self.module].krate;
        let place = Place { krate, parent: Some(self.module), path: &path, folder: &folder };
        if let Some(module) = file(self.tree, self.texts, &place) {
            let definition = Definition { name, kind: Kind::Module(module) };
            self.tree.modules[self.module].definitions.push(definition);
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_, '_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if is_test(attributes(item)) {
            self.leave_out(item.span());
            return;
        }
        match item {
            Item::Mod(item) => return self.child(item),
            Item::Use(item) => {
                // `::name` is another crate.
                if item.leading_colon.is_none() {
                    self.import(&[], &item.tree);
                }
                return;
            }
            Item::Struct(item) => {
                self.define(&item.ident, Kind::Struct(item.fields.len()), Some(&item.vis));
            }
            Item::Enum(item) => {
                let variants = item.variants.iter().map(|one| one.ident.to_string()).collect();
                self.define(&item.ident, Kind::Enum(variants), Some(&item.vis));
            }
            Item::Union(item) => {
                self.define(&item.ident, Kind::Struct(item.fields.named.len()), Some(&item.vis));
            }
            Item::Const(item) => self.define(&item.ident, Kind::Other, Some(&item.vis)),
            Item::Static(item) => self.define(&item.ident, Kind::Other, Some(&item.vis)),
            Item::Fn(item) => self.define(&item.sig.ident, Kind::Other, Some(&item.vis)),
            Item::Trait(item) => self.define(&item.ident, Kind::Other, Some(&item.vis)),
            Item::TraitAlias(item) => self.define(&item.ident, Kind::Other, Some(&item.vis)),
            Item::Type(item) => self.define(&item.ident, Kind::Other, Some(&item.vis)),
            Item::Macro(item) => {
                if let Some(name) = &item.ident {
                    self.define(name, Kind::Macro, None);
                } else if self.functions == 0 {
                    let words = tokens::words(item.mac.tokens.clone());
                    self.tree.modules[self.module].macro_words.extend(words);
                }
            }
            Item::Impl(item) if self.functions == 0 => {
                let mut own = item.self_ty.as_ref();
                while let Type::Reference(reference) = own {
                    own = &reference.elem;
                }
                let named = match own {
                    Type::Path(of) if of.qself.is_none() => Some(tokens::segments(&of.path)),
                    _ => None,
                };
                let module = self.module;
                self.source().impls.push((module, named));
            }
            _ => {}
        }
        visit::visit_item(self, item);
    }

    fn visit_block(&mut self, block: &'ast syn::Block) {
        self.functions += 1;
        visit::visit_block(self, block);
        self.functions -= 1;
    }

    fn visit_impl_item(&mut self, item: &'ast syn::ImplItem) {
        let attributes = match item {
            syn::ImplItem::Const(item) => &item.attrs,
            syn::ImplItem::Fn(item) => &item.attrs,
            syn::ImplItem::Type(item) => &item.attrs,
            syn::ImplItem::Macro(item) => &item.attrs,
            _ => return,
        };
        if is_test(attributes) {
            self.leave_out(item.span());
        } else {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_fn_arg(&mut self, parameter: &'ast syn::FnArg) {
        self.in_parameter = true;
        visit::visit_fn_arg(self, parameter);
        self.in_parameter = false;
    }

    fn visit_type_reference(&mut self, reference: &'ast syn::TypeReference) {
        if self.in_parameter
            && reference.mutability.is_some()
            && let Type::Path(of) = reference.elem.as_ref()
            && of.qself.is_none()
        {
            let (path, line) = (tokens::segments(&of.path), of.path.span().start().line);
            let mention = Mention { module: self.module, path, line, is_macro: false };
            self.source().borrowed.push(mention);
        }
        visit::visit_type_reference(self, reference);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            let line = path.span().start().line;
            self.mention(tokens::segments(path), line, false);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, used: &'ast syn::Macro) {
        let line = used.path.span().start().line;
        self.mention(tokens::segments(&used.path), line, true);
        self.scan(used.tokens.clone());
    }

    // Neither of these is a use of another module.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_attribute(&mut self, _: &'ast Attribute) {}
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Returns whether an item exists only in tests.
fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg") => tokens::requires_test(list.tokens.clone()),
        _ => false,
    })
}

fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    })
}
