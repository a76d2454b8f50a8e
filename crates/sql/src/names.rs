//! Names of tables and columns in a statement.

/// Returns an identifier between `quote`s. It may contain any characters.
#[must_use]
pub fn quoted(name: &str, quote: char) -> String {
    let doubled = format!("{quote}{quote}");
    format!("{quote}{}{quote}", name.replace(quote, &doubled))
}

/// Returns a list of identifiers between `quote`s.
#[must_use]
pub fn listed(names: &[String], quote: char) -> String {
    names.iter().map(|name| quoted(name, quote)).collect::<Vec<_>>().join(", ")
}

/// Returns the position of `name` as a word in `sql`, if it occurs exactly once.
#[must_use]
pub fn single_mention(sql: &str, name: &str) -> Option<usize> {
    let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut places = sql.match_indices(name).map(|(at, _)| at).filter(|&at| {
        !sql[..at].ends_with(is_name) && !sql[at + name.len()..].starts_with(is_name)
    });
    places.next().filter(|_| places.next().is_none() && !name.is_empty())
}

/// Returns the strings in `sql` between single quotes (`'`). Two quotes within a string stand for one.
#[must_use]
pub fn strings(sql: &str) -> Vec<String> {
    let mut strings = Vec::new();
    let mut rest = sql;
    while let Some((_, after)) = rest.split_once('\'') {
        let mut string = String::new();
        rest = after;
        while let Some((part, after)) = rest.split_once('\'') {
            string.push_str(part);
            rest = after;
            let Some(after) = rest.strip_prefix('\'') else { break };
            string.push('\'');
            rest = after;
        }
        strings.push(string);
    }
    strings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_there_once_has_a_place() {
        let sql = "select a, b_a, bé from t where b = 1";
        assert_eq!(single_mention(sql, "a"), Some(7));
        assert_eq!(single_mention(sql, "b"), sql.find("b = 1"));
        assert_eq!(single_mention("a = a", "a"), None);
        assert_eq!(single_mention(sql, ""), None);
    }

    #[test]
    fn strings_are_read_with_the_quotes_in_them() {
        let of = "enum('a','2','it''s ''3''','''4''5''','',' 6',',','7,','10')";
        assert_eq!(strings(of), ["a", "2", "it's '3'", "'4'5'", "", " 6", ",", "7,", "10"]);
        assert!(strings("").is_empty() && strings("int").is_empty());
    }
}
