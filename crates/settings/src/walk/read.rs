//! Reads one value from the tree.
//!
//! What it is: for each kind of option the allowed values in the tree, and the fault for any other value. What it
//! depends on: kinds and nodes. What it must never depend on: other options.

use std::borrow::Cow;

use super::report::{Walk, list, shown};
use crate::fault::Fault;
use crate::foreign;
use crate::mask;
use crate::model::Processors;
use crate::nearest::nearest;
use crate::options::{Kind, Opt, Shorthand, Shows, Unit, Value};
use crate::quantities::{self, Bad};
use crate::tree::{Entry, Node, Raw};
use crate::values;

/// Returns the value of an option that is not a table; `None` after a fault was reported.
pub(super) fn value(walk: &mut Walk<'_>, option: &'static Opt, entry: &Entry) -> Option<Value> {
    match variable(&option.kind, &entry.node.raw) {
        Some(name) => from_variable(walk, option, entry, name),
        None => written(walk, option, entry),
    }
}

/// Returns the variable that contains the value, if it is written `env:NAME`. A secret is resolved by its user, not
/// here.
fn variable<'a>(kind: &Kind, raw: &'a Raw) -> Option<&'a str> {
    let Raw::Text(text) = raw else { return None };
    match kind {
        Kind::Names(_) | Kind::Command | Kind::Variables => None,
        Kind::Text(form) if form.shows == Shows::Place => None,
        _ => text.strip_prefix("env:"),
    }
}

/// Reads the value of an option from a variable of the daemon. An error names the variable, but does not show its
/// value.
fn from_variable(
    walk: &mut Walk<'_>,
    option: &'static Opt,
    entry: &Entry,
    name: &str,
) -> Option<Value> {
    let place = entry.node.span.clone();
    let expected = format!("expected {}", expectation(&option.kind));
    let Some(text) = (walk.environment)(name) else {
        let message = format!("`{}`: the variable `{}` is not set", option.name, shown(name));
        let suggestion = "set it in the environment of the daemon, or write the value here";
        walk.faults.push(Fault::at(place, message).expected(expected).suggestion(suggestion));
        return None;
    };
    // The value may be a secret with any option, because variables often contain secrets.
    walk.variables.insert(name.to_owned());
    walk.hidden.push(text.clone());
    let is_number = matches!(option.kind, Kind::Number { unit: Unit::One | Unit::Bytes, .. });
    let raw = match (text.parse(), text.parse()) {
        (Ok(number), _) if is_number => Raw::Integer(Some(number)),
        (_, Ok(value)) if matches!(option.kind, Kind::Switch) => Raw::Boolean(value),
        _ => Raw::Text(text),
    };
    let before = walk.faults.len();
    let node = Node { span: place.clone(), raw };
    let found = written(walk, option, &Entry { node, ..entry.clone() });
    if found.is_none() {
        walk.faults.truncate(before);
        let message = format!(
            "`{}`: the variable `{}` has no value of this option",
            option.name,
            shown(name)
        );
        walk.faults.push(Fault::at(place, message).expected(expected));
    }
    found
}

