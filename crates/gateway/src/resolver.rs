//! Names of servers and their resolved addresses.
//!
//! What it is: the last result of the resolver for each name, and a thread that resolves each name again at the
//! interval of its pool. Changes are sent to the shards as mail. What it must never depend on: a stream, a request.
//!
//! If a name has several addresses, one is used: the current address while it is still among them, otherwise the first.
//! So a different order of the same addresses changes nothing.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use event::Mailbox;
use settings::{Address, Configuration, HostName};

use crate::error::BuildError;
use crate::shard_mail::ShardMail;

/// Resolves a name to addresses, in the order in which they are to be tried. May block.
pub type Lookup = Arc<dyn Fn(&HostName) -> io::Result<Vec<SocketAddr>> + Send + Sync>;

/// Returns a lookup with the system's resolver, which follows its own rules and files.
pub(crate) fn system() -> Lookup {
    Arc::new(|name| (name.host.as_str(), name.port).to_socket_addrs().map(Iterator::collect))
}

/// The names of all pools.
pub(crate) struct Resolver {
    lookup: Lookup,
    mailboxes: Vec<Mailbox<ShardMail>>,
    state: Mutex<State>,
    /// Notified when the names or intervals change, or when the thread must end.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    known: BTreeMap<HostName, Known>,
    /// Whether a thread resolves them.
    watched: bool,
    ended: bool,
}

/// The state of one name.
struct Known {
    at: SocketAddr,
    every: Duration,
    due: Instant,
    /// Whether the last lookup failed and was logged.
    failed: bool,
}

impl Resolver {
    pub(crate) fn new(lookup: Lookup, mailboxes: Vec<Mailbox<ShardMail>>) -> Arc<Self> {
        let (state, changed) = (Mutex::default(), Condvar::new());
        Arc::new(Self { lookup, mailboxes, state, changed })
    }

    /// Locks the state. The state is consistent whenever the lock is released, so a poisoned lock can be used.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the address of a name that was resolved.
    pub(crate) fn address(&self, name: &HostName) -> Option<SocketAddr> {
        self.lock().known.get(name).map(|known| known.at)
    }

    /// Resolves the names of a configuration that are not known yet.
    pub(crate) fn look_up(&self, configuration: &Configuration) -> Result<(), BuildError> {
        for (pool, name, every) in named(configuration) {
            if self.address(name).is_some() {
                continue;
            }
            let found = self.find(name).and_then(|found| choose(&found, None));
            let at = found.map_err(|error| BuildError::Name {
                pool: pool.to_owned(),
                name: name.to_string(),
                why: error.to_string(),
            })?;
            let known = Known { at, every, due: after(every), failed: false };
            self.lock().known.insert(name.clone(), known);
        }
        Ok(())
    }

