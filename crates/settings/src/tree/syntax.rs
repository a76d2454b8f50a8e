//! Why a text is not TOML, in the words of somebody who only wanted to write a configuration.
//!
//! What it is: a parser's error turned into the slip behind it (a bracket or a quote never closed, a
//! text without quotes) and the statement that is spoilt by it. What it knows: brackets, quotes and
//! lines. What it must never know: whether a text is TOML; that is the parser's to say.

use std::ops::Range;

use crate::fault::{Fault, Trust, floor};

/// A slip, and what cannot be read because of it.
#[derive(Debug)]
pub(super) struct Flaw {
    pub(super) fault: Fault,
    pub(super) statement: Range<usize>,
}

/// Explains the parser's first error of a text.
pub(super) fn explain(text: &str, span: Range<usize>, message: &str) -> Flaw {
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
    Flaw { fault: fault.trust(Trust::Syntax), statement: with_its_section(text, statement) }
}

/// The bracket that is still open where the parser stumbled over what looks like a new statement.
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
    // A text over several lines swallows the rest of the file: give the rest back.
    let end = if opens.len() == 3 { line_of(text, opener).end } else { line.start };
    (fault, start..end.max(line_of(text, opener).end))
}

/// A text that was begun and not ended on its line.
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

/// `key = value` whose value is a text without its quotes.
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
            .expected("expected a value; a text stands in quotes")
            .mend(format!("write `{key} = \"{inner}\"`")),
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

/// The lines of the statement that holds `line`.
fn whole_statement(text: &str, line: &Range<usize>, before: &Scan) -> Range<usize> {
    let start = before.open.first().map_or(line.start, |opener| line_of(text, *opener).start);
    let mut closed = false;
    let mut scan = Scan::default();
    let end = scan.run(&text[start..], |scan, at| {
        closed = scan.open.is_empty();
        start + at >= line.end && (closed || is_header(&text[line_of(text, start + at + 1)]))
    });
    // Nothing closes it: then it is this one line that is spoilt.
    if closed || scan.open.is_empty() { start..start + end } else { start..line.end }
}

/// Without its header nobody knows where a key belongs, so the section goes with it.
fn with_its_section(text: &str, statement: Range<usize>) -> Range<usize> {
    let line = text[statement.clone()].trim();
    // A header that lost its first bracket still has its last one.
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

/// The line that a byte lies in, without its line end.
fn line_of(text: &str, at: usize) -> Range<usize> {
    let at = floor(text, at);
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let end = text[at..].find('\n').map_or(text.len(), |newline| at + newline);
    start..end
}

/// What is open at the end of a text.
#[derive(Debug, Default)]
struct Scan {
    /// Brackets and braces, outermost first.
    open: Vec<usize>,
    /// A text over several lines.
    open_string: Option<usize>,
    /// The first text of the last line that has no end there.
    line_string: Option<usize>,
}

impl Scan {
    fn of(text: &str) -> Self {
        let mut scan = Self::default();
        scan.run(text, |_, _| false);
        scan
    }

    /// Scans up to the first line end at which `stop` says so; gives back where that is.
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

    /// Steps over a text; gives back where its last byte is.
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
