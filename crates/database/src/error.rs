//! Errors that an operator must fix before a database can be used.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::text::listed;

/// The reason why a database cannot be used as configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatabaseError {
    /// The path is empty or names a database in memory, which no other connection can see.
    NotAFile(PathBuf),
    /// The file does not exist, and there is no `create` that would make its table.
    NoFile(PathBuf),
    /// The file does not exist. The daemon would create it.
    NotMade(PathBuf),
    /// The file cannot be opened. The text is that of the database.
    Open(PathBuf, Arc<str>),
    /// The file can be read but not written.
    ReadOnly(PathBuf),
    /// The server cannot be reached, or accepts no connection at the moment. The first text names the server, the
    /// second gives the reason.
    Unreachable(String, Arc<str>),
    /// The server denies access, or access in this way. The first text names the server, the second gives the reason.
    Denied(String, Arc<str>),
    /// The statements of `create` failed. The text is that of the database.
    Create(Arc<str>),
    /// The table does not exist.
    NoTable {
        /// The table that was named.
        table: String,
        /// The tables that exist.
        tables: Vec<String>,
    },
    /// The table has no such column.
    NoColumn {
        /// The column that was named.
        column: String,
        /// The table.
        table: String,
        /// The columns of the table.
        columns: Vec<String>,
    },
    /// The table has a column that requires a value and gets none.
    Unset {
        /// The column.
        column: String,
        /// The table.
        table: String,
    },
    /// The table has no such key.
    NoKey {
        /// The columns that were named.
        key: String,
        /// The table.
        table: String,
        /// The columns of each key of the table.
        keys: Vec<String>,
        /// The SQL that adds the key.
        add: String,
    },
    /// The acknowledgement names a returned column of a type that cannot be decoded.
    Returned {
        /// The column.
        column: String,
        /// The type of the column.
        of: String,
    },
    /// The column does not accept the value that it would get.
    Type {
        /// The column.
        column: String,
        /// The type of the column.
        of: String,
        /// The value that it would get.
        given: String,
    },
    /// The engine of the table has no transactions, or its transactions are on another server.
    Engine {
        /// The table.
        table: String,
        /// The engine of the table.
        engine: String,
        /// The table is named by a `statement`, not by an `insert`.
        is_statement: bool,
    },
    /// The dead-letter table cannot be used. The texts are its name and the reason of the database.
    Dead(String, Arc<str>),
    /// The pool has no dead-letter table.
    NoDead,
    /// The dead letters cannot be read or changed now. The text is that of the database.
    Letters(Arc<str>),
    /// An `insert` without columns, or with a name that is empty, duplicate or contains a NUL.
    Columns(&'static str, String),
    /// The name of a value is longer than a name in a record can be.
    NameLength(String),
    /// The statement cannot be used. The text gives the reason.
    Statement(Arc<str>),
    /// The statement cannot be used. The number is the byte of the statement that causes the error, counted from 0.
    StatementAt(Arc<str>, usize),
    /// The acknowledgement names a value that a line of TSV does not contain.
    NotInRecord {
        /// The name.
        name: String,
        /// The names of the values in the line.
        columns: Vec<String>,
    },
    /// The acknowledgement is not a valid template: the reason, and the byte, counted from 1.
    Ack(&'static str, usize),
}

/// The option that an error concerns, by its name in the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About<'a> {
    /// `database`.
    Database,
    /// `create`.
    Create,
    /// `insert`, the whole table.
    Insert,
    /// `insert.table`.
    Table,
    /// This name in `insert.columns`.
    Column(&'a str),
    /// `statement` or `query`.
    Statement,
    /// `ack`.
    Ack,
    /// `dead_letter_table`.
    Dead,
}

/// Whether tables of this engine store their rows on another server.
pub(crate) fn is_elsewhere(engine: &str) -> bool {
    ["federated", "spider"].iter().any(|it| engine.eq_ignore_ascii_case(it))
}

/// Returns what an engine lacks, for messages.
pub(crate) fn lack(engine: &str) -> &'static str {
    match is_elsewhere(engine) {
        true => "stores rows on another server and may not roll them back",
        false => "has no transactions",
    }
}

impl DatabaseError {
    /// Whether the error may go away without a change by the operator.
    #[must_use]
    pub const fn is_for_now(&self) -> bool {
        matches!(self, Self::Unreachable(..))
    }

    /// Whether the error is that written rows cannot be rolled back.
    pub(crate) const fn is_of_engine(&self) -> bool {
        matches!(self, Self::Engine { .. })
    }

