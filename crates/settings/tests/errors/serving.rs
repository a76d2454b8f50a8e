//! Errors of programs that serve HTTP.

use settings::{Source, parse};

use super::{LISTENER, POOL, in_pool, only, says};

/// Returns the only error of a pool with a program that serves HTTP, behind an HTTP listener.
fn serving(line: &str) -> super::Diagnostic {
    let http = "framing = \"http\"\n";
    only(&format!("{LISTENER}protocol = \"http\"\n{POOL}{http}{line}\n"))
}

#[test]
fn a_socket_is_for_programs_that_serve_http() {
    says(
        in_pool("socket = \"path\""),
        1,
        "socket",
        "a program on pipes has no socket",
        "add `framing = \"http\"`, or remove `socket`",
    );
    let error = serving("socket = \"path\"\nuser = \"nobody\"");
    assert_eq!(error.message, "another user cannot create a socket in the daemon's directory");
    assert_eq!(error.word, "\"path\"");
}

#[test]
fn what_goes_through_pipes_means_nothing_to_one_that_serves_http() {
    for line in [
        "dispatch = \"in-order\"",
        "stream = { until = \".\" }",
        "io = \"socket\"",
        "ready = \"line\"",
        "first_byte_timeout = \"1s\"",
        "reply_max = \"1MiB\"",
    ] {
        let word = line.split(' ').next().unwrap();
        let error = serving(line);
        let message = format!("`{word}` has no effect on a program that serves HTTP");
        assert_eq!((error.message, error.word), (message, word.to_owned()));
    }
    let error = serving("health_check = { check = \"line\", send = \"a\" }");
    assert_eq!(error.message, "a program that serves HTTP does not read lines");
    let error = serving("balance = \"hash\"\nhash = \"word:1\"");
    assert!(error.suggestion.is_some_and(|suggestion| suggestion.contains("header:NAME")));
}

#[test]
fn one_that_serves_http_has_clients_of_http_alone() {
    let (error, _) = in_pool("framing = \"http\"");
    assert_eq!(
        error.message,
        "the programs of `[pool.echo]` speak HTTP, but the clients of this listener do not"
    );
    assert_eq!(error.suggestion.as_deref(), Some("write `protocol = \"http\"`"));
    let error = serving("[pool.first]\nprogram = [\"cat\"]\nthen = \"echo\"");
    assert!(error.message.ends_with("and a reply of this pool is not one"), "{error:?}");
}

#[test]
fn what_a_pool_of_servers_has_one_of_such_programs_has_too() {
    for line in [
        "health_check = { check = \"http\", path = \"/health\" }",
        "health_check = { check = \"tcp\" }",
        "sticky = { cookie = \"worker\" }",
        "fallback = { line = \"later\", status = 429, retry_after = \"9s\" }",
    ] {
        let http = "framing = \"http\"\n";
        let text = format!("{LISTENER}protocol = \"http\"\n{POOL}{http}{line}\n");
        let source = Source { name: "roadstead.toml".into(), text };
        assert!(parse(&source, &|_| None).is_ok(), "{line}");
    }
    let error = serving("health_check = { check = \"tcp\", port = 80 }");
    assert_eq!(error.message, "`port` has no effect: programs have no address");
}

#[test]
fn only_who_is_asked_in_messages_of_http_is_asked_again() {
    let error = in_pool("retries = { tries = 2 }");
    let message = "`[pool.echo]` has neither servers nor programs that serve HTTP";
    says(error, 1, "retries", message, "remove `retries`");
    for (wrong, word) in [
        ("tries = 0", "0"),
        ("tries = 256", "256"),
        ("budget = \"101%\"", "\"101%\""),
        ("min_retries = 0", "0"),
    ] {
        let error = serving(&format!("retries = {{ {wrong} }}"));
        assert_eq!(error.word, word, "{error:?}");
    }
    let error = serving("retries = { on = [\"connect\", \"5xx\"] }");
    assert_eq!(error.message, "`5xx` is neither a failure nor a status");
}

#[test]
fn how_often_a_request_is_repeated_is_set_for_servers_and_such_programs() {
    for worker in ["servers = [\"127.0.0.1:1\"]", "program = [\"cat\"]\nframing = \"http\""] {
        let text = format!(
            "{LISTENER}protocol = \"http\"\n[pool.echo]\n{worker}\nretries = {{ tries = 5, budget = \"50%\", min_retries = 2 }}\n"
        );
        let source = Source { name: "roadstead.toml".into(), text };
        let read = parse(&source, &|_| None).expect("it is right");
        let retries = read.pools[0].balancing.retries;
        assert_eq!((retries.tries, retries.budget, retries.min_retries), (5, 50, 2));
    }
}