/// Reads a value from the file, or from a variable.
fn written(walk: &mut Walk<'_>, option: &'static Opt, entry: &Entry) -> Option<Value> {
    match (&option.kind, &entry.node.raw) {
        (Kind::Number { unit, min, max, zero }, raw) => {
            let number = match raw {
                Raw::Text(text) if Some(text.as_str()) == *zero => return Some(unit.value(0)),
                Raw::Integer(number) if *unit != Unit::Milliseconds => {
                    number.and_then(|number| u64::try_from(number).ok())
                }
                Raw::Text(text) => match unit.read(text) {
                    Some(Ok(number)) => Some(number),
                    Some(Err(bad)) => return refuse(walk, option, entry, bad),
                    None => return wrong_type(walk, option, entry),
                },
                _ => return wrong_type(walk, option, entry),
            };
            let value = number.filter(|number| (min..=max).contains(&number));
            if value.is_none() {
                out_of_range(walk, option.name, &option.kind, entry);
            }
            value.map(|number| unit.value(number))
        }
        (Kind::Switch, Raw::Boolean(value)) => Some(Value::Switch(*value)),
        (Kind::Processors, Raw::List(items)) => processors(walk, option, entry, items),
        (kind, Raw::Text(text)) => match from_text(option.name, kind, text) {
            Some(Ok(value)) => Some(value),
            Some(Err(bad)) => refuse(walk, option, entry, bad),
            None => wrong_type(walk, option, entry),
        },
        (Kind::Command, Raw::List(items)) => texts(walk, option, entry, items).map(Value::Texts),
        (Kind::Names(_), Raw::List(items)) => {
            let names = texts(walk, option, entry, items)?;
            once_each(walk, option, items, &names).then_some(Value::Texts(names))
        }
        (Kind::Variables, Raw::Table(table)) => variables(walk, option, table),
        _ => wrong_type(walk, option, entry),
    }
}

/// Parses a default, which is written as in a file.
pub(super) fn default(kind: &Kind, text: &str) -> Value {
    match kind {
        Kind::Number { unit, zero, .. } if *zero == Some(text) => Some(unit.value(0)),
        Kind::Number { unit, .. } => {
            let number = unit.read(text).map_or_else(|| text.parse().ok(), Result::ok);
            number.map(|number| unit.value(number))
        }
        Kind::Switch => text.parse().map(Value::Switch).ok(),
        _ => from_text("", kind, text).and_then(Result::ok),
    }
    .expect("a test reads every default of the table")
}

/// Whether a text, written in a file, would be a valid value of an option.
#[cfg(test)]
pub(crate) fn readable(option: &'static Opt, text: &str) -> bool {
    let raw = match option.kind {
        Kind::Number { unit: Unit::One, zero, .. } if zero != Some(text) => {
            Raw::Integer(text.parse().ok())
        }
        Kind::Switch => Raw::Boolean(text == "true"),
        _ => Raw::Text(text.to_owned()),
    };
    let mut faults = Vec::new();
    let environment = |_: &str| None;
    let mut walk = Walk {
        text,
        faults: &mut faults,
        environment: &environment,
        variables: Default::default(),
        hidden: Vec::new(),
    };
    let entry =
        Entry { key: option.name.to_owned(), place: 0..0, node: Node { span: 0..text.len(), raw } };
    value(&mut walk, option, &entry).is_some()
}

/// Reads the short form of a table: `None` if it is not used, `Some(None)` after a fault.
pub(super) fn short(
    walk: &mut Walk<'_>,
    option: &'static Opt,
    short: Shorthand,
    entry: &Entry,
) -> Option<Option<(u64, u64)>> {
    let (Shorthand::Span, Kind::Group(inner, _)) = (short, &option.kind) else { return None };
    let span = match &entry.node.raw {
        Raw::Integer(number) => {
            let number = number.and_then(|number| u64::try_from(number).ok()).unwrap_or(0);
            (number, number)
        }
        Raw::Text(text) => match quantities::span(text) {
            Ok(span) => span,
            Err(bad) => return Some(refuse(walk, option, entry, bad).map(|_| (0, 0))),
        },
        _ => return None,
    };
    for (name, number) in [("min", span.0), ("max", span.1)] {
        let inner = crate::options::find(inner, name).expect("a span stands for these two");
        let Kind::Number { min, max, .. } = inner.kind else { unreachable!("both are numbers") };
        if !(min..=max).contains(&number) {
            out_of_range(walk, option.name, &inner.kind, entry);
            return Some(None);
        }
    }
    Some(Some(span))
}