    /// Sets the names to be resolved at their intervals: only those of this configuration. Sends all known addresses to
    /// all shards: a shard that just applied a reload may have received the addresses that were known when the reload
    /// was built.
    pub(crate) fn watch(self: &Arc<Self>, configuration: &Configuration) -> io::Result<()> {
        let mut wanted: BTreeMap<&HostName, Duration> = BTreeMap::new();
        for (_, name, every) in named(configuration) {
            let least = wanted.entry(name).or_insert(every);
            *least = every.min(*least);
        }
        let mut state = self.lock();
        state.known.retain(|name, _| wanted.contains_key(name));
        for (name, known) in &mut state.known {
            let every = wanted[name];
            if every != known.every {
                (known.every, known.due) = (every, after(every));
            }
            self.notify_shards(name, known.at);
        }
        if !state.watched && !state.known.is_empty() {
            let names = Arc::clone(self);
            std::thread::Builder::new().name("names".to_owned()).spawn(move || names.run())?;
            state.watched = true;
        }
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// Ends the thread, because no shard remains to be notified.
    pub(crate) fn end(&self) {
        self.lock().ended = true;
        self.changed.notify_all();
    }

    /// Resolves the names that are due, until the end.
    fn run(&self) {
        let mut state = self.lock();
        while !state.ended {
            let Some((name, due)) = state.next() else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = due.saturating_duration_since(Instant::now());
            if !left.is_zero() {
                let waited = self.changed.wait_timeout(state, left);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            drop(state);
            let found = self.find(&name);
            state = self.lock();
            if let Some(to) = state.found(&name, found) {
                self.notify_shards(&name, to);
            }
        }
    }

    /// Returns the addresses of a name. A lookup is code of the embedding program or of the system. If it panics, it
    /// counts as a failed lookup, and later lookups continue. No state of this type is changed during a lookup.
    fn find(&self, name: &HostName) -> io::Result<Vec<SocketAddr>> {
        let found = catch_unwind(AssertUnwindSafe(|| (self.lookup)(name)));
        found.unwrap_or_else(|_| Err(io::Error::other("the look-up panicked")))
    }

    /// Sends a new address to all shards. Called with the lock held, so that the last message contains the known
    /// address.
    fn notify_shards(&self, name: &HostName, to: SocketAddr) {
        let name: Arc<str> = name.to_string().into();
        for mailbox in &self.mailboxes {
            mailbox.post(ShardMail::Moved { name: Arc::clone(&name), to });
        }
    }
}

impl State {
    fn next(&self) -> Option<(HostName, Instant)> {
        let next = self.known.iter().min_by_key(|(_, known)| known.due);
        next.map(|(name, known)| (name.clone(), known.due))
    }

    /// Records the result of a lookup. Returns the address if it has changed.
    fn found(&mut self, name: &HostName, found: io::Result<Vec<SocketAddr>>) -> Option<SocketAddr> {
        // The name may have been removed.
        let known = self.known.get_mut(name)?;
        known.due = after(known.every);
        let before = known.at;
        match found.and_then(|found| choose(&found, Some(before))) {
            Ok(at) => {
                if std::mem::take(&mut known.failed) {
                    tracing::info!(server = %name, address = %at, "has an address again");
                }
                if at == before {
                    return None;
                }
                tracing::info!(server = %name, address = %at, %before, "has another address");
                known.at = at;
                Some(at)
            }
            Err(error) => {
                if !std::mem::replace(&mut known.failed, true) {
                    tracing::warn!(
                        server = %name, address = %before,
                        "cannot be looked up, and keeps its address: {error}"
                    );
                }
                None
            }
        }
    }
}

fn after(every: Duration) -> Instant {
    Instant::now() + every
}

/// Returns which of the addresses of a name is used.
fn choose(found: &[SocketAddr], before: Option<SocketAddr>) -> io::Result<SocketAddr> {
    let kept = before.filter(|before| found.contains(before));
    let chosen = kept.or_else(|| found.first().copied());
    chosen.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "it has no address"))
}

