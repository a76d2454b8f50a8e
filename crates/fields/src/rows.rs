//! Rows with the same columns. The names are stored once, and the values of a whole batch are stored in one buffer.
//!
//! ```text
//!   bytes      |value|value|value| … |value|         row after row, column after column
//!   ends       [end, end, end, …]                    4 bytes per cell
//!   kinds      2 bits per cell                       bytes, number, NULL or JSON
//!   invariant  ends never decrease, the last is bytes.len(); cells = rows × columns
//! ```

use std::fmt;
use std::sync::Arc;

use crate::buffer::Buffer;
use crate::name::AsName;
use crate::set::Kind;
use crate::{Case, Field, Fields, Lookup, Value};

/// The maximum length of the values in a batch, in bytes.
pub const ROWS_BYTES_MAX: usize = u32::MAX as usize;

/// The names of the columns, which all rows share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schema(Arc<Fields>);

impl Schema {
    /// Creates a schema. `case` determines how names are compared.
    ///
    /// # Panics
    /// If a name is longer than 65,535 bytes.
    pub fn new<N: AsName>(names: impl IntoIterator<Item = N>, case: Case) -> Self {
        let names = names.into_iter().map(|name| (name, Value::Null));
        Self(Arc::new(names.collect::<Fields>().with_case(case)))
    }

    /// The number of columns.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no columns.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names in their order.
    pub fn names(&self) -> impl DoubleEndedIterator<Item = &[u8]> + ExactSizeIterator {
        self.0.names()
    }

    /// The name of a column.
    #[must_use]
    pub fn name(&self, column: usize) -> Option<&[u8]> {
        self.0.field(column).map(|field| field.name)
    }

    /// How names are compared.
    #[must_use]
    pub fn case(&self) -> Case {
        self.0.case()
    }

    /// The index of the first column with this name.
    #[must_use]
    pub fn position(&self, name: &(impl AsName + ?Sized)) -> Option<usize> {
        self.0.position(name)
    }
}

/// Why a batch rejected a row. The batch is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowError {
    /// The values would exceed [`ROWS_BYTES_MAX`].
    Bytes,
    /// The row has more or fewer values than there are columns.
    Values {
        /// The number of columns.
        wanted: usize,
        /// The number of values, or the number of values that were read before the error.
        found: usize,
    },
    /// The record has no field with the name of this column.
    Absent {
        /// The index of the column, counted from 0.
        column: usize,
    },
    /// The record has several fields with the name of this column, which is ambiguous.
    Repeated {
        /// The index of the column, counted from 0.
        column: usize,
    },
}

impl fmt::Display for RowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes => write!(f, "rows of more than {ROWS_BYTES_MAX} bytes"),
            Self::Values { wanted, found } => write!(f, "{found} values for {wanted} columns"),
            Self::Absent { column } => write!(f, "nothing for column {column}"),
            Self::Repeated { column } => write!(f, "more than one value for column {column}"),
        }
    }
}

impl std::error::Error for RowError {}

/// A batch of rows in their order.
///
/// ```
/// use fields::{Case, Lookup, Rows, Schema, Value};
///
/// let mut rows = Rows::new(Schema::new(["at", "path"], Case::Exact));
/// rows.push([Value::Number(b"17"), Value::Bytes(b"/")])?;
/// rows.push([Value::Number(b"18"), Value::Null])?;
/// let row = rows.row(1).unwrap();
/// assert_eq!(row.get("at"), Some(Value::Number(b"18")));
/// assert_eq!(row.get("path"), Some(Value::Null));
/// # Ok::<(), fields::RowError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Rows {
    schema: Schema,
    cells: Cells,
    /// The number of rows. It is not derived from the cells, because there may be no columns.
    count: usize,
}

/// Consecutive values.
#[derive(Clone, Debug, Default)]
struct Cells {
    bytes: Buffer,
    ends: Vec<u32>,
    kinds: Vec<u64>,
}

/// The number of cells whose kinds fit in one word.
const KINDS_A_WORD: usize = 32;

