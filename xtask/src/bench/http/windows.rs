//! Windows in which clients ask and a proxy is watched.

use super::subject::{Load, Running, Subject};
use super::{Ground, Shape, process};
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

/// CPU time in each shape, in rounds: in each, every subject has one window, in turn.
pub(super) fn shapes(
    ground: &Ground,
    subjects: &[Subject],
    shapes: &[Shape],
) -> Result<Value, Failure> {
    let mut all = Vec::new();
    for &(connections, active, size) in shapes {
        let length = ground.window.max(WINDOW_A_CLIENT * u32::try_from(active).unwrap_or(u32::MAX));
        let mut rows = Vec::new();
        let mut started = Vec::new();
        for subject in subjects {
            let running = Running::start(ground, subject, &[])?;
            let mut load = Load::start(ground, &running, size, connections)?;
            // Pools and caches are filled once for all windows.
            load.run(&format!("run {active} {}", length.as_millis()), || {})?;
            started.push((running, load));
            rows.push((subject.name.clone(), Vec::new()));
        }
        for round in 0..ground.rounds {
            eprintln!(
                "{connections} connections, {size} bytes: round {} of {}",
                round + 1,
                ground.rounds
            );
            for ((running, load), (_, samples)) in started.iter_mut().zip(&mut rows) {
                samples.push(window(running, load, active, length)?);
            }
        }
        for (running, load) in started {
            drop(load);
            running.stop()?;
        }
        let subjects: serde_json::Map<String, Value> =
            rows.into_iter().map(|(name, samples)| (name, Value::Array(samples))).collect();
        all.push(json!({
            "connections": connections, "active": active, "size": size, "subjects": subjects,
        }));
    }
    Ok(Value::Array(all))
}

fn window(
    running: &Running,
    load: &mut Load,
    active: usize,
    window: Duration,
) -> Result<Value, Failure> {
    let mut looks = Vec::new();
    let done = load.run(&format!("run {active} {}", window.as_millis()), || {
        let process = running.process();
        let cpu = process::cpu_ns(process).unwrap_or(0);
        looks.push((cpu, process::user_and_system(process).unwrap_or((0, 0))));
    })?;
    let [(cpu, (user, system)), (cpu_end, (user_end, system_end))] = looks[..] else {
        return Err(Failure::new("a window has two ends"));
    };
    Ok(json!({
        "cpu_us": (cpu_end - cpu) as f64 / 1000.0 / done.requests.max(1.0),
        "user_ticks": user_end - user,
        "system_ticks": system_end - system,
        "rate": done.requests / window.as_secs_f64(),
    }))
}

/// Latencies at the same pace for all: half of what the slowest of them does.
pub(super) fn paced(ground: &Ground) -> Result<Value, Failure> {
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
        eprintln!("{rate} requests a second: round {} of {}", round + 1, ground.rounds);
        for (_, load, samples) in &mut started {
            let words = format!("pace {PACED} {rate} {}", ground.window.as_millis());
            let done = load.run(&words, || {})?;
            samples.push(json!({
                "p50_us": done.p50_us, "p99_us": done.p99_us, "late_us": done.late_us,
                "rate": done.requests / ground.window.as_secs_f64(),
            }));
        }
    }
    let mut subjects = serde_json::Map::new();
    for (subject, (running, load, samples)) in ground.subjects.iter().zip(started) {
        drop(load);
        running.stop()?;
        subjects.insert(subject.name.clone(), Value::Array(samples));
    }
    Ok(json!({ "rate": rate, "connections": PACED, "subjects": subjects }))
}

/// Memory of connections that were answered once and are idle.
pub(super) fn memory(ground: &Ground) -> Result<Value, Failure> {
    let mut subjects = serde_json::Map::new();
    for subject in &ground.subjects {
        let running = Running::start(ground, subject, &[])?;
        let load = Load::start(ground, &running, 128, IDLE)?;
        let failed = |error| Failure::new(format!("{}: {error}", subject.name));
        let after = process::memory(running.process()).map_err(failed)?;
        let grown = after.saturating_sub(running.memory) as f64 / IDLE as f64;
        let cpu = process::cpu_ns(running.process()).map_err(failed)?;
        thread::sleep(Duration::from_secs(1));
        let cpu = process::cpu_ns(running.process()).map_err(failed)? - cpu;
        eprintln!("{}: {grown:.0} bytes a connection", subject.name);
        let idle_us = cpu as f64 / 1000.0;
        subjects.insert(subject.name.clone(), json!({ "bytes": grown, "idle_us": idle_us }));
        drop(load);
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
        for subject in &ground.subjects {
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
    let counting = Counting::start(&[running.process()], &file)?;
    if !crate::bench::server::wait_until(|| process::is_traced(running.process())) {
        return Err(Failure::new("strace does not attach"));
    }
    load.run(&format!("count {connections} {requests}"), || {})?;
    let calls = counting.finish(&file)?;
    drop(load);
    running.stop()?;
    Ok(calls)
}
