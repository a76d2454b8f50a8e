//! The client against real NATS servers.
#![allow(clippy::unwrap_used, reason = "a test")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "real processes, files and time"
)]

mod access;
mod admin;
mod bucket;
#[path = "../../../database/tests/support/certificates.rs"]
mod certificates;
mod daemon;
mod faults;
#[path = "../support/link.rs"]
mod link;
mod load;
#[path = "../support/nats.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod nats;
mod operator;
mod partitions;
mod servers;
#[path = "../../../database/tests/support/untested.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod untested;

use std::ops::Range;
use std::time::Duration;

use cluster::{Settings, State};

use daemon::{Daemon, client, settings, wait_for};
use faults::HEALED;
use nats::Nats;

const SOON: Duration = Duration::from_secs(10);
/// While a fault lasts, the servers may need this time until they agree on a leader.
const AGREED_SOON: Duration = Duration::from_secs(60);

/// Two daemons of three servers, in sync.
fn two_daemons(nats: &Nats, settings: Settings) -> [Daemon; 2] {
    let daemons = ["one", "two"].map(|name| Daemon::start(name, &nats.urls(), settings));
    for daemon in &daemons {
        assert!(daemon.cluster.wait_in_sync(SOON * 2), "{:?}", daemon.cluster.status());
    }
    daemons
}

/// Waits until both daemons have the same contents, which each has proved.
fn wait_for_agreement(daemons: &[Daemon; 2], listed: u64) {
    let [one, two] = daemons;
    let is_agreed = |daemon: &Daemon| {
        let table = daemon.table_status();
        table.status.listed == listed
            && table.status.state == State::InSync
            && table.proof_age_ms.is_some_and(|age| age < 2500)
    };
    wait_for("both have the same", SOON, || is_agreed(one) && is_agreed(two));
    for daemon in daemons {
        let mut report = daemon.check();
        // The answer of the other daemon may be late.
        wait_for("a comparison", SOON * 3, || {
            let is_made = report.compared == 1 && report.failed.is_empty();
            if !is_made {
                report = daemon.check();
            }
            is_made
        });
        assert!(report.keys.is_empty(), "{report:?}");
    }
}

/// Binds clients, each at one of the daemons, and waits until the other one knows them.
fn bind_and_wait(daemons: &[Daemon; 2], numbers: Range<u64>) {
    for number in numbers.clone() {
        daemons[usize::from(number % 2 == 0)].bind(client(number), 10 + number % 7);
    }
    wait_until_same(daemons, numbers, AGREED_SOON);
}

/// Waits until both daemons know these clients, with the same targets.
#[track_caller]
fn wait_until_same(daemons: &[Daemon; 2], numbers: Range<u64>, within: Duration) {
    let [one, two] = daemons;
    let is_same = |number| {
        let target = one.find(client(number));
        target.is_some() && target == two.find(client(number))
    };
    let start = std::time::Instant::now();
    while !numbers.clone().all(is_same) {
        if start.elapsed() > within {
            let other: Vec<_> = numbers.filter(|number| !is_same(*number)).collect();
            let status = [one, two].map(|daemon| daemon.cluster.status());
            panic!("after {within:?} these clients differ: {other:?}\n{status:#?}");
        }
        std::thread::park_timeout(Duration::from_millis(5));
    }
    let took = start.elapsed();
    if within == HEALED {
        println!("both know the same {} clients after {took:?}", numbers.end);
    }
}

#[test]
fn a_binding_of_one_daemon_is_known_to_the_other_and_both_prove_it() {
    let Some(nats) = Nats::start(3) else { return };
    let daemons = two_daemons(&nats, settings());
    let [one, two] = &daemons;
    one.bind(client(1), 10);
    let took = wait_for("the binding", SOON, || two.find(client(1)) == Some(10));
    println!("a binding took {took:?}");
    two.bind(client(1), 20);
    wait_for("the other worker", SOON, || one.find(client(1)) == Some(20));
    // Both bind a client that neither knows: one of them wins.
    for number in 100..200 {
        one.bind(client(number), 1);
        two.bind(client(number), 2);
    }
    let is_one = || (100..200).all(|number| one.find(client(number)) == two.find(client(number)));
    wait_for("one winner for each client", SOON, is_one);
    wait_for_agreement(&daemons, 101);
    assert!(is_one());
    let machines = one.table_status().machines;
    assert_eq!(machines.iter().map(|it| &*it.name).collect::<Vec<_>>(), ["two"]);
}
