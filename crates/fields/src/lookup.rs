//! What can be read like a set of fields.

use crate::name::AsName;
use crate::{Field, Value};

/// What can be read like a set of fields: [`Fields`](crate::Fields) and the [`Row`](crate::Row) of a batch.
pub trait Lookup {
    /// How many fields there are.
    fn len(&self) -> usize;

    /// Field number `index`, counted from 0.
    fn field(&self, index: usize) -> Option<Field<'_>>;

    /// The number of the first field of that name at `from` or behind it.
    fn position_from(&self, name: &(impl AsName + ?Sized), from: usize) -> Option<usize>;

    /// True when there is no field.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of the first field of that name.
    fn position(&self, name: &(impl AsName + ?Sized)) -> Option<usize> {
        self.position_from(name, 0)
    }

    /// The value of the first field of that name.
    fn get(&self, name: &(impl AsName + ?Sized)) -> Option<Value<'_>> {
        self.position(name).and_then(|index| self.field(index)).map(|field| field.value)
    }

    /// All fields in their order.
    fn fields(&self) -> impl Iterator<Item = Field<'_>> {
        (0..self.len()).filter_map(|index| self.field(index))
    }
}
