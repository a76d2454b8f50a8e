//! The id of a message of which only the beginning was read.

use std::ops::Range;

use super::ID_MAX;

/// Where the id is in the beginning of a message, if it stands there as a whole. What follows is not
/// looked at, and may be anything: a message whose end is not read is for nobody.
#[must_use]
pub fn id_at_start(start: &[u8]) -> Option<Range<usize>> {
    let mut at = blank(start, 0);
    at = expect(start, at, b'{')?;
    loop {
        let name_from = blank(start, at);
        let name_to = string(start, name_from)?;
        at = expect(start, blank(start, name_to), b':')?;
        let value_from = blank(start, at);
        let value_to = value(start, value_from)?;
        if start[name_from..name_to] == *b"\"id\"" {
            let is_id = !matches!(start[value_from], b'{' | b'[' | b't' | b'f');
            return Some(value_from..value_to).filter(|place| is_id && place.len() <= ID_MAX);
        }
        at = expect(start, blank(start, value_to), b',')?;
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

/// The end of the string that begins there.
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

/// The end of the value that begins there. One that may go on behind what was read has none.
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
    fn the_id_is_found_where_it_stands_whole() {
        for (start, id) in [
            (r#"{"jsonrpc":"2.0","id":7,"result":{"x":"#, Some("7")),
            (r#" { "id" : "a\"b" , "resu"#, Some(r#""a\"b""#)),
            (r#"{"result":[1,{"id":9},"]"],"id":7,"#, Some("7")),
            (r#"{"result":"\\","id":null}"#, Some("null")),
            (r#"{"jsonrpc":"2.0","id":7"#, None),
            (r#"{"result":{"id":9"#, None),
            (r#"{"result":"id","x":1}"#, None),
            (r#"{"id":{"x":1},"#, None),
            ("xxxxxx", None),
            ("", None),
            ("{", None),
            ("{]", None),
            (r#"{"a":]"#, None),
            (r#"{"a":}]"#, None),
        ] {
            let found = id_at_start(start.as_bytes()).map(|place| &start[place]);
            assert_eq!(found, id, "{start}");
        }
        let long = format!("{{\"id\":\"{}\",", "x".repeat(ID_MAX));
        assert_eq!(id_at_start(long.as_bytes()), None);
    }
}
