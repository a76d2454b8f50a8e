//! The crates for other projects: what a release would upload, in the order of their dependencies, and the oldest
//! compilers that compile it.

use crate::shell::{self, Failure, Workspace};
use std::collections::BTreeMap;
use std::process::Command;

/// The crates in the order in which they must be published: each after those that it depends on.
const PUBLISHED: &[&str] = &[
    "block",
    "exchange",
    "listeners",
    "elastic",
    "paths",
    "event",
    "fields",
    "spawn",
    "wire",
    "pool",
];

/// Packages the crates without compiling the packages.
pub(crate) fn check(workspace: &Workspace) -> Result<String, Failure> {
    package(workspace, &["--no-verify"])?;
    Ok(format!("{} crates", PUBLISHED.len()))
}

/// Packages the crates and compiles each package as its users would.
pub(crate) fn verify(workspace: &Workspace) -> Result<(), Failure> {
    package(workspace, &[])?;
    println!("rust-version: {}", check_rust_versions(workspace)?);
    println!("publish in this order: {}", PUBLISHED.join(", "));
    Ok(())
}

fn package(workspace: &Workspace, arguments: &[&str]) -> Result<(), Failure> {
    let mut command = workspace.cargo(["package", "--quiet", "--allow-dirty"]);
    command.args(arguments);
    command.args(PUBLISHED.iter().map(|name| format!("--package=roadstead-{name}")));
    shell::run(command).map(drop)
}

/// Compiles each crate with the compiler that its `rust-version` names, where that toolchain is installed. The note says
/// which were tested and which were not.
pub(crate) fn check_rust_versions(workspace: &Workspace) -> Result<String, Failure> {
    // Without rustup no other toolchain can be selected.
    let list = shell::command("rustup", ["toolchain", "list"]);
    let installed = shell::output(list).unwrap_or_default();
    let mut notes = Vec::new();
    for (version, names) in rust_versions(workspace)? {
        let Some(toolchain) = toolchain(&installed, &version) else {
            notes.push(format!(
                "{version} NOT tested: it is not installed (rustup toolchain install {version}.0 --profile minimal)"
            ));
            continue;
        };
        let mut command = Command::new("rustup");
        command.args(["run", toolchain, "cargo", "check", "--quiet", "--locked", "--all-features"]);
        command.arg("--target-dir").arg(workspace.target.join("rust-version"));
        command.args(names.iter().map(|name| format!("--package={name}")));
        command.current_dir(&workspace.root).env("CARGO_TERM_COLOR", "never");
        shell::run(command)?;
        notes.push(format!("{} compiled with {version}", names.len()));
    }
    Ok(notes.join(", "))
}

/// Returns each `rust-version` of the published crates with the packages that have it.
fn rust_versions(workspace: &Workspace) -> Result<BTreeMap<String, Vec<String>>, Failure> {
    let mut versions: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let packages = workspace.metadata["packages"].as_array();
    for name in PUBLISHED {
        let name = format!("roadstead-{name}");
        let found = packages.into_iter().flatten().find(|package| package["name"] == *name);
        let version = found.and_then(|package| package["rust_version"].as_str());
        let version = version.ok_or_else(|| Failure::new(format!("{name} has no rust-version")))?;
        versions.entry(version.to_owned()).or_default().push(name);
    }
    Ok(versions)
}

/// Returns the installed toolchain of this version.
fn toolchain<'a>(installed: &'a str, version: &str) -> Option<&'a str> {
    let names = installed.lines().filter_map(|line| line.split_whitespace().next());
    names.into_iter().find(|name| {
        let rest = name.strip_prefix(version);
        rest.is_some_and(|rest| rest.starts_with('-') || rest.starts_with(".0-"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    /// Returns the crates of this workspace that a crate depends on, except those that only its tests use.
    fn dependencies(name: &str) -> Vec<String> {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../crates/{name}/Cargo.toml"));
        let manifest = fs::read_to_string(path).unwrap();
        let (_, rest) = manifest.split_once("[dependencies]\n").unwrap();
        let section = rest.split("\n[").next().unwrap();
        let names = section.lines().filter_map(|line| line.split(['.', ' ']).next());
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
        names.filter(|it| !it.is_empty() && crates.join(it).is_dir()).map(str::to_owned).collect()
    }

    #[test]
    fn a_crate_is_published_after_its_dependencies() {
        for (place, name) in PUBLISHED.iter().enumerate() {
            for dependency in dependencies(name) {
                assert!(PUBLISHED[..place].contains(&&*dependency), "{name} needs {dependency}");
            }
        }
    }

    #[test]
    fn the_toolchain_of_a_version_is_its_first_release() {
        let list = "stable-x86_64-unknown-linux-gnu (active, default)\n1.88.1-x86_64\n1.88.0-x86_64\n1.8-x86_64\n";
        assert_eq!(toolchain(list, "1.88"), Some("1.88.0-x86_64"));
        assert_eq!(toolchain(list, "1.8"), Some("1.8-x86_64"));
        assert_eq!(toolchain(list, "1.89"), None);
    }
}
