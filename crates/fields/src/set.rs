//! The ordered list of named values: where its bytes lie.
//!
//! This file knows the two parts of the memory, what an entry points to, and what is dead; its
//! children read, write, combine and show without touching a position.

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

/// Dead bytes that are left in peace whatever the set holds.
const DEAD_MIN: usize = 512;

/// How the bytes of a set lie, which decides how cheaply it becomes a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Name and value, nothing between.
    Packed,
    /// `name: value` CR LF, as in a head of HTTP/1; so unchanged runs are sent as they lie.
    Lines,
}

/// What kind of value an entry has; part of its marks.
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

/// Where a name and a value lie. Positions count through the adopted slice and on through the
/// buffer of the set itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    name: u32,
    value: u32,
    /// Length of the value in the low 27 bits, marks above.
    length_and_marks: u32,
    /// What tells the length of the name, too.
    tag: Tag,
}

const _: () = assert!(size_of::<Entry>() == 16);

/// The value is NULL; with [`NUMBER`] it is JSON.
const NULL: u32 = 1 << 31;
/// The value is a number.
const NUMBER: u32 = 1 << 30;
/// The value must not be shown.
const SENSITIVE: u32 = 1 << 29;
/// Somebody asked for it.
const READ: u32 = 1 << 28;
/// Name and value lie as a line, with all that belongs to one.
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

    /// Sets place, length and kind of the value; other marks stay.
    fn set_value(&mut self, place: usize, length: usize, kind: Kind) {
        self.value = position(place);
        self.length_and_marks =
            self.length_and_marks & (SENSITIVE | READ | LINE) | kind.marks() | position(length);
    }
}

/// What a set owns: room for bytes and for entries.
pub(crate) type Memory = (Buffer, Vec<Entry>);

/// Names and values in their order, in one buffer.
///
/// ```
/// use fields::{Fields, Value};
///
/// let mut fields = Fields::new();
/// fields.append("path", "/");
/// fields.append("status", Value::Number(b"200"));
/// fields.append("user", Value::Null);
/// assert_eq!(fields.get("path"), Some(Value::Bytes(b"/")));
/// assert_eq!(fields.get("user"), Some(Value::Null));
/// assert_eq!(fields.get("Path"), None);
///
/// let mut head = Fields::headers();
/// head.append("Host", "example.org");
/// assert_eq!(head.get("host"), Some(Value::Bytes(b"example.org")));
/// ```
#[derive(Clone)]
pub struct Fields {
    /// The bytes that were received, if they were adopted.
    head: Option<Slice>,
    /// The bytes behind them, which are ours.
    bytes: Buffer,
    entries: Vec<Entry>,
    /// The bits of all names; it may have others too.
    mask: u64,
    /// The bits that several fields have had.
    repeated: u64,
    /// Bytes of `head` and `bytes` that no entry needs.
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
    /// An empty set that owns no memory. Its names are compared byte by byte.
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

    /// An empty set with room for `fields` entries and `bytes` bytes of names and values.
    #[must_use]
    pub fn with_capacity(fields: usize, bytes: usize) -> Self {
        let mut set = Self::new();
        set.reserve(fields, bytes);
        set
    }

    /// An empty set of header fields: case is ignored, names and values lie as the lines of a
    /// head, so what cannot stand in one is refused, and there are the limits of one
    /// ([`Limits::default`]).
    #[must_use]
    pub fn headers() -> Self {
        Self { form: Form::Lines, limits: Limits::default(), ..Self::new() }
            .with_case(Case::Ignored)
    }

    /// An empty set with a name of its own.
    #[must_use]
    pub fn named(title: impl Into<Cow<'static, str>>) -> Self {
        Self { title: Some(title.into()), ..Self::new() }
    }

    /// This set, which compares names like that from now on.
    #[must_use]
    pub fn with_case(mut self, case: Case) -> Self {
        self.case = case;
        self
    }

