//! The cluster of a daemon: connects the pools that share bindings with the thread that talks to NATS.

mod commands;
mod report;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use cluster::{
    AddressUses, Changes, Cluster, ClusterConfig, HealthHints, LimitSharing, Secret, Settings,
    Sharing, TableConfig, TlsFiles,
};
use exchange::BindingChange;
use gateway::{AddressUseReply, Fleet, SharedBindings};
use settings::Configuration;

use crate::admin::read_secret;
use crate::binding;

/// The minimum length of the secret, in bytes.
const SECRET_MIN: usize = 16;
/// The maximum time of a comparison with other machines.
const CHECK_TIMEOUT: Duration = Duration::from_secs(60);
/// The maximum number of changes of the health of servers that wait for the thread.
const NOTICES_MAX: usize = 1024;
/// The maximum number of reports of what addresses used that wait for the thread.
const REPORTS_MAX: usize = 1024;
/// The time between two marks in a bucket, at which daemons compare their contents, in milliseconds: at least, and at
/// most.
const MARK_MS: (u64, u64) = (500, 10_000);

/// The cluster of this daemon.
#[derive(Debug)]
pub(crate) struct ClusterThread {
    cluster: Arc<Cluster>,
    /// The pools whose commands machines share; `None`: they share none.
    pools: Option<Arc<BTreeSet<String>>>,
    /// The names of the site and of this machine.
    names: (String, String),
    start_timeout: Duration,
    /// Whether the loops run.
    is_started: Arc<AtomicBool>,
}

impl ClusterThread {
    /// Starts the thread, before the shards are built. `None`: the configuration has no cluster.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub(crate) fn start(
        configuration: &Configuration,
        fleet: &Arc<Fleet>,
    ) -> Result<Option<Self>, String> {
        let Some(settings) = &configuration.cluster else { return Ok(None) };
        let invalid = |text: &str| format!("`[cluster]`: {text}");
        let secret = read_secret(&settings.secret).map_err(|error| invalid(&error))?;
        if secret.len() < SECRET_MIN {
            return Err(invalid("`secret` has less than 16 characters"));
        }
        let secret = Secret::from_text(secret.as_bytes());
        let is_started = Arc::new(AtomicBool::new(false));
        let (mut tables, mut uses) = (Vec::new(), BTreeMap::new());
        for pool in &configuration.pools {
            let Some(sticky) = pool.balancing.sticky.as_ref().filter(|sticky| sticky.shared) else {
                continue;
            };
            let Some(id) = fleet.pool(&pool.name) else { continue };
            let (sender, receiver) = cluster::uses();
            uses.insert(id, sender);
            let (to, is_started) = (Arc::clone(fleet), Arc::clone(&is_started));
            let changes: Changes = Box::new(move |changes: Vec<BindingChange>| {
                // Before the loops run nothing is taken, and everything is sent.
                let is_limited = is_started.load(Ordering::Relaxed);
                to.send_binding_changes(id, changes, is_limited)
            });
            tables.push(TableConfig {
                name: pool.name.clone(),
                settings: limits(sticky),
                uses: receiver,
                changes,
            });
        }
        let (health, notices) = sync_channel(NOTICES_MAX);
        fleet.share_bindings(SharedBindings { secret: (secret.0, secret.1), uses, health });
        let pools = commands::pools(configuration);
        let named = pools.iter().filter_map(|pool| Some((fleet.pool(pool)?, pool.clone())));
        let to = Arc::clone(fleet);
        let health = HealthHints {
            notices,
            pools: named.collect(),
            check: Box::new(move |pool, worker| to.check_now(pool, worker)),
        };
        let pools = Some(Arc::new(pools)).filter(|it| settings.share_commands && !it.is_empty());
        let limits = share_limits(configuration, fleet);
        let operator = pools.is_some().then(|| commands::apply(Arc::clone(fleet)));
        let config = ClusterConfig {
            servers: settings.nats.clone(),
            tls: tls(settings),
            credentials: settings.credentials.clone(),
            site: settings.site.clone(),
            machine: settings.machine.clone().unwrap_or_else(host_name),
            secret,
            replicas: settings.stored_by(),
        };
        let seed = binding::seed().map_err(|error| invalid(&error.to_string()))?;
        let names = (config.site.clone(), config.machine.clone());
        let sharing = Sharing { operator, health: Some(health), limits };
        let cluster = Cluster::start_sharing(config, tables, sharing, seed);
        let cluster = cluster.map_err(|error| invalid(&format!("no thread: {error}")))?;
        let start_timeout = settings.start_timeout;
        Ok(Some(Self { cluster: Arc::new(cluster), pools, names, start_timeout, is_started }))
    }

    /// Waits for the bindings of the other machines and the commands of operators, for a limited time. Listeners are bound meanwhile, so clients wait.
    pub(crate) fn wait(&self) {
        if !self.cluster.wait_in_sync(self.start_timeout) {
            let status = self.cluster.status();
            let trouble = status.trouble.or_else(|| status.operator?.trouble);
            tracing::warn!(
                "serving without the bindings and commands of other machines, which were not read within {:?}: {}",
                self.start_timeout,
                trouble.as_deref().unwrap_or("they are still being read"),
            );
        }
        self.is_started.store(true, Ordering::Relaxed);
    }

    /// The metrics of the cluster, in the Prometheus text format.
    pub(crate) fn metrics(&self) -> String {
        report::metrics(&self.cluster.status())
    }

    /// The operations at the admin address.
    pub(crate) fn operations(&self) -> control::Cluster {
        let [status, check, metrics] = [(); 3].map(|()| Arc::clone(&self.cluster));
        control::Cluster {
            status: Arc::new(move || report::status(&status.status())),
            check: Arc::new(move || {
                let (sender, receiver) = std::sync::mpsc::channel();
                check.check(Box::new(move |report| {
                    // The client may have disconnected.
                    let _ = sender.send(report);
                }));
                let report = receiver.recv_timeout(CHECK_TIMEOUT);
                report.map(|report| report::check(&report)).map_err(|_| {
                    "the tables could not be compared now; `ctl cluster status` shows the connection"
                        .to_owned()
                })
            }),
            metrics: Arc::new(move || report::metrics(&metrics.status())),
            commands: self.pools.as_ref().map(|pools| {
                commands::commands(Arc::clone(&self.cluster), Arc::clone(pools), self.names.clone())
            }),
        }
    }
}

