//! The head of a message of the Language Server Protocol's base protocol.
//!
//! Lines of a name, a colon and a value, each with CRLF; an empty line ends it. Names are compared
//! as in HTTP, without regard to case. `Content-Length` is read, whatever else is there is not.

use memchr::memchr;

use super::fault::Fault;
use crate::framing::HEAD_MAX;

/// How far the head at the front was read.
#[derive(Debug)]
pub(super) struct Head {
    /// Where the first line begins that was not whole.
    line: usize,
    /// Bytes that hold no line end but those before `line`.
    scanned: usize,
    length: Option<u64>,
}

impl Head {
    pub(super) const fn new() -> Self {
        Self { line: 0, scanned: 0, length: None }
    }

    /// The bytes of the head and of the body, once the head is whole. `rest` begins with the head
    /// and what was shown before.
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

/// The characters of a header's name: RFC 9110, section 5.6.2.
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