/// Parses a text for a kind that is written as a text; `None` for other kinds.
fn from_text(option: &str, kind: &Kind, text: &str) -> Option<Result<Value, Bad>> {
    Some(match kind {
        Kind::Word(words) => match words.iter().find(|word| word.name == text) {
            Some(word) => Ok(Value::Word(word.name)),
            None => Err(unknown_word(option, words.iter().map(|word| word.name).collect(), text)),
        },
        Kind::Processors => values::processors(text).map(Value::Processors),
        Kind::Text(form) => (form.read)(text),
        Kind::Number { .. }
        | Kind::Switch
        | Kind::Names(_)
        | Kind::Command
        | Kind::Variables
        | Kind::Group(..)
        | Kind::List(..) => return None,
    })
}

/// Reads a list of processors: distinct numbers from 0.
fn processors(
    walk: &mut Walk<'_>,
    option: &'static Opt,
    entry: &Entry,
    items: &[Node],
) -> Option<Value> {
    let mut numbers = Vec::new();
    for item in items {
        let number = match item.raw {
            Raw::Integer(Some(number)) => usize::try_from(number).ok(),
            _ => None,
        };
        match number.filter(|&number| number < values::PROCESSORS_MAX) {
            Some(number) if !numbers.contains(&number) => numbers.push(number),
            _ => {
                let entry = Entry { node: item.clone(), ..entry.clone() };
                return wrong_type(walk, option, &entry);
            }
        }
    }
    if numbers.is_empty() {
        return wrong_type(walk, option, entry);
    }
    Some(Value::Processors(Processors::List(numbers)))
}

fn unknown_word(option: &str, words: Vec<&'static str>, text: &str) -> Bad {
    if let Some(advice) = foreign::word(option, text) {
        return Bad { why: "is not a known value".to_owned(), suggestion: Some(advice.to_owned()) };
    }
    let suggestion = match nearest(text, words.iter().copied()) {
        Some(nearest) => format!("did you mean \"{nearest}\"?"),
        None => format!("write one of {}", list(&words)),
    };
    Bad { why: "is not a known value".to_owned(), suggestion: Some(suggestion) }
}

fn texts(
    walk: &mut Walk<'_>,
    option: &'static Opt,
    entry: &Entry,
    items: &[Node],
) -> Option<Vec<String>> {
    if items.is_empty() {
        let fault = not_expected(&option.kind, entry, format!("`{}` is empty", option.name));
        walk.faults.push(fault);
        return None;
    }
    let mut all = Some(Vec::new());
    for (index, item) in items.iter().enumerate() {
        let why = match &item.raw {
            // An argument may be empty, but a program or a column may not.
            Raw::Text(text) if text.contains('\0') => "contains a NUL",
            Raw::Text(text)
                if text.is_empty() && (index == 0 || matches!(option.kind, Kind::Names(_))) =>
            {
                "is empty"
            }
            Raw::Text(text) => {
                if let Some(all) = &mut all {
                    all.push(text.clone());
                }
                continue;
            }
            _ => "is not a text",
        };
        let word = walk.word(item);
        let message = format!("`{}` in `{}` {why}", shown(word), option.name);
        let mut fault = Fault::at(item.span.clone(), message).expected("expected a text in quotes");
        if why == "is not a text" && !word.contains(['"', '\'', '\n', '[', '{']) {
            fault = fault.suggestion(format!("write \"{word}\""));
        }
        walk.faults.push(fault);
        all = None;
    }
    all
}

fn once_each(walk: &mut Walk<'_>, option: &Opt, items: &[Node], names: &[String]) -> bool {
    let mut seen = std::collections::HashSet::new();
    let mut clean = true;
    for (item, name) in items.iter().zip(names) {
        if !seen.insert(name) {
            let message = format!("`{}` is in `{}` twice", shown(name), option.name);
            walk.faults
                .push(Fault::at(item.span.clone(), message).suggestion("keep one of the two"));
            clean = false;
        }
    }
    clean
}

