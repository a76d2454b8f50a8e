//! The tables of docs/guides/programs.md: every framing with every dispatch has a row, and behaves as the row says.
//! Also checks that the tests exist that COVERAGE.md names for the faults of programs.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::{Daemon, compile_len2, example, folder};
use crate::daemon::BINARY;

const PROGRAMS: &str = "guides/programs.md";

fn page(name: &str) -> String {
    fs::read_to_string(example("..").join("docs").join(name)).unwrap()
}

/// Returns the values of an option from the reference, which is generated from the settings.
fn words(option: &str) -> Vec<String> {
    let reference = page("reference.md");
    let heading = format!("The values of `{option}`:\n\n");
    let (_, rest) = reference.split_once(&heading).unwrap_or_else(|| panic!("no {heading:?}"));
    let lines = rest.lines().take_while(|line| line.starts_with("- `\""));
    lines.map(|line| line.split('"').nth(1).unwrap().to_owned()).collect()
}

/// Returns the rows of the table that begins with this, by the word in their first cell, without markup.
fn table(begins: &str) -> (Vec<String>, BTreeMap<String, Vec<String>>) {
    let page = page(PROGRAMS);
    let from = page.find(begins).unwrap_or_else(|| panic!("no table {begins:?}"));
    let cells = |line: &str| -> Vec<String> {
        let cells = line.trim_matches('|').split('|');
        cells.map(|cell| cell.trim().replace('`', "")).collect()
    };
    let mut lines = page[from..].lines().take_while(|line| line.starts_with('|'));
    let head = cells(lines.next().unwrap());
    let rows = lines.skip(1).map(|line| {
        let mut cells = cells(line);
        (cells.remove(0), cells)
    });
    (head[1..].to_vec(), rows.collect())
}

/// The request for the file of each framing, and the answer.
const ASKED: &[(&str, &[u8], &[u8])] = &[
    ("lines", b"one two\n\na b c\n", b"2\n0\n3\n"),
    ("nul", b"a\nb\0", b"[a\nb]\0"),
    ("len1", b"\x02ab\0", b"\x03+AB\x01+"),
    ("len2", b"ab\n\n", b"aabb\n\n"),
    ("len4", b"\0\0\0\x02ab\0\0\0\0", b"\0\0\0\x03+AB\0\0\0\x01+"),
    ("netstring", b"3:abc,0:,", b"4:+cba,1:+,"),
    (
        "content-length",
        b"Content-Length: 101\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"textDocument/hover\",\"params\":{\"position\":{\"line\":3,\"character\":7}}}",
        b"Content-Length: 68\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{\"contents\":\"line 3, character 7\"}}",
    ),
    (
        "jsonrpc",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"add\",\"params\":{\"numbers\":[1,2]}}\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":3}\n",
    ),
    ("raw", b"who", b"who? "),
    ("oneshot", b"6:10\n9\n1,", b"8:+1\n9\n10\n,"),
];

/// A configuration with another way to dispatch.
fn dispatched(text: &str, dispatch: &str) -> String {
    let of_dispatch = ["dispatch", "pipeline", "reset"];
    let kept = text.lines().filter(|line| !of_dispatch.iter().any(|name| line.starts_with(name)));
    let mut text = kept.collect::<Vec<_>>().join("\n");
    let lines = match dispatch.split_once(", ") {
        Some((word, _)) => format!("\ndispatch = \"{word}\"\npipeline = 8\n"),
        None => format!("\ndispatch = \"{dispatch}\"\n"),
    };
    text.push_str(&lines);
    text
}

#[test]
fn every_framing_with_every_dispatch_does_what_its_row_says() {
    let (columns, rows) = table("| `framing` | `in-order`");
    assert_eq!(rows.keys().cloned().collect::<Vec<_>>(), sorted(words("framing")));
    let mut named: Vec<String> = columns.iter().map(|it| it.replace(", pipeline", "")).collect();
    named.push("auto".to_owned());
    named.dedup();
    assert_eq!(sorted(named), sorted(words("dispatch")), "`auto` is one of the others");
    for (framing, cells) in rows {
        // A program that serves HTTP has no dispatch, so no cell names its file.
        let own = cells.iter().find(|cell| cell.ends_with(".toml")).map_or("serve.toml", |it| it);
        let text = fs::read_to_string(example("programs").join(own)).unwrap();
        assert!(text.contains(&format!("\nframing = \"{framing}\"\n")), "{own}");
        for (dispatch, cell) in columns.iter().zip(&cells) {
            let what = format!("{framing}, {dispatch}: {cell}");
            let word = dispatch.split(',').next().unwrap();
            match cell.as_str() {
                "–" => refuses(&dispatched(&text, dispatch), &what),
                "yes" => answers(&framing, &dispatched(&text, dispatch), &what),
                file => {
                    let text = fs::read_to_string(example("programs").join(file)).unwrap();
                    assert!(text.contains(&format!("\nframing = \"{framing}\"\n")), "{what}");
                    let default = word == "in-order" && !text.contains("\ndispatch");
                    let said = text.contains(&format!("\ndispatch = \"{word}\"\n"));
                    assert!(said || default, "{what}");
                    assert!(text.contains("\npipeline = ") || !dispatch.contains(','), "{what}");
                }
            }
        }
    }
}

