//! Mutants: each kind of mutant is detected by some seed.
//!
//! | mutant | the property that it breaks |
//! |---|---|
//! | `arrival-order` | versions decide |
//! | `epoch-ignored` | revisions are compared within one history of the bucket |
//! | `loser-keeps` | one target per client |
//! | `digest-without-targets` | contents that differ have different digests |
//! | `marker-deletes` | the binding of a client that is active at a daemon is not lost |
//! | `no-sweep` | a deletion during a gap takes effect |

#![expect(clippy::disallowed_types, reason = "a mutant needs its own process")]

use std::process::Command;

use exchange::mutant::Mutant;

/// A mutant is selected for a whole process, so each is tested in a separate process.
#[test]
fn every_mutant_is_found() {
    let found = std::thread::scope(|scope| {
        let run = |mutant: &'static Mutant| scope.spawn(move || (mutant, found(*mutant)));
        let running: Vec<_> = Mutant::CLUSTER.iter().map(run).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    for (mutant, (is_found, said)) in found {
        assert!(is_found, "{mutant:?} went unnoticed: {said}");
        println!("{:<24} {said}", mutant.as_str());
    }
}

fn found(mutant: Mutant) -> (bool, String) {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "all_daemons_agree_after_faults", "--nocapture"])
        .env("ROADSTEAD_PLANT", mutant.as_str())
        .env("CLUSTER_FIRST", "yes")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    let seen: Vec<_> = said.lines().skip_while(|line| !line.starts_with("seed ")).take(2).collect();
    (!child.status.success() && seen.len() == 2, seen.join(" "))
}
