//! Analysis of SQL texts, as far as it is possible without a database.
//!
//! What it is: functions of a text. They find the parameters of a statement and produce the text that its database
//! understands ([`rewrite`]); the first word of a statement ([`check_verb`]); the parameter for each column, in simple
//! statements ([`PlainWrite`]); the columns that parameters are compared with ([`mysql_parameters`]); names and strings; and the number, time or word that a database reads in a value
//! ([`Decimal`], [`time`], [`EnumValues`]), and how a column stores it ([`mod@column`]), also in an array ([`Array`]). It is not a parser: it reports nothing
//! about a text that it cannot read, and the database decides. What it depends on: how SQLite, PostgreSQL, MySQL and MariaDB write and read these. What it must
//! never depend on: a connection, a table, the use of a statement.
//!
//! ```
//! use sql::{Dialect, rewrite};
//!
//! let (text, names) = rewrite("INSERT INTO t VALUES (:a, ':b', :c, :a)", Dialect::Dollar)?;
//! assert_eq!(text, "INSERT INTO t VALUES ($1, ':b', $2, $1)");
//! assert_eq!(names, ["a", "c"]);
//! # Ok::<(), sql::SqlError>(())
//! ```

mod array;
mod blank;
pub mod column;
mod decimal;
mod definition;
mod error;
mod mismatch;
mod mysql_error;
mod mysql_message;
mod mysql_parameters;
mod mysql_types;
mod named;
mod names;
mod plain_write;
mod possible_names;
mod postgres_message;
mod postgres_types;
mod sqlite_types;
pub mod time;
mod tokens;
mod unchecked;
mod uses;
mod verb;
mod withheld;
mod words;

pub use array::Array;
pub use blank::is_blank;
pub use decimal::Decimal;
pub use definition::has_replace;
pub use error::SqlError;
pub use mismatch::Mismatch;
pub use mysql_error::mysql_error_place;
pub use mysql_message::{MYSQL_RAISED, mysql_text_for_clients};
pub use mysql_parameters::{MysqlTable, mysql_parameters};
pub use mysql_types::{MYSQL_SHAPES, MysqlColumn};
pub use named::{Dialect, ignore, origin, parameter, rewrite, without_comments, word};
pub use names::{listed, quoted, single_mention, strings};
pub use plain_write::{ColumnParameter, Name, PlainWrite};
pub use possible_names::possible_names;
pub use postgres_message::{postgres_text_instead, postgres_text_is_for_clients};
pub use postgres_types::{postgres_keeps, postgres_takes, range_takes};
pub use sqlite_types::sqlite_takes;
pub use unchecked::{unchecked, uncompared};
pub use uses::{TableName, tables};
pub use verb::check_verb;
pub use withheld::WITHHELD;
pub use words::EnumValues;
