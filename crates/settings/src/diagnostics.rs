//! Errors with location and suggested fix.
//!
//! What it is: the faults of a source, located (line, column, word) and rendered as text. What it depends on: a text
//! and spans of it. What it must never depend on: an option.

use std::fmt;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

use crate::fault::{Fault, Trust, floor};
use crate::mask;
use crate::source::Source;
use crate::sources::Sources;

/// The maximum number of rendered errors. The rest is counted.
const RENDERED_MAX: usize = 100;

/// Of a line that is longer than this number of bytes only the word is shown, so that one line of a broken file cannot
/// fill a screen.
const LINE_SHOWN_MAX: usize = 240;

/// All errors of a source, in its order. [`fmt::Display`] renders all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostics {
    /// The names of the files, and their texts without secrets.
    sources: Sources,
    list: Vec<Diagnostic>,
}

/// One error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The name of the file that contains the error.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The column of the word in characters, counted from 1.
    pub column: usize,
    /// The word as it is written in the source. It is empty if something is missing.
    pub word: String,
    /// What is wrong.
    pub message: String,
    /// What is expected instead, or the nearest valid word.
    pub expected: Option<String>,
    /// The suggested fix.
    pub suggestion: Option<String>,
    /// The position of the word in its file, in bytes.
    span: Range<usize>,
    /// The number of the file.
    number: usize,
    /// The source itself could not be read, so there is no line to show.
    unreadable: bool,
}

impl Diagnostics {
    /// Locates the faults of a source in its lines.
    ///
    /// If a part of the text could not be parsed, nothing is reported as missing: it may be in that part.
    pub(crate) fn of(sources: &Sources, mut faults: Vec<Fault>) -> Self {
        let shown = sources.mapped(mask::source);
        let lines = |number: usize| {
            let range = sources.range(number);
            Lines::of(&sources.text()[range.clone()], &shown.text()[range])
        };
        let (mut number, mut at) = (0, lines(0));
        if faults.iter().any(|fault| fault.trust == Trust::Syntax) {
            faults.retain(|fault| fault.trust != Trust::Absent);
        }
        faults.sort_by_key(|fault| (fault.span.start, fault.trust == Trust::Absent));
        let mut list = Vec::new();
        for mut fault in faults {
            let file = sources.file_at(fault.span.start);
            if file != number {
                (number, at) = (file, lines(file));
            }
            let start = sources.range(file).start;
            fault.span = fault.span.start - start..fault.span.end.saturating_sub(start);
            list.push(at.place(fault, sources.file_name(file), file));
        }
        Self { sources: shown, list }
    }

    /// Returns the error of a source that could not be read.
    pub(crate) fn unreadable(name: &str, message: String, suggestion: String) -> Self {
        let diagnostic = Diagnostic {
            file: name.to_owned(),
            number: 0,
            line: 1,
            column: 1,
            word: String::new(),
            message: printable(&message),
            expected: None,
            suggestion: Some(suggestion),
            span: 0..0,
            unreadable: true,
        };
        Self {
            sources: Sources::from(&Source { name: name.to_owned(), text: String::new() }),
            list: vec![diagnostic],
        }
    }

    /// Returns the errors in the order of the source. There is at least one.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.list.iter()
    }

    fn render(&self, diagnostic: &Diagnostic, renderer: &Renderer) -> String {
        let title = Level::ERROR.primary_title(diagnostic.message.as_str());
        let name = printable(&diagnostic.file);
        let text = &self.sources.text()[self.sources.range(diagnostic.number)];
        let mut group = if diagnostic.unreadable {
            title.element(annotate_snippets::Origin::path(name))
        } else {
            let (line, span) = shown_line(text, &diagnostic.span);
            if line.len() < LINE_SHOWN_MAX {
                let mut marker = AnnotationKind::Primary.span(span);
                if let Some(expected) = &diagnostic.expected {
                    marker = marker.label(expected.as_str());
                }
                // The renderer shows the first 32 control characters, and passes the next 32 through. The dot has the
                // same number of bytes, so the span stays valid.
                let line = line.replace(|c| matches!(c, '\u{80}'..='\u{9f}'), "·");
                let snippet = Snippet::source(line).line_start(diagnostic.line).path(name);
                title.element(snippet.annotation(marker))
            } else {
                let origin = annotate_snippets::Origin::path(name)
                    .line(diagnostic.line)
                    .char_column(diagnostic.column);
                let word: String = line[span].chars().take(60).collect();
                let word = printable(&word);
                let expected = diagnostic.expected.as_deref().unwrap_or("here");
                title
                    .element(origin)
                    .element(Level::NOTE.message(format!("at `{word}`: {expected}")))
            }
        };
        if let Some(suggestion) = &diagnostic.suggestion {
            group = group.element(Level::HELP.message(suggestion.as_str()));
        }
        renderer.render(&[group])
    }
}

