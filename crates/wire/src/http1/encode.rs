//! Writing: lines, chunks, and answers of our own.

use fields::{Fields, http1};

use super::status::reason;
use super::{Method, Version};

/// The digits of a number stand behind the place given.
#[must_use]
pub fn decimal(number: u64) -> ([u8; 20], usize) {
    let (mut digits, mut start, mut rest) = ([b'0'; 20], 20, number);
    loop {
        start -= 1;
        digits[start] = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
        if rest == 0 {
            return (digits, start);
        }
    }
}

pub(super) fn write_decimal(number: u64, out: &mut Vec<u8>) {
    let (digits, start) = decimal(number);
    out.extend_from_slice(&digits[start..]);
}

/// The lines of a set as they lie.
pub(super) fn lines(fields: &Fields, out: &mut Vec<u8>) {
    for part in http1::io_slices(fields) {
        out.extend_from_slice(&part);
    }
}

pub(super) fn line(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    for part in [name, b": ", value, b"\r\n"] {
        out.extend_from_slice(part);
    }
}

/// Says what becomes of the connection, where the client would expect something else.
pub(super) fn connection(client: Version, keep_alive: bool, out: &mut Vec<u8>) {
    match (client, keep_alive) {
        (Version::Http11, true) | (Version::Http10, false) => {}
        (Version::Http11, false) => out.extend_from_slice(b"Connection: close\r\n"),
        (Version::Http10, true) => out.extend_from_slice(b"Connection: keep-alive\r\n"),
    }
}

/// What stands before the data of a chunk of so many bytes; CR LF stands behind it. A chunk of no
/// bytes with an empty line is the end.
#[must_use]
pub fn chunk_head(length: usize) -> ([u8; 18], usize) {
    let (mut digits, mut start, mut rest) = ([0; 18], 16, length);
    digits[16..].copy_from_slice(b"\r\n");
    loop {
        start -= 1;
        digits[start] = b"0123456789abcdef"[rest & 15];
        rest >>= 4;
        if rest == 0 {
            return (digits, start);
        }
    }
}

/// An answer of our own.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// Its status, 200 to 599.
    pub status: u16,
    /// What its body is; nothing is said of an empty one, nor where this is empty.
    pub content_type: &'a str,
    /// Lines of its head, each with its CR LF: of our own making.
    pub lines: &'a [u8],
    /// Its body.
    pub body: &'a [u8],
    /// Whether we go on with the connection.
    pub keep_alive: bool,
}

impl Answer<'_> {
    /// Whether its status can have a body.
    const fn has_body(&self) -> bool {
        !matches!(self.status, 204 | 304)
    }

    /// Whether its head tells what its body is.
    #[must_use]
    pub const fn tells_type(&self) -> bool {
        self.has_body() && !self.body.is_empty() && !self.content_type.is_empty()
    }
}

/// Lines that we add to a head, each with its CR LF, or empty.
#[derive(Clone, Copy, Debug, Default)]
pub struct Added<'a> {
    /// `Date`, for a head that has none.
    pub date: &'a [u8],
    /// `Via`, for a head that we forward.
    pub via: &'a [u8],
}

/// How the body of a reply goes to its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sending {
    /// As it comes, framing and all.
    Verbatim,
    /// In chunks of ours: the server ends it by its end, and this client can be told better.
    Chunked,
    /// Its data alone, and the connection ends behind it: the client knows no chunks.
    Data,
}

/// Appends the head of a successful answer of ours whose length is not known yet, and says how its
/// body is sent. Without chunks the end of the connection is the end of the body: then `keep_alive`
/// becomes false. `lines` are of the head, each with its CR LF: of our own making.
pub fn write_open_answer(
    lines: &[u8],
    client: Version,
    keep_alive: &mut bool,
    out: &mut Vec<u8>,
) -> Sending {
    out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
    out.extend_from_slice(lines);
    let sending = match client {
        Version::Http10 => {
            *keep_alive = false;
            Sending::Verbatim
        }
        Version::Http11 => {
            out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
            Sending::Chunked
        }
    };
    connection(client, *keep_alive, out);
    out.extend_from_slice(b"\r\n");
    sending
}

/// Appends an answer to a request of that method and version. `date` is the line of that field.
pub fn write_answer(
    answer: &Answer<'_>,
    method: Method,
    client: Version,
    date: &[u8],
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(b"HTTP/1.1 ");
    write_decimal(u64::from(answer.status), out);
    out.push(b' ');
    out.extend_from_slice(reason(answer.status).as_bytes());
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(date);
    out.extend_from_slice(answer.lines);
    if answer.has_body() {
        if answer.tells_type() {
            line(b"Content-Type", answer.content_type.as_bytes(), out);
        }
        out.extend_from_slice(b"Content-Length: ");
        write_decimal(answer.body.len() as u64, out);
        out.extend_from_slice(b"\r\n");
    }
    connection(client, answer.keep_alive, out);
    out.extend_from_slice(b"\r\n");
    if answer.has_body() && method != Method::Head {
        out.extend_from_slice(answer.body);
    }
}
