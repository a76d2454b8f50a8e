//! Single values parsed from text.
//!
//! What it is: parsers of addresses, keys, database targets and similar values. What it depends on: text, and the
//! values of the model. What it must never depend on: a tree, an option's name.

mod address;
mod addresses;
mod host;
mod key;
mod processors;
mod secret;
mod target;

use std::path::PathBuf;

use crate::quantities::Bad;

pub use address::{Address, HostName, Network};
pub use key::Key;
pub use processors::Processors;
pub use secret::Secret;
pub use target::{DatabaseHost, ServerTarget, Target};

pub(crate) use addresses::{address, network};
pub(crate) use host::server_address;

/// The maximum length of the name of a listener or a pool, in bytes.
pub(crate) const NAME_LENGTH_MAX: usize = 64;

/// The number of processors that the kernel's sets support.
pub(crate) const PROCESSORS_MAX: usize = 1024;

/// Parses `any`, `near` or `spread`.
pub(crate) fn processors(text: &str) -> Result<Processors, Bad> {
    match text {
        "any" => Ok(Processors::Any),
        "near" => Ok(Processors::Near),
        "spread" => Ok(Processors::Spread),
        _ => {
            let bad = Bad::because("is neither \"any\", \"near\" nor \"spread\"");
            Err(match text.parse::<usize>() {
                Ok(number) => bad.suggestion(format!("write [{number}]")),
                Err(_) => bad.suggestion("write one of these, or a list of numbers like [0, 2]"),
            })
        }
    }
}

/// Parses a key, such as `source`, `connection`, `line`, `word:2`, `field:NAME` or `member:NAME`.
pub(crate) fn key(text: &str) -> Result<Key, Bad> {
    const NUMBER_MAX: u32 = 1000;
    let numbered = |number: &str, kind: &str, key: fn(u32) -> Key| match number.parse() {
        Ok(number @ 1..=NUMBER_MAX) => Ok(key(number)),
        _ => Err(Bad::because(format!("has no number from 1 to {NUMBER_MAX} after its colon"))
            .suggestion(format!("write \"{kind}:1\" for the first"))),
    };
    let named = |name: &str, key: fn(String) -> Key| match name {
        "" => Err(Bad::because("has no name after its colon")),
        _ => Ok(key(name.to_owned())),
    };
    match text.split_once(':') {
        None if text == "source" => Ok(Key::Source),
        None if text == "connection" => Ok(Key::Connection),
        None if text == "line" => Ok(Key::Line),
        Some(("word", number)) => numbered(number, "word", Key::Word),
        Some(("segment", number)) => numbered(number, "segment", Key::Segment),
        Some(("field", name)) => named(name, Key::Field),
        Some(("member", name)) => named(name, Key::Member),
        None if text == "path" => Ok(Key::Path),
        Some(("header", name)) => named(name, Key::Header),
        Some(("cookie", name)) => named(name, Key::Cookie),
        Some(("query", name)) => named(name, Key::Query),
        None if ["word", "segment"].contains(&text) => Err(Bad::because("does not say which")
            .suggestion(format!("write \"{text}:1\" for the first"))),
        None if ["field", "member", "header", "cookie", "query"].contains(&text) => {
            Err(Bad::because("does not say which").suggestion(format!("write \"{text}:NAME\"")))
        }
        _ => {
            let kinds = [
                "source",
                "connection",
                "line",
                "word",
                "field",
                "member",
                "header",
                "cookie",
                "path",
                "segment",
                "query",
            ];
            let kind = text.split(':').next().unwrap_or_default();
            let bad = Bad::because("is not a key");
            Err(match crate::nearest::nearest(kind, kinds) {
                Some(nearest) => bad.suggestion(format!("did you mean \"{nearest}\"?")),
                None => bad,
            })
        }
    }
}

/// The kinds of databases: the prefixes of their targets.
const DATABASES: [&str; 3] = ["sqlite", "postgres", "mysql"];

