//! Errors of pools with a database.

use settings::{Source, parse};

use crate::{INSERT, LISTENER, POOL, STORE, in_store, only, says};

#[test]
fn what_a_database_pool_cannot_be_is_told() {
    says(
        in_store("workers = 2"),
        11,
        "2",
        "2 workers do not preserve the order of a client's rows",
        "add `order = \"any\"`, or write `workers = 1`",
    );
    says(
        in_store("password = \"env:X\""),
        1,
        "password",
        "`password` requires a database server; SQLite is a file",
        "remove it",
    );
    says(
        in_store("http_path = \"/hits\""),
        13,
        "\"/hits\"",
        "`http_path` requires a `query`",
        "remove it",
    );
}

/// A new row with the id of an earlier request would count as one that exists already.
#[test]
fn a_key_is_of_values_that_the_client_sends() {
    for name in ["_id", "_at", "_client"] {
        let insert = format!(
            "insert = {{ table = \"t\", columns = [\"a\", \"{name}\"], on_conflict = \"nothing\", \
             key = [\"a\", \"{name}\"] }}\n"
        );
        let error = only(&format!("{STORE}{insert}"));
        assert_eq!(error.message, format!("`{name}` of `key` does not identify a row"));
    }
}

#[test]
fn the_path_of_a_query_is_one_of_http() {
    let at = |path: &str| {
        let text = format!("{STORE}query = \"select 1\"\nhttp_path = \"{path}\"\n");
        let error = only(&text);
        assert_eq!((error.line, error.column), (4, 13), "{path}");
        error.message
    };
    assert_eq!(at("hits"), "`hits` does not begin with `/`");
    for bad in ["{id", "{}", "a{id}", "{a-b}", "a?b", "a%20b", "ä"] {
        let message = format!("`{bad}` is not a valid path segment, or occurs twice");
        assert_eq!(at(&format!("/hits/{bad}")), message);
    }
    assert_eq!(at("/{a}/{a}"), "`{a}` is not a valid path segment, or occurs twice");
}

#[test]
fn databases_are_named_with_their_kind() {
    let text = |target: &str| format!("{POOL}[pool.store]\ndatabase = \"{target}\"\n{INSERT}");
    let cases = [
        ("hits.db", "does not say which kind of database it is", "write \"sqlite:hits.db\""),
        ("sqlte:hits.db", "has the unknown database `sqlte`", "write \"sqlite:hits.db\""),
        ("oracle:x", "has the unknown database `oracle`", ""),
        ("postgres:x", "has no server address", "write \"postgres://USER@HOST/DATABASE\""),
        ("sqlite:", "has no path", "write \"sqlite:hits.db\""),
    ];
    for (target, why, suggestion) in cases {
        // What follows a prefix other than `sqlite:` may be a password.
        let shown = target.replace("oracle:x", "oracle:*").replace("postgres:x", "postgres:*");
        let message = format!("`database` = \"{shown}\" {why}");
        says((only(&text(target)), 4), 12, &format!("\"{target}\""), &message, suggestion);
    }
}

