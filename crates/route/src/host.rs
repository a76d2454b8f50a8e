//! Host names and how they are matched. Case and port are ignored.

use std::fmt;
use std::net::Ipv6Addr;

/// The maximum length of a name that is looked up, in bytes. DNS allows 253. A longer name matches no route for named
/// hosts.
pub const HOST_MAX: usize = 253;

/// The hosts of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// This host, in lower case and without a port. An IPv6 address is in canonical form.
    Exact(Box<str>),
    /// All subdomains of this host, written `*.example.org`. The host itself is not included.
    Below(Box<str>),
}

/// Why a text is not a valid host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostFault {
    /// The text is empty, too long, or has a character that is not allowed in hosts.
    Name,
    /// The text has a port.
    Port,
    /// A star is not the whole first label.
    Star,
}

impl fmt::Display for HostFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Name => "is no host",
            Self::Port => "has a port, which is not compared",
            Self::Star => "has a star elsewhere than before its first dot",
        })
    }
}

impl Host {
    /// Parses `example.org`, `*.example.org`, `127.0.0.1` or `[::1]`.
    ///
    /// # Errors
    /// If the text has none of these forms.
    pub fn parse(text: &str) -> Result<Self, HostFault> {
        let lower = text.to_ascii_lowercase();
        let (name, below) = match lower.strip_prefix("*.") {
            Some(name) => (name, true),
            None => (lower.as_str(), false),
        };
        if name.contains('*') {
            return Err(HostFault::Star);
        }
        if let Some(address) = address_in(name.as_bytes())
            && !below
        {
            return Ok(Self::Exact(format!("[{address}]").into()));
        }
        if name.contains(':') {
            return Err(HostFault::Port);
        }
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
        let labels = name.split('.').all(|label| !label.is_empty());
        if name.len() > HOST_MAX || !labels || !name.bytes().all(allowed) {
            return Err(HostFault::Name);
        }
        let name = name.into();
        Ok(if below { Self::Below(name) } else { Self::Exact(name) })
    }

    /// Whether `self` matches every host that `other` matches.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Exact(one), Self::Exact(other)) => one == other,
            (Self::Below(one), Self::Exact(other)) => is_under(other, one),
            (Self::Below(one), Self::Below(other)) => one == other || is_under(other, one),
            (Self::Exact(_), Self::Below(_)) => false,
        }
    }
}

/// Whether `name` is a subdomain of `parent`.
fn is_under(name: &str, parent: &str) -> bool {
    name.strip_suffix(parent).is_some_and(|front| front.len() > 1 && front.ends_with('.'))
}

/// The host of a request without its port and without dots at its end.
#[must_use]
pub fn host_name(host: &[u8]) -> &[u8] {
    let end = match host.first() {
        Some(b'[') => host.iter().position(|&byte| byte == b']').map(|place| place + 1),
        _ => host.iter().position(|&byte| byte == b':'),
    };
    let mut name = &host[..end.unwrap_or(host.len())];
    while let Some(shorter) = name.strip_suffix(b".") {
        name = shorter;
    }
    name
}

/// Parses an IPv6 address in brackets. It has several spellings.
pub(crate) fn address_in(name: &[u8]) -> Option<Ipv6Addr> {
    let address = name.strip_prefix(b"[")?.strip_suffix(b"]")?;
    std::str::from_utf8(address).ok()?.parse().ok()
}

/// Whether a host can be used as a segment of a path: it is not empty, does not begin with a dot (which could change
/// the path) and has no parameters.
pub(crate) fn is_safe_segment(name: &[u8]) -> bool {
    !matches!(name.first(), None | Some(b'.')) && !name.contains(&b';')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_and_the_root_are_not_part_of_a_name() {
        for (host, name) in [
            ("example.org", "example.org"),
            ("example.org:8080", "example.org"),
            ("example.org.:80", "example.org"),
            ("example.org..", "example.org"),
            ("...", ""),
            ("[::1]:80", "[::1]"),
            ("[::1]", "[::1]"),
            ("", ""),
        ] {
            assert_eq!(host_name(host.as_bytes()), name.as_bytes());
        }
    }

    #[test]
    fn hosts_are_names_addresses_or_all_below_a_name() {
        assert_eq!(Host::parse("Example.ORG"), Ok(Host::Exact("example.org".into())));
        assert_eq!(Host::parse("*.Example.org"), Ok(Host::Below("example.org".into())));
        assert_eq!(Host::parse("[::1]"), Ok(Host::Exact("[::1]".into())));
        assert_eq!(Host::parse("[0:0:0::0001]"), Ok(Host::Exact("[::1]".into())));
        for (text, fault) in [
            ("", HostFault::Name),
            ("a..b", HostFault::Name),
            ("a/b", HostFault::Name),
            ("a:80", HostFault::Port),
            ("[::1]:80", HostFault::Port),
            ("*", HostFault::Star),
            ("a.*.b", HostFault::Star),
            ("*a.b", HostFault::Star),
        ] {
            assert_eq!(Host::parse(text), Err(fault), "{text}");
        }
    }
}
