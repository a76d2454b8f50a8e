//! Errors of pools with a database.

use crate::{INSERT, POOL, STORE, in_store, only, says};

#[test]
fn what_a_database_pool_cannot_be_is_told() {
    says(
        in_store("workers = 2"),
        11,
        "2",
        "2 workers do not keep the order of a client's rows",
        "add `order = \"any\"`, or write `workers = 1`",
    );
    says(
        in_store("password = \"env:X\""),
        1,
        "password",
        "`password` is an option of a server, and SQLite is a file",
        "remove it",
    );
    says(
        in_store("path = \"/hits\""),
        8,
        "\"/hits\"",
        "`path` is where a `query` is answered over HTTP, and there is none",
        "remove it",
    );
}

#[test]
fn the_path_of_a_query_is_one_of_http() {
    let at = |path: &str| {
        let text = format!("{STORE}query = \"select 1\"\npath = \"{path}\"\n");
        let error = only(&text);
        assert_eq!((error.line, error.column), (4, 8), "{path}");
        error.message
    };
    assert_eq!(at("hits"), "`hits` does not begin with `/`");
    for bad in ["{id", "{}", "a{id}", "{a-b}", "a?b", "a%20b", "ä"] {
        let message = format!("`{bad}` is no part of a path, or is there twice");
        assert_eq!(at(&format!("/hits/{bad}")), message);
    }
    assert_eq!(at("/{a}/{a}"), "`{a}` is no part of a path, or is there twice");
}

#[test]
fn a_listener_of_http_needs_a_pool_that_answers_it() {
    let web = "[listener.web]\nlisten = \":1\"\nprotocol = \"http\"\npool = \"store\"\n";
    assert_eq!(
        only(&format!("{web}[pool.store]\nhandler = \"own\"\n")).message,
        "a listener of HTTP needs `servers`, a `database` or a `program`, and `[pool.store]` has none of them"
    );
}

#[test]
fn databases_are_named_with_their_kind() {
    let text = |target: &str| format!("{POOL}[pool.store]\ndatabase = \"{target}\"\n{INSERT}");
    let cases = [
        ("hits.db", "does not say which database it is", "write \"sqlite:hits.db\""),
        ("sqlte:hits.db", "names the unknown database `sqlte`", "write \"sqlite:hits.db\""),
        ("oracle:x", "names the unknown database `oracle`", ""),
        (
            "postgres:x",
            "does not say where the server is",
            "write \"postgres://USER@HOST/DATABASE\"",
        ),
        ("sqlite:", "has no path", "write \"sqlite:hits.db\""),
    ];
    for (target, why, mend) in cases {
        let message = format!("`database` = \"{target}\" {why}");
        says((only(&text(target)), 4), 12, &format!("\"{target}\""), &message, mend);
    }
}
