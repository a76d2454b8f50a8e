//! Databases as workers.

use std::path::PathBuf;
use std::time::Duration;

use crate::options::kinds::MIB;
use crate::options::{Group, Needs, Options, Setting, options, words};
use crate::values::Secret;
use crate::values::Target;

options! {
    /// A database as the worker of a pool.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Database of Database reload Restart {
        /// Database to connect to: `sqlite:PATH`, `postgres://USER@HOST:PORT/DATABASE` (`postgresql://` means the same)
        /// or `mysql://USER@HOST:PORT/DATABASE`. Append `?socket=/path` to use a Unix socket in place of host and port.
        target("database"): Target as target;
        /// Password for the server: `env:NAME`, a variable of the daemon, or `file:PATH`.
        password: Option<Secret> as secret, needs(Needs::DatabaseServer);
        /// Whether the connection to a server is encrypted.
        tls: Tls as word = "auto", instead("there is no TLS towards servers that speak HTTP"), needs(Needs::DatabaseServer);
        /// PEM file with the certificates that may sign the server's certificate. Default: the certificates of the
        /// system. The file must belong to root or to the user of the daemon, no other user may be able to write to it,
        /// and no other user may be able to change a symbolic link in its path.
        tls_ca: Option<PathBuf> as name, needs(Needs::DatabaseServer);
        /// Maximum time to connect to a server and to prepare the statements.
        connect_timeout: Duration as time = "5s", former(&["connect", "connect_wait"]), needs(Needs::DatabaseServer);
        /// The action for a request.
        action: Action => action {
            /// Inserts each request as a row. Set exactly one of `insert`, `statement` and `query`.
            insert: Option<Insert> as table;
            /// Statement that writes, prepared once, with `:name` parameters.
            statement: Option<String> as name;
            query: Query;
            /// Order in which rows are committed. Several workers that write require `any`.
            order: Order as word = "client";
        };
        /// Statement that creates the table at startup if it is missing.
        create: Option<String> as name;
        /// How a request is parsed into named values.
        input_format: InputFormat as word = "json", former(&["record"]);
        /// Reply after the commit, one line. `{name}` is replaced by a value of the record or by a column that the
        /// `statement` returns, `{rows}` by the number of rows that were stored or changed, `{{` and `}}` by single
        /// braces.
        ack: String as template = "ok";
        /// Number of rows that a request must store or change.
        affected: Affected as word = "row";
        /// How a record with unused names is treated.
        unknown_fields: UnknownFields => unknown_fields {
            /// How a record is treated whose names are neither columns, parameters nor in `ack`. Default: `reject`, or
            /// `ignore` with `query`.
            unknown_fields: Option<UnknownFields> as word;
        };
        /// What a commit waits for.
        durability: Durability as word = "full", former(&["sync"]);
        /// Maximum time to wait for a lock that another process holds.
        lock_timeout: Duration as time_or_zero = "5s", former(&["lock_wait"]);
        /// How long a row that a server is known not to have stored is retried, from the first failure or, for a row
        /// that is received later, from its receipt. This applies to the batches that workers have taken: a row in the
        /// queue waits for `queue.timeout`. To survive an outage of N seconds, set both to more than N, and
        /// `response_timeout` to more than `retry_timeout` plus `lock_timeout`. If only some rows fail, because of a
        /// trigger or the server of a foreign table for example, these rows are retried for at most one second.
        retry_timeout: Duration as time_or_off = "10s", former(&["retry"]);
        /// Whether rows whose COMMIT was lost are sent again if their `key` prevents a second insert. Set `false` if
        /// rows are deleted from the table or moved, as from a queue: a row that was stored and then deleted would be
        /// stored again. With `false` such rows end as `commit` (unknown).
        resend: bool as switch = "true";
        /// Table for rows that the database does not accept, and for requests that are not records. It is created if it
        /// is missing. Each pool needs its own table.
        dead_letter_table: Option<String> as name, former(&["dead"]);
        /// Whether the log contains the details of errors (DETAIL, HINT and CONTEXT of PostgreSQL, the whole message of
        /// MySQL). They may show values of other columns and rows. Clients get the primary message and the code in any
        /// case; `dead_letter_table` always contains the details.
        log_error_details: bool as switch = "false";
    }
}

words! {
    /// Whether the connection to a server is encrypted.
    pub enum Tls {
        /// Encrypted unless the server is this machine.
        Auto = "auto",
        /// Always encrypted, with a certificate that is valid for the name of the server.
        On = "on",
        /// Never encrypted.
        Off = "off",
    }
}

