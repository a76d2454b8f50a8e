//! Checks the names of tables and columns of an insert.

use crate::source::reserved;
use crate::{DatabaseError, OnConflict};

/// Rejects names that cannot be used in an insert.
pub(crate) fn check_insert(table: &str, columns: &[String]) -> Result<(), DatabaseError> {
    check(table)?;
    if columns.is_empty() {
        return Err(DatabaseError::Columns("no columns for table", table.to_owned()));
    }
    for (index, column) in columns.iter().enumerate() {
        check(column)?;
        if columns[..index].iter().any(|earlier| earlier.eq_ignore_ascii_case(column)) {
            return Err(DatabaseError::Columns("named twice: column", column.clone()));
        }
    }
    Ok(())
}

/// Values of requests repeat: the ids begin with 1 at each start, two requests may arrive in the same microsecond, and a
/// client sends many. A new row with such a key would count as one that exists already, and be acknowledged unstored.
const OF_REQUEST: &str =
    "a value of the request does not identify a row; give the table a key of its records, not of";

/// Rejects a key by which rows cannot be compared.
pub(crate) fn check_key(columns: &[String], on_conflict: &OnConflict) -> Result<(), DatabaseError> {
    let OnConflict::Nothing(key) = on_conflict else { return Ok(()) };
    if key.is_empty() {
        let why = "`on_conflict = \"nothing\"` needs the columns of a `key` of table";
        return Err(DatabaseError::Columns(why, String::new()));
    }
    let of = |name: &String| columns.iter().find(|it| it.eq_ignore_ascii_case(name));
    if let Some(name) = key.iter().find(|name| of(name).is_none()) {
        return Err(DatabaseError::Columns("of `key`, not of `columns`:", name.clone()));
    }
    let is_of_request = |name: &&String| of(name).is_some_and(|it| reserved(it).is_some());
    match key.iter().find(is_of_request) {
        Some(name) => Err(DatabaseError::Columns(OF_REQUEST, name.clone())),
        None => Ok(()),
    }
}

fn check(name: &str) -> Result<(), DatabaseError> {
    if name.is_empty() || name.contains('\0') {
        return Err(DatabaseError::Columns(
            "this cannot be a name:",
            name.escape_debug().to_string(),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_row_counts_as_there_because_of_the_number_time_or_client_of_its_request() {
        let names = |names: &[&str]| names.iter().map(|&it| it.to_owned()).collect::<Vec<_>>();
        let checked = |columns: &[&str], key: &[&str]| {
            let checked = check_key(&names(columns), &OnConflict::Nothing(names(key)));
            checked.map_err(|error| error.to_string())
        };
        let columns = ["_id", "_at", "_client", "id"];
        for key in [&["_id"][..], &["_at"], &["_client"], &["id", "_at"], &["_at", "_client"]] {
            let name = key.iter().find(|it| it.starts_with('_')).unwrap();
            assert_eq!(checked(&columns, key), Err(format!("`insert`: {OF_REQUEST} `{name}`")));
        }
        assert!(checked(&columns, &["_ID"]).unwrap_err().contains(OF_REQUEST));
        assert_eq!(checked(&columns, &["id"]), Ok(()));
        // These are members of the record.
        assert_eq!(checked(&["_ID", "_key"], &["_ID", "_key"]), Ok(()));
    }
}
