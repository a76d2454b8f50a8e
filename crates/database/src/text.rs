//! Messages on one line.

/// The maximum size of the message of a rejection or failure, in bytes. A longer one is truncated.
pub(crate) const TEXT_BYTES_MAX: usize = 240;

/// Returns `text` on one line and with limited length.
pub(crate) fn one_line(text: &str) -> String {
    shortened(text, TEXT_BYTES_MAX)
}

/// Returns `text` on one line with at most `bytes_max` bytes, not counting the mark of truncation.
pub(crate) fn shortened(text: &str, bytes_max: usize) -> String {
    let mut line = String::with_capacity(text.len().min(bytes_max));
    for letter in text.chars() {
        let letter = if exchange::is_hidden(letter) { ' ' } else { letter };
        if line.len() + letter.len_utf8() > bytes_max {
            line.push('…');
            break;
        }
        line.push(letter);
    }
    line
}

/// Returns names as a list for a message: `a`, `b`, `c`.
pub(crate) fn listed(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_no_line_end_and_an_end() {
        assert_eq!(one_line("a\r\nb\0"), "a  b ");
        let long = one_line(&"ä".repeat(1000));
        assert!(long.len() <= TEXT_BYTES_MAX + '…'.len_utf8() && long.ends_with("ä…"));
    }
}
