//! The options, and the questions asked of them.
//!
//! What it is: the table by section (`table`), of what `shape` says an option is. What it must never
//! know: a value that somebody wrote.

mod access_log;
mod addresses;
mod admin;
mod balance;
mod database;
mod declare;
mod listener;
mod pool;
mod program;
mod route;
mod servers;
mod shape;
mod shown;
mod table;

pub(crate) use shape::{Choice, Default, Kind, Of, Opt, Section, Short};
pub(crate) use shown::{Shows, is_name, is_table, shows};
pub(crate) use table::SECTIONS;

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
