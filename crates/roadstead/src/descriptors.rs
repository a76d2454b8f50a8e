//! The limit of open files, and how many files a configuration may need.

use gateway::Fleet;
use rustix::process::{Resource, getrlimit};
use settings::{Address, Configuration, Protocol};

/// Open files of the daemon itself: standard streams, event loops, the supervisor, files that are read.
const OWN: u64 = 64;

/// The maximum number of files that may be open at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Needed {
    clients: u64,
    workers: u64,
}

impl Needed {
    fn of(configuration: &Configuration) -> Self {
        let of_listener = |listener: &settings::Listener| match listener.protocol {
            Protocol::Datagrams => 1,
            _ => u64::from(listener.connections_max),
        };
        Self {
            clients: configuration.listeners.iter().map(of_listener).sum(),
            workers: configuration.pools.iter().map(settings::Pool::open_files_max).sum(),
        }
    }

    fn sum(self) -> u64 {
        self.clients + self.workers + OWN
    }

    /// Returns the warning for operators if the limit is too low.
    fn warning(self, limit: u64) -> Option<String> {
        let (Self { clients, workers }, sum) = (self, self.sum());
        (sum > limit).then(|| {
            format!(
                "the limit of {limit} open files is too low for {clients} connections of clients (`connections_max` of all \
                 listeners) and {workers} files of workers: raise it to {sum} (LimitNOFILE= of systemd, ulimit -Hn), or \
                 lower `connections_max`; while files are short, idle connections are closed and new ones rejected"
            )
        })
    }
}

/// Passes the limit of open files to the shards.
pub(crate) fn publish(fleet: &Fleet) {
    fleet.set_descriptors_max(getrlimit(Resource::Nofile).current);
}

/// Logs the limit, and warns if the configuration may need more. `spawn::init` has already raised the soft limit.
pub(crate) fn report(configuration: &Configuration) {
    let Some(limit) = getrlimit(Resource::Nofile).current else {
        return tracing::info!("any number of descriptors may be open");
    };
    tracing::info!("at most {limit} descriptors may be open");
    warn(configuration, limit);
    if has_unix_peers(configuration) && !refuses_descriptors() {
        tracing::warn!(
            "this kernel is older than Linux 6.16: programs with a `user`, clients and servers on Unix sockets can pass \
             descriptors, and one that takes long to close delays the daemon; let only trusted users connect"
        );
    }
}

/// Whether a process of another user may be at the other end of a Unix socket.
fn has_unix_peers(configuration: &Configuration) -> bool {
    let is_unix = |address: &Address| matches!(address, Address::Unix(_) | Address::Inherited(_));
    configuration.listeners.iter().any(|listener| is_unix(&listener.listen))
        || configuration.pools.iter().any(settings::Pool::has_unix_peers)
}

fn refuses_descriptors() -> bool {
    std::os::unix::net::UnixStream::pair().is_ok_and(|(one, _)| event::refuse_descriptors(one))
}

/// Warns if a new configuration may need more than the limit.
pub(crate) fn compare(configuration: &Configuration) {
    if let Some(limit) = getrlimit(Resource::Nofile).current {
        warn(configuration, limit);
    }
}

fn warn(configuration: &Configuration, limit: u64) {
    if let Some(warning) = Needed::of(configuration).warning(limit) {
        tracing::warn!("{warning}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_on_unix_sockets_are_found() {
        let has = |more: &str| {
            let text = format!("[listener.a]\nlisten = \"127.0.0.1:0\"\npool = \"p\"\n{more}");
            let source = settings::Source { name: "roadstead.toml".into(), text };
            has_unix_peers(&settings::parse(&source, &|_| None).expect("it is in order"))
        };
        let program = "[pool.p]\nprogram = [\"cat\"]\n";
        assert!(!has(program));
        assert!(has(&format!("{program}user = \"nobody\"\n")));
        assert!(has(&format!("[listener.b]\nlisten = \"unix:/s\"\npool = \"p\"\n{program}")));
    }

    #[test]
    fn what_a_configuration_needs_is_compared_with_the_limit() {
        let text = "[listener.a]\nlisten = \"127.0.0.1:0\"\npool = \"p\"\nconnections_max = 100\n\
            [listener.b]\nlisten = \"127.0.0.1:0\"\npool = \"p\"\nprotocol = \"datagrams\"\n\
            [listener.c]\nlisten = \"127.0.0.1:0\"\nprotocol = \"http\"\npool = \"s\"\nconnections_max = 200\n\
            [pool.p]\nprogram = [\"cat\"]\nworkers = 5\n\
            [pool.s]\nservers = [{ address = \"127.0.0.1:1\", max_concurrent = 7 }, { address = \"127.0.0.1:2\" }]\n\
            upstream.max_concurrent = 30\n";
        let source = settings::Source { name: "roadstead.toml".into(), text: text.into() };
        let configuration = settings::parse(&source, &|_| None).expect("it is in order");
        let needed = Needed::of(&configuration);
        assert_eq!(needed, Needed { clients: 301, workers: 57 });
        assert_eq!(needed.warning(needed.sum()), None);
        let warning = needed.warning(421).expect("one is lacking");
        for part in ["limit of 421 ", "301 connections", "57 files", "raise it to 422 "] {
            assert!(warning.contains(part), "{warning}");
        }
    }
}
