//! The ordered list of named values: the layout of its bytes.
//!
//! This module defines the two parts of the memory, the positions in entries, and the accounting of dead bytes. Its
//! child modules read, write, combine and format fields.

mod adopt;
mod combine;
mod lines;
mod read;
mod show;
mod write;

use std::borrow::Cow;

use block::Slice;

use crate::buffer::Buffer;
use crate::name::{Tag, same};
use crate::{Case, Field, FieldError, Limits, Value};

/// The number of dead bytes that is always tolerated.
const DEAD_MIN: usize = 512;

/// The layout of the bytes of a set. It determines how a head is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Name and value without bytes between them.
    Packed,
    /// `name: value` CR LF, as in an HTTP/1 head. Unchanged runs are sent without copying.
    Lines,
}

/// The kind of a value. It is stored in the marks of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Null,
    Bytes,
    Number,
    Json,
}

impl Kind {
    #[inline]
    pub(crate) const fn of(value: Value<'_>) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bytes(_) => Self::Bytes,
            Value::Number(_) => Self::Number,
            Value::Json(_) => Self::Json,
        }
    }

    const fn marks(self) -> u32 {
        match self {
            Self::Null => NULL,
            Self::Bytes => 0,
            Self::Number => NUMBER,
            Self::Json => NULL | NUMBER,
        }
    }
}

/// The positions of a name and a value. Positions count through the adopted slice and continue in the buffer of the
/// set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    name: u32,
    value: u32,
    /// The length of the value in the low 27 bits, and marks in the bits above.
    length_and_marks: u32,
    /// The tag of the name. It also contains the length of the name.
    tag: Tag,
}

const _: () = assert!(size_of::<Entry>() == 16);

/// The value is NULL. Together with [`NUMBER`]: it is JSON.
const NULL: u32 = 1 << 31;
/// The value is a number.
const NUMBER: u32 = 1 << 30;
/// The value is secret and is not displayed.
const SENSITIVE: u32 = 1 << 29;
/// The field was looked up with [`Fields::get_and_mark_read`].
const READ: u32 = 1 << 28;
/// Name and value are stored as a complete header line.
const LINE: u32 = 1 << 27;
const LENGTH: u32 = LINE - 1;

const _: () = assert!(LENGTH == Limits::MAX.value);

impl Entry {
    const fn has(self, mark: u32) -> bool {
        self.length_and_marks & mark != 0
    }

    fn mark(&mut self, mark: u32, on: bool) {
        self.length_and_marks = self.length_and_marks & !mark | if on { mark } else { 0 };
    }

    const fn value_length(self) -> usize {
        (self.length_and_marks & LENGTH) as usize
    }

    const fn name_length(self) -> usize {
        self.tag.length()
    }

    const fn kind(self) -> Kind {
        match self.length_and_marks & (NULL | NUMBER) {
            0 => Kind::Bytes,
            NUMBER => Kind::Number,
            NULL => Kind::Null,
            _ => Kind::Json,
        }
    }

    /// Sets position, length and kind of the value. Other marks are kept.
    fn set_value(&mut self, place: usize, length: usize, kind: Kind) {
        self.value = position(place);
        self.length_and_marks =
            self.length_and_marks & (SENSITIVE | READ | LINE) | kind.marks() | position(length);
    }
}

/// The memory of a set: the buffer for bytes and the list of entries.
pub(crate) type Memory = (Buffer, Vec<Entry>);

