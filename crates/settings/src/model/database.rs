//! Databases as workers, as they are configured.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::secret::Secret;

/// A database as the worker of a pool.
#[derive(Clone, Debug, PartialEq)]
pub struct Database {
    /// Which database.
    pub target: Target,
    /// What is done with a request.
    pub action: Action,
    /// Makes a missing table at start, if given.
    pub create: Option<String>,
    /// How a request is read into named values.
    pub record: Record,
    /// The reply after the commit; `{name}` stands for a value of the record.
    pub ack: String,
    /// What a commit waits for.
    pub sync: Sync,
    /// How long to wait for a lock that another process holds.
    pub lock_wait: Duration,
    /// How long a batch that is known not to be stored is tried again.
    pub retry: Duration,
    /// Whether rows whose COMMIT was lost are sent again where they have a key.
    pub resend: bool,
    /// The table that keeps the rows which the database does not accept, if there is one.
    pub dead: Option<String>,
    /// How many rows a request has to store or change.
    pub affected: Affected,
    /// What becomes of a record with names that nothing takes.
    pub unknown_fields: UnknownFields,
    /// Whether the log gets the details of errors, which may show values of other rows.
    pub log_error_details: bool,
    /// What proves to a server who we are.
    pub password: Option<Secret>,
    /// Whether the way to a server is encrypted.
    pub tls: Tls,
    /// The certificates that may stand for a server; those of the system when none are given.
    pub tls_ca: Option<PathBuf>,
    /// How long it may take to connect to a server.
    pub connect_wait: Duration,
}

/// Which database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// An SQLite file, written `sqlite:PATH`.
    Sqlite(PathBuf),
    /// A database of PostgreSQL, written `postgres://USER@HOST:PORT/DATABASE`.
    Postgres(ServerTarget),
    /// A database of MySQL or MariaDB, written `mysql://USER@HOST:PORT/DATABASE`.
    Mysql(ServerTarget),
}

/// A database on a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerTarget {
    /// Where the server is.
    pub host: DatabaseHost,
    /// Who we are there.
    pub user: String,
    /// Which of its databases.
    pub database: String,
}

/// Where a server of a database is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatabaseHost {
    /// A name or an IP address, and a port.
    Internet(String, u16),
    /// A socket in the file system, written `?socket=/path`: for PostgreSQL the folder that it lies
    /// in, with the port that is a part of its name.
    Socket(PathBuf, u16),
}

impl DatabaseHost {
    /// Whether it is this machine, so that nobody else sees what is sent there.
    #[must_use]
    pub fn is_here(&self) -> bool {
        match self {
            Self::Internet(host, _) => {
                host == "localhost"
                    || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
            }
            Self::Socket(..) => true,
        }
    }
}

/// Whether the way to a server is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tls {
    /// Unless the server is this machine.
    Auto,
    /// Always, with a certificate that is valid for its name.
    On,
    /// Never.
    Off,
}

/// What is done with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Its named values become a row.
    Insert(Insert),
    /// Any statement, prepared once, with `:name` parameters.
    Statement(String),
    /// A statement that reads; its rows are the reply.
    Query(Query),
}

/// A statement that reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// The statement, prepared once, with `:name` parameters.
    pub sql: String,
    /// How its rows are written.
    pub rows: RowFormat,
    /// Rows of one reply at most.
    pub rows_max: u32,
    /// Bytes of one reply at most.
    pub reply_max: usize,
    /// The path that it answers over HTTP, `{name}` for a parameter; every one when none is given.
    pub path: Option<String>,
}

/// How the rows of a query are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowFormat {
    /// One line with a JSON array.
    Json,
    /// A line of JSON for each row, with line feeds between them.
    Lines,
    /// A line of TSV for each row, with line feeds between them.
    Tsv,
}

/// In which order rows are committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Those of one client in its order.
    Client,
    /// In any.
    Any,
}

/// A row for a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Insert {
    /// The table.
    pub table: String,
    /// Its columns, which are also the names in the record.
    pub columns: Vec<String>,
    /// What happens when the row is there already.
    pub on_conflict: OnConflict,
    /// The columns of the key that decides whether the row is there already; empty where it is refused.
    pub key: Vec<String>,
}

/// What happens when a row is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnConflict {
    /// The row is refused.
    Refuse,
    /// The row that is there stays, and the request is acknowledged.
    Nothing,
}

/// How many rows a request has to store or change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Affected {
    /// At least one.
    Row,
    /// Any number.
    Any,
}

/// What becomes of a record with names that nothing takes.
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
    /// One JSON object.
    Json,
    /// Values with tabs between, in the order of the columns or parameters.
    Tsv,
    /// `name=value` with blanks between.
    Logfmt,
}

/// What a commit waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// The disk has it: nothing acknowledged is lost when power fails.
    Full,
    /// The operating system has it: nothing acknowledged is lost when the daemon dies.
    Normal,
}

/// How many requests one slot takes at once. A batch leaves when a slot is free and `rows` or
/// `bytes` are reached or its oldest request waited for `wait`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Requests; 1 for workers that take one at a time.
    pub rows: u32,
    /// Bytes of their bodies.
    pub bytes: usize,
    /// How long a batch that is not full waits for more; zero: not at all.
    pub wait: Duration,
}
