//! What is declared and known of each worker besides whether it runs: its name, weight and fitness,
//! and what was said of it by hand.
//!
//! By place in the table of workers. A worker with a name has a place of its own: what is known
//! of it outlives its runs. A place without a name begins anew with each worker.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::affinity::AffinityTarget;
use crate::health::{Health, HealthSettings};
use crate::random::mix;
use crate::schedule::{Eligibility, SHARE_OF_ONE};
use crate::settings::{Member, Settings, WEIGHT_MAX};
use crate::update::WorkerUpdate;
use exchange::WorkerId;

/// What was said of a worker by hand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AdminState {
    /// Nothing.
    #[default]
    Enabled,
    /// It keeps the clients that are bound to it and gets no others.
    Drained,
    /// It gets nothing.
    Disabled,
}

impl AdminState {
    /// The word in status and `why`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Enabled => "enabled",
            Self::Drained => "drained",
            Self::Disabled => "disabled",
        }
    }
}

/// What an operator does to one worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Another weight than the declared one; none: the declared one again.
    Weight(Option<u32>),
    /// It serves, keeps only who is bound to it, or serves nobody.
    AdminState(AdminState),
}

/// A new worker is given this part of its weight at once.
const WARM_FIRST: u32 = 16;
/// Steps in which a worker warms up.
const WARM_STEPS: u32 = 16;

/// Marks the berths of workers with a name.
const NAMED: u64 = 1 << 63;

#[derive(Clone, Debug)]
pub(crate) struct WorkerRecord {
    /// None: a worker like others.
    pub(crate) name: Option<String>,
    /// Whether the settings still name it.
    declared: bool,
    identity: u64,
    weight: u32,
    /// Another weight, set by hand.
    weight_set: Option<u32>,
    pub(crate) admin_state: AdminState,
    backup: bool,
    slots: Option<u32>,
    pub(crate) health: Health,
    /// When that changed last.
    pub(crate) health_since: Option<Instant>,
    /// Since when it warms up.
    warm_from: Option<Instant>,
    /// At a branch: what its home says of it.
    pub(crate) told: Option<WorkerUpdate>,
}

/// All places.
#[derive(Debug, Default)]
pub(crate) struct WorkerTable {
    records: Vec<WorkerRecord>,
    /// Workers have names.
    named: bool,
    /// Declared workers with a name, by identity.
    index: BTreeMap<u64, u32>,
    /// Places that warm up.
    warming: Vec<u32>,
}

impl WorkerTable {
    /// Takes over what the settings declare. Who keeps its name keeps its place; gives the places
    /// whose workers are not declared any more.
    pub(crate) fn declare(
        &mut self,
        settings: &Settings,
        vacant: impl Fn(u32) -> bool,
    ) -> Vec<u32> {
        let was_named = std::mem::replace(&mut self.named, !settings.members.is_empty());
        if !self.named && !was_named {
            return Vec::new();
        }
        let mut undeclared = Vec::new();
        for (place, record) in (0..).zip(&mut self.records) {
            let member = settings.members.iter().find(|member| record.is(member));
            record.declared = member.is_some();
            match member {
                Some(member) => record.take_over(member),
                None => undeclared.push(place),
            }
        }
        for member in &settings.members {
            if self.records.iter().any(|record| record.declared && record.is(member)) {
                continue;
            }
            let new = WorkerRecord::named(member, &settings.health);
            let free = |place: &u32| !self.records[*place as usize].declared && vacant(*place);
            let count = u32::try_from(self.records.len()).expect("places have 32 bits");
            match (0..count).find(free) {
                Some(place) => {
                    self.records[place as usize] = new;
                    undeclared.retain(|other| *other != place);
                }
                None => self.records.push(new),
            }
        }
        let declared = (0..).zip(&self.records).filter(|(_, record)| record.declared);
        self.index = declared.map(|(place, record)| (record.identity, place)).collect();
        undeclared
    }

    /// Whether workers have names and places of their own.
    pub(crate) const fn is_named(&self) -> bool {
        self.named
    }

    /// Whether somebody is to be given more than others.
    pub(crate) fn weighs(&self) -> bool {
        self.records.iter().any(|record| record.declared && record.weight() > 1)
    }

    /// The first declared place that is free.
    pub(crate) fn vacant(&self, vacant: impl Fn(u32) -> bool) -> Option<u32> {
        let places = (0..).zip(&self.records);
        places.filter(|(_, record)| record.declared).map(|(place, _)| place).find(|at| vacant(*at))
    }

    /// A worker was started at this place.
    pub(crate) fn handle_start(&mut self, place: u32, health: &HealthSettings) {
        if !self.named {
            let new = WorkerRecord::plain(place, health);
            match self.records.get_mut(place as usize) {
                Some(record) => *record = new,
                None => {
                    let from = u32::try_from(self.records.len()).expect("places have 32 bits");
                    self.records
                        .extend((from..=place).map(|place| WorkerRecord::plain(place, health)));
                }
            }
        } else if health.checked_first {
            // What was known of its last run says nothing of this one.
            let record = &mut self.records[place as usize];
            record.health = Health::new(health);
            record.health_since = None;
        }
    }

    pub(crate) fn at(&self, place: u32) -> &WorkerRecord {
        &self.records[place as usize]
    }

    pub(crate) fn at_mut(&mut self, place: u32) -> &mut WorkerRecord {
        &mut self.records[place as usize]
    }

    /// Places that have a profile.
    pub(crate) fn places(&self) -> impl Iterator<Item = u32> + use<> {
        0..u32::try_from(self.records.len()).expect("places have 32 bits")
    }

    pub(crate) fn find(&self, name: &str) -> Option<u32> {
        self.places().find(|place| self.at(*place).name.as_deref() == Some(name))
    }

