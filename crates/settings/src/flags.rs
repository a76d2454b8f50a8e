//! A configuration from a command line.
//!
//! What it is: flags laid into the same tree as a file, so that they meet the same table, the same
//! checks and the same errors, which point into the command line. What it knows: paths of options.
//! What it must never know: how the flags are called.

use std::ops::Range;

use crate::diagnostics::Diagnostics;
use crate::fault::Fault;
use crate::model::Configuration;
use crate::parse::configuration;
use crate::source::{COMMAND, Source};
use crate::sources::Sources;
use crate::tree::{Entry, Node, Raw, Table};

/// How the command line is called in an error.
const NAME: &str = "command line";

/// One option that the command line sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flag {
    /// The option, like `listener.main.listen` or `pool.main.workers`.
    pub path: String,
    /// What it is set to.
    pub value: FlagValue,
    /// How it stood on the command line, like `--listen :7000`; empty when it was not written but
    /// follows from the command.
    pub shown: String,
}

/// What a flag sets an option to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlagValue {
    /// A text, a word, an address, a duration, a size with a unit.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A program and its arguments, or names.
    List(Vec<String>),
    /// Names and their values, for `env`.
    Table(Vec<(String, String)>),
}

/// Makes a configuration of a command line, or says everything that is wrong with it.
///
/// # Errors
///
/// All errors of the command line at once, pointing into it as it was written.
pub fn from_flags(flags: &[Flag]) -> Result<Configuration, Diagnostics> {
    let mut text = COMMAND.to_owned();
    let mut table = Table::new();
    let mut faults = Vec::new();
    for flag in flags {
        let span = append(&mut text, flag);
        let node = Node { span: span.clone(), raw: raw(&flag.value, &span) };
        if let Err(taken) = insert(&mut table, &flag.path, node) {
            let message = format!("`{taken}` is given twice");
            faults.push(Fault::at(span, message).mend("keep one of the two"));
        }
    }
    let source = Source { name: NAME.to_owned(), text };
    configuration(&Sources::from(&source), &table, &|variable| std::env::var(variable).ok(), faults)
}

/// Adds a flag to the rendered command line; the span is its value's where that can be told.
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

/// Sets the option at `path`; gives back the path that is taken.
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
