//! What an option is.
//!
//! What it is: the shape of a row, and the constructors of kinds that rows are written with. What it knows: kinds,
//! ranges, to which workers an option belongs, and whether a reload changes it. What it must never know: an option.

use std::time::Duration;

/// A section of the file.
#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) name: &'static str,
    /// There may be many, each `[name.NAME]`.
    pub(crate) named: bool,
    pub(crate) about: &'static str,
    pub(crate) options: &'static [Opt],
}

impl Section {
    /// How its header looks.
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
    pub(crate) of: Of,
    pub(crate) about: &'static str,
    pub(crate) reload: Reload,
    /// What to use instead where the option does not belong.
    pub(crate) instead: Option<&'static str>,
}

impl Opt {
    pub(crate) const fn of(mut self, of: Of) -> Self {
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

    /// The options of its table, if it is one.
    pub(crate) const fn inner(&self) -> &'static [Self] {
        match self.kind {
            Kind::Group(inner, _) | Kind::List(inner, _) => inner,
            _ => &[],
        }
    }

    /// The default for a worker of this kind, as it would be written.
    pub(crate) fn default_for(&self, worker: Of) -> Option<&'static str> {
        match self.default {
            Default::Is(text) => Some(text),
            Default::Of { program, database } => {
                Some(if worker == Of::Database { database } else { program })
            }
            Default::Handlers { handler, other } => {
                Some(if worker == Of::Handler { handler } else { other })
            }
            Default::Required | Default::None | Default::Inner => None,
        }
    }
}

/// Whose pools an option belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    Any,
    Program,
    Database,
    Handler,
    Servers,
}

impl Of {
    /// What such a pool is called.
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

/// Whether a reload changes an option of a running daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reload {
    /// The new value holds from then on.
    Live,
    /// The same; running programs are replaced by new ones.
    Replace,
    /// Only a restart changes it.
    Restart,
    /// A restart is needed in this case. `reload` decides whether it is one.
    RestartIf(&'static str),
}

/// What holds when an option is not given.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Default {
    /// It must be given.
    Required,
    /// Nothing.
    None,
    /// This, as it would be written.
    Is(&'static str),
    /// This, by the kind of worker.
    Of { program: &'static str, database: &'static str },
    /// One for handlers of embedders, one for all others.
    Handlers { handler: &'static str, other: &'static str },
    /// The defaults of the options in it.
    Inner,
}

/// What an option is set to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// A whole number, both ends included.
    Count { min: u64, max: u64 },
    /// The same, or this word, which is 0.
    CountOr { min: u64, max: u64, word: &'static str },
    /// Bytes, both ends included; `off`, which is 0, if it can be switched off.
    Size { min: u64, max: u64, off: bool },
    /// A time, both ends included; `off`, which is 0, if it can be switched off.
    Time { min: Duration, max: Duration, off: bool },
    /// `true` or `false`.
    Switch,
    /// `any`, `near`, `spread` or a list of numbers.
    Processors,
    /// One of these words.
    Word(&'static [Word]),
    /// Where to listen.
    Address,
    /// Where to connect to, by address or by name.
    Server,
    /// Something that is found in a request.
    Key,
    /// A part of a whole, written `30%`.
    Percent,
    /// The name of a pool.
    Pool,
    /// A text that is not empty.
    Text(Shows),
    /// A text of one line in which `{name}` stands for a value.
    Template,
    /// A list of texts that is not empty, each there once.
    Names(Shows),
    /// A program and its arguments.
    Command,
    /// Variables and their values.
    Variables,
    /// `sqlite:PATH`, `postgres://…` or `mysql://…`.
    Target,
    /// `env:NAME` or `file:PATH`.
    Secret,
    /// Options in a table of their own; `Short` is another way to write it.
    Group(&'static [Opt], Short),
    /// A list of such tables, not empty. A text stands for a table with this option alone.
    List(&'static [Opt], &'static str),
}

/// Another way to write a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Short {
    /// There is none.
    None,
    /// `N` or `"MIN..MAX"` for `min` and `max`.
    Span,
    /// `"off"` for what holds when nothing is given.
    Off,
}

/// What errors may show of a value. Later ones show less.
#[derive(Clone, Copy, Debug, std::default::Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Shows {
    #[default]
    Whole,
    /// All but a query.
    Path,
    /// All but a password.
    Target,
    /// All but the arguments, unless they name a place.
    Program,
    /// Where a secret is, and no secret.
    Place,
    Nothing,
}

/// A word that an option can be set to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
}

/// The option of this name for pools of this kind of worker: kinds may have options of one name.
pub(crate) fn find_for(
    options: &'static [Opt],
    name: &str,
    worker: Option<Of>,
) -> Option<&'static Opt> {
    let mut named = options.iter().filter(|option| option.name == name);
    named.clone().find(|option| worker == Some(option.of)).or_else(|| named.next())
}

/// The option of this name among `options`.
pub(crate) fn find(options: &'static [Opt], name: &str) -> Option<&'static Opt> {
    options.iter().find(|option| option.name == name)
}

/// All rows of several lists, in one list that is made when it is compiled.
pub(crate) const fn joined<const N: usize>(parts: &[&[&[Opt]]]) -> [Opt; N] {
    const EMPTY: Opt = Opt {
        name: "",
        kind: Kind::Switch,
        default: Default::None,
        of: Of::Any,
        about: "",
        reload: Reload::Live,
        instead: None,
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

/// How many rows these are.
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
