//! Heads: parsed and stored, eight lookups, sent; and sent again after two fields were removed and two were added.

use std::hint::black_box;

use block::Slice;
use bytes::Bytes;
use fields::{AsName, Fields, Name, Tag, http1, known};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};

use super::subjects::{self, Members};
use super::{Run, alternate, unit};

/// The lookups of a proxy for each head: three names that most heads have, and five that most heads do not have.
const ASKED: [Name; 8] = [
    known::HOST,
    known::CONNECTION,
    known::CONTENT_LENGTH,
    known::UPGRADE,
    known::TE,
    known::EXPECT,
    known::TRANSFER_ENCODING,
    known::TRAILER,
];

pub(crate) fn httparse(lines: &[u8]) -> usize {
    let mut headers = [httparse::EMPTY_HEADER; 128];
    let parsed = httparse::parse_headers(lines, &mut headers).expect("a head").unwrap();
    black_box(parsed.1.len())
}

/// The lines with the terminating empty line, as httparse expects them.
pub(crate) fn ended(lines: &[u8]) -> Vec<u8> {
    [lines, b"\r\n"].concat()
}

pub(crate) fn adopt(lines: &Slice) -> Fields {
    let mut set = Fields::pooled_headers();
    http1::adopt(&mut set, lines.clone()).expect("a head");
    set
}

pub(crate) fn header_map(ended: &[u8]) -> HeaderMap {
    let mut headers = [httparse::EMPTY_HEADER; 128];
    let (_, parsed) = httparse::parse_headers(ended, &mut headers).expect("a head").unwrap();
    let mut map = HeaderMap::with_capacity(parsed.len());
    for header in parsed {
        let name = HeaderName::from_bytes(header.name.as_bytes()).expect("a token");
        map.append(name, HeaderValue::from_bytes(header.value).expect("a value"));
    }
    map
}

/// The method of hyper: the values are slices of the received block.
pub(crate) fn header_map_sliced(ended: &Bytes) -> HeaderMap {
    let mut headers = [httparse::EMPTY_HEADER; 128];
    let (_, parsed) = httparse::parse_headers(ended, &mut headers).expect("a head").unwrap();
    let mut map = HeaderMap::with_capacity(parsed.len());
    for header in parsed {
        let name = HeaderName::from_bytes(header.name.as_bytes()).expect("a token");
        let value = HeaderValue::from_maybe_shared(ended.slice_ref(header.value));
        map.append(name, value.expect("a value"));
    }
    map
}

pub(crate) fn strings(ended: &[u8]) -> Vec<(String, String)> {
    let mut headers = [httparse::EMPTY_HEADER; 128];
    let (_, parsed) = httparse::parse_headers(ended, &mut headers).expect("a head").unwrap();
    let text = |bytes| std::str::from_utf8(bytes).expect("text").to_owned();
    parsed.iter().map(|header| (header.name.to_owned(), text(header.value))).collect()
}

pub(crate) fn ask_fields(set: &Fields) -> usize {
    ASKED.iter().filter(|name| black_box(set.get(*name)).is_some()).count()
}

pub(crate) fn ask_map(map: &HeaderMap) -> usize {
    let asked = [
        header::HOST,
        header::CONNECTION,
        header::CONTENT_LENGTH,
        header::UPGRADE,
        header::TE,
        header::EXPECT,
        header::TRANSFER_ENCODING,
        header::TRAILER,
    ];
    asked.iter().filter(|name| black_box(map.get(*name)).is_some()).count()
}

pub(crate) fn ask_strings(list: &[(String, String)]) -> usize {
    let has = |name: &&Name| {
        let name = name.as_name();
        let found = list.iter().find(|(other, _)| other.as_bytes().eq_ignore_ascii_case(name));
        black_box(found).is_some()
    };
    ASKED.iter().filter(has).count()
}

pub(crate) fn send_map(map: &HeaderMap, out: &mut Vec<u8>) {
    out.clear();
    for (name, value) in map {
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            out.extend_from_slice(part);
        }
    }
}

pub(crate) fn send_strings(list: &[(String, String)], out: &mut Vec<u8>) {
    out.clear();
    for (name, value) in list {
        for part in [name.as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            out.extend_from_slice(part);
        }
    }
}

pub(crate) fn send_fields(set: &Fields, out: &mut Vec<u8>) {
    out.clear();
    http1::encode(set, out).expect("lines");
}

pub(crate) fn edit_fields(set: &mut Fields) {
    set.remove(&known::CONNECTION);
    set.remove(&known::COOKIE);
    set.append("Via", "1.1 roadstead").expect("the fields are within the limits");
    set.append("X-Forwarded-Proto", "https").expect("the fields are within the limits");
}

pub(crate) fn edit_map(map: &mut HeaderMap) {
    map.remove(header::CONNECTION);
    map.remove(header::COOKIE);
    map.append(header::VIA, HeaderValue::from_static("1.1 roadstead"));
    let name = HeaderName::from_static("x-forwarded-proto");
    map.append(name, HeaderValue::from_static("https"));
}

pub(crate) fn edit_strings(list: &mut Vec<(String, String)>) {
    list.retain(|(name, _)| !name.eq_ignore_ascii_case("connection"));
    list.retain(|(name, _)| !name.eq_ignore_ascii_case("cookie"));
    list.push(("Via".to_owned(), "1.1 roadstead".to_owned()));
    list.push(("X-Forwarded-Proto".to_owned(), "https".to_owned()));
}

