//! The words, names, parameters and marks of a statement, with their positions.

use crate::{Dialect, without_comments};

/// A part of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    /// A word or a name without quotes.
    Word(String),
    /// A name in quotes.
    Quoted(String),
    /// A name or a string of MySQL and MariaDB in double quotes, as their mode `ANSI_QUOTES` says.
    Ambiguous(String),
    /// A parameter, without its colon.
    Parameter(String),
    /// A number.
    Number,
    /// A string, or a variable of the server.
    Value,
    /// Marks, such as `<=`.
    Mark(&'static str),
}

/// The marks that are read as one.
const MARKS: [&str; 24] = [
    "<=>", "->>", "<<", ">>", "<>", "!=", "<=", ">=", ":=", "::", "||", "&&", "->", "=", "<", ">",
    "(", ")", "[", "]", ",", ".", ";", "!",
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
                let token = match letter {
                    '"' if dialect == Dialect::Question => Token::Ambiguous,
                    _ => Token::Quoted,
                };
                (length, token(content.to_owned()))
            }
            '0'..='9' => {
                // A name may begin with a digit.
                let length = name(rest);
                let is_exponent = rest[length..].starts_with(['+', '-']);
                match is_number(&rest[..length], is_exponent) {
                    true => (length, Token::Number),
                    false => (length, Token::Word(rest[..length].to_owned())),
                }
            }
            '@' => {
                let length = rest.find(|it| !is_name(it) && !"@.".contains(it));
                (length.unwrap_or(rest.len()), Token::Value)
            }
            ':' if rest[1..].starts_with(|it: char| it.is_alphabetic() || it == '_') => {
                (word(1), Token::Parameter(rest[1..word(1)].to_owned()))
            }
            _ if is_name(letter) => (name(rest), Token::Word(rest[..name(rest)].to_owned())),
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

/// Returns the length of the name at the begin of `rest`. Behind its first letter it may have `$`.
fn name(rest: &str) -> usize {
    rest.find(|it| !is_name(it) && it != '$').unwrap_or(rest.len())
}

/// Whether this is a number, or the begin of one: `12`, `0x1f`, `0b1`, `1e5`, and `1e` before a sign.
fn is_number(text: &str, is_exponent: bool) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    let of_base = |prefix: &str, is_digit: fn(u8) -> bool| {
        let rest = text.strip_prefix(prefix);
        rest.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(is_digit))
    };
    let with_exponent = || match text.split_once(['e', 'E']) {
        Some((number, "")) => is_exponent && digits(number),
        Some((number, exponent)) => digits(number) && digits(exponent),
        None => false,
    };
    digits(text)
        || of_base("0x", |it| it.is_ascii_hexdigit())
        || of_base("0b", |it| matches!(it, b'0' | b'1'))
        || with_exponent()
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
