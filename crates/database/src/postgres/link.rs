//! A connection and its operations.

use std::future::Future;
use std::ops::Range;
use std::pin::pin;
use std::time::Duration;

use exchange::{Batch, Stop};
use fields::{Case, Schema};
use futures_util::StreamExt;
use futures_util::future::join;
use tokio::runtime::Runtime;
use tokio_postgres::{Client, Column, Error, NoTls, Statement};

use super::decode::{self, Decode};
use super::fault::RolledBack;
use super::form::Form;
use super::run::{
    Refuse, fill, insert_one, parameters, run_arrays, run_rows, run_statement, texts,
};
use super::stale::Prepared;
use super::tls::Rustls;
use super::wire::Text;
use super::{fault, foreign, letters};
use crate::digits::Digits;
use crate::effects::Effects;
use crate::fault::{Blame, Fault};
use crate::letter::{Letter, StoredLetter};
use crate::link::{Commit, DatabaseSession, Opened, Sink};
use crate::rows::Rows;
use crate::server::{stoppable, until};
use sql::Array;

/// The statement for a batch or a request.
#[derive(Debug)]
pub(super) enum Run {
    /// An insert of any number of rows, with one array per column.
    Arrays {
        insert: Statement,
        /// Counts the rows whose key is not in the table, if existing rows may be kept.
        absent: Option<Statement>,
        /// Each row is inserted separately: a rule may store several rows for one, and none for another.
        by_row: bool,
    },
    /// One execution for each row.
    Rows {
        statement: Statement,
        /// How the returned values are decoded, if the acknowledgements need them.
        plan: Vec<Decode>,
    },
    /// One query for each request.
    Query {
        prepared: Statement,
        /// The names of its columns.
        names: Vec<String>,
        /// How its columns are decoded.
        plan: Vec<Decode>,
    },
}

/// A session on the server and its statement.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) client: Client,
    pub(super) tls: Option<Rustls>,
    pub(super) run: Run,
    pub(super) prepared: Prepared,
    pub(super) opened: Opened,
    /// The database had a server of foreign tables when the session began.
    pub(super) has_foreign: bool,
    /// The form of the columns that the values are checked against.
    pub(super) form: Option<Form>,
}

/// An open session, the runtime of its connection, and the state of its transaction.
#[derive(Debug)]
pub(super) struct PostgresLink {
    runtime: Runtime,
    session: Session,
    /// The columns had changed when the open transaction wrote to them.
    changed: bool,
    /// Statements that the server must run before the next one. They are sent together with it.
    ahead: String,
    /// A transaction is open, or is opened by the statements ahead.
    open: bool,
    /// How long the next transactions wait for a lock, if that is less than the settings allow.
    lock_limit: Option<Duration>,
    /// One array for each column.
    arrays: Vec<Array>,
}

impl PostgresLink {
    pub(super) fn new(runtime: Runtime, session: Session) -> Self {
        let (ahead, arrays) = (String::new(), Vec::new());
        Self { runtime, session, changed: false, ahead, open: false, lock_limit: None, arrays }
    }

    /// Whether a transaction of the daemon may have written to the server of a foreign table: there was one when the
    /// connection was opened, or there is one now.
    fn may_write_elsewhere(&self, stop: &Stop) -> bool {
        let asked =
            || until(&self.runtime, stop, foreign::is_there(&self.session.client), async {});
        self.session.has_foreign || !matches!(asked(), Some(Ok(false)))
    }
}

