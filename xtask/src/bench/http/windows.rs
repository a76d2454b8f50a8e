//! Windows in which clients send requests and a proxy is measured.

use super::running::{Load, Running};
use super::subject::{COPYING, Subject};
use crate::bench::ground::Ground;
use crate::bench::page::date;
use crate::bench::process;
use crate::bench::system_calls::{self, Calls};
use crate::shell::Failure;
use serde_json::{Map, Value, json};
use std::thread;
use std::time::Duration;

/// Connections, active connections, bytes of a reply.
pub(super) type Shape = (usize, usize, usize);

/// Connections, and requests of a window in which system calls are counted.
const COUNTED: (usize, u64) = (64, 8000);
/// The number of connections whose memory is measured.
const IDLE: usize = 9000;
/// The minimum window per active client, so that each is answered several times.
const WINDOW_A_CLIENT: Duration = Duration::from_micros(250);
/// The number of clients for the comparison of latencies.
const PACED: usize = 64;
/// The minimum window for the comparison of latencies: a 99th percentile needs many requests.
const PACED_MIN: Duration = Duration::from_secs(2);

/// A proxy with its clients.
type Started = (Running, Load);

/// Returns how a part was measured, for the page.
fn made(ground: &Ground, window: Duration) -> Value {
    let Ground { rounds, seed, .. } = ground;
    json!({ "rounds": rounds, "window_ms": window.as_millis(), "seed": seed, "date": date() })
}

/// Starts all subjects; `warm` is called for each.
fn start(
    ground: &Ground,
    subjects: &[Subject],
    (connections, size): (usize, usize),
    mut warm: impl FnMut(&mut Load) -> Result<(), Failure>,
) -> Result<Vec<Started>, Failure> {
    let each = |subject| {
        let running = Running::start(ground, subject, &[])?;
        let mut load = Load::start(ground, &running, size, connections)?;
        warm(&mut load)?;
        Ok((running, load))
    };
    subjects.iter().map(each).collect()
}

/// Runs all rounds of these subjects and stops them. Returns the samples of each.
fn sampled(
    ground: &Ground,
    name: &str,
    subjects: &[Subject],
    mut started: Vec<Started>,
    sample: impl Fn(&mut Started) -> Result<Value, Failure>,
) -> Result<Value, Failure> {
    let names: Vec<&str> = subjects.iter().map(|subject| subject.name.as_str()).collect();
    let trial = ground.rounds(name, &names, |_, at| sample(&mut started[at]))?;
    for (running, load) in started {
        drop(load);
        running.stop()?;
    }
    Ok(trial.to_json())
}

/// Measures CPU time in each shape, in rounds: in each round every subject has one window, in random order.
pub(super) fn shapes(
    ground: &Ground,
    subjects: &[Subject],
    shapes: &[Shape],
) -> Result<Value, Failure> {
    let each = |&(connections, active, size): &Shape| {
        let length = ground.window.max(WINDOW_A_CLIENT * u32::try_from(active).unwrap_or(u32::MAX));
        let words = format!("run {active} {}", length.as_millis());
        // Connections, pools and caches are filled once for all windows.
        let warm = |load: &mut Load| load.run(&words).map(drop);
        let started = start(ground, subjects, (connections, size), warm)?;
        let name = format!("{connections} connections, {size} bytes");
        let one = |(running, load): &mut Started| window(running, load, &words, length);
        Ok(json!({
            "connections": connections, "active": active, "size": size,
            "subjects": sampled(ground, &name, subjects, started, one)?,
            "made": made(ground, length),
        }))
    };
    shapes.iter().map(each).collect::<Result<_, _>>().map(Value::Array)
}

/// Values that are read before and after a window.
struct Look {
    /// CPU time of all processes of the proxy.
    cpu_ns: u64,
    user: u64,
    system: u64,
    /// CPU time of all processes of the measurement, including this one.
    ours_ns: u64,
    /// CPU time of the whole machine.
    busy_ns: u64,
}

impl Look {
    fn at(proxy: &[u32], others: &[u32]) -> Result<Self, Failure> {
        let ticks = |at: usize| process::sum(proxy, |one| Ok(process::user_and_system(one)?[at]));
        let (user, system) = (ticks(0)?, ticks(1)?);
        let cpu_ns = process::sum(proxy, process::cpu_ns)?;
        let busy_ns = process::busy_ns()?;
        let ours_ns = cpu_ns + process::sum(others, process::cpu_ns)?;
        Ok(Self { cpu_ns, user, system, ours_ns, busy_ns })
    }
}