    /// What a client of the worker at this place is bound to.
    pub(crate) fn affinity_target(&self, place: u32, worker: WorkerId) -> AffinityTarget {
        if self.named {
            AffinityTarget(self.at(place).identity | NAMED)
        } else {
            AffinityTarget(worker.as_u64())
        }
    }

    /// The same, where workers have names, of one that may not run.
    pub(crate) fn named_berth(&self, place: u32) -> Option<AffinityTarget> {
        self.named.then(|| AffinityTarget(self.at(place).identity | NAMED))
    }

    /// The place that a client is bound to. Whoever has no name is found by its id, and must be
    /// the same still.
    pub(crate) fn place_of(
        &self,
        affinity_target: AffinityTarget,
        alive: impl Fn(WorkerId) -> bool,
    ) -> Option<u32> {
        if affinity_target.0 & NAMED != 0 {
            return self.index.get(&(affinity_target.0 & !NAMED)).copied();
        }
        let (place, generation) = (affinity_target.0 & 0xffff_ffff, affinity_target.0 >> 32);
        let [place, generation] = [place, generation].map(|half| u32::try_from(half).ok());
        let worker = WorkerId::new(place?, generation?);
        alive(worker).then_some(place?)
    }

    /// It begins to warm up, if workers do.
    pub(crate) fn warm_up(&mut self, place: u32, now: Instant, slow_start: Duration) {
        if !slow_start.is_zero() {
            self.records[place as usize].warm_from = Some(now);
            if !self.warming.contains(&place) {
                self.warming.push(place);
            }
        }
    }

    /// Whether anybody warms up.
    pub(crate) const fn is_warming(&self) -> bool {
        !self.warming.is_empty()
    }

    /// Places whose share may have changed; those that are warm are let go.
    pub(crate) fn warmed(&mut self, now: Instant, slow_start: Duration) -> Vec<u32> {
        let all = self.warming.clone();
        let records = &mut self.records;
        self.warming.retain(|place| {
            let record = &mut records[*place as usize];
            let warm = record.warm_from.is_none_or(|from| now - from >= slow_start);
            if warm {
                record.warm_from = None;
            }
            !warm
        });
        all
    }

    /// When somebody's share changes next.
    pub(crate) fn warms_at(&self, now: Instant, slow_start: Duration) -> Option<Instant> {
        if self.warming.is_empty() {
            return None;
        }
        now.checked_add((slow_start / WARM_STEPS).max(Duration::from_millis(1)))
    }

    /// How a schedule sees the worker at this place.
    pub(crate) fn eligibility(
        &self,
        place: u32,
        in_use: u32,
        now: Instant,
        settings: &Settings,
    ) -> Eligibility {
        let record = self.at(place);
        let weight = record.weight().max(1);
        let full = weight * SHARE_OF_ONE;
        let share = record.warm_from.map_or(full, |from| {
            let passed = now.saturating_duration_since(from).as_micros();
            let whole = settings.slow_start.as_micros().max(1);
            let step = (passed * u128::from(WARM_STEPS) / whole).min(u128::from(WARM_STEPS));
            let step = u32::try_from(step).unwrap_or(WARM_STEPS);
            (full * step / WARM_STEPS).max(full / WARM_FIRST)
        });
        Eligibility {
            in_use,
            slots: record.slots.unwrap_or(settings.slots),
            weight,
            share: share.max(1),
            identity: record.identity,
            backup: record.backup,
            out: false,
        }
    }
}

impl WorkerRecord {
    fn plain(place: u32, health: &HealthSettings) -> Self {
        Self {
            name: None,
            declared: true,
            identity: mix(u64::from(place) + 1) >> 1,
            weight: 1,
            weight_set: None,
            admin_state: AdminState::Enabled,
            backup: false,
            slots: None,
            health: Health::new(health),
            health_since: None,
            warm_from: None,
            told: None,
        }
    }

    fn named(member: &Member, health: &HealthSettings) -> Self {
        let mut record = Self::plain(0, health);
        record.name = Some(member.name.clone());
        record.identity = crate::affinity::Key::new(member.name.as_bytes()).hash() >> 1;
        record.take_over(member);
        record
    }

    fn is(&self, member: &Member) -> bool {
        self.name.as_deref() == Some(&member.name)
    }

    fn take_over(&mut self, member: &Member) {
        let Member { name: _, weight, backup, slots } = member;
        self.weight = *weight;
        self.backup = *backup;
        self.slots = *slots;
    }

    /// The weight in force.
    pub(crate) fn weight(&self) -> u32 {
        self.weight_set.unwrap_or(self.weight)
    }

    /// Another weight than the declared one; none: the declared one again.
    pub(crate) fn set_weight(&mut self, weight: Option<u32>) {
        self.weight_set = weight.map(|weight| weight.min(WEIGHT_MAX));
    }

    /// What the settings say, and what was set by hand.
    pub(crate) const fn weights(&self) -> (u32, Option<u32>) {
        (self.weight, self.weight_set)
    }

    pub(crate) const fn is_declared(&self) -> bool {
        self.declared
    }

    pub(crate) const fn is_backup(&self) -> bool {
        self.backup
    }

    /// Whether those that are bound to it may be given to it.
    pub(crate) fn serves(&self) -> bool {
        let told = self.told.is_none_or(|told| told.serves);
        told && self.declared && self.health.is_up() && self.admin_state != AdminState::Disabled
    }

    /// Whether anybody may be given to it.
    pub(crate) fn is_open(&self) -> bool {
        let told = self.told.is_none_or(|told| told.open);
        told && self.serves() && self.admin_state == AdminState::Enabled && self.weight() > 0
    }
}
