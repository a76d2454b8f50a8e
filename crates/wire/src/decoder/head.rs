//! The head of a message in the base protocol of the Language Server Protocol.
//!
//! It consists of lines with a name, a colon and a value, each terminated by CRLF, and an empty line. Names are
//! compared without case, as in HTTP. `Content-Length` is read; other fields are ignored.

use memchr::memchr;

use super::fault::Fault;
use crate::framing::HEAD_MAX;

/// The state of reading the current head.
#[derive(Debug)]
pub(super) struct Head {
    /// The position of the first incomplete line.
    line: usize,
    /// The number of scanned bytes. They contain no line end at or after `line`.
    scanned: usize,
    length: Option<u64>,
}

impl Head {
    pub(super) const fn new() -> Self {
        Self { line: 0, scanned: 0, length: None }
    }

    /// The lengths of the head and of the body, if the head is complete. `rest` begins with the head, including all
    /// bytes of earlier calls.
    pub(super) fn next(&mut self, rest: &[u8]) -> Option<Result<(usize, u64), Fault>> {
        let shown = &rest[..rest.len().min(HEAD_MAX)];
        while let Some(found) = memchr(b'\n', shown.get(self.scanned..)?) {
            let end = self.scanned + found;
            let Some(line) = shown[self.line..end].strip_suffix(b"\r") else {
                return Some(Err(Fault::LineFeed));
            };
            (self.line, self.scanned) = (end + 1, end + 1);
            if line.is_empty() {
                return Some(self.length.map(|length| (end + 1, length)).ok_or(Fault::NoLength));
            }
            if let Err(fault) = self.header(line) {
                return Some(Err(fault));
            }
        }
        self.scanned = shown.len();
        (shown.len() == HEAD_MAX).then_some(Err(Fault::Head))
    }

    fn header(&mut self, line: &[u8]) -> Result<(), Fault> {
        let colon = memchr(b':', line).ok_or(Fault::Header)?;
        let (name, value) = (&line[..colon], &line[colon + 1..]);
        if name.is_empty() || !name.iter().all(|&byte| is_name(byte)) {
            return Err(Fault::Header);
        }
        if name.eq_ignore_ascii_case(b"content-length") {
            let length = decimal(value.trim_ascii()).ok_or(Fault::Length)?;
            if self.length.replace(length).is_some() {
                return Err(Fault::Length);
            }
        }
        Ok(())
    }
}

/// Whether a byte is allowed in a header name: RFC 9110, section 5.6.2.
const fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'^'..=b'`' | b'|' | b'~')
}

fn decimal(digits: &[u8]) -> Option<u64> {
    let mut number: u64 = 0;
    for &digit in digits {
        let value = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        number = number.checked_mul(10)?.checked_add(value)?;
    }
    (!digits.is_empty()).then_some(number)
}
