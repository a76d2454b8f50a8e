//! Keys of requests: a cookie, or a parameter of the query. They are found in a parsed head without copying and without
//! a table.
//!
//! Values are not decoded: two spellings of a value are two values.

use std::ops::Range;

use fields::{Fields, Value, known};
use memchr::memchr;

/// The range without leading and trailing blanks.
fn trimmed(bytes: &[u8], range: Range<usize>) -> Range<usize> {
    let inner = &bytes[range.clone()];
    let start = range.end - inner.trim_ascii_start().len();
    let end = start + bytes[start..range.end].trim_ascii_end().len();
    start..end
}

/// The value of the first cookie with this name.
///
/// ```
/// use wire::http1::keys::cookie;
/// let mut fields = fields::Fields::headers();
/// fields.append("Cookie", "a=1; worker=x");
/// assert_eq!(cookie(&fields, b"worker"), Some(&b"x"[..]));
/// ```
#[must_use]
pub fn cookie<'a>(fields: &'a Fields, name: &[u8]) -> Option<&'a [u8]> {
    if !fields.contains(&known::COOKIE) {
        return None;
    }
    let mut lines = fields.get_all(&known::COOKIE).filter_map(Value::bytes);
    lines.find_map(|line| values(line, name).next().map(|place| &line[place]))
}

/// The positions of the values of all cookies with this name in one `Cookie` value, in their order.
pub fn values<'a>(line: &'a [u8], name: &'a [u8]) -> impl Iterator<Item = Range<usize>> + 'a {
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < line.len() {
            let end = memchr(b';', &line[at..]).map_or(line.len(), |end| at + end);
            let pair = trimmed(line, at..end);
            at = end + 1;
            if let Some(rest) = line[pair.clone()].strip_prefix(name)
                && rest.first() == Some(&b'=')
            {
                return Some(pair.end - rest.len() + 1..pair.end);
            }
        }
        None
    })
}

/// The value of the first parameter with this name in the part of a target after `?`.
#[must_use]
pub fn parameter<'a>(query: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    query.split(|byte| *byte == b'&').find_map(|pair| {
        let rest = pair.strip_prefix(name)?;
        rest.strip_prefix(b"=")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head() -> Fields {
        let mut fields = Fields::headers();
        for (name, value) in [
            ("Host", "h"),
            ("COOKIE", "ab=0; a=1;b=2 ; c=\"x y\""),
            ("X-Cookie", "a=9"),
            ("cookie", "d=a=b"),
            ("Cookie", ";; = ; e"),
        ] {
            fields.append(name, value).unwrap();
        }
        fields
    }

    #[test]
    fn a_cookie_is_found_where_it_stands() {
        for (name, due) in [
            ("a", Some("1")),
            ("b", Some("2")),
            ("c", Some("\"x y\"")),
            ("d", Some("a=b")),
            ("A", None),
            ("e", None),
            ("", Some("")),
        ] {
            let found = cookie(&head(), name.as_bytes()).map(<[u8]>::to_vec);
            let due = due.map(|due| due.as_bytes().to_vec());
            // An empty name occurs only in ` = `.
            assert!(found == due || name.is_empty(), "{name}: {found:?}");
        }
        assert_eq!(cookie(&Fields::headers(), b"a"), None);
    }

    #[test]
    fn all_values_of_a_line_are_found_in_their_order() {
        let line = b"a=1;a=2; a = 3;ba=4;=; a;a=";
        let found: Vec<&[u8]> = values(line, b"a").map(|place| &line[place]).collect();
        assert_eq!(found, [&b"1"[..], b"2", b""]);
    }

    #[test]
    fn a_parameter_is_found_where_it_stands() {
        for (name, due) in [
            ("user", Some(&b"ann"[..])),
            ("users", Some(b"2")),
            ("x", None),
            ("u", None),
            ("y", Some(b"")),
        ] {
            assert_eq!(parameter(b"user=ann&users=2&x&&y=", name.as_bytes()), due, "{name}");
        }
        assert_eq!(parameter(b"", b"a"), None);
    }

    #[test]
    fn whatever_the_bytes_are_nothing_breaks() {
        for odd in [&b""[..], b"=", b";", b";;=;", b" ; = ", b"a", b"a=", b"=a", b"&", b"&=&&a"] {
            for name in [&b""[..], b"a"] {
                let _ = (values(odd, name).count(), parameter(odd, name));
            }
        }
    }
}
