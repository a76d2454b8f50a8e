//! Hints between daemons that the health of a server may have changed.
//!
//! A hint only makes a daemon check the server now. At most two hints per second and server are sent, and as many are
//! followed: a daemon that reports nonsense causes no more checks than that.
//!
//! | subject | contents |
//! |---|---|
//! | `roadstead.<site>.health` | JSON: `version`, `origin`, `pool`, `worker`, `state` (`up` or `down`) |

use std::collections::BTreeMap;

use exchange::PoolId;
use serde_json::{Value as Json, json};

use super::config::HealthHints;
use super::status::HintCounters;
use crate::message::{Origin, Target};

/// The version of the format.
const VERSION: u64 = 1;
/// The maximum number of hints per server in a window.
const HINTS_MAX: u32 = 2;
const WINDOW_MS: u64 = 1000;
/// The maximum number of servers whose hints are counted.
const SERVERS_MAX: usize = 4096;
/// The maximum number of changes that are taken in one round.
const NOTICES_PER_ROUND: usize = 256;

/// A report that a server is up or down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hint {
    pub(super) pool: String,
    pub(super) worker: String,
    pub(super) is_up: bool,
}

impl Hint {
    pub(super) fn encode(&self, origin: Origin) -> Vec<u8> {
        let Self { pool, worker, is_up } = self;
        let json = json!({
            "version": VERSION,
            "origin": format!("{:016x}", origin.0),
            "pool": pool,
            "worker": worker,
            "state": if *is_up { "up" } else { "down" },
        });
        json.to_string().into_bytes()
    }

    /// Reads a hint of another daemon. `None`: it is one of this daemon, or of another version.
    pub(super) fn decode(bytes: &[u8], own: Origin) -> Option<Self> {
        let json: Json = serde_json::from_slice(bytes).ok()?;
        let text = |name: &str| json.get(name)?.as_str();
        let origin = u64::from_str_radix(text("origin")?, 16).ok()?;
        if json.get("version")?.as_u64()? != VERSION || origin == own.0 {
            return None;
        }
        let is_up = match text("state")? {
            "up" => true,
            "down" => false,
            _ => return None,
        };
        Some(Self { pool: text("pool")?.to_owned(), worker: text("worker")?.to_owned(), is_up })
    }
}

/// Limits the hints about each server.
#[derive(Debug, Default)]
struct Limiter(BTreeMap<(String, String), (u64, u32)>);

impl Limiter {
    fn admits(&mut self, now_ms: u64, hint: &Hint) -> bool {
        let key = (hint.pool.clone(), hint.worker.clone());
        if !self.0.contains_key(&key) {
            self.0.retain(|_, (begun_ms, _)| now_ms.saturating_sub(*begun_ms) < WINDOW_MS);
            if self.0.len() >= SERVERS_MAX {
                return false;
            }
        }
        let (begun_ms, count) = self.0.entry(key).or_insert((now_ms, 0));
        if now_ms.saturating_sub(*begun_ms) >= WINDOW_MS {
            (*begun_ms, *count) = (now_ms, 0);
        }
        *count += 1;
        *count <= HINTS_MAX
    }
}

/// The hints of this daemon and those of others.
pub(super) struct Hints {
    config: HealthHints,
    sent: Limiter,
    followed: Limiter,
    counters: HintCounters,
}

impl Hints {
    pub(super) fn new(config: HealthHints) -> Self {
        let (sent, followed) = (Limiter::default(), Limiter::default());
        Self { config, sent, followed, counters: HintCounters::default() }
    }

    /// Takes the changes that this daemon has found. `note` is called with the pool, the target of bindings and whether
    /// it is down. Returns the hints to send.
    pub(super) fn take_notices(
        &mut self,
        now_ms: u64,
        mut note: impl FnMut(&str, Target, bool),
    ) -> Vec<Hint> {
        let mut hints = Vec::new();
        for _ in 0..NOTICES_PER_ROUND {
            let Ok(notice) = self.config.notices.try_recv() else { break };
            let Some(pool) = self.name(notice.pool) else { continue };
            note(&pool, Target(notice.target), !notice.is_up);
            let hint = Hint { pool, worker: notice.worker, is_up: notice.is_up };
            if self.sent.admits(now_ms, &hint) {
                hints.push(hint);
            }
        }
        hints
    }

    fn name(&self, pool: PoolId) -> Option<String> {
        self.config.pools.get(&pool).cloned()
    }

    pub(super) const fn count_sent(&mut self) {
        self.counters.sent += 1;
    }

    /// Another daemon has found a change.
    pub(super) fn follow(&mut self, now_ms: u64, hint: &Hint) {
        self.counters.received += 1;
        if self.followed.admits(now_ms, hint) {
            (self.config.check)(&hint.pool, &hint.worker);
        }
    }

    pub(super) const fn counters(&self) -> HintCounters {
        self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(worker: &str) -> Hint {
        Hint { pool: "web".to_owned(), worker: worker.to_owned(), is_up: false }
    }

    #[test]
    fn a_hint_of_another_daemon_is_read_back() {
        let bytes = hint("10.0.0.1:80").encode(Origin(7));
        assert_eq!(Hint::decode(&bytes, Origin(8)), Some(hint("10.0.0.1:80")));
        assert_eq!(Hint::decode(&bytes, Origin(7)), None, "it is its own");
        let other = String::from_utf8(bytes).unwrap().replace("down", "away");
        assert_eq!(Hint::decode(other.as_bytes(), Origin(8)), None);
        assert_eq!(Hint::decode(b"{", Origin(8)), None);
    }

    #[test]
    fn every_change_is_noted_here_and_two_are_sent() {
        let mut pools = exchange::Table::<PoolId, ()>::default();
        let [known, unknown] = [(); 2].map(|()| PoolId::from(pools.insert(())));
        let (sender, notices) = std::sync::mpsc::sync_channel(8);
        let config = HealthHints {
            notices,
            pools: BTreeMap::from([(known, "web".to_owned())]),
            check: Box::new(|_, _| {}),
        };
        let mut hints = Hints::new(config);
        for (pool, is_up) in [(known, false), (known, true), (unknown, false), (known, false)] {
            let worker = "a".to_owned();
            sender.send(exchange::HealthNotice { pool, worker, target: 7, is_up }).unwrap();
        }
        let mut noted = Vec::new();
        let sent = hints.take_notices(0, |pool, target, is_down| {
            noted.push((pool.to_owned(), target.0, is_down));
        });
        let note = |is_down| ("web".to_owned(), 7, is_down);
        assert_eq!(noted, [note(true), note(false), note(true)]);
        assert_eq!(sent, [hint("a"), Hint { is_up: true, ..hint("a") }]);
    }

    #[test]
    fn two_hints_per_second_and_server_are_admitted() {
        let mut limiter = Limiter::default();
        let mut admitted = |ms, worker| limiter.admits(ms, &hint(worker));
        assert!(admitted(0, "a") && admitted(10, "a") && !admitted(20, "a"));
        assert!(admitted(20, "b"), "each server has its own");
        assert!(!admitted(999, "a") && admitted(1000, "a"));
    }

    #[test]
    fn the_number_of_servers_is_limited() {
        let mut limiter = Limiter::default();
        for number in 0..SERVERS_MAX {
            assert!(limiter.admits(0, &hint(&number.to_string())));
        }
        assert!(!limiter.admits(1, &hint("one more")));
        assert!(limiter.admits(1000, &hint("one more")));
        assert_eq!(limiter.0.len(), 1);
    }
}
