//! The reference page, generated from the table of options.
//!
//! What it is: the table as Markdown. What it depends on: the table. What it must never depend on: anything outside the
//! table.

use crate::options::{Default, Kind, Opt, Reload, Section, Shorthand, Unit, WorkerKind};
use crate::table::{KIND_TABLES, KindTable, SECTIONS};
use crate::walk::range;

const HEAD: &str = "\
# Configuration reference

Made from the table of options in `settings`; do not edit it by hand.

A duration is a text like `\"500ms\"`, `\"2s\"`, `\"5m\"`, `\"1h\"` or `\"2d\"`. `\"off\"` disables an option that can be disabled. A size is a number of bytes or a text like
`\"64KiB\"`, `\"1MiB\"` or `\"2GiB\"`. An address is a text like `\"127.0.0.1:7000\"`, `\"[::1]:7000\"`, `\":7000\"` (every
address of the machine, IPv6 and IPv4), `\"localhost:7000\"`, `\"unix:/path\"` or
`\"fd:NAME\"` (a listening socket that systemd, or another process that starts the daemon, passes under this name); port 0 lets the system choose. Names of listeners
and pools are lower-case letters, digits, `_` and `-`, up to 64. Relative paths are relative to the directory in which the daemon was
started.
Unknown options are errors.

`include = \"conf.d/*.toml\"`, or a list of such paths, at the top of the file adds other files, in the order of their names. Paths are
relative to the file; `*` matches any characters of a name. A section must be in one file. Included files cannot include others.

Where one text, number, duration, size or word is expected, `\"env:NAME\"` stands for the value of the variable `NAME` of the daemon when the
file is read; a number or a size without a unit is written as in the file. Errors of the file name the variable and do
not show its value. This does not apply to items of lists and tables. Programs inherit none of the variables that
the file names, whether for a secret or for another option: `cwd = \"env:HOME\"` leaves programs without `HOME`, unless `env` passes it.

The column Reload says whether a running daemon applies a new value on SIGHUP or `roadstead ctl reload`. Where it
says no, a file with another value is rejected until the daemon is restarted.
";

/// Returns a Markdown page of every option: name, type, default, range and meaning.
#[must_use]
pub fn reference() -> String {
    let mut page = HEAD.to_owned();
    for section in SECTIONS {
        section_page(&mut page, section);
    }
    page
}

fn section_page(page: &mut String, section: &Section) {
    page.push_str(&format!("\n## `{}`\n\n{}\n", section.header(), section.about));
    let kinds = if section.name == "pool" { KIND_TABLES } else { &[] };
    let kind_of = |option: &Opt| kinds.iter().find(|kind| kind.of == option.of);
    table(
        page,
        section
            .options
            .iter()
            .filter(|option| kind_of(option).is_none_or(|kind| kind.short == option.name)),
        WorkerKind::Any,
    );
    for kind in kinds {
        kind_page(page, kind, section.options);
    }
    for option in section.options {
        if let Kind::Group(inner, short) = &option.kind {
            let short = match short {
                Shorthand::None | Shorthand::Off => "",
                Shorthand::Span => {
                    " A number sets both `min` and `max`; a text such as `\"2..20\"` sets each."
                }
            };
            let header = match kind_of(option) {
                Some(kind) => kind.header(),
                None => section.header(),
            };
            page.push_str(&format!(
                "\n### `{}` in `{header}`\n\n{}{short}\n",
                option.name, option.about
            ));
            table(page, inner.iter(), option.of);
        } else if let Kind::List(inner, alone) = &option.kind {
            page.push_str(&format!(
                "\n### One of `{}` in `{}`\n\nA table, or a text with only its `{alone}`.\n",
                option.name,
                kind_of(option).map_or_else(|| section.header(), KindTable::header)
            ));
            table(page, inner.iter(), option.of);
            inner_tables(page, option.name, inner);
        }
    }
    words(page, section.options);
}

/// Appends the tables of options that are inside a list of tables.
fn inner_tables(page: &mut String, list: &str, options: &[Opt]) {
    for option in options {
        if let Kind::Group(inner, _) | Kind::List(inner, _) = &option.kind {
            page.push_str(&format!(
                "\n### `{}` of one of `{list}`\n\n{}\n",
                option.name, option.about
            ));
            table(page, inner.iter(), option.of);
        }
    }
}

/// Appends the options of one kind of worker.
fn kind_page(page: &mut String, kind: &KindTable, options: &'static [Opt]) {
    let KindTable { main, short, .. } = kind;
    let also = match main == short {
        true => format!(
            "`{short}` and the other options except `max_concurrent` may also be written in `[pool.NAME]`."
        ),
        false => format!(
            "In the short form, `{short}` in `[pool.NAME]` replaces `{main}`, and all other options of this table are \
             written in `[pool.NAME]` too."
        ),
    };
    page.push_str(&format!(
        "\n### `{}`\n\nThe options of a {}. {also}\n",
        kind.header(),
        kind.of.title()
    ));
    let own = options.iter().filter(|option| option.of == kind.of);
    let named = own.map(|option| match option.name {
        name if name == *short => Opt { name: main, of: WorkerKind::Any, ..*option },
        name => {
            Opt { name: name.rsplit('.').next().unwrap_or(name), of: WorkerKind::Any, ..*option }
        }
    });
    let named: Vec<Opt> = named.collect();
    table(page, named.iter(), kind.of);
}

