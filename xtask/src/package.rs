//! The crates for other projects: what a release would upload, in the order of their dependencies.

use crate::shell::{self, Failure, Workspace};

/// The crates in the order in which they must be published: each after those that it depends on.
const PUBLISHED: &[&str] =
    &["block", "exchange", "listeners", "elastic", "event", "fields", "spawn", "wire", "pool"];

/// Packages the crates without compiling the packages.
pub(crate) fn check(workspace: &Workspace) -> Result<String, Failure> {
    package(workspace, &["--no-verify"])?;
    Ok(format!("{} crates", PUBLISHED.len()))
}

/// Packages the crates and compiles each package as its users would.
pub(crate) fn verify(workspace: &Workspace) -> Result<(), Failure> {
    package(workspace, &[])?;
    println!("publish in this order: {}", PUBLISHED.join(", "));
    Ok(())
}

fn package(workspace: &Workspace, arguments: &[&str]) -> Result<(), Failure> {
    let mut command = workspace.cargo(["package", "--quiet", "--allow-dirty"]);
    command.args(arguments);
    command.args(PUBLISHED.iter().map(|name| format!("--package=roadstead-{name}")));
    shell::run(command).map(drop)
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
}
