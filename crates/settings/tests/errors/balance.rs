//! Errors of checks, cookies and fallbacks: exactly one diagnostic each, at the right place.

use settings::{Diagnostic, Source, parse};

use super::{LISTENER, POOL, in_pool, in_store, only, says};

const WEB: &str = "[listener.main]\nlisten = \":80\"\nprotocol = \"http\"\npool = \"web\"\n\
                   [pool.web]\nservers = [\"127.0.0.1:1\"]\n";

fn in_web(line: &str) -> (Diagnostic, usize) {
    let text = format!("{WEB}{line}\n");
    (only(&text), text.lines().count())
}

/// A program behind an HTTP listener.
fn in_objects(line: &str) -> (Diagnostic, usize) {
    let text = format!("{}{POOL}{line}\n", LISTENER.replace("pool", "protocol = \"http\"\npool"));
    (only(&text), text.lines().count())
}

/// A program behind an HTTP listener and a listener of lines.
fn in_both(line: &str) -> (Diagnostic, usize) {
    let lines = LISTENER.replace("main", "lines").replace("7000", "7001");
    let http = LISTENER.replace("pool", "protocol = \"http\"\npool");
    let text = format!("{lines}{http}{POOL}{line}\n");
    (only(&text), text.lines().count())
}

#[test]
fn a_check_says_what_belongs_to_it() {
    says(
        in_pool("health_check = { rise = 2 }"),
        18,
        "rise",
        "`rise` has no effect: there are no health checks",
        "add `check = \"tcp\"`, or remove it",
    );
    says(
        in_pool("health_check = { check = \"line\" }"),
        26,
        "\"line\"",
        "`check = \"line\"` needs `send`",
        "add `send = \"ping\"`",
    );
    says(
        in_pool("health_check = { check = \"line\", send = \"ping\", path = \"/\" }"),
        49,
        "path",
        "`path` requires `check = \"http\"`",
        "write `check = \"http\"`, or remove it",
    );
    says(
        in_pool("health_check = { check = \"tcp\" }"),
        26,
        "\"tcp\"",
        "`check = \"tcp\"` cannot check a program pool",
        "write `check = \"line\"` or `check = \"program\"`",
    );
    says(
        in_store("health_check = { check = \"line\", send = \"ping\" }"),
        26,
        "\"line\"",
        "`check = \"line\"` cannot check a database pool",
        "remove it; `max_fails` and `unhealthy_latency` count failed requests",
    );
    says(
        in_pool("dispatch = \"session\"\nhealth_check = { check = \"line\", send = \"ping\" }"),
        26,
        "\"line\"",
        "every check would end the program, because it serves sessions and has no `reset`",
        "write `check = \"program\"`, or add `reset`",
    );
    says(
        in_web("health_check = { unhealthy_latency = \"1s\" }"),
        18,
        "unhealthy_latency",
        "`unhealthy_latency` has no effect: failed requests are not counted",
        "add `max_fails = 5`, or remove it",
    );
    says(
        in_web("health_check = { unhealthy_status = \"500\" }"),
        18,
        "unhealthy_status",
        "`unhealthy_status` has no effect: failed requests are not counted",
        "add `max_fails = 5`, or remove it",
    );
    says(
        in_web("health_check = { fail_rate = \"0%\" }"),
        18,
        "fail_rate",
        "`fail_rate` is 0%, which is always exceeded",
        "write a percentage such as \"30%\", or remove it",
    );
    says(
        in_web("health_check = { max_fails = 3, fail_window = \"30s\" }"),
        33,
        "fail_window",
        "`fail_window` requires `fail_rate`",
        "add `fail_rate = \"30%\"`, or remove it",
    );
    says(
        in_web("health_check = { max_fails = 3, unhealthy_status = \"599..500\" }"),
        52,
        "\"599..500\"",
        "`599..500` is not a range of statuses",
        "write \"200..399\", or \"200\" for one status",
    );
    says(
        in_pool("health_check = { max_fails = 3, unhealthy_status = \"500\" }"),
        33,
        "unhealthy_status",
        "`unhealthy_status` requires workers that speak HTTP",
        "remove it",
    );
    let servers =
        |health: &str| in_web(&format!("health_check = {{ check = \"http\", {health} }}"));
    let range = "write \"200..399\", or \"200\" for one status";
    says(servers("status = \"9\""), 43, "\"9\"", "`9` is not a range of statuses", range);
    let path = "`a b` is not a valid path of a request";
    says(servers("path = \"a b\""), 41, "\"a b\"", path, "begin it with `/` and do not use spaces");
}

