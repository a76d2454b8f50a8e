//! What an operator has to mend before a database can be used.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::text::listed;

/// Why a database cannot be used as it was set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatabaseError {
    /// The path is empty or names a database in memory, which no other connection could see.
    NotAFile(PathBuf),
    /// There is no file and no `create` that would make its table.
    NoFile(PathBuf),
    /// It cannot be opened; the text is the database's own.
    Open(PathBuf, Arc<str>),
    /// It can be read and not written.
    ReadOnly(PathBuf),
    /// The statements of `create` failed; the text is the database's own.
    Create(Arc<str>),
    /// There is no such table.
    NoTable {
        /// The one that was named.
        table: String,
        /// Those that exist.
        tables: Vec<String>,
    },
    /// The table has no such column.
    NoColumn {
        /// The one that was named.
        column: String,
        /// Of which table.
        table: String,
        /// Those that it has.
        columns: Vec<String>,
    },
    /// An `insert` without columns, or with a name that is empty, doubled or holds a NUL.
    Columns(&'static str, String),
    /// A name of a value that is longer than a record can have one.
    NameLength(String),
    /// The statement cannot be used; the text says why.
    Statement(Arc<str>),
    /// The acknowledgement names a value that a line of TSV does not have.
    NotInRecord {
        /// The one that was named.
        name: String,
        /// Those that the line has.
        columns: Vec<String>,
    },
    /// The acknowledgement is not a template: why, and at which byte, counted from 1.
    Ack(&'static str, usize),
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
            Self::Columns(why, name) => write!(f, "`insert`: {why} `{name}`"),
            Self::Statement(text) => write!(f, "`statement`: {text}"),
            Self::NotInRecord { name, columns } => {
                write!(f, "`ack`: a TSV record has no `{name}`; it has {}", listed(columns))
            }
            Self::Ack(why, byte) => write!(f, "`ack`: {why} at byte {byte}"),
        }
    }
}

impl std::error::Error for DatabaseError {}
