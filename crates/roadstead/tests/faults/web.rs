//! HTTP servers that are killed, stopped, that answer wrongly or come and go under load: no client gets a body of
//! another client, a request that may have an effect is sent to one server at most, and no request fails that could
//! safely have been sent to another server.
//!
//! The servers are separate processes (`web/server.rs`), so that they can be killed and stopped. The load and its
//! verdict are in `web/load.rs`.

mod elsewhere;
mod load;
mod server;

use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::daemon::{Daemon, folder, until};
use crate::times;
use load::{Load, Verdict};
use server::Server;

/// The maximum number of requests in flight per server. Requests lost by a kill are retried from a budget of twenty.
const SLOTS: usize = 4;

/// Frequent kills fail more than a tenth of the requests, which is the default retry budget, and fail some requests
/// more than three times.
const REPEATED: &str = "retries = { tries = 20, budget = \"100%\", min_retries = 100 }";

/// Wrong answers per thousand of a faulty server.
const FAULTS: u32 = 200;
/// No request is rejected because it waited.
const QUEUE: &str = "queue = { timeout = \"20s\" }";
/// Frequent health checks, so that a server that is back is found soon.
const LOOKS: &str = "health_check = { check = \"tcp\", interval = \"50ms\", rise = 1 }";

/// A daemon with its servers, and the load.
struct Ground {
    daemon: Daemon,
    servers: Vec<Server>,
    folder: TempDir,
}

impl Ground {
    fn start(shards: usize, count: usize, faults: u32, pool: &str) -> Self {
        let folder = folder();
        let servers: Vec<Server> = (0..count)
            .map(|place| Server::start(folder.path(), if place == 0 { faults } else { 0 }))
            .collect();
        let addresses: Vec<String> =
            servers.iter().map(|server| format!("\"127.0.0.1:{}\"", server.port)).collect();
        let text = format!(
            "[daemon]\nshards = {shards}\n[admin]\nlisten = \"127.0.0.1:0\"\n[listener.main]\n\
             listen = \"127.0.0.1:0\"\nprotocol = \"http\"\npool = \"main\"\n[pool.main]\n\
             servers = [{}]\nupstream.max_concurrent = {SLOTS}\n{pool}\n",
            addresses.join(", ")
        );
        let daemon = Daemon::serve(folder.path(), &text);
        Self { daemon, servers, folder }
    }

    fn answered(&self) -> u64 {
        self.daemon.metric("roadstead_requests_finished_total", &["answered"])
    }

    /// Returns the status of a server.
    fn held(&self, place: usize) -> Value {
        self.daemon.status()["pools"][0]["places"][place].clone()
    }

    /// Waits until this number of further requests were answered.
    fn until_more(&self, count: u64) {
        let before = self.answered();
        until("requests are answered", || self.answered() >= before + count);
    }

    fn end(self, what: &str, load: Load) -> Verdict {
        let verdict = load.end(&self.folder.path().join("done"));
        eprintln!("{what}\n{verdict:#?}");
        assert_eq!(verdict.wrong, [""; 0], "nobody gets another's body, or does a thing twice");
        assert!(verdict.answered > 0);
        assert!(self.daemon.stop().success());
        verdict
    }
}

/// F1: servers are killed and restarted, one after the other.
#[test]
fn servers_killed_under_load_cost_nothing_that_can_be_repeated() {
    for shards in [1, 2] {
        let mut ground = Ground::start(shards, 3, 0, &format!("{QUEUE}\n{LOOKS}\n{REPEATED}"));
        let load = Load::start(ground.daemon.address());
        let kills = times(100);
        for round in 0..kills {
            ground.until_more(50);
            let victim = round as usize % 3;
            ground.servers[victim].kill();
            ground.until_more(20);
            ground.servers[victim].restart();
            until("it is found", || ground.held(victim)["health"] == "up");
        }
        let verdict = ground.end(&format!("{kills} servers killed, {shards} shards"), load);
        assert_eq!(verdict.needless, []);
        // A kill can affect only requests that were in flight to the server.
        assert!(verdict.effects_unknown <= u64::from(kills) * SLOTS as u64);
    }
}

/// F3: a server is stopped and continued later. It gets no requests meanwhile, and its late replies are discarded.
#[test]
fn a_server_that_stalls_costs_what_it_has_in_hand() {
    for shards in [1, 2] {
        let pool = "queue = { timeout = \"20s\" }\nresponse_timeout = \"1s\"\nhealth_check = { check = \"http\", \
                    path = \"/0/check\", interval = \"50ms\", timeout = \"300ms\", \
                    fall = 2, rise = 1 }";
        let ground = Ground::start(shards, 3, 0, pool);
        let load = Load::start(ground.daemon.address());
        let stops = times(50);
        for round in 0..stops {
            let victim = round as usize % 3;
            until("it is up", || ground.held(victim)["health"] == "up");
            ground.until_more(50);
            ground.servers[victim].signal(Signal::STOP);
            until("it is left out", || ground.held(victim)["health"] == "down");
            // Its requests in flight end at their response timeout.
            until("it has nothing in hand", || ground.held(victim)["in_use"] == 0);
            ground.until_more(20);
            ground.servers[victim].signal(Signal::CONT);
        }
        let verdict = ground.end(&format!("{stops} servers stopped, {shards} shards"), load);
        assert_eq!(verdict.needless, []);
        // The requests of its slots, and as many again if it is excluded only after their timeout.
        assert!(verdict.late <= 2 * u64::from(stops) * SLOTS as u64);
    }
}

/// F5: one of three servers sometimes answers wrongly, in every possible way.
#[test]
fn wrong_answers_of_one_server_mix_nothing_and_are_repeated_where_they_may() {
    for shards in [1, 2] {
        let pool = "queue = { timeout = \"20s\" }\nhealth_check = { max_fails = 3, fail_duration = \"200ms\" }";
        let ground = Ground::start(shards, 3, FAULTS, pool);
        let load = Load::start(ground.daemon.address());
        until("enough was asked", || load.asked() >= u64::from(times(20_000)));
        let verdict = ground.end(&format!("wrong answers, {shards} shards"), load);
        assert_eq!(verdict.needless, []);
    }
}

/// F18: servers come and go; one stays.
#[test]
fn servers_that_come_and_go_cost_nothing_and_share_alike() {
    for shards in [1, 2] {
        let others = times(40) + 3;
        let count = others as usize + 1;
        let mut ground = Ground::start(shards, count, 0, &format!("{QUEUE}\n{LOOKS}\n{REPEATED}"));
        let load = Load::start(ground.daemon.address());
        for round in 0..times(300) as usize {
            // Half of the servers that come and go are down, in turn.
            let place = 1 + round % (count - 1);
            ground.servers[place].turn();
            ground.until_more(20);
            std::thread::park_timeout(Duration::from_secs(1) / others);
        }
        let flapping: Vec<u16> = ground.servers[1..].iter().map(|server| server.port).collect();
        let verdict = ground.end(&format!("{count} servers come and go, {shards} shards"), load);
        assert_eq!(verdict.needless, []);
        let shares = flapping.iter().map(|port| verdict.shares.get(port).copied().unwrap_or(0));
        let (most, all) = (shares.clone().max().unwrap(), shares.sum::<u64>());
        assert!(most <= 3 * all / flapping.len() as u64, "{:?}", verdict.shares);
    }
}
