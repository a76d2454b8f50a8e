//! Databases as workers, as they are configured.

use std::path::PathBuf;
use std::time::Duration;

use crate::options::kinds::MIB;
use crate::options::{Group, Options, Setting, options, words};
use crate::values::Secret;
use crate::values::Target;

options! {
    /// A database as the worker of a pool.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Database of Database reload Restart {
        /// The database, written `sqlite:PATH`, `postgres://USER@HOST:PORT/DATABASE` or
        /// `mysql://USER@HOST:PORT/DATABASE`; `?socket=/path` behind it stands for host and port.
        target("database"): Target as target;
        /// What proves to a server who we are: `env:NAME`, a variable of the daemon, or `file:PATH`.
        password: Option<Secret> as secret;
        /// Whether the way to a server is encrypted.
        tls: Tls as word = "auto", instead("there is no TLS towards servers that speak HTTP");
        /// A file of the certificates (PEM) that may stand for the server; without it those of the system. It must
        /// belong to root or to the user of the daemon, nobody else may be able to write it, and no other user may be
        /// able to change a symbolic link in its path.
        tls_ca: Option<PathBuf> as name;
        /// How long it may take to connect to a server and to prepare what is needed there.
        connect_timeout: Duration as time = "5s";
        /// What is done with a request.
        action: Action => action {
            /// The row that a request becomes; either this, `statement` or `query`.
            insert: Option<Insert> as table;
            /// Any statement that writes, prepared once, with `:name` parameters.
            statement: Option<String> as name;
            query: Query;
            /// In which order rows are committed; several workers that write need `any`.
            order: Order as word = "client";
        };
        /// Makes a missing table at start.
        create: Option<String> as name;
        /// How a request is read into named values.
        input_format: InputFormat as word = "json";
        /// The reply after the commit, one line; `{name}` stands for a value of the record or for a column that the
        /// `statement` returns, `{rows}` for the number of rows that were stored or changed, `{{` and `}}` for the
        /// braces themselves.
        ack: String as template = "ok";
        /// How many rows a request has to store or change.
        affected: Affected as word = "row";
        /// What becomes of a record with names that nothing takes.
        unknown_fields: UnknownFields => unknown_fields {
            /// What becomes of a record with names that are neither columns, parameters nor in `ack`. `reject` unless
            /// it is given, for a `query` `ignore`.
            unknown_fields: Option<UnknownFields> as word;
        };
        /// What a commit waits for.
        durability: Durability as word = "full";
        /// How long to wait for a lock that another process holds.
        lock_timeout: Duration as time_or_zero = "5s";
        /// How long a row that a server is known not to have stored is tried again, from the first failure or, for a
        /// row that is received later, from its receipt. An error that only some rows meet, as of a
        /// trigger or of the server of a foreign table, ends those rows after a second at most.
        retry_timeout: Duration as time_or_off = "10s";
        /// Whether rows whose COMMIT was lost are sent again where their `key` keeps them from being stored twice.
        /// Set `false` if rows are deleted from the table or moved, as from a queue: a row that was stored and then
        /// deleted would be stored once more. With `false` such rows end as `commit` (unknown).
        resend: bool as switch = "true";
        /// A table that keeps the rows which the database does not accept; it is made where it is missing. Each pool
        /// needs a table of its own.
        dead_letter_table: Option<String> as name;
        /// Whether the log gets the details of errors (PostgreSQL's DETAIL, HINT and CONTEXT, the whole message of
        /// MySQL): they may show values of other columns and rows. Clients get the primary message and the code in
        /// any case; `dead_letter_table` always has them.
        log_error_details: bool as switch = "false";
    }
}

