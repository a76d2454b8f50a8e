//! Rules about the contents of sources: words, `unsafe`, sleeps in tests, headers of crates.

use super::file::File;
use super::finding::Finding;
use super::kinds;
use super::lexer::{self, Views};
use super::test_code::test_lines;

/// Words that mark unfinished work, which belongs into an issue.
const UNDONE: [&str; 4] = ["FIXME", "HACK", "TODO", "XXX"];
/// Macros that mark unfinished work.
const UNDONE_MACROS: [&str; 3] = ["dbg", "todo", "unimplemented"];
/// Calls that wait for time to pass.
const SLEEPS: [&str; 6] =
    ["clock_nanosleep", "nanosleep", "sleep", "sleep_ms", "sleep_until", "usleep"];
/// Folders in which `unsafe` is allowed.
const UNSAFE_FOLDERS: [&str; 2] = ["crates/event/", "crates/spawn/"];
/// Crates that have workers but do not decide how many.
const SIZED_FOLDERS: [&str; 2] = ["crates/database/src/", "crates/pool/src/"];
/// Fields of a sizing that only the policy may use in decisions.
const SIZES: [&str; 4] = ["idle", "max", "min", "spare"];
/// Fields that mean a sizing in any context.
const SIZES_ALONE: [&str; 4] = ["grow_above", "grow_after", "grow_step_max", "spare"];
/// The required phrases in the header of a crate.
const HEADER: [&str; 3] = ["what it is", "what it depends on", "must never depend on"];

/// The first line of a crate whose README is the front page of its documentation.
const README: &str = "#![doc = include_str!(\"../README.md\")]";

/// Returns the findings in one file.
pub(super) fn check(file: &File) -> Vec<Finding> {
    if !file.is_rust() {
        return undone(file, &file.text);
    }
    let views = lexer::views(&file.text);
    let mut findings = undone(file, &views.comments);
    findings.extend(macros(file, &views));
    findings.extend(unsafety(file, &views));
    findings.extend(sizing(file, &views));
    findings.extend(in_tests(file, &views));
    findings.extend(kinds::check(file, &views.code));
    findings.extend(header(file));
    findings.sort_by_key(|finding| finding.line);
    findings
}

fn undone(file: &File, text: &str) -> Vec<Finding> {
    let of_word = |word: &'static str| {
        lexer::lines_with(text, word).map(move |line| {
            let text = format!("{word}: do it, or open an issue");
            Finding::new(&file.path, line, text)
        })
    };
    UNDONE.into_iter().flat_map(of_word).collect()
}

fn macros(file: &File, views: &Views) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, code) in views.code.lines().enumerate() {
        let called = |name: &&str| lexer::after_each(code, name).any(|rest| rest.starts_with('!'));
        for name in UNDONE_MACROS.iter().filter(|name| called(name)) {
            findings.push(Finding::new(&file.path, index + 1, format!("`{name}!` is left over")));
        }
    }
    findings
}

fn unsafety(file: &File, views: &Views) -> Vec<Finding> {
    if UNSAFE_FOLDERS.iter().any(|folder| file.path.starts_with(folder)) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for line in lexer::lines_with(&views.code, "unsafe") {
        let text = "`unsafe` stands only in event and spawn";
        findings.push(Finding::new(&file.path, line, text));
    }
    for line in lexer::lines_with(&views.code, "unsafe_code") {
        let code = views.code.lines().nth(line - 1).unwrap_or_default();
        if !lexer::has_word(code, "forbid") && !lexer::has_word(code, "deny") {
            let text = "`unsafe_code` is allowed only in event and spawn";
            findings.push(Finding::new(&file.path, line, text));
        }
    }
    findings
}

/// Checks that the number of workers is decided only in elastic, and not in crates below it.
fn sizing(file: &File, views: &Views) -> Vec<Finding> {
    if !SIZED_FOLDERS.iter().any(|folder| file.path.starts_with(folder)) {
        return Vec::new();
    }
    let decides = |code: &str| {
        let mut after = code.split("sizing.").skip(1);
        let reads = after.any(|rest| SIZES.iter().any(|name| begins_with(rest, name)));
        reads || SIZES_ALONE.iter().any(|name| lexer::has_word(code, name))
    };
    let lines = views.code.lines().zip(test_lines(&file.path, &views.code)).enumerate();
    lines
        .filter(|(_, (code, in_test))| !in_test && decides(code))
        .map(|(index, _)| {
            let text = "sizing code: `elastic::Policy` says how many; ask it, or teach it";
            Finding::new(&file.path, index + 1, text)
        })
        .collect()
}

/// Returns whether `name` is the first word of `text`.
fn begins_with(text: &str, name: &str) -> bool {
    text.strip_prefix(name).is_some_and(|rest| !rest.starts_with(lexer::is_word))
}

/// Forbids sleeps in tests, and ignored tests without a reason.
fn in_tests(file: &File, views: &Views) -> Vec<Finding> {
    let regions = test_lines(&file.path, &views.code);
    let mut findings = Vec::new();
    for ((index, code), in_test) in views.code.lines().enumerate().zip(regions) {
        if in_test && SLEEPS.iter().any(|name| calls(code, name)) {
            let text = "a sleep in a test: wait for an event, or make time an argument";
            findings.push(Finding::new(&file.path, index + 1, text));
        }
        if code.replace(' ', "").contains("#[ignore]") {
            let text = "a test left out without a reason: `#[ignore = \"…\"]`, or mend it";
            findings.push(Finding::new(&file.path, index + 1, text));
        }
    }
    findings
}

