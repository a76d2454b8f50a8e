//! The rows of one batch, parsed from its requests before the database is used.
//!
//! The values of a record that the statement and the acknowledgement need are copied once, into the [`Cells`] of the
//! batch: directly if the record is plain JSON, otherwise through one reused set of [`Fields`] that indexes the record
//! in its block. The acknowledgements are in one buffer. All memory is kept from batch to batch, so a row needs no
//! allocation.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use block::Slice;
use exchange::{Batch, Cause, Outcome, Phase, Request};
use fields::json::{self, Plain};
use fields::{Case, Fields, RowError, Rows as Cells, Schema, Value, logfmt, tsv};

use crate::ack::Piece;
use crate::effects::Effects;
use crate::fault::{Blame, Fault, for_clients};
use crate::letter::Uids;
use crate::source::{Members, Source};
use crate::text::{one_line, shortened};
use crate::{DatabaseError, Job, Record, UnknownFields};
use sql::column::{Fit, Takes};

/// The maximum size of records or acknowledgements that is kept from one batch to the next, in bytes.
const KEPT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The maximum size of the acknowledgements that share a block, in bytes. An acknowledgement that waits for its turn
/// keeps the whole block, and counts as the whole block.
const ACKS_TOGETHER_MAX: usize = 512;
/// The maximum number of rows, fields or cells whose memory is kept from one batch to the next.
const KEPT_COUNT_MAX: usize = 64 * 1024;

/// The maximum size of a name in a message, in bytes.
const NAME_BYTES_MAX: usize = 100;

/// The information that is needed to parse a row.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) record: Record,
    /// The members that each record must have: the columns of a batch.
    pub(crate) members: Schema,
    /// Parses plain records. Other records are parsed through [`Fields`].
    plain: Option<Plain>,
    /// The members that a line of TSV has, in their order in the line.
    pub(crate) columns: Vec<Box<str>>,
    /// One source for each parameter of the statement, in its order.
    pub(crate) parameters: Vec<Source>,
    pub(crate) ack: Vec<Piece>,
    /// The acknowledgement contains the effect of the statement, so it is written after it.
    pub(crate) is_late: bool,
    /// Records may have names that are not used.
    takes_unknown: bool,
}

impl Shape {
    /// Returns the shape of requests whose statement has these parameters.
    ///
    /// # Errors
    /// Returns an error if the acknowledgement names a value that a line of TSV does not have.
    pub(crate) fn new(
        job: &Job,
        members: Members,
        parameters: Vec<Source>,
        ack: Vec<Piece>,
    ) -> Result<Self, DatabaseError> {
        let columns = columns(&members, &parameters);
        let absent = members.iter().find(|name| !columns.iter().any(|column| **column == **name));
        if let (Record::Tsv, Some(name)) = (job.record, absent) {
            let columns = columns.into_iter().map(String::from).collect();
            return Err(DatabaseError::NotInRecord { name: name.to_owned(), columns });
        }
        let counts = ack.contains(&Piece::Rows);
        if let (true, Some(_)) = (counts, members.iter().find(|name| *name == "rows")) {
            let at = job.ack.find("{rows}").unwrap_or_default() + 1;
            let why =
                "`{rows}` is the number of rows and a name in the record; rename that one, seen";
            return Err(DatabaseError::Ack(why, at));
        }
        let is_late = counts || ack.iter().any(|piece| matches!(piece, Piece::Returned(_)));
        let members = Schema::new(members.iter(), Case::Exact);
        let plain = Plain::new(&members).filter(|_| job.record == Record::Json);
        let takes_unknown = job.unknown_fields == UnknownFields::Ignore;
        let record = job.record;
        Ok(Self { record, members, plain, columns, parameters, ack, is_late, takes_unknown })
    }

    /// Returns the outcome of a request whose record has all members and further names.
    fn unknown(&self, record: &Fields) -> Option<Outcome> {
        if self.takes_unknown || record.len() == self.members.len() {
            return None;
        }
        let mut names = record.names();
        let name =
            String::from_utf8_lossy(names.find(|name| self.members.position(name).is_none())?);
        let text = format!("`{}` of the record is not used here", shortened(&name, NAME_BYTES_MAX));
        Some(refused(Cause::Record, &text))
    }

    /// Returns the name of a member, for messages.
    pub(crate) fn name(&self, member: usize) -> Cow<'_, str> {
        String::from_utf8_lossy(self.members.name(member).unwrap_or_default())
    }
}

