//! The other daemons of the site: what they send to each other by core NATS, and when they were last heard.
//!
//! | subject | contents |
//! |---|---|
//! | `roadstead.<site>.digest.<table>` | a digest at a mark, to all daemons |
//! | `roadstead.<site>.ask.<table>.<origin>` | a request to one daemon: its digest now (no payload), or the entries of a shard (one byte) |
//!
//! A digest is preceded by the length of the name of its machine (1 byte) and the name.

use std::collections::BTreeMap;

use crate::digest::Digest;
use crate::message::Origin;

/// A daemon that sent no digest for this time is not shown any more.
const FORGOTTEN_MS: u64 = 120_000;
/// The maximum number of daemons that are shown.
const MACHINES_MAX: usize = 64;

/// A digest of another daemon.
#[derive(Debug)]
pub(super) struct Heard {
    pub(super) machine: String,
    pub(super) digest: Digest,
}

impl Heard {
    pub(super) fn encode(machine: &str, digest: &Digest) -> Vec<u8> {
        let length = u8::try_from(machine.len()).unwrap_or(u8::MAX);
        let name = &machine.as_bytes()[..usize::from(length)];
        [&[length], name, &digest.encode()].concat()
    }

    /// Reads a digest. `None`: this version does not know the format.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (&length, rest) = bytes.split_first()?;
        let (name, digest) = rest.split_at_checked(usize::from(length))?;
        let mut machine = String::from_utf8_lossy(name).into_owned();
        machine.retain(|it| !it.is_control());
        Some(Self { machine, digest: Digest::decode(digest)? })
    }
}

/// What is known of another daemon.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    pub(super) name: String,
    pub(super) heard_ms: u64,
    pub(super) revision: u64,
    pub(super) entries: u64,
}

/// The other daemons, by table and origin.
#[derive(Debug, Default)]
pub(super) struct Machines(BTreeMap<(usize, Origin), Machine>);

impl Machines {
    pub(super) fn heard(&mut self, now_ms: u64, table: usize, heard: &Heard) {
        self.0.retain(|_, machine| now_ms.saturating_sub(machine.heard_ms) < FORGOTTEN_MS);
        let Heard { machine, digest } = heard;
        let key = (table, digest.origin);
        if self.0.len() < MACHINES_MAX || self.0.contains_key(&key) {
            let machine = Machine {
                name: machine.clone(),
                heard_ms: now_ms,
                revision: digest.revision,
                entries: digest.entries(),
            };
            self.0.insert(key, machine);
        }
    }

    /// The daemons that share a table and were heard lately.
    pub(super) fn of_table(
        &self,
        now_ms: u64,
        table: usize,
    ) -> impl Iterator<Item = (Origin, &Machine)> {
        self.0.iter().filter_map(move |(key, machine)| {
            let is_lately = now_ms.saturating_sub(machine.heard_ms) < FORGOTTEN_MS;
            (key.0 == table && is_lately).then_some((key.1, machine))
        })
    }
}
