//! What an option is.
//!
//! What it is: the shape of the table and the questions asked of it. What it knows: kinds, ranges
//! and to which workers an option belongs. What it must never know: a value that somebody wrote.

mod access_log;
mod addresses;
mod admin;
mod balance;
mod database;
mod listener;
mod pool;
mod program;
mod route;
mod servers;
mod table;

use std::time::Duration;

use crate::model::*;

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
    Gone(crate::Gone),
    Idempotent(Idempotent),
    Check(crate::CheckKind),
    Mode(crate::CookieMode),
    Value(crate::CookieValue),
    SameSite(crate::SameSite),
    Forwarded(Forwarded),
    /// Of `event`.
    EventKernel(EventKernel),
}

/// The section of this name.
pub(crate) fn section(name: &str) -> Option<&'static Section> {
    SECTIONS.iter().find(|section| section.name == name)
}

/// The option of this name among `options`.
pub(crate) fn find(options: &'static [Opt], name: &str) -> Option<&'static Opt> {
    options.iter().find(|option| option.name == name)
}

/// Where options of this name belong, for somebody who wrote one elsewhere.
pub(crate) fn home(name: &str) -> Option<String> {
    let mut homes = Vec::new();
    for section in SECTIONS {
        if find(section.options, name).is_some() {
            homes.push(format!("`{}`", section.header()));
        }
        for option in section.options {
            if let Kind::Group(inner, _) | Kind::List(inner, _) = option.kind
                && find(inner, name).is_some()
            {
                homes.push(format!("`{}` of `{}`", option.name, section.header()));
            }
        }
    }
    if homes.is_empty() { None } else { Some(homes.join(" or ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::walk::readable;

    fn every(options: &'static [Opt], see: &mut impl FnMut(&'static [Opt], &'static Opt)) {
        for option in options {
            see(options, option);
            if let Kind::Group(inner, _) | Kind::List(inner, _) = option.kind {
                every(inner, see);
            }
        }
    }

    fn each_option(mut see: impl FnMut(&'static [Opt], &'static Opt)) {
        for section in SECTIONS {
            every(section.options, &mut see);
        }
    }

    #[test]
    fn every_default_is_a_value_of_its_option_and_within_its_range() {
        each_option(|_, option| {
            for worker in [Of::Program, Of::Database, Of::Handler, Of::Servers] {
                if let Some(text) = option.default_for(worker) {
                    assert!(readable(option, text), "{} = {text}", option.name);
                }
            }
        });
    }

    #[test]
    fn every_option_and_every_word_has_one_meaning_and_says_which() {
        each_option(|among, option| {
            let same = among.iter().filter(|other| other.name == option.name).count();
            assert_eq!(same, 1, "{} is there twice", option.name);
            assert!(option.about.ends_with('.'), "{}: {}", option.name, option.about);
            if let Kind::Word(words) = option.kind {
                for word in words {
                    let same = words.iter().filter(|other| other.name == word.name).count();
                    assert_eq!(same, 1, "{} is there twice", word.name);
                    let meant = words.iter().filter(|other| other.means == word.means).count();
                    assert_eq!(meant, 1, "{} means what another word means", word.name);
                    assert!(word.about.ends_with('.'), "{}: {}", word.name, word.about);
                }
            }
        });
    }

    #[test]
    fn counts_fit_the_model() {
        each_option(|_, option| {
            if let Kind::Count { min, max } = option.kind {
                assert!(min <= max && u32::try_from(max).is_ok(), "{}", option.name);
            }
        });
    }
}