/// Sends the statements `ahead` together with `work`, and waits for both.
fn with_ahead<T>(
    runtime: &Runtime,
    client: &Client,
    tls: Option<&Rustls>,
    ahead: &str,
    stop: &Stop,
    work: impl Future<Output = Result<T, Fault>>,
) -> Result<T, Fault> {
    let both = async {
        if ahead.is_empty() {
            return work.await;
        }
        let begins = ahead.starts_with(BEGIN);
        let (ahead, work) = join(client.batch_execute(ahead), work).await;
        let Err(error) = ahead else { return work };
        let fault = fault::of(&error).into_internal();
        if !begins || !fault::of(&error).answered {
            return Err(fault);
        }
        // The statements after BEGIN ran outside the transaction and could only read, or ran in a failed transaction. A
        // pooler in between may have removed the setting that ensures this.
        Err(match work {
            Err(rows) if &*rows.code == READ_ONLY => {
                Fault { rows: Vec::new(), ..rows }.answered(false)
            }
            Err(rows) if &*rows.code == IN_FAILED_TRANSACTION => fault,
            _ => kept(fault),
        })
    };
    stoppable(runtime, stop, both, cancel(client, tls))
}

/// Runs `work` and records whether its columns have changed, in the same round trip.
async fn described(
    client: &Client,
    form: Option<&mut Form>,
    changed: &mut bool,
    work: impl Future<Output = Result<(), Fault>>,
) -> Result<(), Fault> {
    let Some(form) = form else { return work.await };
    // In this order, so that the rows have locked their table.
    let (work, now) = join(work, form.has_changed(client)).await;
    work?;
    *changed |= now?;
    Ok(())
}

/// Begins a transaction. Outside a transaction, the session can only read: if a connection is lost before BEGIN is
/// answered, no rows were stored without a transaction.
///
/// If the operator has made the server, the database or the role read-only, the transaction is read-only too: the value
/// that RESET would give is the operator's value, and a transaction may always become read-only.
const BEGIN: &str = "begin read write; \
    set local default_transaction_read_only = default; \
    select set_config('transaction_read_only', current_setting('default_transaction_read_only'), true);";

/// The state of a statement that writes in a read-only transaction.
const READ_ONLY: &str = "25006";

/// The state of a statement in a failed transaction: the transaction was open.
const IN_FAILED_TRANSACTION: &str = "25P02";

/// Returns the fault of a BEGIN after which rows may have been stored.
fn kept(fault: Fault) -> Fault {
    let text = format!("BEGIN failed and the rows may be stored: {}", fault.text);
    Fault { blame: Blame::Broken, again: false, text, kept: true, ..fault }
}

/// Asks the server to end the running statement of this session.
async fn cancel(client: &Client, tls: Option<&Rustls>) {
    let token = client.cancel_token();
    let asked = match tls {
        #[cfg(feature = "tls")]
        Some(tls) => token.cancel_query(tls.clone()).await,
        #[cfg(not(feature = "tls"))]
        Some(tls) => match *tls {},
        None => token.cancel_query(NoTls).await,
    };
    if let Err(error) = asked {
        tracing::debug!(%error, "a statement could not be cancelled");
    }
}

impl DatabaseSession for PostgresLink {
    fn opened(&self) -> &Opened {
        &self.session.opened
    }

    fn is_stale(&mut self, stop: &Stop) -> Result<bool, Fault> {
        let Self { runtime, session: Session { client, tls, prepared, .. }, .. } = self;
        with_ahead(runtime, client, tls.as_ref(), "", stop, prepared.is_stale(client))
    }

    fn has_changed(&mut self, _: &Stop) -> Result<bool, Fault> {
        Ok(self.changed)
    }

    fn limit_locks(&mut self, limit: Option<Duration>, _: &Stop) -> Result<(), Fault> {
        self.lock_limit = limit;
        Ok(())
    }

    fn begin(&mut self, _: &Stop) -> Result<(), Fault> {
        self.ahead.push_str(BEGIN);
        if let Some(limit) = self.lock_limit {
            // Zero would mean no limit.
            let limit = limit.as_millis().max(1);
            self.ahead.push_str(&format!("set local lock_timeout = {limit};"));
        }
        (self.open, self.changed) = (true, false);
        Ok(())
    }

