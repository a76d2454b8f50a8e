//! Rules between the options of a database pool.

use crate::fault::{Fault, Trust, reject};
use crate::model::{Database, OnConflict, Order, Target};
use crate::options::{Needs, Setting, Value};
use crate::walk::Section;

/// The actions for a request.
const ACTIONS: [&str; 3] = ["insert", "statement", "query"];

/// Columns that get values of the request itself.
const OF_REQUEST: [&str; 3] = ["_id", "_client", "_at"];

/// Adds a fault for every violated rule.
pub(super) fn check(pool: &Section, faults: &mut Vec<Fault>) {
    action(pool, faults);
    key(pool, faults);
    order(pool, faults);
    server_only(pool, faults);
    path(pool, faults);
}

/// `http_path` must be an HTTP path without escapes, and each parameter in it must have a different name.
fn path(pool: &Section, faults: &mut Vec<Fault>) {
    let Some((path, place)) = pool.group.given_text("http_path") else {
        return;
    };
    if pool.group.key("query").is_none() {
        reject! { faults; Some(place) => "`http_path` requires a `query`", help "remove it"; }
        return;
    }
    let plain = |text: &str| !text.contains(['{', '}', '?', '#', '%']) && text.is_ascii();
    let name = |text: &str| {
        let text = text.strip_prefix('{')?.strip_suffix('}')?;
        let word = text.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_');
        (word && !text.is_empty()).then(|| text.to_owned())
    };
    let mut names: Vec<String> = Vec::new();
    for segment in path.split('/').skip(1) {
        match name(segment) {
            Some(name) if !names.contains(&name) => names.push(name),
            None if plain(segment) => {}
            _ => {
                reject! { faults;
                    Some(place.clone())
                        => format!("`{segment}` is not a valid path segment, or occurs twice"),
                        expected "expected plain text, or a name in braces",
                        help "write it like `/hits/{id}`";
                }
            }
        }
    }
    reject! { faults;
        Some(place), if !path.starts_with('/') => format!("`{path}` does not begin with `/`"),
            help format!("write `/{path}`");
    }
}

/// A database pool has exactly one action: it inserts, runs a statement, or answers with the rows of a query.
fn action(pool: &Section, faults: &mut Vec<Fault>) {
    let title = format!("`[pool.{}]`", pool.name);
    let given = ACTIONS.into_iter();
    let given = given.filter_map(|name| pool.group.key(name).map(|place| (place, name)));
    let mut given: Vec<_> = given.collect();
    given.sort_by_key(|(place, _)| place.start);
    let Some(((_, first), rest)) = given.split_first() else {
        let message = format!("{title} has neither `insert`, `statement` nor `query`");
        faults.push(
            Fault::at(pool.place.clone(), message)
                .expected("one of them is required")
                .suggestion("add `insert = { table = \"NAME\", columns = [\"NAME\", …] }`")
                .trust(Trust::Absent),
        );
        return;
    };
    for (place, second) in rest {
        reject! { faults;
            Some(place.clone()) => format!("{title} has both `{first}` and `{second}`"),
                expected "a pool has one kind of statement",
                help "remove one of the two";
        }
    }
}

/// `on_conflict = "nothing"` requires a key, which must be among the columns.
fn key(pool: &Section, faults: &mut Vec<Fault>) {
    let Some(insert) = pool.group.inner("insert") else { return };
    let nothing = insert.is("on_conflict", OnConflict::Nothing);
    let key = insert.texts("key");
    reject! { faults;
        insert.place("on_conflict"), if nothing && key.is_empty()
            => "`on_conflict = \"nothing\"` needs a `key`",
            expected "only a conflict on this key is acknowledged",
            help "add `key` with the columns of a unique key, like `key = [\"id\"]`";
        insert.place("key"), if !nothing
            => "`key` requires `on_conflict = \"nothing\"`", help "remove it";
    }
    if !nothing {
        return;
    }
    let columns = insert.texts("columns");
    let of = |name: &String| columns.iter().find(|it| it.eq_ignore_ascii_case(name));
    let is_of_request =
        |name: &&String| of(name).is_some_and(|it| OF_REQUEST.contains(&it.as_str()));
    if let Some(name) = key.iter().find(is_of_request) {
        reject! { faults;
            insert.place("key") => format!("`{name}` of `key` does not identify a row"),
                expected "the ids of requests begin with 1 at each start, times and clients repeat",
                help "name a key of the records, whose columns get values from the client";
        }
    }
    if let Some(name) = key.iter().find(|name| of(name).is_none()) {
        reject! { faults;
            insert.place("key") => format!("`{name}` of `key` is not among `columns`"),
                help "add it to `columns`, or remove it";
        }
    }
}

/// Two workers that write do not keep the order of a client's rows.
fn order(pool: &Section, faults: &mut Vec<Fault>) {
    let max = pool.group.inner("workers").and_then(|workers| workers.number("max")).unwrap_or(1);
    let by_client = pool.group.is("order", Order::Client) && pool.group.key("query").is_none();
    reject! { faults;
        pool.group.place("workers"), if by_client && max > 1
            => format!("{max} workers do not preserve the order of a client's rows"),
            expected "expected one worker, or rows in any order",
            help "add `order = \"any\"`, or write `workers = 1`";
    }
}

/// Options of a server connection are rejected for SQLite, which is a file.
fn server_only(pool: &Section, faults: &mut Vec<Fault>) {
    if !matches!(pool.group.value("database"), Some(Value::Target(Target::Sqlite(_)))) {
        return;
    }
    for (option, place) in pool.group.needing(Database::OPTIONS, Needs::DatabaseServer) {
        reject! { faults;
            Some(place) => format!("`{option}` requires a database server; SQLite is a file"),
                help "remove it";
        }
    }
}
