//! The rows of one batch, read from its requests before the database is touched.
//!
//! What the statement and the acknowledgement need of a record is copied once, into the [`Cells`]
//! of the batch: straight where it is plain JSON, else by way of one set of [`Fields`] that indexes it
//! in its block and is used again for each. The acknowledgements lie in one buffer. Everything is kept
//! from batch to batch, so a row costs no allocation.

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

/// Bytes of records or acknowledgements that are kept from one batch to the next at most.
const KEPT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes of the acknowledgements that share a block. One that waits for its turn keeps the whole
/// block, and counts as that.
const ACKS_TOGETHER_MAX: usize = 512;
/// Rows, fields or cells whose room is kept from one batch to the next at most.
const KEPT_COUNT_MAX: usize = 64 * 1024;

/// Bytes of a name that are shown at most.
const NAME_BYTES_MAX: usize = 100;

/// What has to be known to read a row.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) record: Record,
    /// What each record must have: the columns of a batch.
    pub(crate) members: Schema,
    /// Reads records that are plain; the others are read by way of [`Fields`].
    plain: Option<Plain>,
    /// Which of the members a line of TSV has, in their order there.
    pub(crate) columns: Vec<Box<str>>,
    /// One for each parameter of the statement, in its order.
    pub(crate) parameters: Vec<Source>,
    pub(crate) ack: Vec<Piece>,
    /// The acknowledgement says what the statement did, so it is written after that.
    pub(crate) is_late: bool,
    /// Records may have names that are not used.
    takes_unknown: bool,
}

impl Shape {
    /// The shape of requests whose statement has these parameters.
    ///
    /// # Errors
    /// When the acknowledgement names a value that a line of TSV does not have.
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

    /// How a request ends whose record, which has all members, has more names than these.
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

    /// The name of a member, for people.
    pub(crate) fn name(&self, member: usize) -> Cow<'_, str> {
        String::from_utf8_lossy(self.members.name(member).unwrap_or_default())
    }
}

/// The members that are parameters, each once, in the order of the parameters.
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

/// A value of a row, or of the request that it was.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Given<'a> {
    /// From the record.
    Value(Value<'a>),
    /// Of the request itself.
    Integer(i64),
    /// Of the request itself.
    Client(exchange::Peer),
}

/// A request that became a row.
#[derive(Debug)]
struct Row {
    /// Which request of the batch it was.
    request: usize,
    /// Where its acknowledgement lies.
    ack: Range<usize>,
    /// The acknowledgement lies among those that were written after the row was stored.
    is_late: bool,
    /// Why the database does not accept it.
    refusal: Option<Refusal>,
    /// Nobody knows whether it is stored: it is sent again.
    is_unsure: bool,
    verdict: Verdict,
    /// The log says that its letter is lost.
    is_letter_lost: bool,
    /// How many rows its statement stored or changed, where the acknowledgement says that.
    count: u64,
    /// It was new when it was sent first, and is there now: by us, or by somebody else.
    is_disputed: bool,
}

/// Whether a row that is refused may be tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Open,
    /// Its request is no row, and never becomes one.
    NoRow,
    /// Its letter may be in the table: the COMMIT that wrote both was lost. It is not stored, and must not be
    /// stored beside its letter.
    Settled,
}

/// Why the database does not accept a row.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// How its request ends.
    pub(crate) cause: Cause,
    /// What the database calls it.
    pub(crate) code: Box<str>,
    pub(crate) text: Box<str>,
    /// For the operator alone.
    pub(crate) detail: Box<str>,
}

impl Refusal {
    fn outcome(&self) -> Outcome {
        Outcome::ended(self.cause, Phase::Work, &for_clients(&self.text, &self.code))
    }
}

/// The rows of one batch, each known by its number here.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    /// The record that is being read.
    record: Fields,
    /// For each row and member, its value.
    cells: Cells,
    acks: Vec<u8>,
    /// Acknowledgements that say what the statement did.
    late: Vec<u8>,
    shape: Option<Arc<Shape>>,
    rows: Vec<Row>,
    uids: Uids,
}

impl Rows {
    /// Forgets all rows; those that come are of this shape.
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

    /// What tells the letter of that row from all others.
    pub(crate) fn uid(&self, row: usize) -> String {
        self.uids.of(row)
    }

    /// Reads request number `index` of its batch as one more row.
    ///
    /// # Errors
    /// When it is none: how it ends.
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

    /// Takes in request number `index` of its batch, which is no row and ended like that, for its letter.
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

