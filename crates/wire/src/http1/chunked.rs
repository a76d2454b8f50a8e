//! A chunked body (RFC 9112 §7.1). Framing is parsed byte by byte, data as a whole.
//!
//! ```text
//!   1a;ext CR LF data… CR LF … 0 CR LF name: value CR LF CR LF
//!   Size   └Drop  Data           Last   Trailer           FinalLf
//! ```
//!
//! A size is forwarded in one form only: leading zeros, blanks after it and extensions are dropped.

use super::grammar::{text_length, token_length};
use super::{Limits, Refusal};
use memchr::memchr;

/// Trailers that are forwarded: values that are known only when the body is complete. Other trailers are dropped,
/// because a recipient that merges trailers could treat them as fields of the head.
const TRAILERS: [&[u8]; 5] =
    [b"content-digest", b"repr-digest", b"server-timing", b"grpc-status", b"grpc-message"];

const DIGITS_MAX: u8 = 16;

/// The kind of some bytes of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Data.
    Data,
    /// Framing, and trailers that are forwarded unchanged.
    Frame,
    /// Bytes that must not be forwarded: extensions, and trailers that are not allowed.
    Drop,
}

/// The kind and the number of the bytes at the front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The kind.
    pub kind: Kind,
    /// The number of bytes.
    pub length: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Size {
        digits: u8,
    },
    /// Blanks after a size (BWS): the line end or an extension follows.
    Blank,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    Trailer,
    Done,
}

#[derive(Debug)]
pub(super) struct Chunked {
    at: At,
    /// In a size: the value of the digits so far. In data: the remaining bytes of the chunk.
    left: u64,
    /// The number of data bytes that are still allowed.
    body: u64,
    extension: usize,
    extensions: usize,
    trailers: usize,
    /// Whether there was a trailer that must be forwarded.
    has_trailer: bool,
}

impl Chunked {
    pub(super) const fn new(limits: &Limits) -> Self {
        Self {
            at: At::Size { digits: 0 },
            left: 0,
            body: limits.body,
            extension: limits.extension,
            extensions: limits.extensions,
            trailers: limits.trailers,
            has_trailer: false,
        }
    }

    /// Whether there was a trailer that must be forwarded. Only a chunked body can carry it.
    pub(super) const fn has_trailer(&self) -> bool {
        self.has_trailer
    }

    pub(super) fn is_done(&self) -> bool {
        self.at == At::Done
    }

    /// The remaining data bytes of the chunk. Framing is always parsed.
    pub(super) const fn ahead(&self) -> u64 {
        if matches!(self.at, At::Data) { self.left } else { 0 }
    }

    pub(super) const fn passed(&mut self, count: u64) {
        self.left -= count;
        if self.left == 0 {
            self.at = At::DataCr;
        }
    }

    /// Classifies the bytes at the front. `None` if more bytes are needed.
    pub(super) fn next(&mut self, bytes: &[u8], limits: &Limits) -> Result<Option<Span>, Refusal> {
        let span = |kind, length| Ok(Some(Span { kind, length }));
        match self.at {
            At::Data if !bytes.is_empty() => {
                let length = counted(&mut self.left, bytes.len());
                if self.left == 0 {
                    self.at = At::DataCr;
                }
                span(Kind::Data, length)
            }
            At::Trailer => self.trailer(bytes),
            At::Size { digits } if self.left == 0 && bytes.first() == Some(&b'0') => {
                match self.leading_zeros(digits, bytes)? {
                    Some(0) => span(Kind::Frame, self.frame(bytes, limits)?),
                    Some(length) => span(Kind::Drop, length),
                    None => Ok(None),
                }
            }
            At::Blank if !bytes.is_empty() => match self.blanks(bytes)? {
                0 => self.next(bytes, limits),
                length => span(Kind::Drop, length),
            },
            At::Extension if !bytes.is_empty() => match self.extension(bytes)? {
                0 => self.next(bytes, limits),
                length => span(Kind::Drop, length),
            },
            _ => match self.frame(bytes, limits)? {
                0 if self.is_behind_frame() && !bytes.is_empty() => self.next(bytes, limits),
                0 => Ok(None),
                length => span(Kind::Frame, length),
            },
        }
    }

    const fn is_behind_frame(&self) -> bool {
        matches!(self.at, At::Blank | At::Extension | At::Trailer)
    }

    /// The number of zeros at the front that are followed by another digit. They are dropped. `None` if the byte after
    /// the zeros was not received yet.
    fn leading_zeros(&mut self, digits: u8, bytes: &[u8]) -> Result<Option<usize>, Refusal> {
        let zeros = bytes.iter().take_while(|byte| **byte == b'0').count();
        let is_digit = bytes.get(zeros).map(u8::is_ascii_hexdigit);
        let length = if is_digit == Some(true) { zeros } else { zeros - 1 };
        if length > usize::from(DIGITS_MAX - digits) {
            return Err(Refusal::ChunkSize);
        }
        self.at = At::Size { digits: digits + u8::try_from(length).unwrap_or(DIGITS_MAX) };
        Ok((length > 0 || is_digit.is_some()).then_some(length))
    }

