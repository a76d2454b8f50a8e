//! Sends rows: one array per column, or one statement per row.

use std::borrow::Cow;
use std::future::{Future, poll_fn};
use std::ops::Range;
use std::pin::pin;
use std::task::Poll;

use exchange::{Batch, Stop};
use futures_util::StreamExt;
use tokio_postgres::{Client, Error, Row, Statement};

use super::decode::{self, Decode};
use super::fault;
use super::wire::Text;
use crate::Affected;
use crate::digits::Digits;
use crate::effects::{Effects, RowsWithoutEffect};
use crate::fault::Fault;
use crate::rows::{Rows, Shape};
use sql::Array;
use sql::column::{Fit, Takes, push_hexadecimal};

/// The maximum size of each column's array that is kept from one batch to the next, in bytes.
const KEPT_BYTES_MAX: usize = 1024 * 1024;

/// The number of rows of a statement that are sent without waiting, so that they share one round trip.
const AHEAD_MAX: usize = 256;

/// Returns the parameters of a row as texts.
pub(super) fn parameters<'r>(
    rows: &'r Rows,
    row: usize,
    (shape, takes): (&Shape, &[Takes]),
    batch: &Batch,
) -> Result<Vec<Option<Cow<'r, [u8]>>>, Fault> {
    let fitted = takes.iter().enumerate().map(|it| rows.fitted(row, shape, it, batch));
    let text = |fit| match fit {
        Fit::Null => None,
        Fit::Text(text) | Fit::Number(text) => Some(text),
        Fit::Bytes(bytes) => {
            let mut text = Vec::with_capacity(2 + 2 * bytes.len());
            push_hexadecimal(&mut text, &bytes);
            Some(text.into())
        }
    };
    fitted.map(|fit| fit.map(text)).collect()
}