impl Diagnostic {
    /// Whether the error has a line in its file. It has none if the file could not be read.
    pub(crate) const fn is_located(&self) -> bool {
        !self.unreadable
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl std::error::Error for Diagnostics {}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let renderer = Renderer::plain();
        for diagnostic in self.list.iter().take(RENDERED_MAX) {
            write!(f, "{}\n\n", self.render(diagnostic, &renderer))?;
        }
        let more = self.list.len().saturating_sub(RENDERED_MAX);
        if more > 0 {
            write!(f, "and {more} more\n\n")?;
        }
        let name = printable(self.sources.name());
        match self.list.len() {
            1 => write!(f, "{name}: 1 error"),
            count => write!(f, "{name}: {count} errors"),
        }
    }
}

/// Returns the first line that a span touches, and the part of the span on that line.
fn shown_line<'a>(text: &'a str, span: &Range<usize>) -> (&'a str, Range<usize>) {
    let start = text[..span.start].rfind('\n').map_or(0, |newline| newline + 1);
    let end = text[span.start..].find('\n').map_or(text.len(), |newline| span.start + newline);
    let line = text[start..end].trim_end_matches('\r');
    let clip = |at: usize| (at - start).min(line.len());
    (line, clip(span.start)..clip(span.end))
}

/// Returns the masked parts of a text, each distinct part once.
fn pieces(text: &str, masked: &str) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut piece = String::new();
    for (at, c) in text.char_indices() {
        if masked[at..].starts_with('*') && c != '*' {
            piece.push(c);
        } else if !piece.is_empty() {
            pieces.push(std::mem::take(&mut piece));
        }
    }
    pieces.push(piece);
    pieces.retain(|piece| !piece.is_empty());
    // The longest first: a longer part may contain a shorter one.
    pieces.sort_by_key(|piece| std::cmp::Reverse(piece.len()));
    pieces.dedup();
    pieces
}

/// Returns a text of a fault with the passwords masked that it may repeat.
fn shown(text: &str) -> String {
    printable(&mask::message(text))
}

/// Returns a text in which hidden characters are escaped, because they could disturb a terminal or mislead its reader.
fn printable(text: &str) -> String {
    let mut printable = String::with_capacity(text.len());
    for c in text.chars() {
        match exchange::is_hidden(c) {
            true => printable.extend(c.escape_default()),
            false => printable.push(c),
        }
    }
    printable
}

/// Converts positions in a text to lines and columns. The positions must be passed in ascending order.
struct Lines<'a> {
    text: &'a str,
    masked: &'a str,
    /// The last position, its line and its column, counted from 1.
    at: usize,
    line: usize,
    column: usize,
}

impl<'a> Lines<'a> {
    fn of(text: &'a str, masked: &'a str) -> Self {
        Self { text, masked, at: 0, line: 1, column: 1 }
    }

    fn go(&mut self, at: usize) {
        let passed = &self.text[self.at..at];
        let newlines = passed.matches('\n').count();
        let rest = passed.rsplit('\n').next().unwrap_or_default().chars().count();
        self.column = rest + if newlines == 0 { self.column } else { 1 };
        self.line += newlines;
        self.at = at;
    }

