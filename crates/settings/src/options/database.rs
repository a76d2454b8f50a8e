// tidy: table
//! The options of pools of databases.

use super::declare::{MIB, any, count, size, time, time_or_zero, word};
use super::shape::{Choice, Default, Kind, Of, Opt, Short, Word};
use crate::model::*;

use Default::{Inner, Is, None as Nothing, Required};

const fn database(name: &'static str, kind: Kind, default: Default, about: &'static str) -> Opt {
    Opt::new(name, kind, default, Of::Database, about)
}

/// What only a pool of databases has.
pub(super) const DATABASE: &[Opt] = &[
    database(
        "database",
        Kind::Target,
        Nothing,
        "The database, written `sqlite:PATH`, `postgres://USER@HOST:PORT/DATABASE` or \
         `mysql://USER@HOST:PORT/DATABASE`; `?socket=/path` behind it stands for host and port.",
    ),
    database(
        "password",
        Kind::Secret,
        Nothing,
        "What proves to a server who we are: `env:NAME`, a variable of the daemon, or `file:PATH`.",
    ),
    database("tls", Kind::Word(TLS), Is("auto"), "Whether the way to a server is encrypted.")
        .instead("there is no TLS towards servers that speak HTTP"),
    database(
        "tls_ca",
        Kind::Text,
        Nothing,
        "A file of the certificates (PEM) that may stand for the server; without it those of the system.",
    ),
    database(
        "connect_wait",
        time(),
        Is("5s"),
        "How long it may take to connect to a server and to prepare what is needed there.",
    ),
    database(
        "insert",
        Kind::Group(INSERT, Short::None),
        Nothing,
        "The row that a request becomes; either this, `statement` or `query`.",
    ),
    database(
        "statement",
        Kind::Text,
        Nothing,
        "Any statement that writes, prepared once, with `:name` parameters.",
    ),
    database(
        "query",
        Kind::Text,
        Nothing,
        "Any statement that reads, prepared once, with `:name` parameters; its rows are the reply.",
    ),
    database("rows", Kind::Word(ROWS), Is("json"), "How the rows of a query are written."),
    database(
        "rows_max",
        count(1, 10_000_000),
        Is("10000"),
        "Rows of the reply to a query; with more it is refused.",
    ),
    database(
        "path",
        Kind::Text,
        Nothing,
        "The path at which a listener of HTTP answers a query, like `/hits/{id}`; a segment in braces \
         is a parameter, as those behind the `?` are. Every path when none is given.",
    ),
    database(
        "order",
        Kind::Word(ORDER),
        Is("client"),
        "In which order rows are committed; several workers that write need `any`.",
    ),
    database("create", Kind::Text, Nothing, "Makes a missing table at start."),
    database("record", Kind::Word(RECORD), Is("json"), "How a request is read into named values."),
    database(
        "ack",
        Kind::Template,
        Is("ok"),
        "The reply after the commit, one line; `{name}` stands for a value of the record or for a column that the `statement` returns, \
         `{rows}` for the number of rows that were stored or changed, `{{` and `}}` for the braces themselves.",
    ),
    database(
        "affected",
        Kind::Word(AFFECTED),
        Is("row"),
        "How many rows a request has to store or change.",
    ),
    database(
        "unknown_fields",
        Kind::Word(UNKNOWN_FIELDS),
        Nothing,
        "What becomes of a record with names that are neither columns, parameters nor in `ack`. `reject` unless it is given, for a `query` `ignore`.",
    ),
    database("sync", Kind::Word(SYNC), Is("full"), "What a commit waits for."),
    database(
        "lock_wait",
        time_or_zero(),
        Is("5s"),
        "How long to wait for a lock that another process holds.",
    ),
    database(
        "retry",
        time_or_zero(),
        Is("10s"),
        "How long a row that a server is known not to have stored is tried again, from the first failure or, for a row that is received later, from its receipt; `0s`: not at all. An error that \
         only some rows meet, as of a trigger or of the server of a foreign table, ends those rows after a second at most.",
    ),
    database(
        "resend",
        Kind::Switch,
        Is("true"),
        "Whether rows whose COMMIT was lost are sent again where their `key` keeps them from being stored twice. Set `false` if rows are deleted from the table or moved, \
         as from a queue: a row that was stored and then deleted would be stored once more. With `false` such rows end as `commit` (unknown).",
    ),
    database(
        "dead",
        Kind::Text,
        Nothing,
        "A table that keeps the rows which the database does not accept; it is made where it is missing. Each pool needs a table of its own.",
    ),
    database(
        "log_error_details",
        Kind::Switch,
        Is("false"),
        "Whether the log gets the details of errors (PostgreSQL's DETAIL, HINT and CONTEXT, the whole message of MySQL): they may show \
         values of other columns and rows. Clients get the primary message and the code in any case; the table of `dead` always has them.",
    ),
    database(
        "batch",
        Kind::Group(BATCH, Short::None),
        Inner,
        "How many requests are committed at once. A batch leaves when a worker is free and it is \
         full or old enough.",
    )
    .instead("a program takes one request at a time; `pipeline` sends it more before it answers"),
];

