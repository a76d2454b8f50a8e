//! The definitions of the columns that rows are written to, as the server reports them with each result.
//!
//! After an ALTER TABLE the server prepares statements again by itself, and rounds or truncates values that were
//! checked against the previous types of the columns. The check costs one round trip and is made within each
//! transaction, after its rows: from then on the tables cannot be altered until the transaction ends.

use mysql_async::consts::{ColumnFlags, ColumnType};
use mysql_async::prelude::Queryable;
use mysql_async::{Column, Conn, Error, Statement, Value};
use sql::{listed, quoted};

use super::bind::{BINARY, bits};
use super::fault::{self, is_for_now};
use super::schema::target;
use crate::Action;
use sql::column::Takes;

/// The columns of a table, and the statement that reads them.
#[derive(Debug)]
pub(super) struct Form {
    probe: Statement,
    /// The flags that are compared.
    flags: ColumnFlags,
    columns: Vec<Described>,
}

/// A column's type, character set, length, decimal places and flags.
type Described = (u8, u16, u32, u8, ColumnFlags);

/// The flags that determine which values a column accepts.
const OF_TYPES: ColumnFlags = ColumnFlags::BLOB_FLAG
    .union(ColumnFlags::UNSIGNED_FLAG)
    .union(ColumnFlags::ZEROFILL_FLAG)
    .union(ColumnFlags::BINARY_FLAG)
    .union(ColumnFlags::ENUM_FLAG)
    .union(ColumnFlags::SET_FLAG);

/// The flags about keys.
const OF_KEYS: ColumnFlags = ColumnFlags::PRI_KEY_FLAG
    .union(ColumnFlags::UNIQUE_KEY_FLAG)
    .union(ColumnFlags::MULTIPLE_KEY_FLAG);

impl Form {
    /// Returns the form of the columns that `action` writes to. `None` if the columns are unknown, or the daemon may
    /// not read them. `key`: the index that prevents a second insert of a row. The probe is forced to use the index, so
    /// that it fails (1176) if the index was dropped.
    pub(super) async fn of(
        connection: &mut Conn,
        action: &Action,
        key: Option<&str>,
    ) -> Result<Option<Self>, Error> {
        let Some((table, columns)) = target(action) else { return Ok(None) };
        let forced = |key| format!(" force index ({})", quoted(key, '`'));
        let columns = listed(&columns, '`');
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
        // An ALTER TABLE must not wait for this session.
        connection.query_drop("commit").await?;
        Ok(Some(Self { probe, flags, columns }))
    }

    /// Returns a value of column number `place`, which accepts `takes`, as it is stored: a float has 32 bits, `char`
    /// has no trailing blanks, `binary` is filled up with zeros, a `set` has an order, and a text in a bit column is
    /// its bytes.
    pub(super) fn stored(&self, place: usize, takes: &Takes, value: Value) -> Value {
        let (of, set, length, _, flags) = self.columns[place];
        let is_word = flags.intersects(ColumnFlags::ENUM_FLAG | ColumnFlags::SET_FLAG);
        let is_string = of == ColumnType::MYSQL_TYPE_STRING as u8;
        match value {
            Value::Bytes(text) if is_word => Value::Bytes(match takes {
                Takes::Word(words) => words.in_order(&text),
                _ => text,
            }),
            Value::Bytes(mut bytes) if is_string && set == BINARY => {
                bytes.resize(bytes.len().max(length as usize), 0);
                Value::Bytes(bytes)
            }
            Value::Bytes(mut text) if is_string => {
                let end = text.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
                text.truncate(end);
                Value::Bytes(text)
            }
            Value::Bytes(bytes) if of == ColumnType::MYSQL_TYPE_BIT as u8 => {
                Value::UInt(bits(&bytes))
            }
            Value::Bytes(digits) if IS_REAL.contains(&of) => {
                let number =
                    std::str::from_utf8(&digits).ok().and_then(|it| it.trim().parse().ok());
                let is_single = of == ColumnType::MYSQL_TYPE_FLOAT as u8;
                number.map_or(Value::Bytes(digits), |number| real(number, takes, is_single))
            }
            value => value,
        }
    }

    /// Whether the columns have changed. They cannot change again until the transaction ends.
    pub(super) async fn has_changed(&self, connection: &mut Conn) -> Result<bool, Error> {
        Ok(ask(connection, &self.probe, self.flags).await? != self.columns)
    }
}

/// The types of numbers with a binary fraction.
const IS_REAL: [u8; 2] = [ColumnType::MYSQL_TYPE_FLOAT as u8, ColumnType::MYSQL_TYPE_DOUBLE as u8];

/// Returns a number as a `float` or a `double` stores it. The rounding of a server to the decimal places of the column
/// may give another number than the nearest one.
fn real(number: f64, takes: &Takes, is_single: bool) -> Value {
    let number = match takes {
        Takes::Rounded(_, places) if number.is_finite() => {
            let scale = 10_f64.powi(places.cast_signed());
            let whole = number.floor();
            whole + ((number - whole) * scale).round_ties_even() / scale
        }
        _ => number,
    };
    #[expect(clippy::cast_possible_truncation, reason = "as the server does it")]
    Value::Double(if is_single { f64::from(number as f32) } else { number })
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
