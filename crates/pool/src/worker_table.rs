//! The settings and properties of each worker, besides its running state: its name, weight and health, and its
//! administrative state.
//!
//! They are stored by place. A place is an index into the table of workers. A named worker keeps its place, so its
//! record survives restarts. A place without a name gets a new record for each worker.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::affinity::AffinityTarget;
use crate::health::{Health, HealthSettings};
use crate::random::mix;
use crate::schedule::{Eligibility, SHARE_OF_ONE};
use crate::settings::{Member, Settings, WEIGHT_MAX};
use crate::update::WorkerUpdate;
use exchange::{AdminState, WorkerId};

/// An operator's command for one worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Control {
    /// Replaces the declared weight; `None` restores the declared one.
    Weight(Option<u32>),
    /// Sets the administrative state.
    AdminState(AdminState),
}

/// A new worker starts with this fraction of its weight (1/16).
const WARM_FIRST: u32 = 16;
/// The number of steps in which the weight of a new worker rises.
const WARM_STEPS: u32 = 16;

/// Marks the affinity targets of named workers.
const NAMED: u64 = 1 << 63;

#[derive(Clone, Debug)]
pub(crate) struct WorkerRecord {
    /// `None`: the worker has no name and is interchangeable.
    pub(crate) name: Option<String>,
    /// Whether the settings still contain the worker.
    declared: bool,
    identity: u64,
    weight: u32,
    /// The weight that an operator has set.
    weight_set: Option<u32>,
    pub(crate) admin_state: AdminState,
    backup: bool,
    slots: Option<u32>,
    pub(crate) health: Health,
    /// When the health state last changed.
    pub(crate) health_since: Option<Instant>,
    /// Since when the weight is rising (slow start).
    warm_from: Option<Instant>,
    /// On a member shard: the last update from the owner shard.
    pub(crate) owner_update: Option<WorkerUpdate>,
}

/// The records of all places.
#[derive(Debug, Default)]
pub(crate) struct WorkerTable {
    records: Vec<WorkerRecord>,
    /// Whether workers have names.
    named: bool,
    /// Declared workers with a name, by identity.
    index: BTreeMap<u64, u32>,
    /// Places whose weight is rising.
    warming: Vec<u32>,
}

impl WorkerTable {
    /// Applies the workers that the settings declare. A worker that keeps its name keeps its place. Returns the places
    /// of workers that are no longer declared.
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

    /// Whether workers have names and keep their places.
    pub(crate) const fn is_named(&self) -> bool {
        self.named
    }

    /// Whether the weight of any declared worker is greater than 1.
    pub(crate) fn weighs(&self) -> bool {
        self.records.iter().any(|record| record.declared && record.weight() > 1)
    }

    /// Returns the first declared place that is free.
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
            // The health of the previous run does not apply to this one.
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

    /// Places that have a record.
    pub(crate) fn places(&self) -> impl Iterator<Item = u32> + use<> {
        0..u32::try_from(self.records.len()).expect("places have 32 bits")
    }

    pub(crate) fn find(&self, name: &str) -> Option<u32> {
        self.places().find(|place| self.at(*place).name.as_deref() == Some(name))
    }

    /// Returns the affinity target of clients that are bound to the worker at this place.
    pub(crate) fn affinity_target(&self, place: u32, worker: WorkerId) -> AffinityTarget {
        if self.named {
            AffinityTarget(self.at(place).identity | NAMED)
        } else {
            AffinityTarget(worker.as_u64())
        }
    }

    /// Like [`affinity_target`](Self::affinity_target), for a named worker that may not be running. `None` if workers
    /// have no names.
    pub(crate) fn named_affinity_target(&self, place: u32) -> Option<AffinityTarget> {
        self.named.then(|| AffinityTarget(self.at(place).identity | NAMED))
    }

    /// Returns the place that a client is bound to. A worker without a name is found by its id, and only while the same
    /// worker is alive.
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

    /// Starts the slow start of a worker, if it is configured.
    pub(crate) fn warm_up(&mut self, place: u32, now: Instant, slow_start: Duration) {
        if !slow_start.is_zero() {
            self.records[place as usize].warm_from = Some(now);
            if !self.warming.contains(&place) {
                self.warming.push(place);
            }
        }
    }

    /// Whether any worker is in slow start.
    pub(crate) const fn is_warming(&self) -> bool {
        !self.warming.is_empty()
    }

    /// Returns the places whose share may have changed. Places whose slow start has ended are removed from the list.
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

    /// When the share of a worker in slow start changes next.
    pub(crate) fn warms_at(&self, now: Instant, slow_start: Duration) -> Option<Instant> {
        if self.warming.is_empty() {
            return None;
        }
        now.checked_add((slow_start / WARM_STEPS).max(Duration::from_millis(1)))
    }

    /// Returns the worker at this place as input for a schedule.
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
            owner_update: None,
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

    /// The effective weight.
    pub(crate) fn weight(&self) -> u32 {
        self.weight_set.unwrap_or(self.weight)
    }

    /// Replaces the declared weight; `None` restores the declared one.
    pub(crate) fn set_weight(&mut self, weight: Option<u32>) {
        self.weight_set = weight.map(|weight| weight.min(WEIGHT_MAX));
    }

    /// The declared weight, and the weight that an operator has set.
    pub(crate) const fn weights(&self) -> (u32, Option<u32>) {
        (self.weight, self.weight_set)
    }

    pub(crate) const fn is_declared(&self) -> bool {
        self.declared
    }

    pub(crate) const fn is_backup(&self) -> bool {
        self.backup
    }

    /// Whether the worker may receive requests of clients that are bound to it.
    pub(crate) fn serves(&self) -> bool {
        let owner_update = self.owner_update.is_none_or(|owner_update| owner_update.serves);
        owner_update
            && self.declared
            && self.health.is_up()
            && self.admin_state != AdminState::Disabled
    }

    /// Whether the worker may receive requests of any client.
    pub(crate) fn is_open(&self) -> bool {
        let owner_update = self.owner_update.is_none_or(|owner_update| owner_update.open);
        owner_update
            && self.serves()
            && self.admin_state == AdminState::Enabled
            && self.weight() > 0
    }
}
