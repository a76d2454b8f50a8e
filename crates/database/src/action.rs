//! What is done with a request, in the words of the settings.

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
    /// One statement that writes, prepared once, with `:name` parameters. Rows that it returns
    /// are dropped.
    Statement(String),
}

/// What happens when a row is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnConflict {
    /// The row is refused.
    Refuse,
    /// The row that is there stays, and the request is acknowledged.
    Nothing,
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
