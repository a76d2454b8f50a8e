//! Configurations of several files.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use settings::{Configuration, Diagnostics, load};

/// Returns a directory with these files. The first one includes others.
fn folder(files: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("it is in a folder")).expect("it can be made");
        fs::write(path, text).expect("it can be written");
    }
    let main = folder.path().join(files[0].0);
    (folder, main)
}

fn read(files: &[(&str, &str)]) -> Result<Configuration, Diagnostics> {
    let (_folder, main) = folder(files);
    load(&main)
}

const MAIN: &str =
    "include = \"conf.d/*.toml\"\n[listener.main]\nlisten = \":7000\"\npool = \"a\"\n";
const A: &str = "[pool.a]\nprogram = [\"cat\"]\n";
const B: &str =
    "[pool.b]\nprogram = [\"cat\"]\n[listener.other]\nlisten = \":7001\"\npool = \"b\"\n";

/// Returns the file, line, column and message of each error.
fn said(files: &[(&str, &str)]) -> Vec<(String, usize, usize, String)> {
    let (folder, main) = folder(files);
    let errors = load(&main).expect_err("it is wrong");
    let name = |file: &str| {
        let path = Path::new(file);
        path.strip_prefix(folder.path()).unwrap_or(path).display().to_string()
    };
    let clean = |text: &str| text.replace(&format!("{}/", folder.path().display()), "");
    errors.iter().map(|it| (name(&it.file), it.line, it.column, clean(&it.message))).collect()
}

#[test]
fn files_are_included_in_the_order_of_their_names() {
    let files = [
        ("roadstead.toml", MAIN),
        ("conf.d/20-b.toml", B),
        ("conf.d/10-a.toml", A),
        ("conf.d/.hidden.toml", "x"),
        ("conf.d/notes.txt", "x"),
    ];
    let read = read(&files).unwrap_or_else(|errors| panic!("{errors}"));
    let listeners: Vec<_> = read.listeners.iter().map(|it| it.name.as_str()).collect();
    let pools: Vec<_> = read.pools.iter().map(|it| it.name.as_str()).collect();
    assert_eq!((listeners, pools), (vec!["main", "other"], vec!["a", "b"]));
}

#[test]
fn several_paths_are_included_and_a_pattern_may_fit_no_file() {
    let main = MAIN.replace("\"conf.d/*.toml\"", "[\"pools/a.toml\", \"none.d/*.toml\"]");
    let files = [("roadstead.toml", main.as_str()), ("pools/a.toml", A), ("none.d/x", "x")];
    assert_eq!(read(&files).unwrap_or_else(|errors| panic!("{errors}")).pools.len(), 1);
}

#[test]
fn an_error_names_the_file_that_it_is_in() {
    let a = "# ä\n[pool.a]\nprogram = [\"cat\"]\npipelin = 2\n";
    let b = "[pool.b]\nprogram = [\"cat\"]\nworkers = \n";
    let files = [("roadstead.toml", MAIN), ("conf.d/a.toml", a), ("conf.d/b.toml", b)];
    let said = said(&files);
    let places: Vec<_> = said.iter().map(|it| (it.0.as_str(), it.1, it.2)).collect();
    assert_eq!(places, [("conf.d/a.toml", 4, 1), ("conf.d/b.toml", 3, 11)], "{said:?}");
    let (folder, main) = folder(&files);
    let shown = load(&main).expect_err("it is wrong").to_string();
    let path = folder.path().join("conf.d/a.toml").display().to_string();
    assert!(shown.contains(&format!("--> {path}:4:1")), "{shown}");
    assert!(shown.contains("4 | pipelin = *"), "{shown}");
    assert!(shown.ends_with("roadstead.toml: 2 errors"), "{shown}");
}

#[test]
fn a_section_that_two_files_define_is_named_at_both_places() {
    let b = format!("\n{A}");
    let admin = "[admin]\nlisten = \"127.0.0.1:7070\"\n";
    let main = format!("{MAIN}{admin}");
    let files = [
        ("roadstead.toml", main.as_str()),
        ("conf.d/a.toml", A),
        ("conf.d/b.toml", &b),
        ("conf.d/c.toml", admin),
    ];
    let expected = [
        ("conf.d/b.toml", 2, 7, "`[pool.a]` is defined twice: also at conf.d/a.toml:1:7"),
        ("conf.d/c.toml", 1, 2, "`[admin]` is defined twice: also at roadstead.toml:5:2"),
    ];
    let expected = expected
        .map(|(file, line, column, message)| (file.to_owned(), line, column, message.to_owned()));
    assert_eq!(said(&files), expected);
}

