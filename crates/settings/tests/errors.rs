// tidy: tests
//! One broken file for every kind of error: exactly one diagnostic, at the right place, with the right words. Exactly
//! one matters, because an operator who sees five errors looks for five mistakes.

use settings::{Diagnostic, Diagnostics, Source, parse};

#[path = "errors/access.rs"]
mod access;
#[path = "errors/balance.rs"]
mod balance;
#[path = "errors/databases.rs"]
mod databases;
#[path = "errors/foreign.rs"]
mod foreign;
#[path = "errors/serving.rs"]
mod serving;

const LISTENER: &str = "[listener.main]\nlisten = \":7000\"\npool = \"echo\"\n";
const POOL: &str = "[pool.echo]\nprogram = [\"cat\"]\n";
const STORE: &str = "[pool.store]\ndatabase = \"sqlite:hits.db\"\n";
const INSERT: &str = "insert = { table = \"hits\", columns = [\"at\"] }\n";

fn errors(text: &str) -> Diagnostics {
    let source = Source { name: "roadstead.toml".into(), text: text.into() };
    parse(&source, &|_| None).expect_err(text)
}

fn only(text: &str) -> Diagnostic {
    let errors = errors(text);
    let list: Vec<&Diagnostic> = errors.iter().collect();
    assert_eq!(list.len(), 1, "{text}\n{errors}");
    list[0].clone()
}

/// Puts a line at the end of a section of an otherwise valid file. The section is the last one, so the line is the last
/// line of the file.
fn in_listener(line: &str) -> (Diagnostic, usize) {
    let text = format!("{POOL}{LISTENER}{line}\n");
    (only(&text), text.lines().count())
}

fn in_pool(line: &str) -> (Diagnostic, usize) {
    let text = format!("{LISTENER}{POOL}{line}\n");
    (only(&text), text.lines().count())
}

fn in_store(line: &str) -> (Diagnostic, usize) {
    let text = format!("{LISTENER}{POOL}{STORE}{INSERT}{line}\n");
    (only(&text), text.lines().count())
}

/// The error must be on the last line, at `word`, with this message.
fn says(
    (error, line): (Diagnostic, usize),
    column: usize,
    word: &str,
    message: &str,
    suggestion: &str,
) {
    assert_eq!((error.line, error.column), (line, column), "{error:?}");
    assert_eq!(error.word, word, "{error:?}");
    assert_eq!(error.message, message);
    assert_eq!(error.suggestion.as_deref().unwrap_or_default(), suggestion);
}

#[test]
fn an_unknown_word_names_the_nearest_one() {
    says(
        in_listener("frame_maks = 5"),
        1,
        "frame_maks",
        "`[listener.main]` has no option `frame_maks`",
        "write `frame_max` instead of `frame_maks`",
    );
    says(
        in_listener("reply = \"staus\""),
        9,
        "\"staus\"",
        "`reply` = \"staus\" is not a known value",
        "did you mean \"status\"?",
    );
    says(
        in_pool("exit_message = \"lines\""),
        16,
        "\"lines\"",
        "`exit_message` = \"lines\" is not a known value",
        "did you mean \"line\"?",
    );
    says(
        in_pool("balance = \"busiest\""),
        11,
        "\"busiest\"",
        "`balance` = \"busiest\" is not a known value",
        "write one of `round-robin`, `least-requests`, `power-of-two`, \
         `random`, `hash`, `first`",
    );
    says(
        in_pool("queue = { max_request = 5 }"),
        11,
        "max_request",
        "`queue` has no option `max_request`",
        "write `max_requests` instead of `max_request`",
    );
    says(
        in_pool("queue = { frobnicate = 5 }"),
        11,
        "frobnicate",
        "`queue` has no option `frobnicate`",
        "the options here are `max_requests`, `max_bytes`, `timeout`, `hold_timeout`, `fair`, `priority`",
    );
}

#[test]
fn a_misspelt_section_is_read_as_the_one_that_was_meant() {
    let text = format!("{LISTENER}[pol.echo]\nprogram = [\"cat\"]\n");
    says((only(&text), 4), 2, "pol", "there is no section `pol`", "write `[pool.NAME]`");
    let text = format!("{LISTENER}{POOL}[frontend]\nbind = 5\n");
    says(
        (only(&text), 6),
        2,
        "frontend",
        "there is no section `frontend`",
        "the sections are `[daemon]`, `[admin]`, `[access_log]`, `[listener.NAME]`, `[pool.NAME]`",
    );
}