    fn place(&mut self, fault: Fault, file: &str, number: usize) -> Diagnostic {
        let start = floor(self.text, fault.span.start);
        let end = floor(self.text, fault.span.end.max(start));
        self.go(start);
        let (line, column) = (self.line, self.column);
        let whole = &self.text[start..end];
        let pieces = pieces(whole, &self.masked[start..end]);
        let shown = |text: &str| {
            let hide = |text: String, piece: &String| mask::piece(&text, piece);
            shown(&pieces.iter().fold(text.to_owned(), hide))
        };
        Diagnostic {
            file: file.to_owned(),
            number,
            line,
            column,
            word: self.text[start..end].to_owned(),
            message: shown(&fault.message),
            expected: fault.expected.as_deref().map(self::shown),
            suggestion: fault.suggestion.as_deref().map(shown),
            span: start..end,
            unreadable: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(text: &str) -> Sources {
        Sources::from(&Source { name: "x.toml".into(), text: text.into() })
    }

    fn of(text: &str, spans: &[(usize, usize)]) -> Diagnostics {
        let fault =
            |(start, end): &(usize, usize)| Fault::at(*start..*end, "wrong").expected("right");
        let faults = spans.iter().map(fault);
        Diagnostics::of(&sources(text), faults.collect())
    }

    #[test]
    fn places_are_counted_from_one_in_characters() {
        let diagnostics = of("ä\r\nü b\n", &[(7, 8), (0, 2), (9, 9), (50, 60)]);
        let places: Vec<_> =
            diagnostics.iter().map(|d| (d.line, d.column, d.word.as_str())).collect();
        assert_eq!(places, [(1, 1, "ä"), (2, 3, "b"), (3, 1, ""), (3, 1, "")]);
    }

    #[test]
    fn a_span_within_a_character_is_moved_to_its_begin() {
        let diagnostics = of("€", &[(1, 2)]);
        let diagnostic = diagnostics.iter().next().unwrap();
        assert_eq!((diagnostic.column, diagnostic.word.as_str()), (1, ""));
    }

    #[test]
    fn what_may_be_a_secret_is_not_shown() {
        let text = "env={PASSWORD=\"HUNTER2\", PIN=4711}\ndatabase = \"mysql://u:PW@h/d\"\n";
        let source = sources(text);
        let at = |word: &str| {
            let start = text.find(word).unwrap();
            start..start + word.len()
        };
        let whole = "\"mysql://u:PW@h/d\"";
        let faults = vec![
            Fault::at(at("4711"), "is a number").suggestion("write \"4711\""),
            Fault::at(at(whole), format!("{whole} has a password"))
                .suggestion(format!("not {whole}")),
        ];
        let diagnostics = Diagnostics::of(&source, faults);
        let shown = diagnostics.to_string();
        assert!(shown.contains("PASSWORD=\"*******\", PIN=****"), "{shown}");
        assert!(shown.contains("write \"****\"") && shown.contains("mysql://u:**@h/d"), "{shown}");
        for secret in ["HUNTER2", "4711", "PW@"] {
            assert!(!shown.contains(secret), "{shown}");
            assert!(diagnostics.iter().all(|it| !it.message.contains(secret)), "{shown}");
        }
    }

    #[test]
    fn where_something_is_unreadable_nothing_is_called_missing() {
        let source = sources("a\nb\n");
        let absent = || Fault::at(0..1, "missing").trust(Trust::Absent);
        let found = Fault::at(0..1, "wrong");
        let syntax = Fault::at(2..3, "not TOML").trust(Trust::Syntax);
        let all = Diagnostics::of(&source, vec![absent(), found.clone()]);
        assert_eq!(
            all.iter().map(|d| d.message.as_str()).collect::<Vec<_>>(),
            ["wrong", "missing"]
        );
        let all = Diagnostics::of(&source, vec![absent(), syntax, found]);
        assert_eq!(
            all.iter().map(|d| d.message.as_str()).collect::<Vec<_>>(),
            ["wrong", "not TOML"]
        );
    }

    #[test]
    fn a_long_line_and_a_long_list_do_not_fill_the_screen() {
        let long = of(&"x".repeat(10_000), &[(9_000, 10_000)]).to_string();
        assert!(long.len() < 300 && long.contains("x.toml:1:9001"), "{long}");
        let many = of("x", &[(0, 1); 5_000]).to_string();
        assert!(many.contains("and 4900 more") && many.ends_with("5000 errors"), "{many}");
    }
}
