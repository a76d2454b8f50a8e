//! What the columns of a table accept, and which values of the request itself they do not accept. Only strict tables
//! enforce types.

use rusqlite::{Connection, Error, Row};
use sql::{Name, PlainWrite, sqlite_takes};

use crate::source::{self, Source};
use crate::{Action, DatabaseError};
use sql::column::{Takes, of_parameter};

/// Rejects an action that would assign a value to a column that never accepts it.
pub(super) fn check(connection: &Connection, action: &Action) -> Result<Checked, Error> {
    match action {
        Action::Insert { table, columns, .. } => {
            let types = strict(connection, None, table)?;
            for name in columns {
                let Some((of, given)) = misfit(&types, name, name) else { continue };
                let (column, of, given) = (name.clone(), of.to_owned(), given.to_owned());
                return Ok(Err(DatabaseError::Type { column, of, given }));
            }
        }
        Action::Statement(sql) => {
            let Some(write) = PlainWrite::of(sql, sql::Dialect::Dollar) else { return Ok(Ok(())) };
            let types = strict(connection, write.schema.as_ref(), &write.table.text)?;
            for given in &write.given {
                let Some((of, what)) = misfit(&types, &given.column.text, &given.name) else {
                    continue;
                };
                return Ok(Err(source::unfit(given, of, what, "")));
            }
        }
        Action::Query(_) => {}
    }
    Ok(Ok(()))
}

type Checked = Result<(), DatabaseError>;

/// Returns what the columns of the parameters accept, by the affinity of their types
/// (<https://sqlite.org/datatype3.html>, section 3.1).
pub(super) fn takes(
    connection: &Connection,
    action: &Action,
    parameters: &[Option<String>],
) -> Result<Vec<Takes>, Error> {
    let types = |schema: Option<&Name>, table: &str| -> Result<Vec<(String, String)>, Error> {
        let sql = "select name, upper(type) from pragma_table_info(?, ?)";
        let schema = schema.map(|name| &name.text);
        let row = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        connection.prepare(sql)?.query_map((table, schema), row)?.collect()
    };
    let of = |types: &[(String, String)], column: &str| {
        let found = types.iter().find(|(name, _)| name.eq_ignore_ascii_case(column));
        found.map(|(_, of)| sqlite_takes(of))
    };
    Ok(match action {
        Action::Insert { table, columns, .. } => {
            let types = types(None, table)?;
            columns.iter().map(|column| of(&types, column).unwrap_or_default()).collect()
        }
        Action::Statement(sql) => {
            let write = PlainWrite::of(sql, sql::Dialect::Dollar);
            let types = match &write {
                Some(write) => types(write.schema.as_ref(), &write.table.text)?,
                None => Vec::new(),
            };
            let takes = parameters.iter().map(|name| {
                let name = name.as_deref().unwrap_or_default();
                let found = of_parameter(write.as_ref(), name, |column| of(&types, &column.text));
                found.unwrap_or(Takes::Number)
            });
            takes.collect()
        }
        // A text would be greater than every number.
        Action::Query(_) => parameters.iter().map(|_| Takes::Number).collect(),
    })
}

/// Returns the columns of a strict table with their types; an empty list for another table.
fn strict(
    connection: &Connection,
    schema: Option<&Name>,
    table: &str,
) -> Result<Vec<(String, String)>, Error> {
    let sql = "select c.name, upper(c.type) from pragma_table_list l \
               join pragma_table_info(l.name, l.schema) c \
               where l.schema = ? collate nocase and l.name = ? collate nocase and l.strict";
    let schema = schema.map_or("main", |name| &name.text);
    let row = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
    connection.prepare(sql)?.query_map((schema, table), row)?.collect()
}

/// Returns the type of a column and the description of the value that it would get, if the column does not accept it.
fn misfit<'t>(
    types: &'t [(String, String)],
    column: &str,
    name: &str,
) -> Option<(&'t str, &'static str)> {
    let (_, of) = types.iter().find(|(known, _)| known.eq_ignore_ascii_case(column))?;
    let source = source::reserved(name)?;
    let takes = match (&**of, source) {
        ("ANY" | "TEXT", _) => true,
        ("BLOB", _) | (_, Source::Client) => false,
        _ => true,
    };
    if takes { None } else { Some((of.as_str(), source.title()?)) }
}
