//! Reads one value from the tree.
//!
//! What it is: for each kind of option the allowed values in the tree, and the fault for any other value. What it
//! depends on: kinds and nodes. What it must never depend on: other options.

use std::borrow::Cow;
use std::time::Duration;

use super::report::{Walk, list, shown, with_suggestion};
use crate::fault::Fault;
use crate::foreign;
use crate::mask;
use crate::model::Processors;
use crate::nearest::nearest;
use crate::options::{Kind, Opt, Shorthand, Value};
use crate::quantities::{self, Bad, duration_text, size_text};
use crate::tree::{Entry, Node, Raw};
use crate::values;

/// The word that turns an option off, if that is possible.
const OFF: &str = "off";

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
        Kind::Secret | Kind::Names(_) | Kind::Command | Kind::Variables => None,
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
    let is_number =
        matches!(option.kind, Kind::Count { .. } | Kind::CountOr { .. } | Kind::Size { .. });
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
        (
            Kind::Count { min, max } | Kind::CountOr { min, max, .. } | Kind::Size { min, max, .. },
            Raw::Integer(number),
        ) => {
            let number = number.and_then(|number| u64::try_from(number).ok());
            in_range(walk, option, entry, number.filter(|n| (min..=max).contains(&n)))
        }
        (Kind::Switch, Raw::Boolean(value)) => Some(Value::Switch(*value)),
        (Kind::Processors, Raw::List(items)) => processors(walk, option, entry, items),
        (kind, Raw::Text(text)) => match from_text(option.name, kind, text) {
            Some(Ok(value)) => match kind {
                Kind::Size { min, max, .. } if text != OFF => {
                    let fits = matches!(value, Value::Number(n) if (min..=max).contains(&&n));
                    in_range_value(walk, option, entry, fits.then_some(value))
                }
                Kind::Time { min, max, .. } if text != OFF => {
                    let fits = matches!(value, Value::Time(t) if (min..=max).contains(&&t));
                    in_range_value(walk, option, entry, fits.then_some(value))
                }
                _ => Some(value),
            },
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
        Kind::Count { .. } => text.parse().map(Value::Number).ok(),
        Kind::CountOr { word, .. } if text != *word => text.parse().map(Value::Number).ok(),
        Kind::Switch => text.parse().map(Value::Switch).ok(),
        _ => from_text("", kind, text).and_then(Result::ok),
    }
    .expect("a test reads every default of the table")
}