#[test]
fn what_is_handed_to_another_pool_can_be_read_there() {
    let http = format!("{LISTENER}protocol = \"http\"\n");
    let web = "[pool.web]\nservers = [\"127.0.0.1:1\"]\n";
    let (program, store) = (
        "program = [\"cat\"]",
        "database = \"sqlite:a.db\"\ninsert = { table = \"a\", columns = [\"b\"] }",
    );
    let servers = "servers = [\"127.0.0.1:2\"]";
    // HTTP requests can be passed to any pool.
    let query = "database = \"sqlite:a.db\"\nquery = \"select 1\"";
    let serving = "program = [\"cat\"]\nframing = \"http\"";
    let kinds = [program, store, query, servers, serving];
    for from in kinds {
        for to in kinds {
            let text = format!(
                "{http}[pool.echo]\nfallback = {{ pool = \"other\" }}\n{from}\n[pool.other]\n{to}\n"
            );
            let read = parse(&Source { name: "roadstead.toml".into(), text }, &|_| None);
            assert!(read.is_ok(), "{from} to {to}: {read:?}");
        }
    }
    // Requests of another listener are frames, and so are replies that are passed on.
    for more in [
        "[listener.lines]\nlisten = \"127.0.0.1:0\"\npool = \"echo\"\n",
        "[pool.first]\nprogram = [\"cat\"]\nthen = \"echo\"\n",
    ] {
        let text =
            format!("{http}[pool.echo]\nfallback = {{ pool = \"web\" }}\n{program}\n{web}{more}");
        let error = only(&text);
        let told = "`[pool.echo]` receives frames, but the workers of `[pool.web]` accept HTTP requests only";
        assert_eq!((error.message.as_str(), error.word.as_str()), (told, "\"web\""));
    }
    // A netstring frame could contain a complete request for a server.
    let frames =
        format!("{LISTENER}protocol = \"netstring\"\n{POOL}fallback = {{ pool = \"web\" }}\n{web}");
    assert!(only(&frames).message.ends_with("HTTP requests only"));
    let error = only(&format!("{LISTENER}{POOL}then = \"web\"\n{web}"));
    assert!(error.message.ends_with("and a reply of this pool is not one"), "{error:?}");
    // A frame is a record if clients send frames.
    let text =
        format!("{LISTENER}{POOL}fallback = {{ pool = \"store\" }}\n[pool.store]\n{store}\n");
    assert!(parse(&Source { name: "roadstead.toml".into(), text }, &|_| None).is_ok());
    let own = "[pool.own]\nprogram = [\"cat\"]\ndispatch = \"session\"\n";
    let error = only(&format!("{LISTENER}{POOL}fallback = {{ pool = \"own\" }}\n{own}"));
    assert_eq!(error.message, "each program of `[pool.own]` serves one connection");
}

#[test]
fn behind_http_no_pool_further_on_gives_many_frames() {
    let http = format!("{LISTENER}protocol = \"http\"\n{POOL}");
    for (last, why) in [
        ("stream = { until = \".\" }", "its replies have several frames"),
        (
            "framing = \"raw\"\nstream = { idle_timeout = \"50ms\" }",
            "its replies have several frames",
        ),
        ("framing = \"jsonrpc\"", "its messages are JSON-RPC"),
        ("framing = \"content-length\"\ndispatch = \"in-order\"", "its messages are JSON-RPC"),
    ] {
        let last = format!("[pool.last]\nprogram = [\"cat\"]\n{last}\n");
        let told = format!(
            "a program behind HTTP gets an object and gives one answer, and {why} in `[pool.last]`"
        );
        let between = "[pool.between]\nprogram = [\"cat\"]\n";
        for way in [
            format!("then = \"last\"\n{last}"),
            format!("fallback = {{ pool = \"last\" }}\n{last}"),
            format!("then = \"between\"\n{between}fallback = {{ pool = \"last\" }}\n{last}"),
            format!("fallback = {{ pool = \"between\" }}\n{between}then = \"last\"\n{last}"),
        ] {
            let error = only(&format!("{http}{way}"));
            assert_eq!(
                (error.message.as_str(), error.word.as_str()),
                (&*told, "\"last\""),
                "{way}"
            );
            let text = format!("{LISTENER}{POOL}{way}");
            let read = parse(&Source { name: "roadstead.toml".into(), text }, &|_| None);
            assert!(read.is_ok(), "clients that send frames may have it: {way}");
        }
    }
}

#[test]
fn no_request_comes_back_to_a_pool_that_was_fallback_for_it() {
    let back = "[pool.b]\nprogram = [\"cat\"]\nthen = \"echo\"\n";
    let error = only(&format!("{LISTENER}{POOL}fallback = {{ pool = \"b\" }}\n{back}"));
    assert_eq!(
        (error.message.as_str(), error.word.as_str()),
        ("the `fallback`s of these pools form a cycle", "\"b\"")
    );
}

#[test]
fn a_cookie_without_its_age_has_no_lifetime_and_needs_no_table() {
    for (line, word) in [
        ("lifetime = \"1h\"", "lifetime"),
        ("entries = 9", "entries"),
        ("mode = \"passive\", entries = 10000001", "10000001"),
    ] {
        let error = serving(&format!("sticky = {{ cookie = \"worker\", {line} }}"));
        assert_eq!(error.word, word, "{error:?}");
    }
}

#[test]
fn what_says_nothing_first_is_not_waited_for() {
    for (line, word) in [
        ("framing = \"oneshot\"\nready = \"line\"", "\"line\""),
        ("framing = \"oneshot\"\nsticky = { key = \"source\" }", "sticky"),
        ("framing = \"jsonrpc\"\nhandshake = \"mcp\"\nready = \"line\"", "\"line\""),
    ] {
        let (error, _) = in_pool(line);
        assert_eq!(error.word, word, "{error:?}");
    }
}
