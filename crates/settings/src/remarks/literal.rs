//! Maps a byte of a text to its position in the TOML literal that the text was written as.

use std::ops::Range;

/// Returns the word of `literal` that contains byte `at` of the parsed text; `None` if the text is shorter.
pub(super) fn word(literal: &str, at: usize) -> Option<Range<usize>> {
    let (quote, long) = match literal.as_bytes() {
        [b'"', b'"', b'"', ..] => ('"', true),
        [b'\'', b'\'', b'\'', ..] => ('\'', true),
        [b'"', ..] => ('"', false),
        [b'\'', ..] => ('\'', false),
        _ => return None,
    };
    let around = if long { 3 } else { 1 };
    let end = literal.len().checked_sub(around).filter(|end| *end >= around)?;
    let mut place = around;
    if long {
        // A line end directly after the opening quotes is not a part of the text.
        let inner = &literal[place..end];
        place += ["\r\n", "\n"].iter().find(|it| inner.starts_with(**it)).map_or(0, |it| it.len());
    }
    let mut said = 0;
    while place < end {
        let rest = &literal[place..end];
        let (written, says) = if quote == '"' { piece(rest) } else { plain(rest) };
        if said + says > at {
            let word = rest.find(|it: char| it.is_whitespace() || "(),;\"'".contains(it));
            return Some(place..place + word.unwrap_or(rest.len()).max(written));
        }
        (place, said) = (place + written, said + says);
    }
    None
}

/// Returns the number of bytes of the next character in the literal and in the parsed text.
fn plain(rest: &str) -> (usize, usize) {
    let length = rest.chars().next().map_or(1, char::len_utf8);
    (length, length)
}

/// As [`plain`], with backslash escapes.
fn piece(rest: &str) -> (usize, usize) {
    let Some(escape) = rest.strip_prefix('\\') else { return plain(rest) };
    let digits = match escape.as_bytes().first() {
        Some(b'x') => 2,
        Some(b'u') => 4,
        Some(b'U') => 8,
        Some(b' ' | b'\t' | b'\r' | b'\n') => {
            // A backslash at the end of a line joins it with the next one.
            return (rest.len() - escape.trim_start().len(), 0);
        }
        Some(_) => return (1 + plain(escape).0, 1),
        None => return (1, 1),
    };
    let number = escape.get(1..1 + digits).and_then(|it| u32::from_str_radix(it, 16).ok());
    let says = number.and_then(char::from_u32).map(char::len_utf8);
    says.map_or((1, 1), |says| (2 + digits, says))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_of_a_text_is_found_where_it_was_written() {
        for (literal, text) in [
            (r#""one two three""#, "one two three"),
            ("'one two three'", "one two three"),
            (r#""one\ttwo \u00e4\n three""#, "one\ttwo ä\n three"),
            (r#""\x6fne \U0001F600 three""#, "one 😀 three"),
            ("\"\"\"\none\r\n two\n  three\"\"\"", "one\r\n two\n  three"),
            ("'''\r\none\n\\two\nthree'''", "one\n\\two\nthree"),
            ("\"\"\"one \\\n   \n  two three\"\"\"", "one two three"),
        ] {
            for (at, _) in text.match_indices("three") {
                let word = word(literal, at).unwrap();
                assert_eq!(&literal[word], "three", "{literal}");
            }
            assert_eq!(word(literal, text.len()), None, "{literal}");
        }
    }

    #[test]
    fn what_is_no_text_has_no_byte() {
        for literal in ["", "\"", "7", "[1]", "\"\"", "''''''", "\"\"\"\"\""] {
            assert_eq!(word(literal, 0), None, "{literal}");
        }
        // For any literal, the result is within it.
        for literal in ["\"\\\"", "\"\\u00\"", "\"\\\\\"", "\"a\\ ä\"", "\"\"\"\\\n\"\"\""] {
            for at in 0..9 {
                assert!(word(literal, at).is_none_or(|it| literal.get(it).is_some()), "{literal}");
            }
        }
    }
}
