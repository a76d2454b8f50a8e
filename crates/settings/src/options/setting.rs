//! How fields of the model are filled from the values of options.

use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use super::found::{Group, Value};
use super::shape::{Needs, Opt, Word};
use crate::values::{Address, Key, Processors, Secret, Target};

impl Group {
    /// Returns the value with the type of the model, if it is valid.
    pub(crate) fn get<T: Setting>(&self, name: &str) -> Option<T> {
        self.value(name).map(|value| T::of(Some(value)))
    }

    /// Whether the option has this value. Defaults count too.
    pub(crate) fn is<T: Setting + PartialEq>(&self, name: &str, wanted: T) -> bool {
        self.get::<T>(name) == Some(wanted)
    }

    /// Returns the options that have this need and are set in the file, with the locations of their keys.
    pub(crate) fn needing(
        &self,
        options: &'static [Opt],
        needs: Needs,
    ) -> impl Iterator<Item = (&'static str, Range<usize>)> {
        let needing = options.iter().filter(move |option| option.needs == Some(needs));
        needing.filter_map(|option| Some((option.name, self.key(option.name)?)))
    }
}

/// A type of fields of the model. A row whose kind is read as another type does not compile.
pub(crate) trait Setting: Sized {
    /// What the type is read as.
    type As;
    /// The rows of the table, if the type is a table.
    const OPTIONS: &'static [Opt] = &[];
    /// The words of the type, if it has a fixed set of words.
    const WORDS: &'static [Word] = &[];

    /// Converts a value of this type's kind. `None`: the option is not set and has no default. The values are free of
    /// faults here, so a value of another kind, or a missing one that is required, is an error of the table.
    fn of(value: Option<&Value>) -> Self;
}

/// The struct of one table.
pub(crate) trait Options: Setting {
    /// Fills the struct from a table without faults.
    fn fill(group: &Group) -> Self;

    /// Returns the options in which `new` differs.
    fn changed(&self, new: &Self) -> Vec<&'static Opt>;
}

/// The types that settings are read as.
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

/// Implements [`Setting`] for types: the type, what it is read as, and the conversion of values.
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
    // A limit beyond the address space is no limit.
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