/// Returns the members that are parameters, each once, in the order of the parameters.
fn columns(members: &Members, parameters: &[Source]) -> Vec<Box<str>> {
    let mut columns: Vec<Box<str>> = Vec::new();
    for source in parameters {
        let Source::Member(member) = source else { continue };
        let name = members.iter().nth(*member).unwrap_or_default();
        if !columns.iter().any(|column| **column == *name) {
            columns.push(name.into());
        }
    }
    columns
}

/// A value of a row, or of its request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Given<'a> {
    /// A value of the record.
    Value(Value<'a>),
    /// A number of the request itself.
    Integer(i64),
    /// The client of the request itself.
    Client(exchange::Peer),
}

/// A request that became a row.
#[derive(Debug)]
struct Row {
    /// The index of the request in the batch.
    request: usize,
    /// The position of its acknowledgement.
    ack: Range<usize>,
    /// The acknowledgement is among those that were written after the row was stored.
    is_late: bool,
    /// The reason why the database does not accept the row.
    refusal: Option<Refusal>,
    /// It is unknown whether the row is stored: it is sent again.
    is_unsure: bool,
    verdict: Verdict,
    /// The log reports that its dead letter is lost.
    is_letter_lost: bool,
    /// The number of rows that its statement stored or changed, if the acknowledgement contains it.
    count: u64,
    /// The row did not exist when it was sent first, and exists now: stored by this batch, or by another client.
    is_disputed: bool,
}

/// Whether a rejected row may be tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Open,
    /// Its request is not a valid row, and never becomes one.
    NoRow,
    /// Its dead letter may be in the table: the answer to the COMMIT that wrote both was lost. The row is not stored,
    /// and must not be stored in addition to its dead letter.
    Settled,
}

/// The reason why the database does not accept a row.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// The cause with which its request ends.
    pub(crate) cause: Cause,
    /// The error code of the database.
    pub(crate) code: Box<str>,
    pub(crate) text: Box<str>,
    /// For the operator only.
    pub(crate) detail: Box<str>,
}

impl Refusal {
    fn outcome(&self) -> Outcome {
        Outcome::ended(self.cause, Phase::Work, &for_clients(&self.text, &self.code))
    }
}

/// The rows of one batch, identified by their index.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    /// The record that is being parsed.
    record: Fields,
    /// The value of each member of each row.
    cells: Cells,
    acks: Vec<u8>,
    /// Acknowledgements that contain the effect of the statement.
    late: Vec<u8>,
    shape: Option<Arc<Shape>>,
    rows: Vec<Row>,
    uids: Uids,
}