fn window(
    running: &Running,
    load: &mut Load,
    words: &str,
    window: Duration,
) -> Result<Value, Failure> {
    let proxy = running.processes();
    let others = [running.origin(), load.process(), std::process::id()];
    let accepted = running.accepted()?;
    let (done, [before, after]) = load.run_watched(words, || Look::at(&proxy, &others))?;
    if running.processes() != proxy {
        return Err(Failure::new("a process of a proxy started or ended within a window"));
    }
    let busy = after.busy_ns.saturating_sub(before.busy_ns) as f64;
    let ours = (after.ours_ns - before.ours_ns) as f64;
    let capacity = window.as_nanos() as f64 * process::processors() as f64;
    Ok(json!({
        "cpu_us": (after.cpu_ns - before.cpu_ns) as f64 / 1000.0 / done.requests.max(1.0),
        "user_ticks": after.user - before.user,
        "system_ticks": after.system - before.system,
        "rate": done.requests / window.as_secs_f64(),
        "requests": done.requests,
        "connects": running.accepted()? - accepted,
        "foreign": ((busy - ours) / capacity).max(0.0),
    }))
}

/// Measures latencies at the same rate for all: half of the rate of the slowest.
pub(super) fn paced(ground: &Ground, subjects: &[Subject]) -> Result<Value, Failure> {
    let length = ground.window.max(PACED_MIN);
    let mut weakest = f64::INFINITY;
    let started = start(ground, subjects, (PACED, 128), |load| {
        load.run(&format!("run {PACED} 300"))?;
        weakest = weakest.min(load.run(&format!("run {PACED} 1000"))?.requests);
        Ok(())
    })?;
    let rate = (weakest / 2.0).round().max(1.0);
    let words = format!("pace {PACED} {rate} {}", length.as_millis());
    let name = format!("{rate} requests per second");
    let samples = sampled(ground, &name, subjects, started, |(_, load)| {
        let done = load.run(&words)?;
        Ok(json!({
            "p50_us": done.p50_us, "p99_us": done.p99_us, "late_us": done.late_us,
            "rate": done.requests / length.as_secs_f64(),
        }))
    })?;
    let made = made(ground, length);
    Ok(json!({ "rate": rate, "connections": PACED, "subjects": samples, "made": made }))
}

/// Measures the memory of idle connections that received one reply, over all processes of a proxy.
pub(super) fn memory(ground: &Ground, all: &[Subject]) -> Result<Value, Failure> {
    let subjects = once(all, |subject| {
        let running = Running::start(ground, subject, &[])?;
        // The proxy serves requests first, so that its fixed cost is not counted per connection.
        let first = Load::start(ground, &running, 128, 1)?;
        let proxy = running.processes();
        let before = process::sum(&proxy, process::memory)?;
        let load = Load::start(ground, &running, 128, IDLE)?;
        let grown = process::sum(&proxy, process::memory)?.saturating_sub(before);
        let cpu = process::sum(&proxy, process::cpu_ns)?;
        thread::sleep(Duration::from_secs(1));
        let idle_us = (process::sum(&proxy, process::cpu_ns)? - cpu) as f64 / 1000.0;
        drop((first, load));
        running.stop()?;
        Ok(json!({ "bytes": grown as f64 / IDLE as f64, "idle_us": idle_us }))
    })?;
    Ok(json!({ "connections": IDLE, "subjects": subjects }))
}

/// Measures system calls per request.
pub(super) fn calls(ground: &Ground, all: &[Subject]) -> Result<Value, Failure> {
    let (connections, requests) = COUNTED;
    let mut sizes = Map::new();
    for size in [128, 16 << 10, 1 << 20] {
        let requests = if size > 1 << 16 { requests / 16 } else { requests };
        let counted = |subject: &Subject| {
            let calls = counted(ground, subject, size, (connections, requests))?;
            let all = system_calls::all(&calls) as f64 / requests as f64;
            Ok(json!({ "all": all, "shown": system_calls::shown(&calls, requests as f64) }))
        };
        let all = all.iter().filter(|one| one.name != COPYING || size == 1 << 20);
        sizes.insert(size.to_string(), once(all, counted)?);
    }
    Ok(Value::Object(sizes))
}

/// Measures each subject once. Returns the results by the names of the subjects.
pub(super) fn once<'a>(
    all: impl IntoIterator<Item = &'a Subject>,
    measure: impl Fn(&Subject) -> Result<Value, Failure>,
) -> Result<Value, Failure> {
    let each = all.into_iter().map(|subject| {
        let measured = measure(subject)?;
        eprintln!("{}: {measured}", subject.name);
        Ok((subject.name.clone(), measured))
    });
    each.collect::<Result<Map<_, _>, _>>().map(Value::Object)
}

/// Counts the system calls of this number of requests, after pools and caches were filled.
pub(super) fn counted(
    ground: &Ground,
    subject: &Subject,
    size: usize,
    (connections, requests): (usize, u64),
) -> Result<Calls, Failure> {
    let running = Running::start(ground, subject, &[])?;
    let mut load = Load::start(ground, &running, size, connections)?;
    let words = format!("count {connections} {requests}");
    load.run(&words)?;
    let proxy = running.processes();
    let (calls, _) = system_calls::counted(&proxy, &ground.folder, || load.run(&words))?;
    drop(load);
    running.stop()?;
    Ok(calls)
}
