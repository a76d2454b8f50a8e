//! Explains TOML syntax errors in words for the author of a configuration.
//!
//! What it is: the conversion of a parser's error into the underlying mistake (a missing bracket or quote, a text
//! without quotes) and the statement that it spoils. What it depends on: brackets, quotes and lines. What it must never
//! depend on: whether a text is TOML; only the parser decides that.

use std::ops::Range;

use crate::fault::{Fault, Trust, floor};

/// A mistake, and the statement that cannot be parsed because of it.
#[derive(Debug)]
pub(super) struct SyntaxError {
    pub(super) fault: Fault,
    pub(super) statement: Range<usize>,
}

/// Explains the parser's first error in a text.
pub(super) fn explain(text: &str, span: Range<usize>, message: &str) -> SyntaxError {
    let at = floor(text, span.start);
    let line = line_of(text, at);
    let before = Scan::of(&text[..line.start]);
    let (fault, statement) = if let Some(opener) = never_closed(text, at, &line, &before) {
        unclosed(text, opener, &line, &before)
    } else {
        let whole = whole_statement(text, &line, &before);
        let fault = open_text(text, at, &line)
            .or_else(|| bare_text(text, &line))
            .unwrap_or_else(|| as_parsed(span, message));
        (fault, whole)
    };
    SyntaxError { fault: fault.trust(Trust::Syntax), statement: with_its_section(text, statement) }
}

/// Returns the bracket that is still open at the position where the parser found what looks like a new statement.
fn never_closed(text: &str, at: usize, line: &Range<usize>, before: &Scan) -> Option<usize> {
    if text[at..].trim().is_empty() {
        let all = Scan::of(text);
        return all.open_string.or_else(|| all.open.last().copied());
    }
    let begins = text[line.start..at].trim_matches([' ', '\t', '[']).is_empty();
    if begins { before.open.last().copied() } else { None }
}

fn unclosed(
    text: &str,
    opener: usize,
    line: &Range<usize>,
    before: &Scan,
) -> (Fault, Range<usize>) {
    let (opens, closes) = match text.as_bytes()[opener] {
        b'[' => ("[", "]"),
        b'{' => ("{", "}"),
        _ => (&text[opener..opener + 3], &text[opener..opener + 3]),
    };
    let fault = Fault::at(opener..opener + opens.len(), format!("this `{opens}` is never closed"))
        .expected(format!("expected a `{closes}` after it"));
    let first = before.open.first().copied().unwrap_or(opener);
    let start = line_of(text, first.min(opener)).start;
    // A multi-line text without an end includes the rest of the file. Only its first line is dropped.
    let end = if opens.len() == 3 { line_of(text, opener).end } else { line.start };
    (fault, start..end.max(line_of(text, opener).end))
}

/// Reports a text without a closing quote on its line.
fn open_text(text: &str, at: usize, line: &Range<usize>) -> Option<Fault> {
    let quote = line.start + Scan::of(&text[line.clone()]).line_string?;
    if quote > at {
        return None;
    }
    let end = line.start + text[line.clone()].trim_end().len();
    let mark = &text[quote..quote + 1];
    Some(
        Fault::at(quote..end, "this text is never closed")
            .expected(format!("expected a `{mark}` at its end")),
    )
}

/// Reports `key = value` whose value is a text without quotes.
fn bare_text(text: &str, line: &Range<usize>) -> Option<Fault> {
    let (key, value) = text[line.clone()].split_once('=')?;
    let value = value.split(" #").next()?.trim();
    let inner = value.trim_matches(['"', '\'']);
    let quoted = value.len() == inner.len() + 2 && value.starts_with(['"', '\'']);
    let key = key.trim();
    if quoted
        || key.is_empty()
        || key.contains(['"', '#', '[', ' '])
        || inner.contains(['"', '\'', '[', ']', '{', '}', '#', ',', '=', '\\'])
        || inner.contains(char::is_control)
        || !inner.contains(|c: char| c.is_alphabetic() || matches!(c, ':' | '/' | '.'))
    {
        return None;
    }
    let start = value.as_ptr().addr() - text.as_ptr().addr();
    Some(
        Fault::at(start..start + value.len(), format!("`{inner}` is not in quotes"))
            .expected("expected a value; text must be in quotes")
            .suggestion(format!("write `{key} = \"{inner}\"`")),
    )
}

