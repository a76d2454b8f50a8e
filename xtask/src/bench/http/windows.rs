//! Windows in which clients send requests and a proxy is measured.

use super::ground::{Ground, Shape};
use super::running::{Load, Running, proc_failed};
use super::subject::{COPYING, Subject};
use crate::bench::order::Order;
use crate::bench::process;
use crate::bench::system_calls::{self, Calls, Counting};
use crate::shell::Failure;
use serde_json::{Value, json};
use std::thread;
use std::time::Duration;

/// Connections, requests of a window in which system calls are counted.
const COUNTED: (usize, u64) = (64, 8000);
/// Connections whose memory is measured.
const IDLE: usize = 9000;
/// A window is at least so long for each active client, so that each is answered several times.
const WINDOW_A_CLIENT: Duration = Duration::from_micros(250);
/// Clients when latencies are compared.
const PACED: usize = 64;
/// The least window when latencies are compared: a 99th percentile needs many requests.
const PACED_MIN: Duration = Duration::from_secs(2);

/// CPU time in each shape, in rounds: in each, every subject has one window, in random order.
pub(super) fn shapes(
    ground: &Ground,
    subjects: &[Subject],
    shapes: &[Shape],
) -> Result<Value, Failure> {
    let mut order = Order::new(ground.seed);
    let mut all = Vec::new();
    for &(connections, active, size) in shapes {
        let length = ground.window.max(WINDOW_A_CLIENT * u32::try_from(active).unwrap_or(u32::MAX));
        let mut started = Vec::new();
        for subject in subjects {
            let running = Running::start(ground, subject, &[])?;
            let mut load = Load::start(ground, &running, size, connections)?;
            // Connections, pools and caches are filled once for all windows.
            load.run(&format!("run {active} {}", length.as_millis()), || {})?;
            started.push((running, load, Vec::new()));
        }
        for round in 0..ground.rounds {
            eprintln!(
                "{connections} connections, {size} bytes: round {} of {}",
                round + 1,
                ground.rounds
            );
            for at in order.round(started.len()) {
                let (running, load, samples) = &mut started[at];
                samples.push(window(running, load, active, length)?);
            }
        }
        let mut rows = serde_json::Map::new();
        for (subject, (running, load, samples)) in subjects.iter().zip(started) {
            drop(load);
            running.stop()?;
            rows.insert(subject.name.clone(), Value::Array(samples));
        }
        all.push(json!({
            "connections": connections, "active": active, "size": size, "subjects": rows,
            "made": ground.made(length),
        }));
    }
    Ok(Value::Array(all))
}

/// What is read before and after a window.
struct Look {
    /// CPU time of all processes of the proxy.
    cpu_ns: u64,
    user_and_system: (u64, u64),
    /// CPU time of everything that belongs to the measurement, this process included.
    ours_ns: u64,
    /// CPU time of the whole machine.
    busy_ns: u64,
}

impl Look {
    fn at(proxy: &[u32], others: &[u32]) -> Result<Self, Failure> {
        let cpu = |processes: &[u32]| -> Result<u64, Failure> {
            let each = processes.iter().map(|one| process::cpu_ns(*one).map_err(proc_failed));
            each.sum()
        };
        let mut user_and_system = (0, 0);
        for one in proxy {
            let (user, system) = process::user_and_system(*one).map_err(proc_failed)?;
            user_and_system.0 += user;
            user_and_system.1 += system;
        }
        let cpu_ns = cpu(proxy)?;
        let busy_ns = process::busy_ns().map_err(proc_failed)?;
        Ok(Self { cpu_ns, user_and_system, ours_ns: cpu_ns + cpu(others)?, busy_ns })
    }
}

fn window(
    running: &Running,
    load: &mut Load,
    active: usize,
    window: Duration,
) -> Result<Value, Failure> {
    let proxy = running.processes()?;
    let others = [running.origin(), load.process(), std::process::id()];
    let accepted = running.accepted()?;
    let mut looks = Vec::new();
    let done = load.run(&format!("run {active} {}", window.as_millis()), || {
        looks.push(Look::at(&proxy, &others));
    })?;
    let mut looks = looks.into_iter();
    let (Some(before), Some(after)) = (looks.next(), looks.next()) else {
        return Err(Failure::new("a window has two ends"));
    };
    let (before, after) = (before?, after?);
    if running.processes()? != proxy {
        return Err(Failure::new("a process of a proxy started or ended within a window"));
    }
    let busy = after.busy_ns.saturating_sub(before.busy_ns) as f64;
    let ours = (after.ours_ns - before.ours_ns) as f64;
    let capacity = window.as_nanos() as f64 * process::processors() as f64;
    Ok(json!({
        "cpu_us": (after.cpu_ns - before.cpu_ns) as f64 / 1000.0 / done.requests.max(1.0),
        "user_ticks": after.user_and_system.0 - before.user_and_system.0,
        "system_ticks": after.user_and_system.1 - before.user_and_system.1,
        "rate": done.requests / window.as_secs_f64(),
        "requests": done.requests,
        "connects": running.accepted()? - accepted,
        "foreign": ((busy - ours) / capacity).max(0.0),
    }))
}

