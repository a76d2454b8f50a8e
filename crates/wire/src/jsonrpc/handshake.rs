//! The handshake of MCP, where several clients share one program.
//!
//! The program is greeted once. What it answered is the answer to every client's `initialize`, but for
//! the revision, which is negotiated with each client, and for what a shared program cannot do.

use super::json::{begins_alike, is_alike};
use super::start::Members;

/// Revisions of MCP that begin with a handshake, the oldest first.
const REVISIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// The revision in which a program is greeted.
pub(super) const LATEST: &str = REVISIONS[REVISIONS.len() - 1];

/// Methods that belong to the capabilities which are not announced: what they ask for (the level of a log,
/// news of a resource) would come as notifications that name no client.
const UNSHARED: [&str; 3] = ["logging/setLevel", "resources/subscribe", "resources/unsubscribe"];

/// How methods begin that are about tasks. The tasks of one client could be read and cancelled by every other.
const TASKS: [&str; 2] = ["tasks/", "notifications/tasks/"];

/// Whether this method, as it is written in a message that [`scan`](super::scan) accepted, is not for clients
/// that share a program. Neither the case of its letters nor escapes in it make a difference.
///
/// ```
/// use wire::jsonrpc::is_unshared;
///
/// assert!(is_unshared(br#""Tasks/list""#) && is_unshared(br#""logging\/setlevel""#));
/// assert!(!is_unshared(br#""tools/call""#));
/// ```
#[must_use]
pub fn is_unshared(method: &[u8]) -> bool {
    UNSHARED.iter().any(|name| is_alike(method, name))
        || TASKS.iter().any(|start| begins_alike(method, start))
}

/// The result of a program's `initialize` as clients that share it get it: without the capabilities
/// whose notifications or tasks belong to one client.
///
/// ```
/// use wire::jsonrpc::shared_result;
///
/// let result = br#"{"capabilities":{"logging":{},"resources":{"subscribe":true,"listChanged":true}}}"#;
/// assert_eq!(shared_result(result), br#"{"capabilities":{"resources":{"listChanged":true}}}"#);
/// ```
#[must_use]
pub fn shared_result(result: &[u8]) -> Vec<u8> {
    edit(result, |name, value| match name {
        b"\"capabilities\"" => Some(edit(value, |name, value| match name {
            b"\"logging\"" | b"\"tasks\"" => None,
            b"\"resources\"" => {
                Some(edit(value, |name, value| (name != b"\"subscribe\"").then(|| value.to_vec())))
            }
            _ => Some(value.to_vec()),
        })),
        _ => Some(value.to_vec()),
    })
}

/// A program's result for a client that asked with these parameters. A client of an older revision is
/// answered in its own; any other is told the revision of the program, and may leave.
#[must_use]
pub fn result_for(result: &[u8], params: &[u8]) -> Vec<u8> {
    let asked = member(params, b"\"protocolVersion\"").and_then(revision);
    edit(result, |name, value| {
        let spoken = if name == b"\"protocolVersion\"" { revision(value) } else { None };
        let told = match (asked, spoken) {
            (Some(asked), Some(spoken)) if asked < spoken => format!("\"{asked}\"").into_bytes(),
            _ => value.to_vec(),
        };
        Some(told)
    })
}

/// The revision that is written here, if it is one of them. Their order is that of their dates.
fn revision(written: &[u8]) -> Option<&'static str> {
    let text = written.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    REVISIONS.into_iter().find(|revision| revision.as_bytes() == text)
}

fn member<'a>(object: &'a [u8], wanted: &[u8]) -> Option<&'a [u8]> {
    let (_, value) = Members::of(object).find(|(name, _)| object[name.clone()] == *wanted)?;
    Some(&object[value?])
}

/// An object with other members: each by its name as it is written, and its value; none: it goes. What is
/// no object stays what it is.
fn edit(object: &[u8], of: impl Fn(&[u8], &[u8]) -> Option<Vec<u8>>) -> Vec<u8> {
    if object.first() != Some(&b'{') {
        return object.to_vec();
    }
    let mut out = vec![b'{'];
    for (name, value) in Members::of(object) {
        let (name, Some(value)) = (&object[name], value) else { break };
        let Some(value) = of(name, &object[value]) else { continue };
        if out.len() > 1 {
            out.push(b',');
        }
        out.extend_from_slice(name);
        out.push(b':');
        out.extend_from_slice(&value);
    }
    out.push(b'}');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(result: &str, params: &str) -> String {
        String::from_utf8(result_for(result.as_bytes(), params.as_bytes())).unwrap()
    }

    #[test]
    fn a_client_is_told_its_own_revision_if_it_is_older_than_that_of_the_program() {
        let result = r#"{"protocolVersion":"2025-06-18","serverInfo":{"name":"x"}}"#;
        let of = |version: &str| result.replace("2025-06-18", version);
        let asks =
            |version: &str| format!(r#"{{"clientInfo":{{}}, "protocolVersion" : "{version}"}}"#);
        for (asked, expected) in [
            ("2024-11-05", "2024-11-05"),
            ("2025-03-26", "2025-03-26"),
            ("2025-06-18", "2025-06-18"),
            ("2025-11-25", "2025-06-18"),
            ("1.0", "2025-06-18"),
            ("2025-01-01", "2025-06-18"),
        ] {
            assert_eq!(told(result, &asks(asked)), of(expected), "{asked}");
        }
        for params in ["", "[1]", "{}", r#"{"protocolVersion":7}"#] {
            assert_eq!(told(result, params), result);
        }
        assert_eq!(told(&of("next"), &asks("2024-11-05")), of("next"));
    }

    #[test]
    fn capabilities_of_one_client_are_not_announced_to_several() {
        let shared = |result: &str| String::from_utf8(shared_result(result.as_bytes())).unwrap();
        for (result, expected) in [
            (
                r#"{ "capabilities" : { "logging" : {}, "tools":{"listChanged":true} }, "x":[1,{"logging":2}] }"#,
                r#"{"capabilities":{"tools":{"listChanged":true}},"x":[1,{"logging":2}]}"#,
            ),
            (
                r#"{"capabilities":{"resources":{"subscribe":true},"prompts":{}}}"#,
                r#"{"capabilities":{"resources":{},"prompts":{}}}"#,
            ),
            (r#"{"capabilities":null}"#, r#"{"capabilities":null}"#),
            ("{}", "{}"),
            ("7", "7"),
        ] {
            assert_eq!(shared(result), expected);
        }
    }
}
