//! Reports parts of a test that could not run on this machine, so that they are never skipped silently.

use std::fs::OpenOptions;
use std::io::Write as _;

/// The variable with the path of a file for these reports. `cargo xtask` sets it and prints the file at its end.
const FILE: &str = "ROADSTEAD_UNTESTED";

/// Reports that `what` was not tested, the reason `why`, and `how` it can be tested.
pub(crate) fn untested(what: &str, why: &str, how: &str) {
    let why = why.lines().next().unwrap_or_default().trim_end_matches('.');
    let line = format!("{what}: {why}; {how}\n");
    // Written directly, because the output of `eprintln` is hidden if a test passes.
    let _ = std::io::stderr().write_all(format!("NOT TESTED: {line}").as_bytes());
    let Ok(file) = std::env::var(FILE) else { return };
    // In one write, because tests of several processes write at the same time.
    let opened = OpenOptions::new().create(true).append(true).open(file);
    opened.and_then(|mut file| file.write_all(line.as_bytes())).unwrap();
}

/// Reports that `what` was not tested because it requires root.
pub(crate) fn untested_without_root(what: &str, why: &str) {
    untested(what, why, "run it as root (`sudo -E env PATH=\"$PATH\" cargo xtask test`)");
}
