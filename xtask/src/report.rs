//! Parses the output of `cargo test` into one line per test binary.
//!
//! Pure: lines in, finished binaries out. A binary that ends without a result line (it was killed or aborted) counts as
//! one failure, and never as a pass.

use std::mem;

/// All binaries of one run of `cargo test`.
#[derive(Debug, Default)]
pub(crate) struct Report {
    current: Option<Binary>,
    /// The last library whose own tests ran.
    library: String,
    /// Binaries with a failure, with their output.
    pub(crate) failures: Vec<Binary>,
    /// The output of cargo outside of any binary.
    pub(crate) outside: String,
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) ignored: u64,
}

/// One test binary, or the documentation tests of one package.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Binary {
    pub(crate) name: String,
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) ignored: u64,
    pub(crate) took: String,
    /// Its output, without the lines of passed tests.
    pub(crate) said: String,
    has_result: bool,
}

impl Binary {
    /// Returns its line: counts, time, name.
    pub(crate) fn line(&self) -> String {
        let verdict = if self.failed == 0 { "ok    " } else { "FAILED" };
        let failed =
            if self.failed > 0 { format!(" {} failed", self.failed) } else { String::new() };
        let ignored =
            if self.ignored > 0 { format!(" {} ignored", self.ignored) } else { String::new() };
        let counts = format!("{} passed{failed}{ignored}", self.passed);
        format!("  {verdict} {counts:<16} {:>8}  {}", self.took, self.name)
    }
}

impl Report {
    /// Parses one line. Returns the binary that the line finishes, if any.
    pub(crate) fn take(&mut self, line: &str) -> Option<Binary> {
        if let Some(beginning) = begins(line) {
            let finished = self.finish();
            let name = match beginning {
                Beginning::Library(name) => {
                    self.library.clone_from(&name);
                    name
                }
                // Cargo prints the file, not the package. The tests of the package's library ran directly before.
                Beginning::File(file) if self.library.is_empty() => file,
                Beginning::File(file) => format!("{} {file}", self.library),
                Beginning::Other(name) => name,
            };
            self.current = Some(Binary { name, ..Binary::default() });
            return finished;
        }
        let Some(current) = &mut self.current else {
            self.outside.push_str(line);
            self.outside.push('\n');
            return None;
        };
        if let Some(counts) = line.strip_prefix("test result: ") {
            // Documentation tests print one result per edition, so results are added.
            current.passed += count(counts, "passed");
            current.failed += count(counts, "failed");
            current.ignored += count(counts, "ignored");
            // A binary with its own main function may omit the time.
            current.took =
                counts.split_once("finished in ").map_or("", |(_, took)| took).to_owned();
            current.has_result = true;
        } else if !(line.starts_with("test ") && line.ends_with(" ... ok")) {
            current.said.push_str(line);
            current.said.push('\n');
        }
        None
    }

    /// Finishes the last binary. Must be called once after the last line.
    pub(crate) fn finish(&mut self) -> Option<Binary> {
        let mut binary = mem::take(&mut self.current)?;
        if !binary.has_result {
            binary.failed += 1;
            binary.said.push_str("it ended without a test result\n");
        }
        self.passed += binary.passed;
        self.failed += binary.failed;
        self.ignored += binary.ignored;
        if binary.failed > 0 {
            let shown = binary.without_output();
            self.failures.push(binary);
            return Some(shown);
        }
        Some(binary)
    }

    /// Returns the sum over all binaries, in the format of cargo.
    pub(crate) fn sum(&self) -> String {
        format!("{} passed, {} failed", self.passed, self.failed)
    }
}

impl Binary {
    fn without_output(&self) -> Self {
        Self { name: self.name.clone(), took: self.took.clone(), said: String::new(), ..*self }
    }
}

/// The source of the following output.
enum Beginning {
    /// The tests inside a library, by its name.
    Library(String),
    /// A file of tests, by its path in its package.
    File(String),
    /// Another source, by a short name.
    Other(String),
}

/// Returns the source of the output that this line of cargo announces.
fn begins(line: &str) -> Option<Beginning> {
    let line = line.trim_start();
    if let Some(package) = line.strip_prefix("Doc-tests ") {
        return Some(Beginning::Other(format!("{package} (documentation)")));
    }
    let running = line.strip_prefix("Running ")?;
    // "unittests src/lib.rs (target/debug/deps/block-0123456789abcdef)"
    let (source, path) = running.strip_suffix(')')?.rsplit_once(" (")?;
    let file = path.rsplit('/').next().unwrap_or(path);
    let package = file.rsplit_once('-').map_or(file, |(package, _)| package);
    Some(match source.strip_prefix("unittests ") {
        Some("src/lib.rs") => Beginning::Library(package.to_owned()),
        Some(source) => Beginning::Other(format!("{package} ({source})")),
        None => Beginning::File(source.to_owned()),
    })
}

/// Returns the number before a word: `3` for `passed` in `ok. 3 passed; 0 failed`.
fn count(text: &str, word: &str) -> u64 {
    text.split([';', '.'])
        .filter_map(|part| part.trim().strip_suffix(word)?.trim_end().parse().ok())
        .next()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Report, Vec<Binary>) {
        let mut report = Report::default();
        let mut finished: Vec<Binary> = text.lines().filter_map(|line| report.take(line)).collect();
        finished.extend(report.finish());
        (report, finished)
    }

    const GOOD: &str = "    Finished `test` profile in 0.1s
     Running unittests src/lib.rs (target/debug/deps/block-0123)

running 2 tests
test a ... ok
test b ... ok

test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.02s

     Running tests/faults_rows.rs (target/debug/deps/faults_rows-0123)
test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.50s
   Doc-tests block
test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.30s
test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.30s
";

    #[test]
    fn counts_are_summed_and_binaries_named() {
        let (report, finished) = read(GOOD);
        assert_eq!(report.sum(), "7 passed, 0 failed");
        assert_eq!(report.ignored, 1);
        let names: Vec<&str> = finished.iter().map(|binary| binary.name.as_str()).collect();
        assert_eq!(names, ["block", "block tests/faults_rows.rs", "block (documentation)"]);
        assert_eq!(finished[1].took, "1.50s");
        assert!(report.outside.contains("Finished"));
    }

    #[test]
    fn a_failure_keeps_what_was_said() {
        let (report, finished) = read(
            "     Running unittests src/lib.rs (t/deps/pool-01)
test fine ... ok
test broken ... FAILED
assertion failed: left
test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.02s",
        );
        assert_eq!(report.sum(), "1 passed, 1 failed");
        assert!(report.failures[0].said.contains("assertion failed"));
        assert!(!report.failures[0].said.contains("fine ... ok"));
        assert!(finished[0].line().contains("FAILED 1 passed 1 failed"), "{}", finished[0].line());
    }

    #[test]
    fn a_binary_with_a_main_of_its_own_may_leave_the_time_out() {
        let (report, finished) =
            read("     Running tests/p.rs (d/p-1)\ntest result: ok. 45 passed; 0 failed\n");
        assert_eq!(report.sum(), "45 passed, 0 failed");
        assert_eq!((finished[0].took.as_str(), finished[0].name.as_str()), ("", "tests/p.rs"));
    }

    #[test]
    fn a_binary_that_dies_without_a_result_is_a_failure() {
        let (report, _) = read(
            "     Running unittests src/lib.rs (t/deps/event-01)
running 9 tests
     Running unittests src/lib.rs (t/deps/pool-01)
test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.02s",
        );
        assert_eq!(report.sum(), "1 passed, 1 failed");
        assert_eq!(report.failures[0].name, "event");
    }
}