const BATCH: &[Opt] = &[
    any("rows", count(1, 100_000), Default::Of { program: "1", database: "1000" }, "Requests."),
    any("bytes", size(256 * MIB), Is("1MiB"), "Bytes of their bodies."),
    any(
        "wait",
        time_or_zero(),
        Is("0s"),
        "How long a batch that is not full waits for more; `0s`: not at all.",
    ),
];

const INSERT: &[Opt] = &[
    any("table", Kind::Text, Required, "The table."),
    any("columns", Kind::Names, Required, "Its columns, which are also the names in the record."),
    any(
        "on_conflict",
        Kind::Word(ON_CONFLICT),
        Is("refuse"),
        "What happens when the row is there already.",
    ),
    any(
        "key",
        Kind::Names,
        Nothing,
        "The columns of the unique key that decides whether the row is there already; `on_conflict = \"nothing\"` needs it. \
         A conflict on another key refuses the row.",
    ),
];

const RECORD: &[Word] = &[
    word("json", Choice::Record(Record::Json), "One JSON object."),
    word(
        "tsv",
        Choice::Record(Record::Tsv),
        "Values with tabs between, in the order of the columns or of the parameters of the statement; `\\N` is NULL.",
    ),
    word(
        "logfmt",
        Choice::Record(Record::Logfmt),
        "`name=value` with blanks between; a name alone is NULL.",
    ),
];

const UNKNOWN_FIELDS: &[Word] = &[
    word(
        "reject",
        Choice::UnknownFields(UnknownFields::Reject),
        "The request is refused as `record`, so that no value is lost by a misspelt name.",
    ),
    word("ignore", Choice::UnknownFields(UnknownFields::Ignore), "Their values are left out."),
];

const SYNC: &[Word] = &[
    word(
        "full",
        Choice::Sync(Sync::Full),
        "The disk has it: nothing acknowledged is lost when power fails. A server whose own settings do not see to \
         that is named by a warning in the log and by `check --connect`; on MySQL and MariaDB, which choose it for the whole server, no more can be done from here.",
    ),
    word(
        "normal",
        Choice::Sync(Sync::Normal),
        "SQLite: the operating system has it; PostgreSQL: the server has it. Nothing acknowledged is lost when the daemon dies, the last of it may be when power fails. \
         On MySQL and MariaDB whatever the server is set to.",
    ),
];

const ROWS: &[Word] = &[
    word(
        "json",
        Choice::RowFormat(RowFormat::Json),
        "One line: an array with an object a row; values of binary types are in base64.",
    ),
    word(
        "lines",
        Choice::RowFormat(RowFormat::Lines),
        "A line with an object for each row, as in `json`; where clients speak in frames a frame each, sent on as they come, \
         and `\\.` behind the last.",
    ),
    word(
        "tsv",
        Choice::RowFormat(RowFormat::Tsv),
        "A line of values with tabs between for each row, `\\N` for NULL; framed and ended as `lines` is.",
    ),
];

const ORDER: &[Word] = &[
    word("client", Choice::Order(Order::Client), "The rows of one client in its order."),
    word("any", Choice::Order(Order::Any), "Batches overtake each other."),
];

const TLS: &[Word] = &[
    word("auto", Choice::Tls(Tls::Auto), "Unless the server is this machine."),
    word("on", Choice::Tls(Tls::On), "Always, with a certificate that is valid for its name."),
    word("off", Choice::Tls(Tls::Off), "Never."),
];

const ON_CONFLICT: &[Word] = &[
    word("refuse", Choice::OnConflict(OnConflict::Refuse), "The row is refused."),
    word(
        "nothing",
        Choice::OnConflict(OnConflict::Nothing),
        "The row with the same `key` stays, and the request is acknowledged.",
    ),
];

const AFFECTED: &[Word] = &[
    word(
        "row",
        Choice::Affected(Affected::Row),
        "At least one, or the request is refused: as `ignored` where an `insert` stores nothing, as `norow` where a `statement` changes none.",
    ),
    word(
        "any",
        Choice::Affected(Affected::Any),
        "Any number, also none: for triggers and rules that put rows elsewhere.",
    ),
];
