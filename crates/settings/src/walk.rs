//! Matches the table of options with a tree.
//!
//! What it is: one walk that finds options that are unknown, missing, of the wrong type or out of range, keeps the
//! valid ones, and adds the defaults. What it depends on: the table and the tree. What it must never depend on: rules
//! between two options (those are in `checks`).

mod read;
mod report;

pub(crate) use read::range;
#[cfg(test)]
pub(crate) use read::readable;

use std::collections::BTreeSet;
use std::ops::Range;

use crate::fault::{Fault, Trust};
use crate::foreign::{self, Scope};
use crate::model::{Framing, Protocol};
use crate::nearest::nearest;
use crate::options::{self, Default, Found, Group, Kind, Opt, Shorthand, Value, WorkerKind};
use crate::table::{self, INCLUDE, KindTable, SECTIONS};
use crate::tree::{Entry, Raw, Table};
use crate::values;

use report::{Walk, list, shown};

/// The default maximum size of a JSON-RPC message, in bytes.
const MESSAGE_MAX: u64 = 16 << 20;

/// The number of errors after which no suggestions are made: the file may come from an untrusted author, and only the
/// first errors are shown.
const SUGGESTED_MAX: usize = 1000;

/// A section of the file.
#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) kind: &'static options::Section,
    /// The name of the section; the name of its kind if the kind has only one section.
    pub(crate) name: String,
    /// The location of the name.
    pub(crate) place: Range<usize>,
    /// The kind of worker whose options the section has. `None`: a pool that has no kind, or two.
    pub(crate) worker: Option<WorkerKind>,
    pub(crate) group: Group,
}

/// The current position of the walk.
#[derive(Clone, Debug)]
struct Place {
    /// The title in errors, like `[pool.parse]`.
    title: String,
    /// The location of the header or key.
    header: Range<usize>,
    worker: Option<WorkerKind>,
}

/// The result of a walk.
pub(crate) struct Walked {
    pub(crate) sections: Vec<Section>,
    /// Names of the variables whose values options have.
    pub(crate) variables: BTreeSet<String>,
    /// The values of these variables. Errors must not show them.
    pub(crate) hidden: Vec<String>,
}

/// Walks a tree. Its faults are added to `faults`.
pub(crate) fn walk(
    table: &Table,
    text: &str,
    environment: &dyn Fn(&str) -> Option<String>,
    faults: &mut Vec<Fault>,
) -> Walked {
    let (variables, hidden) = (BTreeSet::new(), Vec::new());
    let mut walk = Walk { text, faults, environment, variables, hidden };
    let mut sections = Vec::new();
    for entry in table {
        if entry.key == INCLUDE {
            let message = "a configuration without a file includes nothing";
            walk.faults.push(Fault::at(entry.place.clone(), message).suggestion("remove it"));
            continue;
        }
        let Some(kind) = table::section(&entry.key).or_else(|| walk.unknown_section(entry)) else {
            continue;
        };
        match &entry.node.raw {
            Raw::Table(inner) if kind.named => walk.named(kind, inner, &mut sections),
            Raw::Table(inner) => {
                let place = Place {
                    title: format!("`[{}]`", entry.key),
                    header: entry.place.clone(),
                    worker: Some(WorkerKind::Any),
                };
                sections.push(walk.section(kind, &entry.key, place, inner));
            }
            other => {
                let message = format!("`{}` is a section, not {}", entry.key, other.title());
                let fault = Fault::at(entry.place.clone(), message);
                walk.faults.push(fault.suggestion(format!("begin it with `{}`", kind.header())));
            }
        }
    }
    for kind in SECTIONS.iter().filter(|kind| kind.name == "daemon") {
        if !sections.iter().any(|section| section.kind.name == kind.name) {
            let place = Place { title: kind.header(), header: 0..0, worker: Some(WorkerKind::Any) };
            sections.push(walk.section(kind, kind.name, place, &Table::new()));
        }
    }
    let Walk { variables, hidden, .. } = walk;
    Walked { sections, variables, hidden }
}

