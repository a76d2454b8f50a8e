//! Sets with sets.

use super::{Fields, Iter};
use crate::name::AsName;
use crate::{Field, FieldError, Value};

impl Fields {
    /// Appends the fields of `other` whose names are absent here; of several with one name the
    /// first. Returns how many were appended.
    ///
    /// # Errors
    /// As [`Self::try_append`]; what was appended before stays.
    pub fn merge_missing(&mut self, other: &Self) -> Result<usize, FieldError> {
        let before = self.len();
        for entry in &other.entries {
            let field = other.read(*entry);
            if self.find(field.name, entry.tag, self.case, 0).is_none() {
                self.add_like(field, entry.tag)?;
            }
        }
        Ok(self.len() - before)
    }

    /// Appends all fields of `other`, which is empty then.
    ///
    /// # Errors
    /// As [`Self::try_append`]; both are then as they were before.
    pub fn append_all(&mut self, other: &mut Self) -> Result<(), FieldError> {
        let before = self.len();
        for entry in &other.entries {
            if let Err(error) = self.add_like(other.read(*entry), entry.tag) {
                self.truncate(before);
                return Err(error);
            }
        }
        other.clear();
        Ok(())
    }

    /// One set for each part of the names before the first `separator`, which is its name, in the
    /// order in which they come; the fields are named by what is behind it. Fields without one are
    /// in a set without a name.
    #[must_use]
    pub fn split_by(&self, separator: u8) -> Vec<Self> {
        let mut sets: Vec<Self> = Vec::new();
        for field in self.iter() {
            let place = field.name.iter().position(|&byte| byte == separator);
            let (title, name) = match place {
                Some(place) => (Some(&field.name[..place]), &field.name[place + 1..]),
                None => (None, field.name),
            };
            let title = title.map(String::from_utf8_lossy);
            let known = sets.iter().position(|set| set.title() == title.as_deref());
            let index = known.unwrap_or_else(|| {
                let title = title.map(|title| title.into_owned().into());
                sets.push(Self { title, ..self.like() });
                sets.len() - 1
            });
            // A name cut short can be refused only where it must be a token, and is then empty.
            let _ = sets[index].add_like(Field { name, ..field }, name.tag());
        }
        sets
    }

    /// The first of these sets that has that name.
    pub fn find_named<'a>(
        sets: impl IntoIterator<Item = &'a Self>,
        title: &str,
    ) -> Option<&'a Self> {
        sets.into_iter().find(|set| set.title() == Some(title))
    }

    fn add_like(&mut self, field: Field<'_>, tag: crate::name::Tag) -> Result<(), FieldError> {
        let index = self.add(field.name, tag, field.value)?;
        self.set_sensitive(index, field.sensitive);
        Ok(())
    }
}

/// Appends each field.
///
/// # Panics
/// As [`Fields::append`].
impl<'v, N: AsName, V: Into<Value<'v>>> Extend<(N, V)> for Fields {
    fn extend<I: IntoIterator<Item = (N, V)>>(&mut self, fields: I) {
        for (name, value) in fields {
            self.append(&name, value);
        }
    }
}

/// Appends each field, with what must not be shown.
///
/// # Panics
/// As [`Fields::append`].
impl<'v> Extend<Field<'v>> for Fields {
    fn extend<I: IntoIterator<Item = Field<'v>>>(&mut self, fields: I) {
        for field in fields {
            let index = self.append(field.name, field.value);
            self.set_sensitive(index, field.sensitive);
        }
    }
}

/// A set with these fields, its names compared byte by byte.
///
/// # Panics
/// When they exceed [`Limits::MAX`](crate::Limits::MAX).
impl<'v, N: AsName, V: Into<Value<'v>>> FromIterator<(N, V)> for Fields {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(fields: I) -> Self {
        let mut set = Self::new();
        set.extend(fields);
        set
    }
}

/// A set with these fields, its names compared byte by byte.
///
/// # Panics
/// When they exceed [`Limits::MAX`](crate::Limits::MAX).
impl<'v> FromIterator<Field<'v>> for Fields {
    fn from_iter<I: IntoIterator<Item = Field<'v>>>(fields: I) -> Self {
        let mut set = Self::new();
        set.extend(fields);
        set
    }
}

impl<'a> Iterator for Iter<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        let index = (self.next < self.end).then_some(self.next)?;
        self.next += 1;
        self.set.field(index)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.end - self.next;
        (left, Some(left))
    }
}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.end = (self.next < self.end).then(|| self.end - 1)?;
        self.set.field(self.end)
    }
}

impl ExactSizeIterator for Iter<'_> {}

impl<'a> IntoIterator for &'a Fields {
    type Item = Field<'a>;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        Iter { set: self, next: 0, end: self.len() }
    }
}

/// Equal are sets with the same fields in the same order, spelling and kind of value included.
impl PartialEq for Fields {
    fn eq(&self, other: &Self) -> bool {
        let same = |(a, b): (Field<'_>, Field<'_>)| a.name == b.name && a.value == b.value;
        self.len() == other.len() && self.iter().zip(other).all(same)
    }
}

impl Eq for Fields {}
