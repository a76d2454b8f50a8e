//! The table: every section, with the rows of all its options.

use crate::model::{AccessLog, Admin, Cluster, Daemon, Listener, Pool};
use crate::options::{Opt, Section, Setting, WorkerKind, find};

/// Every section.
pub(crate) const SECTIONS: &[Section] = &[
    Section {
        name: "daemon",
        named: false,
        about: "The daemon as a whole.",
        options: Daemon::OPTIONS,
    },
    Section {
        name: "admin",
        named: false,
        about: "The admin address; without this section there is none.",
        options: Admin::OPTIONS,
    },
    Section {
        name: "access_log",
        named: false,
        about: "The access log, one line per request; without this section there is none.",
        options: AccessLog::OPTIONS,
    },
    Section {
        name: "cluster",
        named: false,
        about: "Other machines that share bindings with this one; without this section there are none.",
        options: Cluster::OPTIONS,
    },
    Section {
        name: "listener",
        named: true,
        about: "Where clients connect. There can be several, each with a name.",
        options: Listener::OPTIONS,
    },
    Section {
        name: "pool",
        named: true,
        about: "Who answers. There may be many, each with a name; a pool has either a `program`, \
                a `database` or `servers`.",
        options: Pool::OPTIONS,
    },
];

/// The key before all sections that lists files to include.
pub(crate) const INCLUDE: &str = "include";

/// A table of a pool with the options of one kind of worker.
#[derive(Debug)]
pub(crate) struct KindTable {
    /// The name, as in `[pool.NAME.program]`.
    pub(crate) name: &'static str,
    pub(crate) of: WorkerKind,
    /// The option that selects the kind of worker: its name in the pool itself, as the short form, and in the table.
    pub(crate) short: &'static str,
    pub(crate) main: &'static str,
}

/// Every such table.
pub(crate) const KIND_TABLES: &[KindTable] = &[
    KindTable { name: "program", of: WorkerKind::Program, short: "program", main: "command" },
    KindTable { name: "upstream", of: WorkerKind::Servers, short: "servers", main: "servers" },
    KindTable { name: "database", of: WorkerKind::Database, short: "database", main: "url" },
];

impl KindTable {
    /// Returns the header, for messages.
    pub(crate) fn header(&self) -> String {
        format!("[pool.NAME.{}]", self.name)
    }

