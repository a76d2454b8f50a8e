//! The definition of an option.
//!
//! What it is: the shape of a row, and the constructors of kinds that rows are written with. What it depends on: kinds,
//! ranges, the kinds of workers that an option belongs to, and whether a reload changes it. What it must never depend
//! on: a particular option.

use std::time::Duration;

use super::found::Value;
use crate::quantities::{self, Bad};

/// A section of the file.
#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) name: &'static str,
    /// There may be several of them, each `[name.NAME]`.
    pub(crate) named: bool,
    pub(crate) about: &'static str,
    pub(crate) options: &'static [Opt],
}

impl Section {
    /// Returns the header, for messages.
    pub(crate) fn header(&self) -> String {
        if self.named { format!("[{}.NAME]", self.name) } else { format!("[{}]", self.name) }
    }
}

/// An option.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opt {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) default: Default,
    pub(crate) of: WorkerKind,
    pub(crate) about: &'static str,
    pub(crate) reload: Reload,
    /// What to use instead, in a pool that the option does not belong to.
    pub(crate) instead: Option<&'static str>,
    /// What it requires of the options around it.
    pub(crate) needs: Option<Needs>,
    /// Former names. An error names the option under its name of today.
    pub(crate) former: &'static [&'static str],
}

impl Opt {
    pub(crate) const fn of(mut self, of: WorkerKind) -> Self {
        self.of = of;
        self
    }

    pub(crate) const fn reload(mut self, reload: Reload) -> Self {
        self.reload = reload;
        self
    }

    pub(crate) const fn instead(mut self, instead: &'static str) -> Self {
        self.instead = Some(instead);
        self
    }

    pub(crate) const fn needs(mut self, needs: Needs) -> Self {
        self.needs = Some(needs);
        self
    }

    pub(crate) const fn former(mut self, former: &'static [&'static str]) -> Self {
        self.former = former;
        self
    }

    /// Returns the options of its table, if it is a table.
    pub(crate) const fn inner(&self) -> &'static [Self] {
        match self.kind {
            Kind::Group(inner, _) | Kind::List(inner, _) => inner,
            _ => &[],
        }
    }

    /// Returns the default for a worker of this kind, as it would be written.
    pub(crate) fn default_for(&self, worker: WorkerKind) -> Option<&'static str> {
        match self.default {
            Default::Is(text) => Some(text),
            Default::ByWorker { program, database } => {
                Some(if worker == WorkerKind::Database { database } else { program })
            }
            Default::Handlers { handler, other } => {
                Some(if worker == WorkerKind::Handler { handler } else { other })
            }
            Default::Required | Default::None | Default::Inner => None,
        }
    }
}

/// The kind of pool that an option belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkerKind {
    Any,
    Program,
    Database,
    Handler,
    Servers,
}

impl WorkerKind {
    /// Returns the name of such a pool.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Any => "pool",
            Self::Program => "program pool",
            Self::Database => "database pool",
            Self::Handler => "handler pool",
            Self::Servers => "pool of servers",
        }
    }
}

/// What an option requires of the options around it. The rules, and their errors, are in `checks`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// A listener for HTTP.
    HttpListener,
    /// Clients with an IP address, not those of a Unix socket.
    ClientAddress,
    /// HTTP clients.
    HttpClients,
    /// Workers that speak HTTP.
    HttpWorkers,
    /// Programs that do not serve HTTP.
    Pipes,
    /// A database server, not a file.
    DatabaseServer,
    /// `cookie`.
    Cookie,
    /// A cookie that is added to replies.
    InsertedCookie,
    /// A `check`.
    AnyCheck,
    /// This `check`.
    Check(&'static str),
}

/// Whether a reload changes an option of a running daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reload {
    /// The new value applies immediately.
    Live,
    /// The new value applies immediately, and running programs are replaced.
    Replace,
    /// A restart is required.
    Restart,
    /// A restart is required in this case. `reload` decides whether the case applies.
    RestartIf(&'static str),
}

/// The default of an option.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Default {
    /// The option must be set.
    Required,
    /// There is no default.
    None,
    /// This value, as it would be written.
    Is(&'static str),
    /// One value for programs, one for databases.
    ByWorker { program: &'static str, database: &'static str },
    /// One value for handlers, one for all other workers.
    Handlers { handler: &'static str, other: &'static str },
    /// The defaults of the options in the table.
    Inner,
}

