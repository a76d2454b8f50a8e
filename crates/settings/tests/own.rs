//! Errors of pools whose programs each serve one connection.

use settings::{Diagnostic, Source, parse};

const LISTENER: &str = "[listener.main]\nlisten = \":7000\"\npool = \"echo\"\n";
const POOL: &str = "[pool.echo]\nprogram = [\"cat\"]\n";

/// Returns the only error of a file. It must be on the last line.
fn only(text: &str) -> Diagnostic {
    let source = Source { name: "roadstead.toml".into(), text: text.into() };
    let errors = parse(&source, &|_| None).expect_err(text);
    assert_eq!(errors.iter().count(), 1, "{text}\n{errors}");
    let error = errors.iter().next().expect("there is one").clone();
    assert_eq!(error.line, text.lines().count(), "{error:?}");
    error
}

#[test]
fn what_makes_a_program_forget_is_one_frame() {
    for (framing, reset, why) in [
        ("lines", "a\\nb", "a line feed ends a frame"),
        ("jsonrpc", "{\\n}", "a line feed ends a frame"),
        ("len1", &"x".repeat(256), "a frame of `len1` has at most 255 bytes"),
    ] {
        let own = format!("framing = \"{framing}\"\ndispatch = \"session\"\nreset = \"{reset}\"\n");
        let error = only(&format!("{LISTENER}{POOL}{own}"));
        assert_eq!(error.column, 9, "{error:?}");
        assert_eq!(error.message, format!("`reset` is not a valid frame: {why}"));
        let suggestion = "write one request, or remove `reset`: the program is then replaced";
        assert_eq!(error.suggestion.as_deref(), Some(suggestion));
    }
}

#[test]
fn a_program_on_raw_is_not_reset() {
    let own = "framing = \"raw\"\nstream = { idle_timeout = \"50ms\" }\ndispatch = \"session\"\nreset = \"forget\"\n";
    let error = only(&format!("{LISTENER}{POOL}{own}"));
    assert_eq!(
        error.message,
        "with `raw`, a program may still have unread bytes of its last client"
    );
}

#[test]
fn a_reply_does_not_go_to_a_program_that_is_a_connections_own() {
    let own = "[pool.own]\nprogram = [\"cat\"]\ndispatch = \"session\"\n";
    let error = only(&format!("{own}{LISTENER}{POOL}then = \"own\"\n"));
    assert_eq!((error.column, error.word.as_str()), (8, "\"own\""));
    assert_eq!(error.message, "each program of `[pool.own]` serves one connection");
    assert_eq!(error.suggestion.as_deref(), Some("remove `then`, or `dispatch` from `[pool.own]`"));
}
