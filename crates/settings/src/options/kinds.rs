//! The kinds that rows are written with. Each is generic over the type of the field, which must be read as this kind.

use std::time::Duration;

use super::found::{Setting, read_as};
use super::shape::{Kind, Shorthand, Shows};
use crate::values::{Address, Key, Processors, Secret, Target};

pub(crate) const MIB: u64 = 1 << 20;
pub(crate) const GIB: u64 = 1 << 30;
const MILLISECOND: Duration = Duration::from_millis(1);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Defines kinds without a range: the name, what the kind is read as, and the kind.
macro_rules! kinds {
    ($($(#[$about:meta])* $name:ident: $as:ty => $kind:expr;)+) => {$(
        $(#[$about])*
        pub(crate) const fn $name<T: Setting<As = $as>>() -> Kind {
            $kind
        }
    )+};
}

kinds! {
    /// A duration above zero.
    time: Duration => Kind::Time { min: MILLISECOND, max: DAY, off: false };
    /// A duration that may be zero.
    time_or_zero: Duration => Kind::Time { min: Duration::ZERO, max: DAY, off: false };
    /// A duration above zero, or `off`.
    time_or_off: Duration => Kind::Time { min: MILLISECOND, max: DAY, off: true };
    /// A duration of at least one second.
    seconds: Duration => Kind::Time { min: Duration::from_secs(1), max: DAY, off: false };
    /// A duration that may be longer than a day.
    days: Duration => Kind::Time { min: MILLISECOND, max: YEAR, off: false };
    /// A duration that may be longer than a day, or `off`.
    days_or_off: Duration => Kind::Time { min: MILLISECOND, max: YEAR, off: true };
    switch: bool => Kind::Switch;
    processors: Processors => Kind::Processors;
    address: Address => Kind::Address;
    server: Address => Kind::Server;
    key: Key => Kind::Key;
    target: Target => Kind::Target;
    secret: Secret => Kind::Secret;
    percent: read_as::Number => Kind::Percent;
    pool: read_as::Text => Kind::Pool;
    /// A text that may be a secret. Errors do not show it.
    text: read_as::Text => Kind::Text(Shows::Nothing);
    /// A text that is a name, not content.
    name: read_as::Text => Kind::Text(Shows::Whole);
    /// A path or an HTTP address, which may have a query.
    path: read_as::Text => Kind::Text(Shows::Path);
    /// A line of a log or a reply.
    template: read_as::Text => Kind::Template;
    names: read_as::Texts => Kind::Names(Shows::Whole);
    /// A list of places of secrets.
    places: read_as::Texts => Kind::Names(Shows::Place);
    command: read_as::Texts => Kind::Command;
    variables: Vec<(String, String)> => Kind::Variables;
    word: read_as::Words => Kind::Word(T::WORDS);
    table: read_as::Table => Kind::Group(T::OPTIONS, Shorthand::None);
    table_or_off: read_as::Table => Kind::Group(T::OPTIONS, Shorthand::Off);
    table_or_span: read_as::Table => Kind::Group(T::OPTIONS, Shorthand::Span);
}

pub(crate) const fn count<T: Setting<As = read_as::Number>>(min: u64, max: u64) -> Kind {
    Kind::Count { min, max }
}

pub(crate) const fn count_or_auto<T: Setting<As = read_as::Number>>(min: u64, max: u64) -> Kind {
    Kind::CountOr { min, max, word: "auto" }
}

pub(crate) const fn count_or_off<T: Setting<As = read_as::Number>>(min: u64, max: u64) -> Kind {
    Kind::CountOr { min, max, word: "off" }
}

/// A number of bytes.
pub(crate) const fn size<T: Setting<As = read_as::Number>>(min: u64, max: u64) -> Kind {
    Kind::Size { min, max, off: false }
}

/// A number of bytes, or `off`.
pub(crate) const fn size_or_off<T: Setting<As = read_as::Number>>(min: u64, max: u64) -> Kind {
    Kind::Size { min, max, off: true }
}

/// A list of tables. A text in it is a table with only the option `alone`.
pub(crate) const fn list<T: Setting<As = read_as::Tables>>(alone: &'static str) -> Kind {
    Kind::List(T::OPTIONS, alone)
}