/// With each character in the password, in each kind of text, and with what may follow in a file.
#[test]
fn no_error_shows_a_password_in_the_address_of_a_database() {
    let mut count = 0;
    for c in (' '..='~').map(String::from).chain(["\\\"".to_owned(), "\\u0041".to_owned()]) {
        for password in [format!("HUNTER2{c}SECRET2"), format!("HUNTER2{c}"), format!("{c}SECRET2")]
        {
            for address in [
                format!("postgres://u:{password}@h/d"),
                format!("mysql://u:{password}@h:3306/d"),
                format!("postgres://u:x{}{password}@h/d", "x".repeat(40)),
                format!("mysql://u@h/d?password={password}"),
                format!("mysql://u@h/d?x&y={password}"),
                format!("mariadb://u:{password}@h/d"),
                format!("postgres:/u:{password}@h/d"),
                format!("postgres:{password}@h/d"),
                format!("pg:{password}@h/d"),
            ] {
                for value in [
                    format!("\"{address}\""),
                    format!("'{address}'"),
                    format!("\"\"\"{address}\"\"\""),
                    format!("[\"{address}\"]"),
                    address.clone(),
                ] {
                    let text = format!("{POOL}[pool.store]\ndatabase = {value}\n{INSERT}");
                    let source = Source { name: "x.toml".into(), text };
                    let Err(errors) = parse(&source, &|_| None) else { continue };
                    let mut shown = errors.to_string();
                    for error in &errors {
                        shown.push_str(&error.message);
                        shown.extend(error.expected.as_deref());
                        shown.extend(error.suggestion.as_deref());
                    }
                    let leaks = shown.contains("HUNTER2") || shown.contains("SECRET2");
                    assert!(!leaks, "{value}\n{shown}");
                    count += 1;
                }
            }
        }
    }
    assert!(count > 10_000, "{count}");
}

/// Otherwise `ctl dead retry` would store the rows of one pool in the table of the other.
#[test]
fn two_pools_have_no_table_of_dead_letters_in_common() {
    let text = |[one, dead]: [&str; 2], [other, same]: [&str; 2]| {
        let pool = |name: &str, target: &str, dead: &str| {
            format!(
                "[pool.{name}]\ndatabase = \"{target}\"\n{INSERT}dead_letter_table = \"{dead}\"\n"
            )
        };
        format!("{LISTENER}{POOL}{}{}", pool("a", one, dead), pool("b", other, same))
    };
    let (pg, my) = ("postgres://me@localhost/hits", "mysql://me@db/hits");
    for (one, other) in [
        (["sqlite:hits.db", "dead"], ["sqlite:./hits.db", "Dead"]),
        (["sqlite:/data/hits.db", "dead"], ["sqlite:hits.db", "dead"]),
        ([pg, "dead"], [pg, "dead"]),
        ([pg, "dead"], ["postgres://you@127.0.0.1:5432/hits", "public.dead"]),
        ([pg, "a.dead"], ["postgres://me@/hits?socket=/run/pg", "A.dead"]),
        ([my, "dead"], ["mysql://you@DB/hits", "hits.dead"]),
        ([my, "x.dead"], ["mysql://me@db/other", "x.dead"]),
    ] {
        let text = text(one, other);
        let error = only(&text);
        assert_eq!((error.line, error.column), (text.lines().count(), 21), "{text}");
        let name = other[1];
        assert_eq!(
            error.message,
            format!("`{name}` is already the dead-letter table of `[pool.a]`")
        );
        let suggestion = "name another table, like `dead_letter_table = \"b_dead\"`";
        assert_eq!(error.suggestion.as_deref(), Some(suggestion));
    }
    for (one, other) in [
        (["sqlite:hits.db", "dead"], ["sqlite:hits.db", "other"]),
        (["sqlite:hits.db", "dead"], ["sqlite:data/hits.db", "dead"]),
        (["sqlite:/hits.db", "dead"], ["sqlite:/data/hits.db", "dead"]),
        ([pg, "a.dead"], [pg, "b.dead"]),
        ([pg, "dead"], ["postgres://me@localhost/other", "dead"]),
        ([pg, "dead"], ["postgres://me@localhost:5433/hits", "dead"]),
        ([pg, "dead"], ["mysql://me@localhost:5432/hits", "dead"]),
        ([my, "dead"], ["mysql://me@db/other", "dead"]),
        ([my, "dead"], ["mysql://me@db/hits", "other.dead"]),
        (["mysql://me@/hits?socket=/a", "dead"], ["mysql://me@/hits?socket=/b", "dead"]),
    ] {
        let text = text(one, other);
        let source = Source { name: "roadstead.toml".into(), text: text.clone() };
        parse(&source, &|_| None).unwrap_or_else(|error| panic!("{text}{error}"));
    }
}
