//! Cookies that tell a client's server: read from its requests, written into replies.
//!
//! What it is: the four modes on the fields of a head. What it knows: which value stands for which
//! server, by `pool`'s codec. What it must never know: which server is chosen.

use std::collections::VecDeque;

use exchange::WorkerId;
use fields::{Fields, known};
use pool::{CookieCodec, CookieFault, CookieMode, prefixed, split_prefixed};
use wire::http1::keys;

use flow::reply_head::Head;

mod config;

pub use config::CookieConfig;

const SET_COOKIE: &str = "Set-Cookie";
/// Workers without names that are remembered, those that are gone among them: whoever comes back to
/// one is told so, as the pool's settings say.
const KNOWN_MAX: usize = 4096;

/// The cookie of one pool.
pub struct Cookies {
    plan: CookieConfig,
    /// What stands for a server in a value, and what its clients are bound to; sorted.
    berths: Vec<(u64, u64)>,
    /// Those of workers without names, the oldest first.
    known: VecDeque<u64>,
    /// Its workers are programs, which have no names.
    is_nameless: bool,
}

/// What a request says of its server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// What its client is bound to.
    pub named: Option<u64>,
    /// Its client need not be told again if it is served there.
    pub fresh: bool,
}

impl Cookies {
    /// `berth` tells what clients of a server of that name are bound to.
    pub fn new(plan: CookieConfig, berth: impl Fn(&str) -> Option<u64>) -> Self {
        let codec = plan.codec.as_ref();
        let names = plan.servers.values();
        let pairs = names.filter_map(|name| Some((codec?.name(name), berth(name)?)));
        let mut berths: Vec<_> = pairs.collect();
        berths.sort_unstable();
        let is_nameless = plan.servers.as_slice().is_empty();
        Self { plan, berths, known: VecDeque::new(), is_nameless }
    }

    /// A worker serves, to which clients are bound by `berth`. Of those without names the next one with
    /// its index is another.
    pub fn handle_started(&mut self, worker: WorkerId, berth: u64) {
        if !self.is_nameless {
            return;
        }
        let server = self.plan.servers.at(worker);
        *server = format!("{:x}", worker.as_u64());
        let Some(codec) = &self.plan.codec else { return };
        let name = codec.name(server);
        if let Err(place) = self.berths.binary_search_by_key(&name, |(name, _)| *name) {
            self.berths.insert(place, (name, berth));
            self.known.push_back(name);
        }
        if self.known.len() > KNOWN_MAX
            && let Some(oldest) = self.known.pop_front()
        {
            self.berths.retain(|(name, _)| *name != oldest);
        }
    }

    /// Clients of workers that are gone have cookies of before. Theirs are known for as long as without a reload.
    pub fn take_over(&mut self, before: Self) {
        if self.is_nameless && before.is_nameless {
            (self.berths, self.known) = (before.berths, before.known);
        }
    }

    /// Whether what it reads is removed from requests: then a server sees another head than came.
    pub(crate) const fn changes_requests(&self) -> bool {
        matches!(self.plan.mode, CookieMode::Prefix) && self.plan.codec.is_some()
    }

    /// What a request tells. What is ours alone is removed from its head: its server is not to see it.
    pub fn read(&self, fields: &mut Fields, second: u32) -> Told {
        let Some(codec) = &self.plan.codec else { return Told::default() };
        if self.plan.mode == CookieMode::Prefix {
            return self.read_prefixed(codec, fields, second);
        }
        let value = keys::cookie(fields, &self.plan.name);
        value.map(|value| self.told(codec, value, second)).unwrap_or_default()
    }

    /// Of several cookies of the name, as a client has them of different paths, the first says which
    /// server it is; ours is cut from all of them, and what is none of ours is left alone.
    fn read_prefixed(&self, codec: &CookieCodec, fields: &mut Fields, second: u32) -> Told {
        let (mut told, mut next) = (None, 0);
        while let Some(field) = fields.position_from(&known::COOKIE, next) {
            next = field + 1;
            let value = fields.field(field).and_then(|field| field.value.bytes());
            let line = value.unwrap_or_default();
            let (mut without, mut from) = (Vec::new(), 0);
            for place in keys::values(line, &self.plan.name) {
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
                // It is shorter than what stood there.
                let _ = fields.try_set_value(field, without.as_slice());
            }
        }
        told.unwrap_or_default()
    }

    fn told(&self, codec: &CookieCodec, value: &[u8], second: u32) -> Told {
        let Ok((name, age)) = codec.read_aged(value, second) else { return Told::default() };
        let found = self.berths.binary_search_by_key(&name, |(name, _)| *name);
        Told {
            named: found.ok().map(|place| self.berths[place].1),
            fresh: age.is_none_or(|age| age <= self.plan.lifetime_s / 2),
        }
    }

    /// Whether nothing is to be done with a reply to a client that has its cookie from us already.
    pub(crate) const fn is_told_once(&self) -> bool {
        matches!(self.plan.mode, CookieMode::Insert)
    }

    /// Makes a reply of this worker tell its client so. Gives what is to be learnt of it in mode `passive`.
    pub fn write(&self, head: &mut Head, server: WorkerId, second: u32) -> Option<Vec<u8>> {
        let name = self.plan.servers.get(server)?;
        let ours = || self.plan.codec.as_ref().map(|codec| codec.write(name, second));
        match self.plan.mode {
            CookieMode::Insert => {
                let ours = ours()?;
                let line = [&self.plan.name, &b"="[..], ours.as_bytes(), &self.plan.attributes];
                // A head that is full goes without it: its client is bound by its next reply.
                let _ = head.fields.try_append(SET_COOKIE, line.concat().as_slice());
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

    /// Gives the cookie of our name in a reply another value.
    fn change(&self, head: &mut Head, mut to: impl FnMut(&[u8]) -> Option<Vec<u8>>) {
        let mut from = 0;
        while let Some(place) = head.fields.position_from(SET_COOKIE, from) {
            from = place + 1;
            let field = head.fields.field(place);
            let Some(line) = field.and_then(|field| field.value.bytes()) else { continue };
            let Some(rest) = line.strip_prefix(self.plan.name.as_slice()) else { continue };
            let Some(rest) = rest.strip_prefix(b"=") else { continue };
            let end = rest.iter().position(|byte| *byte == b';').unwrap_or(rest.len());
            if let Some(value) = to(&rest[..end]) {
                let line = [&self.plan.name, &b"="[..], &value, &rest[end..]].concat();
                let _ = head.fields.try_set_value(place, line.as_slice());
            }
        }
    }
}