/// Whether a text, written in a file, would be a valid value of an option.
#[cfg(test)]
pub(crate) fn readable(option: &'static Opt, text: &str) -> bool {
    let raw = match option.kind {
        Kind::Count { .. } => Raw::Integer(text.parse().ok()),
        Kind::CountOr { word, .. } if text != word => Raw::Integer(text.parse().ok()),
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
        let Kind::Count { min, max } = inner.kind else { unreachable!("both are counts") };
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
        Kind::Size { off: true, .. } if text == OFF => Ok(Value::Number(0)),
        Kind::Time { off: true, .. } if text == OFF => Ok(Value::Time(Duration::ZERO)),
        Kind::Size { .. } => quantities::size(text).map(Value::Number),
        Kind::Time { .. } => quantities::duration(text).map(Value::Time),
        Kind::Word(words) => match words.iter().find(|word| word.name == text) {
            Some(word) => Ok(Value::Word(word.name)),
            None => Err(unknown_word(option, words.iter().map(|word| word.name).collect(), text)),
        },
        Kind::CountOr { word, .. } if text == *word => Ok(Value::Number(0)),
        Kind::Processors => values::processors(text).map(Value::Processors),
        Kind::Address => values::address(text).map(Value::Address),
        Kind::Server => values::server_address(text).map(Value::Address),
        Kind::Target => values::target(text).map(Value::Target),
        Kind::Secret => values::secret(text).map(Value::Secret),
        Kind::Key => values::key(text).map(Value::Key),
        Kind::Percent => quantities::percent(text).map(Value::Number),
        Kind::Template => values::template(text).map(|()| Value::Text(text.to_owned())),
        Kind::Text(_) | Kind::Pool => plain(text).map(|()| Value::Text(text.to_owned())),
        Kind::Count { .. }
        | Kind::CountOr { .. }
        | Kind::Switch
        | Kind::Names(_)
        | Kind::Command
        | Kind::Variables
        | Kind::Group(..)
        | Kind::List(..) => {
            return None;
        }
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

fn plain(text: &str) -> Result<(), Bad> {
    let why = match text {
        text if text.trim().is_empty() => "is empty",
        text if text.contains('\0') => "contains a NUL",
        _ => return Ok(()),
    };
    Err(Bad { why: why.to_owned(), suggestion: None })
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
        let fault = Fault::at(entry.node.span.clone(), format!("`{}` is empty", option.name));
        walk.faults.push(fault.expected(format!("expected {}", expectation(&option.kind))));
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
        let word = walk.text.get(item.span.clone()).unwrap_or_default();
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
        let word = walk.text.get(entry.node.span.clone()).unwrap_or_default();
        let fault = match &entry.node.raw {
            _ if entry.key.is_empty() || entry.key.contains(['=', '\0']) => Some(
                Fault::at(
                    entry.place.clone(),
                    format!("`{}` cannot be the name of a variable", shown(&entry.key)),
                )
                .expected("expected a name without `=`"),
            ),
            Raw::Text(text) if !text.contains('\0') => {
                if let Some(all) = &mut all {
                    all.push((entry.key.clone(), text.clone()));
                }
                continue;
            }
            Raw::Text(_) => Some(Fault::at(
                entry.node.span.clone(),
                format!("`{}` in `{}` contains a NUL", shown(&entry.key), option.name),
            )),
            other => {
                let message = format!(
                    "`{}` in `{}` is {}, not a text",
                    shown(&entry.key),
                    option.name,
                    other.title()
                );
                let fault = Fault::at(entry.node.span.clone(), message)
                    .expected("expected a text in quotes");
                let simple = !word.contains(['"', '\'', '\n', '[', '{']);
                Some(with_suggestion(fault, simple.then(|| format!("write \"{word}\""))))
            }
        };
        walk.faults.extend(fault);
        all = None;
    }
    all.map(Value::Variables)
}

fn in_range(
    walk: &mut Walk<'_>,
    option: &Opt,
    entry: &Entry,
    number: Option<u64>,
) -> Option<Value> {
    in_range_value(walk, option, entry, number.map(Value::Number))
}

fn in_range_value(
    walk: &mut Walk<'_>,
    option: &Opt,
    entry: &Entry,
    value: Option<Value>,
) -> Option<Value> {
    if value.is_none() {
        out_of_range(walk, option.name, &option.kind, entry);
    }
    value
}

fn out_of_range(walk: &mut Walk<'_>, name: &str, kind: &Kind, entry: &Entry) {
    let word = walk.text.get(entry.node.span.clone()).unwrap_or_default();
    let message = format!("`{name}` = {} is out of range", shown_value(word));
    let mut fault = Fault::at(entry.node.span.clone(), message)
        .expected(format!("expected {}", expectation(kind)));
    if let Some((min, max)) = range(kind) {
        let is_zero = ["0", "\"0s\"", "\"0ms\"", "\"0m\"", "\"0h\"", "\"0B\""].contains(&word);
        fault = fault.suggestion(match is_zero && can_be_off(kind) {
            true => format!("write `{name} = \"off\"`"),
            false => format!("write a value from {min} to {max}"),
        });
    }
    walk.faults.push(fault);
}

const fn can_be_off(kind: &Kind) -> bool {
    match kind {
        Kind::Size { off, .. } | Kind::Time { off, .. } => *off,
        Kind::CountOr { word, .. } => matches!(word.as_bytes(), b"off"),
        _ => false,
    }
}

fn refuse(walk: &mut Walk<'_>, option: &Opt, entry: &Entry, bad: Bad) -> Option<Value> {
    let word = walk.text.get(entry.node.span.clone()).unwrap_or_default();
    // It is masked before it is shortened: a part of a password cannot be found later.
    let word = match option.kind {
        Kind::Target => Cow::Owned(mask::target(word)),
        _ => Cow::Borrowed(word),
    };
    let message = format!("`{}` = {} {}", option.name, shown_value(&word), bad.why);
    let fault = Fault::at(entry.node.span.clone(), message)
        .expected(format!("expected {}", expectation(&option.kind)));
    walk.faults.push(with_suggestion(fault, bad.suggestion));
    None
}

/// Reports a value of a type that the option does not have.
pub(super) fn wrong_type<T>(walk: &mut Walk<'_>, option: &Opt, entry: &Entry) -> Option<T> {
    let message = format!("`{}` cannot be {}", option.name, entry.node.raw.title());
    let fault = Fault::at(entry.node.span.clone(), message)
        .expected(format!("expected {}", expectation(&option.kind)));
    let suggestion = suggest_value(walk, option, entry);
    walk.faults.push(with_suggestion(fault, suggestion));
    None
}

/// Returns the value that was probably meant by a value of the wrong type.
fn suggest_value(walk: &Walk<'_>, option: &Opt, entry: &Entry) -> Option<String> {
    let word = walk.text.get(entry.node.span.clone()).unwrap_or_default();
    let quote = |text: &str| format!("\"{}\"", text.escape_default());
    let meant = match (&option.kind, &entry.node.raw) {
        (Kind::Count { .. } | Kind::CountOr { .. }, Raw::Text(text))
            if text.parse::<u64>().is_ok() =>
        {
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
        (Kind::Percent, Raw::Integer(Some(0..=100))) => format!("\"{word}%\""),
        (Kind::Time { .. }, Raw::Integer(Some(0..))) => format!("\"{word}s\""),
        (Kind::Address, Raw::Integer(Some(0..=65_535))) => format!("\":{word}\""),
        (Kind::Command, Raw::Text(text)) if !text.trim().is_empty() => {
            // Arguments may be secrets, so they are not repeated.
            let more = |_: &str| "...".to_owned();
            let words = text.split_whitespace();
            let words: Vec<String> =
                words.clone().take(1).map(quote).chain(words.skip(1).take(1).map(more)).collect();
            format!("[{}]", words.join(", "))
        }
        (Kind::Names(_), Raw::Text(text)) if !text.is_empty() => format!("[{}]", quote(text)),
        (
            Kind::Word(_)
            | Kind::Pool
            | Kind::Text(_)
            | Kind::Template
            | Kind::Address
            | Kind::Server
            | Kind::Secret
            | Kind::Key
            | Kind::Percent,
            Raw::List(items),
        ) => match items.as_slice() {
            [Node { raw: Raw::Text(text), .. }] => quote(text),
            _ => return None,
        },
        (Kind::Target, Raw::List(items)) if items.len() == 1 => "\"...\"".to_owned(),
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
        Kind::Count { min, max } => format!("a whole number from {min} to {max}"),
        Kind::CountOr { min, max, word } => {
            format!("a whole number from {min} to {max}, or \"{word}\"")
        }
        Kind::Size { min, max, off } => format!(
            "a size from {} to {}, like 4096 or \"64KiB\"{}",
            size_text(*min),
            size_text(*max),
            or_off(*off)
        ),
        Kind::Time { min, max, off } => format!(
            "a duration from {} to {}, like \"500ms\", \"2s\", \"5m\", \"1h\"{}",
            duration_text(*min),
            duration_text(*max),
            or_off(*off)
        ),
        Kind::Switch => "true or false".to_owned(),
        Kind::Processors => {
            "\"any\", \"near\", \"spread\" or a list of processors, each once, like [0, 2]"
                .to_owned()
        }
        Kind::Word(words) => {
            let words: Vec<String> = words.iter().map(|w| format!("\"{}\"", w.name)).collect();
            words.join(" or ")
        }
        Kind::Address => "an address like \"127.0.0.1:7000\", \"[::1]:7000\", \":7000\" or \
                          \"unix:/path\""
            .to_owned(),
        Kind::Server => {
            "an address like \"10.0.0.1:8000\", \"app.example:8000\" or \"unix:/path\"".to_owned()
        }
        Kind::Key => {
            "\"source\", \"line\", \"word:N\", \"field:NAME\", \"member:NAME\", or of HTTP \"header:NAME\", \
             \"cookie:NAME\", \"path\", \"segment:N\", \"query:NAME\""
                .to_owned()
        }
        Kind::Percent => "a part of a whole, like \"30%\"".to_owned(),
        Kind::Pool => "the name of a pool".to_owned(),
        Kind::Text(_) => "a text in quotes".to_owned(),
        Kind::Template => "a text in quotes, like \"ok\" or \"ok {id}\"".to_owned(),
        Kind::Names(_) => "a list of names, like [\"at\", \"path\"]".to_owned(),
        Kind::Command => "a program and its arguments, like [\"perl\", \"parse.pl\"]".to_owned(),
        Kind::Variables => "a table of texts, like { NAME = \"value\" }".to_owned(),
        Kind::Target => {
            "a database like \"sqlite:hits.db\" or \"postgres://me@host/hits\"".to_owned()
        }
        Kind::Secret => "\"env:NAME\" or \"file:PATH\"".to_owned(),
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

const fn or_off(off: bool) -> &'static str {
    if off { ", or \"off\"" } else { "" }
}

/// Returns both ends of a kind's range, as they are written.
pub(crate) fn range(kind: &Kind) -> Option<(String, String)> {
    match kind {
        Kind::Count { min, max } | Kind::CountOr { min, max, .. } => {
            Some((min.to_string(), max.to_string()))
        }
        Kind::Size { min, max, .. } => Some((size_text(*min), size_text(*max))),
        Kind::Time { min, max, .. } => Some((duration_text(*min), duration_text(*max))),
        _ => None,
    }
}
