//! What the columns are like that rows go into, as the server says with each result.
//!
//! A server prepares statements again by itself when a table was altered, and rounds or cuts values that
//! were judged by the types that the columns had before. The check costs a round trip and is made within
//! each transaction, behind its rows: from then on the tables cannot be altered until it ends.

use mysql_async::consts::{ColumnFlags, ColumnType};
use mysql_async::prelude::Queryable;
use mysql_async::{Column, Conn, Error, Statement, Value};
use sql::{listed, quoted};

use super::bind::BINARY;
use super::fault::{self, is_for_now};
use super::schema::table_sql;
use crate::Action;

/// The columns of a table, and the statement that asks for them.
#[derive(Debug)]
pub(super) struct Form {
    probe: Statement,
    /// The flags that are compared.
    flags: ColumnFlags,
    columns: Vec<Described>,
}

/// A column's type, character set, length, decimal places and flags.
type Described = (u8, u16, u32, u8, ColumnFlags);

/// The flags that say what values a column takes.
const OF_TYPES: ColumnFlags = ColumnFlags::BLOB_FLAG
    .union(ColumnFlags::UNSIGNED_FLAG)
    .union(ColumnFlags::ZEROFILL_FLAG)
    .union(ColumnFlags::BINARY_FLAG)
    .union(ColumnFlags::ENUM_FLAG)
    .union(ColumnFlags::SET_FLAG);

/// Those about its keys.
const OF_KEYS: ColumnFlags = ColumnFlags::PRI_KEY_FLAG
    .union(ColumnFlags::UNIQUE_KEY_FLAG)
    .union(ColumnFlags::MULTIPLE_KEY_FLAG);

impl Form {
    /// The form of the columns that `action` writes to. None where they are not known, or we may not read
    /// them. `key`: the index that keeps rows from being stored twice. The probe has to use it, so that it fails
    /// where that was dropped (1176).
    pub(super) async fn of(
        connection: &mut Conn,
        action: &Action,
        key: Option<&str>,
    ) -> Result<Option<Self>, Error> {
        let Some((table, columns)) = action.target() else { return Ok(None) };
        let forced = |key| format!(" force index ({})", quoted(key, '`'));
        let (columns, table) = (listed(&columns, '`'), table_sql(&table));
        let sql = format!(
            "select {columns} from {table}{} limit 0",
            key.map_or_else(String::new, forced)
        );
        let flags = if key.is_some() { OF_TYPES.union(OF_KEYS) } else { OF_TYPES };
        let probe = match connection.prep(sql).await {
            Ok(probe) => probe,
            Err(error) if is_for_now(&fault::of(&error)) => return Err(error),
            Err(Error::Server(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let columns = ask(connection, &probe, flags).await?;
        // Whoever wants to alter the table must not wait for us.
        connection.query_drop("commit").await?;
        Ok(Some(Self { probe, flags, columns }))
    }

    /// A value of the column number `place` as it is found there: a float has 32 bits, and `binary(n)` is
    /// filled up with zeros.
    pub(super) fn stored(&self, place: usize, value: Value) -> Value {
        let (of, set, length, ..) = self.columns[place];
        match value {
            Value::Bytes(mut bytes)
                if of == ColumnType::MYSQL_TYPE_STRING as u8 && set == BINARY =>
            {
                bytes.resize(bytes.len().max(length as usize), 0);
                Value::Bytes(bytes)
            }
            Value::Bytes(digits) if of == ColumnType::MYSQL_TYPE_FLOAT as u8 => {
                let number =
                    std::str::from_utf8(&digits).ok().and_then(|it| it.trim().parse().ok());
                number.map_or(Value::Bytes(digits), Value::Float)
            }
            value => value,
        }
    }

    /// Whether the columns are others now. They stay as they are until the transaction ends.
    pub(super) async fn has_changed(&self, connection: &mut Conn) -> Result<bool, Error> {
        Ok(ask(connection, &self.probe, self.flags).await? != self.columns)
    }
}

async fn ask(
    connection: &mut Conn,
    probe: &Statement,
    flags: ColumnFlags,
) -> Result<Vec<Described>, Error> {
    let found = connection.exec_iter(probe, ()).await?;
    let described = |it: &Column| {
        let (of, flags) = (it.column_type() as u8, it.flags() & flags);
        (of, it.character_set(), it.column_length(), it.decimals(), flags)
    };
    let columns = found.columns_ref().iter().map(described).collect();
    found.drop_result().await?;
    Ok(columns)
}