words! {
    /// Whether the way to a server is encrypted.
    pub enum Tls {
        /// Unless the server is this machine.
        Auto = "auto",
        /// Always, with a certificate that is valid for its name.
        On = "on",
        /// Never.
        Off = "off",
    }
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

fn action(group: &Group) -> Action {
    match (group.get("insert"), group.find("query")) {
        (Some(insert), _) => Action::Insert(insert),
        (None, Some(_)) => Action::Query(Query::fill(group)),
        (None, None) => Action::Statement(String::of(group.value("statement"))),
    }
}

fn unknown_fields(group: &Group) -> UnknownFields {
    let query = group.find("query").is_some();
    let default = if query { UnknownFields::Ignore } else { UnknownFields::Reject };
    group.get("unknown_fields").unwrap_or(default)
}

options! {
    /// A statement that reads.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Query of Database reload Restart {
        /// Any statement that reads, prepared once, with `:name` parameters; its rows are the reply.
        sql("query"): String as name;
        /// How the rows of a query are written.
        output_format: OutputFormat as word = "json";
        /// Rows of the reply to a query; with more it is refused.
        rows_max: u32 as count(1, 10_000_000) = "10000";
        /// Bytes of one reply at most.
        reply_max: usize => reply_max {};
        /// The path at which a listener of HTTP answers a query, like `/hits/{id}`; a segment in braces is a
        /// parameter, as those behind the `?` are. Every path when none is given.
        http_path: Option<String> as path;
    }
}

/// It has its row in [`super::Program`].
fn reply_max(group: &Group) -> usize {
    usize::of(group.value("reply_max"))
}

words! {
    /// How the rows of a query are written.
    pub enum OutputFormat {
        /// One line: an array with an object a row; values of binary types are in base64.
        Json = "json",
        /// A line with an object for each row, as in `json`; where clients speak in frames a frame each, sent on as
        /// they come, and `\.` behind the last.
        Lines = "lines",
        /// A line of values with tabs between for each row, `\N` for NULL; framed and ended as `lines` is.
        Tsv = "tsv",
    }
}

words! {
    /// In which order rows are committed.
    pub enum Order {
        /// The rows of one client in its order.
        Client = "client",
        /// Batches overtake each other.
        Any = "any",
    }
}

options! {
    /// A row for a table.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Insert of Any reload Restart {
        /// The table.
        table: String as name = required;
        /// Its columns, which are also the names in the record.
        columns: Vec<String> as names = required;
        /// What happens when the row is there already.
        on_conflict: OnConflict as word = "refuse";
        /// The columns of the unique key that decides whether the row is there already; `on_conflict = "nothing"`
        /// needs it. A conflict on another key refuses the row.
        key: Vec<String> as names;
    }
}

words! {
    /// What happens when a row is there already.
    pub enum OnConflict {
        /// The row is refused.
        Refuse = "refuse",
        /// The row with the same `key` stays, and the request is acknowledged.
        Nothing = "nothing",
    }
}

words! {
    /// How many rows a request has to store or change.
    pub enum Affected {
        /// At least one, or the request is refused: as `ignored` where an `insert` stores nothing, as `norow` where a
        /// `statement` changes none.
        Row = "row",
        /// Any number, also none: for triggers and rules that put rows elsewhere.
        Any = "any",
    }
}

words! {
    /// What becomes of a record with names that nothing takes.
    pub enum UnknownFields {
        /// The request is refused as `record`, so that no value is lost by a misspelt name.
        Reject = "reject",
        /// Their values are left out.
        Ignore = "ignore",
    }
}

words! {
    /// How a request is read into named values.
    pub enum InputFormat {
        /// One JSON object.
        Json = "json",
        /// Values with tabs between, in the order of the columns or of the parameters of the statement; `\N` is NULL.
        Tsv = "tsv",
        /// `name=value` with blanks between; a name alone is NULL.
        Logfmt = "logfmt",
    }
}

words! {
    /// What a commit waits for.
    pub enum Durability {
        /// The disk has it: nothing acknowledged is lost when power fails. A server whose own settings do not see to
        /// that is named by a warning in the log and by `check --connect`; on MySQL and MariaDB, which choose it for
        /// the whole server, no more can be done from here.
        Full = "full",
        /// SQLite: the operating system has it; PostgreSQL: the server has it. Nothing acknowledged is lost when the
        /// daemon dies, the last of it may be when power fails. On MySQL and MariaDB whatever the server is set to.
        Normal = "normal",
    }
}

options! {
    /// How many requests one slot takes at once. A batch leaves when a slot is free and `rows` or
    /// `bytes` are reached or its oldest request waited for `timeout`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Batch of Any reload Live {
        /// Requests.
        rows: u32 as count(1, 100_000) = (program "1", database "1000");
        /// Bytes of their bodies.
        bytes: usize as size(1, 256 * MIB) = "1MiB";
        /// How long a batch that is not full waits for more requests.
        timeout: Duration as time_or_zero = "0s";
    }
}
