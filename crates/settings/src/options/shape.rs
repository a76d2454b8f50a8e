//! What an option is.
//!
//! What it is: the shape of the table. What it knows: kinds, ranges and to which workers an option
//! belongs. What it must never know: an option.

use std::time::Duration;

use crate::model::*;

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
    /// What to use instead where the option does not belong.
    pub(crate) instead: Option<&'static str>,
}

impl Opt {
    pub(super) const fn new(
        name: &'static str,
        kind: Kind,
        default: Default,
        of: Of,
        about: &'static str,
    ) -> Self {
        Self { name, kind, default, of, about, instead: None }
    }

    pub(super) const fn instead(mut self, instead: &'static str) -> Self {
        self.instead = Some(instead);
        self
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
    /// The same, or `auto`, which is 0.
    CountOrAuto { min: u64, max: u64 },
    /// Bytes, both ends included.
    Size { min: u64, max: u64 },
    /// A time, both ends included.
    Time { min: Duration, max: Duration },
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
    Text,
    /// A text of one line in which `{name}` stands for a value.
    Template,
    /// A list of texts that is not empty, each there once.
    Names,
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

/// A word that an option can be set to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word {
    pub(crate) name: &'static str,
    pub(crate) means: Choice,
    pub(crate) about: &'static str,
}

/// What a word means in the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    Protocol(Protocol),
    ReplyStyle(ReplyStyle),
    HalfClose(HalfClose),
    LastLine(LastLine),
    Schedule(Schedule),
    Framing(Framing),
    Io(Io),
    Ready(Ready),
    LastWords(LastWords),
    HttpSocket(HttpSocket),
    Fds(Fds),
    Unbuffer(Unbuffer),
    Dispatch(Dispatch),
    Alignment(Alignment),
    LineBreaks(LineBreaks),
    FrameOver(FrameOver),
    Handshake(Handshake),
    Record(Record),
    Sync(Sync),
    OnConflict(OnConflict),
    RowFormat(RowFormat),
    Order(Order),
    Affected(Affected),
    UnknownFields(UnknownFields),
    Tls(Tls),
    Preset(Preset),
    Gone(Gone),
    Idempotent(Idempotent),
    Check(CheckKind),
    Mode(CookieMode),
    Value(CookieValue),
    SameSite(SameSite),
    Forwarded(Forwarded),
    /// Of `event`.
    EventKernel(EventKernel),
}
