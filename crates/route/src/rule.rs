//! The conditions of a route: hosts, paths, methods, fields.

use fields::{AsName, Fields, Tag, Value};

use crate::path::is_below;
use crate::{Host, Pattern};

/// The parts of a request that routes are matched with.
#[derive(Clone, Copy, Debug)]
pub struct RouteRequest<'a> {
    /// The host of the request, with its port if it has one. Empty if the request has no host.
    pub host: &'a [u8],
    /// The method of the request.
    pub method: &'a [u8],
    /// The path of the request, in the form for [comparison](crate::Path::plain). `None` for `OPTIONS *`.
    pub path: Option<&'a [u8]>,
    /// The header fields of the request.
    pub fields: &'a Fields,
}

/// The paths that a route matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathRule {
    /// This path only.
    Exact(Box<[u8]>),
    /// This path and all paths below it. It has no slash at its end, so that `/` is empty.
    Below(Box<[u8]>),
    /// All paths that match the pattern.
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
            // For a pattern: its literal beginning must continue after the prefix, because `/api*` also matches
            // `/apix`, which is not below `/api`.
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

/// The maximum length of a field name, in bytes.
const NAME_MAX: usize = 256;

/// A field name, with the tag for its lookup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FieldName {
    text: Box<[u8]>,
    tag: Tag,
}

impl FieldName {
    /// Creates a field name. `None` if the text is not a valid field name.
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

/// The condition for a field. If a request has several fields with the name, one of them must satisfy it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldCondition {
    /// The field is present.
    Present,
    /// The value is equal to this text, byte by byte.
    Equal(Box<[u8]>),
    /// The value matches this pattern. `*` does not match slashes, as in a path.
    Pattern(Pattern),
}

/// A condition for a header field of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldRule {
    name: FieldName,
    condition: FieldCondition,
}

impl FieldRule {
    /// Creates a condition for the field with this name. `None` if the name is not a valid field name.
    #[must_use]
    pub fn new(name: &str, condition: FieldCondition) -> Option<Self> {
        Some(Self { name: FieldName::new(name)?, condition })
    }

    fn holds(&self, fields: &Fields) -> bool {
        match &self.condition {
            FieldCondition::Present => fields.contains(&self.name),
            FieldCondition::Equal(text) => self.any(fields, |value| value == &**text),
            FieldCondition::Pattern(pattern) => self.any(fields, |value| pattern.fits(value)),
        }
    }

    fn any(&self, fields: &Fields, fits: impl Fn(&[u8]) -> bool) -> bool {
        fields.get_all(&self.name).filter_map(Value::bytes).any(fits)
    }

    /// Whether `self` is true for all requests for which `other` is true.
    fn follows_from(&self, other: &Self) -> bool {
        self.name.is(&other.name)
            && match (&self.condition, &other.condition) {
                (FieldCondition::Present, _) => true,
                (FieldCondition::Pattern(pattern), FieldCondition::Equal(text)) => {
                    pattern.fits(text)
                }
                (one, other) => one == other,
            }
    }
}

/// The conditions of a route. An empty list matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// The host must be one of these.
    pub hosts: Vec<Host>,
    /// The path must match. A request without a path (`OPTIONS *`) matches only `None`.
    pub path: Option<PathRule>,
    /// The method must be one of these. HEAD matches where GET matches.
    pub methods: Vec<Box<str>>,
    /// The request must satisfy all of these conditions.
    pub fields: Vec<FieldRule>,
}

impl Rule {
    /// Whether a request matches. The host is not compared, because the list of routes was looked up by host.
    pub(crate) fn fits(&self, asked: &RouteRequest<'_>) -> bool {
        self.takes_method(asked.method)
            && self.path.as_ref().is_none_or(|rule| asked.path.is_some_and(|path| rule.fits(path)))
            && self.fields.iter().all(|rule| rule.holds(asked.fields))
    }

    /// Whether a request matches on a server that ignores the case of methods. Host and path are not compared.
    pub(crate) fn fits_lenient_except_path(&self, asked: &RouteRequest<'_>) -> bool {
        let method = asked.method.to_ascii_uppercase();
        (self.takes_method(asked.method) || self.takes_method(&method))
            && self.fields.iter().all(|rule| rule.holds(asked.fields))
    }

    fn takes_method(&self, method: &[u8]) -> bool {
        let is_named = |method: &[u8]| self.methods.iter().any(|one| one.as_bytes() == method);
        self.methods.is_empty() || is_named(method) || method == b"HEAD" && is_named(b"GET")
    }

    /// Whether each request that matches `other` also matches this rule. May return false if this cannot be decided.
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