impl Rows {
    /// Removes all rows. The next ones have this shape.
    pub(crate) fn begin(&mut self, shape: &Arc<Shape>) {
        self.shape = shape.is_late.then(|| Arc::clone(shape));
        self.uids.begin_batch();
        self.late.clear();
        self.late.shrink_to(KEPT_BYTES_MAX);
        self.record.clear();
        self.cells.reshape(shape.members.clone());
        self.acks.clear();
        self.rows.clear();
        self.record.shrink_to(KEPT_COUNT_MAX, KEPT_BYTES_MAX);
        self.cells.shrink_to(KEPT_COUNT_MAX, KEPT_BYTES_MAX);
        self.acks.shrink_to(KEPT_BYTES_MAX);
        self.rows.shrink_to(KEPT_COUNT_MAX);
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns the unique id of the dead letter of this row.
    pub(crate) fn uid(&self, row: usize) -> String {
        self.uids.of(row)
    }

    /// Parses request number `index` of its batch as the next row.
    ///
    /// # Errors
    /// Returns the outcome of the request if it is not a valid row.
    pub(crate) fn read(
        &mut self,
        shape: &Shape,
        index: usize,
        request: &Request,
    ) -> Result<(), Outcome> {
        let (row, acks) = (self.cells.len(), self.acks.len());
        let is_plain = |plain: &Plain| plain.push(&mut self.cells, &request.body);
        if !shape.plain.as_ref().is_some_and(is_plain) {
            self.read_any(shape, &request.body)?;
        }
        if let Err(outcome) = self.render(shape, row, request) {
            self.cells.truncate(row);
            self.acks.truncate(acks);
            return Err(outcome);
        }
        let ack = acks..self.acks.len();
        self.rows.push(Row {
            request: index,
            ack,
            is_late: false,
            refusal: None,
            is_unsure: false,
            verdict: Verdict::Open,
            is_letter_lost: false,
            count: 0,
            is_disputed: false,
        });
        Ok(())
    }

    /// Adds request number `index` of its batch, which is not a valid row and ended with `outcome`, for its dead
    /// letter.
    pub(crate) fn keep_refused(&mut self, index: usize, outcome: &Outcome) {
        let (Outcome::Ended(end, text) | Outcome::Fallback(end, text)) = outcome else { return };
        let nothing = (0..self.cells.schema().len()).map(|_| Value::Null);
        self.cells.push(nothing).expect("a row of nulls has a value for each column and no bytes");
        let (text, cause) = (String::from_utf8_lossy(text).into(), end.cause);
        let refusal = Refusal { cause, code: Box::default(), text, detail: Box::default() };
        let ack = self.acks.len()..self.acks.len();
        self.rows.push(Row {
            request: index,
            ack,
            is_late: false,
            refusal: Some(refusal),
            is_unsure: false,
            verdict: Verdict::NoRow,
            is_letter_lost: false,
            count: 0,
            is_disputed: false,
        });
    }

    /// Rejects those of `rows` with a value that its column would change. Returns whether there are any. `takes`: what
    /// each parameter accepts.
    pub(crate) fn refuse_misfits(
        &mut self,
        shape: &Shape,
        rows: Range<usize>,
        takes: &[Takes],
    ) -> bool {
        let checked: Vec<(usize, &Takes)> = shape
            .parameters
            .iter()
            .zip(takes)
            .filter_map(|(source, takes)| match source {
                Source::Member(member) if !takes.takes_all() => Some((*member, takes)),
                _ => None,
            })
            .collect();
        let mut found = false;
        for row in rows.filter(|_| !checked.is_empty()) {
            if self.rows[row].refusal.is_some() {
                continue;
            }
            let misfit = checked.iter().find_map(|(member, takes)| {
                let why =
                    takes.fit(self.value(row, *member), shape.record == Record::Json).err()?;
                Some(misfit(&shape.name(*member), &why))
            });
            if let Some(fault) = misfit {
                self.refuse(row, fault);
                found = true;
            }
        }
        found
    }

    /// Returns the rows of `range` that are not rejected, as ranges in their order.
    pub(crate) fn accepted(&self, range: Range<usize>) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        let mut start = range.start;
        for row in range.clone().filter(|row| self.rows[*row].refusal.is_some()) {
            found.push(start..row);
            start = row + 1;
        }
        found.push(start..range.end);
        found.retain(|part| !part.is_empty());
        found
    }

    /// Parses a record of any form as the next row of cells.
    fn read_any(&mut self, shape: &Shape, body: &Slice) -> Result<(), Outcome> {
        self.decode(shape, body)?;
        let pushed = self.cells.push_record(&self.record);
        let refused = match pushed {
            Err(error) => Some(not_a_row(shape, error)),
            Ok(row) => {
                let unknown = shape.unknown(&self.record);
                unknown.inspect(|_| self.cells.truncate(row))
            }
        };
        // Releases the block, which would otherwise be held until the next record.
        self.record.clear();
        refused.map_or(Ok(()), Err)
    }

    /// Indexes a record in its block.
    fn decode(&mut self, shape: &Shape, body: &Slice) -> Result<(), Outcome> {
        let record = &mut self.record;
        let refuse = |text: String| refused(Cause::Record, &text);
        match shape.record {
            Record::Json => json::adopt(record, body)
                .map_err(|error| refuse(format!("not a JSON record: {error}"))),
            // A line end within a value is written as an escape.
            Record::Tsv if body.contains(&b'\n') => Err(refuse(
                "not a TSV record: it has several lines; send one record per request".to_owned(),
            )),
            Record::Tsv => tsv::adopt(record, shape.columns.iter().map(|name| &**name), body)
                .map_err(|error| refuse(format!("not a TSV record: {error}"))),
            Record::Logfmt => logfmt::adopt(record, body)
                .map_err(|error| refuse(format!("not a logfmt record: {error}"))),
        }
    }

