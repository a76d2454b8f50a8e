//! `:name` parameters for databases that support only numbers or positions.
//!
//! Strings, quoted names, comments and casts (`::`) are not changed. If a colon before a name has another meaning, as
//! in `a[x:y]`, write a blank after the colon.

use std::ops::Range;

use crate::{SqlError, check_verb};

/// How a database writes parameters and strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// `$1`, `$2`, one number for each name; `$tag$ … $tag$` and `E'…'` are strings.
    Dollar,
    /// `?`, one for each use; `` ` `` quotes names, `#` begins a comment, `\` escapes in strings.
    Question,
}

/// Rewrites one statement. Returns the text for the database, and the names of the parameters in their order.
///
/// # Errors
/// When the text is not exactly one statement, a string, name or comment is not closed, or a parameter has no name.
pub fn rewrite(sql: &str, dialect: Dialect) -> Result<(String, Vec<String>), SqlError> {
    let mut reader = Reader::new(sql, dialect);
    // The reader stops at the text that it cannot read.
    reader.read().map_err(|text| SqlError { text, at: Some(reader.at) })?;
    Ok((reader.out, reader.names))
}

/// Returns the byte of `sql` that became byte `at` of the rewritten text.
#[must_use]
pub fn origin(sql: &str, dialect: Dialect, at: usize) -> usize {
    let mut reader = Reader::new(sql, dialect);
    // Errors were reported before.
    let _ = reader.read();
    let after = reader.after.iter().rev().find(|(out, _)| *out <= at);
    let (out, source) = after.copied().unwrap_or_default();
    (source + (at - out)).min(sql.len())
}

/// Returns the position of the colon of the first parameter with this name in `sql`.
#[must_use]
pub fn parameter(sql: &str, dialect: Dialect, name: &str) -> Option<usize> {
    let mut reader = Reader::new(sql, dialect);
    // Errors were reported before.
    let _ = reader.read();
    let colons = reader.after.iter().map(|(_, after)| *after);
    let mut named = colons.filter_map(|after| sql[..after].strip_suffix(name)?.strip_suffix(':'));
    named.next().map(str::len)
}

/// Returns `sql` with blanks in place of comments and other letters in place of the content of strings. Every other byte
/// is where it was.
#[must_use]
pub fn without_comments(sql: &str, dialect: Dialect) -> String {
    let mut reader = Reader::new(sql, dialect);
    // Errors were reported before.
    let _ = reader.read();
    let mut bytes = sql.as_bytes().to_vec();
    for (range, filler) in reader.hidden {
        bytes[range].fill(filler);
    }
    String::from_utf8(bytes).expect("whole comments and strings are replaced")
}

/// Returns the position of a word in `sql`, outside of strings, quoted names and comments. MySQL and MariaDB execute
/// the content of a comment that begins with `/*!` or `/*M!`, so it is searched.
#[must_use]
pub fn word(sql: &str, dialect: Dialect, word: &str) -> Option<usize> {
    words(sql, dialect, word).next()
}

/// Returns the position of IGNORE in a statement of MySQL or MariaDB. With IGNORE, they change values that a column
/// does not accept instead of rejecting them. Hints (`ignore index`) have another meaning, and a `delete` has no
/// values.
#[must_use]
pub fn ignore(sql: &str) -> Option<usize> {
    let mut words = words(sql, Dialect::Question, "ignore");
    let is_modifier = |at: &usize| {
        let after = sql[at + "ignore".len()..].trim_start().to_ascii_lowercase();
        let is_hint = ["index", "key"].iter().any(|hint| after.starts_with(hint));
        !is_hint && !sql[..*at].ends_with(['.', '@'])
    };
    check_verb(sql, &["delete"]).is_err().then(|| words.find(is_modifier))?
}

/// Returns all positions of a word.
fn words(sql: &str, dialect: Dialect, word: &str) -> impl Iterator<Item = usize> {
    let mut reader = Reader::new(sql, dialect);
    // Errors are reported elsewhere.
    let _ = reader.read();
    let is_name_before = |before: Option<usize>, at: usize| {
        let mut letters = before.map_or("", |before| &sql[before..at]).chars();
        letters.next().is_some_and(is_name) && letters.next().is_none()
    };
    let mut before = None;
    reader.plain.into_iter().filter(move |&at| {
        let is_within = is_name_before(before.replace(at), at) || sql[..at].ends_with(':');
        let found = sql[at..].get(..word.len()).is_some_and(|it| it.eq_ignore_ascii_case(word));
        found && !is_within && !sql[at + word.len()..].starts_with(is_name)
    })
}

