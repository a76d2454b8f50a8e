//! Framings: how frames are delimited in a stream, and how a body is put into a frame.
//!
//! | framing          | a frame                                            | skipped when too long     |
//! |------------------|----------------------------------------------------|---------------------------|
//! | `lines`          | bytes, LF; a CR before it belongs to the line end  | up to its LF              |
//! | `nul`            | bytes, NUL                                         | up to its NUL             |
//! | `len1` `len2` `len4` | length, big-endian; bytes                      | by its length             |
//! | `netstring`      | length in decimal, `:`, bytes, `,`                 | by its length             |
//! | `content-length` | `Content-Length: N` CRLF CRLF, bytes               | by its length             |
//! | `jsonrpc`        | as `lines`; blank lines are ignored                | up to its LF              |
//! | `raw`            | the bytes of one read                              | never: it is divided      |
//! | `oneshot`        | all bytes up to the end of the stream              | up to the end             |

use std::fmt;

use memchr::memchr;

/// The maximum length of a `content-length` head, including its last CRLF, in bytes.
pub const HEAD_MAX: usize = 4096;

/// The length of a length prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// One byte, for bodies of up to 255 bytes.
    One,
    /// Two bytes, for bodies of up to 65,535 bytes.
    Two,
    /// Four bytes, for bodies of up to 4,294,967,295 bytes.
    Four,
}

impl Width {
    /// The length of the prefix, in bytes.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::One => 1,
            Self::Two => 2,
            Self::Four => 4,
        }
    }

    /// The maximum length of a body, in bytes.
    #[must_use]
    pub const fn body_max(self) -> usize {
        match self {
            Self::One => u8::MAX as usize,
            Self::Two => u16::MAX as usize,
            Self::Four => u32::MAX as usize,
        }
    }
}

/// How frames are delimited in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Framing {
    /// One frame per line.
    Lines,
    /// A NUL after each frame.
    Nul,
    /// A big-endian length before each frame, as in Erlang's `{packet, 1|2|4}`.
    Len(Width),
    /// Netstrings, such as `5:hello,`.
    Netstring,
    /// The base protocol of the Language Server Protocol.
    ContentLength,
    /// One JSON object per line, as in the stdio transport of the Model Context Protocol.
    JsonRpc,
    /// Bytes without frames.
    Raw,
    /// One frame, terminated by the end of the stream.
    Oneshot,
}

impl Framing {
    /// All framings.
    pub const ALL: &[Self] = &[
        Self::Lines,
        Self::Nul,
        Self::Len(Width::One),
        Self::Len(Width::Two),
        Self::Len(Width::Four),
        Self::Netstring,
        Self::ContentLength,
        Self::JsonRpc,
        Self::Raw,
        Self::Oneshot,
    ];

    /// The name of the framing in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lines => "lines",
            Self::Nul => "nul",
            Self::Len(Width::One) => "len1",
            Self::Len(Width::Two) => "len2",
            Self::Len(Width::Four) => "len4",
            Self::Netstring => "netstring",
            Self::ContentLength => "content-length",
            Self::JsonRpc => "jsonrpc",
            Self::Raw => "raw",
            Self::Oneshot => "oneshot",
        }
    }

    /// Whether frames usually are JSON-RPC messages. If so, rejections are error objects.
    #[must_use]
    pub const fn is_json(self) -> bool {
        matches!(self, Self::JsonRpc | Self::ContentLength)
    }

    /// Whether the sender closes its direction of the stream to end the frame.
    #[must_use]
    pub const fn ends_with_stream(self) -> bool {
        matches!(self, Self::Oneshot)
    }

    /// The maximum number of bytes that a [`Decoder`](crate::Decoder) leaves unconsumed: the size of the receive buffer
    /// for frames of up to `frame_max` bytes.
    #[must_use]
    pub const fn recv_buffer_max(self, frame_max: usize) -> usize {
        let overhead = match self {
            Self::Lines | Self::JsonRpc => 1,
            Self::Nul | Self::Oneshot => 0,
            Self::Len(width) => width.bytes(),
            Self::Netstring => NETSTRING_DIGITS_MAX + 2,
            Self::ContentLength => HEAD_MAX,
            Self::Raw => return 0,
        };
        frame_max.saturating_add(overhead)
    }
}

/// The maximum number of digits in the length of a netstring, even if the length is over the limit.
pub(crate) const NETSTRING_DIGITS_MAX: usize = 19;

/// Why a framing cannot carry a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unframable {
    /// The body contains a line feed, which would end the frame.
    LineFeed,
    /// The body contains a NUL, which would end the frame.
    Nul,
    /// The body is too long for the length prefix.
    Length(Width),
}

impl Unframable {
    /// A description of the reason in one sentence, for a rejection.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            Self::LineFeed => "it holds a line feed, which a line cannot carry",
            Self::Nul => "it holds a NUL, which ends a frame of this framing",
            Self::Length(Width::One) => "a frame of len1 has at most 255 bytes",
            Self::Length(Width::Two) => "a frame of len2 has at most 65535 bytes",
            Self::Length(Width::Four) => "a frame of len4 has at most 4294967295 bytes",
        }
    }
}

impl fmt::Display for Unframable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl std::error::Error for Unframable {}

/// The bytes before and after a body. With an envelope, the body itself need not be copied.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Envelope {
    head: [u8; Self::HEAD],
    head_length: usize,
    tail: &'static [u8],
}

impl Envelope {
    /// The maximum length of a head: `Content-Length: ` with 20 digits and two CRLF.
    const HEAD: usize = 40;

    const fn new(tail: &'static [u8]) -> Self {
        Self { head: [0; Self::HEAD], head_length: 0, tail }
    }

