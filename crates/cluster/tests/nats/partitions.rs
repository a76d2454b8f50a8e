//! Networks that drop packets: between the servers, and between them and the daemons.

use cluster::State;

use crate::admin::STREAM;
use crate::daemon::{Daemon, client, settings, under_requests, wait_for};
use crate::faults::HEALED;
use crate::link::{Held, Link};
use crate::nats::Nats;
use crate::{AGREED_SOON, bind_and_wait, wait_for_agreement, wait_until_same};

/// Three servers and two daemons that reach each other over links only.
struct Site {
    nats: Nats,
    /// The links from each server to the others.
    routes: Vec<Vec<Link>>,
    /// The links from each daemon to the servers.
    doors: Vec<Vec<Link>>,
    daemons: [Daemon; 2],
}

impl Site {
    fn start() -> Option<Self> {
        let mut nats = Nats::prepare(3)?;
        let links = |ports: Vec<u16>| ports.into_iter().map(Link::to).collect::<Vec<_>>();
        let routes: Vec<_> = (0..3).map(|_| links(nats.route_ports())).collect();
        for (server, links) in routes.iter().enumerate() {
            nats.set_routes(server, links.iter().map(Link::port).collect());
        }
        nats.run_all();
        let doors: Vec<_> = (0..2).map(|_| links(nats.client_ports())).collect();
        let url = |link: &Link| format!("nats://127.0.0.1:{}", link.port());
        let urls = [0, 1].map(|daemon| doors[daemon].iter().map(url).collect::<Vec<_>>());
        let daemons = [
            Daemon::start("one", &urls[0], settings()),
            Daemon::start("two", &urls[1], settings()),
        ];
        for daemon in &daemons {
            assert!(daemon.cluster.wait_in_sync(AGREED_SOON), "{:?}", daemon.cluster.status());
        }
        Some(Self { nats, routes, doors, daemons })
    }

    fn leader(&self) -> usize {
        let mut leader = None;
        wait_for("a leader", AGREED_SOON, || {
            leader = self.nats.leader(STREAM);
            leader.is_some()
        });
        leader.unwrap()
    }

    /// Holds the bytes from this server to the other two, or those to it, or both.
    fn hold_server(&self, server: usize, is_from: bool, is_to: bool) {
        for other in (0..3).filter(|other| *other != server) {
            self.routes[server][other].hold(Held { to_server: is_from, to_client: is_to });
            self.routes[other][server].hold(Held { to_server: is_to, to_client: is_from });
        }
    }

    fn heal(&self) {
        let links = self.routes.iter().chain(&self.doors).flatten();
        links.for_each(|link| link.hold(Held::NONE));
        self.nats.wait_until_ready();
    }
}

/// One server and the first daemon are on one side, two servers and the second daemon on the other.
fn separate(is_leader_alone: bool) {
    let Some(site) = Site::start() else { return };
    let [one, two] = &site.daemons;
    bind_and_wait(&site.daemons, 0..100);
    let leader = site.leader();
    let alone = if is_leader_alone { leader } else { (leader + 1) % 3 };
    under_requests(&site.daemons, 0..100, || {
        site.hold_server(alone, true, true);
        for server in 0..3 {
            let far = usize::from(server == alone);
            site.doors[far][server].hold(Held::BOTH);
        }
        (100..150).for_each(|number| one.bind(client(number), 1));
        (125..175).for_each(|number| two.bind(client(number), 2));
        wait_for("the larger side stores its bindings", AGREED_SOON, || two.listed() == 150);
        assert!((100..150).all(|it| one.find(client(it)) == Some(1)), "the smaller side serves");
        wait_for("the smaller side gives the connection up", AGREED_SOON, || {
            one.state() != State::InSync
        });
        site.heal();
    });
    wait_until_same(&site.daemons, 0..175, HEALED);
    // The larger side has stored its bindings first.
    assert!((125..175).all(|it| one.find(client(it)) == Some(2)));
    assert!((100..125).all(|it| two.find(client(it)) == Some(1)));
    wait_for("25 conflicts are counted", HEALED, || one.table_status().counters.conflicts == 25);
    wait_for_agreement(&site.daemons, 175);
}

#[test]
fn a_leader_on_the_smaller_side_of_a_partition_loses_no_binding() {
    separate(true);
}

#[test]
fn a_leader_on_the_larger_side_of_a_partition_keeps_its_bindings() {
    separate(false);
}

#[test]
fn a_leader_that_is_heard_or_hears_in_one_direction_only_blocks_no_binding() {
    let Some(site) = Site::start() else { return };
    bind_and_wait(&site.daemons, 0..100);
    let mut bound = 100;
    for (is_from, is_to) in [(true, false), (false, true)] {
        let leader = site.leader();
        under_requests(&site.daemons, 0..bound, || {
            site.hold_server(leader, is_from, is_to);
            bind_and_wait(&site.daemons, bound..bound + 50);
            site.heal();
        });
        bound += 50;
        wait_until_same(&site.daemons, 0..bound, HEALED);
    }
    wait_for_agreement(&site.daemons, bound);
}

#[test]
fn a_daemon_that_reaches_the_servers_in_one_direction_only_is_detached_and_agrees_afterwards() {
    let Some(site) = Site::start() else { return };
    let [one, two] = &site.daemons;
    bind_and_wait(&site.daemons, 0..100);
    let mut bound = 100;
    for held in [Held::TO_SERVER, Held::TO_CLIENT, Held::BOTH] {
        under_requests(&site.daemons, 0..bound, || {
            site.doors[0].iter().for_each(|door| door.hold(held));
            (bound..bound + 50).for_each(|number| one.bind(client(number), 1));
            (bound + 25..bound + 75).for_each(|number| two.bind(client(number), 2));
            wait_for("it gives the connection up", AGREED_SOON, || one.state() == State::Detached);
            site.heal();
        });
        bound += 75;
        wait_until_same(&site.daemons, 0..bound, HEALED);
    }
    wait_for_agreement(&site.daemons, bound);
}