/// The kind of value of an option.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// A whole number of this unit in an inclusive range, or the word `zero`, which means 0.
    Number { unit: Unit, min: u64, max: u64, zero: Option<&'static str> },
    /// `true` or `false`.
    Switch,
    /// `any`, `near`, `spread` or a list of numbers.
    Processors,
    /// One of these words.
    Word(&'static [Word]),
    /// A text of this form.
    Text(&'static Form),
    /// A non-empty list of distinct texts.
    Names(Shows),
    /// A program and its arguments.
    Command,
    /// Environment variables and their values.
    Variables,
    /// A table of options. `Shorthand` is its short form.
    Group(&'static [Opt], Shorthand),
    /// A non-empty list of tables. A text in it is a table with only the named option.
    List(&'static [Opt], &'static str),
}

/// The unit of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// A number without a unit.
    One,
    /// A size.
    Bytes,
    /// A duration.
    Milliseconds,
}

impl Unit {
    /// Parses a text with a unit; `None` if the number is written without quotes.
    pub(crate) fn read(self, text: &str) -> Option<Result<u64, Bad>> {
        match self {
            Self::One => None,
            Self::Bytes => Some(quantities::size(text)),
            Self::Milliseconds => Some(
                quantities::duration(text)
                    .map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
            ),
        }
    }

    /// Returns a number as it is written.
    pub(crate) fn show(self, number: u64) -> String {
        match self {
            Self::One => number.to_string(),
            Self::Bytes => quantities::size_text(number),
            Self::Milliseconds => quantities::duration_text(Duration::from_millis(number)),
        }
    }

    /// Returns a number as a value.
    pub(crate) const fn value(self, number: u64) -> Value {
        match self {
            Self::One | Self::Bytes => Value::Number(number),
            Self::Milliseconds => Value::Time(Duration::from_millis(number)),
        }
    }
}

/// A form of text: how it is described, what errors show of it, and how it is parsed.
#[derive(Debug)]
pub(crate) struct Form {
    /// The type in the reference.
    pub(crate) title: &'static str,
    /// What an error expects.
    pub(crate) expected: &'static str,
    /// An example of a required option.
    pub(crate) example: &'static str,
    /// What errors may show of it.
    pub(crate) shows: Shows,
    /// A number up to this one, between these texts, was probably meant by a number without quotes.
    pub(crate) number: Option<(u64, &'static str, &'static str)>,
    pub(crate) read: fn(&str) -> Result<Value, Bad>,
}

/// The short form of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shorthand {
    /// There is no short form.
    None,
    /// `N` or `"MIN..MAX"` for `min` and `max`.
    Span,
    /// `"off"` for the default of the table.
    Off,
}

/// What errors may show of a value. Later variants show less.
#[derive(Clone, Copy, Debug, std::default::Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Shows {
    #[default]
    Whole,
    /// Everything except a query.
    Path,
    /// Everything except a password.
    Target,
    /// Everything except the arguments, unless they name a place.
    Program,
    /// Only the location of a secret.
    Place,
    Nothing,
}

/// A word that an option can be set to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
}

/// Returns the option of this name for pools of this kind of worker. Several kinds may have an option of the same name.
pub(crate) fn find_for(
    options: &'static [Opt],
    name: &str,
    worker: Option<WorkerKind>,
) -> Option<&'static Opt> {
    let mut named = options.iter().filter(|option| option.name == name);
    named.clone().find(|option| worker == Some(option.of)).or_else(|| named.next())
}

/// Returns the option of this name among `options`.
pub(crate) fn find(options: &'static [Opt], name: &str) -> Option<&'static Opt> {
    options.iter().find(|option| option.name == name)
}

/// Returns the option among `options` that had this name before.
pub(crate) fn formerly(options: &'static [Opt], name: &str) -> Option<&'static Opt> {
    options.iter().find(|option| option.former.contains(&name))
}

/// Joins the rows of several lists into one array at compile time.
pub(crate) const fn joined<const N: usize>(parts: &[&[&[Opt]]]) -> [Opt; N] {
    const EMPTY: Opt = Opt {
        name: "",
        kind: Kind::Switch,
        default: Default::None,
        of: WorkerKind::Any,
        about: "",
        reload: Reload::Live,
        instead: None,
        needs: None,
        former: &[],
    };
    let mut all = [EMPTY; N];
    let (mut next, mut part) = (0, 0);
    while part < parts.len() {
        let mut list = 0;
        while list < parts[part].len() {
            let mut row = 0;
            while row < parts[part][list].len() {
                all[next] = parts[part][list][row];
                (next, row) = (next + 1, row + 1);
            }
            list += 1;
        }
        part += 1;
    }
    all
}

/// Returns the number of rows.
pub(crate) const fn length(parts: &[&[&[Opt]]]) -> usize {
    let (mut length, mut part) = (0, 0);
    while part < parts.len() {
        let mut list = 0;
        while list < parts[part].len() {
            length += parts[part][list].len();
            list += 1;
        }
        part += 1;
    }
    length
}