#[test]
fn what_cannot_be_included_is_said_where_it_is_named() {
    let nested = format!("include = \"more.toml\"\n{A}");
    let said_of = |main: &str, a: &str| said(&[("roadstead.toml", main), ("conf.d/a.toml", a)]);
    assert_eq!(
        said_of(MAIN, &nested),
        [("conf.d/a.toml".to_owned(), 1, 1, "an included file cannot include others".to_owned())]
    );
    for (wrong, message) in [
        ("\"conf.d/none.toml\"", "`conf.d/none.toml` cannot be included: No such file"),
        ("\"*/a.toml\"", "`*/a.toml` cannot be included: `*` is allowed only in the last part"),
        ("\"conf.d\"", "conf.d: the file cannot be included: it is not a regular file"),
        ("5", "`include` cannot be a whole number"),
    ] {
        let main = format!("include = {wrong}\n{A}");
        let said = said_of(&main, A);
        assert_eq!((said.len(), said[0].0.as_str()), (1, "roadstead.toml"), "{said:?}");
        assert_eq!((said[0].1, said[0].2), (1, 11), "{said:?}");
        assert!(said[0].3.starts_with(message), "{said:?}");
    }
    let text = settings::Source { name: "text".to_owned(), text: MAIN.to_owned() };
    let errors = settings::parse(&text, &|_| None).expect_err("there is no file");
    assert!(errors.iter().any(|it| it.message.contains("includes nothing")), "{errors}");
}

/// Another user who can create a file in the directory must not configure the daemon.
#[test]
fn files_that_another_user_can_have_written_are_not_included() {
    let is_root = fs::metadata("/proc/self").is_ok_and(|found| found.uid() == 0);
    for mode in [0o777, 0o1777] {
        let (folder, main) = folder(&[("roadstead.toml", MAIN), ("conf.d/a.toml", A)]);
        let directory = folder.path().join("conf.d");
        fs::set_permissions(&directory, fs::Permissions::from_mode(mode)).expect("a mode");
        let errors = load(&main).expect_err("others can write").to_string();
        let named = format!("`{}` ", directory.display());
        assert!(errors.contains(&named), "{errors}");
        assert!(errors.contains("a directory that only this user can change"), "{errors}");
        assert!(errors.contains("roadstead.toml:1:11"), "{errors}");
    }
    let (folder, main) = folder(&[("roadstead.toml", MAIN), ("conf.d/a.toml", A)]);
    let file = folder.path().join("conf.d/a.toml");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).expect("a mode");
    let errors = load(&main).expect_err("others can write").to_string();
    assert!(errors.contains("a.toml: ") && errors.contains("mode 0666"), "{errors}");
    if !is_root {
        return;
    }
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("a mode");
    chown(&file, Some(65534), None).expect("an owner");
    for read in [load, |main: &Path| settings::reread_source(main).and_then(|it| parse(&it))] {
        let errors = read(&main).expect_err("of another user").to_string();
        assert!(
            errors.contains("a.toml: ") && errors.contains("belongs to user 65534"),
            "{errors}"
        );
    }
    chown(&file, Some(0), None).expect("an owner");
    chown(&main, Some(65534), None).expect("an owner");
    assert!(load(&main).is_ok());
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o1777)).expect("a mode");
    let errors = load(&main).expect_err("of another user").to_string();
    assert!(errors.contains("roadstead.toml") && errors.contains("user 65534"), "{errors}");
}

fn parse(sources: &settings::Sources) -> Result<Configuration, Diagnostics> {
    settings::parse(sources, &|_| None)
}

#[test]
fn an_included_file_that_is_no_text_file_is_an_error_with_its_location() {
    let (folder, main) = folder(&[("roadstead.toml", MAIN), ("conf.d/a.toml", A)]);
    let file = folder.path().join("conf.d/a.toml");
    fs::write(&file, b"# a\n# \xc3\xa4 \xff\n").expect("it can be written");
    let errors = load(&main).expect_err("no text");
    let errors = errors.iter().map(|it| it.message.as_str()).collect::<Vec<_>>().join("\n");
    assert!(errors.contains("conf.d/a.toml:2:5: this is not UTF-8"), "{errors}");
    fs::remove_file(&file).expect("it is removed");
    let made = std::process::Command::new("mkfifo").arg(&file).status().expect("mkfifo");
    assert!(made.success());
    let errors = load(&main).expect_err("a pipe").to_string();
    assert!(errors.contains("it is not a regular file") && !errors.contains("again"), "{errors}");
}

#[test]
fn all_files_together_have_a_maximum_size() {
    let (folder, main) = folder(&[("roadstead.toml", MAIN), ("conf.d/a.toml", A)]);
    for name in ["b", "c", "d", "e", "f"] {
        let path = folder.path().join(format!("conf.d/{name}.toml"));
        fs::write(path, format!("#{}\n", "x".repeat(4_000_000))).expect("it can be written");
    }
    let errors = load(&main).expect_err("too large").to_string();
    assert!(errors.contains("f.toml: the files have more than 16 MiB together"), "{errors}");
}

#[test]
fn the_example_is_right() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/include/roadstead.toml");
    let read = load(&file).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!((read.listeners.len(), read.pools.len()), (2, 2));
}