    /// Returns what a client receives: no paths, servers or users. The log has the details.
    #[must_use]
    pub(crate) const fn for_clients(&self) -> &'static str {
        match self {
            Self::Unreachable(..) => "the database cannot be reached",
            Self::Denied(..) => "the database denies access",
            Self::NotAFile(_)
            | Self::NoFile(_)
            | Self::NotMade(_)
            | Self::Open(..)
            | Self::ReadOnly(_) => "the database cannot be opened",
            _ => "the database cannot be used as it is configured",
        }
    }

    /// Returns an error of the statement, at a byte of the statement if it is known.
    pub(crate) fn statement(text: &str, at: Option<usize>) -> Self {
        match at {
            Some(at) => Self::StatementAt(text.into(), at),
            None => Self::Statement(text.into()),
        }
    }

    /// Returns the byte of the statement that causes the error, counted from 0, if it is known.
    #[must_use]
    pub const fn byte(&self) -> Option<usize> {
        match self {
            Self::StatementAt(_, at) => Some(*at),
            _ => None,
        }
    }

    /// Returns the option that the operator must check.
    #[must_use]
    pub fn about(&self) -> About<'_> {
        match self {
            Self::NotAFile(_)
            | Self::NoFile(_)
            | Self::NotMade(_)
            | Self::Open(..)
            | Self::ReadOnly(_)
            | Self::Unreachable(..)
            | Self::Denied(..) => About::Database,
            Self::Create(_) => About::Create,
            Self::Engine { is_statement: true, .. } => About::Statement,
            Self::NoTable { .. } | Self::Engine { .. } => About::Table,
            Self::NoColumn { column, .. } | Self::Type { column, .. } => About::Column(column),
            Self::Unset { .. } | Self::Columns(..) | Self::NoKey { .. } => About::Insert,
            Self::Dead(..) | Self::NoDead | Self::Letters(_) => About::Dead,
            Self::Statement(_) | Self::StatementAt(..) | Self::NameLength(_) => About::Statement,
            Self::NotInRecord { .. } | Self::Returned { .. } | Self::Ack(..) => About::Ack,
        }
    }
}

impl From<sql::SqlError> for DatabaseError {
    fn from(error: sql::SqlError) -> Self {
        Self::statement(&error.text, error.at)
    }
}

impl fmt::Display for DatabaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NameLength(name) => write!(
                f,
                "a name may have {} bytes, and `{}…` has {}",
                fields::Limits::MAX.name,
                name.chars().take(20).collect::<String>(),
                name.len()
            ),
            Self::NotAFile(path) => {
                write!(f, "`{}` is not a file: a database needs a path", path.display())
            }
            Self::NotMade(path) => {
                write!(f, "`{}` does not exist; the daemon makes it when it starts", path.display())
            }
            Self::NoFile(path) => write!(
                f,
                "`{}` does not exist; `create = \"create table if not exists …\"` would make it",
                path.display()
            ),
            Self::Open(path, text) => write!(f, "cannot open `{}`: {text}", path.display()),
            Self::ReadOnly(path) => write!(f, "`{}` cannot be written", path.display()),
            Self::Create(text) => write!(f, "`create` failed: {text}"),
            Self::NoTable { table, tables } if tables.is_empty() => {
                write!(f, "no table `{table}`; the database has none")
            }
            Self::NoTable { table, tables } => {
                write!(f, "no table `{table}`; the database has {}", listed(tables))
            }
            Self::NoColumn { column, table, columns } => {
                write!(f, "no column `{column}` in table `{table}`; it has {}", listed(columns))
            }
            Self::NoKey { key, table, keys, add } => {
                write!(f, "table `{table}` has no unique key of exactly the columns ({key})")?;
                if keys.is_empty() {
                    f.write_str("; it has none")?;
                } else {
                    write!(f, "; it has ({})", keys.join("), ("))?;
                }
                write!(f, "; add it in the database: {add}")
            }
            Self::Returned { column, of } => write!(
                f,
                "`ack`: the statement returns `{column}` as {of}, which is not read; return \
                 `{column}::text`"
            ),
            Self::Unreachable(server, text) => write!(f, "{server} cannot be reached: {text}"),
            Self::Denied(server, text) => write!(f, "{server} denies access: {text}"),
            Self::Unset { column, table } => write!(
                f,
                "column `{column}` of table `{table}` must have a value and is not inserted; add it \
                 to `columns` or give it a default"
            ),
            Self::Type { column, of, given } => {
                write!(f, "column `{column}` is of type {of}, which does not take {given}")
            }
            Self::Engine { table, engine, is_statement } => write!(
                f,
                "{}table `{table}` has the engine {engine}, which {}; use InnoDB",
                if *is_statement { "`statement`: " } else { "" },
                lack(engine)
            ),
            Self::Dead(table, text) => {
                write!(f, "the dead-letter table `{table}` cannot be used: {text}")
            }
            Self::NoDead => f.write_str(
                "the pool has no dead-letter table; add `dead_letter_table = \"TABLE\"`",
            ),
            Self::Letters(text) => write!(f, "dead letters: {text}"),
            Self::Columns(why, name) => write!(f, "`insert`: {why} `{name}`"),
            Self::Statement(text) | Self::StatementAt(text, _) => write!(f, "`statement`: {text}"),
            Self::NotInRecord { name, columns } => {
                write!(f, "`ack`: a TSV record has no `{name}`; it has {}", listed(columns))
            }
            Self::Ack(why, byte) => write!(f, "`ack`: {why} at byte {byte}"),
        }
    }
}

impl std::error::Error for DatabaseError {}