fn variables(walk: &mut Walk<'_>, option: &Opt, table: &[Entry]) -> Option<Value> {
    let mut all = Some(Vec::new());
    for entry in table {
        let word = walk.word(&entry.node).to_owned();
        let key = shown(&entry.key);
        walk.faults.push(match &entry.node.raw {
            _ if entry.key.is_empty() || entry.key.contains(['=', '\0']) => {
                let message = format!("`{key}` cannot be the name of a variable");
                Fault::at(entry.place.clone(), message).expected("expected a name without `=`")
            }
            Raw::Text(text) if !text.contains('\0') => {
                if let Some(all) = &mut all {
                    all.push((entry.key.clone(), text.clone()));
                }
                continue;
            }
            Raw::Text(_) => {
                let message = format!("`{key}` in `{}` contains a NUL", option.name);
                Fault::at(entry.node.span.clone(), message)
            }
            other => {
                let message =
                    format!("`{key}` in `{}` is {}, not a text", option.name, other.title());
                let is_simple = !word.contains(['"', '\'', '\n', '[', '{']);
                Fault::at(entry.node.span.clone(), message)
                    .expected("expected a text in quotes")
                    .suggested(is_simple.then(|| format!("write \"{word}\"")))
            }
        });
        all = None;
    }
    all.map(Value::Variables)
}

/// Returns the fault of a value that is not what its kind expects.
fn not_expected(kind: &Kind, entry: &Entry, message: String) -> Fault {
    Fault::at(entry.node.span.clone(), message).expected(format!("expected {}", expectation(kind)))
}

fn out_of_range(walk: &mut Walk<'_>, name: &str, kind: &Kind, entry: &Entry) {
    let word = walk.word(&entry.node);
    let message = format!("`{name}` = {} is out of range", shown_value(word));
    let mut fault = not_expected(kind, entry, message);
    if let Some((min, max)) = range(kind) {
        let is_zero = ["0", "\"0s\"", "\"0ms\"", "\"0m\"", "\"0h\"", "\"0B\""].contains(&word);
        let can_be_off = matches!(kind, Kind::Number { zero: Some("off"), .. });
        fault = fault.suggestion(match is_zero && can_be_off {
            true => format!("write `{name} = \"off\"`"),
            false => format!("write a value from {min} to {max}"),
        });
    }
    walk.faults.push(fault);
}

fn refuse(walk: &mut Walk<'_>, option: &Opt, entry: &Entry, bad: Bad) -> Option<Value> {
    let word = walk.word(&entry.node);
    // It is masked before it is shortened: a part of a password cannot be found later.
    let word = match option.kind {
        Kind::Text(form) if form.shows == Shows::Target => Cow::Owned(mask::target(word)),
        _ => Cow::Borrowed(word),
    };
    let message = format!("`{}` = {} {}", option.name, shown_value(&word), bad.why);
    let fault = not_expected(&option.kind, entry, message);
    walk.faults.push(fault.suggested(bad.suggestion));
    None
}

/// Reports a value of a type that the option does not have.
pub(super) fn wrong_type<T>(walk: &mut Walk<'_>, option: &Opt, entry: &Entry) -> Option<T> {
    let message = format!("`{}` cannot be {}", option.name, entry.node.raw.title());
    let fault = not_expected(&option.kind, entry, message);
    let suggestion = suggest_value(walk, option, entry);
    walk.faults.push(fault.suggested(suggestion));
    None
}

