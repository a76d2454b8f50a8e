//! What errors may show of the value of an option.
//!
//! A new option shows nothing, unless its kind says that it holds no secret.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::options::{Kind, Opt, Shows};
use crate::table::{INCLUDE, KIND_TABLES, SECTIONS};

/// Returns what an error may show of the value of an option of this name. For an unknown option, nothing is shown.
pub(crate) fn shows(name: &str) -> Shows {
    let short = KIND_TABLES.iter().find(|kind| kind.main == name).map(|kind| kind.short);
    match OPTIONS.get(name).or_else(|| OPTIONS.get(short?)) {
        _ if name == INCLUDE => Shows::Whole,
        Some((shows, _)) => *shows,
        None => Shows::Nothing,
    }
}

/// Whether an option of this name is a table of variables or header fields.
pub(crate) fn is_table(name: &str) -> bool {
    OPTIONS.get(name).is_some_and(|(_, is_table)| *is_table)
}

/// Whether an option or a section of this name exists.
pub(crate) fn is_name(name: &str) -> bool {
    let is_main = KIND_TABLES.iter().any(|kind| kind.main == name);
    let known = name == INCLUDE || is_main || OPTIONS.contains_key(name);
    known || SECTIONS.iter().any(|section| section.name == name)
}

/// What may be shown, by the name of the option. Options with the same name show only what each of them may show.
static OPTIONS: LazyLock<BTreeMap<&'static str, (Shows, bool)>> = LazyLock::new(|| {
    let mut all = BTreeMap::new();
    SECTIONS.iter().for_each(|section| add(section.options, &mut all));
    all
});

fn add(options: &'static [Opt], all: &mut BTreeMap<&'static str, (Shows, bool)>) {
    for option in options {
        let (shows, is_table) = all.entry(option.name).or_default();
        *shows = of(option).max(*shows);
        *is_table |= matches!(option.kind, Kind::Variables);
        add(option.inner(), all);
    }
}

/// What an error may show of the value of this option.
pub(crate) fn of(option: &Opt) -> Shows {
    match option.kind {
        Kind::Number { .. } | Kind::Switch | Kind::Processors | Kind::Word(_) | Kind::Group(..) => {
            Shows::Whole
        }
        Kind::Text(form) => form.shows,
        Kind::Names(shows) => shows,
        Kind::Command => Shows::Program,
        Kind::Variables => Shows::Place,
        // A text in such a list is the value of one option.
        Kind::List(inner, alone) => {
            inner.iter().find(|one| one.name == alone).map_or(Shows::Nothing, of)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;
    use crate::source::Source;

    /// Calls `see` with each option set to this value, within the tables that contain it.
    fn each(options: &'static [Opt], value: &str, see: &mut dyn FnMut(&'static Opt, String)) {
        for option in options {
            see(option, format!("{} = {value}", option.name));
            match option.kind {
                Kind::Group(inner, _) => each(inner, value, &mut |found, text| {
                    see(found, format!("{}.{text}", option.name));
                }),
                Kind::List(inner, _) => each(inner, value, &mut |found, text| {
                    see(found, format!("{} = [{{ {text} }}]", option.name));
                }),
                _ => {}
            }
        }
    }

    #[test]
    fn no_error_shows_the_value_of_an_option_that_may_be_a_secret() {
        let mut count = 0;
        for value in [
            r#"["HUNTER2_HUNTER2", 5]"#,
            r#"["HUNTER2_HUNTER2"]"#,
            r#"{ a = "HUNTER2_HUNTER2", b = 5 }"#,
            r#""HUNTER2_HUNTER2{\u0000""#,
            r#""\u0048UNTER2_HUNTER2\n{""#,
            r#""HUNTER2_HUNTER2"#,
            "HUNTER2_HUNTER2",
            "\"\"\"\nHUNTER2_HUNTER2\\q\"\"\"",
        ] {
            for section in SECTIONS {
                each(section.options, value, &mut |option, text| {
                    if !matches!(shows(option.name), Shows::Nothing | Shows::Place) {
                        return;
                    }
                    let name = if section.named { ".a" } else { "" };
                    let text = format!(
                        "[{}{name}]
{text}
",
                        section.name
                    );
                    let source = Source { name: "x.toml".to_owned(), text: text.clone() };
                    let Err(errors) = parse(&source, &|_| None) else { return };
                    let mut shown = errors.to_string();
                    for error in &errors {
                        shown.extend([error.message.as_str()]);
                        shown.extend(error.expected.as_deref());
                        shown.extend(error.suggestion.as_deref());
                    }
                    assert!(
                        !shown.contains("HUNTER2"),
                        "{text}
{shown}"
                    );
                    count += 1;
                });
            }
        }
        assert!(count > 200, "{count}");
    }

    #[test]
    fn every_table_of_variables_is_known() {
        fn tables(options: &'static [Opt], found: &mut Vec<&'static str>) {
            for option in options {
                match option.kind {
                    Kind::Variables => found.push(option.name),
                    Kind::Group(inner, _) | Kind::List(inner, _) => tables(inner, found),
                    _ => {}
                }
            }
        }
        let mut found = Vec::new();
        SECTIONS.iter().for_each(|section| tables(section.options, &mut found));
        found.sort_unstable();
        found.dedup();
        assert_eq!(found, ["append", "env", "set"]);
        assert!(found.into_iter().all(is_table));
    }
}
