//! Fields in which a request describes its client or the original request. Servers trust them, because proxies write
//! them. Only trusted proxies in front of this one may set them.
//!
//! Programs that receive fields in their environment cannot distinguish `X_Real_IP`, `X.Real.IP` and `X-Real-IP`. Such
//! spellings are always removed, even from trusted proxies.

use fields::Fields;

/// This name, and all names that begin with it and a dash.
const FORWARDED: &[u8] = b"x-forwarded";

/// Names by their first letters. The page about HTTP lists them.
const C: &[&[u8]] = &[b"cf-connecting-ip", b"cf-connecting-ipv6", b"client-ip"];
const F: &[&[u8]] = &[b"fastly-client-ip", b"fly-client-ip", b"forwarded", b"front-end-https"];
const P: &[&[u8]] = &[b"proxy-client-ip"];
const T: &[&[u8]] = &[b"true-client-ip"];
const W: &[&[u8]] = &[b"wl-proxy-client-ip"];
const X: &[&[u8]] = &[
    b"x-appengine-user-ip",
    b"x-azure-clientip",
    b"x-azure-socketip",
    b"x-client-ip",
    b"x-cluster-client-ip",
    b"x-envoy-external-address",
    b"x-host",
    b"x-http-host-override",
    b"x-original-forwarded-for",
    b"x-original-host",
    b"x-original-uri",
    b"x-original-url",
    b"x-originating-ip",
    b"x-proxyuser-ip",
    b"x-real-ip",
    b"x-remote-addr",
    b"x-remote-ip",
    b"x-rewrite-url",
    b"x-scheme",
    b"x-url-scheme",
];
/// Fields that delimit or describe a body. A server could mistake another spelling for one of them.
const OF_BODY: &[&[u8]] = &[b"content-length", b"content-type", b"transfer-encoding"];

/// The classification of a field name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claim {
    None,
    /// A field of the list, in its usual spelling.
    Plain,
    /// Another spelling of a field that only this proxy or a trusted proxy may write.
    Alike,
}

/// Removes the fields that describe the client. If the client is trusted (`trusted`), only unusual spellings are
/// removed.
pub(super) fn remove(fields: &mut Fields, trusted: bool) {
    let goes = |name: &[u8]| match claim(name) {
        Claim::None => false,
        Claim::Plain => !trusted,
        Claim::Alike => true,
    };
    if fields.iter().any(|field| goes(field.name)) {
        fields.retain(|field| !goes(field.name));
    }
}

#[inline]
fn claim(name: &[u8]) -> Claim {
    let Some(first) = name.first() else { return Claim::None };
    let list = match first | 0x20 {
        b'c' => C,
        b'f' => F,
        b'p' => P,
        b't' => T,
        b'w' => W,
        b'x' => X,
        _ => return Claim::None,
    };
    if let Some(found) = list.iter().find(|listed| is_alike(name, listed)) {
        return if name.eq_ignore_ascii_case(found) { Claim::Plain } else { Claim::Alike };
    }
    if let Some((front, behind)) = name.split_at_checked(FORWARDED.len())
        && is_alike(front, FORWARDED)
        && behind.first().is_none_or(|byte| !byte.is_ascii_alphanumeric())
    {
        let is_plain = front.eq_ignore_ascii_case(FORWARDED)
            && behind.iter().all(|byte| *byte == b'-' || byte.is_ascii_alphanumeric());
        return if is_plain { Claim::Plain } else { Claim::Alike };
    }
    let is_odd = |listed: &&[u8]| is_alike(name, listed) && !name.eq_ignore_ascii_case(listed);
    if OF_BODY.iter().any(is_odd) { Claim::Alike } else { Claim::None }
}

/// Whether a name is equal to `listed`, where each dash may be replaced by any character that is neither a letter nor a
/// digit.
fn is_alike(name: &[u8], listed: &[u8]) -> bool {
    let same = |one: u8, other: u8| match other {
        b'-' => !one.is_ascii_alphanumeric(),
        other => one.eq_ignore_ascii_case(&other),
    };
    name.len() == listed.len() && name.iter().zip(listed).all(|(one, other)| same(*one, *other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_of_the_lists_is_found_by_its_first_letter_and_stands_on_the_page() {
        let page = include_str!("../../../../docs/http1.md");
        for listed in [C, F, P, T, W, X].concat() {
            assert_eq!(claim(listed), Claim::Plain);
            assert_eq!(claim(&listed.to_ascii_uppercase()), Claim::Plain);
            let odd: Vec<u8> =
                listed.iter().map(|byte| if *byte == b'-' { b'_' } else { *byte }).collect();
            let expected = if odd == listed { Claim::Plain } else { Claim::Alike };
            assert_eq!(claim(&odd), expected);
            let name = String::from_utf8(listed.to_vec()).unwrap();
            let is_named = page.to_ascii_lowercase().contains(&format!("`{name}`"));
            assert!(is_named, "{name}");
        }
    }

    #[test]
    fn names_are_told_apart() {
        for (name, expected) in [
            ("X-Forwarded-For", Claim::Plain),
            ("x-forwarded", Claim::Plain),
            ("X-Forwarded-Any-Thing", Claim::Plain),
            ("X_Forwarded-For", Claim::Alike),
            ("X-Forwarded_For", Claim::Alike),
            ("X.Forwarded.For", Claim::Alike),
            ("X-Forwardedfor", Claim::None),
            ("X-Forward", Claim::None),
            ("X-Real-IPs", Claim::None),
            ("X-Requested-With", Claim::None),
            ("Content-Length", Claim::None),
            ("Content_Length", Claim::Alike),
            ("Transfer_Encoding", Claim::Alike),
            ("Content-Encoding", Claim::None),
            ("Cookie", Claim::None),
            ("", Claim::None),
        ] {
            assert_eq!(claim(name.as_bytes()), expected, "{name}");
        }
    }
}