/// Latencies at the same pace for all: half of what the slowest of them does.
pub(super) fn paced(ground: &Ground) -> Result<Value, Failure> {
    let length = ground.window.max(PACED_MIN);
    let mut order = Order::new(ground.seed);
    let mut started = Vec::new();
    let mut weakest = f64::INFINITY;
    for subject in &ground.subjects {
        let running = Running::start(ground, subject, &[])?;
        let mut load = Load::start(ground, &running, 128, PACED)?;
        load.run(&format!("run {PACED} 300"), || {})?;
        let done = load.run(&format!("run {PACED} 1000"), || {})?;
        weakest = weakest.min(done.requests);
        started.push((running, load, Vec::new()));
    }
    let rate = (weakest / 2.0).round().max(1.0);
    for round in 0..ground.rounds {
        eprintln!("{rate} requests per second: round {} of {}", round + 1, ground.rounds);
        for at in order.round(started.len()) {
            let (_, load, samples) = &mut started[at];
            let words = format!("pace {PACED} {rate} {}", length.as_millis());
            let done = load.run(&words, || {})?;
            samples.push(json!({
                "p50_us": done.p50_us, "p99_us": done.p99_us, "late_us": done.late_us,
                "rate": done.requests / length.as_secs_f64(),
            }));
        }
    }
    let mut subjects = serde_json::Map::new();
    for (subject, (running, load, samples)) in ground.subjects.iter().zip(started) {
        drop(load);
        running.stop()?;
        subjects.insert(subject.name.clone(), Value::Array(samples));
    }
    let made = ground.made(length);
    Ok(json!({ "rate": rate, "connections": PACED, "subjects": subjects, "made": made }))
}

/// Memory of connections that were answered once and are idle, of all processes of a proxy.
pub(super) fn memory(ground: &Ground) -> Result<Value, Failure> {
    let mut subjects = serde_json::Map::new();
    for subject in &ground.subjects {
        let running = Running::start(ground, subject, &[])?;
        // It has served: what it needs once is not the price of a connection.
        let first = Load::start(ground, &running, 128, 1)?;
        let proxy = running.processes()?;
        let sum = |of: fn(u32) -> std::io::Result<u64>| -> Result<u64, Failure> {
            proxy.iter().map(|one| of(*one).map_err(proc_failed)).sum()
        };
        let before = sum(process::memory)?;
        let load = Load::start(ground, &running, 128, IDLE)?;
        let grown = sum(process::memory)?.saturating_sub(before) as f64 / IDLE as f64;
        let cpu = sum(process::cpu_ns)?;
        thread::sleep(Duration::from_secs(1));
        let idle_us = (sum(process::cpu_ns)? - cpu) as f64 / 1000.0;
        eprintln!("{}: {grown:.0} bytes per connection", subject.name);
        subjects.insert(subject.name.clone(), json!({ "bytes": grown, "idle_us": idle_us }));
        drop((first, load));
        running.stop()?;
    }
    Ok(json!({ "connections": IDLE, "subjects": subjects }))
}

/// System calls of a request.
pub(super) fn calls(ground: &Ground) -> Result<Value, Failure> {
    let (connections, requests) = COUNTED;
    let mut sizes = serde_json::Map::new();
    for size in [128, 16 << 10, 1 << 20] {
        let mut subjects = serde_json::Map::new();
        for subject in ground.subjects.iter().chain(&ground.copying) {
            if subject.name == COPYING && size < 1 << 20 {
                continue;
            }
            let requests = if size > 1 << 16 { requests / 16 } else { requests };
            let calls = counted(ground, subject, size, (connections, requests))?;
            let all: u64 = calls.iter().map(|(_, count)| count).sum();
            let shown = system_calls::shown(&calls, requests as f64);
            eprintln!("{size} bytes, {}: {shown}", subject.name);
            let all = all as f64 / requests as f64;
            subjects.insert(subject.name.clone(), json!({ "all": all, "shown": shown }));
        }
        sizes.insert(size.to_string(), Value::Object(subjects));
    }
    Ok(Value::Object(sizes))
}

/// The system calls of so many requests, when pools and caches are filled.
pub(super) fn counted(
    ground: &Ground,
    subject: &Subject,
    size: usize,
    (connections, requests): (usize, u64),
) -> Result<Calls, Failure> {
    let running = Running::start(ground, subject, &[])?;
    let mut load = Load::start(ground, &running, size, connections)?;
    load.run(&format!("count {connections} {requests}"), || {})?;
    let file = ground.folder.join("calls");
    let proxy = running.processes()?;
    let counting = Counting::start(&proxy, &file)?;
    let is_traced = || proxy.iter().all(|one| process::is_traced(*one));
    if !crate::bench::server::wait_until(is_traced) {
        return Err(Failure::new("strace does not attach"));
    }
    load.run(&format!("count {connections} {requests}"), || {})?;
    let calls = counting.finish(&file)?;
    drop(load);
    running.stop()?;
    Ok(calls)
}