/// Connects the limits of addresses that are shared with the thread. `None`: there are none.
fn share_limits(configuration: &Configuration, fleet: &Arc<Fleet>) -> Option<LimitSharing> {
    let is_shared = |listener: &settings::Listener| {
        listener.addresses.limits.is_some_and(|limits| limits.shared)
    };
    configuration.listeners.iter().any(is_shared).then_some(())?;
    let (sender, reports) = sync_channel(REPORTS_MAX);
    let reply: AddressUseReply = Arc::new(move |listener, uses| {
        // The thread is late: this report is lost.
        let _ = sender.try_send(AddressUses { listener, uses });
    });
    let (ask, apply) = (Arc::clone(fleet), Arc::clone(fleet));
    Some(LimitSharing {
        ask: Box::new(move || ask.ask_address_uses(&reply)),
        reports,
        apply: Box::new(move |daemon, AddressUses { listener, uses }| {
            apply.apply_address_uses(daemon, &listener, uses);
        }),
    })
}

fn limits(sticky: &settings::Sticky) -> Settings {
    let lifetime_ms = u64::try_from(sticky.lifetime.as_millis()).unwrap_or(u64::MAX);
    let (least, most) = MARK_MS;
    Settings {
        lifetime_ms,
        entries_max: sticky.entries,
        // Uses were collected for up to 10 ms already.
        flush_ms: 10,
        mark_ms: (lifetime_ms / 8).clamp(least, most),
        ..Settings::default()
    }
}

fn tls(settings: &settings::Cluster) -> Option<TlsFiles> {
    let settings::Cluster { tls_ca: ca, tls_certificate, tls_key, .. } = settings.clone();
    let certificate = tls_certificate.zip(tls_key);
    (ca.is_some() || certificate.is_some()).then_some(TlsFiles { ca, certificate })
}

/// The name of this machine.
fn host_name() -> String {
    let name = std::fs::read_to_string(Path::new("/proc/sys/kernel/hostname"));
    name.map_or_else(|_| "unknown".to_owned(), |name| name.trim().to_owned())
}
