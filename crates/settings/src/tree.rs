//! The tree of a source: tables, lists and values, each with its place.
//!
//! What it is: TOML read with recovery, so that one slip of the pen does not hide the next error.
//! What it knows: TOML. What it must never know: an option.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::diagnostics::{Fault, Trust};

/// Keys and values in the order of the source.
pub(crate) type Table = Vec<Entry>;

/// A key and what it is set to.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    /// Where the key stands (for a section: its last part in the header).
    pub(crate) place: Range<usize>,
    pub(crate) node: Node,
}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) span: Range<usize>,
    pub(crate) raw: Raw,
}

/// What TOML can say.
#[derive(Clone, Debug)]
pub(crate) enum Raw {
    Text(String),
    /// `None`: too large for any option.
    Integer(Option<i128>),
    Float,
    Boolean,
    Date,
    List(Vec<Node>),
    Table(Table),
    /// Not readable; a fault was reported already.
    Broken,
}

impl Raw {
    /// What it is called in an error.
    pub(crate) fn title(&self) -> &'static str {
        match self {
            Self::Text(_) => "a text",
            Self::Integer(_) => "a whole number",
            Self::Float => "a fraction",
            Self::Boolean => "true or false",
            Self::Date => "a date or time",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
            Self::Broken => "unreadable",
        }
    }
}

/// Reads a text; what cannot be read is left out of the tree and reported.
pub(crate) fn read(text: &str) -> (Table, Vec<Fault>) {
    let (table, errors) = DeTable::parse_recoverable(text);
    let faults = syntax_faults(text, &errors);
    (convert_table(table.into_inner()), faults)
}

fn convert_table(table: DeTable<'_>) -> Table {
    let mut entries: Table = table
        .into_iter()
        .map(|(key, value)| Entry {
            place: key.span(),
            key: key.into_inner().into_owned(),
            node: convert(value),
        })
        .collect();
    entries.sort_by_key(|entry| entry.place.start);
    entries
}

fn convert(value: Spanned<DeValue<'_>>) -> Node {
    let span = value.span();
    // The parser stands an empty span in for a value that it did not find.
    if span.is_empty() {
        return Node { span, raw: Raw::Broken };
    }
    let raw = match value.into_inner() {
        DeValue::String(text) => Raw::Text(text.into_owned()),
        DeValue::Integer(digits) => {
            Raw::Integer(i128::from_str_radix(digits.as_str(), digits.radix()).ok())
        }
        DeValue::Float(_) => Raw::Float,
        DeValue::Boolean(_) => Raw::Boolean,
        DeValue::Datetime(_) => Raw::Date,
        DeValue::Array(items) => Raw::List(items.into_iter().map(convert).collect()),
        DeValue::Table(table) => Raw::Table(convert_table(table)),
    };
    Node { span, raw }
}

/// The parser's errors, the first of each line: what follows it there follows from it.
fn syntax_faults(text: &str, errors: &[toml::de::Error]) -> Vec<Fault> {
    let mut errors: Vec<_> = errors
        .iter()
        .map(|error| {
            let span = error.span().unwrap_or(0..0);
            (span.start.min(text.len())..span.end.min(text.len()), error.message())
        })
        .collect();
    errors.sort_by_key(|(span, _)| span.start);
    let mut faults: Vec<Fault> = Vec::new();
    let mut line_end = None;
    for (span, message) in errors {
        if line_end.is_some_and(|end| span.start <= end) {
            continue;
        }
        line_end = text.as_bytes()[span.start..]
            .iter()
            .position(|byte| *byte == b'\n')
            .map_or(Some(text.len()), |newline| Some(span.start + newline));
        faults.push(syntax_fault(text, span, message));
    }
    faults
}

fn syntax_fault(text: &str, span: Range<usize>, message: &str) -> Fault {
    let word = text.get(span.clone()).unwrap_or_default();
    if message.starts_with("duplicate key") {
        return Fault::at(span, format!("`{word}` is given a second time"))
            .expected("it was given before")
            .mend("keep one of the two");
    }
    let (found, expected) = match message.split_once(", expected ") {
        Some((found, expected)) => (found, Some(expected)),
        None => (message, None),
    };
    let mut fault = Fault::at(span, format!("this is not TOML: {found}")).trust(Trust::Syntax);
    if let Some(expected) = expected.filter(|expected| *expected != "nothing") {
        fault = fault.expected(format!("expected {expected}"));
    }
    fault
}
