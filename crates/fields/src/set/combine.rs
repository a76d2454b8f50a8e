//! Operations on several sets.

use super::{Fields, Iter};
use crate::name::AsName;
use crate::{Field, FieldError, Value};

/// What callers of the infallible traits `Extend` and `FromIterator` ensure.
const ACCEPTED: &str = "fields for `extend` and `collect` are accepted by the set";

impl Fields {
    /// Appends the fields of `other` whose names do not occur in this set. If several fields of `other` have the same
    /// name, only the first is appended. Returns the number of appended fields.
    ///
    /// # Errors
    /// As for [`Self::append`]. Fields that were appended before remain.
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

    /// Moves all fields of `other` to the end of this set.
    ///
    /// # Errors
    /// As for [`Self::append`]. In this case both sets are unchanged.
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

    /// Splits the set by name prefix. The text before the first `separator` becomes the title of a set, and the text
    /// after it becomes the name of the field. Sets are in the order of their first fields. Fields without a separator
    /// are in a set without a title.
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
            // A shortened name is rejected only if it is empty and must be a token.
            let _ = sets[index].add_like(Field { name, ..field }, name.tag());
        }
        sets
    }

    /// The first of these sets with this title.
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

/// Appends each field. For data from outside, use [`Fields::append`], which returns an error.
///
/// # Panics
/// If a limit is exceeded, or the set stores header lines and a field is not allowed in one.
impl<'v, N: AsName, V: Into<Value<'v>>> Extend<(N, V)> for Fields {
    fn extend<I: IntoIterator<Item = (N, V)>>(&mut self, fields: I) {
        for (name, value) in fields {
            self.append(&name, value).expect(ACCEPTED);
        }
    }
}

/// Appends each field. Secret values remain secret. For data from outside, use [`Fields::append_all`] or
/// [`Fields::append`], which return an error.
///
/// # Panics
/// If a limit is exceeded, or the set stores header lines and a field is not allowed in one.
impl<'v> Extend<Field<'v>> for Fields {
    fn extend<I: IntoIterator<Item = Field<'v>>>(&mut self, fields: I) {
        for field in fields {
            let index = self.append(field.name, field.value).expect(ACCEPTED);
            self.set_sensitive(index, field.sensitive);
        }
    }
}

/// Creates a set with these fields. Names are compared byte by byte.
///
/// # Panics
/// If the fields exceed [`Limits::MAX`](crate::Limits::MAX).
impl<'v, N: AsName, V: Into<Value<'v>>> FromIterator<(N, V)> for Fields {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(fields: I) -> Self {
        let mut set = Self::new();
        set.extend(fields);
        set
    }
}

/// Creates a set with these fields. Names are compared byte by byte.
///
/// # Panics
/// If the fields exceed [`Limits::MAX`](crate::Limits::MAX).
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

/// Two sets are equal if they have the same fields in the same order, including the spelling of names and the kinds of
/// values.
impl PartialEq for Fields {
    fn eq(&self, other: &Self) -> bool {
        let same = |(a, b): (Field<'_>, Field<'_>)| a.name == b.name && a.value == b.value;
        self.len() == other.len() && self.iter().zip(other).all(same)
    }
}

impl Eq for Fields {}
