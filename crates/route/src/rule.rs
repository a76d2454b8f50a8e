//! What a route is for: hosts, paths, methods, fields.

use fields::{AsName, Fields, Tag, Value};

use crate::path::is_below;
use crate::{Host, Pattern};

/// What is asked of the table.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The host that the request is for, with its port if it has one; empty for none.
    pub host: &'a [u8],
    /// Its method.
    pub method: &'a [u8],
    /// Its path as it is [compared](crate::Path::plain); none of `OPTIONS *`.
    pub path: Option<&'a [u8]>,
    /// Its fields.
    pub fields: &'a Fields,
}

/// Which paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathRule {
    /// This one.
    Exact(Box<[u8]>),
    /// This one and all below it; without a slash at its end, so that `/` is empty.
    Below(Box<[u8]>),
    /// All that fit.
    Pattern(Pattern),
}

impl PathRule {
    fn fits(&self, path: &[u8]) -> bool {
        match self {
            Self::Exact(exact) => **exact == *path,
            Self::Below(prefix) => is_below(path, prefix),
            Self::Pattern(pattern) => pattern.fits(path),
        }
    }

    fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (_, Self::Exact(path)) => self.fits(path),
            // Nothing but the prefix itself is sure to be below it.
            (Self::Below(one), Self::Below(other)) => is_below(other, one),
            (Self::Below(prefix), Self::Pattern(pattern)) => {
                let text = pattern.text();
                let front = text.iter().position(|&byte| byte == b'*').unwrap_or(text.len());
                is_below(&text[..front], prefix) && front > prefix.len()
            }
            (Self::Pattern(one), Self::Pattern(other)) => one == other,
            _ => false,
        }
    }
}

/// Bytes of the name of a field.
const NAME_MAX: usize = 256;

/// The name of a field, with what it is found by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FieldName {
    text: Box<[u8]>,
    tag: Tag,
}

impl FieldName {
    /// None when there can be no field of that name.
    pub(crate) fn new(text: &str) -> Option<Self> {
        let is_token =
            |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        let fits = (1..=NAME_MAX).contains(&text.len()) && text.bytes().all(is_token);
        fits.then(|| Self { text: text.as_bytes().into(), tag: Tag::of(text.as_bytes()) })
    }

    pub(crate) fn is(&self, other: &Self) -> bool {
        self.text.eq_ignore_ascii_case(&other.text)
    }
}

impl AsName for FieldName {
    fn as_name(&self) -> &[u8] {
        &self.text
    }

    fn tag(&self) -> Tag {
        self.tag
    }
}

/// What a field must be. Where there are several of its name, one is enough.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// There.
    Present,
    /// This, byte by byte.
    Equal(Box<[u8]>),
    /// One that fits; in a value, `*` stops at a slash as it does in a path.
    Pattern(Pattern),
}

/// A field that a request must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldRule {
    name: FieldName,
    wanted: Wanted,
}

impl FieldRule {
    /// The field of this name; none when there can be no field of that name.
    #[must_use]
    pub fn new(name: &str, wanted: Wanted) -> Option<Self> {
        Some(Self { name: FieldName::new(name)?, wanted })
    }

    fn holds(&self, fields: &Fields) -> bool {
        match &self.wanted {
            Wanted::Present => fields.contains(&self.name),
            Wanted::Equal(text) => self.any(fields, |value| value == &**text),
            Wanted::Pattern(pattern) => self.any(fields, |value| pattern.fits(value)),
        }
    }

    fn any(&self, fields: &Fields, fits: impl Fn(&[u8]) -> bool) -> bool {
        fields.get_all(&self.name).filter_map(Value::bytes).any(fits)
    }

    /// Whether this holds wherever `other` does.
    fn follows_from(&self, other: &Self) -> bool {
        self.name.is(&other.name)
            && match (&self.wanted, &other.wanted) {
                (Wanted::Present, _) => true,
                (Wanted::Pattern(pattern), Wanted::Equal(text)) => pattern.fits(text),
                (one, other) => one == other,
            }
    }
}

/// What a route is for. An empty list asks for nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// Any of these hosts.
    pub hosts: Vec<Host>,
    /// These paths. A request without one, `OPTIONS *`, fits where nothing is said of it.
    pub path: Option<PathRule>,
    /// Any of these methods; HEAD goes where GET goes.
    pub methods: Vec<Box<str>>,
    /// All of these fields.
    pub fields: Vec<FieldRule>,
}

impl Rule {
    /// Whether a request fits, its host aside: that was looked up.
    pub(crate) fn fits(&self, asked: &Asked<'_>) -> bool {
        self.takes_method(asked.method)
            && self.path.as_ref().is_none_or(|rule| asked.path.is_some_and(|path| rule.fits(path)))
            && self.fields.iter().all(|rule| rule.holds(asked.fields))
    }

    /// Whether a request fits, its host and path aside, for a server that does not mind the case of methods.
    pub(crate) fn fits_loosely_but_for_its_path(&self, asked: &Asked<'_>) -> bool {
        let method = asked.method.to_ascii_uppercase();
        (self.takes_method(asked.method) || self.takes_method(&method))
            && self.fields.iter().all(|rule| rule.holds(asked.fields))
    }

    fn takes_method(&self, method: &[u8]) -> bool {
        let is_named = |method: &[u8]| self.methods.iter().any(|one| one.as_bytes() == method);
        self.methods.is_empty() || is_named(method) || method == b"HEAD" && is_named(b"GET")
    }

    /// Whether each request that fits `other` fits this too, as far as that can be told.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        let hosts = self.hosts.is_empty()
            || !other.hosts.is_empty()
                && other.hosts.iter().all(|host| self.hosts.iter().any(|one| one.covers(host)));
        let path = match (&self.path, &other.path) {
            (None, _) => true,
            (Some(one), Some(other)) => one.covers(other),
            (Some(_), None) => false,
        };
        let methods = self.methods.is_empty()
            || !other.methods.is_empty()
                && other.methods.iter().all(|method| self.takes_method(method.as_bytes()));
        let fields = |one: &FieldRule| other.fields.iter().any(|other| one.follows_from(other));
        hosts && path && methods && self.fields.iter().all(fields)
    }
}