/// Names and values in their order, in one buffer.
///
/// ```
/// use fields::{Fields, Value};
///
/// let mut fields = Fields::new();
/// fields.append("path", "/")?;
/// fields.append("status", Value::Number(b"200"))?;
/// fields.append("user", Value::Null)?;
/// assert_eq!(fields.get("path"), Some(Value::Bytes(b"/")));
/// assert_eq!(fields.get("user"), Some(Value::Null));
/// assert_eq!(fields.get("Path"), None);
///
/// let mut head = Fields::headers();
/// head.append("Host", "example.org")?;
/// assert_eq!(head.get("host"), Some(Value::Bytes(b"example.org")));
/// # Ok::<(), fields::FieldError>(())
/// ```
#[derive(Clone)]
pub struct Fields {
    /// The adopted bytes, if there are any.
    head: Option<Slice>,
    /// The buffer of the set, whose positions follow those of `head`.
    bytes: Buffer,
    entries: Vec<Entry>,
    /// The bits of all names. Bits of removed names may remain.
    mask: u64,
    /// The bits that occurred for more than one field.
    repeated: u64,
    /// The number of bytes in `head` and `bytes` that no entry uses.
    dead: usize,
    limits: Limits,
    case: Case,
    form: Form,
    title: Option<Cow<'static, str>>,
}

impl Default for Fields {
    fn default() -> Self {
        Self::new()
    }
}

