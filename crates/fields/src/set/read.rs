//! Looking fields up.

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
    /// How many fields there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    /// True when there is no field.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The name of the set itself, if it has one.
    #[must_use]
    pub fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    /// How names are compared here.
    #[must_use]
    pub const fn case(&self) -> Case {
        self.case
    }

    /// What this set takes at most.
    #[must_use]
    pub const fn limits(&self) -> crate::Limits {
        self.limits
    }

    /// Field number `index`, counted from 0.
    #[must_use]
    pub fn field(&self, index: usize) -> Option<Field<'_>> {
        self.entries.get(index).map(|entry| self.read(*entry))
    }

    /// The value of the first field of that name.
    #[inline]
    #[must_use]
    pub fn get(&self, name: &(impl AsName + ?Sized)) -> Option<Value<'_>> {
        self.get_with(name, self.case)
    }

    /// The value of the first field of that name, spelled so.
    #[must_use]
    pub fn get_exact(&self, name: &(impl AsName + ?Sized)) -> Option<Value<'_>> {
        self.get_with(name, Case::Exact)
    }

    /// The value of the first field of that name, whatever its case.
    #[must_use]
    pub fn get_ignore_case(&self, name: &(impl AsName + ?Sized)) -> Option<Value<'_>> {
        self.get_with(name, Case::Ignored)
    }

    #[inline]
    fn get_with(&self, name: &(impl AsName + ?Sized), case: Case) -> Option<Value<'_>> {
        let index = self.find(name.as_name(), name.tag(), case, 0)?;
        Some(self.value_of(self.entries[index]))
    }

    /// The value of the first field of that name, or `default` when there is none, or when it is
    /// NULL or empty.
    #[must_use]
    pub fn get_or<'a>(&'a self, name: &(impl AsName + ?Sized), default: &'a [u8]) -> &'a [u8] {
        match self.get(name).and_then(Value::bytes) {
            None | Some([]) => default,
            Some(bytes) => bytes,
        }
    }

    /// The values of all fields of that name, in their order.
    pub fn get_all<'a>(
        &'a self,
        name: &'a (impl AsName + ?Sized),
    ) -> impl DoubleEndedIterator<Item = Value<'a>> {
        self.get_all_with(name, self.case)
    }

    /// As [`Self::get_all`], with names compared like that.
    pub fn get_all_with<'a>(
        &'a self,
        name: &'a (impl AsName + ?Sized),
        case: Case,
    ) -> impl DoubleEndedIterator<Item = Value<'a>> {
        let (bytes, tag) = (name.as_name(), name.tag());
        let wanted =
            move |entry: &&Entry| entry.tag == tag && same(self.name_of(**entry), bytes, case);
        self.entries.iter().filter(wanted).map(|entry| self.value_of(*entry))
    }

    /// The number of the first field of that name.
    #[must_use]
    pub fn position(&self, name: &(impl AsName + ?Sized)) -> Option<usize> {
        self.position_from(name, 0)
    }

    /// The number of the first field of that name at `from` or behind it.
    #[must_use]
    pub fn position_from(&self, name: &(impl AsName + ?Sized), from: usize) -> Option<usize> {
        self.find(name.as_name(), name.tag(), self.case, from)
    }

    /// The number of the first field of that name, with names compared like that.
    #[must_use]
    pub fn position_with(&self, name: &(impl AsName + ?Sized), case: Case) -> Option<usize> {
        self.find(name.as_name(), name.tag(), case, 0)
    }

    /// The number of a field that has the name of field number `index` of `names`, compared as
    /// `names` does: the one at `hint` if it has, else the first.
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

    /// True when more than one field has the name of field number `index` of `names`.
    pub(crate) fn is_repeated_like(&self, names: &Self, index: usize) -> bool {
        let Some(&wanted) = names.entries.get(index) else { return false };
        let (name, tag, case) = (names.name_of(wanted), wanted.tag, names.case);
        let first = self.find(name, tag, case, 0);
        first.and_then(|first| self.find(name, tag, case, first + 1)).is_some()
    }

    /// The value of field number `index`; NULL when there is none.
    pub(crate) fn value_at(&self, index: usize) -> Value<'_> {
        self.entries.get(index).map_or(Value::Null, |entry| self.value_of(*entry))
    }

    /// True when there is a field of that name.
    #[must_use]
    pub fn contains(&self, name: &(impl AsName + ?Sized)) -> bool {
        self.position(name).is_some()
    }

    /// False when one bit tells that there is no field of that name; else it must be looked for.
    #[doc(hidden)]
    #[must_use]
    pub fn may_have(&self, name: &(impl AsName + ?Sized)) -> bool {
        self.mask & name.tag().bit() != 0
    }

    /// False when there is no field of any of these names; else each must be looked for.
    #[inline]
    #[must_use]
    pub const fn may_have_any(&self, names: NameSet) -> bool {
        self.mask & names.bits() != 0
    }

    /// How many fields have that name.
    #[must_use]
    pub fn count(&self, name: &(impl AsName + ?Sized)) -> usize {
        self.get_all(name).count()
    }

    /// True when at most one field has that name.
    #[must_use]
    pub fn is_unique(&self, name: &(impl AsName + ?Sized)) -> bool {
        self.is_unique_with(name, self.case)
    }

    /// As [`Self::is_unique`], with names compared like that.
    #[must_use]
    pub fn is_unique_with(&self, name: &(impl AsName + ?Sized), case: Case) -> bool {
        // Nearly all names come once, and this is all that it costs to see that.
        self.repeated & name.tag().bit() == 0 || self.get_all_with(name, case).nth(1).is_none()
    }

    /// True when the first field of that name lies as a line in its canonical spelling: one space behind
    /// the colon, and nothing between the value and the end of the line.
    #[must_use]
    pub fn is_canonical_line(&self, name: &(impl AsName + ?Sized)) -> bool {
        let Some(index) = self.find(name.as_name(), name.tag(), self.case, 0) else { return false };
        let entry = self.entries[index];
        let (start, end) = (entry.value as usize, entry.value as usize + entry.value_length());
        // The colon is one byte, so a value that begins two bytes behind the name has one blank before it.
        entry.has(LINE)
            && start == entry.name as usize + entry.name_length() + 2
            && self.byte(start - 1) == Some(b' ')
            && self.line_end(entry) == end + 2
    }

    /// The byte at a position of an entry.
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

    /// The fields whose name fits `pattern`: `*` stands for any bytes, `?` for one.
    pub fn matching<'a>(&'a self, pattern: &'a [u8]) -> impl Iterator<Item = Field<'a>> {
        self.iter().filter(|field| glob::fits(pattern, field.name))
    }

    /// True when somebody asked for that field by [`Self::take_note`].
    #[must_use]
    pub fn is_read(&self, index: usize) -> bool {
        self.entries.get(index).is_some_and(|entry| entry.has(READ))
    }

    /// Bytes that are taken, needed or not: at most twice what is needed, and 512.
    #[must_use]
    pub fn bytes_used(&self) -> usize {
        self.used()
    }

    /// Bytes of memory held, used or not.
    #[must_use]
    pub fn bytes_held(&self) -> usize {
        self.head.as_ref().map_or(0, |head| head.held())
            + self.bytes.capacity()
            + self.entries.capacity() * size_of::<Entry>()
    }

    /// What the set holds.
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
