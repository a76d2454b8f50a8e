//! Measures shared bindings against NATS servers that run already, for `cargo xtask bench cluster`. Each command prints
//! one JSON object.
//!
//! ```text
//! measure fill COUNT URL…             a daemon binds clients as fast as the servers store them
//! measure catch-up COUNT URL…         a daemon starts and reads them
//! measure binds RATE SECONDS URL…     a daemon binds clients, which another one learns
//! ```

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "a measurement has clocks and files, and fails where it stands"
)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cluster::{Cluster, ClusterConfig, Secret, Settings, TableConfig};
use exchange::{BindingChange, BindingUse, SharedKey};
use serde_json::{Value, json};

const LIFETIME_MS: u64 = 3_600_000;
/// The maximum time until a daemon is in sync.
const PATIENCE: Duration = Duration::from_secs(600);

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| words[at].parse::<u64>().unwrap();
    let measured = match words[0].as_str() {
        "fill" => fill(number(1), &words[2..]),
        "catch-up" => catch_up(number(1), &words[2..]),
        "binds" => binds(number(1), number(2), &words[3..]),
        other => panic!("unknown command {other}"),
    };
    println!("{measured}");
}

/// The key of a client. As in a hash, all of its bits differ from those of other clients: tables are indexed by a part
/// of it. Its halves differ by the number.
fn client(number: u64) -> SharedKey {
    let mixed = exchange::mix(number);
    let mut key = [0; 16];
    key[..8].copy_from_slice(&mixed.to_le_bytes());
    key[8..].copy_from_slice(&(mixed ^ number).to_le_bytes());
    SharedKey(key)
}

fn number_of(key: SharedKey) -> u64 {
    let half = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    half(&key.0[..8]) ^ half(&key.0[8..])
}

fn start(
    machine: &str,
    urls: &[String],
    writes_per_second: u64,
    mut changed: impl FnMut(&[BindingChange]) + Send + 'static,
) -> (Cluster, SyncSender<Vec<BindingUse>>) {
    let (uses, receiver) = cluster::uses();
    let changes = Box::new(move |changes: Vec<BindingChange>| {
        changed(&changes);
        Ok(())
    });
    let config = ClusterConfig {
        servers: urls.to_vec(),
        tls: None,
        credentials: None,
        site: "bench".to_owned(),
        machine: machine.to_owned(),
        secret: Secret(1, 2),
        replicas: urls.len().min(3),
    };
    // As the daemon sets them, except for the rate.
    let settings = Settings {
        lifetime_ms: LIFETIME_MS,
        flush_ms: 10,
        writes_per_second,
        ..Settings::default()
    };
    let table = TableConfig { name: "web".to_owned(), settings, uses: receiver, changes };
    let seed = exchange::mix(u64::from(std::process::id())) ^ u64::from(machine.as_bytes()[0]);
    (Cluster::start(config, vec![table], seed).unwrap(), uses)
}

fn wait_in_sync(cluster: &Cluster) {
    assert!(cluster.wait_in_sync(PATIENCE), "{:?}", cluster.status().trouble);
}

/// The CPU time of the threads of clusters, in µs, in the order in which they were started.
fn cpu_us() -> Vec<f64> {
    let mut threads: Vec<_> =
        std::fs::read_dir("/proc/self/task").unwrap().map(|it| it.unwrap().path()).collect();
    threads.sort_by_key(|path| path.file_name().unwrap().to_str().unwrap().parse::<u32>().unwrap());
    let read = |path: &std::path::Path| std::fs::read_to_string(path).unwrap_or_default();
    threads.retain(|thread| read(&thread.join("comm")).trim() == "cluster");
    let time = |thread: &std::path::PathBuf| {
        let text = read(&thread.join("schedstat"));
        text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or_default() / 1e3
    };
    threads.iter().map(time).collect()
}

/// The resident anonymous memory, in bytes.
fn memory() -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<f64>().unwrap() * 1024.0
}

fn fill(count: u64, urls: &[String]) -> Value {
    let (cluster, uses) = start("fill", urls, u64::from(u32::MAX), |_| {});
    wait_in_sync(&cluster);
    let (begun, cpu) = (Instant::now(), cpu_us()[0]);
    let all: Vec<u64> = (0..count).collect();
    for part in all.chunks(1000) {
        let bind = |&number| BindingUse { key: client(number), before: None, target: number % 8 };
        uses.send(part.iter().map(bind).collect()).unwrap();
    }
    while cluster.status().tables[0].status.listed < count {
        std::thread::park_timeout(Duration::from_millis(10));
    }
    let seconds = begun.elapsed().as_secs_f64();
    json!({ "seconds": seconds, "cpu_us": (cpu_us()[0] - cpu) / count as f64 })
}

fn catch_up(count: u64, urls: &[String]) -> Value {
    let before = memory();
    let begun = Instant::now();
    let learned = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&learned);
    let (cluster, _uses) = start("catch-up", urls, 5000, move |changes| {
        counted.fetch_add(changes.len() as u64, Ordering::Relaxed);
    });
    wait_in_sync(&cluster);
    let seconds = begun.elapsed().as_secs_f64();
    let learned = learned.load(Ordering::Relaxed);
    assert_eq!(learned, count, "all clients are learned, once");
    let bytes = (memory() - before) / count as f64;
    json!({ "seconds": seconds, "bytes": bytes, "cpu_us": cpu_us()[0] / count as f64 })
}

fn binds(rate: u64, seconds: u64, urls: &[String]) -> Value {
    let count = rate * seconds;
    // Clients of an earlier run are bound already.
    let first = exchange::mix(u64::from(std::process::id())) >> 1;
    let (writer, uses) = start("one", urls, 5000, |_| {});
    wait_in_sync(&writer);
    let begun = Instant::now();
    let elapsed_us = move || u64::try_from(begun.elapsed().as_micros()).unwrap();
    let learned = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&learned);
    let (reader, _uses) = start("two", urls, 5000, move |changes| {
        let now_us = elapsed_us();
        let numbers = changes.iter().map(|change| number_of(change.key).wrapping_sub(first));
        noted
            .lock()
            .unwrap()
            .extend(numbers.filter(|number| *number < count).map(|it| (it, now_us)));
    });
    wait_in_sync(&reader);
    let cpu = cpu_us();
    let start_us = elapsed_us();
    let mut sent_us = Vec::new();
    for number in 0..count {
        let due_us = start_us + number * 1_000_000 / rate;
        while elapsed_us() < due_us {
            std::thread::park_timeout(Duration::from_micros(due_us.saturating_sub(elapsed_us())));
        }
        let bind = BindingUse { key: client(first + number), before: None, target: number % 8 };
        sent_us.push(elapsed_us());
        uses.send(vec![bind]).unwrap();
    }
    let limit = Instant::now() + PATIENCE;
    while learned.lock().unwrap().len() < sent_us.len() {
        assert!(Instant::now() < limit, "bindings are missing");
        std::thread::park_timeout(Duration::from_millis(10));
    }
    let used: Vec<f64> =
        cpu.iter().zip(cpu_us()).map(|(before, after)| (after - before) / count as f64).collect();
    let learned = learned.lock().unwrap();
    let place = |number: u64| usize::try_from(number).unwrap();
    let mut took: Vec<u64> =
        learned.iter().map(|&(number, at)| at - sent_us[place(number)]).collect();
    took.sort_unstable();
    let at = |part: usize| took[(took.len() - 1) * part / 100] as f64 / 1e3;
    json!({ "p50_ms": at(50), "p99_ms": at(99), "writer_us": used[0], "reader_us": used[1] })
}