impl Fields {
    /// Creates an empty set that owns no memory. Names are compared byte by byte.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            head: None,
            bytes: Buffer::new(),
            entries: Vec::new(),
            mask: 0,
            repeated: 0,
            dead: 0,
            limits: Limits::MAX,
            case: Case::Exact,
            form: Form::Packed,
            title: None,
        }
    }

    /// Creates an empty set with capacity for `fields` entries and `bytes` bytes of names and values.
    #[must_use]
    pub fn with_capacity(fields: usize, bytes: usize) -> Self {
        let mut set = Self::new();
        set.reserve(fields, bytes);
        set
    }

    /// Creates an empty set of header fields. Case is ignored. Names and values are stored as header lines, so a field
    /// that is not allowed in a line is rejected. The limits are those of a head ([`Limits::default`]).
    #[must_use]
    pub fn headers() -> Self {
        Self { form: Form::Lines, limits: Limits::default(), ..Self::new() }
            .with_case(Case::Ignored)
    }

    /// Creates an empty set with a title.
    #[must_use]
    pub fn named(title: impl Into<Cow<'static, str>>) -> Self {
        Self { title: Some(title.into()), ..Self::new() }
    }

    /// Changes how names are compared.
    #[must_use]
    pub fn with_case(mut self, case: Case) -> Self {
        self.case = case;
        self
    }

    /// Changes the limits.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.set_limits(limits);
        self
    }

    /// Changes the limits.
    #[inline]
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits.within_max();
    }

    /// Creates an empty set with the limits, case and layout of this one. The title is not copied.
    pub(crate) const fn like(&self) -> Self {
        let mut set = Self::new();
        set.limits = self.limits;
        set.case = self.case;
        set.form = self.form;
        set
    }

    /// Reserves capacity for additional fields and bytes, so that adding them allocates nothing.
    pub fn reserve(&mut self, fields: usize, bytes: usize) {
        self.entries.reserve_exact(fields);
        self.bytes.reserve_exact(bytes);
    }

    fn head_length(&self) -> usize {
        self.head.as_ref().map_or(0, |head| head.len())
    }

    /// The number of bytes in both parts. It is also the position of the next byte to write.
    fn used(&self) -> usize {
        self.head_length() + self.bytes.len()
    }

    fn live(&self) -> usize {
        self.used() - self.dead
    }

    #[inline]
    fn at(&self, place: u32, length: usize) -> &[u8] {
        // An empty part may have a position that was cut off.
        if length == 0 {
            return b"";
        }
        let place = place as usize;
        let Some(head) = &self.head else { return &self.bytes[place..place + length] };
        match place.checked_sub(head.len()) {
            Some(place) => &self.bytes[place..place + length],
            None => &head[place..place + length],
        }
    }

    #[inline]
    fn name_of(&self, entry: Entry) -> &[u8] {
        self.at(entry.name, entry.name_length())
    }

    #[inline]
    fn value_of(&self, entry: Entry) -> Value<'_> {
        let bytes = || self.at(entry.value, entry.value_length());
        match entry.kind() {
            Kind::Null => Value::Null,
            Kind::Bytes => Value::Bytes(bytes()),
            Kind::Number => Value::Number(bytes()),
            Kind::Json => Value::Json(bytes()),
        }
    }

    #[inline]
    fn read(&self, entry: Entry) -> Field<'_> {
        let (name, value) = (self.name_of(entry), self.value_of(entry));
        Field { name, value, sensitive: entry.has(SENSITIVE) }
    }

    /// The index of the first field with this name at or after `from`.
    #[inline]
    fn find(&self, name: &[u8], tag: Tag, case: Case, from: usize) -> Option<usize> {
        // Most looked-up names are absent. For them, this test is the whole cost.
        if self.mask & tag.bit() == 0 { None } else { self.search(name, tag, case, from) }
    }

    #[inline(never)]
    fn search(&self, name: &[u8], tag: Tag, case: Case, from: usize) -> Option<usize> {
        let named = |entry: &Entry| entry.tag == tag && same(self.name_of(*entry), name, case);
        Some(from + self.entries.get(from..)?.iter().position(named)?)
    }

    /// The number of bytes that an entry uses.
    fn footprint(&self, entry: Entry) -> usize {
        if entry.has(LINE) {
            self.line_end(entry) - entry.name as usize
        } else {
            entry.name_length() + entry.value_length()
        }
    }

    /// Counts bytes as dead. If they are the last bytes, they are cut off instead.
    fn free_bytes(&mut self, start: usize, length: usize) {
        let border = self.head_length();
        if start >= border && start + length == self.used() {
            self.bytes.truncate(start - border);
        } else {
            self.dead += length;
        }
    }

    /// Abandons all bytes of an entry.
    fn release(&mut self, entry: Entry) {
        let (name, value) = (entry.name as usize, entry.value as usize);
        if entry.has(LINE) || value == name + entry.name_length() {
            self.free_bytes(name, self.footprint(entry));
        } else {
            self.free_bytes(value, entry.value_length());
            self.free_bytes(name, entry.name_length());
        }
    }

    /// Restores the invariant after bytes were abandoned: an empty set has no dead bytes, and a set has at most as many
    /// dead bytes as live bytes, or at most [`DEAD_MIN`].
    fn restore_invariant(&mut self) {
        if self.entries.is_empty() {
            self.clear();
        } else if self.dead > DEAD_MIN && self.dead > self.live() {
            self.compact(self.live());
        }
    }

    /// Removes all fields. Memory, limits and title are kept.
    pub fn clear(&mut self) {
        self.head = None;
        self.bytes.clear();
        self.entries.clear();
        self.mask = 0;
        self.repeated = 0;
        self.dead = 0;
    }

    /// Updates `mask` and `repeated` for a new field with this tag.
    #[inline]
    fn note_name(&mut self, tag: Tag) {
        self.repeated |= self.mask & tag.bit();
        self.mask |= tag.bit();
    }

    /// Takes the memory out of this set, which must be empty.
    pub(crate) fn take_memory(&mut self) -> Memory {
        debug_assert!(self.is_empty(), "only an empty set gives its memory away");
        (std::mem::take(&mut self.bytes), std::mem::take(&mut self.entries))
    }

    /// Replaces the memory of this set, which must be empty.
    pub(crate) fn set_memory(&mut self, memory: Memory) {
        debug_assert!(self.is_empty(), "only an empty set gets other memory");
        (self.bytes, self.entries) = memory;
    }

    /// Copies the live bytes into a buffer with at least `capacity`, in the order of the fields.
    fn compact(&mut self, capacity: usize) {
        // If all live bytes are adopted, the buffer of the set is unused and can be reused.
        let mut to =
            if self.bytes.is_empty() { std::mem::take(&mut self.bytes) } else { Buffer::new() };
        to.reserve_exact(capacity);
        (self.mask, self.repeated) = (0, 0);
        let mut entries = std::mem::take(&mut self.entries);
        for entry in &mut entries {
            let name = to.len();
            self.note_name(entry.tag);
            if entry.has(LINE) {
                to.extend_from_slice(self.at(entry.name, self.footprint(*entry)));
                entry.value = position(name + (entry.value - entry.name) as usize);
            } else {
                to.extend_from_slice(self.name_of(*entry));
                let value = to.len();
                to.extend_from_slice(self.at(entry.value, entry.value_length()));
                entry.value = position(value);
            }
            entry.name = position(name);
        }
        self.entries = entries;
        self.head = None;
        self.bytes = to;
        self.dead = 0;
    }

    /// Checks the invariants in the documentation of the crate, and panics if one is violated. For tests, after each
    /// step.
    #[doc(hidden)]
    pub fn check(&self) {
        let mut live = 0;
        for entry in &self.entries {
            let field = self.read(*entry);
            assert_eq!(entry.tag, Tag::of(field.name), "the tag is that of the name");
            assert_ne!(self.mask & entry.tag.bit(), 0, "the mask has the bit of each name");
            let bit = |other: &&Entry| other.tag.bit() == entry.tag.bit();
            let alone = self.entries.iter().filter(bit).count() == 1;
            assert!(alone || self.repeated & entry.tag.bit() != 0, "names that repeat are known");
            live += self.footprint(*entry);
            if entry.has(LINE) {
                assert_eq!(self.form, Form::Lines);
                let line = self.at(entry.name, self.footprint(*entry));
                assert!(line.ends_with(b"\r\n") && line[field.name.len()] == b':');
            }
        }
        assert_eq!(self.live(), live, "what is not dead is alive");
        assert!(self.dead <= DEAD_MIN.max(live), "{} dead of {}", self.dead, self.used());
        assert!(!self.entries.is_empty() || self.used() == 0, "an empty set uses nothing");
        assert!(self.entries.len() <= self.limits.fields as usize);
        assert!(live <= self.limits.bytes as usize);
    }

    #[inline]
    fn room_for_field(&self, name: usize, value: usize, extra: usize) -> Result<(), FieldError> {
        if self.entries.len() >= self.limits.fields as usize {
            return Err(FieldError::Fields(self.limits.fields));
        }
        self.room_for(name, value, name + value + extra)
    }

    #[inline]
    fn room_for(&self, name: usize, value: usize, more: usize) -> Result<(), FieldError> {
        let Limits { fields: _, bytes, name: name_max, value: value_max } = self.limits;
        let bytes_left = (bytes as usize).saturating_sub(self.live());
        if name <= name_max as usize && value <= value_max as usize && more <= bytes_left {
            return Ok(());
        }
        Err(if name > name_max as usize {
            FieldError::NameLength(name_max)
        } else if value > value_max as usize {
            FieldError::ValueLength(value_max)
        } else {
            FieldError::Bytes(bytes)
        })
    }
}

