//! Targets that are made of what was asked: for redirects, and for servers.

use std::fmt;

use crate::host::is_clear;
use crate::{Path, PathFault};

/// A text in which `{host}`, `{path}`, `{rest}` and `{query}` stand for parts of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(Box<[u8]>),
    /// Without its port.
    Host,
    Path,
    /// What lies behind the prefix of the route.
    Rest,
    /// With its question mark; empty for none.
    Query,
}

/// Why a text is no template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplateFault {
    /// A brace is open at its end, or closed without having been opened.
    Brace,
    /// There is no such part.
    Unknown(String),
    /// It has a character that stands in no target.
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

/// What a template is filled with.
#[derive(Clone, Copy, Debug)]
pub struct Filling<'a> {
    /// The host as the request names it, without its port.
    pub host: &'a [u8],
    /// The path as it goes on.
    pub path: &'a [u8],
    /// What lies behind the prefix of the route.
    pub rest: &'a [u8],
    /// What stands behind the question mark, if there is one.
    pub query: Option<&'a [u8]>,
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    /// When it cannot become a target.
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

    /// Whether what it makes begins with a slash, whatever is asked.
    #[must_use]
    pub fn begins_with_slash(&self) -> bool {
        match self.parts.first() {
            Some(Part::Text(text)) => text.starts_with(b"/"),
            Some(Part::Path) => true,
            _ => false,
        }
    }

    /// Whether it says itself what becomes of the query.
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

    /// Whether it needs the prefix of its route.
    #[must_use]
    pub fn names_rest(&self) -> bool {
        self.parts.contains(&Part::Rest)
    }

    /// Appends what it makes of a request. Where a slash stands before a path there is one and not
    /// two: `//` at the beginning of a target would name a host, and the client would choose it.
    ///
    /// # Errors
    /// When the host that it names leads elsewhere, or is none: of `https://{host}{path}` the first segment of
    /// the path would become the host, and the client would choose it. `out` is then as it was.
    pub fn write(&self, filling: &Filling<'_>, out: &mut Vec<u8>) -> Result<(), PathFault> {
        if self.names_host() && !is_clear(filling.host) {
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

/// What a server is asked for in place of the path. The query stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rewrite {
    /// The first path takes the place of the second, which ends at a slash; neither has one at its
    /// end. A path that is not below it stays as it is.
    Prefix {
        /// What comes in.
        add: Box<[u8]>,
        /// What goes.
        strip: Box<[u8]>,
    },
    /// What this makes; it begins with a slash.
    To(Template),
}

impl Rewrite {
    /// Appends the target for the server: path and query.
    ///
    /// # Errors
    /// When the host becomes part of the path and would lead elsewhere. `out` is then as it was.
    pub fn write(
        &self,
        path: &Path<'_>,
        filling: &Filling<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), PathFault> {
        let start = out.len();
        match self {
            Self::Prefix { add, strip } if path.is_below(strip) => {
                let segments = strip.iter().filter(|&&byte| byte == b'/').count();
                out.extend_from_slice(add);
                out.extend_from_slice(path.behind(segments));
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
        let filling =
            Filling { host: b"example.org", path: path.bytes(), rest: path.behind(1), query };
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
            let filling = Filling { host, path: path.bytes(), rest: b"", query: None };
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
            let filling = Filling { host: b"a", path, rest: path, query: None };
            let mut out = b"Location: ".to_vec();
            template.write(&filling, &mut out).unwrap();
            assert_eq!(out, b"Location: /evil.org/x", "{text}");
        }
        let template = Template::parse("https://{host}{path}").unwrap();
        let path = b"/evil.org/x";
        for host in [&b""[..], b".", b"a;b"] {
            let filling = Filling { host, path, rest: path, query: None };
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