impl Cells {
    #[inline]
    fn push(&mut self, value: Value<'_>) -> Result<(), RowError> {
        let bytes = value.bytes_or_empty();
        if bytes.len() > ROWS_BYTES_MAX - self.bytes.len() {
            return Err(RowError::Bytes);
        }
        self.bytes.extend_from_slice(bytes);
        let (word, shift) = place(self.ends.len());
        if word == self.kinds.len() {
            self.kinds.push(0);
        }
        let bits = match Kind::of(value) {
            Kind::Bytes => 0,
            Kind::Number => 1,
            Kind::Null => 2,
            Kind::Json => 3,
        };
        self.kinds[word] = self.kinds[word] & !(3 << shift) | bits << shift;
        let end = u32::try_from(self.bytes.len()).expect("room was checked against 32 bits");
        self.ends.push(end);
        Ok(())
    }

    #[inline]
    fn value(&self, cell: usize) -> Value<'_> {
        let start = if cell == 0 { 0 } else { self.ends[cell - 1] as usize };
        let bytes = &self.bytes[start..self.ends[cell] as usize];
        let (word, shift) = place(cell);
        match self.kinds[word] >> shift & 3 {
            0 => Value::Bytes(bytes),
            1 => Value::Number(bytes),
            2 => Value::Null,
            _ => Value::Json(bytes),
        }
    }

    fn truncate(&mut self, count: usize) {
        self.ends.truncate(count);
        self.kinds.truncate(count.div_ceil(KINDS_A_WORD));
        self.bytes.truncate(self.ends.last().map_or(0, |&end| end as usize));
    }
}

impl Rows {
    /// Creates an empty batch with this schema.
    #[must_use]
    pub const fn new(schema: Schema) -> Self {
        let cells = Cells { bytes: Buffer::new(), ends: Vec::new(), kinds: Vec::new() };
        Self { schema, cells, count: 0 }
    }

    /// Creates an empty batch with this schema and capacity for `rows` rows and `bytes` bytes of values.
    #[must_use]
    pub fn with_capacity(schema: Schema, rows: usize, bytes: usize) -> Self {
        let count = rows.saturating_mul(schema.len());
        let cells = Cells {
            bytes: Buffer::with_capacity(bytes),
            ends: Vec::with_capacity(count),
            kinds: Vec::with_capacity(count.div_ceil(KINDS_A_WORD)),
        };
        Self { schema, cells, count: 0 }
    }