fn as_parsed(span: Range<usize>, message: &str) -> Fault {
    let (found, expected) = match message.split_once(", expected ") {
        Some((found, expected)) => (found, Some(expected)),
        None => (message, None),
    };
    let fault = Fault::at(span, format!("this is not TOML: {found}"));
    match expected.filter(|expected| *expected != "nothing") {
        Some(expected) => fault.expected(format!("expected {expected}")),
        None => fault,
    }
}

/// Returns the lines of the statement that contains `line`.
fn whole_statement(text: &str, line: &Range<usize>, before: &Scan) -> Range<usize> {
    let start = before.open.first().map_or(line.start, |opener| line_of(text, *opener).start);
    let mut closed = false;
    let mut scan = Scan::default();
    let end = scan.run(&text[start..], |scan, at| {
        closed = scan.open.is_empty();
        start + at >= line.end && (closed || is_header(&text[line_of(text, start + at + 1)]))
    });
    // The bracket is never closed, so only this line is spoilt.
    if closed || scan.open.is_empty() { start..start + end } else { start..line.end }
}

/// Extends a broken header to its whole section: without the header it is unknown where the keys belong.
fn with_its_section(text: &str, statement: Range<usize>) -> Range<usize> {
    let line = text[statement.clone()].trim();
    // A header without its first bracket still has its last one.
    if !line.starts_with('[') && (!line.ends_with(']') || line.contains('=')) {
        return statement;
    }
    let mut end = statement.end;
    while end < text.len() {
        let next = line_of(text, end + 1);
        if is_header(&text[next.clone()]) {
            break;
        }
        end = next.end;
    }
    statement.start..end
}

/// Whether a line begins a section (and is not an item of a list over several lines).
fn is_header(line: &str) -> bool {
    let mut rest = line.trim_start().chars();
    rest.next() == Some('[') && rest.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '[')
}

/// Returns the line that contains a byte, without its line end.
fn line_of(text: &str, at: usize) -> Range<usize> {
    let at = floor(text, at);
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let end = text[at..].find('\n').map_or(text.len(), |newline| at + newline);
    start..end
}

/// The brackets and texts that are open at the end of a text.
#[derive(Debug, Default)]
struct Scan {
    /// The open brackets and braces, outermost first.
    open: Vec<usize>,
    /// The start of a multi-line text.
    open_string: Option<usize>,
    /// The first text on the last line that has no end there.
    line_string: Option<usize>,
}

impl Scan {
    fn of(text: &str) -> Self {
        let mut scan = Self::default();
        scan.run(text, |_, _| false);
        scan
    }

    /// Scans up to the first line end at which `stop` returns true. Returns its position.
    fn run(&mut self, text: &str, mut stop: impl FnMut(&Self, usize) -> bool) -> usize {
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            match bytes[at] {
                b'#' => {
                    at = line_of(text, at).end;
                    continue;
                }
                b'\n' if stop(self, at) => return at,
                b'\n' => self.line_string = None,
                b'[' | b'{' => self.open.push(at),
                b']' | b'}' => {
                    self.open.pop();
                }
                quote @ (b'"' | b'\'') => at = self.string(bytes, at, quote),
                _ => {}
            }
            at += 1;
        }
        bytes.len()
    }

    /// Skips a text. Returns the position of its last byte.
    fn string(&mut self, bytes: &[u8], start: usize, quote: u8) -> usize {
        let escapes = quote == b'"';
        let long = bytes[start..].starts_with(&[quote; 3]);
        let mut at = if long { start + 3 } else { start + 1 };
        while at < bytes.len() {
            match bytes[at] {
                b'\\' if escapes => at += 1,
                b'\n' if !long => {
                    self.line_string = Some(start);
                    return at - 1;
                }
                byte if byte == quote && !long => return at,
                byte if byte == quote && bytes[at..].starts_with(&[quote; 3]) => return at + 2,
                _ => {}
            }
            at += 1;
        }
        if long {
            self.open_string = Some(start);
        } else {
            self.line_string = Some(start);
        }
        bytes.len()
    }
}