    /// Returns the option of the table with this name.
    pub(crate) fn option(&self, options: &'static [Opt], name: &str) -> Option<&'static Opt> {
        if name == self.main {
            return find(options, self.short);
        }
        let own = format!("{}.{name}", self.name);
        let is_own =
            |option: &&Opt| option.of == self.of && (option.name == name || option.name == own);
        options.iter().find(is_own).filter(|option| option.name != self.short)
    }

    /// Returns the names of the options of the table.
    pub(crate) fn names(&self, options: &'static [Opt]) -> Vec<&'static str> {
        let name = |option: &'static Opt| match option.name {
            name if name == self.short => self.main,
            name => name.rsplit('.').next().unwrap_or(name),
        };
        options.iter().filter(|option| option.of == self.of).map(name).collect()
    }
}

/// Returns the table of this name among the options of a pool.
pub(crate) fn kind_table(options: &'static [Opt], name: &str) -> Option<&'static KindTable> {
    let is_pool = section("pool").is_some_and(|pool| std::ptr::eq(pool.options, options));
    KIND_TABLES.iter().find(|table| is_pool && table.name == name)
}

/// Returns the section of this name.
pub(crate) fn section(name: &str) -> Option<&'static Section> {
    SECTIONS.iter().find(|section| section.name == name)
}

/// Returns where options of this name belong, for a message about a misplaced option.
pub(crate) fn tables_of(name: &str) -> Option<String> {
    let mut homes = Vec::new();
    for section in SECTIONS {
        if find(section.options, name).is_some() {
            homes.push(format!("`{}`", section.header()));
        }
        for option in section.options {
            if find(option.inner(), name).is_some() {
                homes.push(format!("`{}` of `{}`", option.name, section.header()));
            }
        }
    }
    if homes.is_empty() { None } else { Some(homes.join(" or ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Configuration;
    use crate::options::{Kind, Reload, Unit};
    use crate::parse::parse;
    use crate::reload::restart_required;
    use crate::source::Source;
    use crate::walk::readable;

    fn every(options: &'static [Opt], see: &mut impl FnMut(&'static [Opt], &'static Opt)) {
        for option in options {
            see(options, option);
            every(option.inner(), see);
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
            for worker in [
                WorkerKind::Program,
                WorkerKind::Database,
                WorkerKind::Handler,
                WorkerKind::Servers,
            ] {
                if let Some(text) = option.default_for(worker) {
                    assert!(readable(option, text), "{} = {text}", option.name);
                }
            }
        });
    }

    #[test]
    fn every_option_and_every_word_has_one_meaning_and_says_which() {
        each_option(|among, option| {
            // One for each kind of worker.
            let is_same = |other: &&Opt| other.name == option.name && other.of == option.of;
            let same = among.iter().filter(is_same).count();
            assert_eq!(same, 1, "{} is there twice", option.name);
            assert!(option.about.ends_with('.'), "{}: {}", option.name, option.about);
            if let Kind::Word(words) = option.kind {
                for word in words {
                    let same = words.iter().filter(|other| other.name == word.name).count();
                    assert_eq!(same, 1, "{} is there twice", word.name);
                    assert!(word.about.ends_with('.'), "{}: {}", word.name, word.about);
                }
            }
        });
    }

    #[test]
    fn an_option_under_a_former_name_is_named_as_today() {
        let check = |options: &'static [Opt], header: &str, option: &'static Opt| {
            for old in option.former {
                assert!(find(options, old).is_none(), "`{old}` is still an option");
                let text = format!("{header}\n{old} = 1\n");
                let errors = parse(&Source { name: String::new(), text }, &|_| None).unwrap_err();
                let error = errors.iter().find(|error| error.word == *old).unwrap();
                let expected = format!("write `{}` instead of `{old}`", option.name);
                assert_eq!(error.suggestion, Some(expected), "{errors}");
            }
        };
        let mut count = 0;
        for section in SECTIONS {
            let path =
                if section.named { format!("{}.a", section.name) } else { section.name.into() };
            for option in section.options {
                check(section.options, &format!("[{path}]"), option);
                count += option.former.len();
                let (open, close) = match option.kind {
                    Kind::List(..) => ("[[", "]]"),
                    _ => ("[", "]"),
                };
                for inner in option.inner() {
                    let header = format!("{open}{path}.{}{close}", option.name);
                    check(option.inner(), &header, inner);
                    count += inner.former.len();
                }
            }
        }
        assert!(count > 50, "{count}");
    }

    #[test]
    fn counts_fit_the_model() {
        each_option(|_, option| {
            if let Kind::Number { unit: Unit::One, min, max, .. } = option.kind {
                assert!(min <= max && u32::try_from(max).is_ok(), "{}", option.name);
            }
        });
    }

    /// Returns values of an option that differ from its default, as they are written in a file.
    fn others(option: &Opt) -> Vec<String> {
        let texts = |texts: &[&str]| texts.iter().map(|text| format!("\"{text}\"")).collect();
        match option.kind {
            Kind::Number { unit: Unit::Milliseconds, .. } => vec!["\"7s\"".to_owned()],
            Kind::Number { min, max, .. } => vec![min.to_string(), max.to_string()],
            Kind::Switch => vec!["true".to_owned(), "false".to_owned()],
            Kind::Word(words) => words.iter().map(|word| format!("{:?}", word.name)).collect(),
            Kind::Text(form) if form.title == "percent" => texts(&["77%"]),
            Kind::Text(_) => texts(&["/x", "{1}", "header:x", "word:1", "env:X"]),
            Kind::Names(_) => vec!["[\"10.0.0.9\"]".to_owned(), "[\"a\"]".to_owned()],
            Kind::Command => vec!["[\"x\"]".to_owned()],
            Kind::Variables => vec!["{ a = \"x\" }".to_owned()],
            Kind::Processors => vec!["[0]".to_owned()],
            _ => Vec::new(),
        }
    }

    /// Files that can contain options: `HERE` and `THERE` are replaced by lines of a listener and a pool.
    const FILES: [&str; 6] = [
        "[listener.a]\nlisten = \":1\"\npool = \"a\"\nHERE\n[pool.a]\nprogram = [\"cat\"]\nTHERE\n",
        "[listener.a]\nlisten = \":1\"\npool = \"a\"\nprotocol = \"http\"\n[pool.a]\nprogram = [\"cat\"]\nframing = \"http\"\nTHERE\n",
        "[listener.a]\nlisten = \":1\"\npool = \"a\"\nprotocol = \"http\"\nHERE\n[pool.a]\nservers = [\":2\"]\nTHERE\n",
        "[pool.a]\ndatabase = \"postgres://a@b/c\"\nquery = \"select 1\"\nTHERE\n",
        "[pool.a]\ndatabase = \"sqlite:a\"\nstatement = \"x\"\nTHERE\n",
        "[pool.a]\nhandler = \"x\"\nTHERE\n[daemon]\nANYWHERE\n[admin]\nlisten = \"127.0.0.1:3\"\nADMIN\n[access_log]\nto = \"stdout\"\nLOG\n[cluster]\nnats = [\"nats://b:1\"]\nsecret = \"env:S\"\ntls_key = \"k\"\ntls_certificate = \"c\"\nCLUSTER\n",
    ];

    fn read(text: &str) -> Option<Configuration> {
        parse(&Source { name: String::new(), text: text.to_owned() }, &|_| None).ok()
    }

    /// An option with another value must appear in the model, and its row must state the effect of a reload.
    #[test]
    fn every_row_fills_a_field_and_its_reload_rule_holds() {
        let (mut filled, mut left): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
        for (name, mark) in [
            ("listener", "HERE"),
            ("pool", "THERE"),
            ("daemon", "ANYWHERE"),
            ("admin", "ADMIN"),
            ("access_log", "LOG"),
            ("cluster", "CLUSTER"),
        ] {
            let options = section(name).unwrap().options;
            let inner = options.iter().flat_map(|outer| {
                outer
                    .inner()
                    .iter()
                    .map(move |option| (option, format!("{}.", outer.name), outer.reload))
            });
            let own = options.iter().map(|option| (option, String::new(), option.reload));
            for (option, before, reload) in own.chain(inner) {
                let path = format!("{name}.{before}{}", option.name);
                let mut is_filled = false;
                let of = match option.of {
                    WorkerKind::Any => "",
                    WorkerKind::Program => "\nprogram",
                    WorkerKind::Database => "\ndatabase",
                    WorkerKind::Handler => "\nhandler",
                    WorkerKind::Servers => "\nservers",
                };
                let has = |file: &&&str| file.contains(&format!("\n{mark}\n")) && file.contains(of);
                for file in FILES.iter().filter(has) {
                    let plain = |line: &str| {
                        let marks = ["ANYWHERE", "THERE", "HERE", "ADMIN", "LOG", "CLUSTER"];
                        let text = file.replacen(&format!("\n{mark}\n"), &format!("\n{line}\n"), 1);
                        text.lines()
                            .filter(|line| !marks.contains(line))
                            .collect::<Vec<_>>()
                            .join("\n")
                    };
                    let old = read(&plain("")).expect(file);
                    for value in others(option) {
                        let Some(new) = read(&plain(&format!("{before}{} = {value}", option.name)))
                        else {
                            continue;
                        };
                        if new == old {
                            continue;
                        }
                        is_filled = true;
                        let is_fixed = !restart_required(&old, &new).is_empty();
                        match reload {
                            Reload::Live | Reload::Replace => {
                                assert!(!is_fixed, "{path} = {value}");
                            }
                            Reload::Restart => assert!(is_fixed, "{path} = {value}"),
                            Reload::RestartIf(_) => {}
                        }
                    }
                }
                if is_filled { filled.push(path) } else { left.push(path) }
            }
        }
        assert!(filled.len() > 140, "{} options: {left:?}", filled.len());
    }

    /// A table that cannot change must not contain options that can.
    #[test]
    fn options_of_a_table_change_when_the_table_does() {
        each_option(|_, option| {
            for inner in option.inner() {
                match option.reload {
                    Reload::Restart => assert_eq!(inner.reload, Reload::Restart, "{}", inner.name),
                    Reload::Replace => assert_eq!(inner.reload, Reload::Replace, "{}", inner.name),
                    Reload::Live | Reload::RestartIf(_) => {}
                }
            }
        });
    }
}