    fn insert(
        &mut self,
        rows: &Rows,
        part: Range<usize>,
        batch: &Batch,
        effects: &mut Effects,
        stop: &Stop,
    ) -> Result<(), Fault> {
        let Self { runtime, session, changed, ahead, arrays, .. } = self;
        let Session { client, tls, run, prepared, opened, form, .. } = session;
        let Opened { shape, takes, .. } = opened;
        let affected = prepared.job.affected;
        match run {
            Run::Arrays { insert, absent, by_row: true } => {
                effects.begin(shape.is_late, [""; 0]);
                // The key may be stored differently than when the statement was prepared.
                let idle: fn() -> Fault = match absent {
                    Some(_) => || Fault::ignored().of_types(true),
                    None => Fault::ignored,
                };
                let refuse = Refuse { error: fault::of, idle };
                let given = |row: usize| {
                    let mut arrays = Vec::new();
                    arrays.resize_with(takes.len(), Array::default);
                    fill(&mut arrays, (shape, takes), rows, row..row + 1, batch)?;
                    Ok(arrays)
                };
                let statements = (&*insert, absent.as_ref());
                let run = |arrays| insert_one(client, statements, arrays);
                let ahead = std::mem::take(ahead);
                let work = run_rows(given, run, &[], (affected, refuse), part, effects, stop);
                let work = described(client, form.as_mut(), changed, work);
                with_ahead(runtime, client, tls.as_ref(), &ahead, stop, work)
            }
            Run::Arrays { insert, absent, .. } => {
                effects.begin(shape.is_late, [""; 0]);
                arrays.resize_with(takes.len(), Array::default);
                fill(arrays, (shape, takes), rows, part.clone(), batch)?;
                let ahead = std::mem::take(ahead);
                let values: Vec<Text<'_>> =
                    arrays.iter_mut().map(|array| Text(Some(array.end()))).collect();
                let statements = (&*insert, absent.as_ref());
                let work = run_arrays(client, statements, affected, part, &values, effects);
                let work = described(client, form.as_mut(), changed, work);
                with_ahead(runtime, client, tls.as_ref(), &ahead, stop, work)
            }
            Run::Rows { statement, plan } => {
                let ahead = std::mem::take(ahead);
                let names = statement.columns().iter().map(Column::name);
                effects.begin(shape.is_late, names.take(plan.len()));
                let refuse = Refuse { error: fault::of, idle: Fault::no_row };
                let statement = (&*statement, &plan[..]);
                let given = |row| parameters(rows, row, (&**shape, &takes[..]), batch);
                let run = |values| run_statement(client, statement, values);
                let work = run_rows(given, run, plan, (affected, refuse), part, effects, stop);
                let work = described(client, form.as_mut(), changed, work);
                with_ahead(runtime, client, tls.as_ref(), &ahead, stop, work)
            }
            Run::Query { .. } => Err(Fault::new(Blame::Statement, "a query stores nothing")),
        }
    }

    fn savepoint(&mut self, _: &Stop) -> Result<(), Fault> {
        self.ahead.push_str("savepoint one_part;");
        Ok(())
    }

    fn release(&mut self, _: &Stop) -> Result<(), Fault> {
        self.ahead.push_str("release one_part;");
        Ok(())
    }

    fn undo(&mut self, _: &Stop) -> Result<(), Fault> {
        self.ahead.push_str("rollback to one_part; release one_part;");
        Ok(())
    }

    fn commit(&mut self, stop: &Stop) -> Commit {
        let mut sql = std::mem::take(&mut self.ahead);
        sql.push_str("commit");
        self.open = false;
        let Self { runtime, session: Session { client, .. }, .. } = self;
        // The outcome is worth waiting for, even if a stop is requested.
        let said = until(runtime, stop, client.batch_execute(&sql), async {});
        let told = |error: Error| {
            let is_proof = match fault::rolled_back(&error) {
                RolledBack::Everywhere => true,
                RolledBack::Here => !self.may_write_elsewhere(stop),
                RolledBack::Perhaps => false,
            };
            (fault::of(&error), is_proof)
        };
        Commit::of_server(said.map(|said| said.map_err(told)), || {
            self.open = true;
            self.rollback(stop)
        })
    }

