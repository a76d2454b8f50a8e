//! The kinds that rows are written with. Each is generic over the type of the field, which must be read as this kind.

use std::time::Duration;

use super::found::Value;
use super::setting::{Setting, read_as};
use super::shape::{Form, Kind, Shorthand, Shows, Unit};
use crate::quantities::{self, Bad};
use crate::values::{self, Address, Key, Processors, Secret, Target};

pub(crate) const MIB: u64 = 1 << 20;
pub(crate) const GIB: u64 = 1 << 30;
/// In milliseconds.
const DAY: u64 = 24 * 60 * 60 * 1000;
const YEAR: u64 = 365 * DAY;

const ADDRESS: Form = Form {
    title: "address",
    expected: "an address like \"127.0.0.1:7000\", \"[::1]:7000\", \":7000\" or \"unix:/path\"",
    example: "\"127.0.0.1:7000\"",
    number: Some((65_535, ":", "")),
    read: |text| values::address(text).map(Value::Address),
    ..TEXT
};
const SERVER: Form = Form {
    title: "address or name",
    expected: "an address like \"10.0.0.1:8000\", \"app.example:8000\" or \"unix:/path\"",
    example: ADDRESS.example,
    read: |text| values::server_address(text).map(Value::Address),
    ..TEXT
};
const KEY: Form = Form {
    title: "key",
    expected: "\"source\", \"line\", \"word:N\", \"field:NAME\", \"member:NAME\", or of HTTP \"header:NAME\", \
               \"cookie:NAME\", \"path\", \"segment:N\", \"query:NAME\"",
    read: |text| values::key(text).map(Value::Key),
    ..TEXT
};
const PERCENT: Form = Form {
    title: "percent",
    expected: "a part of a whole, like \"30%\"",
    number: Some((100, "", "%")),
    read: |text| quantities::percent(text).map(Value::Number),
    ..TEXT
};
const POOL: Form =
    Form { title: "name of a pool", expected: "the name of a pool", example: "\"NAME\"", ..TEXT };
const TEMPLATE: Form = Form {
    title: "text with `{name}`",
    expected: "a text in quotes, like \"ok\" or \"ok {id}\"",
    read: |text| values::template(text).map(|()| Value::Text(text.to_owned())),
    ..TEXT
};
const TARGET: Form = Form {
    title: "database",
    expected: "a database like \"sqlite:hits.db\" or \"postgres://me@host/hits\"",
    shows: Shows::Target,
    read: |text| values::target(text).map(Value::Target),
    ..TEXT
};
const SECRET: Form = Form {
    title: "location of a secret",
    expected: "\"env:NAME\" or \"file:PATH\"",
    shows: Shows::Place,
    read: |text| values::secret(text).map(Value::Secret),
    ..TEXT
};
/// A text that is not empty.
const TEXT: Form = Form {
    title: "text",
    expected: "a text in quotes",
    example: "\"…\"",
    shows: Shows::Whole,
    number: None,
    read: plain,
};

fn plain(text: &str) -> Result<Value, Bad> {
    match text {
        text if text.trim().is_empty() => Err(Bad::because("is empty")),
        text if text.contains('\0') => Err(Bad::because("contains a NUL")),
        text => Ok(Value::Text(text.to_owned())),
    }
}

const fn time_of(min: u64, max: u64, zero: Option<&'static str>) -> Kind {
    Kind::Number { unit: Unit::Milliseconds, min, max, zero }
}

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
    time: Duration => time_of(1, DAY, None);
    /// A duration that may be zero.
    time_or_zero: Duration => time_of(0, DAY, None);
    /// A duration above zero, or `off`.
    time_or_off: Duration => time_of(1, DAY, Some("off"));
    /// A duration of at least one second.
    seconds: Duration => time_of(1000, DAY, None);
    /// A duration that may be longer than a day.
    days: Duration => time_of(1, YEAR, None);
    /// A duration that may be longer than a day, or `off`.
    days_or_off: Duration => time_of(1, YEAR, Some("off"));
    switch: bool => Kind::Switch;
    processors: Processors => Kind::Processors;
    address: Address => Kind::Text(&ADDRESS);
    server: Address => Kind::Text(&SERVER);
    key: Key => Kind::Text(&KEY);
    target: Target => Kind::Text(&TARGET);
    secret: Secret => Kind::Text(&SECRET);
    percent: read_as::Number => Kind::Text(&PERCENT);
    pool: read_as::Text => Kind::Text(&POOL);
    /// A text that may be a secret. Errors do not show it.
    text: read_as::Text => Kind::Text(&Form { shows: Shows::Nothing, ..TEXT });
    /// A text that is a name, not content.
    name: read_as::Text => Kind::Text(&TEXT);
    /// A path or an HTTP address, which may have a query.
    path: read_as::Text => Kind::Text(&Form { shows: Shows::Path, ..TEXT });
    /// A line of a log or a reply.
    template: read_as::Text => Kind::Text(&TEMPLATE);
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
    Kind::Number { unit: Unit::One, min, max, zero: None }
}

pub(crate) const fn count_or_auto<T: Setting<As = read_as::Number>>(min: u64, max: u64) -> Kind {
    Kind::Number { unit: Unit::One, min, max, zero: Some("auto") }
}

pub(crate) const fn count_or_off<T: Setting<As = read_as::Number>>(min: u64, max: u64) -> Kind {
    Kind::Number { unit: Unit::One, min, max, zero: Some("off") }
}

/// A number of bytes.
pub(crate) const fn size<T: Setting<As = read_as::Number>>(min: u64, max: u64) -> Kind {
    Kind::Number { unit: Unit::Bytes, min, max, zero: None }
}

/// A number of bytes, or `off`.
pub(crate) const fn size_or_off<T: Setting<As = read_as::Number>>(min: u64, max: u64) -> Kind {
    Kind::Number { unit: Unit::Bytes, min, max, zero: Some("off") }
}

/// A list of tables. A text in it is a table with only the option `alone`.
pub(crate) const fn list<T: Setting<As = read_as::Tables>>(alone: &'static str) -> Kind {
    Kind::List(T::OPTIONS, alone)
}
