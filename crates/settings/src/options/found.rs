//! The content of a file: the values of options.

use std::ops::Range;
use std::time::Duration;

use crate::values::{Address, Key, Processors, Secret, Target};

/// The options of one table, by name: those that are set and, after them, the defaults.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub(crate) options: Vec<(&'static str, Found)>,
    /// The location of its header or key.
    pub(crate) place: Range<usize>,
    /// The name of the section, if it has one.
    pub(crate) name: String,
}

/// The value of an option.
#[derive(Debug)]
pub(crate) struct Found {
    /// `None`: the option is set to an invalid value.
    pub(crate) value: Option<Value>,
    /// The locations of the key and the value; `None` for a default.
    pub(crate) place: Option<(Range<usize>, Range<usize>)>,
}

/// A value of an option that is of its kind and within its range.
#[derive(Debug)]
pub(crate) enum Value {
    Number(u64),
    Switch(bool),
    Processors(Processors),
    Time(Duration),
    Word(&'static str),
    Address(Address),
    Text(String),
    Texts(Vec<String>),
    Variables(Vec<(String, String)>),
    Target(Target),
    Secret(Secret),
    Key(Key),
    Group(Group),
    Groups(Vec<Group>),
}

impl Group {
    /// Returns the entry of an option; `None` if it is not set and has no default.
    pub(crate) fn find(&self, name: &str) -> Option<&Found> {
        self.options.iter().find(|(option, _)| *option == name).map(|(_, found)| found)
    }

    /// Returns the value, if it is valid.
    pub(crate) fn value(&self, name: &str) -> Option<&Value> {
        self.find(name)?.value.as_ref()
    }

    /// Returns the value, if it is a valid number.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        match self.value(name) {
            Some(Value::Number(number)) => Some(*number),
            _ => None,
        }
    }

    /// Returns the value, if it is a valid text.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        match self.value(name) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// Returns a text that is set in the file, and its location.
    pub(crate) fn given_text(&self, name: &str) -> Option<(&str, Range<usize>)> {
        Some((self.text(name)?, self.place(name)?))
    }

    /// Returns the texts of a list; an empty slice if there are none.
    pub(crate) fn texts(&self, name: &str) -> &[String] {
        match self.value(name) {
            Some(Value::Texts(texts)) => texts,
            _ => &[],
        }
    }

    /// Returns the value as a table.
    pub(crate) fn inner(&self, name: &str) -> Option<&Self> {
        match self.value(name) {
            Some(Value::Group(inner)) => Some(inner),
            _ => None,
        }
    }

    /// Returns the value as a list of tables.
    pub(crate) fn groups(&self, name: &str) -> &[Self] {
        match self.value(name) {
            Some(Value::Groups(groups)) => groups,
            _ => &[],
        }
    }

    /// Returns the location of the header or key.
    pub(crate) fn header(&self) -> Range<usize> {
        self.place.clone()
    }

    /// Sets a number, unless the file sets it.
    pub(crate) fn set_default(&mut self, name: &'static str, number: u64) {
        let value = Some(Value::Number(number));
        match self.options.iter_mut().find(|(option, _)| *option == name) {
            Some((_, found)) if found.place.is_some() => {}
            Some((_, found)) => found.value = value,
            None => self.options.push((name, Found { value, place: None })),
        }
    }

    /// Returns the location of the value, if it is set in the file.
    pub(crate) fn place(&self, name: &str) -> Option<Range<usize>> {
        self.find(name)?.place.as_ref().map(|(_, value)| value.clone())
    }

    /// Returns the location of the key, if it is set in the file.
    pub(crate) fn key(&self, name: &str) -> Option<Range<usize>> {
        self.find(name)?.place.as_ref().map(|(key, _)| key.clone())
    }
}