#[test]
fn an_option_in_the_wrong_place_is_told_where_it_belongs() {
    says(
        in_pool("max = 3"),
        1,
        "max",
        "`[pool.echo]` has no option `max`",
        "it is an option of `workers` of `[pool.NAME]`",
    );
    says(
        in_pool("listen = \":1\""),
        1,
        "listen",
        "`[pool.echo]` has no option `listen`",
        "it is an option of `[admin]` or `[listener.NAME]`",
    );
    says(
        in_pool("batch = { rows = 5 }"),
        1,
        "batch",
        "`batch` is an option of a database pool, and `[pool.echo]` is a program pool",
        "remove it; a program takes one request at a time; `pipeline` sends it more before it \
         answers",
    );
    says(
        in_store("then = \"echo\""),
        1,
        "then",
        "`then` is an option of a program pool, and `[pool.store]` is a database pool",
        "remove it",
    );
    let text = format!("listen = \":1\"\n{LISTENER}{POOL}");
    says(
        (only(&text), 1),
        1,
        "listen",
        "`listen` is before the first section",
        "it is an option of `[admin]` or `[listener.NAME]`",
    );
    let text = format!("{POOL}[listener]\nlisten = \":1\"\n");
    says(
        (only(&text), 4),
        1,
        "listen",
        "`listen` is in a listener without a name",
        "name the section, as in `[listener.main]`",
    );
    let text = format!("daemon = 5\n{LISTENER}{POOL}");
    says(
        (only(&text), 1),
        1,
        "daemon",
        "`daemon` is a section, not a whole number",
        "begin it with `[daemon]`",
    );
}

#[test]
fn a_value_of_the_wrong_type_is_mended_where_the_meaning_is_clear() {
    let cases = [
        ("connections_max = \"100\"", 19, "connections_max", "a text", "connections_max = 100"),
        ("idle_timeout = 5", 16, "idle_timeout", "a whole number", "idle_timeout = \"5s\""),
        ("last_line = [\"accept\"]", 13, "last_line", "a list", "last_line = \"accept\""),
        ("half_close = true", 14, "half_close", "true or false", ""),
        ("backlog = 1.5", 11, "backlog", "a fraction", ""),
        ("request_read_timeout = 1979-05-27", 24, "request_read_timeout", "a date or time", ""),
        ("reply = { a = 1 }", 9, "reply", "a table", ""),
    ];
    for (line, column, name, found, suggestion) in cases {
        let suggestion =
            if suggestion.is_empty() { String::new() } else { format!("write `{suggestion}`") };
        let message = format!("`{name}` cannot be {found}");
        says(in_listener(line), column, &line[column - 1..], &message, &suggestion);
    }
    let (error, _) = in_pool("workers = true");
    assert_eq!(
        error.expected.expect("a type is expected"),
        "expected a number, a range like \"2..20\", or a table like { min = 2, max = 20 }"
    );
    let text = format!("{POOL}[listener.main]\npool = \"echo\"\nlisten = 7000\n");
    assert_eq!(only(&text).suggestion.expect("a port is meant"), "write `listen = \":7000\"`");
}

#[test]
fn a_value_out_of_range_is_told_the_range() {
    let whole = [
        ("connections_max = 0", "1 to 1000000"),
        ("in_flight_max = -1", "1 to 1000000"),
        ("backlog = 99999999999999999999999999999999999999999999", "1 to 65535"),
        ("frame_max = 0", "1B to 1GiB"),
        ("frame_max = \"0KiB\"", "1B to 1GiB"),
        ("send_max = \"2GiB\"", "1B to 1GiB"),
        ("idle_timeout = \"25h\"", "1ms to 24h"),
    ];
    for (line, range) in whole {
        let (error, _) = in_listener(line);
        let (name, value) = line.split_once(" = ").expect("a line of the test");
        assert_eq!(error.message, format!("`{name}` = {value} is out of range"));
        assert_eq!(error.column, name.len() + 4);
        assert_eq!(error.suggestion, Some(format!("write a value from {range}")));
    }
    let counted = ["workers = 0", "workers = { max = 0 }", "pipeline = 0"];
    for line in
        counted.into_iter().chain(["queue = { timeout = \"0s\" }", "response_timeout = \"0s\""])
    {
        assert!(in_pool(line).0.message.ends_with("is out of range"), "{line}");
    }
    for line in ["batch = { rows = 0 }", "workers = \"1..99999\""] {
        assert!(in_store(line).0.message.ends_with("is out of range"), "{line}");
    }
}