/// Parses `sqlite:PATH`, `postgres://USER@HOST:PORT/DATABASE` (or `postgresql://…`) or
/// `mysql://USER@HOST:PORT/DATABASE`.
pub(crate) fn target(text: &str) -> Result<Target, Bad> {
    if text.contains('\0') {
        return Err(Bad::because("contains a NUL"));
    }
    match text.split_once(':') {
        Some(("sqlite", "")) => {
            Err(Bad::because("has no path").suggestion("write \"sqlite:hits.db\""))
        }
        Some(("sqlite", path)) => Ok(Target::Sqlite(PathBuf::from(path))),
        Some(("postgres" | "postgresql", rest)) => {
            server("postgres", rest, 5432).map(Target::Postgres)
        }
        Some(("mysql", rest)) => server("mysql", rest, 3306).map(Target::Mysql),
        // The text may be a password, so only what cannot contain one is repeated.
        Some((scheme, rest)) if scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
            let bad = Bad::because(format!("has the unknown database `{scheme}`"));
            let known = match scheme {
                "pg" => Some("postgres"),
                "mariadb" => Some("mysql"),
                _ => crate::nearest::nearest(scheme, DATABASES),
            };
            Err(match known {
                Some("sqlite") if !rest.contains(['@', '?', ':']) => {
                    bad.suggestion(format!("write \"sqlite:{rest}\""))
                }
                Some("sqlite") => bad.suggestion("write \"sqlite:PATH\""),
                Some(known) => bad.suggestion(format!("write \"{known}://USER@HOST/DATABASE\"")),
                None => bad,
            })
        }
        None if text.is_empty() => Err(Bad::because("is empty")),
        None if !text.contains(['@', '?']) => {
            Err(Bad::because("does not say which kind of database it is")
                .suggestion(format!("write \"sqlite:{text}\"")))
        }
        Some(_) | None => Err(Bad::because("does not say which kind of database it is")
            .suggestion("write \"sqlite:PATH\" or \"postgres://USER@HOST/DATABASE\"")),
    }
}

/// Whether this is, or is meant to be, the prefix of the path of an SQLite file.
pub(crate) fn is_sqlite(scheme: &str) -> bool {
    scheme == "sqlite" || crate::nearest::nearest(scheme, DATABASES) == Some("sqlite")
}

/// Parses `//USER@HOST:PORT/DATABASE`, or `//USER@/DATABASE?socket=PATH`.
fn server(scheme: &str, text: &str, default_port: u16) -> Result<ServerTarget, Bad> {
    let whole = || format!("write \"{scheme}://USER@HOST/DATABASE\"");
    let rest = text
        .strip_prefix("//")
        .ok_or_else(|| Bad::because("has no server address").suggestion(whole()))?;
    let (rest, socket) = match rest.split_once('?') {
        None => (rest, None),
        Some((rest, option)) => match option.strip_prefix("socket=") {
            Some(path) if path.starts_with('/') => (rest, Some(path)),
            _ => {
                let why = "has an unknown option after `?`";
                let suggestion = "only \"?socket=/path\" is known; other options are separate, next to `database`";
                return Err(Bad::because(why).suggestion(suggestion));
            }
        },
    };
    let Some((place, database)) = rest.split_once('/').filter(|(_, database)| !database.is_empty())
    else {
        return Err(Bad::because("has no database name").suggestion(whole()));
    };
    let Some((user, place)) = place.rsplit_once('@').filter(|(user, _)| !user.is_empty()) else {
        return Err(Bad::because("names no user").suggestion(whole()));
    };
    if let Some((user, _)) = user.split_once(':') {
        let why = "contains a password, which does not belong in a configuration file";
        // With a second `@` or a `?`, any part of the text may be a part of the password.
        let address = match text.matches(['@', '?']).count() {
            1 => format!("{scheme}://{user}@{place}/{database}"),
            _ => format!("{scheme}://USER@HOST/DATABASE"),
        };
        let suggestion =
            format!("write \"{address}\" and `password = \"env:NAME\"` or `\"file:PATH\"`");
        return Err(Bad::because(why).suggestion(suggestion));
    }
    let (host, port) = match place.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => {
            let number = port.parse::<u16>().ok().filter(|port| *port > 0);
            let why = "has a port that is not a number from 1 to 65535";
            (host, number.ok_or_else(|| Bad::because(why))?)
        }
        _ => (place, default_port),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let host = match socket {
        Some(path) => DatabaseHost::Socket(PathBuf::from(path), port),
        None if host.is_empty() => {
            return Err(Bad::because("has no server address").suggestion(whole()));
        }
        None => DatabaseHost::Internet(host.to_owned(), port),
    };
    Ok(ServerTarget { host, user: user.to_owned(), database: database.to_owned() })
}

/// Parses `env:NAME` or `file:PATH`.
pub(crate) fn secret(text: &str) -> Result<Secret, Bad> {
    match text.split_once(':') {
        Some(("env", name)) if !name.is_empty() && !name.contains(['=', '\0']) => {
            Ok(Secret::Environment(name.to_owned()))
        }
        Some(("file", path)) if !path.is_empty() && !path.contains('\0') => {
            Ok(Secret::File(PathBuf::from(path)))
        }
        _ => Err(Bad::because("does not say where the secret is")
            .suggestion("write \"env:NAME\" for a variable, \"file:PATH\" for a file")),
    }
}

