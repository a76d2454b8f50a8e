//! Targets that are built from parts of the request, for redirects and for servers.

use std::fmt;

use crate::host::is_safe_segment;
use crate::{Path, PathFault};

/// A text in which `{host}`, `{path}`, `{rest}` and `{query}` are replaced by parts of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(Box<[u8]>),
    /// The host without its port.
    Host,
    Path,
    /// The path after the prefix of the route.
    Rest,
    /// The query with its question mark. Empty if there is no query.
    Query,
}

/// Why a text is not a valid template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplateFault {
    /// A brace is not closed, or is closed without having been opened.
    Brace,
    /// The part in braces is unknown.
    Unknown(String),
    /// The text has a character that is not allowed in a target.
    Character(char),
}

impl fmt::Display for TemplateFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Brace => f.write_str("has a brace without its other one"),
            Self::Unknown(name) => write!(f, "has the unknown part `{{{name}}}`"),
            Self::Character(c) => write!(f, "has the character `{}`", c.escape_debug()),
        }
    }
}

/// The parts of a request for a template.
#[derive(Clone, Copy, Debug)]
pub struct TemplateValues<'a> {
    /// The host in the request, without its port.
    pub host: &'a [u8],
    /// The path for forwarding.
    pub path: &'a [u8],
    /// The path after the prefix of the route.
    pub rest: &'a [u8],
    /// The text after the question mark, if there is one.
    pub query: Option<&'a [u8]>,
}

impl Template {
    /// Parses a template.
    ///
    /// # Errors
    /// If no target can be built from the template.
    pub fn parse(text: &str) -> Result<Self, TemplateFault> {
        if let Some(c) = text.chars().find(|c| !c.is_ascii_graphic()) {
            return Err(TemplateFault::Character(c));
        }
        let mut parts = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let brace = rest.find(['{', '}']).unwrap_or(rest.len());
            let (front, behind) = rest.split_at(brace);
            if !front.is_empty() {
                parts.push(Part::Text(front.as_bytes().into()));
            }
            if behind.is_empty() {
                break;
            }
            let inner = behind.strip_prefix('{').ok_or(TemplateFault::Brace)?;
            let (name, behind) = inner.split_once('}').ok_or(TemplateFault::Brace)?;
            parts.push(match name {
                "host" => Part::Host,
                "path" => Part::Path,
                "rest" => Part::Rest,
                "query" => Part::Query,
                _ => return Err(TemplateFault::Unknown(name.to_owned())),
            });
            rest = behind;
        }
        Ok(Self { parts })
    }

    /// Whether all targets of the template begin with a slash.
    #[must_use]
    pub fn begins_with_slash(&self) -> bool {
        match self.parts.first() {
            Some(Part::Text(text)) => text.starts_with(b"/"),
            Some(Part::Path) => true,
            _ => false,
        }
    }

    /// Whether the template contains a query, or a place for the query of the request.
    #[must_use]
    pub fn names_query(&self) -> bool {
        self.parts.iter().any(|part| match part {
            Part::Text(text) => text.contains(&b'?'),
            part => *part == Part::Query,
        })
    }

    fn names_host(&self) -> bool {
        self.parts.contains(&Part::Host)
    }

    /// Whether the template uses the prefix of its route.
    #[must_use]
    pub fn names_rest(&self) -> bool {
        self.parts.contains(&Part::Rest)
    }

    /// Appends the target for a request. If both the text and the following path have a slash where they meet, only one
    /// slash is written: `//` at the beginning of a target would name a host, and the client would choose that host.
    ///
    /// # Errors
    /// If the template uses the host, and the host would change the path or is missing. In `https://{host}{path}`, the
    /// first segment of the path would become the host, and the client would choose that host. On an error, `out` is
    /// unchanged.
    pub fn write(&self, filling: &TemplateValues<'_>, out: &mut Vec<u8>) -> Result<(), PathFault> {
        if self.names_host() && !is_safe_segment(filling.host) {
            return Err(PathFault::Host);
        }
        for part in &self.parts {
            match part {
                Part::Text(text) => out.extend_from_slice(text),
                Part::Host => out.extend_from_slice(filling.host),
                Part::Path => write_path(filling.path, out),
                Part::Rest => write_path(filling.rest, out),
                Part::Query => write_query(filling.query, out),
            }
        }
        Ok(())
    }
}

fn write_path(path: &[u8], out: &mut Vec<u8>) {
    let doubled = out.last() == Some(&b'/') && path.first() == Some(&b'/');
    out.extend_from_slice(&path[usize::from(doubled)..]);
}

fn write_query(query: Option<&[u8]>, out: &mut Vec<u8>) {
    if let Some(query) = query {
        out.push(b'?');
        out.extend_from_slice(query);
    }
}

/// How the path is replaced in the request to the server. The query is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rewrite {
    /// Replaces the prefix `strip` by `add`. Neither has a slash at its end. A path that is not below `strip` is
    /// unchanged.
    Prefix {
        /// The new prefix.
        add: Box<[u8]>,
        /// The prefix to remove. It matches whole segments only.
        strip: Box<[u8]>,
    },
    /// The target of this template, which begins with a slash.
    To(Template),
}

