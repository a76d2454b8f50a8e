//! Checks whether the rows that an insert has not stored already exist.
//!
//! The statement compares an existing row with the key as a BEFORE INSERT trigger has changed it, so a row with another
//! key could be taken for an existing one. So the keys are looked up as they were sent, before COMMIT.

use std::ops::Range;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Params, Row, Value};
use sql::quoted;

use super::fault;
use crate::fault::Fault;

/// The numbers of keys that a statement looks up, the largest first.
const SIZES: [usize; 3] = [100, 10, 1];

/// Looks up rows by their key.
#[derive(Debug)]
pub(super) struct Lookup {
    /// An SQL expression: 1 if the key is in the table.
    one: String,
    /// The positions of the key's columns in the insert.
    places: Vec<usize>,
}

impl Lookup {
    /// Returns the lookup for a key. `table`: the name of the table in SQL.
    pub(super) fn new(table: &str, columns: &[String], key: &[String]) -> Self {
        let place = |name: &String| columns.iter().position(|it| it.eq_ignore_ascii_case(name));
        let same: Vec<_> = key.iter().map(|name| format!("{} = ?", quoted(name, '`'))).collect();
        let same = same.join(" and ");
        // A locking read sees what was committed since the transaction began. The insert has the lock.
        let one = format!("exists (select 1 from {table} where {same} lock in share mode)");
        Self { one, places: key.iter().filter_map(place).collect() }
    }

    /// Whether each of `rows` exists, by the values that `value` returns for a row and a column of the insert.
    pub(super) async fn finds_all(
        &self,
        connection: &mut Conn,
        rows: Range<usize>,
        value: impl Fn(usize, usize) -> Result<Value, Fault>,
    ) -> Result<bool, Fault> {
        let mut next = rows.start;
        while next < rows.end {
            let fits = |size: &&usize| **size <= rows.end - next;
            let end = next + SIZES.iter().find(fits).copied().unwrap_or(1);
            let sql = format!("select {}", vec![&*self.one; end - next].join(", "));
            let places = |row| self.places.iter().map(move |place| (row, *place));
            let keys = (next..end).flat_map(places).map(|(row, place)| value(row, place));
            let keys = Params::Positional(keys.collect::<Result<_, Fault>>()?);
            let found = connection.exec_first(sql, keys).await;
            let found: Option<Row> = found.map_err(|error| fault::of(&error))?;
            if !found.is_some_and(|row| row.unwrap().iter().all(|it| *it == Value::Int(1))) {
                return Ok(false);
            }
            next = end;
        }
        Ok(true)
    }
}