impl Walk<'_> {
    /// Walks the sections `[kind.NAME]` of one kind.
    fn named(&mut self, kind: &'static options::Section, inner: &Table, found: &mut Vec<Section>) {
        for entry in inner {
            match &entry.node.raw {
                Raw::Table(options) => {
                    if let Err(bad) = values::name(&entry.key) {
                        let message = format!("the name `{}` {}", shown(&entry.key), bad.why);
                        let fault = Fault::at(entry.place.clone(), message)
                            .expected("expected lower-case letters, digits, `_` and `-`");
                        self.faults.push(fault.suggested(bad.suggestion));
                    }
                    let is_pool = kind.name == "pool";
                    let worker = if is_pool { worker_of(options) } else { Some(WorkerKind::Any) };
                    let place = Place {
                        title: format!("`[{}.{}]`", kind.name, shown(&entry.key)),
                        header: entry.place.clone(),
                        worker,
                    };
                    found.push(self.section(kind, &entry.key, place, options));
                }
                _ => {
                    let message = format!("`{}` is in a {} without a name", entry.key, kind.name);
                    let fault = Fault::at(entry.place.clone(), message)
                        .expected(format!("expected a section `{}`", kind.header()))
                        .suggestion(format!("name the section, as in `[{}.main]`", kind.name));
                    self.faults.push(fault);
                }
            }
        }
    }

    fn section(
        &mut self,
        kind: &'static options::Section,
        name: &str,
        place: Place,
        table: &Table,
    ) -> Section {
        let mut group = self.group(kind.options, table, &place);
        group.name = name.to_owned();
        Section { kind, name: name.to_owned(), place: place.header, worker: place.worker, group }
    }

    /// Walks the options of one table.
    fn group(&mut self, options: &'static [Opt], table: &Table, place: &Place) -> Group {
        let mut group = Group { place: place.header.clone(), ..Group::default() };
        for entry in table {
            if let (Some(kind), Raw::Table(inner)) =
                (table::kind_table(options, &entry.key), &entry.node.raw)
            {
                self.kind_table(kind, options, (entry, inner, table), place, &mut group);
                continue;
            }
            let Some(option) = options::find_for(options, &entry.key, place.worker) else {
                // A misspelt option is one error. It is not reported as missing too.
                if let Some(meant) = self.unknown(options, entry, place)
                    && !table.iter().any(|entry| entry.key == meant)
                {
                    let place = Some((entry.place.clone(), entry.node.span.clone()));
                    group.options.push((meant, Found { value: None, place }));
                }
                continue;
            };
            if self.misplaced(option, entry, place) {
                continue;
            }
            let value = self.value(option, entry, place);
            let found =
                Found { value, place: Some((entry.place.clone(), entry.node.span.clone())) };
            group.options.push((option.name, found));
        }
        self.complete(options, &mut group, place);
        group
    }

    /// Walks a table with the options of one kind of worker. They are options of the pool.
    fn kind_table(
        &mut self,
        kind: &'static KindTable,
        options: &'static [Opt],
        (entry, inner, table): (&Entry, &Table, &Table),
        pool: &Place,
        group: &mut Group,
    ) {
        let title = format!("{}.{}]`", pool.title.trim_end_matches("]`"), kind.name);
        let place = Place { title, header: entry.place.clone(), worker: Some(kind.of) };
        let in_pool = table.iter().any(|entry| entry.key == kind.short && entry.key != kind.name);
        let has_main = in_pool || inner.iter().any(|entry| entry.key == kind.main);
        for entry in inner {
            let Some(option) = kind.option(options, &entry.key) else {
                self.unknown_in(kind, options, entry, &place);
                continue;
            };
            let found = (entry.place.clone(), entry.node.span.clone());
            if group.find(option.name).is_some() {
                let message = format!("`{}` is given twice", entry.key);
                self.faults.push(
                    Fault::at(found.0, message)
                        .expected("it belongs to the pool itself")
                        .suggestion("keep one of the two"),
                );
                continue;
            }
            let value = self.value(option, entry, &place);
            group.options.push((option.name, Found { value, place: Some(found) }));
        }
        // The option that selects the workers is either here or, in the short form, in the pool.
        if !has_main {
            let example = match kind.of {
                WorkerKind::Program => "command = [\"perl\", \"parse.pl\"]",
                WorkerKind::Servers => "servers = [\"127.0.0.1:8000\"]",
                _ => "url = \"sqlite:hits.db\"",
            };
            self.faults.push(absent(&place, kind.main, example));
            let place = Some((place.header.clone(), place.header.clone()));
            group.options.push((kind.short, Found { value: None, place }));
        }
    }

    /// Adds the defaults, and a fault for each required option that is missing.
    fn complete(&mut self, options: &'static [Opt], group: &mut Group, place: &Place) {
        let worker = place.worker.unwrap_or(WorkerKind::Program);
        for option in options {
            if group.find(option.name).is_some() {
                continue;
            }
            let value = match (&option.default, &option.kind) {
                (Default::Required, _) => {
                    self.faults.push(absent(place, option.name, &example(option)));
                    continue;
                }
                (Default::Inner, Kind::Group(inner, _)) => {
                    Value::Group(self.group(inner, &Table::new(), place))
                }
                (Default::Is(_) | Default::ByWorker { .. } | Default::Handlers { .. }, _) => {
                    let text = option.default_for(worker).expect("these kinds have a text");
                    read::default(&option.kind, text)
                }
                (Default::None | Default::Inner, _) => continue,
            };
            group.options.push((option.name, Found { value: Some(value), place: None }));
        }
        // A `min` above the default of `max` is not a contradiction in the file.
        if let (Some(min), Some(max)) = (group.number("min"), group.number("max"))
            && max < min
        {
            group.set_default("max", min);
        }
        message_limits(group);
    }

    fn value(&mut self, option: &'static Opt, entry: &Entry, place: &Place) -> Option<Value> {
        if let Kind::List(inner, alone) = &option.kind {
            return self.list(option, inner, alone, entry, place);
        }
        let Kind::Group(inner, short) = &option.kind else {
            return read::value(self, option, entry);
        };
        if let Some(span) = read::short(self, option, *short, entry) {
            let mut group = Group::default();
            for (name, number) in [("min", span?.0), ("max", span?.1)] {
                let place = Some((entry.place.clone(), entry.node.span.clone()));
                group.options.push((name, Found { value: Some(Value::Number(number)), place }));
            }
            self.complete(inner, &mut group, place);
            return Some(Value::Group(group));
        }
        match &entry.node.raw {
            Raw::Text(text) if *short == Shorthand::Off && text == "off" => {
                Some(Value::Group(self.group(inner, &Table::new(), place)))
            }
            Raw::Table(table) => {
                let place = Place {
                    title: format!("`{}`", option.name),
                    header: entry.place.clone(),
                    worker: place.worker,
                };
                Some(Value::Group(self.group(inner, table, &place)))
            }
            _ => read::wrong_type(self, option, entry),
        }
    }

    /// Reads a list of tables. A text in it is a table with only the option `alone`.
    fn list(
        &mut self,
        option: &'static Opt,
        inner: &'static [Opt],
        alone: &'static str,
        entry: &Entry,
        place: &Place,
    ) -> Option<Value> {
        let Raw::List(items) = &entry.node.raw else {
            return read::wrong_type(self, option, entry);
        };
        if items.is_empty() {
            return read::wrong_type(self, option, entry);
        }
        let mut groups = Vec::new();
        for item in items {
            let place = Place {
                title: format!("`{}`", option.name),
                header: item.span.clone(),
                worker: place.worker,
            };
            match &item.raw {
                Raw::Table(table) => groups.push(self.group(inner, table, &place)),
                Raw::Text(_) => {
                    let key = alone.to_owned();
                    let only = Entry { key, place: item.span.clone(), node: item.clone() };
                    groups.push(self.group(inner, &Table::from([only]), &place));
                }
                _ => {
                    let entry = Entry { node: item.clone(), ..entry.clone() };
                    return read::wrong_type(self, option, &entry);
                }
            }
        }
        Some(Value::Groups(groups))
    }

    /// Reports an option that belongs to another kind of pool.
    fn misplaced(&mut self, option: &Opt, entry: &Entry, place: &Place) -> bool {
        let (Some(worker), true) = (place.worker, option.of != WorkerKind::Any) else {
            return false;
        };
        if worker == option.of {
            return false;
        }
        let message = format!(
            "`{}` is an option of a {}, and {} is a {}",
            option.name,
            option.of.title(),
            place.title,
            worker.title()
        );
        let fault = Fault::at(entry.place.clone(), message).expected("does not belong here");
        let remove = option.instead.map(|instead| format!("remove it; {instead}"));
        self.faults.push(fault.suggestion(remove.unwrap_or_else(|| "remove it".to_owned())));
        true
    }

    /// Reports an unknown option. Returns the option that was probably meant.
    fn unknown(
        &mut self,
        options: &'static [Opt],
        entry: &Entry,
        place: &Place,
    ) -> Option<&'static str> {
        let message = format!("{} has no option `{}`", place.title, shown(&entry.key));
        let fault = Fault::at(entry.place.clone(), message);
        if self.faults.len() >= SUGGESTED_MAX {
            self.faults.push(fault.expected("unknown option"));
            return None;
        }
        let applies = |option: &&Opt| {
            option.of == WorkerKind::Any || place.worker.is_none_or(|of| of == option.of)
        };
        let names: Vec<&'static str> =
            options.iter().filter(applies).map(|option| option.name).collect();
        if let Some(Opt { name: new, .. }) = options::formerly(options, &entry.key) {
            self.faults.push(renamed(fault, &entry.key, new));
            return names.into_iter().find(|name| name == new);
        }
        if let Some(advice) = foreign::removed(&place.title, &entry.key) {
            self.faults.push(fault.expected("this option was removed").suggestion(advice));
            return None;
        }
        if let Some(advice) = foreign::option(Scope::of(&place.title), &entry.key) {
            self.faults.push(fault.expected("unknown option").suggestion(advice));
            let meant = foreign::meant(advice)?;
            return names.into_iter().find(|name| *name == meant);
        }
        let home = table::tables_of(&entry.key);
        self.elsewhere(fault, &entry.key, home, &names)
    }

    /// Reports an unknown option of which it is known whether it belongs elsewhere. Returns the option that was probably
    /// meant.
    fn elsewhere(
        &mut self,
        fault: Fault,
        key: &str,
        home: Option<String>,
        names: &[&'static str],
    ) -> Option<&'static str> {
        let meant = if home.is_none() { nearest(key, names.iter().copied()) } else { None };
        self.faults.push(match (home, meant) {
            (Some(home), _) => fault
                .expected("does not belong here")
                .suggestion(format!("it is an option of {home}")),
            (None, Some(meant)) => fault
                .expected(format!("did you mean `{meant}`?"))
                .suggestion(format!("write `{meant}` instead of `{}`", shown(key))),
            (None, None) => fault
                .expected("unknown option")
                .suggestion(format!("the options here are {}", list(names))),
        });
        meant
    }

    /// Reports an option that the table of a kind of worker does not have.
    fn unknown_in(
        &mut self,
        kind: &'static KindTable,
        options: &'static [Opt],
        entry: &Entry,
        place: &Place,
    ) {
        let message = format!("{} has no option `{}`", place.title, shown(&entry.key));
        let fault = Fault::at(entry.place.clone(), message);
        if let Some(Opt { name: new, .. }) = options::formerly(options, &entry.key) {
            let new = new.rsplit('.').next().unwrap_or(new);
            self.faults.push(renamed(fault, &entry.key, new));
            return;
        }
        let names = kind.names(options);
        let home = options::find(options, &entry.key).map(|option| {
            let kind = table::KIND_TABLES.iter().find(|kind| kind.of == option.of);
            let header = kind.map_or_else(|| "[pool.NAME]".to_owned(), KindTable::header);
            format!("`{header}`")
        });
        self.elsewhere(fault, &entry.key, home, &names);
    }

    /// Reports an unknown section. Returns the section that was probably meant.
    fn unknown_section(&mut self, entry: &Entry) -> Option<&'static options::Section> {
        if !matches!(entry.node.raw, Raw::Table(_)) {
            self.outside(entry);
            return None;
        }
        let message = format!("there is no section `{}`", shown(&entry.key));
        let fault = Fault::at(entry.place.clone(), message);
        let meant = nearest(&entry.key, SECTIONS.iter().map(|section| section.name));
        let meant = meant.and_then(table::section);
        self.faults.push(match meant {
            Some(section) => fault
                .expected(format!("did you mean `{}`?", section.name))
                .suggestion(format!("write `{}`", section.header())),
            None => {
                let headers: Vec<String> = SECTIONS.iter().map(options::Section::header).collect();
                let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
                fault
                    .expected("unknown section")
                    .suggestion(format!("the sections are {}", list(&headers)))
            }
        });
        meant
    }

    /// Reports an option before the first section.
    fn outside(&mut self, entry: &Entry) {
        let message = format!("`{}` is before the first section", shown(&entry.key));
        let fault = Fault::at(entry.place.clone(), message).expected("expected a section first");
        self.faults.push(match table::tables_of(&entry.key) {
            Some(home) => fault.suggestion(format!("it is an option of {home}")),
            None => fault.suggestion("begin with a section like `[listener.main]`"),
        });
    }
}

