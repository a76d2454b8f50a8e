//! Read access to named values.

use crate::name::AsName;
use crate::{Field, Value};

/// Read access to named values: [`Fields`](crate::Fields) and the [`Row`](crate::Row) of a batch.
pub trait Lookup {
    /// The number of fields.
    fn len(&self) -> usize;

    /// The field at `index`, counted from 0.
    fn field(&self, index: usize) -> Option<Field<'_>>;

    /// The index of the first field with this name at or after `from`.
    fn position_from(&self, name: &(impl AsName + ?Sized), from: usize) -> Option<usize>;

    /// Whether there are no fields.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The index of the first field with this name.
    fn position(&self, name: &(impl AsName + ?Sized)) -> Option<usize> {
        self.position_from(name, 0)
    }

    /// The value of the first field with this name.
    fn get(&self, name: &(impl AsName + ?Sized)) -> Option<Value<'_>> {
        self.position(name).and_then(|index| self.field(index)).map(|field| field.value)
    }

    /// All fields in their order.
    fn fields(&self) -> impl Iterator<Item = Field<'_>> {
        (0..self.len()).filter_map(|index| self.field(index))
    }
}
