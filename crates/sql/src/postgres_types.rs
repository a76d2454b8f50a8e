//! Types of PostgreSQL, by their names.

use crate::column::Takes;

/// Returns what a column accepts, for a type as the server writes it, with its length.
#[must_use]
pub fn postgres_takes(of: &str) -> Takes {
    if let Some(of) = of.strip_suffix("[]") {
        return Takes::Array(Box::new(postgres_takes(of)));
    }
    if let Some(of) = of.strip_prefix("range of ") {
        return range_takes(postgres_takes(of));
    }
    let (name, modifier) = of.split_once('(').unwrap_or((of, ""));
    let (modifier, behind) = modifier.split_once(')').unwrap_or(("", ""));
    let digits = || modifier.parse().unwrap_or(6);
    match name.split_once(' ').map_or(name, |(name, _)| name) {
        "boolean" => Takes::Bool,
        "smallint" | "integer" | "bigint" => Takes::Integer,
        "oid" | "xid" | "cid" => Takes::Unsigned(u32::MAX.into()),
        "xid8" => Takes::Unsigned(u64::MAX),
        "real" => Takes::Single,
        "double" => Takes::Double,
        "numeric" => Takes::Decimal(match modifier.split_once(',') {
            // If it rounds before the decimal point, the server itself decides what it rejects or rounds.
            Some((_, places)) => Some(places.parse().unwrap_or(0)),
            None if modifier.is_empty() => None,
            None => Some(0),
        }),
        "bytea" => Takes::Bytes,
        "character" if name == "character varying" => {
            modifier.parse().map_or(Takes::Text, Takes::Limited)
        }
        "json" | "jsonb" => Takes::Json,
        "date" => Takes::Date,
        "time" if of.ends_with("with time zone") => Takes::ZonedTime(digits()),
        "time" => Takes::Time(digits()),
        "timestamp" if name.ends_with("with time zone") || behind.ends_with("with time zone") => {
            Takes::Instant(digits())
        }
        "timestamp" => Takes::Utc(digits()),
        _ => Takes::Text,
    }
}

/// Returns what a range with these bounds accepts: text, if the database changes no bound.
#[must_use]
pub fn range_takes(bound: Takes) -> Takes {
    match bound {
        Takes::Unsigned(_) | Takes::Single | Takes::Double | Takes::Decimal(Some(_)) => {}
        Takes::Date | Takes::Time(_) | Takes::ZonedTime(_) | Takes::Utc(_) | Takes::Instant(_) => {}
        _ => return Takes::Text,
    }
    Takes::Range(Box::new(bound))
}
