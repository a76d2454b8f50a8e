//! Bytes that were received, indexed where they lie.
//!
//! ```text
//!   lines     |name: value CR LF|name: value CR LF| …      all of it belongs to the fields
//!   record    |{"|name|":"|value|",…                       what stands between them is dead
//! ```

use block::Slice;

use super::{Entry, Fields, Filling, Form, Kind, LINE, Place, position};
use crate::name::Tag;
use crate::{FieldError, Value};

/// Bytes of a line, roughly: how many entries are made room for when lines are adopted.
const LINE_LENGTH: usize = 32;

/// Blocks of this size or smaller are kept whatever part of them is used.
const SMALL_BLOCK: usize = 4096;

/// A block is kept alive only by a head that fills half of it, or when it is small; what waits in
/// a set must not pin memory that nobody counts.
fn is_worth_keeping(head: &Slice) -> bool {
    head.held() <= SMALL_BLOCK || head.len() >= head.held() / 2
}

impl Fields {
    /// Forgets all fields and lets `read` find lines in `head`, which is then theirs. It adds them by
    /// [`Self::adopt_line`] and calls nothing else.
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

    /// The same with a copy of `lines`.
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

    /// Adds a field that lies as a line in what is adopted, checked by the caller: the name and
    /// the value by their positions, the end of the line in `end`.
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

    /// Makes room for as many lines as what is left of the head has if they are as long as those
    /// that ended at `end`; doubling would give twice that to a head of many short lines.
    #[cold]
    fn reserve_lines(&mut self, end: usize) {
        let length = end / (self.entries.len() + 1);
        let allowed = (self.limits.fields as usize).saturating_sub(self.entries.len()).max(1);
        self.entries.reserve_exact((self.dead / length.max(1) + 2).min(allowed));
    }

    /// Forgets all fields and lets `read` find those of `record` in it. The block is kept unless
    /// that would pin more than it is worth; then `read` copies. Names and values that are less
    /// than half of a record are copied out of it as well, as [`Self::settle`] does.
    pub(crate) fn adopt_record<E>(
        &mut self,
        record: &Slice,
        read: impl FnOnce(&mut Filling<'_>, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.clear();
        self.form = Form::Packed;
        // Positions have 32 bits; of a longer record so much as fits is copied, or it is refused.
        let adopted = is_worth_keeping(record) && record.len() <= self.limits.bytes as usize;
        if adopted {
            self.dead = record.len();
            self.head = Some(record.clone());
        }
        let result = read(&mut Filling { set: self, adopted }, record);
        match result {
            Ok(()) => self.settle(),
            Err(_) => self.clear(),
        }
        result
    }

    /// Where `bytes` lie if that is within the adopted block.
    fn adopted_place(&self, bytes: &[u8]) -> Option<usize> {
        let head = self.head.as_ref()?;
        let place = bytes.as_ptr().addr().checked_sub(head.as_ptr().addr())?;
        (place < head.len() && bytes.len() <= head.len() - place).then_some(place)
    }

    /// Where `bytes` lie from now on: where they are if they were adopted, else in our buffer.
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

impl<'a> Filling<'a> {
    /// Copies what is found to the end of `set`.
    pub(crate) const fn copying(set: &'a mut Fields) -> Self {
        Self { set, adopted: false }
    }

    /// This one, for a shorter time.
    pub(crate) const fn again(&mut self) -> Filling<'_> {
        Filling { set: self.set, adopted: self.adopted }
    }

    /// Adds a field.
    pub(crate) fn add(&mut self, name: &[u8], value: Value<'_>) -> Result<(), FieldError> {
        if self.adopted {
            self.set.keep_field(name, value)
        } else {
            self.set.add(name, Tag::of(name), value).map(|_| ())
        }
    }

    /// Adds a field that is NULL until it is [filled](Self::fill).
    pub(crate) fn open(&mut self, name: &[u8]) -> Result<(), FieldError> {
        self.add(name, Value::Null)
    }

    /// Gives the field opened last its value.
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
