//! The unique keys of a table.

use rusqlite::{Connection, Error};

use super::statement::quoted;
use crate::resend::{KeyColumn, KeyType};
use crate::{Action, DatabaseError, OnConflict};

/// Finds a row that may already exist.
#[derive(Debug)]
pub(super) struct Conflict {
    pub(super) sql: String,
    /// The parameters of the insert that are the key.
    pub(super) key: Vec<KeyColumn>,
    /// No column of the key is ever NULL.
    pub(super) is_filled: bool,
}

impl Conflict {
    /// Returns the lookup for the key of an action as the table has it now. `None` if the action keeps no existing
    /// rows.
    pub(super) fn of(
        connection: &Connection,
        action: &Action,
    ) -> Result<Result<Option<Self>, DatabaseError>, Error> {
        let Action::Insert { table, columns, on_conflict: OnConflict::Nothing(key) } = action
        else {
            return Ok(Ok(None));
        };
        if replaces(connection, table)? {
            let why = "`on_conflict = \"nothing\"` keeps rows that exist, and `on conflict replace` removes them; \
                       remove this clause from the definition of table";
            return Ok(Err(DatabaseError::Columns(why, table.clone())));
        }
        let keys = keys(connection, table)?;
        let Some((_, is_filled)) = keys.iter().find(|(columns, _)| same_names(columns, key)) else {
            let keys = keys.iter().map(|(columns, _)| columns.join(", ")).collect();
            let add = format!(
                "create unique index {} on {} ({})",
                quoted(&format!("{table}_{}", key.join("_"))),
                quoted(table),
                sql::listed(key, '"')
            );
            let (key, table) = (key.join(", "), table.clone());
            return Ok(Err(DatabaseError::NoKey { key, table, keys, add }));
        };
        let collations = collations(connection, table, key)?;
        Ok(Ok(Some(Self::new(table, columns, key, &collations, *is_filled))))
    }

    /// Returns the lookup for a key. `collations`: for each index of the key the collations of its columns, which may
    /// differ from those of the columns themselves.
    fn new(
        table: &str,
        columns: &[String],
        key: &[String],
        collations: &[Vec<String>],
        is_filled: bool,
    ) -> Self {
        let same = |number: usize| format!("{} = ?{}", quoted(&key[number]), number + 1);
        let by_columns = (0..key.len()).map(same).collect::<Vec<_>>().join(" and ");
        let by_index = |collations: &Vec<String>| {
            let parts = collations.iter().enumerate();
            let parts =
                parts.map(|(number, it)| format!("{} collate {}", same(number), quoted(it)));
            parts.collect::<Vec<_>>().join(" and ")
        };
        let conditions = match collations {
            [] => by_columns,
            _ => collations.iter().map(by_index).collect::<Vec<_>>().join(" or "),
        };
        let place = |name: &String| columns.iter().position(|it| it.eq_ignore_ascii_case(name));
        let column = |parameter| KeyColumn { parameter, of: KeyType::Plain };
        let key = key.iter().filter_map(place).map(column).collect();
        let sql = format!("select 1 from {} where {conditions}", quoted(table));
        Self { sql, key, is_filled }
    }
}

/// Whether a constraint of a table removes other rows, or stores another value for NULL. Only the definition of the
/// table shows that.
pub(super) fn replaces(connection: &Connection, table: &str) -> Result<bool, Error> {
    let sql = "select sql from sqlite_schema where type = 'table' and name = ? collate nocase";
    let definitions = names(connection, sql, [table])?;
    Ok(definitions.iter().any(|sql| sql::has_replace(sql)))
}

/// Returns the texts that a statement returns, one per row.
pub(super) fn names(
    connection: &Connection,
    sql: &str,
    parameters: impl rusqlite::Params,
) -> Result<Vec<String>, Error> {
    connection.prepare(sql)?.query_map(parameters, |row| row.get(0))?.collect()
}

/// Returns the keys of a table: their columns, and whether none of these may be NULL. NULLs are never equal.
fn keys(connection: &Connection, table: &str) -> Result<Vec<(Vec<String>, bool)>, Error> {
    let filled = "select name from pragma_table_info(?) where \"notnull\" \
                  or pk = 1 and lower(type) = 'integer' \
                  and (select count(*) from pragma_table_info(?1) where pk > 0) = 1";
    let filled = names(connection, filled, [table])?;
    let mut keys = Vec::new();
    // A primary key that is the row number has no index.
    let primary = "select name from pragma_table_info(?) where pk > 0 order by pk";
    keys.push(names(connection, primary, [table])?);
    let unique = "select name from pragma_index_list(?) where \"unique\" and not partial";
    for index in names(connection, unique, [table])? {
        let parts = "select ifnull(i.name, '') from pragma_index_info(?) i";
        keys.push(names(connection, parts, [&index])?);
    }
    keys.retain(|key| !key.is_empty() && !key.contains(&String::new()));
    keys.sort();
    keys.dedup();
    let is_filled = |key: &Vec<String>| key.iter().all(|column| filled.contains(column));
    Ok(keys.into_iter().map(|key| (is_filled(&key), key)).map(|(is, key)| (key, is)).collect())
}

/// Returns for each unique index of exactly the columns in `key` the collations with which it compares them, in their
/// order. A key that is the row number has none.
pub(super) fn collations(
    connection: &Connection,
    table: &str,
    key: &[String],
) -> Result<Vec<Vec<String>>, Error> {
    let unique = "select name from pragma_index_list(?) where \"unique\" and not partial";
    let mut found = Vec::new();
    for index in names(connection, unique, [table])? {
        let parts = "select ifnull(name, ''), coll from pragma_index_xinfo(?) where key";
        let mut parts = connection.prepare(parts)?;
        let parts = parts.query_map([&index], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let parts: Vec<(String, String)> = parts.collect::<Result<_, _>>()?;
        let columns: Vec<String> = parts.iter().map(|(column, _)| column.clone()).collect();
        if same_names(&columns, key) {
            let of = |column: &String| {
                let part = parts.iter().find(|(name, _)| name.eq_ignore_ascii_case(column));
                part.map_or_else(String::new, |(_, collation)| collation.clone())
            };
            found.push(key.iter().map(of).collect());
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// Whether both contain the same columns, in any order.
fn same_names(one: &[String], other: &[String]) -> bool {
    let all_in = |these: &[String], those: &[String]| {
        these.iter().all(|it| those.iter().any(|that| that.eq_ignore_ascii_case(it)))
    };
    all_in(one, other) && all_in(other, one)
}