#[test]
fn a_value_that_cannot_be_read_is_told_why() {
    let cases = [
        ("idle_timeout = \"5\"", "has no unit", "write \"5s\" for seconds"),
        ("idle_timeout = \"5 min\"", "has the unknown unit ` min`", "write \"5m\""),
        ("idle_timeout = \"soon\"", "is not a duration", ""),
        ("idle_timeout = \"-5s\"", "is negative", ""),
        ("idle_timeout = \"\"", "is empty", ""),
        ("idle_timeout = \"99999999999999999h\"", "is too long", ""),
        ("frame_max = \"64KB\"", "has the unknown unit `KB`", "write \"64KiB\""),
        ("frame_max = \"99999999999999GiB\"", "is too large", ""),
    ];
    for (line, why, suggestion) in cases {
        let (error, _) = in_listener(line);
        let (name, value) = line.split_once(" = ").expect("a line of the test");
        assert_eq!(error.message, format!("`{name}` = {value} {why}"));
        assert_eq!(error.suggestion.unwrap_or_default(), suggestion);
    }
    let ack = in_store("ack = \"ok {id\"");
    let suggestion = "close it, as in \"ok {id}\", or write `{{` for the brace itself";
    says(ack, 7, "\"ok {id\"", "`ack` = \"ok {id\" has a `{` that is never closed", suggestion);
    for (line, why) in [
        ("ack = \"ok {}\"", "has `{}` without a name"),
        ("ack = \"a\\nb\"", "contains a line end; a reply is one line"),
        ("create = \" \"", "is empty"),
        ("create = \"\\u0000\"", "contains a NUL"),
    ] {
        assert!(in_store(line).0.message.ends_with(why), "{line}");
    }
}

#[test]
fn an_address_that_cannot_be_read_is_told_why() {
    let cases = [
        ("7000", "is a port without an address", "write \":7000\""),
        ("127.0.0.1", "has no port", "write \"127.0.0.1:7000\""),
        ("::1", "has no port", "write \"[::1]:7000\""),
        ("localhost", "has no port", "write \"localhost:7000\""),
        ("127.0.0.1:70000", "has the port `70000`, which is not a number from 0 to 65535", ""),
        (
            "example:80",
            "has `example`, which is not an IP address; host names are not looked up",
            "write \"127.0.0.1:80\" for this machine only, \":80\" for everybody",
        ),
        ("/run/x", "is not an address", "write \"unix:/run/x\""),
        ("unix:", "has no path", "write \"unix:/run/roadstead.sock\""),
        ("fd:", "has no name", "write \"fd:NAME\", as in LISTEN_FDNAMES"),
        ("", "is empty", ""),
    ];
    for (address, why, suggestion) in cases {
        let text = format!("{POOL}[listener.main]\npool = \"echo\"\nlisten = \"{address}\"\n");
        let error = only(&text);
        assert_eq!((error.line, error.column), (5, 10));
        assert_eq!(error.message, format!("`listen` = \"{address}\" {why}"));
        assert_eq!(error.suggestion.unwrap_or_default(), suggestion);
    }
    let long = format!("unix:/{}", "x".repeat(107));
    let text = format!("{POOL}[listener.main]\npool = \"echo\"\nlisten = \"{long}\"\n");
    assert!(only(&text).message.contains("a path of 108 bytes"));
}

