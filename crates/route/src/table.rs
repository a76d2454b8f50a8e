//! The table of routes. It finds the first matching route without testing the routes of other hosts.
//!
//! For each host, and for each name in a rule for subdomains, there is a list of all routes that may match, in their
//! order. Routes for all hosts are in each list. A request costs at most one lookup for each label of its host, plus
//! one test for each route of that list.

use std::hash::BuildHasherDefault;

use hashbrown::HashMap;
use siphasher::sip::SipHasher13;

use crate::host::{HOST_MAX, address_in};
use crate::lenient::{LenientRule, Readings};
use crate::{Host, RouteRequest, Rule, host_name};

/// Indexes of routes, in their order.
type List = Box<[u32]>;
/// Maps from host names to lists of routes. All keys come from the configuration, so clients cannot fill the map.
type Hosts = HashMap<Box<[u8]>, List, BuildHasherDefault<SipHasher13>>;

/// The compiled routes.
#[derive(Debug, Default)]
pub struct Table {
    rules: Vec<Rule>,
    /// The paths of the rules, for loose comparison.
    lenient: Vec<LenientRule>,
    exact: Hosts,
    below: Hosts,
    /// The routes for all other hosts.
    rest: List,
}

impl Table {
    /// Compiles a table. Earlier routes take precedence over later routes.
    #[must_use]
    pub fn new(rules: Vec<Rule>) -> Self {
        let mut table = Self::default();
        let of_all = (0_u32..).zip(&rules).filter(|(_, rule)| rule.hosts.is_empty());
        table.rest = of_all.map(|(place, _)| place).collect();
        let mut named: Named = Named::default();
        for (place, rule) in (0_u32..).zip(&rules) {
            for host in &rule.hosts {
                let (map, name) = match host {
                    Host::Exact(name) => (&mut named.exact, name),
                    Host::Below(name) => (&mut named.below, name),
                };
                map.entry(name.as_bytes().into()).or_default().push(place);
            }
        }
        let list = |name: &[u8], own: &[u32]| {
            let mut all: Vec<u32> = own.iter().chain(&table.rest).copied().collect();
            let mut rest = name;
            while let Some(parent) = parent(rest) {
                all.extend(named.below.get(parent).into_iter().flatten());
                rest = parent;
            }
            all.sort_unstable();
            all.dedup();
            all.into_boxed_slice()
        };
        let lists = |map: &HashMap<Box<[u8]>, Vec<u32>, _>| -> Hosts {
            map.iter().map(|(name, own)| (name.clone(), list(name, own))).collect()
        };
        (table.exact, table.below) = (lists(&named.exact), lists(&named.below));
        table.lenient = rules.iter().map(|rule| LenientRule::of(rule.path.as_ref())).collect();
        table.rules = rules;
        table
    }

    /// The number of routes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.rules.len()
    }

    /// Whether there are no routes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The index of the first route that matches.
    #[must_use]
    pub fn find(&self, asked: &RouteRequest<'_>) -> Option<usize> {
        let list = self.list_of(host_name(asked.host));
        let fits = |place: &&u32| self.rules[**place as usize].fits(asked);
        list.iter().find(fits).map(|place| *place as usize)
    }

    /// The index of the first `wanted` route before `end` that matches on a server that is less strict than
    /// [`Self::find`]. Such a server may ignore the case of methods and paths, percent-encoding, blanks and dots at the
    /// ends of segments, a slash at the end, and everything after an encoded question mark or hash.
    #[must_use]
    pub fn find_lenient(
        &self,
        asked: &RouteRequest<'_>,
        end: usize,
        wanted: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let list = self.list_of(host_name(asked.host)).iter().map(|place| *place as usize);
        let mut wanted =
            list.take_while(|place| *place < end).filter(|place| wanted(*place)).peekable();
        // Usually there is no such route.
        wanted.peek()?;
        let readings = asked.path.map(Readings::of);
        wanted.find(|place| {
            let (rule, lenient) = (&self.rules[*place], &self.lenient[*place]);
            let path = match (&rule.path, &readings) {
                (None, _) => true,
                (Some(_), Some(readings)) => readings.fit(lenient),
                (Some(_), None) => false,
            };
            path && rule.fits_lenient_except_path(asked)
        })
    }

    /// The routes that may match a host.
    fn list_of(&self, name: &[u8]) -> &[u32] {
        if self.exact.is_empty() && self.below.is_empty() || name.len() > HOST_MAX {
            return &self.rest;
        }
        if let Some(address) = address_in(name) {
            return self.exact.get(format!("[{address}]").as_bytes()).unwrap_or(&self.rest);
        }
        let mut lower = [0; HOST_MAX];
        let name = {
            let lower = &mut lower[..name.len()];
            lower.copy_from_slice(name);
            lower.make_ascii_lowercase();
            &*lower
        };
        if let Some(list) = self.exact.get(name) {
            return list;
        }
        if !self.below.is_empty() {
            let mut rest = name;
            while let Some(parent) = parent(rest) {
                if let Some(list) = self.below.get(parent) {
                    return list;
                }
                rest = parent;
            }
        }
        &self.rest
    }

    /// Routes that no request can reach, each with the earlier route that matches all of their requests. Incomplete
    /// where this cannot be decided.
    #[must_use]
    pub fn shadowed(&self) -> Vec<(usize, usize)> {
        let covering = |place: usize| {
            let rule = &self.rules[place];
            // A route that covers this one also covers its first host.
            let list = match rule.hosts.first() {
                None => &self.rest,
                Some(Host::Exact(name)) => self.list_of(name.as_bytes()),
                Some(Host::Below(name)) => self.below.get(name.as_bytes()).unwrap_or(&self.rest),
            };
            let earlier = list.iter().map(|one| *one as usize).take_while(|one| *one < place);
            earlier.into_iter().find(|one| self.rules[*one].covers(rule))
        };
        (0..self.len()).filter_map(|place| Some((place, covering(place)?))).collect()
    }
}

/// Indexes of routes by host name, while a table is built.
#[derive(Default)]
struct Named {
    exact: HashMap<Box<[u8]>, Vec<u32>, BuildHasherDefault<SipHasher13>>,
    below: HashMap<Box<[u8]>, Vec<u32>, BuildHasherDefault<SipHasher13>>,
}

/// A name without its first label. A name that begins with a dot has no parent.
fn parent(name: &[u8]) -> Option<&[u8]> {
    let dot = name.iter().position(|&byte| byte == b'.')?;
    (dot > 0 && !name.starts_with(b"[")).then(|| &name[dot + 1..])
}

#[cfg(test)]
mod tests;
