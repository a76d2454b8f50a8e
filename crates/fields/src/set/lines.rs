//! Fields that are stored as header lines, so that they can be sent without copying.

use std::ops::Range;

use super::{Entry, Fields, Form, Kind, LINE, LINE_EXTRA, Run, position};
use crate::grammar::{is_token, is_value, trimmed};
use crate::name::Tag;
use crate::{FieldError, Value};

impl<'a> Run<'a> {
    pub(crate) fn bytes(self) -> &'a [u8] {
        match self {
            Self::Adopted { head, start, end } => &head[start..end],
            Self::Own(bytes) => bytes,
        }
    }
}

impl Fields {
    #[inline(never)]
    pub(super) fn add_line(
        &mut self,
        name: &[u8],
        tag: Tag,
        value: Value<'_>,
    ) -> Result<usize, FieldError> {
        let (kind, value) = self.accepted(name, value)?;
        self.room_for_field(name.len(), value.len(), LINE_EXTRA)?;
        let index = self.entries.len();
        let mut entry = Entry { name: position(self.used()), value: 0, length_and_marks: 0, tag };
        self.bytes.extend_from_slice(name);
        self.write_value(&mut entry, value, kind);
        self.note_name(tag);
        self.entries.push(entry);
        Ok(index)
    }

    /// Checks a name and a value, and returns the bytes to store.
    #[inline]
    pub(super) fn accepted<'v>(
        &self,
        name: &[u8],
        value: Value<'v>,
    ) -> Result<(Kind, &'v [u8]), FieldError> {
        let (kind, bytes) = (Kind::of(value), value.bytes_or_empty());
        if self.form == Form::Packed {
            return Ok((kind, bytes));
        }
        let bytes = trimmed(bytes);
        match (is_token(name), is_value(bytes)) {
            (false, _) => Err(FieldError::NameBytes),
            (_, false) => Err(FieldError::ValueBytes),
            _ => Ok((kind, bytes)),
        }
    }

    /// Writes the value of `entry` to the end of the buffer. For a line, the name must be the last text in the buffer.
    #[inline]
    pub(super) fn write_value(&mut self, entry: &mut Entry, value: &[u8], kind: Kind) {
        let line = self.form == Form::Lines && kind != Kind::Null;
        if line {
            self.bytes.extend_from_slice(b": ");
        }
        entry.set_value(self.used(), value.len(), kind);
        entry.mark(LINE, line);
        self.bytes.extend_from_slice(value);
        if line {
            self.bytes.extend_from_slice(b"\r\n");
        }
    }

    /// Replaces the value in the line of a field. If the new value has the same length, it is overwritten in place.
    /// Otherwise the line is written to the end of the buffer.
    pub(super) fn change_line(&mut self, index: usize, value: &[u8], kind: Kind) {
        let old = self.entries[index];
        let (place, length) = (old.value as usize, old.value_length());
        let own = place.checked_sub(self.head_length());
        let fits = old.has(LINE) && value.len() == length && kind != Kind::Null;
        if let Some(start) = own.filter(|_| fits) {
            self.bytes[start..start + length].copy_from_slice(value);
            self.entries[index].set_value(place, length, kind);
            return;
        }
        let mut entry = old;
        entry.name = position(self.used());
        self.copy_to_end(old.name as usize, old.name_length());
        self.write_value(&mut entry, value, kind);
        self.entries[index] = entry;
        self.release(old);
        self.limit_runs(index);
    }

    /// Copies the bytes at `place` to the end of the buffer of the set.
    fn copy_to_end(&mut self, place: usize, length: usize) {
        match place.checked_sub(self.head_length()) {
            Some(own) => self.bytes.extend_from_within(own..own + length),
            None => {
                let head = self.head.as_deref().unwrap_or_default();
                self.bytes.extend_from_slice(&head[place..place + length]);
            }
        }
    }

    /// Limits the number of parts in which a set is sent, after the line of the field at `moved` was rewritten. In an
    /// adopted set, all rewritten lines and the lines between them become one part, and the appended lines become
    /// another. Therefore any two edits leave at most four parts. A set without adopted bytes is copied from its second
    /// part on if there would be a fifth part.
    ///
    /// ```text
    ///   adopted | changed lines and the lines between them | adopted | appended
    /// ```
    fn limit_runs(&mut self, moved: usize) {
        let border = self.head_length();
        let own = |entry: &Entry| entry.name as usize >= border;
        let appended = self.entries.iter().rev().take_while(|entry| own(entry)).count();
        let tail = self.entries.len() - appended;
        let together = if border == 0 {
            if self.runs().nth(4).is_none() {
                return;
            }
            self.first_run_fields()..self.entries.len()
        } else if moved >= tail {
            tail..self.entries.len()
        } else {
            let changed = &self.entries[..tail];
            let first = changed.iter().position(own).unwrap_or(moved);
            let last = changed.iter().rposition(own).unwrap_or(moved);
            first..last + 1
        };
        if together.len() > 1 {
            self.rewrite(together);
        }
    }

    /// The number of fields in the first run, including fields without a line.
    fn first_run_fields(&self) -> usize {
        let lines = self.entries.iter().enumerate().filter(|(_, entry)| entry.has(LINE));
        let mut end = None;
        for (index, entry) in lines {
            if end.is_some_and(|end| end != entry.name as usize) {
                return index;
            }
            end = Some(self.line_end(*entry));
        }
        self.entries.len()
    }

    /// Copies lines to the end of the buffer, where they are contiguous.
    fn rewrite(&mut self, fields: Range<usize>) {
        for index in fields {
            let old = self.entries[index];
            if old.has(LINE) {
                let name = self.used();
                self.copy_to_end(old.name as usize, self.footprint(old));
                let entry = &mut self.entries[index];
                entry.name = position(name);
                entry.value = position(name + (old.value - old.name) as usize);
                self.release(old);
            }
        }
    }

    /// The end of the line of an entry that is stored as a line. There may be blanks after its value.
    pub(super) fn line_end(&self, entry: Entry) -> usize {
        let mut end = entry.value as usize + entry.value_length();
        let in_head = end < self.head_length();
        let (bytes, base) = match &self.head {
            Some(head) if in_head => (&head[..], 0),
            _ => (&self.bytes[..], self.head_length()),
        };
        while matches!(bytes.get(end - base), Some(b' ' | b'\t')) {
            end += 1;
        }
        end + 2
    }

    /// Runs of contiguous lines, in the order of their fields. Fields without a line are skipped.
    pub(crate) fn runs(&self) -> impl Iterator<Item = Run<'_>> {
        let mut rest = &self.entries[..];
        std::iter::from_fn(move || {
            while let Some((first, behind)) = rest.split_first() {
                rest = behind;
                if !first.has(LINE) {
                    continue;
                }
                let start = first.name as usize;
                let mut end = self.line_end(*first);
                let border = self.head_length();
                while let Some((next, behind)) = rest.split_first() {
                    if next.has(LINE) {
                        if next.name as usize != end || end == border {
                            break;
                        }
                        end = self.line_end(*next);
                    }
                    rest = behind;
                }
                let head = self.head.as_ref().filter(|_| start < border);
                return Some(match head {
                    Some(head) => Run::Adopted { head, start, end },
                    None => Run::Own(&self.bytes[start - border..end - border]),
                });
            }
            None
        })
    }

    /// Whether fields are stored as lines.
    pub(crate) fn has_lines(&self) -> bool {
        self.form == Form::Lines
    }
}

#[cfg(test)]
mod tests;
