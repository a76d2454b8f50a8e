//! Definitions of tables, as SQLite keeps them.

/// Whether a constraint in the definition of an SQLite table has `on conflict replace`.
#[must_use]
pub fn has_replace(sql: &str) -> bool {
    let text = without_quoted(sql).to_ascii_lowercase();
    let words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.windows(3).any(|words| words == ["on", "conflict", "replace"])
}

/// Returns a statement with a blank in place of each string, quoted name and comment.
fn without_quoted(sql: &str) -> String {
    let (mut out, mut rest) = (String::new(), sql);
    while let Some(letter) = rest.chars().next() {
        let end = match letter {
            '\'' | '"' | '`' => Some(&rest[..1]),
            '[' => Some("]"),
            '-' if rest.starts_with("--") => Some("\n"),
            '/' if rest.starts_with("/*") => Some("*/"),
            _ => None,
        };
        let Some(end) = end else {
            out.push(letter);
            rest = &rest[letter.len_utf8()..];
            continue;
        };
        let begin = if end == "*/" { 2 } else { 1 };
        // Two quotes within a string stand for one: the rest is another string.
        rest = rest[begin..].split_once(end).map_or("", |(_, rest)| rest);
        out.push(' ');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clause_that_removes_rows_is_found_outside_of_names_strings_and_comments() {
        for (sql, expected) in [
            ("create table t (a unique on conflict replace, b)", true),
            ("create table t (a unique ON/**/CONFLICT -- x\n REPLACE)", true),
            ("create table t (a, unique (a) on conflict replace)", true),
            ("create table t (a, unique(a)on conflict replace)", true),
            ("create table t (a unique on conflict ignore, replace text)", false),
            ("create table t (a default 'on conflict replace', \"on conflict replace\")", false),
            ("create table t (a, [on conflict replace]) -- on conflict replace", false),
            (
                "create table t (a /* on conflict replace */, b references u on delete cascade)",
                false,
            ),
        ] {
            assert_eq!(has_replace(sql), expected, "{sql}");
        }
    }
}