pub(crate) fn time(rounds: usize) {
    head(rounds, "20 headers", &subjects::twenty());
    head(rounds, "9 headers", &subjects::twenty()[..9].to_vec());
    head(rounds, "100 tiny headers", &subjects::hundred_tiny());
    send(rounds);
    edit(rounds);
}

fn head(rounds: usize, name: &str, members: &Members) {
    let lines = subjects::lines(members);
    let (ended, slice) = (ended(&lines), Slice::copy_of(&lines));
    let shared = Bytes::from(ended.clone());
    let task = format!("T2 parse and store, {name}");
    let (a, b, c, d) = (ended.clone(), slice.clone(), ended.clone(), ended.clone());
    let (e, f) = (shared.clone(), members.clone());
    let subjects: Vec<(&str, Run)> = vec![
        ("Fields", unit(move || black_box(adopt(&b)).give_back())),
        ("httparse alone, nothing stored", unit(move || httparse(&a))),
        ("the tags of its names alone", unit(move || tags(&f))),
        ("http::HeaderMap", unit(move || header_map(&c))),
        ("http::HeaderMap, values sliced", unit(move || header_map_sliced(&e))),
        ("Vec<(String, String)>", unit(move || strings(&d))),
    ];
    alternate(&task, 1, rounds, subjects);

    let task = format!("T2 parse, store, 8 look-ups, send, {name}");
    let c = ended.clone();
    let fields = unit(move || {
        let set = adopt(&slice);
        let mut out = Vec::with_capacity(2048);
        black_box(ask_fields(&set));
        send_fields(&set, black_box(&mut out));
        set.give_back();
    });
    let map = |map: HeaderMap| {
        let mut out = Vec::with_capacity(2048);
        black_box(ask_map(&map));
        send_map(&map, black_box(&mut out));
    };
    let list = unit(move || {
        let list = strings(&ended);
        let mut out = Vec::with_capacity(2048);
        black_box(ask_strings(&list));
        send_strings(&list, black_box(&mut out));
    });
    let subjects: Vec<(&str, Run)> = vec![
        ("Fields", fields),
        ("http::HeaderMap", unit(move || map(header_map(&c)))),
        ("http::HeaderMap, values sliced", unit(move || map(header_map_sliced(&shared)))),
        ("Vec<(String, String)>", list),
    ];
    alternate(&task, 1, rounds, subjects);
}

/// The cost that lazy computation of tags could save.
fn tags(members: &Members) {
    for (name, _) in members {
        black_box(Tag::of(name));
    }
}

fn send(rounds: usize) {
    let lines = subjects::lines(&subjects::twenty());
    let (set, map) = (adopt(&Slice::copy_of(&lines)), header_map(&ended(&lines)));
    let same = set.clone();
    let subjects: Vec<(&str, Run)> = vec![
        ("Fields, as one slice", unit(move || http1::io_slices(&set).count())),
        (
            "Fields, copied",
            unit(move || {
                let mut out = Vec::with_capacity(2048);
                send_fields(&same, black_box(&mut out));
            }),
        ),
        (
            "http::HeaderMap",
            unit(move || {
                let mut out = Vec::with_capacity(2048);
                send_map(&map, black_box(&mut out));
            }),
        ),
    ];
    alternate("T3 send unchanged, 20 headers", 1, rounds, subjects);
}

fn edit(rounds: usize) {
    let lines = subjects::lines(&subjects::twenty());
    let ended = ended(&lines);
    let (set, map, list) = (adopt(&Slice::copy_of(&lines)), header_map(&ended), strings(&ended));
    let (copied, bare) = (set.clone(), set.clone());
    let subjects: Vec<(&str, Run)> = vec![
        (
            "Fields, as slices",
            unit(move || {
                let mut set = set.clone();
                edit_fields(&mut set);
                black_box(http1::io_slices(&set).count())
            }),
        ),
        ("Fields, only the copy of the set", unit(move || bare.clone())),
        (
            "Fields, copied",
            unit(move || {
                let mut set = copied.clone();
                edit_fields(&mut set);
                let mut out = Vec::with_capacity(2048);
                send_fields(&set, black_box(&mut out));
            }),
        ),
        (
            "http::HeaderMap",
            unit(move || {
                let mut map = map.clone();
                edit_map(&mut map);
                let mut out = Vec::with_capacity(2048);
                send_map(&map, black_box(&mut out));
            }),
        ),
        (
            "Vec<(String, String)>",
            unit(move || {
                let mut list = list.clone();
                edit_strings(&mut list);
                let mut out = Vec::with_capacity(2048);
                send_strings(&list, black_box(&mut out));
            }),
        ),
    ];
    alternate("T3 copy the set, 2 out, 2 in, send", 1, rounds, subjects);
}

pub(crate) fn parse_fields() -> Box<dyn Fn()> {
    let slice = Slice::copy_of(&subjects::lines(&subjects::twenty()));
    Box::new(move || black_box(adopt(&slice)).give_back())
}

pub(crate) fn parse_alone() -> Box<dyn Fn()> {
    let ended = ended(&subjects::lines(&subjects::twenty()));
    Box::new(move || {
        httparse(&ended);
    })
}
