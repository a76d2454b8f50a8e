//! Forbids async runtimes in the data plane, in manifests and in the dependency trees.
//!
//! The tree is requested for one package at a time. The tree of the whole workspace unifies features, and would show a
//! runtime everywhere or hide its source.

use super::arrows::{self, Room};
use super::finding::Finding;
use serde_json::Value;

/// Packages that are, or start, an async runtime.
const RUNTIMES: &[&str] = &[
    "async-executor",
    "async-global-executor",
    "async-std",
    "compio",
    "futures-executor",
    "glommio",
    "monoio",
    "smol",
    "tokio",
];

/// Crates that have a runtime on their own threads: the client of NATS, the admin address, and the database drivers,
/// each on the thread of its handler.
const OWNERS: &[&str] = &["cluster", "control", "database"];

/// Crates that have a runtime in their tree because they depend on one of these.
const ABOVE: &[&str] = &["roadstead"];

/// Returns the crates whose tree must not contain a runtime.
pub(super) fn rooms_without(metadata: &Value) -> Vec<Room> {
    let free =
        |room: &Room| !OWNERS.contains(&room.name.as_str()) && !ABOVE.contains(&room.name.as_str());
    arrows::rooms(metadata).into_iter().filter(free).collect()
}

/// Returns the findings in the tree of one crate: the output of `cargo tree --prefix none`, one package per line.
pub(super) fn check(room: &str, tree: &str) -> Vec<Finding> {
    let names = tree.lines().filter_map(|line| line.split_whitespace().next());
    let mut found: Vec<&str> = names.filter(|name| RUNTIMES.contains(name)).collect();
    found.sort_unstable();
    found.dedup();
    found
        .into_iter()
        .map(|name| {
            Finding::new(
                room,
                None,
                format!(
                    "has the runtime `{name}` in its tree; only {} may: slow work runs on threads \
                     and comes back as mail",
                    OWNERS.join(", ")
                ),
            )
        })
        .collect()
}

/// Returns findings for crates above an owner that depend on a runtime directly.
pub(super) fn named(metadata: &Value) -> Vec<Finding> {
    let mut findings = Vec::new();
    for room in arrows::rooms(metadata) {
        if OWNERS.contains(&room.name.as_str()) {
            continue;
        }
        for name in room.dependencies.iter().filter(|name| RUNTIMES.contains(&name.as_str())) {
            findings.push(Finding::new(
                &room.name,
                None,
                format!("names the runtime `{name}`; only {} may", OWNERS.join(", ")),
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_runtime_in_the_tree_is_found_once() {
        let tree = "roadstead-wire v0.1.0 (…)\nh2 v0.4.0\ntokio v1.54.0\nbytes v1.0.0\ntokio v1.54.0 (*)\n";
        let findings = check("wire", tree);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].to_string().starts_with("wire: has the runtime `tokio`"));
    }

    #[test]
    fn a_name_that_only_begins_like_one_passes() {
        assert_eq!(check("wire", "tokio-util v0.7.0\nsmol_str v0.3.0\n"), []);
    }

    #[test]
    fn main_may_not_name_a_runtime_itself() {
        let package = |name: &str| json!({ "name": name, "dependencies": [{ "name": "tokio" }] });
        let house = json!({ "packages": [package("roadstead"), package("roadstead-control")] });
        let findings = named(&house);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].place, "roadstead");
    }

    #[test]
    fn every_room_but_the_owners_is_held() {
        let package = |name: &str| json!({ "name": name, "dependencies": [] });
        let house = json!({ "packages": [
            package("roadstead"), package("roadstead-control"), package("roadstead-database"),
            package("roadstead-pool"),
        ]});
        let rooms = rooms_without(&house);
        assert_eq!(rooms.len(), 1);
        assert_eq!(rooms[0].name, "pool");
    }
}
