//! Small source trees with each kind of edge, allowed and forbidden.

use super::cycles::Component;
use super::*;

/// Returns a crate `a` with these files below `src`.
fn sources(files: &[(&str, &str)]) -> Vec<File> {
    let file = |(path, text): &(&str, &str)| File {
        path: format!("crates/a/src/{path}"),
        text: (*text).to_owned(),
    };
    files.iter().map(file).collect()
}

/// Returns the members of the cycles of files and of folders, by their paths below `src`.
fn cycles(files: &[(&str, &str)]) -> (Vec<Vec<String>>, Vec<Vec<String>>) {
    let files = sources(files);
    let tree = read(&files);
    assert_eq!(tree.unread, []);
    let parts = Parts::new(&tree);
    let imports = Imports::new(&tree, &parts, 0);
    let short = |file: &usize| tree.files[*file].path.replace("crates/a/src/", "");
    let members = |all: Vec<Component>| -> Vec<Vec<String>> {
        let sorted = |one: Component| {
            let mut members: Vec<String> = one.members.iter().map(short).collect();
            members.sort();
            members
        };
        all.into_iter().map(sorted).collect()
    };
    (members(imports.file_cycles()), members(imports.folder_cycles()))
}

fn file_cycles(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    let (files, folders) = cycles(files);
    assert_eq!(folders, Vec::<Vec<String>>::new());
    files
}

const NONE: [[&str; 0]; 0] = [];

#[test]
fn a_module_may_use_its_child() {
    let files = [
        ("lib.rs", "mod x; pub struct S(x::X);"),
        ("x.rs", "mod y; pub fn f() -> y::Y { y::Y }"),
        ("x/y.rs", "pub struct Y;"),
    ];
    assert_eq!(file_cycles(&files), NONE);
}

#[test]
fn a_root_that_only_declares_and_exports_is_in_no_cycle() {
    let files = [
        ("lib.rs", "mod x; mod y; pub use x::X; pub use y::*;"),
        ("x.rs", "pub struct X;"),
        ("y.rs", "use crate::X; pub struct Y(X);"),
    ];
    assert_eq!(file_cycles(&files), NONE);
}

#[test]
fn a_child_that_uses_its_parent_is_in_a_cycle() {
    let parent = "mod x; pub struct S;";
    for child in [
        "use super::S; fn f(_: S) {}",
        "use crate::S as T;",
        "fn f() { let _ = super::S; }",
        "fn f(_: &[Option<crate::S>]) {}",
        "fn f() { assert!(g(\"{}\", super::S)); }",
        "pub(in crate) mod z { fn f(_: super::super::S) {} }",
        "macro_rules! m { () => { $crate::S }; }",
        "fn f() { use super::*; } struct T(S);",
    ] {
        let found = file_cycles(&[("lib.rs", parent), ("x.rs", child)]);
        assert_eq!(found, [["lib.rs", "x.rs"]], "{child}");
    }
    for child in [
        "pub(super) struct T; pub(in crate) struct U;",
        "#[cfg(test)] mod tests { use super::super::S; }",
        "#[cfg(all(test, not(loom)))] fn f(_: super::S) {}",
        "struct S; fn f(_: S) {}",
        "fn f(_: other::S) {}",
        "// super::S\nfn f() -> &'static str { \"super::S\" }",
        "use self::z::S; mod z { pub struct S; }",
    ] {
        assert_eq!(file_cycles(&[("lib.rs", parent), ("x.rs", child)]), NONE, "{child}");
    }
}

#[test]
fn a_grandchild_that_uses_its_grandparent_ties_all_three() {
    let files = [
        ("lib.rs", "mod x; pub const SIZE: usize = 1;"),
        ("x.rs", "mod y;"),
        ("x/y.rs", "const MORE: usize = crate::SIZE + 1;"),
    ];
    assert_eq!(file_cycles(&files), [["lib.rs", "x.rs", "x/y.rs"]]);
}

#[test]
fn a_part_of_an_impl_counts_as_one_module_with_its_type() {
    let parent = "mod part; pub struct S; pub fn f() {}";
    let part = "use super::{S, f}; const SIZE: usize = 1; impl S { fn g(&self) { f(); h() } } \
                impl Shown for &S {} fn h() {}";
    assert_eq!(file_cycles(&[("lib.rs", "mod s;"), ("s.rs", parent), ("s/part.rs", part)]), NONE);
    // An item that other files can name makes it a separate module, and so does an `impl` of another type.
    for more in ["pub(super) struct T;", "impl From<S> for String { }"] {
        let part = format!("{part} {more}");
        let files = [("lib.rs", "mod s;"), ("s.rs", parent), ("s/part.rs", &part)];
        assert_eq!(file_cycles(&files), [["s.rs", "s/part.rs"]], "{more}");
    }
}

#[test]
fn what_a_part_uses_its_module_uses() {
    let files = [
        ("lib.rs", "mod s; mod x;"),
        ("s.rs", "mod part; pub struct S;"),
        ("s/part.rs", "use super::S; impl S { fn f() { crate::x::f(); } }"),
        ("x.rs", "use crate::s::S; pub fn f() { S; }"),
    ];
    assert_eq!(file_cycles(&files), [["s.rs", "s/part.rs", "x.rs"]]);
    let files = [
        ("lib.rs", "mod s; mod part; mod x;"),
        ("s.rs", "pub struct S;"),
        ("part.rs", "use crate::s::S; impl S { fn f() { crate::x::f(); } }"),
        ("x.rs", "use crate::s::S; pub fn f() { S; }"),
    ];
    assert_eq!(file_cycles(&files), [["part.rs", "s.rs", "x.rs"]]);
}

