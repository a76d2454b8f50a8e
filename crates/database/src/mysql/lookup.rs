//! Whether the rows that an insert has not stored are there already.
//!
//! What the statement compares with a row that is there is what a BEFORE INSERT trigger has made of the key:
//! a row with another key would pass for one that is there. So the keys are looked up as they were sent,
//! before COMMIT.

use std::ops::Range;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Params, Row, Value};
use sql::quoted;

use super::fault;
use crate::fault::Fault;

/// Numbers of keys that a statement looks up, the largest first.
const SIZES: [usize; 3] = [100, 10, 1];

/// How rows are found by their key.
#[derive(Debug)]
pub(super) struct Lookup {
    /// An expression: 1 where the key is in the table.
    one: String,
    /// Which columns of the insert the key has.
    places: Vec<usize>,
}

impl Lookup {
    /// `table`: its name in SQL.
    pub(super) fn new(table: &str, columns: &[String], key: &[String]) -> Self {
        let place = |name: &String| columns.iter().position(|it| it.eq_ignore_ascii_case(name));
        let same: Vec<_> = key.iter().map(|name| format!("{} = ?", quoted(name, '`'))).collect();
        let same = same.join(" and ");
        // A locking read sees what was committed since the transaction began. The insert has the lock.
        let one = format!("exists (select 1 from {table} where {same} lock in share mode)");
        Self { one, places: key.iter().filter_map(place).collect() }
    }

    /// Whether each of `rows` is there, by the values that `value` gives: of a row, and of a column of the
    /// insert.
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