struct Reader<'s> {
    sql: &'s str,
    at: usize,
    dialect: Dialect,
    out: String,
    names: Vec<String>,
    /// For each parameter, the position after it in `out` and in `sql`.
    after: Vec<(usize, usize)>,
    /// The positions in `sql` of the characters outside of strings, quoted names and comments.
    plain: Vec<usize>,
    /// The ranges of comments and of the contents of strings in `sql`, and what may stand in their place.
    hidden: Vec<(Range<usize>, u8)>,
}

fn is_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

impl<'s> Reader<'s> {
    const fn new(sql: &'s str, dialect: Dialect) -> Self {
        Self {
            sql,
            at: 0,
            dialect,
            out: String::new(),
            names: Vec::new(),
            after: Vec::new(),
            plain: Vec::new(),
            hidden: Vec::new(),
        }
    }

    fn rest(&self) -> &'s str {
        &self.sql[self.at..]
    }

    /// Copies `length` bytes unchanged.
    fn copy(&mut self, length: usize) {
        self.out.push_str(&self.sql[self.at..self.at + length]);
        self.at += length;
    }

    fn read(&mut self) -> Result<(), String> {
        let question = self.dialect == Dialect::Question;
        let mut before = ' ';
        while let Some(letter) = self.rest().chars().next() {
            let rest = self.rest();
            match letter {
                '\'' => {
                    let (escapes, begin) = (question || self.is_escape_string(), self.at + 1);
                    self.copy_quoted('\'', escapes)?;
                    self.hidden.push((begin..self.at - 1, b'x'));
                }
                '"' => {
                    let begin = self.at + 1;
                    self.copy_quoted('"', question)?;
                    let content = begin..self.at - 1;
                    // A string, not a name of the mode `ANSI_QUOTES`.
                    if question && self.sql[content.clone()].contains('\\') {
                        self.hidden.push((content, b'x'));
                    }
                }
                '`' if question => self.copy_quoted('`', false)?,
                '#' if question => self.hide(b' ', Self::copy_line)?,
                '-' if is_line_comment(rest, question) => self.hide(b' ', Self::copy_line)?,
                '/' if rest.starts_with("/*") => self.copy_comment()?,
                '$' if !question && !is_name(before) => self.hide(b'x', Self::copy_dollar)?,
                '?' if question => return Err(self.unnamed("?")),
                ';' => {
                    if !is_blank(&rest[1..], question) {
                        return Err("more than one statement; a request runs one".to_owned());
                    }
                    self.at = self.sql.len();
                }
                ':' if rest.starts_with("::") || rest.starts_with(":=") => self.copy(2),
                ':' => self.parameter(),
                _ => {
                    self.plain.push(self.at);
                    self.copy(letter.len_utf8());
                }
            }
            before = letter;
        }
        Ok(())
    }

    fn unnamed(&self, mark: &str) -> String {
        format!("parameter `{mark}` has no name; write it as `:name`")
    }

    fn parameter(&mut self) {
        let rest = &self.rest()[1..];
        let begins = rest.chars().next().is_some_and(|it| it.is_alphabetic() || it == '_');
        let length = rest.find(|letter| !is_name(letter)).unwrap_or(rest.len());
        if !begins {
            return self.copy(1);
        }
        let name = &rest[..length];
        self.at += 1 + length;
        match self.dialect {
            Dialect::Question => {
                self.names.push(name.to_owned());
                self.out.push('?');
            }
            Dialect::Dollar => {
                let known = self.names.iter().position(|known| known == name);
                let number = known.unwrap_or_else(|| {
                    self.names.push(name.to_owned());
                    self.names.len() - 1
                });
                self.out.push_str(&format!("${}", number + 1));
            }
        }
        self.after.push((self.out.len(), self.at));
    }

    /// Whether the string that begins here is written `E'…'`.
    fn is_escape_string(&self) -> bool {
        let mut before = self.sql[..self.at].chars().rev();
        matches!(before.next(), Some('e' | 'E')) && !before.next().is_some_and(is_name)
    }

    fn copy_quoted(&mut self, quote: char, escapes: bool) -> Result<(), String> {
        let mut letters = self.rest().char_indices().skip(1).peekable();
        while let Some((at, letter)) = letters.next() {
            if escapes && letter == '\\' {
                letters.next();
            } else if letter == quote && letters.next_if(|(_, next)| *next == quote).is_none() {
                self.copy(at + 1);
                return Ok(());
            }
        }
        Err(format!("a `{quote}` is never closed"))
    }

    /// Hides what `copy` copies.
    fn hide(
        &mut self,
        filler: u8,
        copy: impl FnOnce(&mut Self) -> Result<(), String>,
    ) -> Result<(), String> {
        let begin = self.at;
        copy(self)?;
        self.hidden.push((begin..self.at, filler));
        Ok(())
    }

    #[expect(clippy::unnecessary_wraps, reason = "as the others that are hidden")]
    fn copy_line(&mut self) -> Result<(), String> {
        let rest = self.rest();
        self.copy(rest.find('\n').unwrap_or(rest.len()));
        Ok(())
    }

    /// Copies a comment. In PostgreSQL, comments may be nested.
    fn copy_comment(&mut self) -> Result<(), String> {
        let (mut depth, mut at) = (0_usize, 0);
        let rest = self.rest().as_bytes();
        while at + 1 < rest.len() {
            match &rest[at..at + 2] {
                b"/*" if depth == 0 || self.dialect == Dialect::Dollar => depth += 1,
                b"*/" => depth -= 1,
                _ => {
                    at += 1;
                    continue;
                }
            }
            at += 2;
            if depth == 0 {
                let executed = self.executed(at);
                let characters = self.sql[executed.clone()].char_indices();
                self.plain.extend(characters.map(|(at, _)| executed.start + at));
                self.hidden.push((self.at..executed.start, b' '));
                self.hidden.push((executed.end..self.at + at, b' '));
                self.copy(at);
                return Ok(());
            }
        }
        Err("a `/*` is never closed".to_owned())
    }

    /// Returns the part of a comment of `length` bytes that MySQL and MariaDB execute. It follows the version number
    /// from which on the comment is executed: `/*!50100 ignore */`.
    fn executed(&self, length: usize) -> Range<usize> {
        let comment = &self.rest()[..length];
        let body = comment.strip_prefix("/*!").or_else(|| comment.strip_prefix("/*M!"));
        let body = body.filter(|_| self.dialect == Dialect::Question).unwrap_or("*/");
        let body = body.trim_start_matches(|it: char| it.is_ascii_digit());
        let begin = self.at + length - body.len();
        begin..self.at + length - "*/".len()
    }

    fn copy_dollar(&mut self) -> Result<(), String> {
        let rest = self.rest();
        let length = rest[1..].find(|letter| !is_name(letter)).unwrap_or(rest.len() - 1);
        let tag = &rest[1..1 + length];
        if tag.starts_with(|letter: char| letter.is_ascii_digit()) {
            return Err(self.unnamed(&rest[..1 + length]));
        }
        if !rest[1 + length..].starts_with('$') {
            self.copy(1);
            return Ok(());
        }
        let mark = &rest[..length + 2];
        let Some(end) = rest[mark.len()..].find(mark) else {
            return Err(format!("a `{mark}` is never closed"));
        };
        self.copy(end + 2 * mark.len());
        Ok(())
    }
}