    fn with(mut self, bytes: &[u8]) -> Self {
        let end = self.head_length + bytes.len();
        self.head[self.head_length..end].copy_from_slice(bytes);
        self.head_length = end;
        self
    }

    fn with_decimal(self, number: usize) -> Self {
        let mut digits = [0; 20];
        let (mut start, mut rest) = (digits.len(), number);
        loop {
            start -= 1;
            digits[start] = b"0123456789"[rest % 10];
            rest /= 10;
            if rest == 0 {
                return self.with(&digits[start..]);
            }
        }
    }

    /// The bytes before the body.
    #[must_use]
    pub fn head(&self) -> &[u8] {
        &self.head[..self.head_length]
    }

    /// The bytes after the body.
    #[must_use]
    pub const fn tail(&self) -> &'static [u8] {
        self.tail
    }
}

/// The envelope for `body` in `framing`.
///
/// A body of `lines` may end with CR. A receiver that accepts CRLF as a line end, as [`Decoder`](crate::Decoder) does,
/// treats this CR as part of the line end.
///
/// # Errors
/// If the framing cannot carry this body.
pub fn envelope(framing: Framing, body: &[u8]) -> Result<Envelope, Unframable> {
    let length = body.len();
    match framing {
        Framing::Lines | Framing::JsonRpc => match memchr(b'\n', body) {
            Some(_) => Err(Unframable::LineFeed),
            None => Ok(Envelope::new(b"\n")),
        },
        Framing::Nul => match memchr(0, body) {
            Some(_) => Err(Unframable::Nul),
            None => Ok(Envelope::new(b"\0")),
        },
        Framing::Len(width) if length > width.body_max() => Err(Unframable::Length(width)),
        Framing::Len(width) => {
            let prefix = (length as u64).to_be_bytes();
            Ok(Envelope::new(b"").with(&prefix[prefix.len() - width.bytes()..]))
        }
        Framing::Netstring => Ok(Envelope::new(b",").with_decimal(length).with(b":")),
        Framing::ContentLength => {
            let head = Envelope::new(b"").with(b"Content-Length: ");
            Ok(head.with_decimal(length).with(b"\r\n\r\n"))
        }
        Framing::Raw | Framing::Oneshot => Ok(Envelope::new(b"")),
    }
}

/// Appends `body` as one frame to `out`.
///
/// ```
/// use wire::{Framing, Unframable, encode};
///
/// let mut out = Vec::new();
/// encode(Framing::Netstring, b"hello", &mut out).unwrap();
/// assert_eq!(out, b"5:hello,");
/// assert_eq!(encode(Framing::Lines, b"two\nlines", &mut out), Err(Unframable::LineFeed));
/// ```
///
/// # Errors
/// If the framing cannot carry this body. In this case nothing is written.
pub fn encode(framing: Framing, body: &[u8], out: &mut Vec<u8>) -> Result<(), Unframable> {
    // Most replies are short lines. For them, creating an envelope would be most of the work.
    if matches!(framing, Framing::Lines | Framing::JsonRpc) {
        if memchr(b'\n', body).is_some() {
            return Err(Unframable::LineFeed);
        }
        out.reserve(body.len() + 1);
        out.extend_from_slice(body);
        out.push(b'\n');
        return Ok(());
    }
    let envelope = envelope(framing, body)?;
    out.reserve(envelope.head().len() + body.len() + envelope.tail().len());
    out.extend_from_slice(envelope.head());
    out.extend_from_slice(body);
    out.extend_from_slice(envelope.tail());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_framing_writes_its_frame() {
        let expected: &[&[u8]] = &[
            b"hello\n",
            b"hello\0",
            b"\x05hello",
            b"\0\x05hello",
            b"\0\0\0\x05hello",
            b"5:hello,",
            b"Content-Length: 5\r\n\r\nhello",
            b"hello\n",
            b"hello",
            b"hello",
        ];
        assert_eq!(expected.len(), Framing::ALL.len());
        for (framing, expected) in Framing::ALL.iter().zip(expected) {
            let mut out = b"before".to_vec();
            encode(*framing, b"hello", &mut out).unwrap();
            assert_eq!(&out[6..], *expected, "{}", framing.as_str());
        }
    }

    #[test]
    fn the_greatest_bodies_fit_and_one_byte_more_does_not() {
        for width in [Width::One, Width::Two] {
            let mut body = vec![b'x'; width.body_max()];
            assert!(envelope(Framing::Len(width), &body).is_ok());
            body.push(b'x');
            let refused = envelope(Framing::Len(width), &body).unwrap_err();
            assert_eq!(refused, Unframable::Length(width));
        }
    }

    #[test]
    fn what_would_end_the_frame_is_refused_and_nothing_is_written() {
        let mut out = Vec::new();
        for (framing, body, reason) in [
            (Framing::Lines, &b"a\nb"[..], Unframable::LineFeed),
            (Framing::JsonRpc, b"{\n}", Unframable::LineFeed),
            (Framing::Nul, b"a\0", Unframable::Nul),
        ] {
            assert_eq!(encode(framing, body, &mut out), Err(reason));
            assert!(out.is_empty());
        }
    }

    #[test]
    fn lengths_are_written_to_the_last_digit() {
        for (number, digits) in [(0, "0"), (10, "10"), (usize::MAX, "18446744073709551615")] {
            assert_eq!(Envelope::new(b"").with_decimal(number).head(), digits.as_bytes());
        }
        let greatest = Envelope::new(b"").with(b"Content-Length: ").with_decimal(usize::MAX);
        assert_eq!(greatest.with(b"\r\n\r\n").head().len(), Envelope::HEAD);
    }
}
