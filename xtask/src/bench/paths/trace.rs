//! Lists the files of the data plane that a request passes through, and counts the lookups of its exchange.

use crate::bench::callgrind::{self, Profile};
use crate::shell::{Failure, Workspace, command};
use std::collections::{BTreeMap, BTreeSet};

/// The crates of the data plane.
const CRATES: [&str; 6] = ["flow", "frontend", "engine", "backend", "gateway", "observe"];
/// The traced paths: one for each kind of path of a request.
const TRACED: [&str; 3] = ["small", "line", "row"];
/// The numbers of requests of the two runs whose difference counts.
const REQUESTS: [u32; 2] = [64, 192];
/// Functions that look up an exchange by its id.
const LOOKUPS: [&str; 4] = [
    "exchanges::Exchanges::close",
    "exchanges::Exchanges::close_if",
    "exchanges::Exchanges::get_mut",
    "exchanges::Exchanges::remove",
];

pub(super) fn print(workspace: &Workspace, only: Option<&str>) -> Result<(), Failure> {
    let program = workspace.traced_example("roadstead-gateway", "paths")?;
    for name in TRACED.into_iter().filter(|name| only.is_none_or(|only| only == *name)) {
        let count = |requests: u32| {
            let out = workspace.target.join(format!("trace-{name}-{requests}.out"));
            callgrind::profile(&command(&program, [name, &requests.to_string()]), &out)
        };
        let [few, many] = REQUESTS;
        let one = count(few)?.of_one_more(count(many)?, f64::from(many - few));
        let (files, lookups) = read(&one);
        println!("{name}: {} files, the exchange is looked up {lookups:.1} times", files.len());
        files.iter().for_each(|file| println!("  {file}"));
    }
    Ok(())
}

/// Returns the files of the data plane with at least one instruction per request, and the lookups of an exchange.
fn read(one: &Profile) -> (BTreeSet<String>, f64) {
    let mut files: BTreeMap<String, f64> = BTreeMap::new();
    for (name, cost) in &one.files {
        if let Some(file) = of_data_plane(name) {
            *files.entry(file).or_default() += cost;
        }
    }
    let used = files.into_iter().filter(|(_, cost)| *cost >= 1.0).map(|(file, _)| file);
    let lookups = one.calls.iter().filter(|(name, _)| finds_an_exchange(name));
    (used.collect(), lookups.map(|(_, calls)| calls).sum())
}

/// Returns the path of a file below `crates/`, if it belongs to the data plane.
fn of_data_plane(name: &str) -> Option<String> {
    let (_, inside) = name.rsplit_once("crates/")?;
    let (krate, file) = inside.split_once("/src/")?;
    CRATES.contains(&krate).then(|| format!("{krate}/src/{file}"))
}

/// Returns whether a function looks up an exchange. Names may end in a hash.
fn finds_an_exchange(name: &str) -> bool {
    let name = name.rsplit_once("::h").filter(|(_, hash)| hash.len() == 16).map_or(name, |it| it.0);
    LOOKUPS.iter().any(|lookup| name.ends_with(lookup))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_data_plane_and_lookups_are_counted() {
        let of = |costs: &[(&str, f64)]| {
            costs.iter().map(|(name, cost)| ((*name).to_owned(), *cost)).collect()
        };
        let profile = Profile {
            files: of(&[
                ("/x/crates/engine/src/engine.rs", 4.0),
                ("/x/crates/engine/src/exchanges.rs", 30.0),
                ("/x/crates/engine/src/rare.rs", 0.5),
                ("/x/crates/pool/src/pool.rs", 9.0),
            ]),
            calls: of(&[
                ("engine::exchanges::Exchanges::get_mut::h0123456789abcdef", 3.0),
                ("engine::engine::Engine::end", 7.0),
            ]),
        };
        let files = ["engine/src/engine.rs", "engine/src/exchanges.rs"].map(str::to_owned);
        assert_eq!(read(&profile), (files.into(), 3.0));
    }
}
