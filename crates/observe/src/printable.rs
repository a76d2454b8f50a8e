//! Escapes texts from outside for the log.

use exchange::is_hidden;

/// The maximum number of characters of a text.
const CHARACTERS_MAX: usize = 4096;

/// Returns bytes of a program, a client or a server as one log line. Control characters and other invisible characters
/// are escaped. A text of more than 4,096 characters is cut.
pub fn printable(bytes: &[u8]) -> String {
    let mut line = String::with_capacity(bytes.len().min(CHARACTERS_MAX));
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * CHARACTERS_MAX)]);
    for c in text.chars().take(CHARACTERS_MAX) {
        match c {
            '\t' => line.push(c),
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            c if is_hidden(c) => line.extend(c.escape_unicode()),
            c => line.push(c),
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_another_is_one_line_without_control_characters() {
        assert_eq!(printable(b"a\nb\r\x1b[31mc\td"), "a\\nb\\r\\u{1b}[31mc\td");
        assert_eq!(
            printable("größe\u{202e}\u{2028}\u{85}".as_bytes()),
            "größe\\u{202e}\\u{2028}\\u{85}"
        );
        assert_eq!(printable("\u{61c}\u{feff}\u{e0041}".as_bytes()), "\\u{61c}\\u{feff}\\u{e0041}");
        assert_eq!(printable(b"\xff"), "\u{fffd}");
        assert_eq!(printable(&[b'x'; 1 << 20]).len(), CHARACTERS_MAX);
    }
}
