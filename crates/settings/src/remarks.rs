//! Errors that other crates find in a valid configuration.
//!
//! What it is: errors of a database, a socket or a file, located at the option that names it. What it depends on: paths
//! of keys. What it must never depend on: the meaning of an option.

mod literal;

use std::ops::Range;

use crate::diagnostics::Diagnostics;
use crate::fault::Fault;
use crate::sources::Sources;
use crate::tree::{Node, Raw, Table};

/// An error of something that an option names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// The keys from the section down to the option. Further parts select an item of its list, by its text or, for
    /// tables, by its index from 0. Below a text, `@` and a byte offset from 0 select a byte. If the path does not
    /// exist, its last existing part is shown.
    pub path: Vec<String>,
    /// What is wrong.
    pub message: String,
}

/// Locates remarks in their source. There must be at least one.
#[must_use]
pub fn placed(source: impl Into<Sources>, remarks: &[Remark]) -> Diagnostics {
    let sources = source.into();
    let (table, _) = sources.tree();
    let fault = |remark: &Remark| {
        let place = find(sources.text(), &table, &remark.path);
        Fault::at(place, remark.message.clone())
    };
    Diagnostics::of(&sources, remarks.iter().map(fault).collect())
}

fn find(text: &str, table: &Table, path: &[String]) -> Range<usize> {
    let Some((key, rest)) = path.split_first() else { return 0..0 };
    let Some(entry) = table.iter().find(|entry| entry.key == *key) else { return 0..0 };
    below(text, &entry.node, rest).unwrap_or_else(|| match &entry.node.raw {
        Raw::Table(_) => entry.place.clone(),
        _ => entry.node.span.clone(),
    })
}

fn below(text: &str, node: &Node, path: &[String]) -> Option<Range<usize>> {
    let (key, rest) = path.split_first()?;
    match &node.raw {
        Raw::Table(table) => {
            let entry = table.iter().find(|entry| entry.key == *key)?;
            let inner = below(text, &entry.node, rest);
            Some(inner.unwrap_or_else(|| match &entry.node.raw {
                Raw::Table(_) => entry.place.clone(),
                _ => entry.node.span.clone(),
            }))
        }
        Raw::List(items) => {
            let is_meant = |item: &&Node| matches!(&item.raw, Raw::Text(text) if text == key);
            let meant = items.iter().find(is_meant);
            let by_place = || items.get(key.parse::<usize>().ok()?);
            let item = meant.or_else(by_place)?;
            Some(below(text, item, rest).unwrap_or_else(|| item.span.clone()))
        }
        Raw::Text(_) => {
            let span = node.span.clone();
            let byte = key.strip_prefix('@')?.parse().ok()?;
            let word = literal::word(text.get(span.clone())?, byte)?;
            Some(span.start + word.start..span.start + word.end)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Source;

    #[test]
    fn a_remark_stands_at_its_option_or_at_what_is_there_of_it() {
        let text = "[pool.store]\ndatabase = \"x\"\ninsert = { table = \"t\", columns = [\"a\", \"b\"] }\n\
            [[listener.web.route]]\n[[listener.web.route]]\npath = \"/\"\nbearer = [\"a\", \"b\"]\n";
        let source = Source { name: "x.toml".into(), text: text.into() };
        let word = |path: &[&str]| {
            let path = path.iter().map(|&key| key.to_owned()).collect();
            let remark = Remark { path, message: "wrong".into() };
            let placed = placed(&source, &[remark]);
            let first = placed.iter().next().map(|it| (it.line, it.word.clone()));
            first.unwrap()
        };
        assert_eq!(word(&["pool", "store", "database"]), (2, "\"x\"".to_owned()));
        assert_eq!(word(&["pool", "store", "insert", "columns", "b"]), (3, "\"b\"".to_owned()));
        assert_eq!(word(&["pool", "store", "insert", "table"]), (3, "\"t\"".to_owned()));
        assert_eq!(word(&["pool", "store", "insert", "table", "@0"]), (3, "t".to_owned()));
        assert_eq!(word(&["pool", "store", "insert", "table", "@9"]), (3, "\"t\"".to_owned()));
        assert_eq!(word(&["pool", "store", "ack"]).0, 1);
        assert_eq!(
            word(&["listener", "web", "route", "1", "bearer", "b"]),
            (7, "\"b\"".to_owned())
        );
        assert_eq!(word(&["listener", "web", "route", "0", "none"]).0, 4);
        assert_eq!(word(&["none"]).0, 1);
    }
}
