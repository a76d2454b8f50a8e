//! The tree of a source: tables, lists and values, each with its location.
//!
//! What it is: TOML parsed statement by statement, so that one error neither hides the next one nor causes a false one.
//! What it depends on: TOML. What it must never depend on: an option.
//!
//! A statement that is not TOML is reported and replaced by spaces, which does not move any other location, and the
//! text is parsed again. So the content of the tree is reliable, and the only effect of a broken statement is that its
//! content is missing.

mod syntax;

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::fault::Fault;

/// The maximum number of broken statements. After them parsing stops, because each costs one pass.
const BROKEN_MAX: usize = 32;

/// The message of the parser for a key that already exists. The first key is kept, so the tree is complete.
const DUPLICATE: &str = "duplicate key";

/// Keys and values in the order of the source.
pub(crate) type Table = Vec<Entry>;

/// A key and its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    /// The location of the key (for a section: its last part in the header).
    pub(crate) place: Range<usize>,
    pub(crate) node: Node,
}

/// A value and its location.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) span: Range<usize>,
    pub(crate) raw: Raw,
}

/// The values of TOML.
#[derive(Clone, Debug)]
pub(crate) enum Raw {
    Text(String),
    /// `None`: the number is too large for any option.
    Integer(Option<i128>),
    Float,
    Boolean(bool),
    Date,
    List(Vec<Node>),
    Table(Table),
}

impl Raw {
    /// Returns the name of the type in an error.
    pub(crate) fn title(&self) -> &'static str {
        match self {
            Self::Text(_) => "a text",
            Self::Integer(_) => "a whole number",
            Self::Float => "a fraction",
            Self::Boolean(_) => "true or false",
            Self::Date => "a date or time",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

/// Parses a text. Statements that cannot be parsed are omitted from the tree and reported.
pub(crate) fn read(text: &str) -> (Table, Vec<Fault>) {
    let mut faults = Vec::new();
    let mut rest = text.to_owned();
    while faults.len() < BROKEN_MAX {
        let (table, errors) = DeTable::parse_recoverable(&rest);
        let place = |error: &toml::de::Error| {
            let span = error.span().unwrap_or(0..0);
            let start = span.start.min(rest.len());
            start..span.end.clamp(start, rest.len())
        };
        let broken = errors.iter().filter(|error| !error.message().starts_with(DUPLICATE));
        let Some(first) = broken.min_by_key(|error| place(error).start) else {
            faults.extend(errors.iter().map(|error| twice(text, place(error))));
            return (convert_table(table.into_inner()), faults);
        };
        let flaw = syntax::explain(&rest, place(first), first.message());
        faults.push(flaw.fault);
        match blanked(&rest, &flaw.statement) {
            Some(blanked) => rest = blanked,
            None => break,
        }
    }
    (Table::new(), faults)
}

fn twice(text: &str, place: Range<usize>) -> Fault {
    let word = text.get(place.clone()).unwrap_or_default();
    Fault::at(place, format!("`{word}` is given twice"))
        .expected("it was given before")
        .suggestion("keep one of the two")
}

/// Returns the text with a statement replaced by spaces; `None` if there is nothing left to replace.
fn blanked(text: &str, statement: &Range<usize>) -> Option<String> {
    let blank: String = text
        .get(statement.clone())?
        .bytes()
        .map(|byte| if byte == b'\n' { '\n' } else { ' ' })
        .collect();
    let changed = blank != text[statement.clone()];
    changed.then(|| [&text[..statement.start], &blank, &text[statement.end..]].concat())
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
    let raw = match value.into_inner() {
        DeValue::String(text) => Raw::Text(text.into_owned()),
        DeValue::Integer(digits) => {
            Raw::Integer(i128::from_str_radix(digits.as_str(), digits.radix()).ok())
        }
        DeValue::Float(_) => Raw::Float,
        DeValue::Boolean(value) => Raw::Boolean(value),
        DeValue::Datetime(_) => Raw::Date,
        DeValue::Array(items) => Raw::List(items.into_iter().map(convert).collect()),
        DeValue::Table(table) => Raw::Table(convert_table(table)),
    };
    Node { span, raw }
}
