//! `bench balance --only trial`: counts requests that fail while servers are killed, hang, flap, fail and are drained,
//! under overload, and while the proxy is replaced and reloaded. Compares Roadstead, HAProxy and nginx.

mod client;
mod proxy;
mod server;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::bench::goals::{Goal, list};
use crate::bench::ground::Ground;
use crate::bench::statistics::Quartiles;
use crate::bench::template::{Template, row};
use crate::requirements;
use crate::shell::{Failure, Workspace};
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

/// The failures of each run, by scenario and product.
type Results = BTreeMap<(usize, Product), Vec<Tally>>;

/// The settings of the trial.
pub(super) struct Plan<'a> {
    pub(super) runs: u32,
    /// A binary to use instead of the release build.
    pub(super) roadstead: Option<&'a Path>,
    /// Run only this scenario.
    pub(super) scenario: Option<&'a str>,
}

pub(super) fn measure(
    workspace: &Workspace,
    plan: &Plan<'_>,
) -> Result<(String, Vec<Goal>), Failure> {
    requirements::provide(requirements::BENCH_TRIAL)?;
    if plan.roadstead.is_none() {
        workspace.release(&["-p", "roadstead"])?;
    }
    let ground = Ground::new(workspace, "trial", plan.runs, Duration::ZERO, None)?;
    let roadstead = plan.roadstead.map_or_else(|| ground.roadstead(), Path::to_owned);
    let folder = ground.folder.join("proxy");
    let (scenarios, mut results) = (scenarios(), Results::new());
    let wanted = |scenario: &Scenario| plan.scenario.is_none_or(|only| only == scenario.name);
    for (number, scenario) in scenarios.iter().enumerate().filter(|(_, one)| wanted(one)) {
        let tallies = ground.rounds(scenario.name, Product::ALL.len(), |_, at| {
            let product = Product::ALL[at];
            let _ = std::fs::remove_dir_all(&folder);
            let tally = once(scenario, product, &roadstead, folder.clone())?;
            eprintln!("{}, {}: {}", scenario.name, product.name(), shown(&tally));
            Ok(tally)
        })?;
        let each = Product::ALL.into_iter().zip(tallies);
        results.extend(each.map(|(product, tallies)| ((number, product), tallies)));
    }
    let goals = goals(&scenarios, &results);
    Ok((section(&scenarios, &results, plan.runs, &goals), goals))
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

fn shown(tally: &Tally) -> String {
    let reasons: Vec<String> =
        tally.failed.iter().map(|(why, count)| format!("{why} × {count}")).collect();
    format!("{} of {} failed ({})", tally.failures(), tally.requests, reasons.join(", "))
}

/// Returns quartiles of the number of failed requests per run.
fn failures(tallies: &[Tally]) -> Quartiles {
    Quartiles::of_each(tallies, |tally| tally.failures() as f64)
}

/// In an overload two thirds of the requests must fail. A difference of 2 % is caused by the clocks.
const OVERLOAD_MAX: f64 = 1.02;

fn goals(scenarios: &[Scenario], results: &Results) -> Vec<Goal> {
    let mut goals = Vec::new();
    for (number, scenario) in scenarios.iter().enumerate() {
        let of = |product| results.get(&(number, product)).map(|tallies| failures(tallies).median);
        let Some(ours) = of(Product::Roadstead) else { continue };
        let share = if scenario.at_once.is_some() { OVERLOAD_MAX } else { 1.0 };
        for peer in [Product::HaProxy, Product::Nginx] {
            let Some(theirs) = of(peer) else { continue };
            let text = format!(
                "{}: no more failed requests than {} ({ours:.0}, {theirs:.0})",
                scenario.name,
                peer.name()
            );
            goals.push((text, ours <= theirs * share));
        }
    }
    goals
}

fn section(scenarios: &[Scenario], results: &Results, runs: u32, goals: &[Goal]) -> String {
    let (mut rows, mut about) = (String::new(), String::new());
    for (number, scenario) in scenarios.iter().enumerate() {
        let Some(ours) = results.get(&(number, Product::Roadstead)) else { continue };
        let requests = ours.first().map_or(0, |tally| tally.requests);
        let cells = Product::ALL.map(|product| {
            let tallies = results.get(&(number, product)).map(Vec::as_slice).unwrap_or_default();
            let all = tallies.iter().map(Tally::failures);
            let (low, high) = (all.clone().min().unwrap_or(0), all.max().unwrap_or(0));
            format!("{:.0} [{low}–{high}]", failures(tallies).median)
        });
        rows += &row(&[&scenario.name, &requests, &cells.join(" | ")]);
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
            ("goals", &list(goals)),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(ours: u64, haproxy: u64, nginx: u64) -> Results {
        let tallies = |failed: u64| {
            let failed = [("502".to_owned(), failed)].into();
            vec![Tally { requests: 1000, failed }; 3]
        };
        let all = Product::ALL.into_iter().zip([ours, haproxy, nginx]);
        all.map(|(product, failed)| ((0, product), tallies(failed))).collect()
    }

    #[test]
    fn ours_is_held_against_each_peer() {
        let scenarios = scenarios();
        assert!(goals(&scenarios, &results(1, 1, 2)).iter().all(|(_, met)| *met));
        let met: Vec<bool> =
            goals(&scenarios, &results(2, 1, 3)).iter().map(|(_, met)| *met).collect();
        assert_eq!(met, [false, true]);
    }

    #[test]
    fn the_table_has_a_line_for_each_scenario_that_ran() {
        let (scenarios, results) = (scenarios(), results(1, 22, 333));
        let text = section(&scenarios, &results, 3, &goals(&scenarios, &results));
        assert!(text.contains("| kill | 1000 | 1 [1–1] | 22 [22–22] | 333 [333–333] |"), "{text}");
        assert!(!text.contains("| hang |"), "{text}");
    }
}
