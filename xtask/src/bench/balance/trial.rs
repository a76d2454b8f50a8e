//! `bench balance --only trial`: counts requests that fail while servers are killed, hang, flap, fail and are drained,
//! under overload, and while the proxy is replaced and reloaded. Compares Roadstead, HAProxy and nginx.

mod client;
mod proxy;
mod server;

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::bench::driver::Part;
use crate::bench::goals::Goal;
use crate::bench::ground::Ground;
use crate::bench::page::{Template, row};
use crate::bench::trial::Trial;
use crate::requirements;
use crate::shell::{Failure, Workspace};
use serde_json::json;

use client::{Load, Tally};
use proxy::{Options, Product, Proxy};
use server::{Capacity, Server};

const TEXT: Template = Template(include_str!("../../../pages/balance.md"));

const SERVERS: usize = 3;

/// An action at one moment of a scenario.
#[derive(Clone, Copy, Debug)]
enum Action {
    Kill,
    Revive,
    Hang(bool),
    Fail(u32),
    Drain(bool),
    HandOver,
    Reload,
}

/// One scenario. All actions on a server affect the first one.
struct Scenario {
    name: &'static str,
    about: &'static str,
    load: Load,
    capacity: Capacity,
    /// The maximum number of concurrent requests that the proxy sends to one server.
    at_once: Option<u32>,
    /// The time of each action, in milliseconds from the beginning of the load.
    actions: Vec<(u64, Action)>,
}

/// A fifth of the requests are small POSTs.
const STEADY: Load = Load {
    rate: 200,
    clients: 100,
    duration: Duration::from_secs(4),
    posts: 20,
    pieces: 1,
    piece: (100, Duration::ZERO),
};

const QUICK: Capacity = Capacity { work: Duration::from_millis(5), at_once: 1000 };

fn scenarios() -> Vec<Scenario> {
    let plain = |name, about, actions| Scenario {
        name,
        about,
        load: STEADY,
        capacity: QUICK,
        at_once: None,
        actions,
    };
    // With every proxy, a POST that a server was processing when it was killed is lost. Their number is random, so
    // these scenarios send only GETs.
    let gets = |name, about, actions| Scenario {
        load: Load { posts: 0, ..STEADY },
        ..plain(name, about, actions)
    };
    let every = |ms: u64, action: Action| (1..=4).map(|at| (at * ms, action)).collect();
    let flaps =
        (0..6).flat_map(|at| [(400 + at * 600, Action::Kill), (700 + at * 600, Action::Revive)]);
    let uploads =
        Load { posts: 100, pieces: 8, piece: (8 << 10, Duration::from_millis(20)), ..STEADY };
    vec![
        gets(
            "kill",
            "one of three servers is killed after 1 s and comes back after 3 s",
            vec![(1000, Action::Kill), (3000, Action::Revive)],
        ),
        gets(
            "hang",
            "one of three servers answers nothing from 1 s to 3 s",
            vec![(1000, Action::Hang(true)), (3000, Action::Hang(false))],
        ),
        gets(
            "flap",
            "one of three servers is killed and comes back 300 ms later, six times",
            flaps.collect(),
        ),
        plain(
            "30 % errors",
            "one of three servers answers 30 % of the requests with 500, from 500 ms on",
            vec![(500, Action::Fail(30))],
        ),
        Scenario {
            name: "overload",
            about: "three servers of two requests at once and 50 ms each (120 requests/s together) are \
                    offered 360 requests/s; the proxies hand each of them two at once",
            load: Load { rate: 360, clients: 500, posts: 0, ..STEADY },
            capacity: Capacity { work: Duration::from_millis(50), at_once: 2 },
            at_once: Some(2),
            actions: Vec::new(),
        },
        plain(
            "drain",
            "a server is drained after 500 ms, killed after 1.5 s, comes back after 2.5 s, and gets requests \
             again after 3.5 s",
            vec![
                (500, Action::Drain(true)),
                (1500, Action::Kill),
                (2500, Action::Revive),
                (3500, Action::Drain(false)),
            ],
        ),
        plain(
            "hand-over",
            "another process takes over four times (Roadstead: a second daemon on the shared listening socket, \
             then SIGTERM to the first; HAProxy: SIGUSR2 to the master; nginx: SIGUSR2, then SIGQUIT)",
            every(800, Action::HandOver),
        ),
        Scenario {
            name: "reload under POST",
            about: "every request is a POST of 64 KiB that takes 140 ms to send; the configuration is \
                    reloaded four times",
            load: uploads,
            capacity: QUICK,
            at_once: None,
            actions: every(800, Action::Reload),
        },
    ]
}

