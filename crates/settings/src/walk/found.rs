//! What a walk finds: sections, and the values of their options.

use std::ops::Range;
use std::time::Duration;

use crate::model::{Address, Key, Processors, Secret, Target};
use crate::options::{self, Choice, Of};

/// A section that was found.
#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) kind: &'static options::Section,
    /// Its own name; the kind's where there is only one.
    pub(crate) name: String,
    /// Where its name stands.
    pub(crate) place: Range<usize>,
    /// Whose options it has; `None` when it is a pool that does not say, or says both.
    pub(crate) worker: Option<Of>,
    pub(crate) group: Group,
}

/// Options of one table, by name: those that were given and, after them, the defaults.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub(super) options: Vec<(&'static str, Found)>,
    /// Where its header or key stands.
    pub(super) place: Range<usize>,
}

/// What an option is set to.
#[derive(Debug)]
pub(crate) struct Found {
    /// `None`: it was given, and wrong.
    pub(crate) value: Option<Value>,
    /// Where the key and the value stand; `None` for a default.
    pub(crate) place: Option<(Range<usize>, Range<usize>)>,
}

/// A value of an option, of its kind and within its range.
#[derive(Debug)]
pub(crate) enum Value {
    Number(u64),
    Switch(bool),
    Processors(Processors),
    Time(Duration),
    Word(Choice),
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
    /// What an option is set to; `None` when it was not given and has no default.
    pub(crate) fn find(&self, name: &str) -> Option<&Found> {
        self.options.iter().find(|(option, _)| *option == name).map(|(_, found)| found)
    }

    /// Its value, if it is right.
    pub(crate) fn value(&self, name: &str) -> Option<&Value> {
        self.find(name)?.value.as_ref()
    }

    /// Its value, if it is a right number.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        match self.value(name) {
            Some(Value::Number(number)) => Some(*number),
            _ => None,
        }
    }

    /// Where its header or key stands.
    pub(crate) fn header(&self) -> Range<usize> {
        self.place.clone()
    }

    /// Sets a number that was not given.
    pub(super) fn presume(&mut self, name: &'static str, number: u64) {
        let value = Some(Value::Number(number));
        match self.options.iter_mut().find(|(option, _)| *option == name) {
            Some((_, found)) if found.place.is_some() => {}
            Some((_, found)) => found.value = value,
            None => self.options.push((name, Found { value, place: None })),
        }
    }

    /// Where its value stands, if it was given.
    pub(crate) fn place(&self, name: &str) -> Option<Range<usize>> {
        self.find(name)?.place.as_ref().map(|(_, value)| value.clone())
    }

    /// Where its key stands, if it was given.
    pub(crate) fn key(&self, name: &str) -> Option<Range<usize>> {
        self.find(name)?.place.as_ref().map(|(key, _)| key.clone())
    }
}
