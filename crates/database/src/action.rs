//! The action for a request, as the settings define it.

use std::time::Duration;

/// How the requests of a pool are processed, for any database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The action for a request.
    pub action: Action,
    /// Statements that create what is missing. They run each time a connection is opened.
    pub create: Option<String>,
    /// How a request is parsed into named values.
    pub record: Record,
    /// The reply after the commit. `{name}` is replaced by a value of the record (NULL is empty), `{_id}`, `{_client}`
    /// and `{_at}` by those of the request, `{rows}` by the number of rows that were stored or changed, `{{` and `}}`
    /// by single braces. If the statement returns columns, their names are replaced by the returned values.
    pub ack: String,
    /// What a commit waits for.
    pub sync: Sync,
    /// The maximum time that a batch waits for a lock that another connection holds. Then the batch fails.
    pub lock_timeout: Duration,
    /// How long a batch that is known not to be stored is retried, counted from its first failure; zero: no retry. For
    /// servers only: after an error of a file there is no retry.
    pub retry: Duration,
    /// Whether rows whose COMMIT was lost are sent again if their key prevents a second insert. The key does not
    /// prevent it if another program deletes stored rows.
    pub resend: bool,
    /// The table for rows that the database does not accept. It is created if it is missing.
    pub dead: Option<String>,
    /// The number of rows that a request must store or change.
    pub affected: Affected,
    /// How a record with unused names is treated.
    pub unknown_fields: UnknownFields,
    /// Whether the log contains the details of errors, which may show values of other rows. Clients never receive them.
    pub log_error_details: bool,
}

impl Job {
    /// Returns a job with this action and the defaults of the settings.
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
            lock_timeout: Duration::from_secs(5),
            retry: Duration::from_secs(10),
            resend: true,
            dead: None,
            affected: Affected::Row,
            log_error_details: false,
        }
    }
}

/// The action for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// The named values of the request become a row. The fast path.
    Insert {
        /// The name of the table.
        table: String,
        /// The columns. The names in the record are the same.
        columns: Vec<String>,
        /// What happens when the row already exists.
        on_conflict: OnConflict,
    },
    /// One statement that writes, prepared once, with `:name` parameters. The acknowledgement can use the columns that
    /// it returns, with the values of the first returned row.
    Statement(String),
    /// One statement that reads. Its rows are the reply.
    Query(Query),
}

impl Action {
    /// Returns an insert into `table` that rejects rows that already exist.
    #[must_use]
    pub fn insert<'c>(table: &str, columns: impl IntoIterator<Item = &'c str>) -> Self {
        Self::Insert {
            table: table.to_owned(),
            columns: columns.into_iter().map(str::to_owned).collect(),
            on_conflict: OnConflict::Refuse,
        }
    }
}

/// A statement that reads, and the format of its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// The statement, prepared once, with `:name` parameters.
    pub sql: String,
    /// The format of the rows.
    pub rows: Format,
    /// The maximum number of rows in one reply. A query with more rows is ended.
    pub rows_max: usize,
    /// The maximum size of one reply, in bytes. A query with a larger reply is ended.
    pub reply_max: usize,
}

impl Query {
    /// Returns a query with this statement and the defaults of the settings.
    #[must_use]
    pub fn new(sql: &str) -> Self {
        Self { sql: sql.to_owned(), rows: Format::Json, rows_max: 10_000, reply_max: 1 << 20 }
    }
}

/// The format of the rows of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One line: a JSON array with one object per row.
    Json,
    /// One line of JSON per row, including the line end.
    Lines,
    /// One line of TSV per row, including the line end, without the names.
    Tsv,
}

/// What happens when a row already exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OnConflict {
    /// The new row is rejected.
    Refuse,
    /// If a row has the same values in the columns of this key, it is kept, and the request is acknowledged. A row that
    /// conflicts on any other key is rejected.
    Nothing(Vec<String>),
}

/// The number of rows that a request must store or change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Affected {
    /// At least one. Otherwise the request is rejected and none of its effects remain.
    Row,
    /// Any number, for triggers and rules that put rows elsewhere.
    Any,
}

/// How a record with names that are neither columns, parameters nor in the acknowledgement is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownFields {
    /// The request is rejected.
    Reject,
    /// The values of these names are ignored.
    Ignore,
}

/// How a request is parsed into named values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// One JSON object, parsed by [`fields::json`].
    Json,
    /// One line of values, parsed by [`fields::tsv`]: the columns of the insert, or the parameters of the statement, in
    /// their order and without those of the request itself.
    Tsv,
    /// One line of logfmt, parsed by [`fields::logfmt`].
    Logfmt,
}

/// What a commit waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// The data is on disk: an acknowledged row survives a power failure.
    Full,
    /// The operating system or the server has the data: an acknowledged row survives a crash of the daemon. A power
    /// failure may lose the last rows.
    Normal,
}
