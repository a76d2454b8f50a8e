//! The MCP handshake with several clients that share one program.
//!
//! The handshake with the program is done once. The program's result is the result of `initialize` for every client,
//! except for the revision, which is negotiated with each client, and the capabilities that a shared program cannot
//! provide.

use super::json::{is_string_ignoring_case, starts_ignoring_case};
use super::start::Members;

/// The revisions of MCP that begin with a handshake, from oldest to newest.
const REVISIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// The revision in the handshake with a program.
pub(super) const LATEST: &str = REVISIONS[REVISIONS.len() - 1];

/// Methods of the capabilities that are not announced. Their results (log messages, changes of a resource) would arrive
/// as notifications without a client.
const UNSHARED: [&str; 3] = ["logging/setLevel", "resources/subscribe", "resources/unsubscribe"];

/// The prefixes of methods for tasks. Every client could read and cancel the tasks of the others.
const TASKS: [&str; 2] = ["tasks/", "notifications/tasks/"];

/// Whether a method is not available to clients that share a program. `method` is the text in a message that
/// [`scan`](super::scan) accepted. Case and escapes are ignored.
///
/// ```
/// use wire::jsonrpc::is_unshared;
///
/// assert!(is_unshared(br#""Tasks/list""#) && is_unshared(br#""logging\/setlevel""#));
/// assert!(!is_unshared(br#""tools/call""#));
/// ```
#[must_use]
pub fn is_unshared(method: &[u8]) -> bool {
    UNSHARED.iter().any(|name| is_string_ignoring_case(method, name))
        || TASKS.iter().any(|start| starts_ignoring_case(method, start))
}

/// The result of a program's `initialize` for clients that share it. Capabilities whose notifications or tasks belong
/// to one client are removed.
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

/// The result of a program for a client with these parameters. A client with an older known revision receives its own
/// revision. Any other client receives the revision of the program, and may disconnect.
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

/// The known revision in this JSON string. Revisions are ordered by date.
fn revision(written: &[u8]) -> Option<&'static str> {
    let text = written.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    REVISIONS.into_iter().find(|revision| revision.as_bytes() == text)
}

fn member<'a>(object: &'a [u8], wanted: &[u8]) -> Option<&'a [u8]> {
    let (_, value) = Members::of(object).find(|(name, _)| object[name.clone()] == *wanted)?;
    Some(&object[value?])
}

/// Edits the members of an object. `of` receives each name as written and each value, and returns the new value, or
/// `None` to remove the member. A value that is not an object is returned unchanged.
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
