//! Rules for the tables of dead letters.
//!
//! Dead letters do not name their pool: if two pools had one table, `ctl dead retry` would store the rows of one pool
//! in the table of the other.

use std::path::{Path, PathBuf};

use crate::fault::Fault;
use crate::model::{DatabaseHost, ServerTarget, Target};
use crate::options::Value;
use crate::walk::Section;

/// Each pool must have a separate table.
pub(super) fn check(pools: &[&Section], faults: &mut Vec<Fault>) {
    let mut taken: Vec<(&Section, &Target, &str)> = Vec::new();
    for pool in pools {
        let (Some(Value::Target(target)), Some(Value::Text(table)), Some(place)) = (
            pool.group.value("database"),
            pool.group.value("dead_letter_table"),
            pool.group.place("dead_letter_table"),
        ) else {
            continue;
        };
        let is_same = |(_, other, there): &&(&Section, &Target, &str)| {
            may_be_same((target, table.as_str()), (*other, *there))
        };
        if let Some((other, ..)) = taken.iter().find(is_same) {
            let owner = format!("`[pool.{}]`", other.name);
            let message = format!("`{table}` is already the dead-letter table of {owner}");
            faults.push(
                Fault::at(place, message)
                    .expected(
                        "dead letters do not contain the name of their pool, so either pool would retry them",
                    )
                    .suggestion(format!(
                        "name another table, like `dead_letter_table = \"{}_dead\"`",
                        pool.name
                    )),
            );
        }
        taken.push((pool, target, table));
    }
}

/// Whether two names may be those of one table.
fn may_be_same((one, here): (&Target, &str), (other, there): (&Target, &str)) -> bool {
    match (one, other) {
        (Target::Sqlite(one), Target::Sqlite(other)) => {
            is_same_file(one, other) && here.eq_ignore_ascii_case(there)
        }
        (Target::Postgres(one), Target::Postgres(other)) => {
            // A name without a schema may be in any schema.
            let ((one_schema, here), (other_schema, there)) = (apart(here), apart(there));
            let schemas = one_schema.zip(other_schema);
            is_same_server(one, other)
                && one.database == other.database
                && here.eq_ignore_ascii_case(there)
                && schemas.is_none_or(|(one, other)| one.eq_ignore_ascii_case(other))
        }
        (Target::Mysql(one), Target::Mysql(other)) => {
            let ((one_schema, here), (other_schema, there)) = (apart(here), apart(there));
            let one_schema = one_schema.unwrap_or(&one.database);
            let other_schema = other_schema.unwrap_or(&other.database);
            is_same_server(one, other)
                && here.eq_ignore_ascii_case(there)
                && one_schema.eq_ignore_ascii_case(other_schema)
        }
        _ => false,
    }
}

fn apart(table: &str) -> (Option<&str>, &str) {
    table.rsplit_once('.').map_or((None, table), |(schema, name)| (Some(schema), name))
}

/// This machine has several names, and the server of a TCP port also listens on a socket.
fn is_same_server(one: &ServerTarget, other: &ServerTarget) -> bool {
    let port = |host: &DatabaseHost| match host {
        DatabaseHost::Internet(_, port) | DatabaseHost::Socket(_, port) => *port,
    };
    match (&one.host, &other.host) {
        (DatabaseHost::Socket(..), DatabaseHost::Socket(..)) => one.host == other.host,
        (one, other) if one.is_here() && other.is_here() => port(one) == port(other),
        (DatabaseHost::Internet(one, port), DatabaseHost::Internet(other, same)) => {
            one.eq_ignore_ascii_case(other) && port == same
        }
        _ => false,
    }
}

/// Whether two paths may name one file. A relative path is resolved in the daemon's directory.
fn is_same_file(one: &Path, other: &Path) -> bool {
    let plain = |path: &Path| path.components().collect::<PathBuf>();
    let (one, other) = (plain(one), plain(other));
    let bare = |path: &Path| path.strip_prefix(".").unwrap_or(path).to_owned();
    match (one.is_absolute(), other.is_absolute()) {
        (true, false) => one.ends_with(bare(&other)),
        (false, true) => other.ends_with(bare(&one)),
        _ => bare(&one) == bare(&other),
    }
}
