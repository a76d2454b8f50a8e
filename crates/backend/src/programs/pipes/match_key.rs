//! The part of a request that its reply must repeat (`match`).
//!
//! A program whose reply does not repeat it is killed. Therefore a request is sent only if every correct program can
//! repeat the part unchanged: every program divides it into the same words, and every JSON library writes the member as
//! it was. Otherwise one client could cause programs to be killed.

use std::ops::Range;

use fields::{Fields, Lookup as _, Value};
use settings::MatchKey;

use flow::words::words;
use wire::jsonrpc::{Measure, unique_member};

/// Finds the part in messages.
#[derive(Debug)]
pub(super) struct MatchFinder {
    what: MatchKey,
    fields: Fields,
    of_request: Vec<u8>,
}

impl MatchFinder {
    pub(super) fn new(what: MatchKey) -> Self {
        Self { what, fields: Fields::new(), of_request: Vec::new() }
    }

    /// Checks that a request has the part and that programs can repeat it unchanged.
    ///
    /// # Errors
    ///
    /// Why the request cannot be sent.
    pub(super) fn check(&mut self, request: &[u8]) -> Result<(), &'static str> {
        let Self { what, fields, .. } = self;
        let is_kept = match what {
            MatchKey::Word(number) => {
                nth_word(request, *number).is_some_and(|place| is_plain(&request[..place.end]))
            }
            MatchKey::Member(name) => {
                fields.clear();
                fields::json::decode(fields, request).is_ok()
                    && is_named_once(fields, name.as_bytes())
                    && fields.get(name.as_bytes()).is_some_and(is_kept_by_libraries)
            }
        };
        match (is_kept, what) {
            (false, _) => Err(NOT_KEPT),
            (true, MatchKey::Word(_)) => Ok(()),
            (true, MatchKey::Member(_)) => {
                Measure::of(request).map_err(|_| NOT_KEPT)?.excess().map_or(Ok(()), Err)
            }
        }
    }

    /// Whether a reply repeats the part of its request.
    pub(super) fn is_answered_by(&mut self, request: &[u8], reply: &[u8]) -> bool {
        let Self { what, fields, of_request } = self;
        of_request.clear();
        of_request.extend_from_slice(find(what, fields, request).unwrap_or_default());
        !of_request.is_empty() && find(what, fields, reply) == Some(of_request)
    }
}

const NOT_KEPT: &str = "it does not carry what `match` names in a form that every program keeps";

