//! Checks the names of tables and columns of an insert.

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

/// Rejects a key by which rows cannot be compared.
pub(crate) fn check_key(columns: &[String], on_conflict: &OnConflict) -> Result<(), DatabaseError> {
    let OnConflict::Nothing(key) = on_conflict else { return Ok(()) };
    if key.is_empty() {
        let why = "`on_conflict = \"nothing\"` needs the columns of a `key` of table";
        return Err(DatabaseError::Columns(why, String::new()));
    }
    let absent = |name: &&String| !columns.iter().any(|it| it.eq_ignore_ascii_case(name));
    match key.iter().find(absent) {
        Some(name) => Err(DatabaseError::Columns("of `key`, not of `columns`:", name.clone())),
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
