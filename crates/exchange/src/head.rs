//! HTTP requests and responses, as a handler sees them: without a parser, and without the rules of the protocol.

use std::fmt;

use crate::Slice;

/// The head of an HTTP request: method, target and header fields.
///
/// The fields are those that the client sent, without hop-by-hop fields and with the changes of the route.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Head {
    /// Method, target, and the names and values of all fields.
    bytes: Vec<u8>,
    method: usize,
    /// The end of the target in `bytes`.
    target: usize,
    /// The ends of the name and of the value of each field in `bytes`.
    ends: Vec<(u32, u32)>,
}

impl Head {
    /// Creates a head without fields. `target` is the path and the query.
    #[must_use]
    pub fn new(method: &[u8], target: &[u8]) -> Self {
        let bytes = [method, target].concat();
        let target = bytes.len();
        Self { bytes, method: method.len(), target, ends: Vec::new() }
    }

    /// Appends a field.
    pub fn push(&mut self, name: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(name);
        let name = self.bytes.len();
        self.bytes.extend_from_slice(value);
        let end = |at: usize| u32::try_from(at).expect("heads are limited to less than 4 GiB");
        self.ends.push((end(name), end(self.bytes.len())));
    }

    /// The method, such as `GET`.
    #[must_use]
    pub fn method(&self) -> &str {
        // A method is a token, which is ASCII.
        std::str::from_utf8(&self.bytes[..self.method]).unwrap_or_default()
    }

    /// The path and the query, percent-encoded as the client sent them, or as the route has rewritten them.
    #[must_use]
    pub fn target(&self) -> &[u8] {
        &self.bytes[self.method..self.target]
    }

    /// The target up to the `?`.
    #[must_use]
    pub fn path(&self) -> &[u8] {
        self.target().split(|&byte| byte == b'?').next().unwrap_or_default()
    }

    /// The target behind the `?`.
    #[must_use]
    pub fn query(&self) -> Option<&[u8]> {
        let mark = self.target().iter().position(|&byte| byte == b'?')?;
        Some(&self.target()[mark + 1..])
    }

    /// The header fields in the order of the client, each with its name and its value. The case of a name is that of
    /// the client.
    pub fn headers(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut start = self.target;
        self.ends.iter().map(move |&(name, end)| {
            let (name, end) = (name as usize, end as usize);
            let field = (&self.bytes[start..name], &self.bytes[name..end]);
            start = end;
            field
        })
    }

    /// The value of the first header field with this name; the case of the name is ignored.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        let mut fields = self.headers();
        fields.find(|(it, _)| it.eq_ignore_ascii_case(name.as_bytes())).map(|(_, value)| value)
    }
}

impl fmt::Debug for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The values may be secrets.
        f.debug_struct("Head")
            .field("method", &self.method())
            .field("target", &self.target().escape_ascii().to_string())
            .field("fields", &self.ends.len())
            .finish()
    }
}

/// The response of a handler to an HTTP request: status, header fields and body.
///
/// ```
/// use exchange::Response;
///
/// let response = Response::new(404).header("Cache-Control", "no-store").body("no such page\n");
/// assert_eq!(response.status, 404);
/// ```
///
/// It is checked before it is sent. `Content-Length` and hop-by-hop fields belong to the gateway, and a field must not
/// contain a line end. A response that breaks a rule becomes a 502 with the cause `garbled`. A body without
/// `Content-Type` is `text/plain; charset=utf-8`. The body of a response to `HEAD` is not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The status code, from 200 to 599.
    pub status: u16,
    /// The header fields, each with its name and its value.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The body. It must be empty for the statuses 204 and 304.
    pub body: Slice,
}

impl Response {
    /// Creates a response without fields and without a body.
    #[must_use]
    pub fn new(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Slice::default() }
    }

    /// Adds a header field. A name may occur several times.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.headers.push((name.to_owned(), value.as_ref().to_vec()));
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: impl AsRef<[u8]>) -> Self {
        self.body = Slice::from(body.as_ref());
        self
    }

    /// Sets the body without a copy.
    #[must_use]
    pub fn slice(mut self, body: Slice) -> Self {
        self.body = body;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_gives_back_what_was_put_in() {
        let mut head = Head::new(b"POST", b"/a%20b?x=1?");
        assert_eq!(head.headers().count(), 0);
        head.push(b"Host", b"h");
        head.push(b"X-Empty", b"");
        head.push(b"host", b"other");
        assert_eq!(head.method(), "POST");
        assert_eq!((head.path(), head.query()), (&b"/a%20b"[..], Some(&b"x=1?"[..])));
        let fields: Vec<_> = head.headers().collect();
        let expected: [(&[u8], &[u8]); 3] =
            [(b"Host", b"h"), (b"X-Empty", b""), (b"host", b"other")];
        assert_eq!(fields, expected);
        assert_eq!(head.header("HOST"), Some(&b"h"[..]));
        assert_eq!((head.header("x-empty"), head.header("x")), (Some(&b""[..]), None));
        assert_eq!(Head::new(b"GET", b"/").query(), None);
    }
}