impl Rewrite {
    /// Appends the target for the server: path and query.
    ///
    /// # Errors
    /// If the host becomes a part of the path and would change it. On an error, `out` is unchanged.
    pub fn write(
        &self,
        path: &Path<'_>,
        filling: &TemplateValues<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), PathFault> {
        let start = out.len();
        match self {
            Self::Prefix { add, strip } if path.is_below(strip) => {
                let segments = strip.iter().filter(|&&byte| byte == b'/').count();
                out.extend_from_slice(add);
                out.extend_from_slice(path.after_segments(segments));
            }
            Self::Prefix { .. } => out.extend_from_slice(path.bytes()),
            Self::To(template) => template.write(filling, out)?,
        }
        if out.len() == start {
            out.push(b'/');
        }
        write_query(filling.query, out);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(rewrite: &Rewrite, target: &str) -> String {
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query.as_bytes())),
            None => (target, None),
        };
        let mut scratch = Vec::new();
        let path = Path::read(path.as_bytes(), &mut scratch).unwrap();
        let filling = TemplateValues {
            host: b"example.org",
            path: path.bytes(),
            rest: path.after_segments(1),
            query,
        };
        let mut out = Vec::new();
        rewrite.write(&path, &filling, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_prefix_is_stripped_or_replaced_and_the_query_stays() {
        let prefix = |strip: &str, add: &str| Rewrite::Prefix {
            add: add.as_bytes().into(),
            strip: strip.as_bytes().into(),
        };
        for (strip, add, target, expected) in [
            ("/api", "", "/api/x?y=/api", "/x?y=/api"),
            ("/api", "", "/api", "/"),
            ("/api", "", "/api?", "/?"),
            ("/api", "", "/api/", "/"),
            ("/api", "", "/apis/x", "/apis/x"),
            ("/api", "/v2", "/api/x/", "/v2/x/"),
            ("/api", "/v2", "/api", "/v2"),
            ("/a/b", "/c", "/a;p/b/d;q", "/c/d;q"),
            ("", "/v2", "/x", "/v2/x"),
            ("", "/v2", "/", "/v2/"),
        ] {
            assert_eq!(rewritten(&prefix(strip, add), target), expected, "{strip} {add} {target}");
        }
    }

    #[test]
    fn a_template_takes_parts_of_the_request() {
        let to = |text: &str| Rewrite::To(Template::parse(text).unwrap());
        assert_eq!(rewritten(&to("/{host}{path}"), "/a/b?c"), "/example.org/a/b?c");
        assert_eq!(rewritten(&to("/v2{rest}"), "/a/b"), "/v2/b");
        assert_eq!(rewritten(&to("/v2{rest}"), "/a"), "/v2");
    }

    #[test]
    fn a_host_that_becomes_part_of_a_path_is_a_name() {
        let to = Rewrite::To(Template::parse("/{host}{path}").unwrap());
        let mut scratch = Vec::new();
        let path = Path::read(b"/x", &mut scratch).unwrap();
        let write = |host: &'static [u8]| {
            let filling = TemplateValues { host, path: path.bytes(), rest: b"", query: None };
            to.write(&path, &filling, &mut Vec::new())
        };
        for host in [&b""[..], b".", b"..", b"..;a", b".a", b"a;b"] {
            assert_eq!(write(host), Err(PathFault::Host), "{}", String::from_utf8_lossy(host));
        }
        assert_eq!((write(b"a.b"), write(b"[::1]")), (Ok(()), Ok(())));
    }

    #[test]
    fn no_client_chooses_the_host_of_a_redirect() {
        for (text, path) in [("/{rest}", "/evil.org/x"), ("/{path}", "/evil.org/x")] {
            let template = Template::parse(text).unwrap();
            let path = path.as_bytes();
            let filling = TemplateValues { host: b"a", path, rest: path, query: None };
            let mut out = b"Location: ".to_vec();
            template.write(&filling, &mut out).unwrap();
            assert_eq!(out, b"Location: /evil.org/x", "{text}");
        }
        let template = Template::parse("https://{host}{path}").unwrap();
        let path = b"/evil.org/x";
        for host in [&b""[..], b".", b"a;b"] {
            let filling = TemplateValues { host, path, rest: path, query: None };
            let mut out = b"Location: ".to_vec();
            assert_eq!(template.write(&filling, &mut out), Err(PathFault::Host));
            assert_eq!(out, b"Location: ");
        }
    }

    #[test]
    fn what_is_no_template_is_refused() {
        assert_eq!(Template::parse("/{"), Err(TemplateFault::Brace));
        assert_eq!(Template::parse("/}"), Err(TemplateFault::Brace));
        assert_eq!(Template::parse("/{path"), Err(TemplateFault::Brace));
        assert_eq!(Template::parse("/{user}"), Err(TemplateFault::Unknown("user".into())));
        assert_eq!(Template::parse("/\r\n"), Err(TemplateFault::Character('\r')));
        let template = Template::parse("https://{host}{path}{query}").unwrap();
        assert!(template.names_query() && !template.begins_with_slash() && !template.names_rest());
        assert!(Template::parse("{path}").unwrap().begins_with_slash());
    }
}
