//! What a test could not do on this machine. It is told, and never passed over in silence.

use std::fs::OpenOptions;
use std::io::Write as _;

/// The variable that names a file for what was not tested; `cargo xtask` sets it and shows the file
/// at its end.
const FILE: &str = "ROADSTEAD_UNTESTED";

/// Tells that `what` was not tested, `why`, and `how` it would be.
pub(crate) fn untested(what: &str, why: &str, how: &str) {
    let why = why.lines().next().unwrap_or_default().trim_end_matches('.');
    let line = format!("{what}: {why}; {how}\n");
    // Straight there: what goes through `eprintln` is hidden where a test passes.
    let _ = std::io::stderr().write_all(format!("NOT TESTED: {line}").as_bytes());
    let Ok(file) = std::env::var(FILE) else { return };
    // In one piece: tests of several processes write at once.
    let opened = OpenOptions::new().create(true).append(true).open(file);
    opened.and_then(|mut file| file.write_all(line.as_bytes())).unwrap();
}

/// The same, where it takes root.
pub(crate) fn untested_without_root(what: &str, why: &str) {
    untested(what, why, "run it as root (`sudo -E env PATH=\"$PATH\" cargo xtask test`)");
}
