//! MySQL and MariaDB as handlers.
//!
//! A batch is an `insert` of many rows of values, in pieces of a few fixed sizes, so that few statements are prepared
//! and each only once. Autocommit is off, so a transaction begins with its first statement and costs one more round
//! trip, its COMMIT.
//!
//! Text is bound as text. A number is bound as an integer, or as its digits if it is not an integer; the column
//! converts them. The session is strict: a value that does not fit is rejected and never truncated. A row that already
//! exists is kept with `on duplicate key update` of a column with itself, because `insert ignore` would ignore all
//! other errors too. This update fails if the conflict is on another key than the declared one. Tables must have
//! transactions (InnoDB).
//!
//! Query results of a binary type are encoded in base64 in JSON replies, bits as a number.
//!
//! What a commit waits for is a setting of the whole server (`innodb_flush_log_at_trx_commit`), which no session can
//! choose. With [`Sync::Full`](crate::Sync) the setting is read, and reported if it is not sufficient. With
//! [`Sync::Normal`](crate::Sync) it is not read.

mod bind;
mod connect;
mod driver;
mod durability;
mod engines;
mod fault;
mod form;
mod letters;
mod link;
mod lookup;
mod schema;

use std::sync::Arc;

use sql::Dialect;

use crate::ack;
use crate::link::{Driver, Setup};
use crate::source::Members;
use crate::{Action, Database, DatabaseError, Job, Server, name};
use driver::MysqlDriver;
use link::MysqlLink;

/// The verbs that a statement may begin with. Any other statement does not write, or commits implicitly.
const WRITING: [&str; 5] = ["delete", "insert", "replace", "update", "with"];

/// The verbs that a query may begin with.
const READING: [&str; 4] = ["select", "table", "values", "with"];

/// A MySQL or MariaDB database and the action for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MysqlOptions {
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
pub fn factory(options: MysqlOptions) -> Result<Database, DatabaseError> {
    let MysqlOptions { server, job } = options;
    let mut members = Members::default();
    // The returned columns are known when the statement is prepared.
    ack::of(&job, &mut members, &[])?;
    let of = |sql: &str, verbs: &[&str]| {
        sql::check_verb(sql, verbs)?;
        Ok::<_, DatabaseError>(sql::rewrite(sql, Dialect::Question)?)
    };
    let (sql, names) = match &job.action {
        Action::Insert { table, columns, on_conflict } => {
            name::check_insert(table, columns)?;
            name::check_key(columns, on_conflict)?;
            (String::new(), columns.clone())
        }
        Action::Statement(sql) => {
            if let Some(at) = sql::word(sql, Dialect::Question, "returning") {
                let text = "`returning` is not supported here: the server does not say what a \
                            prepared statement returns";
                return Err(DatabaseError::statement(text, Some(at)));
            }
            if let Some(at) = sql::ignore(sql) {
                let text = "`ignore` is not supported here: the server would change values that a \
                            column does not take, and acknowledge them; to leave rows that are there \
                            already, write `insert = { …, on_conflict = \"nothing\", key = […] }` or \
                            `on duplicate key update id = id`";
                return Err(DatabaseError::statement(text, Some(at)));
            }
            of(sql, &WRITING)?
        }
        Action::Query(query) => of(&query.sql, &READING)?,
    };
    names.iter().try_for_each(|name| members.source(name).map(drop))?;
    let job = Arc::new(job);
    let driver = MysqlDriver { server, job: Arc::clone(&job), sql, names };
    Ok(Database::new(Arc::new(Setup::new(driver, job))))
}

impl Driver for MysqlDriver {
    type DatabaseSession = MysqlLink;

    fn connect(&self) -> Result<MysqlLink, DatabaseError> {
        connect::connect(self)
    }

    fn name(&self) -> String {
        format!("mysql:{}", self.server)
    }
}