    /// Writes the acknowledgement of row `row`.
    fn render(&mut self, shape: &Shape, row: usize, request: &Request) -> Result<(), Outcome> {
        for piece in &shape.ack {
            match piece {
                Piece::Text(text) => self.acks.extend_from_slice(text.as_bytes()),
                // Not known yet.
                Piece::Rows | Piece::Returned(_) => {}
                Piece::Value(Source::Id) => push_shown(&mut self.acks, request.id),
                Piece::Value(Source::Client) => push_shown(&mut self.acks, request.peer),
                Piece::Value(Source::At) => push_shown(&mut self.acks, request.at_us),
                Piece::Value(Source::Member(member)) => {
                    let value = self.cells.value(row, *member).unwrap_or(Value::Null);
                    let value = value.bytes_or_empty();
                    if value.iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
                        let name = shape.name(*member);
                        let text = format!("`{name}` holds a line end, which its reply cannot");
                        return Err(refused(Cause::Row, &text));
                    }
                    self.acks.extend_from_slice(value);
                }
            }
        }
        Ok(())
    }

    /// Writes the acknowledgements of the rows of `part`, which are stored and not committed yet, if they contain the
    /// effect of the statement.
    ///
    /// # Errors
    /// Returns a fault of a row if a value that it returned cannot be in a reply.
    pub(crate) fn acknowledge(
        &mut self,
        part: Range<usize>,
        batch: &Batch,
        effects: &Effects,
    ) -> Result<(), Fault> {
        let Some(shape) = self.shape.clone() else { return Ok(()) };
        for (index, row) in part.enumerate() {
            let start = self.late.len();
            let request = &batch.requests[self.rows[row].request];
            for piece in &shape.ack {
                let late = &mut self.late;
                match *piece {
                    Piece::Text(ref text) => late.extend_from_slice(text.as_bytes()),
                    Piece::Rows => {
                        let (row, count) = (&mut self.rows[row], effects.count(index));
                        row.is_disputed = row.is_unsure && row.count > 0 && count == 0;
                        if !row.is_unsure {
                            row.count = count;
                        }
                        push_shown(late, count);
                    }
                    Piece::Returned(column) => {
                        late.extend_from_slice(effects.returned(index, column).bytes_or_empty());
                    }
                    Piece::Value(Source::Id) => push_shown(late, request.id),
                    Piece::Value(Source::Client) => push_shown(late, request.peer),
                    Piece::Value(Source::At) => push_shown(late, request.at_us),
                    Piece::Value(Source::Member(member)) => {
                        let value = self.cells.value(row, member).unwrap_or(Value::Null);
                        late.extend_from_slice(value.bytes_or_empty());
                    }
                }
            }
            if self.late[start..].iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
                let text = "the statement returned a line end, which its reply cannot hold";
                return Err(Fault::new(Blame::Row, text).at(row));
            }
            (self.rows[row].ack, self.rows[row].is_late) = (start..self.late.len(), true);
        }
        Ok(())
    }

    /// Returns the index of the request of row `row` in the batch.
    pub(crate) fn request(&self, row: usize) -> usize {
        self.rows[row].request
    }

    /// Returns the value of row `row` for this member.
    pub(crate) fn value(&self, row: usize, member: usize) -> Value<'_> {
        self.cells.value(row, member).unwrap_or(Value::Null)
    }

    /// Returns the value of row `row` for a parameter.
    pub(crate) fn given(&self, row: usize, source: Source, batch: &Batch) -> Given<'_> {
        let request = || &batch.requests[self.request(row)];
        match source {
            Source::Member(member) => Given::Value(self.value(row, member)),
            Source::Id => Given::Integer(request().id.as_u64().cast_signed()),
            Source::At => Given::Integer(request().at_us),
            Source::Client => Given::Client(request().peer),
        }
    }

    /// Returns the value of row `row` for parameter `parameter`, in the form that its column accepts.
    ///
    /// # Errors
    /// Returns a fault of the row if the column would change the value.
    pub(crate) fn fitted(
        &self,
        row: usize,
        shape: &Shape,
        (parameter, takes): (usize, &Takes),
        batch: &Batch,
    ) -> Result<Fit<'_>, Fault> {
        let source = shape.parameters[parameter];
        Ok(match self.given(row, source, batch) {
            Given::Value(value) => {
                takes.fit(value, shape.record == Record::Json).map_err(|why| {
                    let name = if let Source::Member(member) = source { member } else { 0 };
                    misfit(&shape.name(name), &why).at(row)
                })?
            }
            Given::Integer(number) => Fit::Number(number.to_string().into_bytes().into()),
            Given::Client(peer) => Fit::Text(peer.to_string().into_bytes().into()),
        })
    }

    /// Returns the reason why the database does not accept this row, if it does not.
    pub(crate) fn refusal(&self, row: usize) -> Option<&Refusal> {
        self.rows[row].refusal.as_ref()
    }

    /// Records that it is unknown whether those of `rows` that the database accepted are stored.
    pub(crate) fn doubt(&mut self, rows: Range<usize>) {
        self.rows[rows].iter_mut().for_each(|row| row.is_unsure |= row.refusal.is_none());
    }

    /// Whether this row is stored, but it is unknown whether by this request. Its acknowledgement would have to state
    /// that.
    pub(crate) fn is_disputed(&self, row: usize) -> bool {
        self.rows[row].is_disputed
    }

    /// Whether it was unknown if this row is stored when it was sent again.
    pub(crate) fn is_unsure(&self, row: usize) -> bool {
        self.rows[row].is_unsure
    }

    /// Records that the database does not accept this row.
    pub(crate) fn refuse(&mut self, row: usize, fault: Fault) {
        let Fault { code, text, detail, cause, .. } = fault;
        self.rows[row].refusal = Some(Refusal { cause, code, text: text.into(), detail });
    }

    /// Records that a rejected row is never tried again.
    pub(crate) fn settle(&mut self, row: usize) {
        self.rows[row].verdict = Verdict::Settled;
    }

    /// Whether this row stays rejected, and its dead letter may be in the table.
    pub(crate) fn is_settled(&self, row: usize) -> bool {
        self.rows[row].verdict == Verdict::Settled
    }

    /// Records that the log reports the dead letter of this row as lost. Returns false if it was reported before.
    pub(crate) fn lose_letter(&mut self, row: usize) -> bool {
        !std::mem::replace(&mut self.rows[row].is_letter_lost, true)
    }

    /// Clears the reasons why rows were not accepted, because they are tried again.
    pub(crate) fn clear_refusals(&mut self, rows: Range<usize>) {
        let rows = self.rows[rows].iter_mut().filter(|row| row.verdict == Verdict::Open);
        rows.for_each(|row| row.refusal = None);
    }

    /// Answers each of `rows`, which are now committed, with its acknowledgement or rejection. The acknowledgements
    /// share blocks.
    pub(crate) fn answers(&self, rows: Range<usize>, mut answer: impl FnMut(usize, Outcome)) {
        if self.shape.is_some() {
            for row in &self.rows[rows] {
                let outcome = match &row.refusal {
                    Some(refusal) => refusal.outcome(),
                    None if !row.is_late => Outcome::Reply(Slice::default()),
                    None => Outcome::Reply(Slice::copy_of(&self.late[row.ack.clone()])),
                };
                answer(row.request, outcome);
            }
            return;
        }
        let mut rest = &self.rows[rows];
        while let Some(head) = rest.first() {
            let start = head.ack.start;
            let fits = rest.partition_point(|row| row.ack.end - start <= ACKS_TOGETHER_MAX);
            let (together, behind) = rest.split_at(fits.max(1));
            rest = behind;
            let end = together.last().map_or(start, |row| row.ack.end);
            let block = Slice::copy_of(&self.acks[start..end]);
            for row in together {
                let outcome = match &row.refusal {
                    Some(refusal) => refusal.outcome(),
                    None => Outcome::Reply(block.slice(row.ack.start - start..row.ack.end - start)),
                };
                answer(row.request, outcome);
            }
        }
    }
}

/// Returns the fault of a row whose value a column does not accept.
fn misfit(column: &str, why: &str) -> Fault {
    Fault::new(Blame::Row, &format!("column `{column}` {why}")).coded("type")
}

fn push_shown(to: &mut Vec<u8>, value: impl std::fmt::Display) {
    use std::io::Write as _;
    write!(to, "{value}").expect("a buffer takes what is written to it");
}

/// Returns the outcome of a request whose record does not give each member exactly one value. JSON has no duplicate
/// names and TSV has no names, so only logfmt can contain two values for a name.
fn not_a_row(shape: &Shape, error: RowError) -> Outcome {
    match error {
        RowError::Absent { column } => {
            refused(Cause::Row, &format!("the record has no `{}`", shape.name(column)))
        }
        RowError::Repeated { column } => {
            let text = format!("not a logfmt record: duplicate name `{}`", shape.name(column));
            refused(Cause::Record, &text)
        }
        RowError::Bytes | RowError::Values { .. } => refused(Cause::Row, &error.to_string()),
    }
}

fn refused(cause: Cause, text: &str) -> Outcome {
    Outcome::ended(cause, Phase::Work, &one_line(text))
}
