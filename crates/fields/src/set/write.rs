//! Adding, changing and removing fields.

use super::{Entry, Fields, Form, Kind, LINE, LINE_EXTRA, READ, SENSITIVE, position};
use crate::name::{AsName, Tag, same};
use crate::{FieldError, Value};

impl Fields {
    /// Appends a field, even if the name already exists, and returns its index.
    ///
    /// # Errors
    /// If a limit is exceeded, or the set stores header lines and the field is not allowed in one.
    pub fn append<'v>(
        &mut self,
        name: &(impl AsName + ?Sized),
        value: impl Into<Value<'v>>,
    ) -> Result<usize, FieldError> {
        self.add(name.as_name(), name.tag(), value.into())
    }

    /// Appends a field whose value is secret, such as a credential.
    ///
    /// # Errors
    /// As for [`Self::append`].
    pub fn append_sensitive<'v>(
        &mut self,
        name: &(impl AsName + ?Sized),
        value: impl Into<Value<'v>>,
    ) -> Result<usize, FieldError> {
        let index = self.append(name, value)?;
        self.entries[index].mark(SENSITIVE, true);
        Ok(index)
    }

    /// Sets whether the value of the field at `index` is secret. Returns false if there is no such field.
    pub fn set_sensitive(&mut self, index: usize, sensitive: bool) -> bool {
        let entry = self.entries.get_mut(index);
        entry.map(|entry| entry.mark(SENSITIVE, sensitive)).is_some()
    }

    #[inline(always)]
    pub(super) fn add(
        &mut self,
        name: &[u8],
        tag: Tag,
        value: Value<'_>,
    ) -> Result<usize, FieldError> {
        if self.form == Form::Lines {
            return self.add_line(name, tag, value);
        }
        let (kind, value) = (Kind::of(value), value.bytes_or_empty());
        self.room_for_field(name.len(), value.len(), 0)?;
        let index = self.entries.len();
        let place = self.used();
        self.bytes.extend_from_both(name, value);
        self.entries.push(Entry {
            name: position(place),
            value: position(place + name.len()),
            length_and_marks: kind.marks() | position(value.len()),
            tag,
        });
        self.note_name(tag);
        Ok(index)
    }

    /// Replaces the value of the field at `index`. Returns false if there is no such field.
    ///
    /// # Errors
    /// As for [`Self::append`]. In this case the field is unchanged.
    pub fn set_value<'v>(
        &mut self,
        index: usize,
        value: impl Into<Value<'v>>,
    ) -> Result<bool, FieldError> {
        let Some(entry) = self.entries.get(index).copied() else { return Ok(false) };
        self.change(index, entry, value.into())?;
        self.restore_invariant();
        Ok(true)
    }

    pub(super) fn change(
        &mut self,
        index: usize,
        old: Entry,
        value: Value<'_>,
    ) -> Result<(), FieldError> {
        let (kind, value) = self.accepted(self.name_of(old), value)?;
        let more = value.len().saturating_sub(old.value_length());
        // A field that was NULL gets a line.
        let extra = if self.form == Form::Lines && !old.has(LINE) { LINE_EXTRA } else { 0 };
        self.room_for(old.name_length(), value.len(), more + extra)?;
        if self.form == Form::Lines {
            self.change_line(index, value, kind);
        } else {
            let mut entry = old;
            self.change_packed(&mut entry, value, kind);
            self.entries[index] = entry;
        }
        Ok(())
    }

    fn change_packed(&mut self, entry: &mut Entry, value: &[u8], kind: Kind) {
        let (place, length) = (entry.value as usize, entry.value_length());
        let own = place.checked_sub(self.head_length());
        let at_end = place + length == self.used();
        match own {
            Some(start) if value.len() <= length && !at_end => {
                self.bytes[start..start + value.len()].copy_from_slice(value);
                self.dead += length - value.len();
                entry.set_value(place, value.len(), kind);
            }
            _ => {
                self.free_bytes(place, length);
                self.write_value(entry, value, kind);
            }
        }
    }

    /// Replaces the value of the first field with this name, and its spelling by that of `name`. Appends a field if
    /// there is none. Returns the index.
    ///
    /// # Errors
    /// As for [`Self::append`]. In this case nothing is changed.
    pub fn update<'v>(
        &mut self,
        name: &(impl AsName + ?Sized),
        value: impl Into<Value<'v>>,
    ) -> Result<usize, FieldError> {
        let Some(index) = self.position(name) else { return self.append(name, value) };
        self.change(index, self.entries[index], value.into())?;
        self.respell(index, name.as_name());
        self.restore_invariant();
        Ok(index)
    }

    /// Sets the only field with this name: the first one gets the value, and the others are removed. Returns its index.
    ///
    /// # Errors
    /// As for [`Self::append`]. In this case nothing is changed.
    pub fn replace_all<'v>(
        &mut self,
        name: &(impl AsName + ?Sized),
        value: impl Into<Value<'v>>,
    ) -> Result<usize, FieldError> {
        let index = self.update(name, value)?;
        self.remove_from(index + 1, name.as_name(), name.tag());
        self.restore_invariant();
        Ok(index)
    }

    /// Appends a field if the name does not exist. Returns the index of the first field with this name.
    ///
    /// # Errors
    /// As for [`Self::append`].
    pub fn append_if_absent<'v>(
        &mut self,
        name: &(impl AsName + ?Sized),
        value: impl Into<Value<'v>>,
    ) -> Result<usize, FieldError> {
        self.position(name).map_or_else(|| self.append(name, value), Ok)
    }

    /// Overwrites the name of a field with a name that differs only in case.
    fn respell(&mut self, index: usize, name: &[u8]) {
        let entry = self.entries[index];
        if self.name_of(entry) == name {
            return;
        }
        let place = entry.name as usize;
        if let Some(own) = place.checked_sub(self.head_length()) {
            self.bytes[own..own + name.len()].copy_from_slice(name);
            return;
        }
        // Adopted bytes are read-only. If the field is a line, the change of its value has already moved it to the
        // buffer.
        self.dead += name.len();
        self.entries[index].name = position(self.used());
        self.bytes.extend_from_slice(name);
    }

    /// Removes all fields with this name and returns their number.
    pub fn remove(&mut self, name: &(impl AsName + ?Sized)) -> usize {
        let removed = self.remove_from(0, name.as_name(), name.tag());
        self.restore_invariant();
        removed
    }

    /// Removes all fields with this name at or after index `from`, in one pass.
    fn remove_from(&mut self, from: usize, name: &[u8], tag: Tag) -> usize {
        let Some(first) = self.find(name, tag, self.case, from) else { return 0 };
        if self.find(name, tag, self.case, first + 1).is_none() {
            let entry = self.entries.remove(first);
            self.release(entry);
            return 1;
        }
        let mut entries = std::mem::take(&mut self.entries);
        let (mut kept, mut dead) = (first, 0);
        for place in first..entries.len() {
            let entry = entries[place];
            if entry.tag == tag && same(self.name_of(entry), name, self.case) {
                dead += self.footprint(entry);
            } else {
                entries[kept] = entry;
                kept += 1;
            }
        }
        let removed = entries.len() - kept;
        entries.truncate(kept);
        self.entries = entries;
        self.dead += dead;
        removed
    }

    /// Removes the first field with this name. Returns false if there is none.
    pub fn remove_first(&mut self, name: &(impl AsName + ?Sized)) -> bool {
        let removed = self.remove_one(name);
        self.restore_invariant();
        removed
    }

    fn remove_one(&mut self, name: &(impl AsName + ?Sized)) -> bool {
        let Some(index) = self.position(name) else { return false };
        let entry = self.entries.remove(index);
        self.release(entry);
        true
    }

    /// Removes the field at `index` and moves the following fields up. Returns false if there is no such field.
    pub fn remove_at(&mut self, index: usize) -> bool {
        if index >= self.len() {
            return false;
        }
        let entry = self.entries.remove(index);
        self.release(entry);
        self.restore_invariant();
        true
    }

    /// Keeps only the fields for which `keep` returns true.
    pub fn retain(&mut self, mut keep: impl FnMut(crate::Field<'_>) -> bool) {
        let mut entries = std::mem::take(&mut self.entries);
        let mut dead = 0;
        entries.retain(|entry| {
            let kept = keep(self.read(*entry));
            dead += if kept { 0 } else { self.footprint(*entry) };
            kept
        });
        self.entries = entries;
        self.dead += dead;
        self.restore_invariant();
    }

    /// Removes all fields except the first `count`. Their bytes are freed if they are at the end of the buffer.
    pub fn truncate(&mut self, count: usize) {
        while self.entries.len() > count {
            if let Some(entry) = self.entries.pop() {
                self.release(entry);
            }
        }
        self.restore_invariant();
    }

    /// Sets all values to NULL and keeps the names, so that the next row can be filled in.
    pub fn clear_values(&mut self) {
        let mut end = 0;
        let mut packed = self.head.is_none();
        for entry in &mut self.entries {
            packed &= entry.name as usize == end;
            end += entry.name_length();
        }
        if self.entries.is_empty() {
            return;
        }
        for index in 0..self.entries.len() {
            let entry = self.entries[index];
            if !packed {
                self.dead += self.footprint(entry) - entry.name_length();
            }
            let entry = &mut self.entries[index];
            entry.set_value(entry.name as usize + entry.name_length(), 0, Kind::Null);
            entry.mark(LINE | READ, false);
        }
        if packed {
            // The names are already at the front. All bytes after them are cut off.
            self.bytes.truncate(end);
            self.dead = 0;
        } else {
            self.compact(self.bytes.capacity());
        }
    }

    /// Frees memory, down to capacity for `fields` entries and `bytes` bytes or for the current content, whichever is
    /// larger.
    pub fn shrink_to(&mut self, fields: usize, bytes: usize) {
        self.entries.shrink_to(fields);
        self.bytes.shrink_to(bytes);
    }

    /// Removes all fields. Capacity beyond `fields` entries and `bytes` bytes is freed if less than a quarter of the
    /// capacity was in use.
    pub fn recycle(&mut self, fields: usize, bytes: usize) {
        let (fields_used, bytes_used) = (self.entries.len(), self.bytes.len());
        self.clear();
        if self.entries.capacity() > fields && fields_used < self.entries.capacity() / 4 {
            self.entries.shrink_to(fields);
        }
        if self.bytes.capacity() > bytes && bytes_used < self.bytes.capacity() / 4 {
            self.bytes.shrink_to(bytes);
        }
    }

    /// The value of the first field with this name. Marks the field as read.
    pub fn get_and_mark_read(&mut self, name: &(impl AsName + ?Sized)) -> Option<Value<'_>> {
        let index = self.position(name)?;
        self.entries[index].mark(READ, true);
        self.field(index).map(|field| field.value)
    }

    /// The fields that were not looked up with [`Self::get_and_mark_read`]: options that were set but have no effect.
    pub fn unread(&self) -> impl Iterator<Item = crate::Field<'_>> {
        self.entries.iter().filter(|entry| !entry.has(READ)).map(|entry| self.read(*entry))
    }
}