    /// Appends a row with one value for each column, and returns its index.
    ///
    /// # Errors
    /// If there are more or fewer values than columns, or too many bytes.
    pub fn push<'v>(
        &mut self,
        values: impl IntoIterator<Item = Value<'v>>,
    ) -> Result<usize, RowError> {
        let wanted = self.schema.len();
        let mut found = 0;
        for value in values {
            found += 1;
            let pushed = if found > wanted { Ok(()) } else { self.cells.push(value) };
            if pushed.is_err() || found > wanted {
                self.truncate(self.count);
                return Err(pushed.err().unwrap_or(RowError::Values { wanted, found }));
            }
        }
        if found != wanted {
            self.truncate(self.count);
            return Err(RowError::Values { wanted, found });
        }
        self.count += 1;
        Ok(self.count - 1)
    }

    /// Appends a row with the values of `record` under the names of the columns, and returns its index. Other fields of
    /// the record are ignored. Names are compared as in the schema.
    ///
    /// # Errors
    /// If the record has no value or several values for a column, or there are too many bytes.
    ///
    /// ```
    /// use fields::{Case, Fields, RowError, Rows, Schema, Value};
    ///
    /// let mut rows = Rows::new(Schema::new(["at", "path"], Case::Exact));
    /// let mut record = Fields::from_iter([("path", "/"), ("user", "x"), ("at", "17")]);
    /// assert_eq!(rows.push_record(&record), Ok(0));
    /// assert_eq!(rows.value(0, 0), Some(Value::Bytes(b"17")));
    /// record.append("path", "/other")?;
    /// assert_eq!(rows.push_record(&record), Err(RowError::Repeated { column: 1 }));
    /// # Ok::<(), fields::FieldError>(())
    /// ```
    pub fn push_record(&mut self, record: &Fields) -> Result<usize, RowError> {
        let names = &self.schema.0;
        // Only a record with more fields than columns can repeat the name of a column.
        let spare = record.len() > names.len();
        let mut next = 0;
        for column in 0..names.len() {
            let pushed = match record.position_like(names, column, next) {
                None => Err(RowError::Absent { column }),
                Some(_) if spare && record.is_repeated_like(names, column) => {
                    Err(RowError::Repeated { column })
                }
                Some(place) => {
                    next = place + 1;
                    self.cells.push(record.value_at(place))
                }
            };
            if let Err(error) = pushed {
                self.truncate(self.count);
                return Err(error);
            }
        }
        self.count += 1;
        Ok(self.count - 1)
    }

    /// The names of the columns.
    #[must_use]
    pub const fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The number of rows.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether there are no rows.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The value in a row and a column, both counted from 0.
    #[inline]
    #[must_use]
    pub fn value(&self, row: usize, column: usize) -> Option<Value<'_>> {
        if row >= self.count || column >= self.schema.len() {
            return None;
        }
        Some(self.cells.value(row * self.schema.len() + column))
    }

    /// The row at index `row`, counted from 0.
    #[must_use]
    pub fn row(&self, row: usize) -> Option<Row<'_>> {
        (row < self.count).then_some(Row { rows: self, row })
    }

    /// All rows in their order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Row<'_>> + ExactSizeIterator {
        (0..self.count).map(|row| Row { rows: self, row })
    }

    /// Removes all rows except the first `count`.
    pub fn truncate(&mut self, count: usize) {
        self.count = self.count.min(count);
        self.cells.truncate(self.count * self.schema.len());
    }

    /// Removes all rows and keeps the memory.
    pub fn clear(&mut self) {
        self.truncate(0);
    }

    /// Removes all rows, keeps the memory, and changes the schema.
    pub fn reshape(&mut self, schema: Schema) {
        self.clear();
        self.schema = schema;
    }

    /// Frees memory, down to capacity for `cells` cells and `bytes` bytes or for the current content, whichever is
    /// larger.
    pub fn shrink_to(&mut self, cells: usize, bytes: usize) {
        self.cells.ends.shrink_to(cells);
        self.cells.kinds.shrink_to(cells.div_ceil(KINDS_A_WORD));
        self.cells.bytes.shrink_to(bytes);
    }

    /// The allocated memory in bytes, whether used or not.
    #[must_use]
    pub const fn bytes_held(&self) -> usize {
        self.cells.bytes.capacity()
            + self.cells.ends.capacity() * size_of::<u32>()
            + self.cells.kinds.capacity() * size_of::<u64>()
    }
}

const fn place(cell: usize) -> (usize, usize) {
    (cell / KINDS_A_WORD, cell % KINDS_A_WORD * 2)
}

/// One row of a batch. It can be read like [`Fields`].
#[derive(Clone, Copy)]
pub struct Row<'a> {
    rows: &'a Rows,
    row: usize,
}

impl<'a> Row<'a> {
    /// The value in a column.
    #[must_use]
    pub fn value(&self, column: usize) -> Option<Value<'a>> {
        self.rows.value(self.row, column)
    }

    /// The value of the first column with this name.
    #[must_use]
    pub fn get(&self, name: &(impl AsName + ?Sized)) -> Option<Value<'a>> {
        self.value(self.rows.schema.position(name)?)
    }

    /// The name and the value of each column.
    pub fn iter(&self) -> impl Iterator<Item = Field<'a>> + use<'a> {
        let row = *self;
        let names = row.rows.schema.0.names();
        let value = move |column| row.value(column).unwrap_or(Value::Null);
        names.enumerate().map(move |(column, name)| Field {
            name,
            value: value(column),
            sensitive: false,
        })
    }

    /// Copies the row to a separate set.
    #[must_use]
    pub fn to_fields(&self) -> Fields {
        let mut fields = self.rows.schema.0.like();
        fields.extend(self.iter());
        fields
    }
}

impl Lookup for Row<'_> {
    fn len(&self) -> usize {
        self.rows.schema.len()
    }

    fn field(&self, index: usize) -> Option<Field<'_>> {
        let name = self.rows.schema.0.field(index)?.name;
        Some(Field { name, value: self.value(index)?, sensitive: false })
    }

    fn position_from(&self, name: &(impl AsName + ?Sized), from: usize) -> Option<usize> {
        self.rows.schema.0.position_from(name, from)
    }
}

impl From<Row<'_>> for Fields {
    fn from(row: Row<'_>) -> Self {
        row.to_fields()
    }
}

impl fmt::Debug for Row<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests;
