//! The id of a message that is too long, from its beginning.

use std::ops::Range;

use super::error::ErrorId;
use super::json::is_string;
use super::message::ID_MAX;

/// The number of bytes of a message that is too long in which its id is searched for.
pub const START_MAX: usize = 64 << 10;

/// The id for rejecting a message with this beginning. A response is not a request, so it is not answered.
///
/// ```
/// use wire::{ErrorId, jsonrpc::id_at_start};
///
/// let asked = |start: &'static str| id_at_start(start.as_bytes());
/// assert_eq!(asked(r#"{"id":7,"method":"a","params":["xxx"#), ErrorId::Id(b"7"));
/// assert_eq!(asked(r#"{"method":"a","params":["xxx"#), ErrorId::Unknown);
/// assert_eq!(asked(r#"{"id":7,"result":["xxx"#), ErrorId::Nothing);
/// ```
#[must_use]
pub fn id_at_start(start: &[u8]) -> ErrorId<'_> {
    let mut id = None;
    for (name, value) in Members::of(start) {
        match &start[name] {
            br#""result""# | br#""error""# => return ErrorId::Nothing,
            br#""id""# => id = value.filter(|place| may_be_id(start, place)),
            _ => {}
        }
    }
    id.map_or(ErrorId::Unknown, |place| ErrorId::Id(&start[place]))
}

/// The value of the member with this name, as written, if exactly one member of the object has the name. The other
/// members need not be JSON: their values may be `NaN` or nested to any depth.
///
/// ```
/// use wire::jsonrpc::unique_member;
///
/// assert_eq!(unique_member(br#"{"x":[NaN],"id":"a"}"#, "id"), Some(&br#""a""#[..]));
/// assert_eq!(unique_member(br#"{"x":{"id":"a"}}"#, "id"), None);
/// assert_eq!(unique_member(br#"{"id":1,"id":2}"#, "id"), None);
/// ```
#[must_use]
pub fn unique_member<'a>(object: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let named = |(written, _): &(Range<usize>, _)| is_string(&object[written.clone()], name);
    let mut found = Members::of(object).filter(named);
    match (found.next(), found.next()) {
        (Some((_, Some(value))), None) => Some(&object[value]),
        _ => None,
    }
}

fn may_be_id(start: &[u8], place: &Range<usize>) -> bool {
    !matches!(start[place.start], b'{' | b'[' | b't' | b'f') && place.len() <= ID_MAX
}

/// The members of an object whose end may be missing: the range of each name, and the range of each complete value.
/// Ends at the first incomplete member.
pub(super) struct Members<'a> {
    text: &'a [u8],
    at: Option<usize>,
}

impl<'a> Members<'a> {
    pub(super) fn of(text: &'a [u8]) -> Self {
        Self { text, at: expect(text, blank(text, 0), b'{') }
    }
}

impl Iterator for Members<'_> {
    type Item = (Range<usize>, Option<Range<usize>>);

    fn next(&mut self) -> Option<Self::Item> {
        let text = self.text;
        let name_from = blank(text, self.at.take()?);
        let name_to = string(text, name_from)?;
        let value_from = blank(text, expect(text, blank(text, name_to), b':')?);
        let value = value(text, value_from).map(|to| value_from..to);
        self.at = value.as_ref().and_then(|it| expect(text, blank(text, it.end), b','));
        Some((name_from..name_to, value))
    }
}

fn blank(text: &[u8], from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    let count = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count();
    from + count
}

fn expect(text: &[u8], at: usize, byte: u8) -> Option<usize> {
    (text.get(at) == Some(&byte)).then_some(at + 1)
}

/// The end of the string that begins at `from`.
fn string(text: &[u8], from: usize) -> Option<usize> {
    let mut at = expect(text, from, b'"')?;
    loop {
        match text.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// The end of the value that begins at `from`. `None` if the value may continue after the text.
fn value(text: &[u8], from: usize) -> Option<usize> {
    match text.get(from)? {
        b'"' => string(text, from),
        b'{' | b'[' => nested(text, from),
        _ => {
            let ends = |byte: &u8| matches!(byte, b',' | b'}' | b' ' | b'\t' | b'\n' | b'\r');
            text[from..].iter().position(ends).map(|length| from + length)
        }
    }
}

fn nested(text: &[u8], from: usize) -> Option<usize> {
    let (mut at, mut depth) = (from, 0_usize);
    loop {
        match text.get(at)? {
            b'"' => {
                at = string(text, at)?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_named_by_the_id_that_stands_there_whole() {
        for (start, named) in [
            (r#"{"jsonrpc":"2.0","id":"a","method":"m","params":{"x":"#, ErrorId::Id(br#""a""#)),
            (r#"{"jsonrpc":"2.0","id":7,"params":{"x":"#, ErrorId::Id(b"7")),
            (r#"{"method":"m","id":7,"params":{"x":"#, ErrorId::Id(b"7")),
            (r#"{"jsonrpc":"2.0","id":7,"result":{"x":"#, ErrorId::Nothing),
            (r#"{"error":{"x":"#, ErrorId::Nothing),
            (r#"{"jsonrpc":"2.0","method":"m","params":{"x":"#, ErrorId::Unknown),
            (r#"{"id":[7],"method":"m","params":{"x":"#, ErrorId::Unknown),
            (r#" { "id" : "a\"b" , "meth"#, ErrorId::Id(br#""a\"b""#)),
            (r#"{"params":[1,{"id":9},"]"],"id":7,"#, ErrorId::Id(b"7")),
            (r#"{"params":"\\","id":null}"#, ErrorId::Id(b"null")),
            (r#"{"jsonrpc":"2.0","id":7"#, ErrorId::Unknown),
            (r#"{"params":{"id":9"#, ErrorId::Unknown),
            (r#"{"params":"id","x":1}"#, ErrorId::Unknown),
            ("xxxxxx", ErrorId::Unknown),
            ("", ErrorId::Unknown),
            ("{", ErrorId::Unknown),
            ("{]", ErrorId::Unknown),
            (r#"{"a":]"#, ErrorId::Unknown),
            (r#"{"a":}]"#, ErrorId::Unknown),
        ] {
            assert_eq!(id_at_start(start.as_bytes()), named, "{start}");
        }
        let long = format!("{{\"id\":\"{}\",", "x".repeat(ID_MAX));
        assert_eq!(id_at_start(long.as_bytes()), ErrorId::Unknown);
    }
}