#[test]
fn what_is_missing_is_named_at_its_section() {
    let text = format!("{POOL}[listener.main]\npool = \"echo\"\n");
    let suggestion = "add `listen = \"127.0.0.1:7000\"`";
    says((only(&text), 3), 11, "main", "`[listener.main]` has no `listen`", suggestion);
    let text = format!("{POOL}[listener.main]\nlisten = \":1\"\n");
    says((only(&text), 3), 11, "main", "`[listener.main]` has no `pool`", "add `pool = \"NAME\"`");
    let text = format!("{LISTENER}[pool.echo]\nworkers = 2\n");
    let message = "`[pool.echo]` has neither `program` nor `database`";
    let suggestion = "add `program = [\"perl\", \"parse.pl\"]` or `database = \"sqlite:hits.db\"`";
    says((only(&text), 4), 7, "echo", message, suggestion);
    let text = format!("{LISTENER}{POOL}{STORE}");
    let message = "`[pool.store]` has neither `insert`, `statement` nor `query`";
    let suggestion = "add `insert = { table = \"NAME\", columns = [\"NAME\", …] }`";
    says((only(&text), 6), 7, "store", message, suggestion);
    let text = format!("{LISTENER}{POOL}{STORE}insert = {{ table = \"hits\" }}\n");
    let suggestion = "add `columns = [\"NAME\", …]`";
    says((only(&text), 8), 1, "insert", "`insert` has no `columns`", suggestion);
    let error = only("");
    assert_eq!((error.line, error.column), (1, 1));
    assert_eq!(error.message, "there is no pool to answer requests");
    assert_eq!(only(&format!("{LISTENER}{POOL}[admin]\n")).message, "`[admin]` has no `listen`");
}

#[test]
fn what_is_given_twice_or_in_two_ways_is_named_the_second_time() {
    let second = |word: &str| format!("`{word}` is given twice");
    let keep = "keep one of the two";
    says(in_listener("listen = \":1\""), 1, "listen", &second("listen"), keep);
    says(in_listener("[pool.echo]"), 7, "echo", &second("echo"), keep);
    says(
        in_pool("database = \"sqlite:x\""),
        1,
        "database",
        "`[pool.echo]` has both `program` and `database`",
        "make two pools of it; `then` hands a program's reply to the other",
    );
    says(
        in_store("statement = \"select 1\""),
        1,
        "statement",
        "`[pool.store]` has both `insert` and `statement`",
        "remove one of the two",
    );
    let text = format!("{STORE}insert = {{ table = \"a\", columns = [\"at\", \"at\"] }}\n");
    says((only(&text), 3), 42, "\"at\"", "`at` is in `columns` twice", keep);
}

#[test]
fn two_listeners_on_one_address_are_named() {
    let message = "`127.0.0.1:7000` is taken by `[listener.main]`";
    let suggestion = "choose another port, or 0 to let the system choose";
    let other = "[listener.other]\npool = \"echo\"\nlisten = \"localhost:7000\"";
    says(in_pool(other), 10, "\"localhost:7000\"", message, suggestion);
    says(
        in_pool("[admin]\nlisten = \"127.0.0.1:7000\""),
        10,
        "\"127.0.0.1:7000\"",
        message,
        suggestion,
    );
    let unix = "[listener.a]\npool = \"echo\"\nlisten = \"unix:/x\"\n\
                [listener.b]\npool = \"echo\"\nlisten = \"unix:/x\"";
    assert_eq!(in_pool(unix).0.message, "`unix:/x` is taken by `[listener.a]`");
    let free = "[listener.a]\npool = \"echo\"\nlisten = \"127.0.0.1:0\"\n\
                [listener.b]\npool = \"echo\"\nlisten = \"127.0.0.1:0\"\n\
                [listener.c]\npool = \"echo\"\nlisten = \"[::1]:7000\"\n";
    let listener = LISTENER.replace("\":7000", "\"127.0.0.1:7000");
    let source = Source { name: "roadstead.toml".into(), text: format!("{listener}{POOL}{free}") };
    parse(&source, &|_| None).expect("port 0 is another port every time, and IPv6 another address");
    // The unspecified address includes every IPv6 and IPv4 address.
    for listen in ["[::1]:7000", "0.0.0.0:7000"] {
        let other = format!("[listener.other]\npool = \"echo\"\nlisten = \"{listen}\"");
        let message = format!("`{listen}` is taken by `[listener.main]`");
        says(in_pool(&other), 10, &format!("\"{listen}\""), &message, suggestion);
    }
}

