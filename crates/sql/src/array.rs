//! Arrays in the text form of PostgreSQL: `{1,"a \"b\"",NULL}`.

use crate::column::Fit;

/// The text of an array, built element by element.
#[derive(Debug, Default)]
pub struct Array(Vec<u8>);

impl Array {
    /// Removes the elements and keeps the memory, at most `kept_max` bytes.
    pub fn begin(&mut self, kept_max: usize) {
        self.0.clear();
        self.0.shrink_to(kept_max);
        self.0.push(b'{');
    }

    /// Appends an element.
    pub fn push(&mut self, value: &Fit<'_>) {
        if self.0.len() > 1 {
            self.0.push(b',');
        }
        value.push_element(&mut self.0);
    }

    /// Closes the array and returns its text.
    pub fn end(&mut self) -> &[u8] {
        self.0.push(b'}');
        &self.0
    }

    /// Returns the text of an array of texts.
    #[must_use]
    pub fn of<'t>(texts: impl IntoIterator<Item = &'t str>) -> Vec<u8> {
        let mut array = Self::default();
        array.begin(0);
        texts.into_iter().for_each(|text| array.push(&Fit::Text(text.as_bytes().into())));
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
        let text = |text: &'static str| Fit::Text(text.as_bytes().into());
        for value in [
            Fit::Number(b"-1.5e3".into()),
            Fit::Null,
            text("NULL"),
            text("a,\"b\"\\{}"),
            text(""),
            Fit::Bytes(b"\x00\xff".into()),
        ] {
            array.push(&value);
        }
        let text = String::from_utf8(array.end().to_vec()).unwrap();
        assert_eq!(text, r#"{-1.5e3,NULL,"NULL","a,\"b\"\\{}","","\\x00ff"}"#);
        array.begin(0);
        assert_eq!(array.end(), b"{}");
    }
}
