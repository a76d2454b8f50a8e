//! Fields and values, as callers see them.

use std::fmt;

/// The value of a field.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// No value. It differs from an empty value.
    Null,
    /// Bytes. They are text if they are valid UTF-8.
    Bytes(&'a [u8]),
    /// The text of a number.
    Number(&'a [u8]),
    /// The text of a JSON value other than a string, a number or null: `true`, `false`, an array or an object.
    Json(&'a [u8]),
}

impl<'a> Value<'a> {
    /// The bytes of the value. `None` if it is NULL.
    #[must_use]
    pub const fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Self::Null => None,
            Self::Bytes(bytes) | Self::Number(bytes) | Self::Json(bytes) => Some(bytes),
        }
    }

    /// The bytes of the value. Empty if it is NULL.
    #[must_use]
    pub const fn bytes_or_empty(self) -> &'a [u8] {
        match self.bytes() {
            Some(bytes) => bytes,
            None => b"",
        }
    }

    /// The value as text. `None` if it is NULL or not UTF-8.
    #[must_use]
    pub fn text(self) -> Option<&'a str> {
        self.bytes().and_then(|bytes| std::str::from_utf8(bytes).ok())
    }

    /// Whether the value is NULL.
    #[must_use]
    pub const fn is_null(self) -> bool {
        matches!(self, Self::Null)
    }
}

impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("NULL"),
            Self::Bytes(bytes) => write!(f, "\"{}\"", bytes.escape_ascii()),
            Self::Number(bytes) | Self::Json(bytes) => write!(f, "{}", bytes.escape_ascii()),
        }
    }
}

impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Bytes(bytes)
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for Value<'a> {
    fn from(bytes: &'a [u8; N]) -> Self {
        Self::Bytes(bytes)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Bytes(text.as_bytes())
    }
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(text: &'a String) -> Self {
        Self::Bytes(text.as_bytes())
    }
}

impl<'a> From<&'a Vec<u8>> for Value<'a> {
    fn from(bytes: &'a Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

impl<'a, V: Into<Self>> From<Option<V>> for Value<'a> {
    fn from(value: Option<V>) -> Self {
        value.map_or(Value::Null, Into::into)
    }
}

/// A name and its value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Field<'a> {
    /// The name, in its original spelling.
    pub name: &'a [u8],
    /// The value.
    pub value: Value<'a>,
    /// Whether the value is secret. `Debug` and `Display` do not show a secret value.
    pub sensitive: bool,
}

/// The text that replaces a secret value.
pub(crate) const HIDDEN: &str = "(hidden)";

impl fmt::Debug for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}=", self.name.escape_ascii())?;
        if self.sensitive { f.write_str(HIDDEN) } else { self.value.fmt(f) }
    }
}