/// Returns the value that was probably meant by a value of the wrong type.
fn suggest_value(walk: &Walk<'_>, option: &Opt, entry: &Entry) -> Option<String> {
    let word = walk.word(&entry.node);
    let quote = |text: &str| format!("\"{}\"", text.escape_default());
    let meant = match (&option.kind, &entry.node.raw) {
        (Kind::Number { unit: Unit::One, .. }, Raw::Text(text)) if text.parse::<u64>().is_ok() => {
            text.clone()
        }
        (Kind::Group(..), Raw::Integer(Some(count @ 0..=254))) if option.name == "retries" => {
            let tries = count + 1;
            return Some(format!(
                "write `retries = {{ tries = {tries} }}`: the first attempt counts"
            ));
        }
        (Kind::Switch, Raw::Text(text)) if text == "true" || text == "false" => text.clone(),
        (Kind::Processors, Raw::Integer(Some(0..))) => format!("[{word}]"),
        (Kind::Number { unit: Unit::Milliseconds, .. }, Raw::Integer(Some(0..))) => {
            format!("\"{word}s\"")
        }
        (Kind::Text(form), Raw::Integer(Some(number))) => match form.number {
            Some((max, before, behind)) if (0..=i128::from(max)).contains(number) => {
                format!("\"{before}{word}{behind}\"")
            }
            _ => return None,
        },
        (Kind::Command, Raw::Text(text)) if !text.trim().is_empty() => {
            // Arguments may be secrets, so they are not repeated.
            let more = |_: &str| "...".to_owned();
            let words = text.split_whitespace();
            let words: Vec<String> =
                words.clone().take(1).map(quote).chain(words.skip(1).take(1).map(more)).collect();
            format!("[{}]", words.join(", "))
        }
        (Kind::Names(_), Raw::Text(text)) if !text.is_empty() => format!("[{}]", quote(text)),
        (Kind::Text(form), Raw::List(items)) if form.shows == Shows::Target => match items[..] {
            [_] => "\"...\"".to_owned(),
            _ => return None,
        },
        (Kind::Word(_) | Kind::Text(_), Raw::List(items)) => match items.as_slice() {
            [Node { raw: Raw::Text(text), .. }] => quote(text),
            _ => return None,
        },
        _ => return None,
    };
    Some(format!("write `{} = {meant}`", option.name))
}

/// Returns a value as it is written in the source, shortened for a message.
fn shown_value(word: &str) -> String {
    const SHOWN_MAX: usize = 60;
    let first = word.lines().next().unwrap_or_default();
    let mut text: String = first.chars().take(SHOWN_MAX).collect();
    if first.chars().nth(SHOWN_MAX).is_some() || first.len() < word.len() {
        text.push('…');
    }
    text
}

/// Returns what a kind expects, for a message.
pub(crate) fn expectation(kind: &Kind) -> String {
    match kind {
        Kind::Number { unit, min, max, zero } => {
            let (what, like) = match unit {
                Unit::One => ("a whole number", ""),
                Unit::Bytes => ("a size", ", like 4096 or \"64KiB\""),
                Unit::Milliseconds => ("a duration", ", like \"500ms\", \"2s\", \"5m\", \"1h\""),
            };
            let or = zero.map_or_else(String::new, |word| format!(", or \"{word}\""));
            format!("{what} from {} to {}{like}{or}", unit.show(*min), unit.show(*max))
        }
        Kind::Switch => "true or false".to_owned(),
        Kind::Processors => {
            "\"any\", \"near\", \"spread\" or a list of processors, each once, like [0, 2]"
                .to_owned()
        }
        Kind::Word(words) => {
            let words: Vec<String> = words.iter().map(|w| format!("\"{}\"", w.name)).collect();
            words.join(" or ")
        }
        Kind::Text(form) => form.expected.to_owned(),
        Kind::Names(_) => "a list of names, like [\"at\", \"path\"]".to_owned(),
        Kind::Command => "a program and its arguments, like [\"perl\", \"parse.pl\"]".to_owned(),
        Kind::Variables => "a table of texts, like { NAME = \"value\" }".to_owned(),
        Kind::Group(_, Shorthand::Span) => {
            "a number, a range like \"2..20\", or a table like { min = 2, max = 20 }".to_owned()
        }
        Kind::List(_, alone) => {
            format!("a list of tables, or of texts with only their `{alone}`")
        }
        Kind::Group(options, Shorthand::None | Shorthand::Off) => {
            let names: Vec<&str> = options.iter().map(|option| option.name).collect();
            format!("a table of {}", list(&names))
        }
    }
}

/// Returns both ends of a kind's range, as they are written.
pub(crate) fn range(kind: &Kind) -> Option<(String, String)> {
    match kind {
        Kind::Number { unit, min, max, .. } => Some((unit.show(*min), unit.show(*max))),
        _ => None,
    }
}
