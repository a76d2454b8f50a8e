//! Suggestions for misspelt words.
//!
//! What it is: a nearest-neighbour search by edit distance. What it depends on: words. What it must never depend on:
//! their meaning.

/// Returns the candidate nearest to `word`, if it is near enough to be explained by a typing error.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    // A file may contain a word of any length, and the cost of the distance is quadratic in the length.
    const WORD_LENGTH_MAX: usize = 128;
    if word.len() > WORD_LENGTH_MAX {
        return None;
    }
    let plain = |word: &str| word.to_lowercase().replace('-', "_");
    let lower = plain(word);
    let candidates: Vec<&str> = candidates.into_iter().collect();
    candidates
        .iter()
        .map(|&candidate| (strsim::damerau_levenshtein(&lower, &plain(candidate)), candidate))
        .filter(|(distance, candidate)| {
            *distance <= (candidate.chars().count().max(word.chars().count()) / 3).max(1)
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
        .or_else(|| {
            // The first words of one name, perhaps in the plural.
            let first = format!("{}_", lower.trim_end_matches(['s', '_']));
            let mut longer = candidates.iter().filter(|it| plain(it).starts_with(&first));
            longer.next().filter(|_| longer.next().is_none()).copied()
        })
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_typing_error_finds_its_word() {
        let words = ["listen", "pool", "frame_max", "in_flight_max"];
        assert_eq!(nearest("lisetn", words), Some("listen"));
        assert_eq!(nearest("frame-max", words), Some("frame_max"));
        assert_eq!(nearest("Pool", words), Some("pool"));
    }

    #[test]
    fn the_first_words_of_one_name_find_it() {
        let words = ["dead_letter_table", "retry_timeout", "http_path", "http_port"];
        assert_eq!(nearest("dead_letters", words), Some("dead_letter_table"));
        assert_eq!(nearest("dead-letter", words), Some("dead_letter_table"));
        assert_eq!(nearest("http", words), None, "two names begin so");
        assert_eq!(nearest("dead_le", words), None, "half a word");
        assert_eq!(nearest("", words), None);
    }

    #[test]
    fn an_unrelated_word_finds_none() {
        assert_eq!(nearest("timeout", ["listen", "pool"]), None);
        assert_eq!(nearest("x", []), None);
        assert_eq!(nearest(&"x".repeat(5000), ["x"]), None);
    }
}