/// Whether the rest begins with a comment up to the end of the line. MySQL and MariaDB need a blank behind `--`.
fn is_line_comment(rest: &str, question: bool) -> bool {
    let begins = |letter: char| letter.is_whitespace() || letter.is_control();
    rest.strip_prefix("--")
        .is_some_and(|rest| !question || rest.is_empty() || rest.starts_with(begins))
}

/// Whether only white space, semicolons and comments follow.
fn is_blank(mut rest: &str, question: bool) -> bool {
    loop {
        rest = rest.trim_start_matches(|letter: char| letter.is_whitespace() || letter == ';');
        let end = if is_line_comment(rest, question) || question && rest.starts_with('#') {
            rest.find('\n')
        } else if rest.starts_with("/*") {
            rest.find("*/").map(|at| at + 1)
        } else {
            return rest.is_empty();
        };
        rest = end.map_or("", |at| &rest[at + 1..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(sql: &str, dialect: Dialect) -> String {
        match rewrite(sql, dialect) {
            Ok((sql, names)) => format!("{sql} | {}", names.join(",")),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn each_name_becomes_a_parameter() {
        let sql = "insert into t values (:a, :b, :a)";
        assert_eq!(shown(sql, Dialect::Dollar), "insert into t values ($1, $2, $1) | a,b");
        assert_eq!(shown(sql, Dialect::Question), "insert into t values (?, ?, ?) | a,b,a");
        assert_eq!(shown("select :_id::text", Dialect::Dollar), "select $1::text | _id");
        assert_eq!(shown("select :größe", Dialect::Dollar), "select $1 | größe");
        assert_eq!(shown("select @a := 1", Dialect::Question), "select @a := 1 | ");
        assert_eq!(shown("select a[1:2]", Dialect::Dollar), "select a[1:2] | ");
    }

    #[test]
    fn a_place_in_what_was_made_is_known_in_what_it_was_made_of() {
        let sql = "insert into t (ä)\nvalues (:first, ':x', :second_one,\n  wrong)";
        for dialect in [Dialect::Dollar, Dialect::Question] {
            let (made, _) = rewrite(sql, dialect).unwrap();
            for word in ["insert", "ä", "values", "':x'", "wrong"] {
                let at = made.find(word).unwrap();
                assert_eq!(origin(sql, dialect, at), sql.find(word).unwrap(), "{word}");
            }
            assert_eq!(origin(sql, dialect, made.len() + 9), sql.len());
            assert_eq!(parameter(sql, dialect, "second_one"), sql.find(":second_one"));
            assert_eq!(parameter(sql, dialect, "one"), None);
            assert_eq!(parameter(sql, dialect, "x"), None);
        }
    }

    #[test]
    fn texts_names_and_comments_are_left_alone() {
        for sql in [
            "select ':a', 'it''s :a'",
            "select E'\\':a'",
            "select \"x:a\" -- :a",
            "select /* :a /* :b */ :c */ 1",
            "select $$ :a $$, $x$ :a $$ $x$",
            "select '\\'",
        ] {
            assert_eq!(shown(sql, Dialect::Dollar), format!("{sql} | "));
        }
        for sql in [
            "select ':a', 'it''s :a', 'x\\':a'",
            "select `x:a`, \"y\\\":a\" # :a",
            "select /* :a /* :b */ 1",
        ] {
            assert_eq!(shown(sql, Dialect::Question), format!("{sql} | "));
        }
    }

    #[test]
    fn a_word_is_found_outside_of_texts_and_comments() {
        let at = |sql| word(sql, Dialect::Question, "returning");
        assert_eq!(at("delete from t RETURNING a"), Some(14));
        for sql in [
            "delete from t -- returning",
            "select 'returning', `returning`, :returning",
            "areturning",
        ] {
            assert_eq!(at(sql), None, "{sql}");
        }
    }

    #[test]
    fn ignore_is_found_where_it_changes_values() {
        for (sql, expected) in [
            ("insert ignore into t values (:a)", Some(7)),
            ("INSERT LOW_PRIORITY IGNORE t values (:a)", Some(20)),
            ("update ignore t set a = :a", Some(7)),
            ("update/*!ignore*/t set a = :a", Some(9)),
            ("update /*M!100000ignore */ t set a = :a", Some(17)),
            ("with x as (select 1) update ignore t set a = :a", Some(28)),
            ("update t ignore index (a) set a = :a", None),
            ("update ignore t ignore index (a) set a = :a", Some(7)),
            ("insert into t select a from u ignore\nkey (a)", None),
            ("insert into t (`ignore`, ignored) values (:ignore, 'ignore') /* ignore */", None),
            ("update t set t.ignore = @ignore", None),
            ("delete ignore from t where a = :a", None),
        ] {
            assert_eq!(ignore(sql), expected, "{sql}");
        }
    }

    #[test]
    fn two_dashes_begin_a_comment_of_mysql_only_before_a_blank() {
        assert_eq!(shown("select 1--:a", Dialect::Question), "select 1--? | a");
        assert_eq!(shown("select 1--\t:a", Dialect::Question), "select 1--\t:a | ");
        assert_eq!(shown("select 1; --", Dialect::Question), "select 1 | ");
        assert_eq!(
            shown("select 1; --1", Dialect::Question),
            "more than one statement; a request runs one"
        );
        assert_eq!(shown("select 1--:a", Dialect::Dollar), "select 1--:a | ");
    }

    #[test]
    fn what_is_not_one_statement_is_refused() {
        let dollar = |sql| shown(sql, Dialect::Dollar);
        assert_eq!(dollar("select 1; -- end\n ; /* x */"), "select 1 | ");
        assert_eq!(dollar("select 1; drop table t"), "more than one statement; a request runs one");
        assert_eq!(dollar("select 'a"), "a `'` is never closed");
        assert_eq!(dollar("select /* a"), "a `/*` is never closed");
        assert_eq!(dollar("select $a$ b"), "a `$a$` is never closed");
        assert_eq!(dollar("select $1"), "parameter `$1` has no name; write it as `:name`");
        assert_eq!(
            shown("select ?", Dialect::Question),
            "parameter `?` has no name; write it as `:name`"
        );
    }
}
