//! Errors of client addresses and of the access log.

use super::{LISTENER, POOL, in_listener, only, says};

#[test]
fn limits_by_address_are_networks_and_numbers_that_fit_together() {
    let (error, _) = in_listener("allow = [\"10.0.0.0/40\"]");
    assert!(error.message.starts_with("`10.0.0.0/40` has no prefix length"), "{error:?}");
    let (error, _) = in_listener("deny = [\"localhost\"]");
    assert_eq!(error.suggestion.as_deref(), Some("write for example \"10.0.0.0/8\""));
    let nothing = "`per_address` limits nothing";
    says(in_listener("per_address = {}"), 1, "per_address", nothing, "add `connections = 100`");
    says(
        in_listener("per_address = { connections = 5, requests_burst = 5 }"),
        34,
        "requests_burst",
        "`requests_burst` requires `requests`",
        "add `requests = 10`, or remove it",
    );
    says(
        in_listener("per_address = { connections = 5, entries = 100 }"),
        44,
        "100",
        "`entries` = 100 is less than the 10000 connections that are allowed",
        "write `entries = 10000` in `per_address`",
    );
    says(
        in_listener("protocol = \"http\"\nforwarded = \"off\"\ntrusted = [\"::1\"]"),
        1,
        "trusted",
        "`trusted` has no effect: the client's address is not forwarded to servers",
        "remove it, or choose one of these",
    );
    let unix = LISTENER.replace(":7000", "unix:a.sock");
    let error = only(&format!("{POOL}{unix}deny = [\"::1\"]\n"));
    assert_eq!(error.message, "clients of a Unix socket have no IP address");
}

#[test]
fn the_access_log_has_a_place_and_a_format() {
    let log = |line: &str| {
        let text = format!("{POOL}{LISTENER}[access_log]\n{line}\n");
        (only(&text), text.lines().count())
    };
    says(
        log("to = \"syslog\""),
        6,
        "\"syslog\"",
        "`to` is no place for a log",
        "write \"file:access.log\", \"stdout\" or \"stderr\"",
    );
    let suggestion = "write `{status}`";
    let message = "`format` names `{stauts}`, which no request has";
    let format = "\"{client} {stauts}\"";
    says(log(&format!("to = \"stdout\"\nformat = {format}")), 10, format, message, suggestion);
    let (error, _) = log("to = \"stdout\"\nformat = \"clf\"");
    assert_eq!(error.message, "`format` is no format");
    assert_eq!(only(&format!("{POOL}{LISTENER}[access_log]\n")).word, "access_log");
}
