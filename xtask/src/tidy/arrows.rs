//! Which crate may depend on which: the table of dependencies, compared with `cargo metadata`.

use super::finding::Finding;
use serde_json::Value;

/// Each crate with the crates that it may depend on, including its tests. Every crate must be listed here. A new crate
/// is added here and in `ARCHITECTURE.md`. xtask depends on no other crate, so that it builds when they do not.
const ARROWS: &str = "\
block:
fields: block
exchange: block fields
elastic:
cluster: exchange fields
route: fields
paths:
event: block paths
listeners:
settings: exchange paths route
spawn: listeners
wire: block exchange fields
pool: elastic exchange
sql: exchange fields
database: block elastic exchange fields listeners paths sql
observe: exchange fields
flow: block event exchange fields observe wire
frontend: event exchange fields flow observe route settings wire
backend: event exchange fields flow observe settings spawn wire
engine: exchange fields flow observe pool settings wire
gateway: backend block elastic engine event exchange flow frontend observe paths pool route settings spawn wire
control: event exchange gateway route settings
simulate: block event exchange gateway settings spawn wire
roadstead: block cluster control database elastic event exchange fields gateway listeners paths pool settings spawn wire
toys: backend elastic engine event exchange flow frontend gateway observe pool settings spawn wire
xtask:
";

/// Returns the lines of the table.
fn arrows() -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    let lines = ARROWS.lines().filter_map(|line| line.split_once(':'));
    lines.map(|(name, allowed)| (name, allowed.split_whitespace().collect()))
}

/// A package of the workspace.
#[derive(Debug)]
pub(super) struct Room {
    pub(super) package: String,
    pub(super) name: String,
    /// The names of the packages that it depends on, of all kinds.
    pub(super) dependencies: Vec<String>,
}

/// Returns findings for dependencies that the table does not allow, and for crates that it does not list.
pub(super) fn check(metadata: &Value) -> Vec<Finding> {
    let rooms = rooms(metadata);
    let ours = |dependency: &str| rooms.iter().any(|room| room.package == dependency);
    let mut findings = Vec::new();
    for room in &rooms {
        let Some((_, allowed)) = arrows().find(|(name, _)| *name == room.name) else {
            findings.push(Finding::new(
                &room.name,
                None,
                "a room without arrows: list it in xtask/src/tidy/arrows.rs and ARCHITECTURE.md",
            ));
            continue;
        };
        for dependency in room.dependencies.iter().filter(|dependency| ours(dependency)) {
            let target = room_name(dependency);
            if target != room.name && !allowed.contains(&target) {
                findings.push(Finding::new(
                    &room.name,
                    None,
                    format!("must not name `{target}`; it may name: {}", list(&allowed)),
                ));
            }
        }
    }
    findings
}

fn list(names: &[&str]) -> String {
    if names.is_empty() { "no other room".to_owned() } else { names.join(", ") }
}

/// Returns all packages of the workspace.
pub(super) fn rooms(metadata: &Value) -> Vec<Room> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    packages
        .filter_map(|package| {
            let name = package["name"].as_str()?;
            let dependencies = package["dependencies"].as_array().into_iter().flatten();
            Some(Room {
                package: name.to_owned(),
                name: room_name(name).to_owned(),
                dependencies: dependencies
                    .filter_map(|dependency| dependency["name"].as_str())
                    .map(str::to_owned)
                    .collect(),
            })
        })
        .collect()
}

fn room_name(package: &str) -> &str {
    package.strip_prefix("roadstead-").unwrap_or(package)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn metadata(arrows: &[(&str, &[&str])]) -> Value {
        let packages: Vec<Value> = arrows
            .iter()
            .map(|(name, targets)| {
                let targets: Vec<Value> =
                    targets.iter().map(|target| json!({ "name": target, "kind": null })).collect();
                json!({ "name": name, "dependencies": targets })
            })
            .collect();
        json!({ "packages": packages })
    }

    #[test]
    fn allowed_arrows_and_strangers_pass() {
        let house = metadata(&[
            ("roadstead-block", &[]),
            ("roadstead-event", &["roadstead-block", "rustix"]),
            ("roadstead", &["roadstead-event", "roadstead"]),
        ]);
        assert_eq!(check(&house), []);
    }

    #[test]
    fn an_arrow_against_the_map_is_found() {
        let house = metadata(&[("roadstead-pool", &["roadstead-event"]), ("roadstead-event", &[])]);
        let findings = check(&house);
        assert_eq!(findings.len(), 1);
        assert_eq!(
            findings[0].to_string(),
            "pool: must not name `event`; it may name: elastic, exchange"
        );
    }

    #[test]
    fn a_room_without_arrows_is_found() {
        let findings = check(&metadata(&[("roadstead-cellar", &[])]));
        assert!(findings[0].text.contains("room without arrows"), "{findings:?}");
    }

    #[test]
    fn the_table_has_no_circle() {
        // Each crate may only depend on crates above it in the table.
        for (index, (room, targets)) in arrows().enumerate() {
            for target in targets {
                let place = arrows().position(|(name, _)| name == target);
                assert!(place.is_some_and(|place| place < index), "{room} -> {target}");
            }
        }
    }
}
