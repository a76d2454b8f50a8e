//! One broken file for every kind of error: exactly one diagnostic, at the right place, with the right words. Exactly
//! one matters, because an operator who sees five errors looks for five mistakes.
//!
//! The cases are in `tests/errors/*.txt`. A case is `CONTEXT: TEXT`, where `⏎` is a line end and `«…»` encloses the
//! word that the error points to. The text is appended to the file of this name in `contexts.txt`. Below one or more
//! cases are their message, ` -- ` and what is expected, and `help:` with the suggested fix; or `valid`. In these lines,
//! `«»` is the word without quotes.

use std::collections::HashMap;
use std::path::Path;

use settings::{Diagnostics, Source, parse};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/errors");

fn read(name: &str) -> String {
    let path = Path::new(FOLDER).join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn contexts() -> HashMap<String, String> {
    let mut contexts: HashMap<String, String> = HashMap::new();
    for context in read("contexts.txt").split("\n= ").skip(1) {
        let (title, own) = context.split_once('\n').expect("a context has a title");
        let (name, bases) = title.split_once(' ').unwrap_or((title, ""));
        let mut file: String = bases.split_whitespace().map(|base| &*contexts[base]).collect();
        file.extend(own.lines().filter(|line| !line.is_empty()).flat_map(|line| [line, "\n"]));
        contexts.insert(name.to_owned(), file);
    }
    contexts
}

/// Returns the errors as they are written in the files of cases, and the case itself with its first error marked.
fn found(context: &str, text: &str) -> (String, String) {
    let (file, start) = (format!("{context}{text}\n"), context.len());
    let parsed = parse(&Source { name: "roadstead.toml".into(), text: file.clone() }, &|_| None);
    let (mut marked, mut said) = (text.to_owned(), String::new());
    let errors: Vec<_> = parsed.as_ref().err().into_iter().flat_map(Diagnostics::iter).collect();
    for (index, error) in errors.iter().enumerate() {
        let line: usize = file.split_inclusive('\n').take(error.line - 1).map(str::len).sum();
        let column = file[line..].chars().take(error.column - 1).map(char::len_utf8).sum::<usize>();
        if index == 0 && !error.word.is_empty() && line + column >= start {
            let at = line + column - start;
            marked.insert(at + error.word.len(), '»');
            marked.insert(at, '«');
        }
        let bare = error.word.trim_matches('"');
        let word =
            |text: &str| if bare.is_empty() { text.into() } else { text.replace(bare, "«»") };
        said.push_str(&format!("  {}", word(&error.message)));
        said.extend(error.expected.as_ref().map(|expected| format!(" -- {}", word(expected))));
        said.extend(error.suggestion.as_ref().map(|fix| format!("\n  help: {}", word(fix))));
        said.push('\n');
    }
    (marked, if errors.is_empty() { "  valid\n".to_owned() } else { said })
}

#[test]
fn every_broken_file_has_one_error_with_its_location_and_a_fix() {
    let contexts = contexts();
    let (mut count, mut wrong) = (0, String::new());
    for entry in std::fs::read_dir(FOLDER).expect("the folder of cases").flatten() {
        let name = entry.file_name().into_string().expect("a name in UTF-8");
        if name == "contexts.txt" {
            continue;
        }
        let (mut cases, text) = (Vec::new(), read(&name));
        let mut lines =
            text.lines().filter(|line| !line.is_empty() && !line.starts_with("# ")).peekable();
        while let Some(line) = lines.next() {
            if !line.starts_with("  ") {
                cases.push(line);
                continue;
            }
            let mut expected = format!("{line}\n");
            while let Some(more) = lines.next_if(|line| line.starts_with("  ")) {
                expected.push_str(&format!("{more}\n"));
            }
            for case in cases.drain(..) {
                let (context, case) = case.split_once(':').expect("a case has a context");
                let case = case.trim_start().replace(" ⏎ ", "\n");
                let (marked, said) = found(&contexts[context], &case.replace(['«', '»'], ""));
                let word = case.split_once('«').and_then(|(_, rest)| rest.split_once('»'));
                let bare = word.map_or("", |(word, _)| word.trim_matches('"'));
                let with_word = |text: &str| text.replace("«»", bare);
                if marked != case || with_word(&said) != with_word(&expected) {
                    let marked = marked.replace('\n', " ⏎ ");
                    wrong.push_str(&format!(
                        "{name} has:\n{context}: {marked}\n{}\n",
                        with_word(&said)
                    ));
                }
                count += 1;
            }
        }
        assert!(cases.is_empty(), "{name}: {cases:?} have no result");
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(count > 350, "{count} cases");
}

/// With each character in the password, in each kind of text, and with what may follow in a file.
#[test]
fn no_error_shows_a_password_in_the_address_of_a_database() {
    let mut count = 0;
    for c in (' '..='~').map(String::from).chain(["\\\"".to_owned(), "\\u0041".to_owned()]) {
        for password in [format!("HUNTER2{c}SECRET2"), format!("HUNTER2{c}"), format!("{c}SECRET2")]
        {
            for address in [
                format!("postgres://u:{password}@h/d"),
                format!("mysql://u:{password}@h:3306/d"),
                format!("postgres://u:x{}{password}@h/d", "x".repeat(40)),
                format!("mysql://u@h/d?password={password}"),
                format!("mysql://u@h/d?x&y={password}"),
                format!("mariadb://u:{password}@h/d"),
                format!("postgres:/u:{password}@h/d"),
                format!("postgres:{password}@h/d"),
                format!("pg:{password}@h/d"),
            ] {
                for value in [
                    format!("\"{address}\""),
                    format!("'{address}'"),
                    format!("\"\"\"{address}\"\"\""),
                    format!("[\"{address}\"]"),
                    address.clone(),
                ] {
                    let text = format!(
                        "[pool.echo]\nprogram = [\"cat\"]\n[pool.store]\ndatabase = {value}\ninsert = {{ table = \"hits\", columns = [\"at\"] }}\n"
                    );
                    let source = Source { name: "x.toml".into(), text };
                    let Err(errors) = parse(&source, &|_| None) else { continue };
                    let mut shown = errors.to_string();
                    for error in &errors {
                        shown.push_str(&error.message);
                        shown.extend(error.expected.as_deref());
                        shown.extend(error.suggestion.as_deref());
                    }
                    let leaks = shown.contains("HUNTER2") || shown.contains("SECRET2");
                    assert!(!leaks, "{value}\n{shown}");
                    count += 1;
                }
            }
        }
    }
    assert!(count > 10_000, "{count}");
}

/// HTTP requests can be passed to any pool.
#[test]
fn http_requests_can_be_passed_to_a_pool_of_any_kind() {
    let kinds = [
        "program = [\"cat\"]",
        "program = [\"cat\"]\nframing = \"http\"",
        "servers = [\"127.0.0.1:2\"]",
        "database = \"sqlite:a.db\"\nquery = \"select 1\"",
        "database = \"sqlite:a.db\"\ninsert = { table = \"a\", columns = [\"b\"] }",
    ];
    let http = contexts().remove("http").expect("a listener of HTTP");
    for from in kinds {
        for to in kinds {
            let text = format!(
                "{http}[pool.echo]\nfallback = {{ pool = \"other\" }}\n{from}\n[pool.other]\n{to}\n"
            );
            let read = parse(&Source { name: "roadstead.toml".into(), text }, &|_| None);
            assert!(read.is_ok(), "{from} to {to}: {read:?}");
        }
    }
}
