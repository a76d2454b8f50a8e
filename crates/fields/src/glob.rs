//! Patterns for names: `*` matches any bytes, `?` matches one byte.

/// Whether `pattern` matches the whole `text`. The cost is at most proportional to the product of their lengths.
pub(crate) fn fits(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut place) = (0, 0);
    // Where to continue if the text after the last `*` does not match: the `*` then covers one more byte.
    let mut again = None;
    while place < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                again = Some((at, place));
                at += 1;
            }
            Some(&byte) if byte == b'?' || byte == text[place] => {
                at += 1;
                place += 1;
            }
            _ => {
                let Some((star, from)) = again else { return false };
                again = Some((star, from + 1));
                at = star + 1;
                place = from + 1;
            }
        }
    }
    pattern[at..].iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn stars_and_marks() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("a*", "abc", true),
            ("a*", "bac", false),
            ("*c", "abc", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*ab*ab", "abxabab", true),
            ("*ab*ab", "abxaba", false),
            ("**", "x", true),
        ] {
            assert_eq!(fits(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
    }
}
