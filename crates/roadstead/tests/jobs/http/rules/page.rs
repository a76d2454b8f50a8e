//! docs/http1.md names every reason at its rule. COVERAGE.md beside the tests names a test for every rule and for every
//! kind of bad input.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use wire::http1::Refusal;

use super::{answers, replies, reply_bodies, reply_excesses, requests};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text() -> String {
    fs::read_to_string(root().join("docs/http1.md")).unwrap()
}

fn coverage() -> String {
    fs::read_to_string(root().join("crates/roadstead/tests/COVERAGE.md")).unwrap()
}

/// The cells of the rows of the table with this head.
fn rows<'a>(page: &'a str, head: &str) -> Vec<Vec<&'a str>> {
    let table = page.split(head).nth(1).unwrap_or_else(|| panic!("the page has no {head}"));
    let lines = table.lines().skip(2).take_while(|line| line.starts_with("| "));
    lines
        .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect::<Vec<_>>())
        .collect()
}

/// Returns the text between backquotes.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

fn number(rule: &str) -> u8 {
    rule.parse().unwrap_or_else(|_| panic!("{rule} is no rule"))
}

#[test]
fn every_reason_is_given_to_whom_the_page_says() {
    let mut given: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut note = |side, refusals: Vec<(Refusal, String)>| {
        for (refusal, _) in refusals {
            given.entry(refusal.as_str()).or_default().insert(side);
        }
    };
    note("request", requests());
    note("request", vec![(Refusal::Truncated, String::new())]);
    note("reply", replies());
    note("reply", reply_bodies());
    note("reply", reply_excesses());
    note("reply", vec![(Refusal::Early, String::new())]);
    note("answer", answers());
    let page = text();
    let table = rows(&page, "| reason | status | rule | meaning | of |");
    let told: BTreeMap<&str, BTreeSet<&str>> =
        table.iter().map(|row| (row[0].trim_matches('`'), row[4].split(", ").collect())).collect();
    assert_eq!(told, given, "the page, and what the tests of this file see");
    let all: BTreeSet<&str> = Refusal::ALL.iter().map(|refusal| refusal.as_str()).collect();
    assert_eq!(
        given.keys().copied().collect::<BTreeSet<_>>(),
        all,
        "each reason has its test here"
    );
}

#[test]
fn every_rule_names_its_reasons_and_its_tests() {
    let (page, coverage) = (text(), coverage());
    let table = rows(&coverage, "| rule | reasons | tested by |");
    let mut rules = Vec::new();
    for row in &table {
        let of_row: Vec<u8> = row[0].split(", ").map(number).collect();
        let reasons: Vec<&str> = quoted(row[1]).collect();
        let expected: Vec<&str> = Refusal::ALL
            .iter()
            .filter(|refusal| of_row.contains(&refusal.rule().0))
            .map(|refusal| refusal.as_str())
            .collect();
        assert_eq!(reasons, expected, "rule {}", row[0]);
        rules.extend(of_row);
    }
    let numbered = page.lines().filter_map(|line| line.split_once(". ")?.0.parse::<u8>().ok());
    rules.sort_unstable();
    assert_eq!(rules, numbered.collect::<Vec<_>>(), "each rule has its row");
}

#[test]
fn every_test_that_the_page_names_is_there() {
    let page = coverage();
    let mut seen = 0;
    for head in ["| rule | reasons | tested by |", "| bad input | what it gets | tested by |"] {
        for row in rows(&page, head) {
            let tests: Vec<&str> = quoted(row[2]).collect();
            assert!(!tests.is_empty() || row[2].starts_with("comes with"), "{row:?}");
            for test in tests {
                let (file, name) = test.split_once("::").unwrap_or_else(|| panic!("{test}"));
                let source = fs::read_to_string(root().join("crates").join(file))
                    .unwrap_or_else(|error| panic!("{file}: {error}"));
                let place = source.find(&format!("fn {name}("));
                let before = place.map(|place| &source[..place]);
                // A property of proptest stands a little deeper, and some have a reason between.
                let is_test = before.and_then(|it| it.rsplit_once("#[test]"));
                let is_test = is_test.is_some_and(|(_, between)| !between.contains("fn "));
                assert!(is_test, "{file} has no test {name}");
                seen += 1;
            }
        }
    }
    assert!(seen > 40, "{seen} are named");
}