pub(super) fn texts<'t>(values: &'t [Option<Cow<'_, [u8]>>]) -> Vec<Text<'t>> {
    values.iter().map(|value| Text(value.as_deref())).collect()
}

/// Inserts the rows whose columns are in `arrays`.
pub(super) async fn run_arrays(
    client: &Client,
    (insert, absent): (&Statement, Option<&Statement>),
    affected: Affected,
    part: Range<usize>,
    arrays: &[Text<'_>],
    effects: &mut Effects,
) -> Result<(), Fault> {
    let told = |error: Error| fault::of(&error);
    let count = client.execute_raw(insert, arrays.iter().copied()).await.map_err(told)?;
    let is_whole = count == part.len() as u64;
    if !is_whole && affected == Affected::Row {
        // Rows that already exist may be kept, but no others.
        let dropped = match absent {
            None => true,
            Some(absent) => is_absent(client, absent, arrays).await.map_err(told)?,
        };
        if dropped {
            // The key may be stored differently than when the statement was prepared, or a rule was created since then.
            let of_types = absent.is_some() || count > part.len() as u64;
            return Err(Fault::ignored().of_types(of_types));
        }
    }
    // The caller tries the rows one by one to find the row.
    if !is_whole && effects.are_wanted() && part.len() > 1 {
        return Err(Fault::ignored());
    }
    let each = if is_whole { 1 } else { count };
    part.into_iter().try_for_each(|_| effects.push(each, []))
}

/// The effect of the statement of a row.
#[derive(Debug)]
pub(super) struct Ran {
    /// The number of rows that it stored or changed.
    count: u64,
    /// The first row that it returned.
    found: Option<Row>,
    /// It stored none because a row with the same key exists.
    is_there: bool,
}

/// The faults of a row that was not stored.
#[derive(Clone, Copy)]
pub(super) struct Refuse {
    /// Converts an error of the server.
    pub(super) error: fn(&Error) -> Fault,
    /// The fault if the statement stored or changed nothing.
    pub(super) idle: fn() -> Fault,
}

/// Runs a statement for each row of `part`, in their order. `given` returns the values of a row, and `run` executes the
/// statement with them.
pub(super) async fn run_rows<V, F: Future<Output = Result<Ran, Error>>>(
    given: impl Fn(usize) -> Result<V, Fault>,
    run: impl Fn(V) -> F,
    plan: &[Decode],
    (affected, refuse): (Affected, Refuse),
    part: Range<usize>,
    effects: &mut Effects,
    stop: &Stop,
) -> Result<(), Fault> {
    let mut idle = RowsWithoutEffect::new(affected);
    let mut digits = Digits::default();
    let mut next = part.start;
    while next < part.end {
        let end = part.end.min(next + AHEAD_MAX);
        let given: Vec<V> = (next..end).map(&given).collect::<Result<_, _>>()?;
        let mut sent = Vec::new();
        for (row, values) in (next..end).zip(given) {
            let mut run = Box::pin(run(values));
            // The first poll sends the statement, so they are sent in order.
            let first = poll_fn(|context| Poll::Ready(run.as_mut().poll(context))).await;
            sent.push((row, first, run));
        }
        let mut first_fault = None;
        for (row, first, run) in sent {
            let ended = match first {
                Poll::Ready(ended) => ended,
                Poll::Pending => run.await,
            };
            match ended {
                _ if first_fault.is_some() => {}
                Ok(Ran { count, found, is_there }) => {
                    if !is_there {
                        idle.note(row, count);
                    }
                    if let Some(found) = &found {
                        decode::note(found, plan, &mut digits);
                        effects.push(count, decode::values(found, plan, &digits))?;
                    } else {
                        effects.push(count, [])?;
                    }
                }
                // After the first error the transaction rejects all other statements.
                Err(error) => first_fault = Some((refuse.error)(&error).at(row)),
            }
        }
        if let Some(fault) = first_fault {
            return Err(fault);
        }
        if stop.requested() {
            return Err(Fault::stopped());
        }
        next = end;
    }
    idle.fault(refuse.idle)
}

/// Runs the statement of the settings with these values.
pub(super) async fn run_statement(
    client: &Client,
    (statement, plan): (&Statement, &[Decode]),
    values: Vec<Option<Cow<'_, [u8]>>>,
) -> Result<Ran, Error> {
    let values = texts(&values);
    if plan.is_empty() {
        let count = client.execute_raw(statement, values).await?;
        return Ok(Ran { count, found: None, is_there: false });
    }
    let mut found = pin!(client.query_raw(statement, values).await?);
    let mut first = None;
    while let Some(row) = found.next().await {
        let row = row?;
        first.get_or_insert(row);
    }
    let count = found.rows_affected().unwrap_or_default();
    Ok(Ran { count, found: first, is_there: false })
}

/// Inserts one row, whose columns are in `arrays`, with the statement for many rows.
pub(super) async fn insert_one(
    client: &Client,
    (insert, absent): (&Statement, Option<&Statement>),
    mut arrays: Vec<Array>,
) -> Result<Ran, Error> {
    let values: Vec<Text<'_>> = arrays.iter_mut().map(|array| Text(Some(array.end()))).collect();
    let count = client.execute_raw(insert, values.iter().copied()).await?;
    let is_there = match absent {
        Some(absent) if count == 0 => !is_absent(client, absent, &values).await?,
        _ => false,
    };
    Ok(Ran { count, found: None, is_there })
}

/// Whether any of the rows whose columns are in `arrays` has a key that is not in the table.
async fn is_absent(
    client: &Client,
    absent: &Statement,
    arrays: &[Text<'_>],
) -> Result<bool, Error> {
    let found = client.query_raw(absent, arrays.iter().copied()).await?;
    let found: Vec<_> = pin!(found).collect().await;
    let count = found.into_iter().next().transpose()?;
    Ok(count.is_none_or(|row| row.get::<_, i64>(0) > 0))
}

/// Fills `arrays` with the columns of the rows of `part`.
pub(super) fn fill(
    arrays: &mut [Array],
    (shape, takes): (&Shape, &[Takes]),
    rows: &Rows,
    part: Range<usize>,
    batch: &Batch,
) -> Result<(), Fault> {
    for (array, takes) in arrays.iter_mut().zip(takes.iter().enumerate()) {
        array.begin(KEPT_BYTES_MAX);
        for row in part.clone() {
            array.push(&rows.fitted(row, shape, takes, batch)?);
        }
    }
    Ok(())
}
