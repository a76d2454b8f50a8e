//! Faults of the servers and of the connection.

use std::time::Duration;

use cluster::{Settings, State};

use crate::daemon::{Daemon, client, settings, wait_for};
use crate::nats::Nats;
use crate::{SOON, two_daemons, wait_for_agreement};

/// Sessions must agree within this time after a fault has ended.
pub(crate) const HEALED: Duration = Duration::from_secs(10);

#[test]
fn any_one_server_may_die_while_clients_are_bound() {
    let Some(mut nats) = Nats::start(3) else { return };
    let daemons = two_daemons(&nats, settings());
    let [one, two] = &daemons;
    let mut number = 0;
    for server in 0..3 {
        nats.kill(server);
        // The table of the pool does not depend on the servers.
        for _ in 0..50 {
            number += 1;
            one.bind(client(number), 10 + number % 3);
        }
        assert!((1..=number).all(|number| one.find(client(number)).is_some()));
        let is_known = || (1..=number).all(|it| two.find(client(it)) == one.find(client(it)));
        wait_for("the bindings", SOON * 2, is_known);
        nats.run(server);
        nats.wait_until_ready();
    }
    wait_for_agreement(&daemons, number);
}

#[test]
fn servers_that_all_restarted_empty_are_filled_again_by_the_daemons() {
    let Some(mut nats) = Nats::start(3) else { return };
    let daemons = two_daemons(&nats, settings());
    let [one, two] = &daemons;
    (0..100).for_each(|number| one.bind(client(number), 1));
    wait_for("the bindings", SOON, || (0..100).all(|it| two.find(client(it)) == Some(1)));
    (0..3).for_each(|server| nats.kill(server));
    wait_for("both are detached", SOON, || {
        daemons.iter().all(|it| it.table_status().status.state == State::Detached)
    });
    (100..150).for_each(|number| two.bind(client(number), 2));
    (0..3).for_each(|server| nats.run(server));
    nats.wait_until_ready();
    wait_for("the bindings of the outage", HEALED, || {
        (100..150).all(|it| one.find(client(it)) == Some(2))
    });
    // What was used last at a daemon is written again by it.
    wait_for_agreement(&daemons, 150);
    assert!((0..100).all(|number| two.find(client(number)) == Some(1)), "nothing was lost");
    let third = Daemon::start("three", &nats.urls(), settings());
    wait_for("a daemon that starts later", SOON, || third.length() == 150);
}

#[test]
fn a_client_that_is_used_at_no_daemon_expires_and_can_be_bound_again() {
    let Some(nats) = Nats::start(1) else { return };
    let settings = Settings { lifetime_ms: 2000, mark_ms: 500, ..settings() };
    let daemons = two_daemons(&nats, settings);
    let [one, two] = &daemons;
    one.bind(client(1), 10);
    one.bind(client(2), 10);
    wait_for("the bindings", SOON, || two.find(client(2)) == Some(10));
    // Only the second one is used.
    wait_for("the first one ends", SOON, || {
        two.bind(client(2), 10);
        let status = one.table_status().status;
        status.listed == 1 && status.entries == 1
    });
    two.bind(client(1), 20);
    wait_for("a new binding over the marker", SOON, || one.find(client(1)) == Some(20));
    assert_eq!(one.find(client(2)), Some(10));
    assert_eq!(one.table_status().counters.unreadable, 0);
}