    /// Refuses those of `rows` with a value that its column would change. True when there are some.
    /// `takes`: for each parameter.
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

    /// The rows of `range` that are not refused, in ranges in their order.
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

    /// Reads a record, whatever it is like, as one more row of cells.
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
        // Lets the block go, which would else be held until the next record.
        self.record.clear();
        refused.map_or(Ok(()), Err)
    }

    /// Indexes a record where it lies.
    fn decode(&mut self, shape: &Shape, body: &Slice) -> Result<(), Outcome> {
        let record = &mut self.record;
        let refuse = |text: String| refused(Cause::Record, &text);
        match shape.record {
            Record::Json => json::adopt(record, body)
                .map_err(|error| refuse(format!("not a JSON record: {error}"))),
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

    /// Writes the acknowledgements of the rows of `part`, which are stored and not committed yet,
    /// where they say what that did.
    ///
    /// # Errors
    /// When a value that was returned cannot be in a reply: a fault of that row.
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

    /// Which request of the batch row `row` was.
    pub(crate) fn request(&self, row: usize) -> usize {
        self.rows[row].request
    }

    /// What row `row` has for that member.
    pub(crate) fn value(&self, row: usize, member: usize) -> Value<'_> {
        self.cells.value(row, member).unwrap_or(Value::Null)
    }

    /// What row `row` has for a parameter.
    pub(crate) fn given(&self, row: usize, source: Source, batch: &Batch) -> Given<'_> {
        let request = || &batch.requests[self.request(row)];
        match source {
            Source::Member(member) => Given::Value(self.value(row, member)),
            Source::Id => Given::Integer(request().id.as_u64().cast_signed()),
            Source::At => Given::Integer(request().at_us),
            Source::Client => Given::Client(request().peer),
        }
    }

    /// What row `row` has for parameter `parameter`, as its column takes it.
    ///
    /// # Errors
    /// When the column would change it: a fault of that row.
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

    /// Why the database does not accept that row, if it does not.
    pub(crate) fn refusal(&self, row: usize) -> Option<&Refusal> {
        self.rows[row].refusal.as_ref()
    }

    /// Notes that nobody knows whether those of `rows` are stored that the database accepted.
    pub(crate) fn doubt(&mut self, rows: Range<usize>) {
        self.rows[rows].iter_mut().for_each(|row| row.is_unsure |= row.refusal.is_none());
    }

    /// Whether that row is stored, and nobody knows whether by this request: its acknowledgement
    /// would have to say.
    pub(crate) fn is_disputed(&self, row: usize) -> bool {
        self.rows[row].is_disputed
    }

    /// Whether nobody knew whether that row is stored when it was sent again.
    pub(crate) fn is_unsure(&self, row: usize) -> bool {
        self.rows[row].is_unsure
    }

    /// Notes that the database does not accept that row.
    pub(crate) fn refuse(&mut self, row: usize, fault: Fault) {
        let Fault { code, text, detail, cause, .. } = fault;
        self.rows[row].refusal = Some(Refusal { cause, code, text: text.into(), detail });
    }

    /// Notes that a row that is refused is never tried again.
    pub(crate) fn settle(&mut self, row: usize) {
        self.rows[row].verdict = Verdict::Settled;
    }

    /// Whether that row stays refused, and its letter may be in the table.
    pub(crate) fn is_settled(&self, row: usize) -> bool {
        self.rows[row].verdict == Verdict::Settled
    }

    /// Notes that the log says of that row that its letter is lost. False where it did before.
    pub(crate) fn lose_letter(&mut self, row: usize) -> bool {
        !std::mem::replace(&mut self.rows[row].is_letter_lost, true)
    }

    /// Forgets why rows were not accepted: they are tried again.
    pub(crate) fn forgive(&mut self, rows: Range<usize>) {
        let rows = self.rows[rows].iter_mut().filter(|row| row.verdict == Verdict::Open);
        rows.for_each(|row| row.refusal = None);
    }

    /// Gives each of `rows`, now committed, its acknowledgement or refusal. The acknowledgements
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

/// The fault of a row whose value a column does not take.
fn misfit(column: &str, why: &str) -> Fault {
    Fault::new(Blame::Row, &format!("column `{column}` {why}")).coded("type")
}

fn push_shown(to: &mut Vec<u8>, value: impl std::fmt::Display) {
    use std::io::Write as _;
    write!(to, "{value}").expect("a buffer takes what is written to it");
}

/// How a request ends whose record does not give each member one value. JSON has no name twice and
/// TSV no names, so only logfmt can leave open which of two was meant.
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
