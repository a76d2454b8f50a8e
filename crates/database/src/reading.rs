//! Requests that are answered with the rows of a query.
//!
//! Each request runs the query once, outside of any transaction of the daemon and without the right to write. Its reply
//! is written as the rows arrive, and its size is limited. If a client accepts a reply in parts, they are sent to the
//! outbox as they fill up, and the rows are not read faster than the client takes them.

use std::sync::Arc;
use std::time::Instant;

use exchange::{Batch, Cause, Handler, Outbox, Outcome, Phase, Slice, Stop};

use crate::connection::Connection;
use crate::details::DetailLog;
use crate::fault::{Blame, Fault};
use crate::handler::{RetryBudget, failed};
use crate::link::{DatabaseSession, Driver, Setup, Sink};
use crate::reply::Writer;
use crate::rows::{Rows, Shape};
use crate::{DatabaseError, Format, Query};

/// The number of bytes of a reply that are held before the first part is sent. A smaller reply is sent as a whole, so
/// that a limit which it exceeds, or an error after its first rows, still results in a separate answer.
const HELD_BYTES: usize = 1 << 20;

/// The size of the parts after the first one, in bytes.
const PART_BYTES: usize = 32 << 10;

/// Answers with the rows of a query. There is one handler on each thread.
#[derive(Debug)]
pub(crate) struct QueryHandler<D: Driver> {
    setup: Arc<Setup<D>>,
    query: Query,
    connection: Connection<D::DatabaseSession>,
    rows: Rows,
    /// Values that have arrived and are not written yet.
    cells: fields::Rows,
    details: DetailLog,
    retry_budget: RetryBudget,
}

impl<D: Driver> QueryHandler<D> {
    pub(crate) fn open(setup: Arc<Setup<D>>, query: Query) -> Result<Self, DatabaseError> {
        let connection = Connection::new(setup.connect()?);
        let (rows, cells) = (Rows::default(), fields::Rows::default());
        let details = DetailLog::new(setup.job.log_error_details);
        let retry_budget = RetryBudget::new(Instant::now());
        Ok(Self { setup, query, connection, rows, cells, details, retry_budget })
    }

    /// Returns the reply to request `index` of `batch`.
    fn answer(
        &mut self,
        batch: &Batch,
        index: usize,
        outbox: &mut dyn Outbox,
        stop: &Stop,
    ) -> Outcome {
        let shape: Arc<Shape> = Arc::clone(self.connection.shape());
        self.rows.begin(&shape);
        if let Err(outcome) = self.rows.read(&shape, index, &batch.requests[index]) {
            return outcome;
        }
        let at_us = batch.requests[index].at_us;
        self.retry_budget.grow(Instant::now());
        let (mut begun, mut checked) = (false, false);
        loop {
            let fault = match self.attempt(batch, index, (outbox, &mut begun), stop) {
                Ok(outcome) => {
                    self.connection.record_success(&self.setup);
                    return outcome;
                }
                Err(fault) => fault,
            };
            // A query may run again until a part of its reply is sent.
            if fault.of_types && !begun && !std::mem::replace(&mut checked, true) {
                let stale = match self.connection.link() {
                    Some(link) => link.is_stale(stop).unwrap_or(false),
                    None => true,
                };
                if stale {
                    self.connection.discard();
                    continue;
                }
            }
            if fault.blame == Blame::Row {
                self.connection.record_success(&self.setup);
                return Outcome::ended(Cause::Row, Phase::Work, &fault.for_clients());
            }
            self.connection.record_failure(&self.setup, &fault);
            if !fault.again || begun {
                return failed(&fault.for_clients());
            }
            let mut limit = self.connection.time_left(self.setup.job.retry, at_us);
            let since = Instant::now();
            // The server works: other queries may not have this fault.
            let is_own = matches!(fault.blame, Blame::Foreign | Blame::Conflict | Blame::Full);
            let is_own = is_own && fault.answered;
            if is_own {
                limit = limit.min(self.retry_budget.left().unwrap_or_default());
            }
            if !self.connection.wait(&self.setup, limit, stop) {
                return failed(&fault.for_clients());
            }
            if is_own {
                self.retry_budget.spend(since.elapsed());
            }
        }
    }

