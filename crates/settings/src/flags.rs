//! Configurations from a command line.
//!
//! What it is: flags that are put into the same tree as a file, so that they use the same table, the same checks and
//! the same errors. The errors point into the command line. What it depends on: paths of options. What it must never
//! depend on: the names of the flags.

use std::ops::Range;

use crate::diagnostics::Diagnostics;
use crate::fault::Fault;
use crate::model::Configuration;
use crate::parse::configuration;
use crate::source::{COMMAND, Source};
use crate::sources::Sources;
use crate::tree::{Entry, Node, Raw, Table};

/// The name of the command line in an error.
const NAME: &str = "command line";

/// An option that the command line sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flag {
    /// The path of the option, like `listener.main.listen` or `pool.main.workers`.
    pub path: String,
    /// The value of the option.
    pub value: FlagValue,
    /// The text on the command line, like `--listen :7000`. It is empty if the flag was not written but follows from
    /// the command.
    pub shown: String,
}

/// The value of a flag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlagValue {
    /// A text, a word, an address, a duration, or a size with a unit.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A program and its arguments, or names.
    List(Vec<String>),
    /// Names and their values, for `env`.
    Table(Vec<(String, String)>),
}

/// Returns the configuration of a command line.
///
/// # Errors
///
/// Returns all errors of the command line. They point into its text.
pub fn from_flags(flags: &[Flag]) -> Result<Configuration, Diagnostics> {
    let mut text = COMMAND.to_owned();
    let mut table = Table::new();
    let mut faults = Vec::new();
    for flag in flags {
        let span = append(&mut text, flag);
        let node = Node { span: span.clone(), raw: raw(&flag.value, &span) };
        if let Err(taken) = insert(&mut table, &flag.path, node) {
            let message = format!("`{taken}` is given twice");
            faults.push(Fault::at(span, message).suggestion("keep one of the two"));
        }
    }
    let source = Source { name: NAME.to_owned(), text };
    configuration(&Sources::from(&source), &table, &|variable| std::env::var(variable).ok(), faults)
}

/// Appends a flag to the rendered command line. Returns the span of its value, or of the whole flag if the value cannot
/// be located.
fn append(text: &mut String, flag: &Flag) -> Range<usize> {
    let shown: String =
        flag.shown.chars().map(|c| if exchange::is_hidden(c) { ' ' } else { c }).collect();
    if shown.is_empty() {
        return text.len()..text.len();
    }
    text.push(' ');
    let start = text.len();
    text.push_str(&shown);
    let value = match &flag.value {
        FlagValue::Text(value) => value.clone(),
        FlagValue::Integer(value) => value.to_string(),
        FlagValue::List(_) | FlagValue::Table(_) => return start..text.len(),
    };
    match shown.ends_with(&value) && !value.is_empty() {
        true => text.len() - value.len()..text.len(),
        false => start..text.len(),
    }
}

fn raw(value: &FlagValue, span: &Range<usize>) -> Raw {
    let text = |text: &String| Node { span: span.clone(), raw: Raw::Text(text.clone()) };
    match value {
        FlagValue::Text(text) => Raw::Text(text.clone()),
        FlagValue::Integer(number) => Raw::Integer(Some(i128::from(*number))),
        FlagValue::List(items) => Raw::List(items.iter().map(text).collect()),
        FlagValue::Table(pairs) => Raw::Table(
            pairs
                .iter()
                .map(|(name, value)| Entry {
                    key: name.clone(),
                    place: span.clone(),
                    node: text(value),
                })
                .collect(),
        ),
    }
}

/// Sets the option at `path`. Returns the path that is already set, if there is one.
fn insert<'a>(table: &mut Table, path: &'a str, node: Node) -> Result<(), &'a str> {
    let place = node.span.clone();
    let Some((head, rest)) = path.split_once('.') else {
        if table.iter().any(|entry| entry.key == path) {
            return Err(path);
        }
        table.push(Entry { key: path.to_owned(), place, node });
        return Ok(());
    };
    let at = match table.iter().position(|entry| entry.key == head) {
        Some(at) => at,
        None => {
            let raw = Raw::Table(Table::new());
            let node = Node { span: place, raw };
            table.push(Entry { key: head.to_owned(), place: 0..COMMAND.len(), node });
            table.len() - 1
        }
    };
    match &mut table[at].node.raw {
        Raw::Table(inner) => insert(inner, rest, node),
        _ => Err(head),
    }
}