    fn rollback(&mut self, stop: &Stop) -> Result<(), Fault> {
        if !std::mem::take(&mut self.open) {
            return Ok(());
        }
        // Nothing of the transaction has been sent.
        if std::mem::take(&mut self.ahead).starts_with(BEGIN) {
            return Ok(());
        }
        let Self { runtime, session: Session { client, .. }, .. } = self;
        let undone = until(runtime, stop, client.batch_execute("rollback"), async {});
        match undone {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => Err(Fault { blame: Blame::Lost, ..fault::of(&error) }),
            None => Err(Fault::new(Blame::Lost, "the server did not answer a ROLLBACK")),
        }
    }

    fn is_open(&self) -> bool {
        self.open
    }

    fn query(
        &mut self,
        rows: &Rows,
        row: usize,
        batch: &Batch,
        sink: &mut Sink<'_>,
        stop: &Stop,
    ) -> Result<(), Fault> {
        let Self { runtime, session: Session { client, tls, run, opened, .. }, .. } = self;
        let Opened { shape, takes, .. } = opened;
        let Run::Query { prepared, names, plan } = run else {
            return Err(Fault::new(Blame::Statement, "there is no query"));
        };
        let Sink { rows: into, each, in_base64 } = sink;
        into.reshape(Schema::new(names.iter().map(String::as_str), Case::Exact));
        let plan: Vec<Decode> = plan.iter().map(|it| it.leaving(*in_base64)).collect();
        let values = parameters(rows, row, (shape, takes), batch)?;
        let values = texts(&values);
        let work = async {
            let told = |error: Error| fault::of_query(&error);
            let found = client.query_raw(&*prepared, values).await.map_err(told)?;
            let mut found = pin!(found);
            let mut digits = Digits::default();
            while let Some(row) = found.next().await {
                let row = row.map_err(told)?;
                decode::note(&row, &plan, &mut digits);
                let values = decode::values(&row, &plan, &digits);
                into.push(values)
                    .map_err(|error| Fault::new(Blame::Statement, &error.to_string()))?;
                // A result without end must not be read to its end, so the connection is dropped.
                each(into).map_err(|fault| Fault { blame: Blame::Lost, ..fault })?;
            }
            Ok(())
        };
        with_ahead(runtime, client, tls.as_ref(), "", stop, work)
    }

    fn write_dead_letters(
        &mut self,
        table: &str,
        letters: &[Letter<'_>],
        stop: &Stop,
    ) -> Result<(), Fault> {
        let ahead = std::mem::take(&mut self.ahead);
        let Self { runtime, session: Session { client, tls, .. }, .. } = self;
        // No dead letter may be written outside its transaction.
        let work = async {
            client
                .batch_execute(&ahead)
                .await
                .map_err(|error| fault::of(&error).into_internal())?;
            letters::write_dead_letters(client, table, letters).await
        };
        with_ahead(runtime, client, tls.as_ref(), "", stop, work)
    }

    fn letters(
        &mut self,
        table: &str,
        after: i64,
        limit: usize,
    ) -> Result<Vec<StoredLetter>, Fault> {
        let Self { runtime, session: Session { client, .. }, .. } = self;
        let list = letters::list(client, table, after, limit);
        runtime.block_on(list).map_err(|error| fault::of(&error))
    }

    fn remove_dead_letter(&mut self, table: &str, number: i64) -> Result<bool, Fault> {
        let ahead = std::mem::take(&mut self.ahead);
        let Self { runtime, session: Session { client, tls, .. }, .. } = self;
        let work = async {
            client
                .batch_execute(&ahead)
                .await
                .map_err(|error| fault::of(&error).into_internal())?;
            letters::remove(client, table, number).await.map_err(|error| fault::of(&error))
        };
        with_ahead(runtime, client, tls.as_ref(), "", &Stop::default(), work)
    }
}
