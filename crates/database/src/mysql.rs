//! MySQL and MariaDB as handlers.
//!
//! A batch is an `insert` of many rows of values, in pieces of a few fixed sizes, so that few
//! statements are prepared and each only once. A session commits nothing by itself, so a transaction
//! begins with its first statement and costs one round trip more, its COMMIT.
//!
//! Text is bound as text and a number as an integer, or as its digits where it is none; the column
//! makes of them what it is. The session is strict: what does not fit is refused and never cut to
//! size. A row that is there already stays by `on duplicate key update` of a column with itself, as
//! `insert ignore` would ignore all other errors too; that update fails where the conflict is on
//! another key than the declared one. Tables must have transactions (InnoDB).
//!
//! What a query gives of a binary type leaves in base64 where the reply is JSON, bits as a number.
//!
//! What a commit waits for is a matter of the whole server (`innodb_flush_log_at_trx_commit`), which no
//! session can choose. Under [`Sync::Full`](crate::Sync) it is asked for, and said where it is not
//! enough; [`Sync::Normal`](crate::Sync) asks for nothing.

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

/// What a statement may begin with. Anything else does not write, or commits by itself.
const WRITING: [&str; 5] = ["delete", "insert", "replace", "update", "with"];

/// What a query may begin with.
const READING: [&str; 4] = ["select", "table", "values", "with"];

/// A database of MySQL or MariaDB and what is done with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MysqlOptions {
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
pub fn factory(options: MysqlOptions) -> Result<Database, DatabaseError> {
    let MysqlOptions { server, job } = options;
    let mut members = Members::default();
    // What the statement returns is known when it is prepared.
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
    type Link = MysqlLink;

    fn connect(&self) -> Result<MysqlLink, DatabaseError> {
        connect::connect(self)
    }

    fn name(&self) -> String {
        format!("mysql:{}", self.server)
    }
}