fn find<'a>(what: &MatchKey, fields: &'a mut Fields, message: &'a [u8]) -> Option<&'a [u8]> {
    match what {
        MatchKey::Word(number) => nth_word(message, *number).map(|place| &message[place]),
        MatchKey::Member(name) => {
            fields.clear();
            if fields::json::decode(fields, message).is_ok() {
                return fields.get(name.as_bytes())?.bytes();
            }
            // Other members may contain values that are not JSON (`NaN`), or exceed limits of the decoder (a thousand
            // names).
            let value = unique_member(message, name)?;
            let alone = [br#"{"alone":"#, value, b"}"].concat();
            fields.clear();
            fields::json::decode(fields, &alone).ok()?;
            fields.get("alone")?.bytes()
        }
    }
}

fn nth_word(message: &[u8], number: u32) -> Option<Range<usize>> {
    let nth = usize::try_from(number).ok()?.checked_sub(1)?;
    words(message).nth(nth)
}

/// Whether all programs divide the text into the same words: by blanks and tabs, and by no character that only some
/// programs treat as white space (Python's `split`, `\s` of regular expressions).
fn is_plain(words: &[u8]) -> bool {
    let is_odd = |it: char| {
        !matches!(it, ' ' | '\t') && (it.is_whitespace() || it.is_control() || it == '\u{feff}')
    };
    std::str::from_utf8(words).is_ok_and(|text| !text.contains(is_odd))
}

/// Whether no other member has this name in a different case: some libraries ignore case.
fn is_named_once(fields: &Fields, name: &[u8]) -> bool {
    fields.fields().filter(|field| field.name.eq_ignore_ascii_case(name)).count() == 1
}

/// The maximum number of digits of an integer that every JSON library represents exactly.
const DIGITS_MAX: usize = 15;

/// Whether JSON libraries write a value as they read it: strings, and integers of at most [`DIGITS_MAX`] digits.
fn is_kept_by_libraries(value: Value<'_>) -> bool {
    match value {
        Value::Null | Value::Bytes([]) => false,
        Value::Json(text) => matches!(text, b"true" | b"false"),
        Value::Bytes(text) => {
            std::str::from_utf8(text).is_ok_and(|text| !text.contains(char::is_control))
        }
        Value::Number(b"0") => true,
        Value::Number(number) => {
            let digits = number.strip_prefix(b"-").unwrap_or(number);
            let is_integer = digits.iter().all(u8::is_ascii_digit);
            is_integer && digits[0] != b'0' && digits.len() <= DIGITS_MAX
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_one_that_carries_what_the_request_has() {
        let word = |number| MatchFinder::new(MatchKey::Word(number));
        let id = || MatchFinder::new(MatchKey::Member("id".to_owned()));
        let deep_reply = format!(r#"{{"v":{}{},"id":7}}"#, "[".repeat(300), "]".repeat(300));
        for (mut finder, request, reply, due) in [
            (word(1), "7 get x", "7 found", true),
            (word(1), "7 get x", " 7", true),
            (word(1), "7 get x", "70 found", false),
            (word(1), "7 get x", "DEBUG 7", false),
            (word(2), "get 7", "ok 7", true),
            (word(2), "get", "ok", false),
            (id(), r#"{"id":7,"x":1}"#, r#"{"y":2,"id":7}"#, true),
            (id(), r#"{"id":"a"}"#, r#"{"id":"\u0061"}"#, true),
            (id(), r#"{"id":7}"#, r#"{"id":8}"#, false),
            (id(), r#"{"id":7}"#, "cache miss", false),
            (id(), r#"{"x":7}"#, r#"{"x":7}"#, false),
            (id(), r#"{"id":7}"#, r#"{"v":NaN,"w":[-Infinity],"id":7}"#, true),
            (id(), r#"{"id":7}"#, r#"{"v":NaN,"id":8}"#, false),
            (id(), r#"{"id":7}"#, r#"{"v":[NaN,{"id":7}],"w":"\"id\":7"}"#, false),
            (id(), r#"{"id":7}"#, r#"{"v":NaN,"id":7,"id":8}"#, false),
            (id(), r#"{"id":"a"}"#, r#"{"x":1,"x":2,"id":"\u0061"}"#, true),
            (id(), r#"{"id":"a"}"#, r#"{"x":"\ud800","id":"a"}"#, true),
            (id(), r#"{"id":7}"#, &deep_reply, true),
        ] {
            let seen = finder.is_answered_by(request.as_bytes(), reply.as_bytes());
            assert_eq!(seen, due, "{request} {reply}");
        }
    }

    #[test]
    fn a_request_is_sent_only_if_every_program_can_carry_it_unchanged() {
        let word = |number| MatchFinder::new(MatchKey::Word(number));
        let id = || MatchFinder::new(MatchKey::Member("id".to_owned()));
        for (mut finder, request, due) in [
            (word(2), "get 7", true),
            (word(3), "get 7", false),
            (word(1), "größe\t7", true),
            (word(1), "a\u{b}b 7", false),
            (word(1), "a\u{1f}b", false),
            (word(1), "a\u{85}b", false),
            (word(1), "a\u{a0}b", false),
            (word(1), "a\u{3000}b", false),
            (word(1), "a\u{feff}b", false),
            (word(2), "a\u{a0}b c", false),
            (word(1), "a b\u{a0}c", true),
            (id(), r#"{"id":7}"#, true),
            (id(), r#"{"id":-7}"#, true),
            (id(), r#"{"id":0}"#, true),
            (id(), r#"{"id":999999999999999}"#, true),
            (id(), r#"{"id":"a b"}"#, true),
            (id(), r#"{"id":""}"#, false),
            (id(), r#"{"id":null}"#, false),
            (id(), "7", false),
            (id(), r#"{"id":-0}"#, false),
            (id(), r#"{"id":1.0}"#, false),
            (id(), r#"{"id":1e2}"#, false),
            (id(), r#"{"id":9999999999999999}"#, false),
            (id(), r#"{"id":[1]}"#, false),
            (id(), r#"{"id":{"a":1}}"#, false),
            (id(), r#"{"id":"a\u0000"}"#, false),
            (id(), r#"{"id":"\ud800"}"#, false),
            (id(), r#"{"id":1,"ID":2}"#, false),
            (id(), r#"{"id":1,"id":2}"#, false),
            (id(), r#"{"id":1,"v":[1e300]}"#, true),
            (id(), r#"{"id":1,"v":[1e400]}"#, false),
            (id(), &format!(r#"{{"id":1,"v":{}}}"#, "9".repeat(1001)), false),
            (id(), &format!(r#"{{"id":1,"v":{}{}}}"#, "[".repeat(63), "]".repeat(63)), true),
            (id(), &format!(r#"{{"id":1,"v":{}{}}}"#, "[".repeat(64), "]".repeat(64)), false),
        ] {
            assert_eq!(finder.check(request.as_bytes()).is_ok(), due, "{request}");
        }
        assert!(word(1).check(b"a\xff").is_err());
    }
}
