//! What a file says: the values of options, and how fields of the model are filled from them.

use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use super::shape::{Opt, Word};
use crate::values::{Address, Key, Processors, Secret, Target};

/// Options of one table, by name: those that were given and, after them, the defaults.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub(crate) options: Vec<(&'static str, Found)>,
    /// Where its header or key stands.
    pub(crate) place: Range<usize>,
    /// Its own name, if it is a section that has one.
    pub(crate) name: String,
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
    /// What an option is set to; `None` when it was not given and has no default.
    pub(crate) fn find(&self, name: &str) -> Option<&Found> {
        self.options.iter().find(|(option, _)| *option == name).map(|(_, found)| found)
    }

    /// Its value, if it is right.
    pub(crate) fn value(&self, name: &str) -> Option<&Value> {
        self.find(name)?.value.as_ref()
    }

    /// Its value as the model has it, if it is right.
    pub(crate) fn get<T: Setting>(&self, name: &str) -> Option<T> {
        self.value(name).map(|value| T::of(Some(value)))
    }

    /// Whether it is set to this, by default too.
    pub(crate) fn is<T: Setting + PartialEq>(&self, name: &str, wanted: T) -> bool {
        self.get::<T>(name) == Some(wanted)
    }

    /// Its value, if it is a right number.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        match self.value(name) {
            Some(Value::Number(number)) => Some(*number),
            _ => None,
        }
    }

    /// Its value, if it is a right text.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        match self.value(name) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// A text that was given, and where it stands.
    pub(crate) fn given_text(&self, name: &str) -> Option<(&str, Range<usize>)> {
        Some((self.text(name)?, self.place(name)?))
    }

    /// Its texts; none where there are none.
    pub(crate) fn texts(&self, name: &str) -> &[String] {
        match self.value(name) {
            Some(Value::Texts(texts)) => texts,
            _ => &[],
        }
    }

    /// The table that it is.
    pub(crate) fn inner(&self, name: &str) -> Option<&Self> {
        match self.value(name) {
            Some(Value::Group(inner)) => Some(inner),
            _ => None,
        }
    }

    /// The tables that it is a list of.
    pub(crate) fn groups(&self, name: &str) -> &[Self] {
        match self.value(name) {
            Some(Value::Groups(groups)) => groups,
            _ => &[],
        }
    }

    /// Where its header or key stands.
    pub(crate) fn header(&self) -> Range<usize> {
        self.place.clone()
    }

    /// Sets a number that was not given.
    pub(crate) fn presume(&mut self, name: &'static str, number: u64) {
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

/// A type that fields of the model have. A row whose kind is read as something else does not compile.
pub(crate) trait Setting: Sized {
    /// What it is read as.
    type As;
    /// The rows of its table, if it is one.
    const OPTIONS: &'static [Opt] = &[];
    /// The words that it can be, if it is one of some.
    const WORDS: &'static [Word] = &[];

    /// What a value of this type's kind means; none: not given, and without a default. What was found has no
    /// fault, so a value of another kind, or none where one is needed, is an error of the table.
    fn of(value: Option<&Value>) -> Self;
}

/// The struct of one table.
pub(crate) trait Options: Setting {
    /// What a table without a fault says.
    fn fill(group: &Group) -> Self;

    /// The options in which `new` differs.
    fn changed(&self, new: &Self) -> Vec<&'static Opt>;
}

/// What settings are read as.
pub(crate) mod read_as {
    #[derive(Debug)]
    pub(crate) struct Number;
    #[derive(Debug)]
    pub(crate) struct Text;
    #[derive(Debug)]
    pub(crate) struct Texts;
    #[derive(Debug)]
    pub(crate) struct Words;
    #[derive(Debug)]
    pub(crate) struct Table;
    #[derive(Debug)]
    pub(crate) struct Tables;
}

impl<T: Setting> Setting for Option<T> {
    type As = T::As;
    const OPTIONS: &'static [Opt] = T::OPTIONS;
    const WORDS: &'static [Word] = T::WORDS;

    fn of(value: Option<&Value>) -> Self {
        value.map(|value| T::of(Some(value)))
    }
}

/// How types are made of values: type, what they are read as, and the values.
macro_rules! settings {
    ($($type:ty, $as:ty: $($pattern:pat => $made:expr),+;)+) => {$(
        impl $crate::options::Setting for $type {
            type As = $as;

            fn of(value: Option<&$crate::options::Value>) -> Self {
                match value {
                    $($pattern => $made,)+
                    #[allow(unreachable_patterns, reason = "where a type is made of anything")]
                    other => unreachable!("the table gives {} to {other:?}", stringify!($type)),
                }
            }
        }
    )+};
}
pub(crate) use settings;

const FITS: &str = "the range of the row lies within the type of its field";

settings! {
    u8, read_as::Number: Some(Value::Number(number)) => u8::try_from(*number).expect(FITS);
    u16, read_as::Number: Some(Value::Number(number)) => u16::try_from(*number).expect(FITS);
    u32, read_as::Number: Some(Value::Number(number)) => u32::try_from(*number).expect(FITS);
    u64, read_as::Number: Some(Value::Number(number)) => *number;
    // A limit beyond the address space is none.
    usize, read_as::Number: Some(Value::Number(number)) => usize::try_from(*number).unwrap_or(Self::MAX);
    bool, bool: Some(Value::Switch(value)) => *value;
    Duration, Duration: Some(Value::Time(time)) => *time;
    String, read_as::Text: Some(Value::Text(text)) => text.clone();
    PathBuf, read_as::Text: Some(Value::Text(text)) => text.into();
    Vec<String>, read_as::Texts: Some(Value::Texts(texts)) => texts.clone(), None => Self::new();
    Vec<(String, String)>, Vec<(String, String)>:
        Some(Value::Variables(variables)) => variables.clone(), None => Self::new();
    Processors, Processors: Some(Value::Processors(processors)) => processors.clone();
    Address, Address: Some(Value::Address(address)) => address.clone();
    Target, Target: Some(Value::Target(target)) => target.clone();
    Secret, Secret: Some(Value::Secret(secret)) => secret.clone();
    Key, Key: Some(Value::Key(key)) => key.clone();
}