fn sorted(mut words: Vec<String>) -> Vec<String> {
    words.sort();
    words
}

fn refuses(text: &str, what: &str) {
    let folder = folder();
    let file = folder.path().join("roadstead.toml");
    fs::write(&file, text).unwrap();
    let checked = Command::new(BINARY).arg("check").arg(&file).output().unwrap();
    assert!(!checked.status.success(), "{what}: it is accepted");
}

fn answers(framing: &str, text: &str, what: &str) {
    let found = ASKED.iter().find(|(of, ..)| *of == framing);
    let (_, asked, expected) = found.unwrap_or_else(|| panic!("{what}: what is it asked?"));
    let folder = folder();
    for entry in fs::read_dir(example("programs")).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
    }
    if framing == "len2" {
        compile_len2(folder.path());
    }
    let text =
        text.replace("127.0.0.1:7000", "127.0.0.1:0").replace("127.0.0.1:7070", "127.0.0.1:0");
    println!("{what}");
    let daemon = Daemon::serve(folder.path(), &text);
    let mut client = daemon.connect();
    client.send(asked);
    let reply = client.bytes(expected.len());
    assert_eq!(reply.escape_ascii().to_string(), expected.escape_ascii().to_string(), "{what}");
}

/// The sources of all tests, in one text.
fn tests(folder: &Path, all: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            tests(&path, all);
        } else if path.extension().is_some_and(|it| it == "rs") && !path.ends_with("tables.rs") {
            all.push_str(&fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn every_fault_names_tests_that_are_there() {
    let mut all = String::new();
    for place in
        ["roadstead/tests", "spawn/tests", "backend/src", "pool/src", "simulate/tests", "elastic"]
    {
        tests(&example("..").join("crates").join(place), &mut all);
    }
    let page = fs::read_to_string(example("../crates/roadstead/tests/COVERAGE.md")).unwrap();
    let (_, faults) = page.split_once("### Faults of programs").unwrap();
    let faults = faults.split("\n## ").next().unwrap();
    let rows: Vec<_> = faults.lines().filter(|line| line.starts_with("| ")).collect();
    assert!(rows.len() > 30, "{} rows", rows.len());
    for row in rows.iter().filter(|row| !row.contains("| test |") && !row.starts_with("|---")) {
        let cell = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        let named = cell.split('`').skip(1).step_by(2).filter(|name| name.contains('_'));
        for name in named.filter(|name| !name.ends_with(".rs")) {
            assert!(all.contains(name.trim_matches('…')), "no test {name} of\n{row}");
        }
        assert!(cell.contains('`') || cell.contains("simulation"), "no test in\n{row}");
    }
}

#[test]
fn every_protocol_of_a_listener_has_an_example_and_every_example_a_row() {
    let (_, rows) = table("| `protocol` of the listener |");
    assert_eq!(rows.keys().cloned().collect::<Vec<_>>(), sorted(words("protocol")));
    for (protocol, cells) in rows {
        let file = cells[0].split([',', ' ']).next().unwrap();
        let text = fs::read_to_string(example("programs").join(file)).unwrap();
        assert!(text.contains(&format!("\nprotocol = \"{protocol}\"\n")), "{protocol}: {file}");
    }
    let (readme, programs) = (example("programs").join("README.md"), page(PROGRAMS));
    let readme = fs::read_to_string(readme).unwrap();
    for entry in fs::read_dir(example("programs")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.ends_with(".toml") {
            assert!(readme.contains(&format!("| `{name}` |")), "{name} has no row in README.md");
            assert!(
                programs.contains(&format!("`{name}`")),
                "{name} is not in docs/guides/programs.md"
            );
        }
    }
}