fn position(place: usize) -> u32 {
    u32::try_from(place).expect("limits keep positions far below 32 bits")
}

/// An iterator over the fields of a set in their order.
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    set: &'a Fields,
    next: usize,
    end: usize,
}

/// Contiguous header lines.
#[derive(Debug)]
pub(crate) enum Run<'a> {
    /// A part of the adopted block.
    Adopted { head: &'a Slice, start: usize, end: usize },
    /// A part of the buffer of the set.
    Own(&'a [u8]),
}

/// The number of bytes of a line in addition to name and value.
const LINE_EXTRA: usize = ": \r\n".len();

/// A formatted list of fields, created by [`Fields::format`].
#[derive(Clone, Copy, Debug)]
pub struct Format<'a> {
    fields: &'a Fields,
    lead: &'a str,
    separator: &'a str,
}

/// Statistics of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// The number of fields.
    pub fields: usize,
    /// The number of live bytes.
    pub bytes_live: usize,
    /// The number of bytes in use, live or dead.
    pub bytes_used: usize,
    /// The allocated memory in bytes, including the index and an adopted block.
    pub bytes_held: usize,
    /// Whether the set uses received bytes without copying.
    pub adopted: bool,
}

/// The position of bytes in an adopted block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) start: usize,
    pub(crate) length: usize,
}

/// A set that a decoder fills. Decoded bytes that are in the adopted block are indexed there; other bytes are copied. A
/// decoder must pass each part of the adopted block at most once.
pub(crate) struct FieldSink<'a> {
    pub(crate) set: &'a mut Fields,
    adopted: bool,
}
