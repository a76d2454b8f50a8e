//! What a set holds at most, and why it does not take a field.

use std::fmt;

/// What a set holds at most. A set that is filled from outside has limits of its own; one that is
/// filled by us has [`Limits::MAX`], which the layout of the index sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Fields.
    pub fields: u32,
    /// Bytes of all names and values, and of what stands between them.
    pub bytes: u32,
    /// Bytes of one name.
    pub name: u32,
    /// Bytes of one value.
    pub value: u32,
}

impl Limits {
    /// What the index can describe: 2³⁰ bytes, names of 65,535, values of 2²⁷ − 1.
    pub const MAX: Self =
        Self { fields: 1 << 30, bytes: 1 << 30, name: u16::MAX as u32, value: (1 << 27) - 1 };

    /// These limits, none of them above [`Self::MAX`].
    #[must_use]
    pub fn within_max(self) -> Self {
        Self {
            fields: self.fields.min(Self::MAX.fields),
            bytes: self.bytes.min(Self::MAX.bytes),
            name: self.name.min(Self::MAX.name),
            value: self.value.min(Self::MAX.value),
        }
    }
}

impl Default for Limits {
    /// Those of a head that a peer sends: 128 fields, 64 KiB, names of 256 bytes, values of 32 KiB.
    fn default() -> Self {
        Self { fields: 128, bytes: 64 * 1024, name: 256, value: 32 * 1024 }
    }
}

/// Why a set does not take a field. It is as it was before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldError {
    /// It would hold more fields than this.
    Fields(u32),
    /// It would hold more bytes than this.
    Bytes(u32),
    /// The name is longer than this.
    NameLength(u32),
    /// The value is longer than this.
    ValueLength(u32),
    /// A line of a head cannot have this name: it is empty or not a token.
    NameBytes,
    /// A line of a head cannot have this value: it holds a control character.
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