#[test]
fn keys_cookies_and_fallback_answers_of_http_stand_where_they_mean_something() {
    says(
        in_web("sticky = { lifetime = \"1h\" }"),
        1,
        "sticky",
        "`sticky` needs something to recognise a client by",
        "add `key = \"source\"`",
    );
    says(
        in_web("sticky = { key = \"source\", cookie = \"c\" }"),
        28,
        "cookie",
        "`sticky` has both `key` and `cookie`",
        "keep one of them",
    );
    says(
        in_web("sticky = { key = \"source\", secure = true }"),
        28,
        "secure",
        "`secure` requires `cookie`",
        "add `cookie = \"worker\"`, or remove it",
    );
    says(
        in_web("sticky = { cookie = \"a b\" }"),
        21,
        "\"a b\"",
        "`***` is not a valid cookie name",
        "use letters, digits, `-` and `_`",
    );
    says(
        in_web("sticky = { cookie = \"c\", mode = \"passive\", secure = true }"),
        44,
        "secure",
        "`secure` has no effect: the server sets the cookie",
        "write `mode = \"insert\"`, or remove it",
    );
    says(
        in_web("sticky = { cookie = \"c\", value = \"signed\" }"),
        34,
        "\"signed\"",
        "a signed cookie needs a `secret`",
        "add `secret = \"env:COOKIE_SECRET\"`",
    );
    says(
        in_web("sticky = { cookie = \"c\", same_site = \"none\" }"),
        38,
        "\"none\"",
        "browsers reject `same_site = \"none\"` without `secure`",
        "add `secure = true`",
    );
    says(
        in_web("sticky = { cookie = \"c\", path = \"/a;b\" }"),
        33,
        "\"/a;b\"",
        "`/a;b` is not a valid cookie path",
        "begin it with `/`",
    );
    says(
        in_web("sticky = { key = \"word:1\" }"),
        18,
        "\"word:1\"",
        "`word:1` does not occur in the requests of this pool",
        "write \"header:NAME\", \"cookie:NAME\", \"path\", \"query:NAME\", \"source\" or \"connection\"",
    );
    says(
        in_web("sticky = { key = \"segment\" }"),
        18,
        "\"segment\"",
        "`key` = \"segment\" does not say which",
        "write \"segment:1\" for the first",
    );
    says(
        in_pool("sticky = { key = \"header:x\" }"),
        18,
        "\"header:x\"",
        "`header:x` does not occur in the requests of this pool",
        "write \"word:N\", \"field:NAME\", \"member:NAME\", \"line\", \"source\" or \"connection\"",
    );
    says(
        in_pool("sticky = { cookie = \"c\" }"),
        12,
        "cookie",
        "`cookie` requires HTTP clients",
        "write a `key`",
    );
    says(
        in_pool("fallback = { line = \"x\", status = 503 }"),
        26,
        "status",
        "`status` requires HTTP clients",
        "remove it",
    );
    let asked = "no HTTP listener uses this pool";
    for line in [
        "sticky = { key = \"header:x\" }",
        "sticky = { cookie = \"c\" }",
        "fallback = { line = \"x\", status = 503 }",
    ] {
        assert_eq!(in_pool(line).0.expected.as_deref(), Some(asked), "{line}");
    }
    says(
        in_objects("sticky = { cookie = \"c\", mode = \"prefix\" }"),
        33,
        "\"prefix\"",
        "`prefix` requires workers that speak HTTP",
        "write \"insert\" or \"rewrite\"",
    );
    says(
        in_both("fallback = { redirect = \"/x\" }"),
        14,
        "redirect",
        "`redirect` requires HTTP clients",
        "write `line` or `file`, or use a separate pool for HTTP",
    );
    says(
        in_web("fallback = { redirect = \"/x\", status = 503 }"),
        40,
        "503",
        "503 is not a redirect status",
        "write 302 or 307, or remove it",
    );
    for status in ["204", "205", "304"] {
        says(
            in_web(&format!("fallback = {{ line = \"x\", status = {status} }}")),
            35,
            status,
            &format!("an answer with status {status} has no body"),
            "write another `status`",
        );
    }
    says(
        in_web("fallback = { line = \"x\", redirect = \"/y\" }"),
        26,
        "redirect",
        "`fallback` has two replies",
        "keep one of them",
    );
}

