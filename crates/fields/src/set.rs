//! The ordered list of named values.

use std::fmt;

/// Bytes of names and values that one set holds at most.
pub const BYTES_MAX: usize = u32::MAX as usize;

/// A value as it was given.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// There is none, which is not the same as an empty one.
    Null,
    /// Bytes; text where they are UTF-8.
    Bytes(&'a [u8]),
    /// The text of a number.
    Number(&'a [u8]),
}

impl<'a> Value<'a> {
    /// The bytes of the value, or none when it is NULL.
    #[must_use]
    pub const fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Self::Null => None,
            Self::Bytes(bytes) | Self::Number(bytes) => Some(bytes),
        }
    }
}

impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("NULL"),
            Self::Bytes(bytes) => write!(f, "\"{}\"", bytes.escape_ascii()),
            Self::Number(bytes) => write!(f, "{}", bytes.escape_ascii()),
        }
    }
}

/// A name and its value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Field<'a> {
    /// Compared byte by byte.
    pub name: &'a [u8],
    /// What it is.
    pub value: Value<'a>,
}

impl fmt::Debug for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={:?}", self.name.escape_ascii(), self.value)
    }
}

/// The set would hold more than [`BYTES_MAX`] bytes. It is as it was before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow;

impl fmt::Display for Overflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a set of fields holds at most {BYTES_MAX} bytes")
    }
}

impl std::error::Error for Overflow {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Null,
    Bytes,
    Number,
}

/// Positions in the buffer; see the picture at the head of the crate.
#[derive(Clone, Copy, Debug)]
struct Entry {
    name: u32,
    value: u32,
    end: u32,
    kind: Kind,
}

/// Names and values in their order, in one buffer.
///
/// ```
/// use fields::{Fields, Value};
///
/// let mut fields = Fields::new();
/// fields.push(b"path", Value::Bytes(b"/"))?;
/// fields.push(b"status", Value::Number(b"200"))?;
/// assert_eq!(fields.get(b"path"), Some(Value::Bytes(b"/")));
/// assert_eq!(fields.get(b"referer"), None);
/// # Ok::<(), fields::Overflow>(())
/// ```
#[derive(Clone, Default)]
pub struct Fields {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

impl Fields {
    /// An empty set that owns no memory.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: Vec::new(), entries: Vec::new() }
    }

    /// An empty set with room for `fields` entries and `bytes` bytes of names and values.
    #[must_use]
    pub fn with_capacity(fields: usize, bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes), entries: Vec::with_capacity(fields) }
    }

    /// Adds a field at the end, also when the name is there already.
    ///
    /// # Errors
    /// When the set would exceed [`BYTES_MAX`].
    pub fn push(&mut self, name: &[u8], value: Value<'_>) -> Result<(), Overflow> {
        let bytes = value.bytes().unwrap_or_default();
        self.room_for(name.len().saturating_add(bytes.len()))?;
        self.open(name)?;
        self.fill(bytes, value.kind())
    }

    /// Adds a field that is NULL until it is [filled](Self::fill).
    pub(crate) fn open(&mut self, name: &[u8]) -> Result<(), Overflow> {
        self.room_for(name.len())?;
        let start = position(self.bytes.len());
        self.bytes.extend_from_slice(name);
        let value = position(self.bytes.len());
        self.entries.push(Entry { name: start, value, end: value, kind: Kind::Null });
        Ok(())
    }

    /// Gives the field opened last its value.
    pub(crate) fn fill(&mut self, bytes: &[u8], kind: Kind) -> Result<(), Overflow> {
        self.room_for(bytes.len())?;
        self.bytes.extend_from_slice(bytes);
        let entry = self.entries.last_mut().expect("a field is opened before it is filled");
        entry.end = position(self.bytes.len());
        entry.kind = kind;
        Ok(())
    }

    fn room_for(&self, more: usize) -> Result<(), Overflow> {
        if more <= BYTES_MAX - self.bytes.len() { Ok(()) } else { Err(Overflow) }
    }

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

    /// Bytes of all names and values.
    #[must_use]
    pub const fn bytes_used(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes of memory held, used or not.
    #[must_use]
    pub const fn bytes_held(&self) -> usize {
        self.bytes.capacity() + self.entries.capacity() * size_of::<Entry>()
    }

    /// Field number `index`, counted from 0.
    #[must_use]
    pub fn field(&self, index: usize) -> Option<Field<'_>> {
        self.entries.get(index).map(|entry| self.read(*entry))
    }

    /// The value of the first field of that name.
    #[must_use]
    pub fn get(&self, name: &[u8]) -> Option<Value<'_>> {
        self.iter().find(|field| field.name == name).map(|field| field.value)
    }

    /// The number of the first field of that name, at `from` or behind it.
    #[must_use]
    pub fn position(&self, name: &[u8], from: usize) -> Option<usize> {
        let entries = self.entries.get(from..)?;
        entries.iter().position(|entry| self.name_of(*entry) == name).map(|found| from + found)
    }

    /// All fields in their order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Field<'_>> + ExactSizeIterator {
        self.entries.iter().map(|entry| self.read(*entry))
    }

    /// Forgets all fields and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
    }

    /// Forgets all fields but the first `count`.
    pub fn truncate(&mut self, count: usize) {
        self.entries.truncate(count);
        let end = self.entries.last().map_or(0, |entry| entry.end as usize);
        self.bytes.truncate(end);
    }

    /// Gives memory back, down to room for `fields` entries and `bytes` bytes or what is used.
    pub fn shrink_to(&mut self, fields: usize, bytes: usize) {
        self.entries.shrink_to(fields);
        self.bytes.shrink_to(bytes);
    }

    fn name_of(&self, entry: Entry) -> &[u8] {
        &self.bytes[entry.name as usize..entry.value as usize]
    }

    fn read(&self, entry: Entry) -> Field<'_> {
        let bytes = &self.bytes[entry.value as usize..entry.end as usize];
        let value = match entry.kind {
            Kind::Null => Value::Null,
            Kind::Bytes => Value::Bytes(bytes),
            Kind::Number => Value::Number(bytes),
        };
        Field { name: self.name_of(entry), value }
    }
}

