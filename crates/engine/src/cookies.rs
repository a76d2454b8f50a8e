//! Session affinity cookies: read from requests, written to replies.
//!
//! What it is: the four cookie modes, applied to header fields. What it depends on: the cookie codec of `pool`. What
//! it must never depend on: the choice of a worker.

use std::collections::VecDeque;

use exchange::WorkerId;
use fields::{Fields, known};
use pool::{CookieCodec, CookieFault, CookieMode, prefixed, split_prefixed};
use wire::http1::keys;

use flow::reply_head::Head;

mod config;

pub use config::CookieConfig;

const SET_COOKIE: &str = "Set-Cookie";
/// The maximum number of workers without names whose cookies are recognized, including workers that are gone.
const KNOWN_MAX: usize = 4096;

/// The affinity cookie of one pool.
pub(crate) struct Cookies {
    config: CookieConfig,
    /// The value that identifies a worker in a cookie, and its affinity target. Sorted.
    affinity_targets: Vec<(u64, u64)>,
    /// The values of workers without names, the oldest first.
    known: VecDeque<u64>,
    /// The workers are programs, which have no names.
    is_nameless: bool,
}

/// The affinity cookie of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CookieTarget {
    /// The affinity target that it names.
    pub(crate) named: Option<u64>,
    /// The cookie need not be renewed if that worker serves the request.
    pub(crate) fresh: bool,
}

impl Cookies {
    /// `affinity_target` returns the affinity target of the worker with a name.
    pub(crate) fn new(config: CookieConfig, affinity_target: impl Fn(&str) -> Option<u64>) -> Self {
        let codec = config.codec.as_ref();
        let names = config.servers.values();
        let pairs = names.filter_map(|name| Some((codec?.name(name), affinity_target(name)?)));
        let mut affinity_targets: Vec<_> = pairs.collect();
        affinity_targets.sort_unstable();
        let is_nameless = config.servers.as_slice().is_empty();
        Self { config, affinity_targets, known: VecDeque::new(), is_nameless }
    }

    /// Registers a started worker with its affinity target `affinity_target`. Among workers without names, another worker with
    /// the same index has another target.
    pub(crate) fn handle_started(&mut self, worker: WorkerId, affinity_target: u64) {
        if !self.is_nameless {
            return;
        }
        let server = self.config.servers.at(worker);
        *server = format!("{:x}", worker.as_u64());
        let Some(codec) = &self.config.codec else { return };
        let name = codec.name(server);
        if let Err(place) = self.affinity_targets.binary_search_by_key(&name, |(name, _)| *name) {
            self.affinity_targets.insert(place, (name, affinity_target));
            self.known.push_back(name);
        }
        if self.known.len() > KNOWN_MAX
            && let Some(oldest) = self.known.pop_front()
        {
            self.affinity_targets.retain(|(name, _)| *name != oldest);
        }
    }

    /// Keeps the cookies of workers without names across a reload.
    pub(crate) fn take_over(&mut self, before: Self) {
        if self.is_nameless && before.is_nameless {
            (self.affinity_targets, self.known) = (before.affinity_targets, before.known);
        }
    }

    /// Whether the affinity value is removed from requests before they are forwarded.
    pub(crate) const fn changes_requests(&self) -> bool {
        matches!(self.config.mode, CookieMode::Prefix) && self.config.codec.is_some()
    }

    /// Reads the cookie of a request. In mode `prefix` the affinity value is removed from the fields.
    pub(crate) fn read(&self, fields: &mut Fields, second: u32) -> CookieTarget {
        let Some(codec) = &self.config.codec else { return CookieTarget::default() };
        if self.config.mode == CookieMode::Prefix {
            return self.read_prefixed(codec, fields, second);
        }
        let value = keys::cookie(fields, &self.config.name);
        value.map(|value| self.told(codec, value, second)).unwrap_or_default()
    }