/// Runs the scenarios. `roadstead`: a binary to use instead of the release build. `only`: run only this scenario.
pub(super) fn measure(
    workspace: &Workspace,
    ground: &Ground,
    roadstead: Option<&Path>,
    only: Option<&str>,
) -> Result<Part, Failure> {
    requirements::provide(requirements::BENCH_TRIAL)?;
    if roadstead.is_none() {
        workspace.release(&["-p", "roadstead"])?;
    }
    let roadstead = roadstead.map_or_else(|| ground.roadstead(), Path::to_owned);
    let folder = ground.folder.join("proxy");
    let names = Product::ALL.map(Product::name);
    let mut results = Vec::new();
    for scenario in scenarios().into_iter().filter(|it| only.is_none_or(|only| only == it.name)) {
        let trial = ground.rounds(scenario.name, &names, |_, at| {
            let _ = std::fs::remove_dir_all(&folder);
            let tally = once(&scenario, Product::ALL[at], &roadstead, folder.clone())?;
            let Tally { requests, failed } = &tally;
            Ok(json!({ "requests": requests, "failures": tally.failures(), "failed": failed }))
        })?;
        results.push((scenario, trial));
    }
    let goals = results.iter().flat_map(|(scenario, trial)| goals(scenario, trial)).collect();
    Ok(Part { goals, ..Part::text(section(&results, ground.rounds)) })
}

/// Runs one scenario with one product.
fn once(
    scenario: &Scenario,
    product: Product,
    roadstead: &Path,
    folder: PathBuf,
) -> Result<Tally, Failure> {
    let failed = Failure::at("a server");
    let start = |_| Server::start(scenario.capacity).map_err(&failed);
    let mut servers = (0..SERVERS).map(start).collect::<Result<Vec<_>, _>>()?;
    let ports = servers.iter().map(|server| server.port).collect();
    let options = Options { servers: ports, at_once: scenario.at_once };
    let mut proxy = Proxy::start(product, roadstead, folder, options)?;
    // After this time every server has passed its health checks.
    thread::sleep(Duration::from_millis(700));
    let (load, to) = (scenario.load, proxy.address);
    let begun = Instant::now();
    let clients = thread::spawn(move || load.run(to));
    for (at, action) in &scenario.actions {
        let due = begun + Duration::from_millis(*at);
        thread::sleep(due.saturating_duration_since(Instant::now()));
        match action {
            Action::Kill => servers[0].kill(),
            Action::Revive => servers[0].revive().map_err(&failed)?,
            Action::Hang(hangs) => servers[0].hang(*hangs),
            Action::Fail(percent) => servers[0].fail(*percent),
            Action::Drain(drains) => proxy.drain_server(0, *drains)?,
            Action::HandOver => proxy.hand_over()?,
            Action::Reload => proxy.reload()?,
        }
    }
    clients.join().map_err(|_| Failure::new("the clients panicked"))
}

/// In an overload two thirds of the requests must fail. A difference of 2 % is caused by the clocks.
const OVERLOAD_MAX: f64 = 1.02;

fn goals(scenario: &Scenario, trial: &Trial) -> [Goal; 2] {
    let of = |product: Product| trial.median(product.name(), "failures");
    let share = if scenario.at_once.is_some() { OVERLOAD_MAX } else { 1.0 };
    [Product::HaProxy, Product::Nginx].map(|peer| {
        let (ours, theirs) = (of(Product::Roadstead), of(peer));
        let text = format!("{}: no more failed requests than {}", scenario.name, peer.name());
        (text, format!("{ours:.0}, {theirs:.0}"), ours <= theirs * share)
    })
}

fn section(results: &[(Scenario, Trial)], runs: u32) -> String {
    let (mut rows, mut about) = (String::new(), String::new());
    for (scenario, trial) in results {
        let requests = &trial.last(Product::Roadstead.name())["requests"];
        let cells = Product::ALL.map(|product| {
            let all = trial.samples(product.name(), "failures");
            let low = all.iter().copied().fold(f64::INFINITY, f64::min);
            let high = all.iter().copied().fold(0.0, f64::max);
            format!("{:.0} [{low:.0}–{high:.0}]", trial.median(product.name(), "failures"))
        });
        rows += &row(&[&scenario.name, requests, &cells.join(" | ")]);
        about += &format!("- *{}*: {}.\n", scenario.name, scenario.about);
    }
    TEXT.fill(
        "trial",
        &[
            ("runs", &runs),
            ("rate", &STEADY.rate),
            ("seconds", &STEADY.duration.as_secs()),
            ("clients", &STEADY.clients),
            ("rows", &rows),
            ("about", &about),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result([ours, haproxy, nginx]: [u64; 3]) -> (Scenario, Trial) {
        let names = Product::ALL.map(Product::name);
        let failures = [ours, haproxy, nginx];
        let sample = |_, at: usize| Ok(json!({ "requests": 1000, "failures": failures[at] }));
        let trial = Trial::run((3, 0), "kill", &names, sample).unwrap();
        (scenarios().remove(0), trial)
    }

    #[test]
    fn ours_is_held_against_each_peer() {
        let met = |failures| {
            let (scenario, trial) = result(failures);
            goals(&scenario, &trial).map(|(.., met)| met)
        };
        assert_eq!(met([1, 1, 2]), [true, true]);
        assert_eq!(met([2, 1, 3]), [false, true]);
    }

    #[test]
    fn the_table_has_a_line_for_each_scenario_that_ran() {
        let text = section(&[result([1, 22, 333])], 3);
        assert!(text.contains("| kill | 1000 | 1 [1–1] | 22 [22–22] | 333 [333–333] |"), "{text}");
        assert!(!text.contains("| hang |"), "{text}");
    }
}
