//! What requests are told apart by: a field, a cookie, the path, a parameter of the query; found in
//! a head as it goes to the server, without a copy and without a table.
//!
//! Nothing is decoded: two spellings of one value are two values.

use std::ops::Range;

use memchr::{memchr, memchr2, memmem, memrchr};

/// The lines of a head behind its first one, without their ends; the empty line at its end is none.
fn lines(head: &[u8]) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut at = memchr(b'\n', head).map_or(head.len(), |end| end + 1);
    std::iter::from_fn(move || {
        let length = memchr(b'\n', head.get(at..)?)?;
        let line = at..at + length - usize::from(length > 0 && head[at + length - 1] == b'\r');
        at += length + 1;
        (!line.is_empty()).then_some(line)
    })
}

/// Where the value stands, if this line is a field of that name.
fn value(head: &[u8], line: Range<usize>, name: &[u8]) -> Option<Range<usize>> {
    let bytes = &head[line.clone()];
    let (found, rest) = bytes.split_at_checked(name.len())?;
    if !found.eq_ignore_ascii_case(name) || rest.first() != Some(&b':') {
        return None;
    }
    Some(trimmed(head, line.start + name.len() + 1..line.end))
}

/// Without blanks at both ends.
fn trimmed(bytes: &[u8], range: Range<usize>) -> Range<usize> {
    let inner = &bytes[range.clone()];
    let start = range.end - inner.trim_ascii_start().len();
    let end = start + bytes[start..range.end].trim_ascii_end().len();
    start..end
}

/// The value of the first field of that name.
#[must_use]
pub fn field(head: &[u8], name: &[u8]) -> Option<Range<usize>> {
    lines(head).find_map(|line| value(head, line, name))
}

/// The value of the first cookie of that name.
///
/// ```
/// use wire::http1::keys::cookie;
/// let head = b"GET / HTTP/1.1\r\nCookie: a=1; berth=x\r\n\r\n";
/// assert_eq!(cookie(head, b"berth").map(|place| &head[place]), Some(&b"x"[..]));
/// ```
#[must_use]
pub fn cookie(head: &[u8], name: &[u8]) -> Option<Range<usize>> {
    cookies(head, name).next()
}

/// The values of all cookies of that name, in their order.
pub fn cookies<'a>(head: &'a [u8], name: &'a [u8]) -> impl Iterator<Item = Range<usize>> + 'a {
    let all = lines(head).filter_map(|line| value(head, line, b"cookie"));
    all.flat_map(move |cookies| {
        let mut at = cookies.start;
        std::iter::from_fn(move || {
            while at < cookies.end {
                let end = memchr(b';', &head[at..cookies.end]).map_or(cookies.end, |end| at + end);
                let pair = trimmed(head, at..end);
                at = end + 1;
                if let Some(rest) = head[pair.clone()].strip_prefix(name)
                    && rest.first() == Some(&b'=')
                {
                    return Some(pair.end - rest.len() + 1..pair.end);
                }
            }
            None
        })
    })
}

/// A cookie that is looked for in many heads.
///
/// ```
/// use wire::http1::keys::Cookie;
/// let head = b"GET / HTTP/1.1\r\nCookie: a=1; berth=x\r\n\r\n";
/// assert_eq!(Cookie::new(b"berth").find(head).map(|place| &head[place]), Some(&b"x"[..]));
/// ```
#[derive(Debug)]
pub struct Cookie {
    name: Box<[u8]>,
    /// The name and what stands behind it.
    pair: memmem::Finder<'static>,
}

impl Cookie {
    /// The cookie of this name.
    #[must_use]
    pub fn new(name: &[u8]) -> Self {
        let pair = memmem::Finder::new(&[name, b"="].concat()).into_owned();
        Self { name: name.into(), pair }
    }

    /// As [`cookie`], in a head that ends with its empty line and has nothing behind it: found in one
    /// go, without walking from line to line.
    #[must_use]
    pub fn find(&self, head: &[u8]) -> Option<Range<usize>> {
        let at = self.pair.find(head)?;
        // One that only looks like it may stand before it. Only the first is looked at so, for who
        // sends many of them must not have each line searched again and again.
        self.value_at(head, at).or_else(|| cookie(head, &self.name))
    }

    /// The value, if the pair at this place is one of a line of cookies.
    fn value_at(&self, head: &[u8], at: usize) -> Option<Range<usize>> {
        // Most often it is the first of its line.
        let is_first = match head[..at].last_chunk::<9>() {
            Some([b'\n', line @ ..]) => line[7] == b' ' && is_cookie(*line),
            _ => false,
        };
        if !is_first {
            let line = memrchr(b'\n', &head[..at])? + 1;
            let before = head[line..at].get(FIELD.len()..)?;
            let begins = before.trim_ascii_end().last().is_none_or(|byte| *byte == b';');
            if !begins || !head[line..].first_chunk().is_some_and(|line| is_cookie(*line)) {
                return None;
            }
        }
        let start = at + self.pair.needle().len();
        let length = memchr2(b';', b'\n', &head[start..])?;
        Some(start..start + head[start..start + length].trim_ascii_end().len())
    }
}

