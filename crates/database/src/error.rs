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
    /// There is no such file, which the daemon would make.
    NotMade(PathBuf),
    /// It cannot be opened; the text is the database's own.
    Open(PathBuf, Arc<str>),
    /// It can be read and not written.
    ReadOnly(PathBuf),
    /// The server named first cannot be reached, or takes nobody at the moment; the text says why.
    Unreachable(String, Arc<str>),
    /// The server named first does not let us in, or not so; the text says why.
    Denied(String, Arc<str>),
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
    /// The table has a column that must have a value and gets none.
    Unset {
        /// Which column.
        column: String,
        /// Of which table.
        table: String,
    },
    /// The table has no such key.
    NoKey {
        /// The columns that were named.
        key: String,
        /// Of which table.
        table: String,
        /// The columns of those that it has.
        keys: Vec<String>,
    },
    /// The acknowledgement names a column that the statement returns in a form that is not read.
    Returned {
        /// Which column.
        column: String,
        /// Its type.
        of: String,
    },
    /// The column does not take what it would be given.
    Type {
        /// Which column.
        column: String,
        /// Its type.
        of: String,
        /// What it would be given.
        given: String,
    },
    /// The table's engine has no transactions, or not those of this server.
    Engine {
        /// Which table.
        table: String,
        /// Its engine.
        engine: String,
        /// A `statement` names it, and no `insert`.
        is_statement: bool,
    },
    /// The table of dead letters cannot be used; the text is the database's own.
    Dead(String, Arc<str>),
    /// There is no table of dead letters.
    NoDead,
    /// The dead letters cannot be read or changed now; the text is the database's own.
    Letters(Arc<str>),
    /// An `insert` without columns, or with a name that is empty, doubled or holds a NUL.
    Columns(&'static str, String),
    /// A name of a value that is longer than a record can have one.
    NameLength(String),
    /// The statement cannot be used; the text says why.
    Statement(Arc<str>),
    /// The same, where the byte of the statement, counted from 0, is known that it is about.
    StatementAt(Arc<str>, usize),
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

/// The option that an error is about, by the names of the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About<'a> {
    /// `database`.
    Database,
    /// `create`.
    Create,
    /// `insert`, all of it.
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

/// Whether tables of this engine are on another server.
pub(crate) fn is_elsewhere(engine: &str) -> bool {
    ["federated", "spider"].iter().any(|it| engine.eq_ignore_ascii_case(it))
}

/// What an engine lacks, for people.
pub(crate) fn lack(engine: &str) -> &'static str {
    match is_elsewhere(engine) {
        true => "stores rows on another server and may not roll them back",
        false => "has no transactions",
    }
}

impl DatabaseError {
    /// Whether time may mend it.
    #[must_use]
    pub const fn is_for_now(&self) -> bool {
        matches!(self, Self::Unreachable(..))
    }

    /// Whether rows that are written cannot be rolled back.
    pub(crate) const fn is_of_engine(&self) -> bool {
        matches!(self, Self::Engine { .. })
    }

    /// What a client gets: no paths, servers or users. The log has the rest.
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

    /// An error of the statement, about that byte of it where it is known.
    pub(crate) fn statement(text: &str, at: Option<usize>) -> Self {
        match at {
            Some(at) => Self::StatementAt(text.into(), at),
            None => Self::Statement(text.into()),
        }
    }

    /// Which byte of the statement it is about, counted from 0, where that is known.
    #[must_use]
    pub const fn byte(&self) -> Option<usize> {
        match self {
            Self::StatementAt(_, at) => Some(*at),
            _ => None,
        }
    }

    /// Which option has to be looked at.
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
            Self::NoKey { key, table, keys } => {
                write!(f, "table `{table}` has no unique key of exactly the columns ({key})")?;
                if keys.is_empty() {
                    f.write_str("; it has none")
                } else {
                    write!(f, "; it has ({})", keys.join("), ("))
                }
            }
            Self::Returned { column, of } => write!(
                f,
                "`ack`: the statement returns `{column}` as {of}, which is not read; return \
                 `{column}::text`"
            ),
            Self::Unreachable(server, text) => write!(f, "{server} cannot be reached: {text}"),
            Self::Denied(server, text) => write!(f, "{server} does not let us in: {text}"),
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
                write!(f, "the table `{table}` of dead letters cannot be used: {text}")
            }
            Self::NoDead => f.write_str(
                "the pool keeps no dead letters; `dead_letter_table = \"TABLE\"` would keep them",
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
