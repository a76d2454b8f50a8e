//! Lookup of one name among twenty.

use std::hint::black_box;

use block::Slice;
use fields::{Fields, known};

use super::{alternate, heads, subjects, unit};

fn twenty() -> Fields {
    heads::adopt(&Slice::copy_of(&subjects::lines(&subjects::twenty())))
}

pub(crate) fn time(rounds: usize) {
    let ended = heads::ended(&subjects::lines(&subjects::twenty()));
    let (set, map, list) = (twenty(), heads::header_map(&ended), heads::strings(&ended));
    for (task, name) in [
        ("look-up of an absent known name", known::UPGRADE),
        ("look-up of a present known name, the 12th of 20", known::CONTENT_LENGTH),
        ("look-up of an absent name given as text", unlike(&set, false)),
        ("look-up of an absent name given as text whose bit is set", unlike(&set, true)),
    ] {
        let (set, map, list) = (set.clone(), map.clone(), list.clone());
        let theirs = http::HeaderName::from_static(name.as_str());
        let ours = if task.contains("text") {
            unit(move || black_box(black_box(&set).get(black_box(name.as_str()))).is_some())
        } else {
            unit(move || black_box(black_box(&set).get(&name)).is_some())
        };
        let map = if task.contains("text") {
            unit(move || black_box(black_box(&map).get(black_box(name.as_str()))).is_some())
        } else {
            unit(move || black_box(black_box(&map).get(&theirs)).is_some())
        };
        let walk = unit(move || {
            let fits = |(other, _): &&(String, String)| other.eq_ignore_ascii_case(name.as_str());
            black_box(black_box(&list).iter().find(fits)).is_some()
        });
        let subjects =
            vec![("Fields", ours), ("http::HeaderMap", map), ("Vec<(String, String)>", walk)];
        alternate(task, 1, rounds, subjects);
    }
}

/// A name that the set does not contain. If another name `shares` its bit, the lookup must scan the set.
fn unlike(set: &Fields, shares: bool) -> fields::Name {
    let names =
        ["x-a", "x-b", "x-c", "x-d", "x-e", "x-f", "x-g", "x-h", "x-i", "x-j", "x-k", "x-l"];
    let passes = |name: &&&str| set.may_have(**name) == shares && !set.contains(**name);
    fields::Name::new(names.iter().find(passes).copied().unwrap_or("x-none-shares"))
}

pub(crate) fn present() -> Box<dyn Fn()> {
    let set = twenty();
    Box::new(move || {
        black_box(black_box(&set).contains(black_box(&known::CONTENT_LENGTH)));
    })
}

/// Looks up an absent known name.
pub(crate) fn count(times: usize) {
    let set = twenty();
    let mut found = 0;
    for _ in 0..times {
        found += usize::from(black_box(&set).contains(&known::UPGRADE));
    }
    black_box(found);
}

/// Runs the loop of [`count`] without the lookup.
pub(crate) fn count_nothing(times: usize) {
    let set = twenty();
    let mut found = 0;
    for _ in 0..times {
        found += usize::from(black_box(&set).is_empty());
    }
    black_box(found);
}