#[test]
fn the_number_of_a_user_is_one_that_changes_the_user() {
    for option in ["user", "group"] {
        for text in [
            "4294967295",
            "+4294967295",
            "-1",
            "4294967296",
            "99999999999999999999999",
            "+0",
            "0000",
            "-0",
        ] {
            let error = in_pool(&format!("{option} = \"{text}\"")).0;
            assert_eq!(error.message, format!("`{text}` is not a valid {option} id"));
        }
        let text = format!("{LISTENER}{POOL}{option} = \"4294967294\"\n");
        let source = Source { name: "roadstead.toml".into(), text };
        parse(&source, &|_| None).expect("it is a number like others");
    }
}

#[test]
fn an_admin_address_that_others_can_reach_requires_a_token() {
    let suggestion = "add `token = \"env:ADMIN_TOKEN\"`, or listen on 127.0.0.1 or a Unix socket";
    for listen in ["0.0.0.0:7070", ":7070", "10.0.0.1:7070", "[::]:7070", "[2001:db8::1]:7070"] {
        let error = in_pool(&format!("[admin]\nlisten = \"{listen}\"")).0;
        assert!(error.message.ends_with("is not local and has no `token`"), "{}", error.message);
        assert_eq!(error.suggestion.as_deref(), Some(suggestion));
    }
    for right in [
        "listen = \"0.0.0.0:7070\"\ntoken = \"env:ADMIN_TOKEN\"",
        "listen = \"127.1.2.3:7070\"",
        "listen = \"[::1]:7070\"",
        "listen = \"[::ffff:127.0.0.1]:7070\"\nallowed_hosts = [\"admin.example.org\", \"10.0.0.1\"]",
        "listen = \"unix:/run/admin.sock\"\ngroup = \"operators\"",
    ] {
        let text = format!("{LISTENER}{POOL}[admin]\n{right}\n");
        let source = Source { name: "roadstead.toml".into(), text };
        parse(&source, &|_| None).unwrap_or_else(|errors| panic!("{right}: {errors}"));
    }
    let listen = "[admin]\nlisten = \"127.0.0.1:7070\"";
    let error = in_pool(&format!("{listen}\ngroup = \"operators\"")).0;
    assert_eq!(error.message, "`group` requires a Unix socket");
    for host in ["https://example.org", "example.org:80", "a b", "a/b"] {
        let error = in_pool(&format!("{listen}\nallowed_hosts = [\"{host}\"]")).0;
        assert_eq!(error.message, format!("`{host}` is not a host name"));
    }
    let error = in_pool("[admin]\nlisten = \"fd:admin\"").0;
    assert_eq!(error.message, "the admin address cannot be an inherited socket");
}

#[test]
fn pools_that_are_not_there_are_named_with_the_nearest() {
    let (error, line) = in_pool("then = \"ecko\"");
    assert_eq!(error.expected.as_deref(), Some("did you mean `echo`?"));
    let suggestion = "write `then = \"echo\"`, or add `[pool.ecko]`";
    says((error, line), 8, "\"ecko\"", "there is no pool `ecko`", suggestion);
    let suggestion = "add a section `[pool.warehouse]`";
    let message = "there is no pool `warehouse`";
    says(in_pool("then = \"warehouse\""), 8, "\"warehouse\"", message, suggestion);
}

#[test]
fn a_circle_of_pools_is_named_in_full_and_once() {
    let pool =
        |name: &str, then: &str| format!("[pool.{name}]\nprogram = [\"cat\"]\nthen = \"{then}\"\n");
    let text = [pool("a", "b"), pool("b", "c"), pool("c", "d"), pool("d", "b")].concat();
    let message = "the `then` of these pools form a cycle: b → c → d → b";
    says((only(&text), 12), 8, "\"b\"", message, "remove one `then` of the cycle");
    let message = "the `then` of these pools form a cycle: echo → echo";
    let suggestion = "remove one `then` of the cycle";
    says(in_pool("then = \"echo\""), 8, "\"echo\"", message, suggestion);
}