/// The name of the lines of cookies, and what stands behind it.
const FIELD: &[u8] = b"cookie:";

/// Whether a line that begins so is one of cookies.
fn is_cookie(line: [u8; 8]) -> bool {
    const NAME: u64 = u64::from_le_bytes(*b"cookie:\0");
    // The case of its letters does not count, nor what stands behind the colon.
    const COUNTS: u64 = u64::from_le_bytes([0xdf, 0xdf, 0xdf, 0xdf, 0xdf, 0xdf, 0xff, 0]);
    (u64::from_le_bytes(line) ^ NAME) & COUNTS == 0
}

/// The target in the first line: its path, and its query behind a `?`.
fn target(head: &[u8]) -> Option<(Range<usize>, Range<usize>)> {
    let start = memchr(b' ', head)? + 1;
    let end = start + head[start..].iter().position(|byte| matches!(byte, b' ' | b'\r' | b'\n'))?;
    let path_end = memchr(b'?', &head[start..end]).map_or(end, |mark| start + mark);
    Some((start..path_end, (path_end + 1).min(end)..end))
}

/// The path, without its query.
#[must_use]
pub fn path(head: &[u8]) -> Option<Range<usize>> {
    target(head).map(|(path, _)| path)
}

/// The value of the first parameter of that name in the query.
#[must_use]
pub fn parameter(head: &[u8], name: &[u8]) -> Option<Range<usize>> {
    let (_, query) = target(head)?;
    let mut at = query.start;
    while at < query.end {
        let end = memchr(b'&', &head[at..query.end]).map_or(query.end, |end| at + end);
        if let Some(rest) = head[at..end].strip_prefix(name)
            && rest.first() == Some(&b'=')
        {
            return Some(end - rest.len() + 1..end);
        }
        at = end + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &[u8] = b"GET /a/b?user=ann&users=2&x HTTP/1.1\r\nHost: h\r\nX-User:  bob \r\n\
        COOKIE: ab=0; a=1;b=2 ; c=\"x y\"\r\ncookie: d=a=b\r\n\r\nX-Body: no\r\nCookie: e=1\r\n";

    fn text(found: Option<Range<usize>>) -> Option<&'static str> {
        found.map(|place| std::str::from_utf8(&HEAD[place]).unwrap())
    }

    #[test]
    fn each_is_found_where_it_stands_and_not_in_the_body() {
        for (name, due) in [("x-user", Some("bob")), ("x-use", None), ("x-body", None)] {
            assert_eq!(text(field(HEAD, name.as_bytes())), due, "{name}");
        }
        for (name, due) in [
            ("a", Some("1")),
            ("b", Some("2")),
            ("c", Some("\"x y\"")),
            ("d", Some("a=b")),
            ("A", None),
            ("e", None),
        ] {
            assert_eq!(text(cookie(HEAD, name.as_bytes())), due, "{name}");
        }
        for (name, due) in [("user", Some("ann")), ("users", Some("2")), ("x", None), ("u", None)] {
            assert_eq!(text(parameter(HEAD, name.as_bytes())), due, "{name}");
        }
        assert_eq!(text(path(HEAD)), Some("/a/b"));
    }

    #[test]
    fn one_that_is_looked_for_in_many_heads_is_found_where_it_stands() {
        // Parts of heads, in all orders: what looks like it, and what is it.
        let parts = [
            "Cookie: a=1\r\n",
            "cookie:  b=2;a=x y ;a=3\r\n",
            "X-Cookie: a=9\r\n",
            "COOKIE: ba=4; =; a\r\n",
            "Host: a=5\r\n",
            "Cookie:a=;c\r\n",
            "Cookie: b=\"; a=7\"\r\n",
            "Cookie: x a=8\n",
        ];
        let finder = Cookie::new(b"a");
        for order in 0..parts.len().pow(4) {
            let chosen = (0..4).map(|nth| parts[order / parts.len().pow(nth) % parts.len()]);
            let head = format!("GET /?a=0 HTTP/1.1\r\n{}\r\n", chosen.collect::<String>());
            assert_eq!(finder.find(head.as_bytes()), cookie(head.as_bytes(), b"a"), "{head}");
        }
        for odd in [&b""[..], b"a=", b"a=\n", b"\na=1", b"\ncookie:a=1", b"\ncookie:;a=\n"] {
            let _ = finder.find(odd);
        }
    }

    #[test]
    fn whatever_the_bytes_are_nothing_breaks() {
        for end in 0..HEAD.len() {
            let head = &HEAD[..end];
            let found =
                [path(head), parameter(head, b"x"), field(head, b"host"), cookie(head, b"b")];
            assert!(found.into_iter().flatten().all(|place| place.end <= end));
        }
        for odd in [&b""[..], b"\n", b"\r\n\r\n", b" ", b"a ? b\n:\n=;\n", b"a b\ncookie:;;=;\n"] {
            for name in [&b""[..], b"a"] {
                let _ = (path(odd), parameter(odd, name), field(odd, name), cookie(odd, name));
            }
        }
    }
}