    /// The number of blanks at the front, after a size.
    fn blanks(&mut self, bytes: &[u8]) -> Result<usize, Refusal> {
        let length = bytes.iter().take_while(|byte| matches!(**byte, b' ' | b'\t')).count();
        self.spend_extension(length)?;
        match bytes.get(length) {
            None => {}
            Some(b';') => self.at = At::Extension,
            Some(b'\r') => self.at = At::Size { digits: 1 },
            Some(_) => return Err(Refusal::ChunkSize),
        }
        Ok(length)
    }

    /// Subtracts dropped bytes between a size and its line end from the limits.
    fn spend_extension(&mut self, length: usize) -> Result<(), Refusal> {
        if length > self.extension.min(self.extensions) {
            return Err(Refusal::ChunkExtension);
        }
        self.extension -= length;
        self.extensions -= length;
        Ok(())
    }

    /// Parses sizes and line ends up to data, an extension or the trailers.
    fn frame(&mut self, bytes: &[u8], limits: &Limits) -> Result<usize, Refusal> {
        for (place, &byte) in bytes.iter().enumerate() {
            // Leading zeros of a size are handled before the size is parsed.
            if place > 0 && byte == b'0' && self.left == 0 && matches!(self.at, At::Size { .. }) {
                return Ok(place);
            }
            self.at = match (self.at, byte) {
                (At::Size { digits }, _) if byte.is_ascii_hexdigit() => self.digit(digits, byte)?,
                (At::Size { digits: 1.. }, b'\r') => At::SizeLf,
                (At::Size { digits: 1.. }, b';') => {
                    self.extension = limits.extension;
                    At::Extension
                }
                (At::Size { digits: 1.. }, b' ' | b'\t') => {
                    self.extension = limits.extension;
                    At::Blank
                }
                (At::Size { .. }, _) => return Err(Refusal::ChunkSize),
                (At::SizeLf, b'\n') if self.left == 0 => At::Trailer,
                (At::SizeLf, b'\n') => self.begin()?,
                (At::DataCr, b'\r') => At::DataLf,
                (At::DataLf, b'\n') => At::Size { digits: 0 },
                (At::SizeLf | At::DataCr | At::DataLf, _) => return Err(Refusal::ChunkEnd),
                (At::Blank | At::Extension | At::Data | At::Trailer | At::Done, _) => {
                    return Ok(place);
                }
            };
            match self.at {
                // The semicolon is a part of the extension, and blanks are dropped.
                At::Blank | At::Extension => return Ok(place),
                At::Data | At::Trailer => return Ok(place + 1),
                _ => {}
            }
        }
        Ok(bytes.len())
    }

    fn digit(&mut self, digits: u8, byte: u8) -> Result<At, Refusal> {
        let value = match byte {
            b'0'..=b'9' => byte - b'0',
            _ => (byte | 0x20) - b'a' + 10,
        };
        if digits == DIGITS_MAX || self.left >> 60 > 0 {
            return Err(Refusal::ChunkSize);
        }
        self.left = self.left << 4 | u64::from(value);
        Ok(At::Size { digits: digits + 1 })
    }

    /// Begins a chunk, if the limit of the body allows it.
    fn begin(&mut self) -> Result<At, Refusal> {
        self.body = self.body.checked_sub(self.left).ok_or(Refusal::BodyTooLong)?;
        Ok(At::Data)
    }

    /// The number of bytes at the front that belong to the extensions.
    fn extension(&mut self, bytes: &[u8]) -> Result<usize, Refusal> {
        let length = text_length(bytes);
        self.spend_extension(length)?;
        match bytes.get(length) {
            None => Ok(length),
            // The line end is forwarded, like all framing.
            Some(b'\r') => {
                self.at = At::Size { digits: 1 };
                Ok(length)
            }
            Some(_) => Err(Refusal::ChunkExtension),
        }
    }

    /// Parses one line of the trailers, or the empty line after them. `None` if the line is incomplete.
    fn trailer(&mut self, bytes: &[u8]) -> Result<Option<Span>, Refusal> {
        let Some(end) = memchr(b'\n', bytes) else {
            return if bytes.len() > self.trailers { Err(Refusal::Trailers) } else { Ok(None) };
        };
        let Some(line) = bytes[..end].strip_suffix(b"\r") else { return Err(Refusal::LineFeed) };
        let length = end + 1;
        if line.is_empty() {
            self.at = At::Done;
            return Ok(Some(Span { kind: Kind::Frame, length }));
        }
        self.trailers = self.trailers.checked_sub(length).ok_or(Refusal::Trailers)?;
        let name = token_length(line);
        if name == 0 || line.get(name) != Some(&b':') {
            return Err(Refusal::Trailers);
        }
        if text_length(&line[name..]) < line.len() - name {
            return Err(Refusal::Trailers);
        }
        let allowed = TRAILERS.iter().any(|one| one.eq_ignore_ascii_case(&line[..name]));
        self.has_trailer |= allowed;
        let kind = if allowed { Kind::Frame } else { Kind::Drop };
        Ok(Some(Span { kind, length }))
    }
}

/// Subtracts at most `shown` from `left`, and returns the number that was subtracted.
pub(super) fn counted(left: &mut u64, shown: usize) -> usize {
    let length = usize::try_from(*left).unwrap_or(usize::MAX).min(shown);
    *left -= length as u64;
    length
}
