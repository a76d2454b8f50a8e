//! The values of an `enum` or a `set` of MySQL and MariaDB.

use crate::{Mismatch, strings};

/// The values that such a column accepts. Because of its collation, the column may treat a different spelling as one of
/// these words, and store that word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EnumValues {
    words: Vec<String>,
    /// Whether a value is any number of the words, separated by commas.
    is_set: bool,
    /// Whether all words are known exactly, so that a text that is not one of them is rejected here.
    is_complete: bool,
}

impl EnumValues {
    /// Reads a type as the server writes it: `enum('a','it''s','2')`.
    #[must_use]
    pub fn of_type(of: &str) -> Self {
        let is_set = of.starts_with("set");
        // Not exact: escaped characters, and characters that the server's catalogue cannot represent and shows as `?`.
        let is_complete = !of.is_empty() && !of.contains(['\\', '?']);
        Self { words: strings(of), is_set, is_complete }
    }

    /// Rejects a text that the column would store as another value.
    ///
    /// # Errors
    /// When the column would change the text.
    pub fn check(&self, text: &[u8]) -> Result<(), Mismatch> {
        let is_word = |text: &[u8]| self.words.iter().any(|word| word.as_bytes() == text);
        let is_there = match self.is_set {
            true => text.is_empty() || text.split(|byte| *byte == b',').all(is_word),
            false => is_word(text),
        };
        if is_there {
            return Ok(());
        }
        if is_word_number(text) {
            return Err("takes one of its values, not the number of one".into());
        }
        match self.is_complete {
            true => Err("takes one of its values, in the same letters".into()),
            false => Ok(()),
        }
    }

    /// Whether a text that is compared with the column may be the number of a value.
    #[must_use]
    pub fn is_number(&self, text: &[u8]) -> bool {
        is_word_number(text) && self.check(text).is_err()
    }

    /// A text as the column stores it: of a set each word once, in the order of its declaration. A text with
    /// words that are not known stays as it is.
    #[must_use]
    pub fn in_order(&self, text: &[u8]) -> Vec<u8> {
        let given: Vec<&[u8]> = text.split(|byte| *byte == b',').collect();
        let known: Vec<&[u8]> = self.words.iter().map(|word| word.as_bytes()).collect();
        if !self.is_set || !given.iter().all(|word| known.contains(word)) {
            return text.to_vec();
        }
        let found = known.into_iter().filter(|word| given.contains(word));
        found.collect::<Vec<_>>().join(&b',')
    }
}

/// Whether MySQL and MariaDB interpret the text as the number of a word, or of several words, if it is not itself a
/// word. The character set of the column decides which characters are blanks. Sometimes several signs are accepted.
fn is_word_number(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    let is_skipped = |it: char| it.is_whitespace() || matches!(it, '+' | '-');
    let digits = text.trim_end().trim_start_matches(is_skipped);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_the_server_writes_them() {
        let words =
            EnumValues::of_type("enum('a','2','it''s ''3''','''4''5''','',' 6',',','7,','10')");
        assert_eq!(words.words, ["a", "2", "it's '3'", "'4'5'", "", " 6", ",", "7,", "10"]);
        assert!(words.is_complete && !words.is_set);
        let words = EnumValues::of_type("set('1')");
        assert!(words.words == ["1"] && words.is_set);
        assert_eq!(EnumValues::of_type(""), EnumValues::default());
    }

    #[test]
    fn a_text_is_a_word_in_the_same_letters() {
        const ANOTHER: &str = "takes one of its values, in the same letters";
        const NUMBER: &str = "takes one of its values, not the number of one";
        let one = EnumValues::of_type("enum('paid','2','Muller')");
        let several = EnumValues::of_type("set('a','b','7')");
        let partly = EnumValues::of_type("enum('paid','?')");
        for (words, text, expected) in [
            (&one, "paid", Ok(())),
            (&one, "2", Ok(())),
            (&one, "PAID", Err(ANOTHER)),
            (&one, "paid ", Err(ANOTHER)),
            (&one, "Müller", Err(ANOTHER)),
            (&one, "", Err(ANOTHER)),
            (&one, "other", Err(ANOTHER)),
            (&one, "1", Err(NUMBER)),
            (&several, "", Ok(())),
            (&several, "a", Ok(())),
            (&several, "b,a", Ok(())),
            (&several, "a,7", Ok(())),
            (&several, "a,B", Err(ANOTHER)),
            (&several, "a,,b", Err(ANOTHER)),
            (&several, "3", Err(NUMBER)),
            // Not all words are known.
            (&partly, "PAID", Ok(())),
            (&partly, "2", Err(NUMBER)),
        ] {
            assert_eq!(words.check(text.as_bytes()), expected.map_err(Mismatch::from), "{text:?}");
        }
    }

    #[test]
    fn a_set_has_each_word_once_and_in_order() {
        let (set, word) =
            (EnumValues::of_type("set('b','a','c')"), EnumValues::of_type("enum('a,b','b')"));
        for (words, text, expected) in [
            (&set, "c,b,c", "b,c"),
            (&set, "a", "a"),
            (&set, "", ""),
            (&set, "c,B", "c,B"),
            (&word, "a,b", "a,b"),
        ] {
            assert_eq!(words.in_order(text.as_bytes()), expected.as_bytes(), "{text:?}");
        }
    }

    #[test]
    fn a_text_that_counts_words_is_refused_unless_it_is_one() {
        for number in ["0", "1", "02", " 2", "2 ", "+2", "-2", "- 2", "\t3\n", "\u{a0}3", "7"] {
            assert!(is_word_number(number.as_bytes()), "{number:?}");
        }
        for word in ["a", "", "2x", "1,2", "+", "1.0", "1e0"] {
            assert!(!is_word_number(word.as_bytes()), "{word:?}");
        }
    }
}
