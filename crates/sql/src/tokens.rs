//! The words, names, parameters and marks of a statement, with their positions.

use crate::{Dialect, without_comments};

/// A part of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    /// A word or a name without quotes.
    Word(String),
    /// A name in quotes.
    Quoted(String),
    /// A parameter, without its colon.
    Parameter(String),
    /// A string, a number, or a variable of the server.
    Value,
    /// Marks, such as `<=`.
    Mark(&'static str),
}

/// The marks that are read as one.
const MARKS: [&str; 22] = [
    "<=>", "->>", "<>", "!=", "<=", ">=", ":=", "::", "||", "&&", "->", "=", "<", ">", "(", ")",
    "[", "]", ",", ".", ";", "!",
];

impl Token {
    /// Whether it is this word, which is in lower case.
    pub(crate) fn is(&self, word: &str) -> bool {
        matches!(self, Self::Word(found) if found.eq_ignore_ascii_case(word))
    }

    /// Whether it is one of these words.
    pub(crate) fn is_any(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.is(word))
    }

    /// Whether it is one of these marks.
    pub(crate) fn is_mark(&self, marks: &[&str]) -> bool {
        matches!(self, Self::Mark(mark) if marks.contains(mark))
    }
}

fn is_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// Returns the tokens of a statement, each with its position.
pub(crate) fn tokens(sql: &str, dialect: Dialect) -> Vec<(usize, Token)> {
    let sql = without_comments(sql, dialect);
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(letter) = sql[at..].chars().next() {
        let rest = &sql[at..];
        let word = |from: usize| {
            rest[from..].find(|it| !is_name(it)).map_or(rest.len(), |length| from + length)
        };
        let (length, token) = match letter {
            _ if letter.is_whitespace() => {
                at += letter.len_utf8();
                continue;
            }
            '\'' => (string(rest, letter), Token::Value),
            '"' | '`' => {
                let length = string(rest, letter);
                let content = rest.get(1..length.saturating_sub(1)).unwrap_or_default();
                (length, Token::Quoted(content.to_owned()))
            }
            '0'..='9' => (word(0), Token::Value),
            '@' => {
                let length = rest.find(|it| !is_name(it) && !"@.".contains(it));
                (length.unwrap_or(rest.len()), Token::Value)
            }
            ':' if rest[1..].starts_with(|it: char| it.is_alphabetic() || it == '_') => {
                (word(1), Token::Parameter(rest[1..word(1)].to_owned()))
            }
            _ if is_name(letter) => (word(0), Token::Word(rest[..word(0)].to_owned())),
            _ => match MARKS.iter().find(|mark| rest.starts_with(**mark)) {
                Some(mark) => (mark.len(), Token::Mark(mark)),
                None => (letter.len_utf8(), Token::Mark("+")),
            },
        };
        found.push((at, token));
        at += length;
    }
    found
}

/// Returns the length of the string at the begin of `rest`, with its quotes.
fn string(rest: &str, quote: char) -> usize {
    let mut letters = rest.char_indices().skip(1).peekable();
    while let Some((at, letter)) = letters.next() {
        if letter == quote && letters.next_if(|(_, next)| *next == quote).is_none() {
            return at + 1;
        }
    }
    rest.len()
}
