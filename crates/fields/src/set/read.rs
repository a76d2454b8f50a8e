//! Lookup of fields.

use super::{Entry, Fields, LINE, READ, Stats};
use crate::name::{AsName, NameSet, same};
use crate::{Case, Field, Lookup, Value, glob};

impl Lookup for Fields {
    fn len(&self) -> usize {
        self.entries.len()
    }

    fn field(&self, index: usize) -> Option<Field<'_>> {
        Self::field(self, index)
    }

    fn position_from(&self, name: &(impl AsName + ?Sized), from: usize) -> Option<usize> {
        Self::position_from(self, name, from)
    }

    fn fields(&self) -> impl Iterator<Item = Field<'_>> {
        self.iter()
    }
}

impl Fields {
    /// The number of fields.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no fields.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The title of the set, if it has one.
    #[must_use]
    pub fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    /// How names are compared.
    #[must_use]
    pub const fn case(&self) -> Case {
        self.case
    }

    /// The limits of this set.
    #[must_use]
    pub const fn limits(&self) -> crate::Limits {
        self.limits
    }

    /// The field at `index`, counted from 0.
    #[must_use]
    pub fn field(&self, index: usize) -> Option<Field<'_>> {
        self.entries.get(index).map(|entry| self.read(*entry))
    }

    /// The value of the first field with this name.
    #[inline]
    #[must_use]
    pub fn get(&self, name: &(impl AsName + ?Sized)) -> Option<Value<'_>> {
        self.get_with(name, self.case)
    }

    /// The value of the first field with this name, compared byte by byte.
    #[must_use]
    pub fn get_exact(&self, name: &(impl AsName + ?Sized)) -> Option<Value<'_>> {
        self.get_with(name, Case::Exact)
    }

    /// The value of the first field with this name, compared without case.
    #[must_use]
    pub fn get_ignore_case(&self, name: &(impl AsName + ?Sized)) -> Option<Value<'_>> {
        self.get_with(name, Case::Ignored)
    }

    #[inline]
    fn get_with(&self, name: &(impl AsName + ?Sized), case: Case) -> Option<Value<'_>> {
        let index = self.find(name.as_name(), name.tag(), case, 0)?;
        Some(self.value_of(self.entries[index]))
    }

    /// The value of the first field with this name. If there is no such field, or if the value is NULL or empty:
    /// `default`.
    #[must_use]
    pub fn get_or<'a>(&'a self, name: &(impl AsName + ?Sized), default: &'a [u8]) -> &'a [u8] {
        match self.get(name).and_then(Value::bytes) {
            None | Some([]) => default,
            Some(bytes) => bytes,
        }
    }

    /// The values of all fields with this name, in their order.
    pub fn get_all<'a>(
        &'a self,
        name: &'a (impl AsName + ?Sized),
    ) -> impl DoubleEndedIterator<Item = Value<'a>> {
        self.get_all_with(name, self.case)
    }

    /// Like [`Self::get_all`], with `case` for the comparison of names.
    pub(crate) fn get_all_with<'a>(
        &'a self,
        name: &'a (impl AsName + ?Sized),
        case: Case,
    ) -> impl DoubleEndedIterator<Item = Value<'a>> {
        let (bytes, tag) = (name.as_name(), name.tag());
        let wanted =
            move |entry: &&Entry| entry.tag == tag && same(self.name_of(**entry), bytes, case);
        self.entries.iter().filter(wanted).map(|entry| self.value_of(*entry))
    }

    /// The index of the first field with this name.
    #[must_use]
    pub fn position(&self, name: &(impl AsName + ?Sized)) -> Option<usize> {
        self.position_from(name, 0)
    }

    /// The index of the first field with this name at or after `from`.
    #[must_use]
    pub fn position_from(&self, name: &(impl AsName + ?Sized), from: usize) -> Option<usize> {
        self.find(name.as_name(), name.tag(), self.case, from)
    }

    /// The index of the first field with this name, with `case` for the comparison of names.
    #[must_use]
    pub fn position_with(&self, name: &(impl AsName + ?Sized), case: Case) -> Option<usize> {
        self.find(name.as_name(), name.tag(), case, 0)
    }

    /// The index of a field with the name of the field at `index` of `names`, compared as in `names`. If the field at
    /// `hint` has this name, it is returned. Otherwise the first one is returned.
    pub(crate) fn position_like(&self, names: &Self, index: usize, hint: usize) -> Option<usize> {
        let wanted = *names.entries.get(index)?;
        let name = names.name_of(wanted);
        let fits =
            |entry: &Entry| entry.tag == wanted.tag && same(self.name_of(*entry), name, names.case);
        if self.entries.get(hint).is_some_and(fits) {
            return Some(hint);
        }
        self.find(name, wanted.tag, names.case, 0)
    }

    /// Whether several fields have the name of the field at `index` of `names`.
    pub(crate) fn is_repeated_like(&self, names: &Self, index: usize) -> bool {
        let Some(&wanted) = names.entries.get(index) else { return false };
        let (name, tag, case) = (names.name_of(wanted), wanted.tag, names.case);
        let first = self.find(name, tag, case, 0);
        first.and_then(|first| self.find(name, tag, case, first + 1)).is_some()
    }

    /// The value of the field at `index`. NULL if there is no such field.
    pub(crate) fn value_at(&self, index: usize) -> Value<'_> {
        self.entries.get(index).map_or(Value::Null, |entry| self.value_of(*entry))
    }

    /// Whether there is a field with this name.
    #[must_use]
    pub fn contains(&self, name: &(impl AsName + ?Sized)) -> bool {
        self.position(name).is_some()
    }

    /// Tests one bit. Returns false if there is certainly no field with this name.
    #[doc(hidden)]
    #[must_use]
    pub fn may_have(&self, name: &(impl AsName + ?Sized)) -> bool {
        self.mask & name.tag().bit() != 0
    }

    /// Tests the bits of several names. Returns false if there is certainly no field with any of these names.
    #[inline]
    #[must_use]
    pub const fn may_have_any(&self, names: NameSet) -> bool {
        self.mask & names.bits() != 0
    }

    /// Whether at most one field has this name.
    #[must_use]
    pub fn is_unique(&self, name: &(impl AsName + ?Sized)) -> bool {
        self.is_unique_with(name, self.case)
    }

    /// Like [`Self::is_unique`], with `case` for the comparison of names.
    #[must_use]
    pub fn is_unique_with(&self, name: &(impl AsName + ?Sized), case: Case) -> bool {
        // Nearly all names occur once. For them, the first test is the whole cost.
        self.repeated & name.tag().bit() == 0 || self.get_all_with(name, case).nth(1).is_none()
    }

    /// Whether the first field with this name is stored as a line in canonical form: one space after the colon, and no
    /// blank between the value and the end of the line.
    #[must_use]
    pub fn is_canonical_line(&self, name: &(impl AsName + ?Sized)) -> bool {
        let Some(index) = self.find(name.as_name(), name.tag(), self.case, 0) else { return false };
        let entry = self.entries[index];
        let (start, end) = (entry.value as usize, entry.value as usize + entry.value_length());
        // The colon is one byte. A value that begins two bytes after the name has exactly one blank before it.
        entry.has(LINE)
            && start == entry.name as usize + entry.name_length() + 2
            && self.byte(start - 1) == Some(b' ')
            && self.line_end(entry) == end + 2
    }

    /// The byte at a position.
    fn byte(&self, place: usize) -> Option<u8> {
        match place.checked_sub(self.head_length()) {
            Some(own) => self.bytes.get(own).copied(),
            None => self.head.as_deref()?.get(place).copied(),
        }
    }

    /// All fields in their order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Field<'_>> + ExactSizeIterator + Clone {
        self.entries.iter().map(|entry| self.read(*entry))
    }

    /// All names in the order of the fields.
    pub fn names(&self) -> impl DoubleEndedIterator<Item = &[u8]> + ExactSizeIterator {
        self.iter().map(|field| field.name)
    }

    /// All values in the order of the fields.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = Value<'_>> + ExactSizeIterator {
        self.iter().map(|field| field.value)
    }

    /// The fields whose name matches `pattern`: `*` matches any bytes, `?` matches one byte.
    pub fn matching<'a>(&'a self, pattern: &'a [u8]) -> impl Iterator<Item = Field<'a>> {
        self.iter().filter(|field| glob::fits(pattern, field.name))
    }

    /// Whether the field at `index` was looked up with [`Self::get_and_mark_read`].
    #[must_use]
    pub fn is_read(&self, index: usize) -> bool {
        self.entries.get(index).is_some_and(|entry| entry.has(READ))
    }

    /// The number of bytes in use, live or dead: at most twice the number of live bytes plus 512.
    #[must_use]
    pub fn bytes_used(&self) -> usize {
        self.used()
    }

    /// The allocated memory in bytes, whether used or not.
    #[must_use]
    pub fn bytes_held(&self) -> usize {
        self.head.as_ref().map_or(0, |head| head.held())
            + self.bytes.capacity()
            + self.entries.capacity() * size_of::<Entry>()
    }

    /// Statistics of the set.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats {
            fields: self.len(),
            bytes_live: self.live(),
            bytes_used: self.used(),
            bytes_held: self.bytes_held(),
            adopted: self.head.is_some(),
        }
    }
}
