//! The stores that are compared. Each does the same work in the way that suits it best.

use std::collections::BTreeMap;

use fields::Fields;
use http::header::{HeaderMap, HeaderName, HeaderValue};

pub(crate) type Members = Vec<(Vec<u8>, Vec<u8>)>;

/// Twenty real header names with values of 22 bytes: 670 bytes of text, 750 as lines.
const NAMES: [&str; 20] = [
    "Host",
    "User-Agent",
    "Accept",
    "Accept-Language",
    "Accept-Encoding",
    "Connection",
    "Cookie",
    "Referer",
    "Cache-Control",
    "Origin",
    "Content-Type",
    "Content-Length",
    "If-None-Match",
    "X-Forwarded-For",
    "X-Request-Id",
    "Sec-Fetch-Dest",
    "Sec-Fetch-Mode",
    "Sec-Fetch-Site",
    "Priority",
    "DNT",
];

pub(crate) fn twenty() -> Members {
    let value = |index: usize| format!("value number {index:02} of 20.").into_bytes();
    NAMES.iter().enumerate().map(|(i, name)| (name.as_bytes().to_vec(), value(i))).collect()
}

pub(crate) fn hundred_tiny() -> Members {
    (0..100).map(|index| (format!("x-h-{index:04}").into_bytes(), b"v".to_vec())).collect()
}

pub(crate) fn lines(members: &Members) -> Vec<u8> {
    let line = |(name, value): &(Vec<u8>, Vec<u8>)| [name, &b": "[..], value, b"\r\n"].concat();
    members.iter().flat_map(line).collect()
}

/// A store that can be filled, kept and refilled.
pub(crate) trait Store: Sized + Send {
    const NAME: &'static str;
    fn fill(members: &Members) -> Self;
    fn refill(&mut self, members: &Members);
}

impl Store for Fields {
    const NAME: &'static str = "Fields";

    fn fill(members: &Members) -> Self {
        let mut set = Self::with_capacity(members.len(), 700);
        set.refill(members);
        set
    }

    fn refill(&mut self, members: &Members) {
        self.clear();
        for (name, value) in members {
            self.append(&name[..], &value[..]).expect("the fields are within the limits");
        }
    }
}

impl Store for HeaderMap {
    const NAME: &'static str = "http::HeaderMap";

    fn fill(members: &Members) -> Self {
        let mut map = Self::with_capacity(members.len());
        map.refill(members);
        map
    }

    fn refill(&mut self, members: &Members) {
        self.clear();
        for (name, value) in members {
            let name = HeaderName::from_bytes(name).expect("a token");
            self.append(name, HeaderValue::from_bytes(value).expect("a value"));
        }
    }
}

pub(crate) type Strings = Vec<(String, String)>;

impl Store for Strings {
    const NAME: &'static str = "Vec<(String, String)>";

    fn fill(members: &Members) -> Self {
        let mut list = Self::with_capacity(members.len());
        list.refill(members);
        list
    }

    fn refill(&mut self, members: &Members) {
        let text = |bytes: &[u8]| std::str::from_utf8(bytes).expect("text").to_owned();
        self.clear();
        self.extend(members.iter().map(|(name, value)| (text(name), text(value))));
    }
}

/// A map sorted by name. If several members have the same name, the last one is kept.
pub(crate) type Tree = BTreeMap<String, String>;

impl Store for Tree {
    const NAME: &'static str = "BTreeMap<String, String>";

    fn fill(members: &Members) -> Self {
        let mut map = Self::new();
        map.refill(members);
        map
    }

    fn refill(&mut self, members: &Members) {
        let text = |bytes: &[u8]| std::str::from_utf8(bytes).expect("text").to_owned();
        self.clear();
        self.extend(members.iter().map(|(name, value)| (text(name), text(value))));
    }
}

/// One allocation for each name and value, terminated by NUL. The list of pointers starts with ten and doubles. This is
/// the original before its rewrite.
pub(crate) struct Classic(Vec<[Box<[u8]>; 2]>);

impl Store for Classic {
    const NAME: &'static str = "one allocation a string";

    fn fill(members: &Members) -> Self {
        let mut set = Self(Vec::with_capacity(10));
        set.refill(members);
        set
    }

    fn refill(&mut self, members: &Members) {
        self.0.clear();
        let boxed = |bytes: &[u8]| {
            let mut text = Vec::with_capacity(bytes.len() + 1);
            text.extend_from_slice(bytes);
            text.push(0);
            text.into_boxed_slice()
        };
        self.0.extend(members.iter().map(|(name, value)| [boxed(name), boxed(value)]));
    }
}

/// One buffer of strings that are terminated by NUL, and a list of addresses that must be updated when the buffer
/// moves. Lengths are not stored. This is the original after its rewrite.
pub(crate) struct Reform {
    bytes: Vec<u8>,
    places: Vec<[usize; 2]>,
}

impl Reform {
    #[inline(always)]
    fn put(&mut self, bytes: &[u8]) -> usize {
        let before = self.bytes.as_ptr().addr();
        let offset = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.bytes.push(0);
        let after = self.bytes.as_ptr().addr();
        if before != after {
            for places in &mut self.places {
                *places = places.map(|place| place.wrapping_sub(before).wrapping_add(after));
            }
        }
        after + offset
    }
}

impl Store for Reform {
    const NAME: &'static str = "the reform's layout";

    fn fill(members: &Members) -> Self {
        let mut set = Self { bytes: Vec::with_capacity(200), places: Vec::with_capacity(10) };
        set.refill(members);
        set
    }

    fn refill(&mut self, members: &Members) {
        self.bytes.clear();
        self.places.clear();
        for (name, value) in members {
            let name = self.put(name);
            let shift = self.bytes.as_ptr().addr();
            let value = self.put(value);
            let name = name.wrapping_sub(shift).wrapping_add(self.bytes.as_ptr().addr());
            self.places.push([name, value]);
        }
    }
}
