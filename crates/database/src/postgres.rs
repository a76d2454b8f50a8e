//! PostgreSQL as handlers.
//!
//! A batch of any size is one statement, `insert … select … from unnest($1, $2, …)`, with one array per column. It is
//! prepared once, needs one round trip, and is faster than `COPY` and than a list of values up to the usual 1000 rows
//! per commit (docs/bench-database.md, "How a batch is sent to PostgreSQL"). It can also define what happens on a
//! conflict, which `COPY` cannot. BEGIN is sent before it in the same round trip. COMMIT has a separate round trip,
//! because only then is it known that a connection lost before it has stored nothing.
//!
//! Values are sent as text, and the server parses them as values of the column's type, whatever type that is. Casts
//! never truncate a value silently: the length of a type is left to the column. A boolean of a JSON record is 1 or 0,
//! which a boolean column accepts. `_at` is a number of microseconds.
//!
//! Query results are sent in binary if the type is known here, otherwise as the server's text. A boolean is the number
//! 1 or 0, and `bytea` is encoded in base64 in JSON replies.
//!
//! With [`Sync::Normal`](crate::Sync) a commit does not wait for the server's disk (`synchronous_commit = off`): when
//! the server crashes, the last acknowledged rows may be lost.

mod connect;
mod decode;
mod driver;
mod durability;
mod fault;
mod foreign;
mod form;
mod letters;
mod link;
mod run;
mod schema;
mod stale;
#[cfg_attr(not(feature = "tls"), path = "postgres/without_tls.rs")]
mod tls;
mod wire;

use std::sync::Arc;

use crate::ack;
use crate::link::{Driver, Setup};
use crate::source::Members;
use crate::{Action, Database, DatabaseError, Job, Server, name};
use driver::{PostgresDriver, StatementText};
use link::PostgresLink;

/// The verbs that a statement may begin with. A function that a `select` calls may write.
const WRITING: [&str; 6] = ["delete", "insert", "merge", "select", "update", "with"];

/// The verbs that a query may begin with. It is run as a part of another query.
const READING: [&str; 4] = ["select", "table", "values", "with"];

/// A PostgreSQL database and the action for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostgresOptions {
    /// The server and the login.
    pub server: Server,
    /// The action for a request.
    pub job: Job,
}

/// Checks `options` as far as possible without the server.
///
/// # Errors
/// Returns an error if the acknowledgement is not a valid template, a name is invalid, or the statement is not a single
/// statement of the required kind.
pub fn factory(options: PostgresOptions) -> Result<Database, DatabaseError> {
    let PostgresOptions { server, job } = options;
    let mut members = Members::default();
    // The returned columns are known when the statement is prepared.
    ack::of(&job, &mut members, &[])?;
    let text = match &job.action {
        Action::Insert { table, columns, on_conflict } => {
            name::check_insert(table, columns)?;
            name::check_key(columns, on_conflict)?;
            StatementText::default()
        }
        Action::Statement(sql) => StatementText::of(sql, &WRITING)?,
        Action::Query(query) => StatementText::of(&query.sql, &READING)?,
    };
    let job = Arc::new(job);
    let driver = PostgresDriver { server, job: Arc::clone(&job), text };
    Ok(Database::new(Arc::new(Setup::new(driver, job))))
}

impl Driver for PostgresDriver {
    type DatabaseSession = PostgresLink;

    fn connect(&self) -> Result<PostgresLink, DatabaseError> {
        connect::connect(self)
    }

    fn name(&self) -> String {
        format!("postgres:{}", self.server)
    }
}
