//! Names that may occur in a text.

use std::collections::BTreeSet;

/// Returns everything in a text that may be the name of a table or schema, in lower case: each word, and each part
/// between quotes.
#[must_use]
pub fn possible_names(text: &str) -> BTreeSet<String> {
    const NAME_MAX: usize = 64;
    let is_name = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '$';
    let words = text.split(|letter| !is_name(letter));
    let parts = words.chain(text.split('`')).chain(text.split('"'));
    let may_be = |part: &&str| !part.is_empty() && part.chars().count() <= NAME_MAX;
    parts.filter(may_be).map(str::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_parts_between_quotes_may_be_names() {
        let names = possible_names("insert into `a-b`.Hits values ('x y', \"c d\")");
        for name in ["a-b", "hits", "c d", "into", "x"] {
            assert!(names.contains(name), "{name}: {names:?}");
        }
        assert!(!names.contains(""));
    }
}
