//! What is done with a request, in the words of the settings.

use std::time::Duration;

#[cfg(feature = "server")]
use sql::PlainWrite;

/// What is done with the requests of a pool, whichever database it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// What is done with a request.
    pub action: Action,
    /// Statements that make what is missing, run each time a connection is opened.
    pub create: Option<String>,
    /// How a request is read into named values.
    pub record: Record,
    /// The reply after the commit. `{name}` stands for a value of the record (NULL is empty),
    /// `{_id}`, `{_client}` and `{_at}` for those of the request, `{rows}` for the number of rows that
    /// were stored or changed, `{{` and `}}` for braces. Of a statement that returns columns, their
    /// names stand for those.
    pub ack: String,
    /// What a commit waits for.
    pub sync: Sync,
    /// How long a batch waits for a lock that another connection holds, before it fails.
    pub lock_wait: Duration,
    /// How long a batch that is known not to be stored is tried again, counted from its first
    /// failure; zero: not at all. For servers: a file that fails is not tried again.
    pub retry: Duration,
    /// Whether rows whose COMMIT was lost are sent again where their key keeps them from being stored
    /// twice. It does not where somebody else deletes stored rows.
    pub resend: bool,
    /// The table that keeps the rows which the database does not accept. It is made where it is
    /// missing.
    pub dead: Option<String>,
    /// How many rows a request has to store or change.
    pub affected: Affected,
    /// What becomes of a record with names that nothing takes.
    pub unknown_fields: UnknownFields,
    /// Whether the log gets the details of errors, which may show values of other rows. Clients never
    /// get them.
    pub log_error_details: bool,
}

impl Job {
    /// This action, with everything else as it is where the settings say nothing.
    #[must_use]
    pub fn new(action: Action) -> Self {
        let unknown_fields = match action {
            Action::Query(_) => UnknownFields::Ignore,
            Action::Insert { .. } | Action::Statement(_) => UnknownFields::Reject,
        };
        Self {
            action,
            unknown_fields,
            create: None,
            record: Record::Json,
            ack: "ok".to_owned(),
            sync: Sync::Full,
            lock_wait: Duration::from_secs(5),
            retry: Duration::from_secs(10),
            resend: true,
            dead: None,
            affected: Affected::Row,
            log_error_details: false,
        }
    }
}

/// What is done with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Its named values become a row. The fast path.
    Insert {
        /// The table, a plain name.
        table: String,
        /// Its columns, which are also the names in the record.
        columns: Vec<String>,
        /// What happens when the row is there already.
        on_conflict: OnConflict,
    },
    /// One statement that writes, prepared once, with `:name` parameters. The columns that it
    /// returns are available to the acknowledgement, of its first row.
    Statement(String),
    /// One statement that reads; the rows are the reply.
    Query(Query),
}

impl Action {
    /// An insert into `table` that refuses rows which are there already.
    #[must_use]
    pub fn insert<'c>(table: &str, columns: impl IntoIterator<Item = &'c str>) -> Self {
        Self::Insert {
            table: table.to_owned(),
            columns: columns.into_iter().map(str::to_owned).collect(),
            on_conflict: OnConflict::Refuse,
        }
    }

    /// The table that it writes to and its columns that get values of records. None where they are not known.
    #[cfg(feature = "server")]
    pub(crate) fn target(&self) -> Option<(String, Vec<String>)> {
        let (table, columns) = match self {
            Self::Insert { table, columns, .. } => (table.clone(), columns.clone()),
            Self::Statement(sql) => {
                let PlainWrite { table, given } = PlainWrite::of(sql)?;
                (table, given.into_iter().map(|given| given.column).collect())
            }
            Self::Query(_) => return None,
        };
        (!columns.is_empty()).then_some((table, columns))
    }
}

/// A statement that reads, and how its rows leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// The statement, prepared once, with `:name` parameters.
    pub sql: String,
    /// How the rows are written.
    pub rows: Format,
    /// Rows of one reply at most; more end the query.
    pub rows_max: usize,
    /// Bytes of one reply at most; more end the query.
    pub reply_max: usize,
}

impl Query {
    /// This statement, with everything else as it is where the settings say nothing.
    #[must_use]
    pub fn new(sql: &str) -> Self {
        Self { sql: sql.to_owned(), rows: Format::Json, rows_max: 10_000, reply_max: 1 << 20 }
    }
}

/// How the rows of a query are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One line: a JSON array with an object for each row.
    Json,
    /// A line of JSON for each row, with its end.
    Lines,
    /// A line of TSV for each row, with its end and without the names.
    Tsv,
}

/// What happens when a row is there already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OnConflict {
    /// The row is refused.
    Refuse,
    /// Where a row has the same values in the columns of this key, it stays, and the request is
    /// acknowledged. A conflict on any other key refuses the row.
    Nothing(Vec<String>),
}

/// How many rows a request has to store or change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Affected {
    /// At least one, or the request is refused and nothing of it stays.
    Row,
    /// Any number, for triggers and rules that put rows elsewhere.
    Any,
}

/// What becomes of a record with names that are neither columns, parameters nor in the acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownFields {
    /// The request is refused.
    Reject,
    /// Their values are left out.
    Ignore,
}

/// How a request is read into named values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// One JSON object, read as [`fields::json`] says.
    Json,
    /// One line of values, read as [`fields::tsv`] says: the columns of the insert, or the
    /// parameters of the statement, in their order and without those of the request itself.
    Tsv,
    /// One line of logfmt, read as [`fields::logfmt`] says.
    Logfmt,
}

/// What a commit waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// The disk has it: an acknowledged row survives a power cut.
    Full,
    /// The system has it: an acknowledged row survives a crash of ours, and a power cut may lose
    /// the last ones.
    Normal,
}
