//! Routes: their meaning, and errors of routes without effect.

use settings::{
    Configuration, Diagnostic, RespondBody, RouteAccess, RouteAction, Secret, Source, parse,
};

fn file(listener: &str) -> Source {
    let text = format!(
        "[pool.main]\nservers = [\"127.0.0.1:1\"]\n[pool]\n\
         echo = {{ program = [\"cat\"], framing = \"jsonrpc\" }}\n[listener.web]\nlisten = \":0\"\nprotocol = \"http\"\n{listener}\n"
    );
    Source { name: "roadstead.toml".into(), text }
}

fn read(listener: &str) -> Configuration {
    parse(&file(listener), &|_| None).unwrap_or_else(|errors| panic!("{errors}"))
}

/// Returns the only error of a listener with one route. It must be on line 8.
fn only(route: &str) -> Diagnostic {
    of_listener(&format!("route = [{{ {route} }}]"))
}

fn of_listener(line: &str) -> Diagnostic {
    let source = file(line);
    let errors = parse(&source, &|_| None).expect_err(line);
    let list: Vec<&Diagnostic> = errors.iter().collect();
    assert_eq!(list.len(), 1, "{line}\n{errors}");
    assert_eq!(list[0].line, 8, "{errors}");
    list[0].clone()
}

fn says(error: &Diagnostic, word: &str, message: &str, suggestion: &str) {
    assert_eq!(error.word, word, "{error:?}");
    assert_eq!(error.message, message);
    assert_eq!(error.suggestion.as_deref().unwrap_or_default(), suggestion);
}

#[test]
fn routes_stand_one_below_the_other_or_in_a_list() {
    let one = read("route = [\"main\", { path = \"/x\", respond = { status = 204 } }]");
    let other = read(
        "[[listener.web.route]]\npool = \"main\"\n[[listener.web.route]]\npath = \"/x\"\n\
         respond.status = 204",
    );
    assert_eq!(one.listeners, other.listeners);
    let web = &one.listeners[0];
    assert_eq!(web.pool, None);
    assert_eq!(web.http.routes[0].pool(), Some("main"));
    assert_eq!(web.http.routes[0].access, RouteAccess::Inherited);
    let body = RespondBody::Text(String::new());
    let content_type = "text/plain; charset=utf-8".to_owned();
    assert_eq!(web.http.routes[1].action, RouteAction::Respond { status: 204, body, content_type });
}

#[test]
fn who_is_let_through_is_said_by_places_of_secrets() {
    let web = read(
        "pool = \"main\"\nauthenticate = { bearer = [\"env:A\"], basic = \"file:users\" }\n\
         route = [{ pool = \"main\", public = true }]",
    );
    let http = &web.listeners[0].http;
    let said = http.authenticate.as_ref().expect("it was said");
    assert_eq!(said.bearer, [Secret::Environment("A".into())]);
    assert_eq!(said.basic, Some(Secret::File("users".into())));
    assert_eq!((said.realm.as_str(), said.forward), ("roadstead", false));
    assert_eq!(http.routes[0].access, RouteAccess::Public);
}

#[test]
fn what_a_route_is_for_is_written_as_it_is_compared() {
    for (route, word, message, suggestion) in [
        (
            "host = [\"a:80\"]",
            "[\"a:80\"]",
            "`a:80` in `host` has a port, which is not compared",
            "write a host like \"example.org\" or \"*.example.org\"",
        ),
        (
            "method = [\"get\"]",
            "[\"get\"]",
            "`get` in `method` is not in capitals, and no client sends it so",
            "write \"GET\"",
        ),
        (
            "path = \"/a//b/../%63\"",
            "\"/a//b/../%63\"",
            "`/a//b/../%63` in `path` is not how paths are compared",
            "write \"/a/c\"",
        ),
        (
            "prefix = \"api\"",
            "\"api\"",
            "`api` in `prefix` does not begin with a slash",
            "write \"/api\"",
        ),
        (
            "pattern = \"/a?b\"",
            "\"/a?b\"",
            "`****` in `pattern` has a query, and only paths are compared",
            "remove it",
        ),
        (
            "prefix = \"/a\", path = \"/a\"",
            "\"/a\"",
            "a route has either `path` or `prefix`",
            "make two routes of it",
        ),
        (
            "header = [\"a b\"]",
            "\"a b\"",
            "`a b` in `name` is not the name of a field",
            "write one like \"x-beta\"",
        ),
        (
            "header = [{ name = \"a\", equals = \"1\", pattern = \"2\" }]",
            "\"2\"",
            "a field has either `equals` or `pattern`",
            "keep one of the two",
        ),
    ] {
        says(&only(&format!("pool = \"main\", {route}")), word, message, suggestion);
    }
    let long = format!("pool = \"main\", pattern = \"/{}\"", "a".repeat(127));
    assert!(only(&long).message.ends_with("in `pattern` has more than 127 characters"));
}