#[test]
fn programs_that_are_asked_over_http_have_the_words_of_servers() {
    for line in [
        "sticky = { cookie = \"c\", secure = true }",
        "sticky = { cookie = \"c\", mode = \"rewrite\" }",
        "sticky = { key = \"header:x\" }",
        "sticky = { key = \"member:path\" }",
        "sticky = { key = \"segment:2\" }",
        "queue = { fair = \"path\", priority = \"query:p\" }",
        "fallback = { redirect = \"/x\", status = 302, retry_after = \"1s\" }",
        "health_check = { check = \"program\", command = [\"true\"] }",
    ] {
        let http = LISTENER.replace("pool", "protocol = \"http\"\npool");
        let text = format!("{http}{POOL}{line}\n");
        let source = Source { name: "roadstead.toml".into(), text: text.clone() };
        assert!(parse(&source, &|_| None).is_ok(), "{text}");
    }
    // Also through a pool in fallback.
    let http = LISTENER.replace("pool", "protocol = \"http\"\npool");
    let other = "[pool.other]\nprogram = [\"cat\"]\nfallback = { line = \"x\", status = 500 }\n";
    let text = format!("{http}{POOL}fallback = {{ pool = \"other\" }}\n{other}");
    let source = Source { name: "roadstead.toml".into(), text };
    assert!(parse(&source, &|_| None).is_ok());
}

#[test]
fn a_new_worker_is_not_given_less_where_the_schedule_has_no_weights() {
    for schedule in ["hash", "first"] {
        says(
            in_web(&format!("balance = \"{schedule}\"\nslow_start = \"9s\"")),
            1,
            "slow_start",
            "`slow_start` has no effect in this pool",
            "remove it, or choose another `balance`",
        );
    }
}

#[test]
fn a_server_has_slots_of_its_own_within_their_range() {
    let text = WEB.replace("\"127.0.0.1:1\"", "{ address = \"127.0.0.1:1\", max_concurrent = 0 }");
    let error = only(&text);
    assert_eq!((&*error.word, &*error.message), ("0", "`max_concurrent` = 0 is out of range"));
}

#[test]
fn a_server_is_named_once_and_looked_up_now_and_then() {
    let of = |servers: &str| {
        let text = format!("{}servers = [{servers}]\n", WEB.split("servers").next().unwrap());
        (only(&text), text.lines().count())
    };
    let keep = "keep one of the two";
    let twice = "`app.example:80` is in `[pool.web]` twice";
    says(of("\"app.example:80\", \"APP.example:80\""), 30, "\"APP.example:80\"", twice, keep);
    let range = "write a value from 1s to 24h";
    says(
        in_web("resolve_interval = \"0s\""),
        20,
        "\"0s\"",
        "`resolve_interval` = \"0s\" is out of range",
        range,
    );
}

#[test]
fn errors_of_balancing_have_a_fix() {
    says(
        in_pool("sticky = { key = \"word\" }"),
        18,
        "\"word\"",
        "`key` = \"word\" does not say which",
        "write \"word:1\" for the first",
    );
    says(
        in_pool("sticky = { key = \"memer:user\" }"),
        18,
        "\"memer:user\"",
        "`key` = \"memer:user\" is not a key",
        "did you mean \"member\"?",
    );
    says(
        in_pool("fallback = { line = \"busy\", until = 30 }"),
        37,
        "30",
        "`until` cannot be a whole number",
        "write `until = \"30%\"`",
    );
    says(
        in_pool("fallback = { until = \"30%\" }"),
        1,
        "fallback",
        "`fallback` has no reply",
        "add `line = \"busy, come back later\"`",
    );
    says(
        in_pool("fallback = { line = \"busy\", file = \"busy.txt\" }"),
        29,
        "file",
        "`fallback` has two replies",
        "keep one of them",
    );
    says(
        in_pool("fallback = { pool = \"echo\" }"),
        21,
        "\"echo\"",
        "the `fallback`s of these pools form a cycle",
        "answer with a `line` or a `file` in one of them",
    );
    says(
        in_pool("hash = \"line\""),
        1,
        "hash",
        "`hash` has no effect with this `balance`",
        "write `balance = \"hash\"`, or remove it",
    );
    says(
        in_pool("sticky = { key = \"source\" }\nqueue = { hold_timeout = \"2s\" }"),
        11,
        "hold_timeout",
        "`hold_timeout` waits until the worker of a bound client is available again",
        "remove it; `redispatch` in `sticky` determines whether the client is bound to another worker",
    );
    says(
        in_store("sticky = { key = \"source\" }"),
        1,
        "sticky",
        "`sticky` has no effect in a database pool",
        "remove it",
    );
    says(
        in_store("idempotent = \"all\""),
        1,
        "idempotent",
        "`idempotent` has no effect in a database pool",
        "remove it",
    );
    says(
        in_pool("idempotent = \"some\""),
        14,
        "\"some\"",
        "`idempotent` = \"some\" is not a known value",
        "write one of `off`, `safe`, `methods`, `all`",
    );
    says(
        in_pool("dispatch = \"session\"\nidempotent = \"all\""),
        1,
        "idempotent",
        "a request of a `session` program cannot be repeated on another program",
        "remove it",
    );
}