/// Returns the fault of a table without a required option.
fn absent(place: &Place, name: &str, example: &str) -> Fault {
    Fault::at(place.header.clone(), format!("{} has no `{name}`", place.title))
        .expected(format!("`{name}` is required"))
        .suggestion(format!("add `{example}`"))
        .trust(Trust::Absent)
}

fn renamed(fault: Fault, old: &str, new: &str) -> Fault {
    let suggestion = format!("write `{new}` instead of `{old}`");
    fault.expected(format!("it is called `{new}`")).suggestion(suggestion)
}

/// Sets the limits of JSON-RPC messages that are not set in the file. MCP and LSP messages contain whole files.
fn message_limits(group: &mut Group) {
    let is_json = |framing| matches!(framing, Framing::JsonRpc | Framing::ContentLength);
    if matches!(group.get("protocol"), Some(Protocol::Frames(framing)) if is_json(framing)) {
        group.set_default("frame_max", MESSAGE_MAX);
        group.set_default("send_max", MESSAGE_MAX);
    }
    if group.get("framing").is_some_and(is_json) {
        group.set_default("reply_max", MESSAGE_MAX);
    }
}

/// Returns the kind of pool that a table describes, if it has exactly one.
fn worker_of(table: &Table) -> Option<WorkerKind> {
    let has = |name: &str| table.iter().any(|entry| entry.key == name);
    match (has("program"), has("database"), has("servers") || has("upstream"), has("handler")) {
        (true, false, false, false) => Some(WorkerKind::Program),
        (false, true, false, false) => Some(WorkerKind::Database),
        (false, false, true, false) => Some(WorkerKind::Servers),
        (false, false, false, true) => Some(WorkerKind::Handler),
        _ => None,
    }
}

/// Returns an example of a required option.
fn example(option: &Opt) -> String {
    let value = match option.kind {
        Kind::Text(form) => form.example,
        Kind::Names(_) => "[\"NAME\", …]",
        _ => "\"…\"",
    };
    format!("{} = {value}", option.name)
}