    fn attempt(
        &mut self,
        batch: &Batch,
        index: usize,
        (outbox, begun): (&mut dyn Outbox, &mut bool),
        stop: &Stop,
    ) -> Result<Outcome, Fault> {
        let link = self.connection.open(&self.setup)?;
        let Query { rows: format, rows_max, reply_max, .. } = self.query;
        let mut writer = Writer::new(format, rows_max, reply_max);
        let streams = outbox.streams(index);
        let mut each = |rows: &mut fields::Rows| {
            writer.write(rows)?;
            let enough = if writer.is_begun() { PART_BYTES } else { HELD_BYTES };
            if streams && writer.len() > enough {
                let gone = |_| Fault::new(Blame::Stopped, "its client has left");
                outbox.part(index, writer.take()).map_err(gone)?;
            }
            Ok(())
        };
        let in_base64 = format != Format::Tsv;
        let mut sink = Sink { rows: &mut self.cells, each: &mut each, in_base64 };
        let run = link.query(&self.rows, 0, batch, &mut sink, stop);
        *begun = writer.is_begun();
        if let Err(fault) = &run {
            let name = self.setup.driver.name();
            self.details.write(&name, &fault.code, &fault.text, &fault.detail);
        }
        match (run, writer.over()) {
            (run, Some(over)) => {
                // The daemon ended the query before its end. This is not a failure of the database.
                if run.is_err_and(|fault| fault.blame.spoils_connection()) {
                    self.connection.discard();
                }
                Ok(Outcome::ended(Cause::Rows, Phase::Work, over))
            }
            (Ok(()), None) => Ok(Outcome::Reply(Slice::from(&*writer.finish()))),
            (Err(fault), None) => Err(fault),
        }
    }
}

impl<D: Driver> Handler for QueryHandler<D> {
    fn serve(&mut self, batch: &Batch, outbox: &mut dyn Outbox, stop: &Stop) {
        for index in 0..batch.requests.len() {
            let outcome = if stop.requested() {
                failed("stopped before it was run")
            } else {
                self.answer(batch, index, outbox, stop)
            };
            outbox.answer(index, outcome);
            outbox.flush();
        }
    }
}

/// Runs the query of a database's settings and returns its rows as values, for callers that need no text.
pub struct Reader(Box<dyn Read>);

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Reader")
    }
}

trait Read: Send {
    fn read(&mut self, record: &[u8], rows: &mut fields::Rows) -> Result<(), DatabaseError>;
}

struct Reading<L> {
    link: L,
    rows: Rows,
}

impl Reader {
    pub(crate) fn open<D: Driver>(setup: &Setup<D>) -> Result<Self, DatabaseError> {
        let link = setup.connect()?;
        Ok(Self(Box::new(Reading { link, rows: Rows::default() })))
    }

    /// Runs the query with the parameters in `record`. `rows` is then replaced by its rows. The only limit is that of
    /// [`fields::Rows`].
    ///
    /// # Errors
    /// Returns an error if the record is invalid, or the error of the database.
    pub fn read(&mut self, record: &[u8], rows: &mut fields::Rows) -> Result<(), DatabaseError> {
        self.0.read(record, rows)
    }
}

impl<L: DatabaseSession> Read for Reading<L> {
    fn read(&mut self, record: &[u8], rows: &mut fields::Rows) -> Result<(), DatabaseError> {
        let told = |text: &str| DatabaseError::Statement(text.into());
        let batch = Batch {
            requests: vec![exchange::Request {
                head: None,
                id: exchange::RequestId::NONE,
                peer: exchange::Peer::Inside,
                body: Slice::copy_of(record),
                at_us: 0,
            }],
        };
        let shape = Arc::clone(&self.link.opened().shape);
        self.rows.begin(&shape);
        if let Err(Outcome::Ended(_, text)) = self.rows.read(&shape, 0, &batch.requests[0]) {
            return Err(told(&String::from_utf8_lossy(&text)));
        }
        let mut sink = Sink { rows: &mut *rows, each: &mut |_| Ok(()), in_base64: false };
        let run = self.link.query(&self.rows, 0, &batch, &mut sink, &Stop::default());
        rows.shrink_to(0, 0);
        run.map_err(|fault| told(&fault.for_operators()))
    }
}