#[test]
fn numbers_of_workers_that_contradict_each_other_are_named() {
    says(
        in_pool("workers = \"20..2\""),
        11,
        "\"20..2\"",
        "`min` = 20 is more than `max` = 2",
        "write \"2..20\"",
    );
    says(
        in_pool("workers = { spare = 9, max = 3 }"),
        21,
        "9",
        "`spare` = 9 is more than `max` = 3",
        "lower `spare`, or raise `max` to 9",
    );
    says(
        in_pool("pipeline = 4\nstream = { idle_timeout = \"1s\" }"),
        1,
        "stream",
        "a pause cannot separate the replies to two requests",
        "add `until = \".\"`, or remove `pipeline`",
    );
    let message = "`workers` = \"many\" is not a range";
    let suggestion = "write \"2..20\", or 4 for exactly four";
    says(in_pool("workers = \"many\""), 11, "\"many\"", message, suggestion);
}

#[test]
fn what_finds_replies_out_of_step_belongs_to_programs_without_ids() {
    says(
        in_pool("framing = \"oneshot\"\nalignment = \"auto\""),
        1,
        "alignment",
        "`alignment` has no effect here: a `oneshot` process has one request, so its reply cannot be another one's",
        "remove it",
    );
    says(
        in_pool("framing = \"jsonrpc\"\nalignment = \"strict\""),
        1,
        "alignment",
        "`alignment` has no effect here: replies are matched to requests by id",
        "remove it",
    );
    says(
        in_pool("dispatch = \"session\"\nmatch = \"{1}\""),
        1,
        "match",
        "`match` has no effect here: a `session` program serves one client",
        "remove it",
    );
    says(
        in_pool("match = \"id\""),
        9,
        "\"id\"",
        "`id` does not name a part of a request",
        "write for example `match = \"{1}\"` or `match = \"{id}\"`",
    );
    says(
        in_pool("pipeline = 2\nalignment = \"strict\""),
        1,
        "alignment",
        "`strict` cannot check before another client is served: with `pipeline` above 1 requests of several \
         clients are with the program at once",
        "remove `pipeline`, or replace `alignment` by `match`, which checks each reply",
    );
    says(
        in_pool("framing = \"jsonrpc\"\nline_breaks = \"keep\""),
        1,
        "line_breaks",
        "`line_breaks` has no effect here",
        "remove it",
    );
    says(
        in_pool("match = \"{id}\"\nalignment = \"strict\""),
        1,
        "alignment",
        "`match` replaces the checks of `alignment`",
        "remove one of the two",
    );
}

#[test]
fn names_are_lower_case_and_short() {
    let cases = [
        ("\"\"", "is empty", ""),
        ("Main", "contains the character `M`", "write `main`"),
        ("\"a b\"", "contains the character ` `", "write `a-b`"),
        ("9a", "does not begin with a letter", ""),
    ];
    for (name, why, suggestion) in cases {
        let bare = name.trim_matches('"');
        let text = format!("{LISTENER}{POOL}[pool.{name}]\nprogram = [\"cat\"]\n");
        says((only(&text), 6), 7, name, &format!("the name `{bare}` {why}"), suggestion);
    }
    let long = "x".repeat(65);
    let text = format!("{LISTENER}{POOL}[pool.{long}]\nprogram = [\"cat\"]\n");
    assert!(only(&text).message.ends_with("is longer than 64 characters"));
}

#[test]
fn lists_and_variables_are_texts() {
    let program = |list: &str| format!("{LISTENER}[pool.echo]\nprogram = {list}\n");
    let cases = [
        ("[]", 11, "[]", "`program` is empty", ""),
        ("[\"\"]", 12, "\"\"", "`\"\"` in `program` is empty", ""),
        ("[\"nice\", 5]", 20, "5", "`*` in `program` is not a text", "write \"*\""),
    ];
    for (list, column, word, message, suggestion) in cases {
        says((only(&program(list)), 5), column, word, message, suggestion);
    }
    let message = "`PORT` in `env` is a whole number, not a text";
    says(in_pool("env = { PORT = 80 }"), 16, "80", message, "write \"**\"");
    let message = "`A=B` cannot be the name of a variable";
    says(in_pool("env = { \"A=B\" = \"c\" }"), 9, "\"A=B\"", message, "");
}

#[test]
fn columns_are_counted_in_characters() {
    let (error, _) = in_pool("env = { \"Größe\" = \"ä\", B = 5 }");
    assert_eq!((error.column, error.word.as_str()), (28, "5"));
}