fn calls(code: &str, name: &str) -> bool {
    lexer::after_each(code, name).any(|rest| rest.trim_start().starts_with('('))
}

/// Checks that the root of a crate describes the crate.
fn header(file: &File) -> Option<Finding> {
    let inside = file.path.strip_prefix("crates/")?;
    let (_, source) = inside.split_once('/')?;
    if source != "src/lib.rs" {
        return None;
    }
    let is_before = |line: &&str| line.starts_with("// tidy:") || *line == README;
    let lines = file.text.lines().skip_while(is_before);
    let header: Vec<&str> = lines.map_while(|line| line.strip_prefix("//!")).collect();
    let words: Vec<&str> = header.iter().flat_map(|line| line.split_whitespace()).collect();
    let words = words.join(" ").to_lowercase();
    let missing: Vec<&str> = HEADER.into_iter().filter(|part| !words.contains(part)).collect();
    (!missing.is_empty()).then(|| {
        let text = format!("a crate opens with `//!` lines; missing: {}", missing.join("; "));
        Finding::new(&file.path, 1, text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> Vec<String> {
        let file = File { path: path.to_owned(), text: text.to_owned() };
        check(&file).iter().map(ToString::to_string).collect()
    }

    const SOURCE: &str = "crates/pool/src/queue.rs";

    #[test]
    fn undone_work_is_found_in_comments_only() {
        let found = findings(SOURCE, "// TODO later\nlet a = \"TODO\";\n/// XXX\nlet todos = 1;\n");
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("crates/pool/src/queue.rs:1: TODO"), "{found:?}");
        assert_eq!(findings("docs/a.md", "so\nFIXME that\n").len(), 1);
    }

    #[test]
    fn left_over_macros_are_found() {
        assert_eq!(findings(SOURCE, "fn f() { todo!() }\ndbg!(1);\nlet todo = 2;\n").len(), 2);
    }

    #[test]
    fn unsafe_has_its_two_rooms() {
        let code = "unsafe { f() }\n#![allow(unsafe_code)]\n#![forbid(unsafe_code)]\n// unsafe\n";
        assert_eq!(findings(SOURCE, code).len(), 2);
        assert_eq!(findings("crates/event/src/epoll.rs", code).len(), 0);
        assert_eq!(findings("crates/spawn/src/supervisor.rs", code).len(), 0);
    }

    #[test]
    fn how_many_is_decided_in_elastic_only() {
        let code = "if ready > self.settings.sizing.max { stop() }\nlet spare = 2;\n";
        assert_eq!(findings(SOURCE, code).len(), 2);
        assert_eq!(findings("crates/database/src/sqlite.rs", code).len(), 2);
        assert_eq!(findings("crates/elastic/src/policy.rs", code).len(), 0);
        assert_eq!(findings("crates/pool/src/pool/tests/requests.rs", code).len(), 0);
        // Passing a sizing on, other limits and prose are not decisions.
        let seam = "Policy::new(sizing);\nlet most = sizing.most();\nlength.min(max)\n// spare\n\
                    sizing.maximal()\n";
        assert_eq!(findings(SOURCE, seam), Vec::<String>::new());
    }

    #[test]
    fn sleeps_are_found_in_tests_only() {
        let call = "std::thread::sleep(pause);\n";
        assert_eq!(findings("crates/pool/tests/all.rs", call).len(), 1);
        assert_eq!(findings("crates/pool/src/queue/tests.rs", call).len(), 1);
        assert_eq!(findings(SOURCE, call).len(), 0);
        let mixed = format!(
            "fn a() {{ {call} }}\n#[cfg(test)]\nmod tests {{\n fn b() {{\n{call}}}\n}}\nfn c() {{ {call} }}\n"
        );
        let found = findings(SOURCE, &mixed);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains(":6: a sleep"), "{found:?}");
        // A program with this name is a worker like any other, and a method with this name is not the call.
        let program = "Command::new(\"sleep\").arg(\"60\");\nlet sleep = 1; asleep(2);\n";
        assert_eq!(findings("crates/pool/tests/all.rs", program).len(), 0);
    }

    #[test]
    fn a_bare_ignore_is_found() {
        assert_eq!(findings(SOURCE, "#[ignore]\nfn a() {}\n").len(), 1);
        assert_eq!(findings(SOURCE, "#[ignore = \"needs a printer\"]\nfn a() {}\n").len(), 0);
    }

    #[test]
    fn a_crate_says_what_it_is() {
        let good = "//! Who waits.\n//!\n//! What it is: a queue. What it\n//! depends on: time. What it must never\n//! depend on: sockets.\n\nmod a;\n";
        assert_eq!(findings("crates/pool/src/lib.rs", good).len(), 0);
        let below_readme = format!("{README}\n{good}");
        assert_eq!(findings("crates/pool/src/lib.rs", &below_readme).len(), 0);
        let found = findings("crates/pool/src/lib.rs", "//! Stand-in.\n//! What it is: none.\n");
        assert_eq!(
            found,
            [
                "crates/pool/src/lib.rs:1: a crate opens with `//!` lines; missing: what it depends on; must never depend on"
            ]
        );
        assert_eq!(findings("crates/pool/src/queue.rs", "//! Anything.\n").len(), 0);
    }
}
