//! Paths as less strict servers read them. A rule that protects a path must also protect every path that such a server
//! treats as the same path.
//!
//! In a loose reading, the whole path is decoded, letters have no case, and segments have no blanks around them, no
//! dots at their end, and are not empty. For servers that decode the path before they split off the query, an encoded
//! question mark or hash ends the path. Therefore a path with such a character has two readings.

use crate::path::is_below;
use crate::{PathRule, Pattern};

/// The loose readings of a path.
#[derive(Debug)]
pub(crate) struct Readings {
    whole: Vec<u8>,
    cut: Option<Vec<u8>>,
}

impl Readings {
    /// The readings of a path that is in the form for [strict comparison](crate::Path::plain).
    pub(crate) fn of(plain: &[u8]) -> Self {
        let decoded = decode(plain);
        let end = decoded.iter().position(|byte| matches!(byte, b'?' | b'#'));
        Self { whole: normalise(&decoded), cut: end.map(|end| normalise(&decoded[..end])) }
    }

    pub(crate) fn fit(&self, rule: &LenientRule) -> bool {
        let readings = [Some(&self.whole), self.cut.as_ref()];
        readings.into_iter().flatten().any(|reading| rule.fits(reading))
    }
}

/// The paths of a rule, for comparison with loose readings.
#[derive(Clone, Debug)]
pub(crate) enum LenientRule {
    All,
    Exact(Box<[u8]>),
    Below(Box<[u8]>),
    Pattern(Pattern),
}

impl LenientRule {
    pub(crate) fn of(rule: Option<&PathRule>) -> Self {
        match rule {
            None => Self::All,
            Some(PathRule::Exact(path)) => Self::Exact(normalise(&decode(path)).into()),
            Some(PathRule::Below(prefix)) => Self::Below(normalise(&decode(prefix)).into()),
            Some(PathRule::Pattern(pattern)) => {
                let text = decode(pattern.text()).to_ascii_lowercase();
                // Decoding does not make the pattern longer, so it is not too long.
                Self::Pattern(Pattern::new(&text).unwrap_or_else(|_| pattern.clone()))
            }
        }
    }

    fn fits(&self, reading: &[u8]) -> bool {
        match self {
            Self::All => true,
            Self::Exact(exact) => **exact == *reading,
            Self::Below(prefix) => is_below(reading, prefix),
            Self::Pattern(pattern) => {
                pattern.fits(reading) || pattern.fits(&[reading, b"/"].concat())
            }
        }
    }
}

/// Decodes all percent-encoded bytes.
fn decode(path: &[u8]) -> Vec<u8> {
    let (mut decoded, mut rest) = (Vec::with_capacity(path.len()), path);
    while let Some((&byte, behind)) = rest.split_first() {
        let hex = behind.get(..2).filter(|_| byte == b'%');
        let hex = hex.and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(value) => {
                decoded.push(value);
                rest = &behind[2..];
            }
            None => {
                decoded.push(byte);
                rest = behind;
            }
        }
    }
    decoded
}

/// Normalises a decoded path. The result has no slash at its end, so that `/` becomes empty.
fn normalise(decoded: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(decoded.len());
    for segment in decoded.split(|&byte| byte == b'/') {
        let begin = segment.iter().position(|&byte| byte != b' ').unwrap_or(segment.len());
        let end = segment.iter().rposition(|byte| !matches!(byte, b' ' | b'.'));
        let name = end.map_or(&[][..], |end| &segment[begin.min(end)..=end]);
        if !name.is_empty() {
            out.push(b'/');
            out.extend(name.iter().map(u8::to_ascii_lowercase));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(rule: &PathRule, path: &str) -> bool {
        Readings::of(path.as_bytes()).fit(&LenientRule::of(Some(rule)))
    }

    #[test]
    fn a_prefix_takes_what_some_server_takes_for_it() {
        let admin = PathRule::Below(b"/admin".as_slice().into());
        for path in [
            "/admin",
            "/admin/",
            "/admin/x",
            "/ADMIN",
            "/Admin/X",
            "/admin%3Fx",
            "/admin%23",
            "/admin.",
            "/admin..",
            "/admin%20",
            "/%20admin",
            "/admin%20./x",
            "/%20/admin",
            "/admin%3F/x",
            "/admin/%3F",
        ] {
            assert!(fits(&admin, path), "{path}");
        }
        for path in [
            "/",
            "/admins",
            "/admin-x",
            "/admin.x",
            "/x/admin",
            "/x%3F/admin",
            "/ad%20min",
            "/.admin",
        ] {
            assert!(!fits(&admin, path), "{path}");
        }
        assert!(fits(&PathRule::Below(b"".as_slice().into()), "/x"));
    }

    #[test]
    fn what_is_encoded_is_what_it_stands_for() {
        for (rule, path) in [
            ("/$metadata", "/%24metadata"),
            ("/@me", "/%40ME"),
            ("/a%40b", "/a@b"),
            ("/a:b", "/a%3Ab"),
            ("/100%25", "/100%25"),
        ] {
            assert!(fits(&PathRule::Exact(rule.as_bytes().into()), path), "{rule} {path}");
            assert!(fits(&PathRule::Below(rule.as_bytes().into()), path), "{rule} {path}");
        }
    }

    #[test]
    fn an_exact_path_and_a_pattern_do_not_mind_a_slash_at_the_end() {
        let exact = PathRule::Exact(b"/Admin".as_slice().into());
        assert!(fits(&exact, "/admin/") && fits(&exact, "/admin.") && !fits(&exact, "/admin/x"));
        let pattern = PathRule::Pattern(Pattern::new(b"/users/*/Private").unwrap());
        assert!(fits(&pattern, "/users/7/private/") && fits(&pattern, "/Users/x%3Fy/private"));
        assert!(fits(&pattern, "/users/7/private%23") && !fits(&pattern, "/users/7/public"));
        let below = PathRule::Pattern(Pattern::new(b"/docs/**").unwrap());
        assert!(fits(&below, "/docs/") && fits(&below, "/DOCS/x") && !fits(&below, "/docsx"));
        let root = PathRule::Exact(b"/".as_slice().into());
        assert!(fits(&root, "/") && fits(&root, "/%3Fx") && !fits(&root, "/x"));
    }
}
