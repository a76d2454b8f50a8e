//! PostgreSQL as handlers.
//!
//! A batch is one statement whatever its size, `insert … select … from unnest($1, $2, …)`, with one
//! array a column: prepared once, one round trip, and faster than `COPY` and than a list of values up to
//! the usual 1000 rows a commit (docs/bench-database.md, "How a batch is sent to PostgreSQL"); and it
//! can say what happens on a conflict, which `COPY` cannot. BEGIN goes ahead of it in the same round trip; COMMIT has one of its own, because
//! only so it is known that a connection lost before it has stored nothing.
//!
//! Values travel as text and the server reads them as values of the column's type, whichever that
//! is. Casts never shorten a value silently: the length of a type is left to the column. A boolean of
//! a JSON record is 1 or 0, which a boolean column takes. `_at` is a number of microseconds.
//!
//! What a query gives comes in binary where we know the type, and as the server's text elsewhere;
//! a boolean is the number 1 or 0, and `bytea` leaves in base64 where the reply is JSON.
//!
//! Under [`Sync::Normal`](crate::Sync) a commit does not wait for the server's disk
//! (`synchronous_commit = off`): when the server crashes, the last of the acknowledged rows may be
//! lost.

mod array;
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

/// What a statement may begin with. A function that a `select` calls may write.
const WRITING: [&str; 6] = ["delete", "insert", "merge", "select", "update", "with"];

/// What a query may begin with: it is run as a part of another one.
const READING: [&str; 4] = ["select", "table", "values", "with"];

/// A database of PostgreSQL and what is done with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostgresOptions {
    /// Which, and how to get in.
    pub server: Server,
    /// What is done with a request.
    pub job: Job,
}

/// Checks `options` as far as that is possible without the server.
///
/// # Errors
/// When the acknowledgement is no template, a name cannot be one, or the statement is not one
/// statement that does what it is there for.
pub fn factory(options: PostgresOptions) -> Result<Database, DatabaseError> {
    let PostgresOptions { server, job } = options;
    let mut members = Members::default();
    // What the statement returns is known when it is prepared.
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
    type Link = PostgresLink;

    fn connect(&self) -> Result<PostgresLink, DatabaseError> {
        connect::connect(self)
    }

    fn name(&self) -> String {
        format!("postgres:{}", self.server)
    }
}
