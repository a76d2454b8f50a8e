//! What an option is.
//!
//! What it is: the shape of the table and the questions asked of it. What it knows: kinds, ranges
//! and to which workers an option belongs. What it must never know: a value that somebody wrote.

mod table;

use std::time::Duration;

use crate::{
    Framing, HalfClose, LastLine, OnConflict, Protocol, Record, ReplyStyle, Schedule, Sync,
};

pub(crate) use table::SECTIONS;

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
#[derive(Debug)]
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
    const fn new(
        name: &'static str,
        kind: Kind,
        default: Default,
        of: Of,
        about: &'static str,
    ) -> Self {
        Self { name, kind, default, of, about, instead: None }
    }

    const fn instead(mut self, instead: &'static str) -> Self {
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
}

impl Of {
    /// What such a pool is called.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Any => "pool",
            Self::Program => "program pool",
            Self::Database => "database pool",
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
    /// The defaults of the options in it.
    Inner,
}

/// What an option is set to.
#[derive(Debug)]
pub(crate) enum Kind {
    /// A whole number, both ends included.
    Count { min: u64, max: u64 },
    /// Bytes, both ends included.
    Size { min: u64, max: u64 },
    /// A time, both ends included.
    Time { min: Duration, max: Duration },
    /// One of these words.
    Word(&'static [Word]),
    /// Where to listen.
    Address,
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
    /// `sqlite:PATH`.
    Target,
    /// Options in a table of their own; `Short` is another way to write it.
    Group(&'static [Opt], Short),
}

/// Another way to write a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Short {
    /// There is none.
    None,
    /// `N` or `"MIN..MAX"` for `min` and `max`.
    Span,
}

/// A word that an option can be set to.
#[derive(Debug)]
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
    Record(Record),
    Sync(Sync),
    OnConflict(OnConflict),
}

/// The section of this name.
pub(crate) fn section(name: &str) -> Option<&'static Section> {
    SECTIONS.iter().find(|section| section.name == name)
}

/// The option of this name among `options`.
pub(crate) fn find(options: &'static [Opt], name: &str) -> Option<&'static Opt> {
    options.iter().find(|option| option.name == name)
}

/// Where an option of this name belongs, for somebody who wrote it elsewhere.
pub(crate) fn home(name: &str) -> Option<String> {
    for section in SECTIONS {
        if find(section.options, name).is_some() {
            return Some(format!("`{}`", section.header()));
        }
    }
    for section in SECTIONS {
        for option in section.options {
            if let Kind::Group(inner, _) = option.kind
                && find(inner, name).is_some()
            {
                return Some(format!("`{}` of `{}`", option.name, section.header()));
            }
        }
    }
    None
}