/// The action for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// The named values of the request become a row.
    Insert(Insert),
    /// A statement that writes, prepared once, with `:name` parameters.
    Statement(String),
    /// A statement that reads. Its rows are the reply.
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
        /// Statement that reads, prepared once, with `:name` parameters. Its rows are the reply.
        sql("query"): String as name;
        /// Format of the rows of a reply.
        output_format: OutputFormat as word = "json", former(&["rows"]);
        /// Maximum number of rows in the reply to a query. A query with more rows is rejected.
        rows_max: u32 as count(1, 10_000_000) = "10000";
        /// The maximum size of one reply, in bytes.
        reply_max: usize => reply_max {};
        /// Path at which an HTTP listener answers the query, like `/hits/{id}`. A segment in braces is a parameter, as
        /// the parameters after the `?` are. Default: every path.
        http_path: Option<String> as path, former(&["path"]);
    }
}

/// The row of this option is in [`super::Program`].
fn reply_max(group: &Group) -> usize {
    usize::of(group.value("reply_max"))
}

words! {
    /// The format of the rows of a query.
    pub enum OutputFormat {
        /// One line: an array with one object per row. Values of binary types are in base64.
        Json = "json",
        /// One line per row, with an object as in `json`. For clients that use frames, each row is a frame that is sent
        /// as it arrives, and a frame `\.` follows the last row.
        Lines = "lines",
        /// One line per row, with values separated by tabs and `\N` for NULL. Frames and the end are as with `lines`.
        Tsv = "tsv",
    }
}

words! {
    /// The order in which rows are committed.
    pub enum Order {
        /// The rows of each client are committed in its order.
        Client = "client",
        /// Batches may overtake each other.
        Any = "any",
    }
}

options! {
    /// An insert of a row into a table.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Insert of Any reload Restart {
        /// Name of the table.
        table: String as name = required;
        /// Columns of the row. The names in the record are the same.
        columns: Vec<String> as names = required;
        /// What happens when the row already exists.
        on_conflict: OnConflict as word = "refuse";
        /// Columns of the unique key that decides whether the row already exists. `on_conflict = "nothing"` requires
        /// it. A row that conflicts on another key is rejected.
        key: Vec<String> as names;
    }
}

words! {
    /// What happens when a row already exists.
    pub enum OnConflict {
        /// The new row is rejected.
        Refuse = "refuse",
        /// The existing row with the same `key` is kept, and the request is acknowledged.
        Nothing = "nothing",
    }
}

words! {
    /// The number of rows that a request must store or change.
    pub enum Affected {
        /// At least one. Otherwise the request is rejected: as `ignored` if an `insert` stores nothing, as `norow` if a
        /// `statement` changes none.
        Row = "row",
        /// Any number, including 0: for triggers and rules that put rows elsewhere.
        Any = "any",
    }
}

words! {
    /// How a record with unused names is treated.
    pub enum UnknownFields {
        /// The request is rejected as `record`, so that no value is lost by a misspelt name.
        Reject = "reject",
        /// The values of these names are ignored.
        Ignore = "ignore",
    }
}

words! {
    /// How a request is parsed into named values.
    pub enum InputFormat {
        /// One JSON object.
        Json = "json",
        /// Values separated by tabs, in the order of the columns or of the parameters of the statement; `\N` is NULL.
        Tsv = "tsv",
        /// `name=value` separated by blanks; a name without `=` is NULL.
        Logfmt = "logfmt",
    }
}

words! {
    /// What a commit waits for.
    pub enum Durability {
        /// The data is on disk: acknowledged rows survive a power failure. If the settings of a server do not guarantee
        /// this, a warning in the log and `check --connect` name the server. On MySQL and MariaDB it is a setting of
        /// the whole server that cannot be changed by a client.
        Full = "full",
        /// SQLite: the operating system has the data; PostgreSQL: the server has it. Acknowledged rows survive the end
        /// of the daemon; the last ones may be lost in a power failure. On MySQL and MariaDB the setting of the server
        /// applies.
        Normal = "normal",
    }
}

options! {
    /// How many requests one slot takes together. A batch is sent when a slot is free and either `rows` or `bytes` is
    /// reached or its oldest request has waited for `timeout`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Batch of Any reload Live {
        /// Maximum number of requests in a batch.
        rows: u32 as count(1, 100_000) = (program "1", database "1000");
        /// Maximum size of the request bodies in a batch, in bytes.
        bytes: usize as size(1, 256 * MIB) = "1MiB";
        /// Maximum time that a batch that is not full waits for more requests.
        timeout: Duration as time_or_zero = "0s", former(&["wait"]);
    }
}
