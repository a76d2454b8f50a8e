//! Many bindings: at the same moment, during a long outage, and at the start of a daemon.

use std::sync::Barrier;
use std::time::Duration;

use cluster::{Settings, State};

use crate::daemon::{Daemon, client, settings, wait_for};
use crate::faults::HEALED;
use crate::nats::Nats;
use crate::{AGREED_SOON, SOON, two_daemons, wait_for_agreement, wait_until_same};

fn is_full() -> bool {
    std::env::var("ROADSTEAD_FAULTS").as_deref() == Ok("full")
}

#[test]
fn two_daemons_that_bind_a_client_at_the_same_moment_agree_on_one_server() {
    let Some(nats) = Nats::start(3) else { return };
    let daemons = two_daemons(&nats, settings());
    let rounds = if is_full() { 1000 } else { 100 };
    let barrier = Barrier::new(2);
    for round in 0..rounds {
        // Half of the clients are bound already: each daemon gives them another server.
        let numbers = round * 10..round * 10 + 20;
        std::thread::scope(|scope| {
            for (side, daemon) in (1..).zip(&daemons) {
                let (barrier, numbers) = (&barrier, numbers.clone());
                scope.spawn(move || {
                    barrier.wait();
                    numbers.for_each(|number| daemon.bind(client(number), round * 2 + side));
                });
            }
        });
        wait_until_same(&daemons, numbers.clone(), AGREED_SOON);
        for number in numbers {
            let target = daemons[0].find(client(number)).unwrap();
            assert!([1, 2].contains(&(target - round * 2)), "one of both: {target}");
        }
    }
    let bound = rounds * 10 + 10;
    wait_until_same(&daemons, 0..bound, HEALED);
    wait_for_agreement(&daemons, bound);
    let conflicts = daemons.each_ref().map(|it| it.table_status().counters.conflicts);
    println!("{bound} clients in {rounds} rounds, conflicts {conflicts:?}");
}

#[test]
fn more_bindings_than_may_wait_are_shared_after_a_long_outage() {
    let Some(mut nats) = Nats::start(3) else { return };
    let (waiting, count, outage) = match is_full() {
        true => (100_000, 150_000, Duration::from_secs(180)),
        false => (500, 2000, Duration::ZERO),
    };
    let settings = Settings { pending_max: waiting, ..settings() };
    let daemons = two_daemons(&nats, settings);
    let [one, two] = &daemons;
    (0..3).for_each(|server| nats.kill(server));
    wait_for("both are detached", AGREED_SOON, || {
        daemons.iter().all(|it| it.state() == State::Detached)
    });
    let start = std::time::Instant::now();
    let numbers: Vec<u64> = (0..count + count / 2).collect();
    let half = numbers.len() / 3;
    for part in numbers[..2 * half].chunks(100) {
        one.bind_all(part.iter().map(|&number| (client(number), 1)));
    }
    for part in numbers[half..].chunks(100) {
        two.bind_all(part.iter().map(|&number| (client(number), 2)));
    }
    wait_for("as many wait as may", AGREED_SOON, || {
        daemons.iter().all(|it| it.table_status().status.pending == waiting)
    });
    while start.elapsed() < outage {
        // Requests go on.
        let number = numbers[usize::try_from(start.elapsed().as_millis()).unwrap() % half];
        assert_eq!(one.request(client(number)), Some(1));
        std::thread::park_timeout(Duration::from_millis(1));
    }
    nats.run_all();
    let bound = numbers.len() as u64;
    // With all bindings of the full count, the servers are the limit.
    let limit = if is_full() { Duration::from_secs(600) } else { HEALED };
    let took = wait_for("all are shared", limit, || {
        one.length() == numbers.len() && one.listed() == bound && two.listed() == bound
    });
    wait_until_same(&daemons, 0..bound, limit);
    println!("{bound} bindings were shared {took:?} after an outage of {outage:?}");
    wait_for_agreement(&daemons, bound);
}

#[test]
fn a_fresh_daemon_catches_up_with_all_clients() {
    let Some(nats) = Nats::start(3) else { return };
    let count = if is_full() { 1_000_000 } else { 50_000 };
    let settings = Settings { writes_per_second: 1_000_000, entries_max: 1_000_000, ..settings() };
    let [one, _two] = two_daemons(&nats, settings);
    let keys: Vec<u64> = (0..count).collect();
    for part in keys.chunks(1000) {
        one.bind_all(part.iter().map(|&number| (client(number), number % 7)));
    }
    // 100,000 take about 10 s on two cores that do other work besides, in a debug build.
    let limit = Duration::from_secs(if is_full() { 900 } else { 300 });
    let took = wait_for("all writes", limit, || one.listed() == count);
    println!("{count} keys were written in {took:?}");
    let three = Daemon::start("three", &nats.urls(), settings);
    let length = usize::try_from(count).unwrap();
    let took = wait_for("catch-up", limit, || three.length() == length);
    println!("a fresh daemon has {count} keys after {took:?}");
    wait_for("in sync", SOON, || three.state() == State::InSync);
    assert_eq!(three.find(client(count - 1)), Some((count - 1) % 7));
}
