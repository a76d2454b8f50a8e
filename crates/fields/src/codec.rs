//! Errors of encoders and decoders.

use std::fmt;

use crate::set::FieldSink;
use crate::{FieldError, Fields};

/// A field that a format cannot represent. The output is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncodeError {
    /// The index of the field, counted from 0.
    pub index: usize,
    /// The part of the field that cannot be represented.
    pub reason: EncodeReason,
}

/// The part of a field that a format cannot represent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncodeReason {
    /// The name.
    Name,
    /// The value.
    Value,
    /// NULL.
    Null,
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.reason {
            EncodeReason::Name => "has a name",
            EncodeReason::Value => "has a value",
            EncodeReason::Null => "is NULL",
        };
        write!(f, "field {} {what}, which this format cannot say", self.index)
    }
}

impl std::error::Error for EncodeError {}

/// Why bytes cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeReason {
    /// A length is missing, too long, or written with a leading zero.
    Length,
    /// The end of the input was reached too early.
    Unended,
    /// A delimiter of the format was expected.
    Mark,
    /// A name is missing or contains a byte that is not allowed.
    Name,
    /// An unknown escape follows a backslash.
    Escape,
    /// The number of values is wrong.
    Values {
        /// The expected number of values.
        wanted: usize,
        /// The number of values that were found. There may be more.
        found: usize,
    },
    /// A limit of the set was exceeded.
    Limit(FieldError),
}

/// A decoding error: its reason and its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// The reason.
    pub reason: DecodeReason,
    /// The position of the byte at which the error was found, counted from 1. At the end of the input: the length plus
    /// one.
    pub byte: usize,
}

impl DecodeError {
    pub(crate) const fn at(place: usize, reason: DecodeReason) -> Self {
        Self { reason, byte: place + 1 }
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason {
            DecodeReason::Length => f.write_str("no length")?,
            DecodeReason::Unended => f.write_str("the end came too early")?,
            DecodeReason::Mark => f.write_str("unexpected byte")?,
            DecodeReason::Name => f.write_str("no name")?,
            DecodeReason::Escape => f.write_str("unknown escape")?,
            DecodeReason::Values { wanted, found } if found > wanted => {
                write!(f, "more than {wanted} values")?;
            }
            DecodeReason::Values { wanted, found } => write!(f, "{found} values, not {wanted}")?,
            DecodeReason::Limit(error) => error.fmt(f)?,
        }
        write!(f, " at byte {}", self.byte)
    }
}

impl std::error::Error for DecodeError {}

/// Calls `read` to add to `fields`. If it fails, the added fields are removed.
pub(crate) fn whole<E>(
    fields: &mut Fields,
    read: impl FnOnce(&mut FieldSink<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let before = fields.len();
    let result = read(&mut FieldSink::copying(fields));
    if result.is_err() {
        fields.truncate(before);
    }
    result
}

/// Calls `write` to append to `out`. If it fails, the appended bytes are removed.
pub(crate) fn written(
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    let before = out.len();
    let result = write(out);
    if result.is_err() {
        out.truncate(before);
    }
    result
}

/// Appends a number in decimal digits.
pub(crate) fn push_count(out: &mut Vec<u8>, count: usize) {
    use std::io::Write as _;
    write!(out, "{count}").expect("a buffer takes what is written to it");
}
