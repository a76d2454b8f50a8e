//! Text from other sources, for a log or a terminal: which characters must be escaped.

use std::borrow::Cow;
use std::fmt::Write;

/// Whether a character is invisible or changes how the text around it is displayed: control characters, line
/// separators, and the characters that Unicode calls ignorable by default (`Default_Ignorable_Code_Point`). The latter
/// include bidirectional controls, joiners, the byte order mark, variation selectors and tags.
///
/// All code that displays texts of clients, programs, servers and databases uses this list.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Escapes the hidden characters of a text of several lines for a terminal, as in `\u200b`. Line ends and tabs are
/// kept. The meaning of JSON does not change, because such characters occur only in its strings.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    let shows = |c: char| matches!(c, '\n' | '\t') || !is_hidden(c);
    if text.chars().all(shows) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if shows(c) {
            escaped.push(c);
        } else {
            json_escape(c, &mut escaped);
        }
    }
    Cow::Owned(escaped)
}

/// Writes a character as a numeric JSON escape.
pub fn json_escape(c: char, out: &mut impl Write) {
    for unit in c.encode_utf16(&mut [0; 2]) {
        // Writing to a string or a buffer cannot fail.
        let _ = write!(out, "\\u{unit:04x}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_deceive_are_hidden_and_others_are_not() {
        let hidden = "\0\t\n\r\u{1b}\u{7f}\u{9b}\u{ad}\u{61c}\u{180e}\u{200b}\u{200d}\u{200e}\u{200f}\
            \u{2028}\u{2029}\u{202a}\u{202e}\u{2060}\u{2066}\u{2069}\u{206f}\u{3164}\u{fe0f}\u{feff}\
            \u{fffb}\u{e0001}\u{e0041}\u{e007f}\u{e01ef}";
        for c in hidden.chars() {
            assert!(is_hidden(c), "{c:?}");
        }
        for c in "aZ~ ß€\u{a0}日ع\u{fffd}😀\u{10ffff}".chars() {
            assert!(!is_hidden(c), "{c:?}");
        }
    }

    #[test]
    fn hidden_characters_are_escaped_as_json_does() {
        assert_eq!(visible("{\n\t\"größe\": 1}"), "{\n\t\"größe\": 1}");
        assert_eq!(
            visible("a\u{9b}2J\r\u{202e}\u{e0041}"),
            "a\\u009b2J\\u000d\\u202e\\udb40\\udc41"
        );
    }
}