/// Returns the named servers, each with its pool and its interval.
fn named(
    configuration: &Configuration,
) -> impl Iterator<Item = (&str, &HostName, Duration)> + use<'_> {
    let pools = configuration.pools.iter();
    let servers = pools.filter_map(|pool| Some((pool.name.as_str(), pool.servers()?)));
    servers.flat_map(|(pool, servers)| {
        servers.servers.iter().filter_map(move |server| match &server.address {
            Address::Named(name) => Some((pool, name, servers.resolve_interval)),
            Address::Internet(_) | Address::Unix(_) | Address::Inherited(_) => None,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name() -> HostName {
        HostName { host: "app.example".to_owned(), port: 80 }
    }

    fn addresses(last: &[u8]) -> Vec<SocketAddr> {
        last.iter().map(|&last| SocketAddr::from(([10, 0, 0, last], 80))).collect()
    }

    fn state() -> State {
        let every = Duration::from_secs(30);
        let known = Known { at: addresses(&[1])[0], every, due: after(every), failed: false };
        State { known: BTreeMap::from([(name(), known)]), ..State::default() }
    }

    #[test]
    fn an_address_in_use_is_kept_as_long_as_the_name_has_it() {
        let mut state = state();
        assert_eq!(state.found(&name(), Ok(addresses(&[2, 1]))), None);
        assert_eq!(state.found(&name(), Ok(addresses(&[3, 2]))), Some(addresses(&[3])[0]));
        assert_eq!(state.found(&name(), Ok(addresses(&[2, 3]))), None);
        assert_eq!(state.known[&name()].at, addresses(&[3])[0]);
    }

    #[test]
    fn a_look_up_that_fails_changes_nothing() {
        let mut state = state();
        let gone = || io::Error::from(io::ErrorKind::TimedOut);
        assert_eq!(state.found(&name(), Err(gone())), None);
        assert_eq!(state.found(&name(), Ok(Vec::new())), None);
        let known = &state.known[&name()];
        assert!(known.failed && known.at == addresses(&[1])[0]);
        assert_eq!(state.found(&name(), Ok(addresses(&[1]))), None);
        assert!(!state.known[&name()].failed);
    }

    #[test]
    fn a_look_up_that_panics_has_failed_and_the_next_is_made() {
        let panics = Arc::new(std::sync::atomic::AtomicBool::new(true));
        let armed = Arc::clone(&panics);
        let lookup: Lookup = Arc::new(move |_| {
            assert!(!armed.load(std::sync::atomic::Ordering::Relaxed), "planted");
            Ok(addresses(&[1]))
        });
        let names = Resolver::new(lookup, Vec::new());
        assert_eq!(names.find(&name()).unwrap_err().to_string(), "the look-up panicked");
        // This repeats what the thread of the resolver does.
        names.lock().known = state().known;
        let now = Instant::now();
        names.lock().known.values_mut().for_each(|known| known.due = now);
        let turning = Arc::clone(&names);
        let thread = std::thread::spawn(move || turning.run());
        let seen = |what: &dyn Fn(&Known) -> bool| loop {
            if what(&names.lock().known[&name()]) {
                break;
            }
            std::thread::yield_now();
        };
        seen(&|known| known.failed);
        panics.store(false, std::sync::atomic::Ordering::Relaxed);
        names.lock().known.values_mut().for_each(|known| known.due = now);
        names.changed.notify_all();
        seen(&|known| !known.failed);
        names.end();
        thread.join().unwrap();
    }

    #[test]
    fn a_name_that_is_wanted_no_more_stays_forgotten() {
        let mut state = State::default();
        assert_eq!(state.found(&name(), Ok(addresses(&[1]))), None);
        assert!(state.known.is_empty() && state.next().is_none());
    }

    #[test]
    fn names_have_the_shortest_interval_and_go_with_their_configuration() {
        let configuration = |text: &str| {
            let text = format!(
                "[listener.main]\nlisten = \"127.0.0.1:0\"\nprotocol = \"http\"\npool = \"a\"\n{text}"
            );
            let source = settings::Source { name: "test".to_owned(), text };
            settings::parse(&source, &|_| None).unwrap()
        };
        let both = configuration(
            "[pool.a]\nservers = [\"one.example:80\", \"two.example:80\"]\n\
             [pool.b]\nservers = [\"ONE.example:80\", \"10.0.0.9:80\"]\nresolve_interval = \"5s\"\n",
        );
        let lookup: Lookup = Arc::new(|name| match name.host.as_str() {
            "three.example" => Err(io::Error::from(io::ErrorKind::NotFound)),
            _ => Ok(addresses(&[1])),
        });
        let names = Resolver::new(lookup, Vec::new());
        names.look_up(&both).unwrap();
        names.watch(&both).unwrap();
        let shown = || {
            let state = names.lock();
            let shown = |(name, known): (&HostName, &Known)| (name.to_string(), known.every);
            state.known.iter().map(shown).collect::<Vec<_>>()
        };
        let secs = Duration::from_secs;
        let one = "one.example:80".to_owned();
        assert_eq!(shown(), [(one.clone(), secs(5)), ("two.example:80".to_owned(), secs(30))]);
        let other = configuration("[pool.a]\nservers = [\"three.example:80\"]\n");
        let error = names.look_up(&other).unwrap_err().to_string();
        assert!(error.starts_with("pool `a`: `three.example:80` cannot be looked up:"), "{error}");
        assert_eq!(shown().len(), 2, "those in force are not forgotten for it");
        names.watch(&configuration("[pool.a]\nservers = [\"one.example:80\"]\n")).unwrap();
        assert_eq!(shown(), [(one, secs(30))]);
        names.end();
    }
}
