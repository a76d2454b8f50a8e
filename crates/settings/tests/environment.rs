//! Values in environment variables of the daemon.

use std::time::Duration;

use settings::{Configuration, Diagnostic, Diagnostics, Source, parse};

const SECRET: &str = "HUNTER2 HUNTER2";

fn variables(name: &str) -> Option<String> {
    let value = match name {
        "ADDRESS" => "127.0.0.1:7000",
        "COUNT" => "7",
        "TIME" => "1500ms",
        "SIZE" => "64KiB",
        "BYTES" => "4096",
        "OFF" => "false",
        "WORD" => "nul",
        "POOL" => "echo",
        "FOLDER" => "/srv",
        "SHARE" => "20%",
        "SECRET" => SECRET,
        _ => return None,
    };
    Some(value.to_owned())
}

fn read(listener: &str, pool: &str) -> Result<Configuration, Diagnostics> {
    let text = format!("[listener.main]\n{listener}\n[pool.echo]\nprogram = [\"cat\"]\n{pool}\n");
    parse(&Source { name: "x.toml".into(), text }, &variables)
}

/// Returns the only error of a file.
fn only(listener: &str, pool: &str) -> Diagnostic {
    let errors = read(listener, pool).expect_err(pool);
    assert_eq!(errors.iter().count(), 1, "{errors}");
    assert!(!errors.to_string().contains("HUNTER2"), "{errors}");
    errors.iter().next().expect("there is one").clone()
}

const LISTENER: &str = "listen = \":1\"\npool = \"echo\"";

#[test]
fn a_value_of_each_kind_is_read_from_a_variable() {
    let listener = "listen = \"env:ADDRESS\"\npool = \"env:POOL\"\nconnections_max = \"env:COUNT\"\n\
        frame_max = \"env:SIZE\"\nsend_max = \"env:BYTES\"\nrequest_read_timeout = \"env:TIME\"\n";
    let pool = "framing = \"env:WORD\"\ncwd = \"env:FOLDER\"\nreset = \"env:SECRET\"\ndispatch = \"session\"\n\
        fallback = { line = \"x\", until = \"env:SHARE\" }\nworkers = { max = \"env:COUNT\" }";
    let read = read(listener, pool).unwrap_or_else(|errors| panic!("{errors}"));
    let (listener, pool) = (&read.listeners[0], &read.pools[0]);
    assert_eq!(listener.listen.to_string(), "127.0.0.1:7000");
    assert_eq!(listener.pool.as_deref(), Some("echo"));
    assert_eq!(listener.connections_max, 7);
    assert_eq!((listener.frame_max, listener.send_max), (65_536, 4096));
    assert_eq!(listener.request_read_timeout, Duration::from_millis(1500));
    assert_eq!(pool.workers.max, 7);
    assert_eq!(pool.balancing.fallback.as_ref().expect("it is given").until, 20);
    let program = pool.program().expect("it is one");
    assert_eq!(program.framing, settings::Framing::Nul);
    assert_eq!(program.cwd.as_deref(), Some(std::path::Path::new("/srv")));
    assert_eq!(program.reset.as_deref(), Some(SECRET));
}

#[test]
fn an_error_names_the_place_and_the_variable() {
    let error = only(LISTENER, "stop_timeout = \"env:ABSENT\"");
    assert_eq!((error.line, error.column, error.word.as_str()), (6, 16, "\"env:ABSENT\""));
    assert_eq!(error.message, "`stop_timeout`: the variable `ABSENT` is not set");
    let error = only(LISTENER, "stop_timeout = \"env:COUNT\"");
    assert_eq!(error.line, 6);
    assert_eq!(error.message, "`stop_timeout`: the variable `COUNT` has no value of this option");
    let expected = error.expected.unwrap_or_default();
    assert!(expected.starts_with("expected a duration from 0s"), "{expected}");
}

#[test]
fn the_value_of_a_variable_that_may_be_a_secret_is_not_shown() {
    for pool in [
        "stop_timeout = \"env:SECRET\"",
        "framing = \"env:SECRET\"",
        "match = \"env:SECRET\"\nstream = { idle_timeout = \"1s\" }",
        "framing = \"raw\"\nstream = { idle_timeout = \"1s\" }\ndispatch = \"session\"\nreset = \"env:SECRET\"",
    ] {
        only(LISTENER, pool);
    }
    // An address is not a secret, but a variable that was meant for another option may be one.
    for (listener, pool) in [
        ("listen = \"env:SECRET\"\npool = \"echo\"", ""),
        ("listen = \":1\"\npool = \"env:SECRET\"", ""),
        (
            LISTENER,
            "max_concurrent = \"env:COUNT\"\npipeline = \"env:COUNT\"\ncgroup = \"env:SECRET\"",
        ),
    ] {
        if let Err(errors) = read(listener, pool) {
            assert!(!errors.to_string().contains("HUNTER2"), "{errors}");
        }
    }
    let errors =
        read(LISTENER, "reset = \"env:SECRET\"").expect_err("it goes with sessions").to_string();
    assert!(errors.contains("env:SECRET") && !errors.contains("HUNTER2"), "{errors}");
}

#[test]
fn the_name_of_the_variable_with_the_address_of_a_database_is_shown() {
    let text = format!(
        "[listener.main]\n{LISTENER}\n[pool.echo]\ndatabase = \"env:SECRET\"\nstatement = \"select 1\"\n"
    );
    let errors =
        parse(&Source { name: "x.toml".into(), text }, &variables).expect_err("no database");
    let shown = errors.to_string();
    assert!(shown.contains("the variable `SECRET` has no value of this option"), "{shown}");
    assert!(shown.contains("database = \"env:SECRET\"") && !shown.contains("HUNTER2"), "{shown}");
}

#[test]
fn items_of_lists_and_places_of_secrets_are_left_as_they_are() {
    let read = read(LISTENER, "sticky = { key = \"source\" }\nenv = { A = \"env:ABSENT\" }");
    let read = read.unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(read.pools[0].program().expect("it is one").env[0].1, "env:ABSENT");
}