#[test]
fn a_route_says_once_what_becomes_of_its_requests() {
    assert_eq!(only("path = \"/\"").message, "a route says what becomes of its requests");
    for (route, word, message, suggestion) in [
        (
            "pool = \"main\", respond = {}",
            "{}",
            "a route has either `pool` or `respond`",
            "keep one of the two",
        ),
        (
            "respond = {}, rewrite = { strip = \"/a\" }",
            "{ strip = \"/a\" }",
            "only what a pool answers is rewritten",
            "remove it",
        ),
        (
            "pool = \"main\", rewrite = {}",
            "{}",
            "this rewrites nothing",
            "give `strip`, `add` or `to`",
        ),
        (
            "pool = \"main\", prefix = \"/b\", rewrite = { strip = \"/a\" }",
            "\"/a\"",
            "`/a` in `strip` is no part of `/b`, so it would never be stripped",
            "write \"/b\"",
        ),
        (
            "pool = \"main\", rewrite = { to = \"/x{rest}\" }",
            "\"/x{rest}\"",
            "`/x{rest}` in `to` has `{rest}`, what lies behind a prefix, and the route has none",
            "write `{path}`, or give the route a `prefix`",
        ),
        (
            "pool = \"main\", rewrite = { to = \"{path}{query}\" }",
            "\"{path}{query}\"",
            "`{path}{query}` in `to` has a query, which stays as it was asked",
            "remove it",
        ),
        (
            "redirect = { to = \"/{user}\" }",
            "\"/{user}\"",
            "`/{user}` in `to` has the unknown part `{user}`",
            "parts are `{host}`, `{path}`, `{rest}` and `{query}`",
        ),
        (
            "redirect = { to = \"www.example.org\" }",
            "\"www.example.org\"",
            "`www.example.org` in `to` leads nowhere",
            "begin it with `/` or `https://`",
        ),
        (
            "redirect = { to = \"/\", status = 305 }",
            "305",
            "a redirect has no status 305",
            "write 301, 302, 303, 307 or 308",
        ),
        (
            "respond = { body = \"a\", file = \"b\" }",
            "\"b\"",
            "an answer has either `body` or `file`",
            "keep one of the two",
        ),
        (
            "respond = { status = 204, body = \"a\" }",
            "\"a\"",
            "an answer with status 204 has no body",
            "remove it, or write another `status`",
        ),
        (
            "respond = { status = 304, file = \"b\" }",
            "\"b\"",
            "an answer with status 304 has no body",
            "remove it, or write another `status`",
        ),
        (
            "pool = \"echo\"",
            "\"echo\"",
            "a program behind HTTP gets an object and gives one answer, and its messages are JSON-RPC in `[pool.echo]`",
            "write `protocol = \"jsonrpc\"` or `\"content-length\"`, or have the program serve HTTP itself",
        ),
        (
            "pool = \"mian\"",
            "\"mian\"",
            "there is no pool `mian`",
            "write `pool = \"main\"`, or add `[pool.mian]`",
        ),
    ] {
        says(&only(route), word, message, suggestion);
    }
}

#[test]
fn heads_and_secrets_are_looked_at() {
    let suggestion = "see docs/routes.md for what can be changed";
    says(
        &only("pool = \"main\", request_headers = { set = { Connection = \"close\" } }"),
        "{ Connection = \"close\" }",
        "`Connection` in `set` is written anew for each message, and cannot be changed",
        suggestion,
    );
    says(
        &of_listener("response_headers = { remove = [\"a b\"] }\npool = \"main\""),
        "[\"a b\"]",
        "`a b` in `remove` is not the name of a field",
        suggestion,
    );
}

#[test]
fn a_secret_is_not_written_into_the_file() {
    let error = only("pool = \"main\", authenticate = { bearer = [\"hunter2hunter2hunter2\"] }");
    assert_eq!(error.message, "an entry of `bearer` does not say where the secret is");
    let error = only("pool = \"main\", authenticate = {}");
    says(&error, "{}", "nobody would be let through", "give `bearer` or `basic`");
    let error = only("pool = \"main\", public = true, authenticate = { basic = \"file:a\" }");
    assert_eq!(error.message, "a route that is public lets everybody through");
}

#[test]
fn routes_are_for_http_only() {
    let text = "[pool.echo]\nprogram = [\"cat\"]\n[listener.main]\nlisten = \":0\"\npool = \"echo\"\n\
                authenticate = { basic = \"file:a\" }\n";
    let source = Source { name: "roadstead.toml".into(), text: text.into() };
    let errors = parse(&source, &|_| None).expect_err("it speaks lines");
    let list: Vec<&Diagnostic> = errors.iter().collect();
    assert_eq!(list.len(), 1, "{errors}");
    says(
        list[0],
        "authenticate",
        "`authenticate` requires an HTTP listener, and `[listener.main]` is not one",
        "write `protocol = \"http\"`, or remove it",
    );
}

#[test]
fn a_route_that_can_never_match_is_found_at_its_place() {
    let listener = "[[listener.web.route]]\nprefix = \"/a\"\npool = \"main\"\n\
                    [[listener.web.route]]\npath = \"/a/b\"\nrespond = {}";
    let (source, configuration) = (file(listener), read(listener));
    let remarks = settings::shadowed(&configuration);
    let placed = settings::placed(&source, &remarks);
    let list: Vec<&Diagnostic> = placed.iter().collect();
    assert_eq!(list.len(), 1, "{placed}");
    assert_eq!(list[0].line, 11, "{placed}");
    assert!(
        list[0]
            .message
            .starts_with("route 2 of `[listener.web]` can never match, because route 1 matches")
    );
    assert_eq!(settings::shadowed(&read("pool = \"main\"")), []);
}