impl Value<'_> {
    const fn kind(self) -> Kind {
        match self {
            Self::Null => Kind::Null,
            Self::Bytes(_) => Kind::Bytes,
            Self::Number(_) => Kind::Number,
        }
    }
}

impl PartialEq for Fields {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Fields {}

impl fmt::Debug for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

fn position(length: usize) -> u32 {
    u32::try_from(length).expect("room was checked against BYTES_MAX, which fits 32 bits")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn small() -> Fields {
        let mut fields = Fields::new();
        fields.push(b"a", Value::Bytes(b"1")).unwrap();
        fields.push(b"b", Value::Null).unwrap();
        fields.push(b"a", Value::Number(b"2")).unwrap();
        fields.push(b"", Value::Bytes(b"")).unwrap();
        fields
    }

    #[test]
    fn order_and_duplicates_are_kept_and_the_first_is_found() {
        let fields = small();
        assert_eq!(format!("{fields:?}"), r#"[a="1", b=NULL, a=2, =""]"#);
        assert_eq!(fields.get(b"a"), Some(Value::Bytes(b"1")));
        assert_eq!(fields.position(b"a", 0), Some(0));
        assert_eq!(fields.position(b"a", 1), Some(2));
        assert_eq!(fields.position(b"a", 3), None);
        assert_eq!(fields.position(b"a", 99), None);
    }

    #[test]
    fn null_is_not_empty_and_absent_is_neither() {
        let fields = small();
        assert_eq!(fields.get(b"b"), Some(Value::Null));
        assert_eq!(fields.get(b""), Some(Value::Bytes(b"")));
        assert_eq!(fields.get(b"c"), None);
    }

    #[test]
    fn clear_keeps_the_memory() {
        let mut fields = small();
        let held = fields.bytes_held();
        fields.clear();
        assert!(fields.is_empty());
        assert_eq!(fields.bytes_used(), 0);
        assert_eq!(fields.bytes_held(), held);
    }

    #[test]
    fn what_is_cut_off_leaves_no_bytes_behind() {
        let mut fields = small();
        fields.truncate(2);
        assert_eq!(fields.bytes_used(), 3);
        fields.push(b"c", Value::Bytes(b"3")).unwrap();
        assert_eq!(format!("{fields:?}"), r#"[a="1", b=NULL, c="3"]"#);
        fields.truncate(0);
        assert_eq!(fields.bytes_used(), 0);
    }

    #[test]
    fn an_entry_is_sixteen_bytes() {
        assert_eq!(size_of::<Entry>(), 16);
    }

    type Model = Vec<(Vec<u8>, Option<Vec<u8>>)>;

    proptest! {
        #[test]
        fn a_set_says_what_a_naive_list_says(
            model in proptest::collection::vec(
                (proptest::collection::vec(any::<u8>(), 0..3),
                 proptest::option::of(proptest::collection::vec(any::<u8>(), 0..9))), 0..30),
            keep in 0usize..40,
        ) {
            let mut model: Model = model;
            let mut fields = Fields::new();
            for (name, value) in &model {
                fields.push(name, value.as_deref().map_or(Value::Null, Value::Bytes)).unwrap();
            }
            for _ in 0..2 {
                prop_assert_eq!(fields.len(), model.len());
                for (field, (name, value)) in fields.iter().zip(&model) {
                    prop_assert_eq!(field.name, &name[..]);
                    prop_assert_eq!(field.value.bytes(), value.as_deref());
                    let first = model.iter().position(|(other, _)| other == name);
                    prop_assert_eq!(fields.position(name, 0), first);
                }
                let used: usize = model.iter()
                    .map(|(name, value)| name.len() + value.as_ref().map_or(0, Vec::len)).sum();
                prop_assert_eq!(fields.bytes_used(), used);
                fields.truncate(keep);
                model.truncate(keep);
            }
        }
    }
}