/// Checks the name of a listener or a pool: `[a-z][a-z0-9_-]*`, at most 64 characters.
pub(crate) fn name(text: &str) -> Result<(), Bad> {
    if text.is_empty() {
        return Err(Bad::because("is empty"));
    }
    if text.len() > NAME_LENGTH_MAX {
        return Err(Bad::because(format!("is longer than {NAME_LENGTH_MAX} characters")));
    }
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-');
    if let Some(c) = text.chars().find(|c| !allowed(*c)) {
        let bad = Bad::because(format!("contains the character `{}`", c.escape_debug()));
        let suggested: String =
            text.to_lowercase().chars().map(|c| if allowed(c) { c } else { '-' }).collect();
        return Err(if name(&suggested).is_ok() {
            bad.suggestion(format!("write `{suggested}`"))
        } else {
            bad
        });
    }
    if !text.starts_with(|c: char| c.is_ascii_lowercase()) {
        return Err(Bad::because("does not begin with a letter"));
    }
    Ok(())
}

/// Checks an acknowledgement: one line with placeholders `{name}`.
pub(crate) fn template(text: &str) -> Result<(), Bad> {
    if text.contains(['\n', '\r']) {
        return Err(Bad::because("contains a line end; a reply is one line"));
    }
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        let (brace, inner) = rest[at..].split_at(1);
        if let Some(behind) = inner.strip_prefix(brace) {
            rest = behind;
            continue;
        }
        if brace == "}" {
            return Err(Bad::because("has a `}` without a `{` before it")
                .suggestion("write `}}` for the brace itself"));
        }
        match inner.find(['{', '}']) {
            Some(0) => {
                return Err(Bad::because("has `{}` without a name")
                    .suggestion("name a value of the record, as in \"ok {id}\""));
            }
            Some(close) if inner[close..].starts_with('}') => rest = &inner[close + 1..],
            _ => {
                return Err(Bad::because("has a `{` that is never closed").suggestion(
                    "close it, as in \"ok {id}\", or write `{{` for the brace itself",
                ));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_kept_as_it_is_written() {
        for path in ["hits.db", "/var/lib/a b.db", ":memory:"] {
            let read = target(&format!("sqlite:{path}"));
            assert_eq!(read, Ok(Target::Sqlite(PathBuf::from(path))));
        }
    }

    #[test]
    fn servers_are_named_with_user_place_and_database() {
        let shown = |text: &str| match target(text) {
            Ok(Target::Postgres(it) | Target::Mysql(it)) => {
                format!("{:?} {} {}", it.host, it.user, it.database)
            }
            other => format!("{other:?}"),
        };
        for (text, meant) in [
            ("postgres://me@db.example/hits", r#"Internet("db.example", 5432) me hits"#),
            ("postgresql://me@db.example/hits", r#"Internet("db.example", 5432) me hits"#),
            ("mysql://me@10.0.0.1:3307/hits", r#"Internet("10.0.0.1", 3307) me hits"#),
            ("postgres://me@[::1]:1/hits", r#"Internet("::1", 1) me hits"#),
            ("postgres://me@[::1]/hits", r#"Internet("::1", 5432) me hits"#),
            ("postgres://me@/hits?socket=/run/pg", r#"Socket("/run/pg", 5432) me hits"#),
        ] {
            assert_eq!(shown(text), meant, "{text}");
        }
        for (text, why) in [
            ("postgres:hits", "has no server address"),
            ("postgres://me@/hits", "has no server address"),
            ("postgres://me@host", "has no database name"),
            ("mysql://host/hits", "names no user"),
            ("mysql://me@host:0/hits", "has a port that is not a number from 1 to 65535"),
            ("mysql://me@host/hits?ssl=1", "has an unknown option after `?`"),
        ] {
            assert_eq!(target(text).unwrap_err().why, why, "{text}");
        }
        let bad = target("postgres://me:secret@host/hits").unwrap_err();
        assert!(bad.why.starts_with("contains a password"));
        assert!(!bad.suggestion.unwrap_or_default().contains("secret@"));
    }

    #[test]
    fn a_template_may_name_values_and_hold_anything_else() {
        for text in
            ["ok", "", "{id}", "ok {id} {at}", "100 % ü", "{{}}", "{{\"id\":{id}}}", "{{{id}}}"]
        {
            assert_eq!(template(text), Ok(()), "{text}");
        }
        for text in ["}", "{", "{}", "{id", "{id}}", "{{id}", "{a{b}", "{a{{b}", "ok\n"] {
            assert!(template(text).is_err(), "{text}");
        }
    }
}
