//! Heads: parsed and stored, asked eight times, sent; and sent again with two out and two in.

use std::hint::black_box;

use block::Slice;
use fields::{AsName, Fields, Name, http1, known};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};

/// What a proxy asks each head: three that most have, and five that most have not.
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

/// The lines with the empty one behind, as httparse wants them.
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
    set.append("Via", "1.1 roadstead");
    set.append("X-Forwarded-Proto", "https");
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
