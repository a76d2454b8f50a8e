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

/// Whether a column stores every value that it accepts unchanged, if the server has read the value as another type. Both
/// types are given by their number in `pg_type`; the column is checked for its own type.
#[must_use]
pub fn postgres_keeps(read_as: u32, column: u32) -> bool {
    const NAMES: [u32; 2] = [18, 19];
    const INTEGERS: [u32; 3] = [20, 21, 23];
    const NUMERIC: u32 = 1700;
    const DOUBLES: [u32; 2] = [700, 701];
    const TEXTS: [u32; 2] = [25, 1043];
    let is_exact = |of| INTEGERS.contains(&of) || of == NUMERIC;
    read_as == column
        || is_exact(read_as) && (is_exact(column) || DOUBLES.contains(&column))
        // The server has no conversion of texts without a cast but to other types of text.
        || TEXTS.contains(&read_as) && !NAMES.contains(&column)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_that_changes_no_value_of_another_is_known() {
        let [int4, int8, text, varchar, bpchar] = [23, 20, 25, 1043, 1042];
        let [float4, float8, numeric, date, timestamp, timestamptz] =
            [700, 701, 1700, 1082, 1114, 1184];
        for (read_as, column) in [
            (int4, int8),
            (int8, int4),
            (int4, numeric),
            (numeric, float8),
            (text, varchar),
            (varchar, bpchar),
            (date, date),
        ] {
            assert!(postgres_keeps(read_as, column), "{read_as} {column}");
        }
        for (read_as, column) in [
            (float4, float8),
            (float8, numeric),
            (float8, int8),
            (int4, text),
            (bpchar, text),
            (date, timestamp),
            (timestamp, timestamptz),
            (timestamptz, timestamp),
        ] {
            assert!(!postgres_keeps(read_as, column), "{read_as} {column}");
        }
    }
}