fn table<'a>(page: &mut String, options: impl Iterator<Item = &'a Opt>, of: WorkerKind) {
    page.push_str(
        "\n| Option | Type | Default | Range | Reload | Meaning |\n|---|---|---|---|---|---|\n",
    );
    for option in options {
        let meaning = match option.of {
            WorkerKind::Any => option.about.to_owned(),
            WorkerKind::Program => format!("Programs only. {}", option.about),
            WorkerKind::Database => format!("Databases only. {}", option.about),
            WorkerKind::Handler => format!("Handlers only. {}", option.about),
            WorkerKind::Servers => format!("Servers only. {}", option.about),
        };
        page.push_str(&format!(
            "| `{}` | {} | {} | {} | {} | {meaning} |\n",
            option.name,
            type_text(&option.kind),
            default_text(option, of),
            range(&option.kind).map_or_else(String::new, |(min, max)| format!("{min} – {max}")),
            reload_text(option.reload),
        ));
    }
}

/// Appends the meanings of the words of a section's options.
fn words(page: &mut String, options: &[Opt]) {
    for option in options {
        match &option.kind {
            Kind::Word(words) => {
                page.push_str(&format!("\nThe values of `{}`:\n\n", option.name));
                for word in *words {
                    page.push_str(&format!("- `\"{}\"`: {}\n", word.name, word.about));
                }
            }
            Kind::Group(inner, _) | Kind::List(inner, _) => words(page, inner),
            _ => {}
        }
    }
}

fn type_text(kind: &Kind) -> String {
    let text = match kind {
        Kind::Number { unit, zero, .. } => {
            let text = match unit {
                Unit::One => "whole number",
                Unit::Bytes => "size",
                Unit::Milliseconds => "duration",
            };
            return zero.map_or_else(|| text.to_owned(), |word| format!("{text} or `{word}`"));
        }
        Kind::Switch => "true or false",
        Kind::Processors => "word or list of numbers",
        Kind::Word(_) => "word",
        Kind::Text(form) => form.title,
        Kind::Names(_) => "list of names",
        Kind::Command => "list of texts",
        Kind::Variables => "table of texts",
        Kind::List(..) => "list of tables",
        Kind::Group(_, Shorthand::None) => "table",
        Kind::Group(_, Shorthand::Span) => "table, number or range",
        Kind::Group(_, Shorthand::Off) => "table or `\"off\"`",
    };
    text.to_owned()
}

fn default_text(option: &Opt, of: WorkerKind) -> String {
    match option.default {
        Default::Required => "required".to_owned(),
        Default::None => "none".to_owned(),
        Default::Inner => "see below".to_owned(),
        Default::Is(text) => format!("`{}`", as_written(&option.kind, text)),
        Default::ByWorker { program, database } => match of {
            WorkerKind::Program | WorkerKind::Servers => format!("`{program}`"),
            WorkerKind::Database => format!("`{database}`"),
            WorkerKind::Handler => format!("`{program}`"),
            WorkerKind::Any => format!("`{program}` for programs, `{database}` for databases"),
        },
        Default::Handlers { handler, other } => {
            let written = |text| format!("`{}`", as_written(&option.kind, text));
            match of {
                WorkerKind::Any => format!("{}; {} for handlers", written(other), written(handler)),
                WorkerKind::Handler => written(handler),
                WorkerKind::Program | WorkerKind::Database | WorkerKind::Servers => written(other),
            }
        }
    }
}

fn reload_text(reload: Reload) -> String {
    match reload {
        Reload::Live => "yes".to_owned(),
        Reload::Replace => "yes, with new programs".to_owned(),
        Reload::Restart => "no".to_owned(),
        Reload::RestartIf(case) => format!("no, if {case}"),
    }
}

fn as_written(kind: &Kind, text: &str) -> String {
    match kind {
        Kind::Switch => text.to_owned(),
        Kind::Number { unit: Unit::One, zero, .. } if *zero != Some(text) => text.to_owned(),
        _ => format!("\"{text}\""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(page: &str, options: &[Opt]) {
        for option in options {
            let name = option.name.rsplit('.').next().unwrap();
            let row = page
                .lines()
                .find(|line| line.starts_with(&format!("| `{name}` |")))
                .unwrap_or_else(|| panic!("{} has no row", option.name));
            assert_eq!(row.matches('|').count(), 7, "{row}");
            if let Kind::Group(inner, _) = &option.kind {
                rows(page, inner);
            }
        }
    }

    #[test]
    fn every_option_has_its_row() {
        let page = reference();
        for section in SECTIONS {
            assert!(page.contains(&format!("\n## `{}`\n", section.header())));
            rows(&page, section.options);
        }
        let row = "| `frame_max` | size | `\"64KiB\"` | 1B – 1GiB | no, if `protocol` is \
                   `datagrams` | Maximum size of a request, excluding framing. Default with `jsonrpc` and `content-length`: 16MiB. |";
        assert!(page.contains(row), "{page}");
    }
}