    /// A client may send several cookies of the name, for different paths. The first valid one determines the worker.
    /// The prefix is removed from all valid ones, and other cookies are unchanged.
    fn read_prefixed(&self, codec: &CookieCodec, fields: &mut Fields, second: u32) -> CookieTarget {
        let (mut told, mut next) = (None, 0);
        while let Some(field) = fields.position_from(&known::COOKIE, next) {
            next = field + 1;
            let value = fields.field(field).and_then(|field| field.value.bytes());
            let line = value.unwrap_or_default();
            let (mut without, mut from) = (Vec::new(), 0);
            for place in keys::values(line, &self.config.name) {
                let Some((ours, theirs)) = split_prefixed(&line[place.clone()]) else { continue };
                if codec.read(ours, second) == Err(CookieFault::Foreign) {
                    continue;
                }
                told.get_or_insert_with(|| self.told(codec, ours, second));
                without.extend_from_slice(&line[from..place.start]);
                without.extend_from_slice(theirs);
                from = place.end;
            }
            if from > 0 {
                without.extend_from_slice(&line[from..]);
                // The new value is shorter than the old one.
                let _ = fields.set_value(field, without.as_slice());
            }
        }
        told.unwrap_or_default()
    }

    fn told(&self, codec: &CookieCodec, value: &[u8], second: u32) -> CookieTarget {
        let Ok((name, age)) = codec.read_aged(value, second) else {
            return CookieTarget::default();
        };
        let found = self.affinity_targets.binary_search_by_key(&name, |(name, _)| *name);
        CookieTarget {
            named: found.ok().map(|place| self.affinity_targets[place].1),
            fresh: age.is_none_or(|age| age <= self.config.lifetime_s / 2),
        }
    }

    /// Whether a client that already has a fresh cookie needs no other one.
    pub(crate) const fn is_told_once(&self) -> bool {
        matches!(self.config.mode, CookieMode::Insert)
    }

    /// Writes the cookie to a reply of this worker. In mode `passive`, returns the value that the server has set
    /// instead.
    pub(crate) fn write(&self, head: &mut Head, server: WorkerId, second: u32) -> Option<Vec<u8>> {
        let name = self.config.servers.get(server)?;
        let ours = || self.config.codec.as_ref().map(|codec| codec.write(name, second));
        match self.config.mode {
            CookieMode::Insert => {
                let ours = ours()?;
                let line = [&self.config.name, &b"="[..], ours.as_bytes(), &self.config.attributes];
                // A full head is sent without the cookie; the next reply sets it.
                let _ = head.fields.append(SET_COOKIE, line.concat().as_slice());
            }
            CookieMode::Rewrite => {
                let ours = ours()?;
                self.change(head, |_| Some(ours.as_bytes().to_vec()));
            }
            CookieMode::Prefix => {
                let ours = ours()?;
                self.change(head, |theirs| Some(prefixed(&ours, theirs)));
            }
            CookieMode::Passive => {
                let mut learnt = None;
                self.change(head, |theirs| {
                    learnt = Some(theirs.to_vec());
                    None
                });
                return learnt.filter(|value| !value.is_empty());
            }
        }
        None
    }

    /// Replaces the value of the cookie in a reply.
    fn change(&self, head: &mut Head, mut to: impl FnMut(&[u8]) -> Option<Vec<u8>>) {
        let mut from = 0;
        while let Some(place) = head.fields.position_from(SET_COOKIE, from) {
            from = place + 1;
            let field = head.fields.field(place);
            let Some(line) = field.and_then(|field| field.value.bytes()) else { continue };
            let Some(rest) = line.strip_prefix(self.config.name.as_slice()) else { continue };
            let Some(rest) = rest.strip_prefix(b"=") else { continue };
            let end = rest.iter().position(|byte| *byte == b';').unwrap_or(rest.len());
            if let Some(value) = to(&rest[..end]) {
                let line = [&self.config.name, &b"="[..], &value, &rest[end..]].concat();
                let _ = head.fields.set_value(place, line.as_slice());
            }
        }
    }
}
