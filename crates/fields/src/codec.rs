//! What encoders cannot say and decoders cannot read.

use std::fmt;

use crate::set::Filling;
use crate::{FieldError, Fields};

/// A field that a format has no way to say. What was written to is as it was before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfit {
    /// Which field, counted from 0.
    pub index: usize,
    /// What about it.
    pub reason: UnfitReason,
}

/// What about a field a format cannot say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnfitReason {
    /// Its name.
    Name,
    /// Its value.
    Value,
    /// That it is NULL.
    Null,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.reason {
            UnfitReason::Name => "has a name",
            UnfitReason::Value => "has a value",
            UnfitReason::Null => "is NULL",
        };
        write!(f, "field {} {what}, which this format cannot say", self.index)
    }
}

impl std::error::Error for Unfit {}

/// Why bytes are not what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeReason {
    /// A length is missing, too long, or written with a leading zero.
    Length,
    /// The end came too early.
    Unended,
    /// Something else stands where a mark of the format should.
    Mark,
    /// A name is missing or holds what it must not.
    Name,
    /// A backslash stands before something that it cannot be.
    Escape,
    /// There are so many values.
    Values {
        /// This many were wanted.
        wanted: usize,
        /// This many are there, or more.
        found: usize,
    },
    /// The set does not take it.
    Limit(FieldError),
}

/// Bytes that are not what they should be: why, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// Why.
    pub reason: DecodeReason,
    /// The byte at which that was seen, counted from 1; the length plus one at the end.
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

/// Lets `read` add to `fields` and takes back what it added when it fails.
pub(crate) fn whole<E>(
    fields: &mut Fields,
    read: impl FnOnce(&mut Filling<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let before = fields.len();
    let result = read(&mut Filling::copying(fields));
    if result.is_err() {
        fields.truncate(before);
    }
    result
}

/// Runs `write` on `out` and takes back what it added when it fails.
pub(crate) fn written(
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), Unfit>,
) -> Result<(), Unfit> {
    let before = out.len();
    let result = write(out);
    if result.is_err() {
        out.truncate(before);
    }
    result
}

/// Appends a count in decimal digits.
pub(crate) fn push_count(out: &mut Vec<u8>, count: usize) {
    use std::io::Write as _;
    write!(out, "{count}").expect("a buffer takes what is written to it");
}
