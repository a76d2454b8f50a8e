//! A daemon as the cluster sees it: a table that is changed by reports and changes, without a pool.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cluster::{
    CheckReport, Cluster, ClusterConfig, ClusterStatus, Secret, Settings, State, TableConfig,
    TableStatus,
};
use exchange::{BindingChange, BindingUse, SharedKey};

pub(crate) struct Daemon {
    pub(crate) cluster: Cluster,
    uses: SyncSender<Vec<BindingUse>>,
    table: Arc<Mutex<HashMap<SharedKey, u64>>>,
}

pub(crate) fn settings() -> Settings {
    Settings { mark_ms: 1000, flush_ms: 5, ..Settings::default() }
}

/// The key of a client. As in a hash, all of its bits differ from those of other clients: tables are indexed by a part
/// of it.
pub(crate) fn client(number: u64) -> SharedKey {
    let mixed = exchange::mix(number);
    let mut key = [0; 16];
    key[..8].copy_from_slice(&mixed.to_le_bytes());
    key[8..].copy_from_slice(&(mixed ^ number).to_le_bytes());
    SharedKey(key)
}

pub(crate) fn config(name: &str, servers: &[String]) -> ClusterConfig {
    ClusterConfig {
        servers: servers.to_vec(),
        tls: None,
        credentials: None,
        site: "site".to_owned(),
        machine: name.to_owned(),
        secret: Secret(1, 2),
        replicas: servers.len().min(3),
    }
}

impl Daemon {
    pub(crate) fn start(name: &str, servers: &[String], settings: Settings) -> Self {
        Self::start_with(config(name, servers), settings)
    }

    pub(crate) fn start_with(config: ClusterConfig, settings: Settings) -> Self {
        let (uses, receiver) = cluster::uses();
        let table = Arc::new(Mutex::new(HashMap::new()));
        let changed = Arc::clone(&table);
        let changes = Box::new(move |changes: Vec<BindingChange>| {
            let mut table = changed.lock().unwrap();
            for BindingChange { key, target } in changes {
                match target {
                    Some(target) => table.insert(key, target),
                    None => table.remove(&key),
                };
            }
            Ok(())
        });
        let config_of_table =
            TableConfig { name: "web".to_owned(), settings, uses: receiver, changes };
        // Daemons of one test, and of tests that run at the same time, must differ.
        let seed = exchange::mix(Arc::as_ptr(&table) as u64 ^ u64::from(std::process::id()));
        let cluster = Cluster::start(config, vec![config_of_table], seed).unwrap();
        Self { cluster, uses, table }
    }

    pub(crate) fn find(&self, key: SharedKey) -> Option<u64> {
        self.table.lock().unwrap().get(&key).copied()
    }

    pub(crate) fn length(&self) -> usize {
        self.table.lock().unwrap().len()
    }

    /// Binds a client, as a request of this client would.
    pub(crate) fn bind(&self, key: SharedKey, target: u64) {
        self.bind_all([(key, target)]);
    }

    pub(crate) fn bind_all(&self, bindings: impl IntoIterator<Item = (SharedKey, u64)>) {
        let mut table = self.table.lock().unwrap();
        let bind = |(key, target)| BindingUse { key, before: table.insert(key, target), target };
        let batch = bindings.into_iter().map(bind).collect();
        drop(table);
        self.uses.send(batch).unwrap();
    }

    /// Sends a request of a bound client to its target, which is returned.
    pub(crate) fn request(&self, key: SharedKey) -> Option<u64> {
        let target = self.find(key)?;
        self.uses.send(vec![BindingUse { key, before: Some(target), target }]).unwrap();
        Some(target)
    }

    pub(crate) fn state(&self) -> State {
        self.table_status().status.state
    }

    /// The number of bindings that NATS has, as far as this daemon knows.
    pub(crate) fn listed(&self) -> u64 {
        self.table_status().status.listed
    }

    pub(crate) fn table_status(&self) -> TableStatus {
        let ClusterStatus { mut tables, .. } = self.cluster.status();
        tables.remove(0)
    }

    pub(crate) fn check(&self) -> CheckReport {
        let (sender, receiver) = std::sync::mpsc::channel();
        self.cluster.check(Box::new(move |report| drop(sender.send(report))));
        receiver.recv_timeout(Duration::from_secs(30)).unwrap()
    }
}

/// Waits until a condition holds. Returns the time that it took.
#[track_caller]
pub(crate) fn wait_for(what: &str, within: Duration, mut is_so: impl FnMut() -> bool) -> Duration {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < within, "{what}: not within {within:?}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
    start.elapsed()
}

/// A lookup must not take longer. It takes microseconds; the rest is for a machine that is busy.
const LOOKUP_MAX: Duration = Duration::from_secs(5);

/// Sends requests of bound clients to both daemons until `fault` returns. Each must find its target, and must not wait.
pub(crate) fn under_requests<T>(
    daemons: &[Daemon; 2],
    clients: Range<u64>,
    fault: impl FnOnce() -> T,
) -> T {
    struct Over<'a>(&'a AtomicBool);
    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let requests = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                for number in clients.clone() {
                    for daemon in daemons {
                        let start = Instant::now();
                        assert!(
                            daemon.request(client(number)).is_some(),
                            "client {number} is bound"
                        );
                        assert!(start.elapsed() < LOOKUP_MAX, "{:?}", start.elapsed());
                    }
                }
                std::thread::park_timeout(Duration::from_millis(10));
            }
        });
        let over = Over(&is_over);
        let result = fault();
        drop(over);
        requests.join().unwrap();
        result
    })
}
