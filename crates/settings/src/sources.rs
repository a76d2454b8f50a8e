//! A configuration of several files: their texts in sequence, and the file of each position.
//!
//! What it is: texts, and the tree that results from merging their trees. What it must never depend on: an option.

use std::ops::Range;

use crate::fault::{Fault, floor};
use crate::source::Source;
use crate::table::INCLUDE;
use crate::tree::{self, Entry, Node, Raw, Table};

/// The text of a configuration with those of the files that it includes. For a configuration of one file a [`Source`]
/// is enough; it is converted to this type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sources {
    /// All texts, separated by a line end, so that every position is in exactly one file.
    text: String,
    /// At least one. The first one includes the others.
    files: Vec<File>,
    /// The faults found while files were included.
    faults: Vec<Fault>,
    /// `include` was processed. A text without a file cannot include anything.
    includes: bool,
}

/// One file, and the start of its text in the whole.
#[derive(Clone, Debug, PartialEq, Eq)]
struct File {
    name: String,
    start: usize,
}

impl From<&Source> for Sources {
    fn from(source: &Source) -> Self {
        let files = vec![File { name: source.name.clone(), start: 0 }];
        Self { text: source.text.clone(), files, faults: Vec::new(), includes: false }
    }
}

impl From<&Self> for Sources {
    fn from(sources: &Self) -> Self {
        sources.clone()
    }
}

/// Kinds of sections that occur several times, with names. The others occur once.
const NAMED: [&str; 2] = ["listener", "pool"];

impl Sources {
    /// Returns the sources of a file that may include others.
    pub(crate) fn including(source: &Source) -> Self {
        Self { includes: true, ..Self::from(source) }
    }

    /// Adds an included file.
    pub(crate) fn add(&mut self, source: &Source) {
        self.text.push('\n');
        self.files.push(File { name: source.name.clone(), start: self.text.len() });
        self.text.push_str(&source.text);
    }

    /// Adds a fault found while files were included.
    pub(crate) fn fault(&mut self, fault: Fault) {
        self.faults.push(fault);
    }

    /// Returns the name of the file that includes the others.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.files[0].name
    }

    /// Returns all texts.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the number of files.
    pub(crate) const fn count(&self) -> usize {
        self.files.len()
    }

    /// Returns the file that contains a position.
    pub(crate) fn file_at(&self, at: usize) -> usize {
        self.files.partition_point(|file| file.start <= at).saturating_sub(1)
    }

    /// Returns the name of a file.
    pub(crate) fn file_name(&self, file: usize) -> &str {
        &self.files[file].name
    }

    /// Returns the range of a file's text in the whole.
    pub(crate) fn range(&self, file: usize) -> Range<usize> {
        let end = self.files.get(file + 1).map_or(self.text.len(), |next| next.start - 1);
        self.files[file].start..end
    }

    /// Returns the same files with changed texts. The lengths must stay the same.
    pub(crate) fn mapped(&self, change: impl Fn(&str) -> String) -> Self {
        let texts: Vec<String> =
            (0..self.files.len()).map(|file| change(&self.text[self.range(file)])).collect();
        let text = texts.join("\n");
        debug_assert_eq!(text.len(), self.text.len(), "places are those of the whole");
        Self { text, ..self.clone() }
    }

    /// Returns a location in text form: `conf.d/web.toml:3:7`.
    fn shown(&self, at: usize) -> String {
        let file = self.file_at(at);
        let range = self.range(file);
        let before = &self.text[range.start..floor(&self.text, at.min(range.end))];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        format!("{}:{line}:{column}", self.files[file].name)
    }

    /// Returns the tree of all files, and its faults.
    pub(crate) fn tree(&self) -> (Table, Vec<Fault>) {
        let mut faults = self.faults.clone();
        let mut whole = Table::new();
        for file in 0..self.files.len() {
            let range = self.range(file);
            let (mut table, mut own) = tree::read(&self.text[range.clone()]);
            own.iter_mut().for_each(|fault| move_by(&mut fault.span, range.start));
            table.iter_mut().for_each(|entry| shift(entry, range.start));
            faults.extend(own);
            self.merge(&mut whole, table, file > 0, &mut faults);
        }
        (whole, faults)
    }

    fn merge(&self, whole: &mut Table, table: Table, included: bool, faults: &mut Vec<Fault>) {
        for entry in table {
            if entry.key == INCLUDE && (included || self.includes) {
                if included {
                    let message = "an included file cannot include others";
                    faults.push(
                        Fault::at(entry.place, message)
                            .suggestion(format!("write it in {}", self.files[0].name)),
                    );
                }
                continue;
            }
            let Some(there) = whole.iter_mut().find(|there| there.key == entry.key) else {
                whole.push(entry);
                continue;
            };
            match (&mut there.node.raw, entry.node.raw) {
                (Raw::Table(ours), Raw::Table(more)) if NAMED.contains(&entry.key.as_str()) => {
                    for section in more {
                        match ours.iter().find(|it| it.key == section.key) {
                            Some(first) => {
                                let title = format!("[{}.{}]", entry.key, section.key);
                                faults.push(self.twice(&title, &first.place, section.place));
                            }
                            None => ours.push(section),
                        }
                    }
                }
                _ => {
                    let title = format!("[{}]", entry.key);
                    faults.push(self.twice(&title, &there.place, entry.place));
                }
            }
        }
    }

    fn twice(&self, title: &str, first: &Range<usize>, second: Range<usize>) -> Fault {
        let message = format!("`{title}` is defined twice: also at {}", self.shown(first.start));
        Fault::at(second, message).suggestion("remove one of the two, or give it another name")
    }
}

fn move_by(span: &mut Range<usize>, bytes: usize) {
    *span = span.start + bytes..span.end + bytes;
}

/// Moves all spans of an entry. Recursion is safe, because the depth of a tree is limited by the parser.
fn shift(entry: &mut Entry, bytes: usize) {
    move_by(&mut entry.place, bytes);
    shift_node(&mut entry.node, bytes);
}

fn shift_node(node: &mut Node, bytes: usize) {
    move_by(&mut node.span, bytes);
    match &mut node.raw {
        Raw::List(items) => items.iter_mut().for_each(|item| shift_node(item, bytes)),
        Raw::Table(table) => table.iter_mut().for_each(|entry| shift(entry, bytes)),
        _ => {}
    }
}
