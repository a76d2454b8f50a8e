//! Reads texts of SQL, as far as that is possible without a database.
//!
//! What it is: functions of a text. Which parameters a statement has, and the text that its database takes
//! ([`rewrite`]); what it begins with ([`check_verb`]); which parameter goes into which column, where it says
//! so plainly ([`PlainWrite`]); names and strings in it. Which number, time or word a database reads in a value
//! ([`Decimal`], [`time`], [`Words`]). What it depends on: how SQLite, PostgreSQL, MySQL and MariaDB write and read these. It is no
//! parser: of a text that it cannot read it says nothing, and the database judges it. What it must never depend on: a
//! connection, a table, what is done with a statement.

mod blank;
mod decimal;
mod error;
mod misfit;
mod named;
mod names;
mod plain_write;
pub mod time;
mod verb;
mod words;

pub use blank::is_blank;
pub use decimal::Decimal;
pub use error::SqlError;
pub use misfit::Misfit;
pub use named::{Dialect, ignore, origin, parameter, rewrite, word};
pub use names::{listed, mentions, only_mention, quoted, strings};
pub use plain_write::{Given, PlainWrite};
pub use verb::check_verb;
pub use words::Words;
