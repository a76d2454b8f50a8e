//! The effects of a statement per row: how many rows it stored or changed, and what it returned.

use fields::{Case, Rows, Schema, Value};

use crate::Affected;
use crate::fault::Fault;

/// The effects of the rows of one part, in their order.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    /// The acknowledgements need the effects.
    wanted: bool,
    /// The caller needs the counts in any case.
    counts_always: bool,
    counts: Vec<u64>,
    /// The first row that each statement returned.
    returned: Rows,
}

impl Effects {
    /// Returns effects that always count.
    pub(crate) fn counting() -> Self {
        Self { counts_always: true, ..Self::default() }
    }

    /// Clears the effects. `columns` are those that statements return and acknowledgements name. Nothing is kept unless
    /// `wanted`.
    pub(crate) fn begin<N: fields::AsName>(
        &mut self,
        wanted: bool,
        columns: impl IntoIterator<Item = N>,
    ) {
        self.wanted = wanted || self.counts_always;
        self.counts.clear();
        self.returned.reshape(Schema::new(columns, Case::Exact));
    }

    /// Whether the count of each single row is needed.
    pub(crate) const fn are_wanted(&self) -> bool {
        self.wanted
    }

    /// Records how many rows the statement of the next row stored or changed, and what it returned.
    pub(crate) fn push<'v>(
        &mut self,
        count: u64,
        returned: impl IntoIterator<Item = Value<'v>>,
    ) -> Result<(), Fault> {
        if !self.wanted {
            return Ok(());
        }
        self.counts.push(count);
        let mut values = returned.into_iter();
        let columns = self.returned.schema().len();
        // A statement that returned no row has no values.
        let values = (0..columns).map(|_| values.next().unwrap_or(Value::Null));
        self.returned
            .push(values)
            .map(drop)
            .map_err(|error| Fault::new(crate::fault::Blame::Statement, &error.to_string()))
    }

    /// Returns the number of columns that are kept.
    pub(crate) fn columns(&self) -> usize {
        self.returned.schema().len()
    }

    /// Returns the count of row number `index` of the part.
    pub(crate) fn count(&self, index: usize) -> u64 {
        self.counts.get(index).copied().unwrap_or_default()
    }

    /// Returns what row number `index` of the part returned for this column.
    pub(crate) fn returned(&self, index: usize, column: usize) -> Value<'_> {
        self.returned.value(index, column).unwrap_or(Value::Null)
    }
}

/// The rows whose statement stored or changed nothing, if each row must.
#[derive(Debug)]
pub(crate) struct RowsWithoutEffect {
    affected: Affected,
    rows: Vec<usize>,
}

impl RowsWithoutEffect {
    pub(crate) const fn new(affected: Affected) -> Self {
        Self { affected, rows: Vec::new() }
    }

    /// Records that the statement of `row` stored or changed `count` rows.
    pub(crate) fn note(&mut self, row: usize, count: u64) {
        if count == 0 && self.affected == Affected::Row {
            self.rows.push(row);
        }
    }

    /// Returns the fault of all these rows, if there are any.
    pub(crate) fn fault(self, of_one: impl FnOnce() -> Fault) -> Result<(), Fault> {
        if self.rows.is_empty() { Ok(()) } else { Err(of_one().at_all(self.rows)) }
    }
}
