//! Arrays as PostgreSQL reads them: `{1,"a \"b\"",NULL}`.

use crate::rows::Given;
use fields::Value;

/// The text of an array, made element by element.
#[derive(Debug, Default)]
pub(super) struct Array(Vec<u8>);

impl Array {
    /// Forgets its elements and keeps the memory, but not more than `kept_max` bytes of it.
    pub(super) fn begin(&mut self, kept_max: usize) {
        self.0.clear();
        self.0.shrink_to(kept_max);
        self.0.push(b'{');
    }

    pub(super) fn push(&mut self, value: Given<'_>) {
        use std::io::Write as _;
        if self.0.len() > 1 {
            self.0.push(b',');
        }
        match value {
            Given::Value(Value::Null) => self.0.extend_from_slice(b"NULL"),
            // Nothing in a number needs quotes.
            Given::Value(Value::Number(digits)) => self.0.extend_from_slice(digits),
            Given::Value(Value::Bytes(bytes)) => self.push_quoted(bytes),
            Given::Integer(number) => {
                write!(self.0, "{number}").expect("a buffer takes what is written to it");
            }
            Given::Client(peer) => self.push_quoted(peer.to_string().as_bytes()),
        }
    }

    fn push_quoted(&mut self, mut bytes: &[u8]) {
        self.0.push(b'"');
        while let Some(at) = bytes.iter().position(|byte| matches!(byte, b'"' | b'\\')) {
            self.0.extend_from_slice(&bytes[..at]);
            self.0.extend_from_slice(&[b'\\', bytes[at]]);
            bytes = &bytes[at + 1..];
        }
        self.0.extend_from_slice(bytes);
        self.0.push(b'"');
    }

    /// All of it.
    pub(super) fn end(&mut self) -> &[u8] {
        self.0.push(b'}');
        &self.0
    }

    /// An array of texts.
    pub(super) fn of<'t>(texts: impl IntoIterator<Item = &'t str>) -> Vec<u8> {
        let mut array = Self::default();
        array.begin(0);
        texts.into_iter().for_each(|text| array.push(Given::Value(Value::Bytes(text.as_bytes()))));
        array.end();
        array.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_quoted_where_they_must_be() {
        let mut array = Array::default();
        array.begin(0);
        for value in [
            Given::Value(Value::Number(b"-1.5e3")),
            Given::Value(Value::Null),
            Given::Value(Value::Bytes(b"NULL")),
            Given::Value(Value::Bytes(b"a,\"b\"\\{}")),
            Given::Value(Value::Bytes(b"")),
            Given::Integer(-7),
            Given::Client(exchange::Peer::Local),
        ] {
            array.push(value);
        }
        let text = String::from_utf8(array.end().to_vec()).unwrap();
        assert_eq!(text, r#"{-1.5e3,NULL,"NULL","a,\"b\"\\{}","",-7,"unix"}"#);
        array.begin(0);
        assert_eq!(array.end(), b"{}");
    }
}