    /// This set, which takes no more than that from now on.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.set_limits(limits);
        self
    }

    /// Takes no more than that from now on.
    #[inline]
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits.within_max();
    }

    /// An empty set that is like this one in all but its fields and its name.
    pub(crate) const fn like(&self) -> Self {
        let mut set = Self::new();
        set.limits = self.limits;
        set.case = self.case;
        set.form = self.form;
        set
    }

    /// Makes room for that much more, so that filling allocates nothing.
    pub fn reserve(&mut self, fields: usize, bytes: usize) {
        self.entries.reserve_exact(fields);
        self.bytes.reserve_exact(bytes);
    }

    fn head_length(&self) -> usize {
        self.head.as_ref().map_or(0, |head| head.len())
    }

    /// Bytes in both parts; the position of what is written next.
    fn used(&self) -> usize {
        self.head_length() + self.bytes.len()
    }

    fn live(&self) -> usize {
        self.used() - self.dead
    }

    #[inline]
    fn at(&self, place: u32, length: usize) -> &[u8] {
        // Nothing lies anywhere: what was behind it may be cut off by now.
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

    /// The number of the first field of that name at `from` or behind it.
    #[inline]
    fn find(&self, name: &[u8], tag: Tag, case: Case, from: usize) -> Option<usize> {
        // Most names that are asked for are absent, and this is all that it costs to see that.
        if self.mask & tag.bit() == 0 { None } else { self.search(name, tag, case, from) }
    }

    #[inline(never)]
    fn search(&self, name: &[u8], tag: Tag, case: Case, from: usize) -> Option<usize> {
        let named = |entry: &Entry| entry.tag == tag && same(self.name_of(*entry), name, case);
        Some(from + self.entries.get(from..)?.iter().position(named)?)
    }

    /// Bytes that an entry needs.
    fn footprint(&self, entry: Entry) -> usize {
        if entry.has(LINE) {
            self.line_end(entry) - entry.name as usize
        } else {
            entry.name_length() + entry.value_length()
        }
    }

    /// Counts bytes as dead, or cuts them off where they are the last.
    fn abandon(&mut self, start: usize, length: usize) {
        let border = self.head_length();
        if start >= border && start + length == self.used() {
            self.bytes.truncate(start - border);
        } else {
            self.dead += length;
        }
    }

    /// Abandons all that an entry needs.
    fn release(&mut self, entry: Entry) {
        let (name, value) = (entry.name as usize, entry.value as usize);
        if entry.has(LINE) || value == name + entry.name_length() {
            self.abandon(name, self.footprint(entry));
        } else {
            self.abandon(value, entry.value_length());
            self.abandon(name, entry.name_length());
        }
    }

    /// After something was abandoned: an empty set has nothing dead, and no other set more than
    /// it lives on, but for [`DEAD_MIN`].
    fn settle(&mut self) {
        if self.entries.is_empty() {
            self.clear();
        } else if self.dead > DEAD_MIN && self.dead > self.live() {
            self.compact(self.live());
        }
    }

    /// Forgets all fields and keeps the memory, limits and name.
    pub fn clear(&mut self) {
        self.head = None;
        self.bytes.clear();
        self.entries.clear();
        self.mask = 0;
        self.repeated = 0;
        self.dead = 0;
    }

    /// A field with this tag is added.
    #[inline]
    fn note_name(&mut self, tag: Tag) {
        self.repeated |= self.mask & tag.bit();
        self.mask |= tag.bit();
    }

    /// The memory of this set, which is empty.
    pub(crate) fn take_memory(&mut self) -> Memory {
        debug_assert!(self.is_empty(), "only an empty set gives its memory away");
        (std::mem::take(&mut self.bytes), std::mem::take(&mut self.entries))
    }

    /// Gets that memory in place of its own; this set is empty.
    pub(crate) fn set_memory(&mut self, memory: Memory) {
        debug_assert!(self.is_empty(), "only an empty set gets other memory");
        (self.bytes, self.entries) = memory;
    }

    /// Copies what is alive into a buffer of at least `capacity`, in the order of the fields.
    fn compact(&mut self, capacity: usize) {
        // Where all that is alive was adopted, the buffer of the set is free.
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

    /// Panics where the picture at the head of the crate does not hold. For tests, after each step.
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

/// The fields of a set in their order.
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    set: &'a Fields,
    next: usize,
    end: usize,
}

/// Lines that lie behind each other.
#[derive(Debug)]
pub(crate) enum Run<'a> {
    /// A part of what was adopted.
    Adopted { head: &'a Slice, start: usize, end: usize },
    /// A part of the buffer of the set.
    Own(&'a [u8]),
}

/// What a line has beside name and value.
const LINE_EXTRA: usize = ": \r\n".len();

/// Fields to be shown, made by [`Fields::format`].
#[derive(Clone, Copy, Debug)]
pub struct Format<'a> {
    fields: &'a Fields,
    lead: &'a str,
    separator: &'a str,
}

/// What a set holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Fields.
    pub fields: usize,
    /// Bytes that are needed.
    pub bytes_live: usize,
    /// Bytes that are taken, needed or not.
    pub bytes_used: usize,
    /// Bytes of memory, the index and an adopted block included.
    pub bytes_held: usize,
    /// True while bytes that were received are read where they arrived.
    pub adopted: bool,
}

/// Where some bytes of an adopted block lie.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) start: usize,
    pub(crate) length: usize,
}

/// A set that a codec fills. What the codec found is indexed where it lies if the set has adopted
/// that, and copied else. It gives each part of what was adopted at most once.
pub(crate) struct Filling<'a> {
    pub(crate) set: &'a mut Fields,
    adopted: bool,
}
