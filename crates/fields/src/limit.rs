//! Limits of a set, and errors of adding fields.

use std::fmt;

/// The limits of a set. Sets with external data have limits of their own. Sets with internal data have [`Limits::MAX`],
/// the limits of the index layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum number of fields.
    pub fields: u32,
    /// The maximum length of all names and values, including the bytes between them, in bytes.
    pub bytes: u32,
    /// The maximum length of a name, in bytes.
    pub name: u32,
    /// The maximum length of a value, in bytes.
    pub value: u32,
}

impl Limits {
    /// The limits of the index: 2³⁰ fields, 2³⁰ bytes, names of 65,535 bytes, values of 2²⁷ − 1 bytes.
    pub const MAX: Self =
        Self { fields: 1 << 30, bytes: 1 << 30, name: u16::MAX as u32, value: (1 << 27) - 1 };

    /// These limits, each reduced to at most that of [`Self::MAX`].
    #[must_use]
    pub(crate) fn within_max(self) -> Self {
        Self {
            fields: self.fields.min(Self::MAX.fields),
            bytes: self.bytes.min(Self::MAX.bytes),
            name: self.name.min(Self::MAX.name),
            value: self.value.min(Self::MAX.value),
        }
    }
}

impl Default for Limits {
    /// The limits for a head from a peer: 128 fields, 64 KiB, names of 256 bytes, values of 32 KiB.
    fn default() -> Self {
        Self { fields: 128, bytes: 64 * 1024, name: 256, value: 32 * 1024 }
    }
}

/// Why a set rejected a field. The set is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldError {
    /// The set would have more fields than this.
    Fields(u32),
    /// The set would have more bytes than this.
    Bytes(u32),
    /// The name is longer than this.
    NameLength(u32),
    /// The value is longer than this.
    ValueLength(u32),
    /// The name is not allowed in a header line: it is empty or not a token.
    NameBytes,
    /// The value is not allowed in a header line: it contains a control character.
    ValueBytes,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fields(limit) => write!(f, "more than {limit} fields"),
            Self::Bytes(limit) => write!(f, "names and values of more than {limit} bytes"),
            Self::NameLength(limit) => write!(f, "a name of more than {limit} bytes"),
            Self::ValueLength(limit) => write!(f, "a value of more than {limit} bytes"),
            Self::NameBytes => f.write_str("a name that is empty or not a token"),
            Self::ValueBytes => f.write_str("a value that holds a control character"),
        }
    }
}

impl std::error::Error for FieldError {}
