//! Planted bugs: each class of them is found by some seed.
//!
//! | plant | what it breaks |
//! |---|---|
//! | `ack-before-commit` | an acknowledged row is committed |
//! | `stale-id` | no reply reaches another client |
//! | `early-ok` | an acknowledgement is the worker's |
//! | `shifted-reply` | replies are in the order of the requests |
//! | `lost-edge` | what arrived is read, also when the kernel tells it once |
//! | `lost-room` | output leaves once there is room again |
//! | `stale-token` | a report of what was closed is nobody's |
//! | `lost-wake` | mail to a loop that sleeps wakes it |

use std::process::Command;

use simulate::{Plant, replay, run};

use super::{SEEDS, run_all};

#[test]
fn defects_under_the_loop_are_found() {
    for plant in Plant::ALL {
        let reports = run_all(SEEDS, Some(*plant), true, run);
        let found = reports.iter().find(|report| !report.violations.is_empty());
        let found = found.unwrap_or_else(|| panic!("{plant:?} went unnoticed by {SEEDS:?}"));
        println!("{:<18} seed {:>4}: {}", plant.word(), found.seed, found.violations[0]);
        println!("{:<18} {}", "", replay(found.seed, Some(*plant), false));
    }
}

/// These are chosen for a whole process, so each is looked for by one of its own.
#[test]
fn defects_of_the_data_plane_are_found() {
    for plant in exchange::plant::Plant::ALL {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "nobody_is_wronged_in_any_world", "--nocapture"])
            .env("ROADSTEAD_PLANT", plant.word())
            .env("SIMULATE_FIRST", "yes")
            .env_remove("SIMULATE_PLANT")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&child.stdout);
        assert!(!child.status.success(), "{plant:?} went unnoticed by {SEEDS:?}: {said}");
        let seen = said.lines().skip_while(|line| !line.starts_with("seed "));
        let seen: Vec<_> = seen.take(2).collect();
        assert_eq!(seen.len(), 2, "{plant:?}: it fell over something else: {said}");
        println!("{:<18} {} {}", plant.word(), seen[0], seen[1].trim());
    }
}
