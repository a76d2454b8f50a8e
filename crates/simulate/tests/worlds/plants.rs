//! Mutants: each kind of mutant is detected by some seed.
//!
//! | mutant | the property that it breaks |
//! |---|---|
//! | `ack-before-commit` | an acknowledged row is committed |
//! | `stale-id` | no reply reaches another client |
//! | `early-ok` | an acknowledgement comes from the worker |
//! | `shifted-reply` | replies are in the order of the requests |
//! | `unchecked` | a program with surplus output answers no other client |
//! | `kept-link` | no client gets the rest of another client's reply |
//! | `short-body` | an incomplete body is not marked as complete |
//! | `asked-twice` | a request that may have an effect is given to one server |
//! | `gave-up` | no request fails without need |
//! | `not-held` | a sender that is faster than its receiver is paused |
//! | `quiet-cut` | a tunnel that was cut does not look like one that ended |
//! | `miscount` | a body that the gateway forwards without looking at its bytes arrives completely |
//! | `not-reset` | no part of one client's request is in another's |
//! | `trusting` | a server that sends unrequested bytes gets one request per connection |
//! | `last-words` | the output of a program before its end is read |
//! | `lost-slot` | a request that waits at the owner shard gets the slot that another shard frees |
//! | `lost-edge` | arrived bytes are read, even if the kernel reports them once |
//! | `lost-room` | output is sent when there is room again |
//! | `stale-token` | a report of a closed stream is ignored |
//! | `lost-wake` | mail to a sleeping loop wakes it |

use std::process::Command;

use simulate::{Job, Mutant, Options, replay};

use super::{SEEDS, run_all};

#[test]
fn defects_under_the_loop_are_found() {
    for mutant in Mutant::ALL {
        found(*mutant, 1);
    }
}

/// Nothing else wakes a shard that has only mail from another shard.
#[test]
fn a_lost_wake_up_between_shards_is_found() {
    found(Mutant::LostWake, 2);
}

fn found(mutant: Mutant, shards: usize) {
    let reports = run_all(SEEDS, shards, Some(mutant), true, Job::Gateway);
    let found = reports.iter().find(|report| !report.violations.is_empty());
    let found = found.unwrap_or_else(|| panic!("{mutant:?} went unnoticed by {SEEDS:?}"));
    println!("{:<18} seed {:>4}: {}", mutant.as_str(), found.seed, found.violations[0]);
    let options = Options { seed: found.seed, shards, mutant: Some(mutant), trace: true };
    println!("{:<18} {}", "", replay(options, Job::Gateway));
}

const HOSTED: &str = "nobody_gets_another_body_or_fails_without_need_before_programs_in_any_world";

/// These mutants are selected for a whole process, so each is tested in a separate process.
#[test]
fn defects_of_the_data_plane_are_found() {
    let gateway = exchange::mutant::Mutant::ALL.iter();
    let http = exchange::mutant::Mutant::SERVERS.iter();
    let gateway = gateway.map(|mutant| (mutant, "nobody_is_wronged_in_any_world"));
    let http =
        http.map(|mutant| (mutant, "nobody_gets_another_body_or_fails_without_need_in_any_world"));
    let hosted = exchange::mutant::Mutant::SPAWNED.iter();
    let hosted = hosted.map(|mutant| (mutant, HOSTED));
    // Replies that come from another shard.
    let several = [
        (&exchange::mutant::Mutant::StaleId, "nobody_is_wronged_by_several_shards_in_any_world"),
        (
            &exchange::mutant::Mutant::KeptLink,
            "nobody_is_wronged_by_several_shards_before_servers_in_any_world",
        ),
        (
            &exchange::mutant::Mutant::LostSlot,
            "nobody_is_wronged_by_several_shards_before_servers_in_any_world",
        ),
    ];
    for (mutant, worlds) in gateway.chain(http).chain(hosted).chain(several) {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", worlds, "--nocapture"])
            .env("ROADSTEAD_PLANT", mutant.as_str())
            .env("SIMULATE_FIRST", "yes")
            .env_remove("SIMULATE_PLANT")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&child.stdout);
        assert!(!child.status.success(), "{mutant:?} went unnoticed by {SEEDS:?}: {said}");
        let seen = said.lines().skip_while(|line| !line.starts_with("seed "));
        let seen: Vec<_> = seen.take(2).collect();
        assert_eq!(seen.len(), 2, "{mutant:?}: it fell over something else: {said}");
        println!("{:<18} {} {}", mutant.as_str(), seen[0], seen[1].trim());
    }
}
