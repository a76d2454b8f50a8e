//! Indexing of received bytes without copying.
//!
//! ```text
//!   lines     |name: value CR LF|name: value CR LF| …      all bytes belong to the fields
//!   record    |{"|name|":"|value|",…                       the bytes in between are dead
//! ```

use block::Slice;

use super::{Entry, FieldSink, Fields, Form, Kind, LINE, Place, position};
use crate::name::Tag;
use crate::{FieldError, Value};

/// The estimated length of a line, in bytes. It determines how many entries are reserved when lines are adopted.
const LINE_LENGTH: usize = 32;

/// Blocks up to this size, in bytes, are always kept.
const SMALL_BLOCK: usize = 4096;

/// Whether a block should be kept: if it is small, or if the head fills at least half of it. Otherwise a waiting set
/// would keep memory allocated that is not accounted for.
fn is_worth_keeping(head: &Slice) -> bool {
    head.held() <= SMALL_BLOCK || head.len() >= head.held() / 2
}

impl Fields {
    /// Removes all fields, then calls `read` to find the lines in `head`, which becomes the memory of the set. `read`
    /// adds lines with [`Self::adopt_line`] and must call nothing else.
    pub(crate) fn adopt_lines<E>(
        &mut self,
        head: Slice,
        read: impl FnOnce(&mut Self, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.read_lines(&head, read)?;
        if is_worth_keeping(&head) {
            self.head = Some(head);
        } else {
            self.bytes.extend_from_slice(&head);
        }
        Ok(())
    }

    /// Like [`Self::adopt_lines`], but copies `lines`.
    #[inline]
    pub(crate) fn copy_lines<E>(
        &mut self,
        lines: &[u8],
        read: impl FnOnce(&mut Self, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.read_lines(lines, read)?;
        self.bytes.extend_from_slice(lines);
        Ok(())
    }

    #[inline]
    fn read_lines<E>(
        &mut self,
        lines: &[u8],
        read: impl FnOnce(&mut Self, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.clear();
        self.form = Form::Lines;
        self.dead = lines.len();
        self.entries.reserve((lines.len() / LINE_LENGTH + 8).min(self.limits.fields as usize));
        read(self, lines).inspect_err(|_| self.clear())
    }

    /// Adds a field that is a line in the adopted bytes. The caller has checked the line. `name` and `value` are
    /// positions, and `end` is the end of the line.
    #[inline]
    pub(crate) fn adopt_line(&mut self, name: Place, value: Place, end: usize, tag: Tag) {
        self.dead -= end - name.start;
        self.note_name(tag);
        if self.entries.len() == self.entries.capacity() {
            self.reserve_lines(end);
        }
        self.entries.push(Entry {
            name: position(name.start),
            value: position(value.start),
            length_and_marks: position(value.length) | LINE,
            tag,
        });
    }

    /// Reserves entries for the remaining lines, on the assumption that they are as long as the lines up to `end`.
    /// Doubling would reserve up to twice as much for a head with many short lines.
    #[cold]
    fn reserve_lines(&mut self, end: usize) {
        let length = end / (self.entries.len() + 1);
        let allowed = (self.limits.fields as usize).saturating_sub(self.entries.len()).max(1);
        self.entries.reserve_exact((self.dead / length.max(1) + 2).min(allowed));
    }

    /// Removes all fields, then calls `read` to find the fields of `record`. The block is kept, unless it is much
    /// larger than the record; then `read` copies. If names and values are less than half of the record, they are
    /// copied as well, by [`Self::restore_invariant`].
    pub(crate) fn adopt_record<E>(
        &mut self,
        record: &Slice,
        read: impl FnOnce(&mut FieldSink<'_>, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.clear();
        self.form = Form::Packed;
        // Positions have 32 bits. A longer record is not adopted: its fields are copied if they are within the limits
        // of the set, otherwise the record is rejected.
        let adopted = is_worth_keeping(record) && record.len() <= self.limits.bytes as usize;
        if adopted {
            self.dead = record.len();
            self.head = Some(record.clone());
        }
        let result = read(&mut FieldSink { set: self, adopted }, record);
        match result {
            Ok(()) => self.restore_invariant(),
            Err(_) => self.clear(),
        }
        result
    }

    /// The position of `bytes` in the adopted block, if they are a part of it.
    fn adopted_place(&self, bytes: &[u8]) -> Option<usize> {
        let head = self.head.as_ref()?;
        let place = bytes.as_ptr().addr().checked_sub(head.as_ptr().addr())?;
        (place < head.len() && bytes.len() <= head.len() - place).then_some(place)
    }

    /// Stores bytes and returns their position. Adopted bytes keep their position. Other bytes are copied to the
    /// buffer.
    fn keep(&mut self, bytes: &[u8]) -> usize {
        let Some(place) = self.adopted_place(bytes) else {
            let place = self.used();
            self.bytes.extend_from_slice(bytes);
            return place;
        };
        self.dead -= bytes.len();
        place
    }

    fn keep_field(&mut self, name: &[u8], value: Value<'_>) -> Result<(), FieldError> {
        let (kind, value) = (Kind::of(value), value.bytes_or_empty());
        self.room_for_field(name.len(), value.len(), 0)?;
        let tag = Tag::of(name);
        let mut entry =
            Entry { name: position(self.keep(name)), value: 0, length_and_marks: 0, tag };
        entry.set_value(self.keep(value), value.len(), kind);
        self.note_name(tag);
        self.entries.push(entry);
        Ok(())
    }

    fn keep_value(&mut self, index: usize, value: Value<'_>) -> Result<(), FieldError> {
        let (kind, value) = (Kind::of(value), value.bytes_or_empty());
        let name_length = self.entries[index].name_length();
        self.room_for(name_length, value.len(), value.len())?;
        let place = self.keep(value);
        self.entries[index].set_value(place, value.len(), kind);
        Ok(())
    }
}

impl<'a> FieldSink<'a> {
    /// Creates a `FieldSink` that copies fields to the end of `set`.
    pub(crate) const fn copying(set: &'a mut Fields) -> Self {
        Self { set, adopted: false }
    }

    /// Reborrows this value.
    pub(crate) const fn reborrow(&mut self) -> FieldSink<'_> {
        FieldSink { set: self.set, adopted: self.adopted }
    }

    /// Adds a field.
    pub(crate) fn add(&mut self, name: &[u8], value: Value<'_>) -> Result<(), FieldError> {
        if self.adopted {
            self.set.keep_field(name, value)
        } else {
            self.set.add(name, Tag::of(name), value).map(|_| ())
        }
    }

    /// Adds a field that is NULL until [`Self::fill`] is called.
    pub(crate) fn open(&mut self, name: &[u8]) -> Result<(), FieldError> {
        self.add(name, Value::Null)
    }

    /// Sets the value of the last opened field.
    pub(crate) fn fill(&mut self, value: Value<'_>) -> Result<(), FieldError> {
        let opened = self.set.entries.len().checked_sub(1);
        let last = opened.expect("a field is opened before it is filled");
        if self.adopted {
            self.set.keep_value(last, value)
        } else {
            self.set.change(last, self.set.entries[last], value)
        }
    }
}

#[cfg(test)]
mod tests;