#[test]
fn siblings_are_tied_by_what_they_use_and_not_by_what_exports_it() {
    let files = [
        ("lib.rs", "mod x; mod y; use x::X; pub mod names { pub use crate::y::Y as Z; }"),
        ("x.rs", "use crate::names::Z; pub struct X; impl X { fn f(_: Z) {} }"),
        ("y.rs", "pub enum Y { One } use super::X; fn f(_: X) {}"),
    ];
    assert_eq!(file_cycles(&files), [["x.rs", "y.rs"]]);
    let files = [
        ("lib.rs", "#[macro_use] mod x; mod y;"),
        ("x.rs", "macro_rules! m { () => {}; } use crate::y::Y::*; fn f() { One; }"),
        ("y.rs", "pub enum Y { One } fn f() { m!(); }"),
    ];
    assert_eq!(file_cycles(&files), [["x.rs", "y.rs"]]);
}

#[test]
fn what_a_macro_defines_belongs_to_the_file_that_calls_it() {
    let files = [
        ("lib.rs", "mod x; mod y; pub use x::*;"),
        (
            "x.rs",
            "macro_rules! ids { ($n:ident) => { pub struct $n; } } ids! { Id } struct X(crate::y::Y);",
        ),
        ("y.rs", "pub struct Y(crate::Id);"),
    ];
    assert_eq!(file_cycles(&files), [["x.rs", "y.rs"]]);
}

#[test]
fn folders_can_be_in_a_cycle_when_no_files_are() {
    let files = [
        ("lib.rs", "mod x; mod y;"),
        ("x.rs", "mod a; pub mod b;"),
        ("x/a.rs", "use crate::y::a::A; struct B(A);"),
        ("x/b.rs", "pub struct B;"),
        ("y.rs", "pub mod a; mod b;"),
        ("y/a.rs", "pub struct A;"),
        ("y/b.rs", "use crate::x::b::B; struct C(B);"),
    ];
    let (files, folders) = cycles(&files);
    assert_eq!(files, NONE);
    assert_eq!(folders, [["x.rs", "y.rs"]]);
}

#[test]
fn a_file_is_found_where_its_attribute_says() {
    let files = [
        ("lib.rs", "#[path = \"other.rs\"] mod x; struct S;"),
        ("other.rs", "use super::S; fn f(_: S) {}"),
    ];
    assert_eq!(file_cycles(&files), [["lib.rs", "other.rs"]]);
}

#[test]
fn a_cycle_is_shown_with_lines_and_items() {
    let files = sources(&[
        ("lib.rs", "mod x;\nmod y;\n"),
        ("x.rs", "\nuse crate::y::Y;\npub struct X(Y);\n"),
        ("y.rs", "pub struct Y;\nfn f() -> Option<super::x::X> { None }\n"),
    ]);
    let shown: Vec<String> = check(&files).iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        ["a: cycle of 2 files: crates/a/src/x.rs, crates/a/src/y.rs\n    \
             crates/a/src/x.rs -> crates/a/src/y.rs: Y at crates/a/src/x.rs:2\n    \
             crates/a/src/y.rs -> crates/a/src/x.rs: X at crates/a/src/y.rs:2",]
    );
    assert_eq!(uses_in_cycles(&files, "a").len(), 3);
}

#[test]
fn a_crate_is_measured_without_its_tests() {
    let tests = "#[cfg(test)]\nmod tests {\n    fn f() {}\n}\n";
    let long = format!("{}{tests}", "fn f() {}\n".repeat(11_999));
    let root = format!("mod x;\n{tests}");
    assert_eq!(check(&sources(&[("lib.rs", &root), ("x.rs", &long)])), []);
    let findings = check(&sources(&[("lib.rs", "mod x;\n\n"), ("x.rs", &long)]));
    assert!(findings[0].text.starts_with("12001 lines"), "{findings:?}");
}

#[test]
fn a_large_struct_is_passed_to_one_module_at_most() {
    let fields = |count: usize| (0..count).map(|n| format!("f{n}: u8,")).collect::<String>();
    let found = |count: usize, last: &str| {
        let large = format!("mod part; pub struct S {{ {} }}", fields(count));
        let files = sources(&[
            ("lib.rs", "mod s; mod x; mod y; use s::S;"),
            ("s.rs", &large),
            ("s/part.rs", "use super::S; impl S { fn f(&mut self, other: &mut S) {} }"),
            ("x.rs", "use crate::S; fn f(s: &mut S) {} fn g(s: &mut S) {}"),
            ("y.rs", last),
        ]);
        check(&files).len()
    };
    let second = "use crate::s::S; fn f(s: Option<&mut S>) {}";
    assert_eq!(found(13, second), 1);
    assert_eq!(found(12, second), 0);
    assert_eq!(found(13, "use crate::S; fn f(s: &S) {}"), 0);
}
