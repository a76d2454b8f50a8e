//! What is declared and known of each worker besides whether it runs: its name, weight and fitness,
//! and what was said of it by hand.
//!
//! By place in the table of workers. A worker with a name has a place of its own: what is known
//! of it outlives its runs. A place without a name begins anew with each worker.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::affinity::Berth;
use crate::health::{Health, HealthSettings};
use crate::news::PlaceNews;
use crate::random::mix;
use crate::schedule::{SHARE_OF_ONE, Standing};
use crate::settings::{Member, Settings, WEIGHT_MAX};
use exchange::WorkerId;

/// What was said of a worker by hand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hand {
    /// Nothing.
    #[default]
    Enabled,
    /// It keeps the clients that are bound to it and gets no others.
    Drained,
    /// It gets nothing.
    Disabled,
}

impl Hand {
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
    Hand(Hand),
}

/// A new worker is given this part of its weight at once.
const WARM_FIRST: u32 = 16;
/// Steps in which a worker warms up.
const WARM_STEPS: u32 = 16;

/// Marks the berths of workers with a name.
const NAMED: u64 = 1 << 63;

#[derive(Clone, Debug)]
pub(crate) struct Profile {
    /// None: a worker like others.
    pub(crate) name: Option<String>,
    /// Whether the settings still name it.
    declared: bool,
    identity: u64,
    weight: u32,
    /// Another weight, set by hand.
    weight_set: Option<u32>,
    pub(crate) hand: Hand,
    backup: bool,
    slots: Option<u32>,
    pub(crate) health: Health,
    /// When that changed last.
    pub(crate) health_since: Option<Instant>,
    /// Since when it warms up.
    warm_from: Option<Instant>,
    /// At a branch: what its home says of it.
    pub(crate) told: Option<PlaceNews>,
}

/// All places.
#[derive(Debug, Default)]
pub(crate) struct Roster {
    profiles: Vec<Profile>,
    /// Workers have names.
    named: bool,
    /// Declared workers with a name, by identity.
    index: BTreeMap<u64, u32>,
    /// Places that warm up.
    warming: Vec<u32>,
}

impl Roster {
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
        for (place, profile) in (0..).zip(&mut self.profiles) {
            let member = settings.members.iter().find(|member| profile.is(member));
            profile.declared = member.is_some();
            match member {
                Some(member) => profile.take_over(member),
                None => undeclared.push(place),
            }
        }
        for member in &settings.members {
            if self.profiles.iter().any(|profile| profile.declared && profile.is(member)) {
                continue;
            }
            let new = Profile::named(member, &settings.health);
            let free = |place: &u32| !self.profiles[*place as usize].declared && vacant(*place);
            let count = u32::try_from(self.profiles.len()).expect("places have 32 bits");
            match (0..count).find(free) {
                Some(place) => {
                    self.profiles[place as usize] = new;
                    undeclared.retain(|other| *other != place);
                }
                None => self.profiles.push(new),
            }
        }
        let declared = (0..).zip(&self.profiles).filter(|(_, profile)| profile.declared);
        self.index = declared.map(|(place, profile)| (profile.identity, place)).collect();
        undeclared
    }

    /// Whether workers have names and places of their own.
    pub(crate) const fn is_named(&self) -> bool {
        self.named
    }

    /// Whether somebody is to be given more than others.
    pub(crate) fn weighs(&self) -> bool {
        self.profiles.iter().any(|profile| profile.declared && profile.weight() > 1)
    }

    /// The first declared place that is free.
    pub(crate) fn vacant(&self, vacant: impl Fn(u32) -> bool) -> Option<u32> {
        let places = (0..).zip(&self.profiles);
        places
            .filter(|(_, profile)| profile.declared)
            .map(|(place, _)| place)
            .find(|at| vacant(*at))
    }

    /// A worker was started at this place.
    pub(crate) fn handle_start(&mut self, place: u32, health: &HealthSettings) {
        if !self.named {
            let new = Profile::plain(place, health);
            match self.profiles.get_mut(place as usize) {
                Some(profile) => *profile = new,
                None => {
                    let from = u32::try_from(self.profiles.len()).expect("places have 32 bits");
                    self.profiles.extend((from..=place).map(|place| Profile::plain(place, health)));
                }
            }
        } else if health.checked_first {
            // What was known of its last run says nothing of this one.
            let profile = &mut self.profiles[place as usize];
            profile.health = Health::new(health);
            profile.health_since = None;
        }
    }

    pub(crate) fn at(&self, place: u32) -> &Profile {
        &self.profiles[place as usize]
    }

    pub(crate) fn at_mut(&mut self, place: u32) -> &mut Profile {
        &mut self.profiles[place as usize]
    }

    /// Places that have a profile.
    pub(crate) fn places(&self) -> impl Iterator<Item = u32> + use<> {
        0..u32::try_from(self.profiles.len()).expect("places have 32 bits")
    }

    pub(crate) fn find(&self, name: &str) -> Option<u32> {
        self.places().find(|place| self.at(*place).name.as_deref() == Some(name))
    }

    /// What a client of the worker at this place is bound to.
    pub(crate) fn berth(&self, place: u32, worker: WorkerId) -> Berth {
        if self.named { Berth(self.at(place).identity | NAMED) } else { Berth(worker.as_u64()) }
    }

    /// The same, where workers have names, of one that may not run.
    pub(crate) fn named_berth(&self, place: u32) -> Option<Berth> {
        self.named.then(|| Berth(self.at(place).identity | NAMED))
    }

    /// The place that a client is bound to. Whoever has no name is found by its id, and must be
    /// the same still.
    pub(crate) fn place_of(&self, berth: Berth, alive: impl Fn(WorkerId) -> bool) -> Option<u32> {
        if berth.0 & NAMED != 0 {
            return self.index.get(&(berth.0 & !NAMED)).copied();
        }
        let (place, generation) = (berth.0 & 0xffff_ffff, berth.0 >> 32);
        let [place, generation] = [place, generation].map(|half| u32::try_from(half).ok());
        let worker = WorkerId::new(place?, generation?);
        alive(worker).then_some(place?)
    }

    /// It begins to warm up, if workers do.
    pub(crate) fn warm_up(&mut self, place: u32, now: Instant, slow_start: Duration) {
        if !slow_start.is_zero() {
            self.profiles[place as usize].warm_from = Some(now);
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
        let profiles = &mut self.profiles;
        self.warming.retain(|place| {
            let profile = &mut profiles[*place as usize];
            let warm = profile.warm_from.is_none_or(|from| now - from >= slow_start);
            if warm {
                profile.warm_from = None;
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
    pub(crate) fn standing(
        &self,
        place: u32,
        in_use: u32,
        now: Instant,
        settings: &Settings,
    ) -> Standing {
        let profile = self.at(place);
        let weight = profile.weight().max(1);
        let full = weight * SHARE_OF_ONE;
        let share = profile.warm_from.map_or(full, |from| {
            let passed = now.saturating_duration_since(from).as_micros();
            let whole = settings.slow_start.as_micros().max(1);
            let step = (passed * u128::from(WARM_STEPS) / whole).min(u128::from(WARM_STEPS));
            let step = u32::try_from(step).unwrap_or(WARM_STEPS);
            (full * step / WARM_STEPS).max(full / WARM_FIRST)
        });
        Standing {
            in_use,
            slots: profile.slots.unwrap_or(settings.slots),
            weight,
            share: share.max(1),
            identity: profile.identity,
            backup: profile.backup,
            out: false,
        }
    }
}

impl Profile {
    fn plain(place: u32, health: &HealthSettings) -> Self {
        Self {
            name: None,
            declared: true,
            identity: mix(u64::from(place) + 1) >> 1,
            weight: 1,
            weight_set: None,
            hand: Hand::Enabled,
            backup: false,
            slots: None,
            health: Health::new(health),
            health_since: None,
            warm_from: None,
            told: None,
        }
    }

    fn named(member: &Member, health: &HealthSettings) -> Self {
        let mut profile = Self::plain(0, health);
        profile.name = Some(member.name.clone());
        profile.identity = crate::affinity::Key::new(member.name.as_bytes()).hash() >> 1;
        profile.take_over(member);
        profile
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
        told && self.declared && self.health.is_up() && self.hand != Hand::Disabled
    }

    /// Whether anybody may be given to it.
    pub(crate) fn is_open(&self) -> bool {
        let told = self.told.is_none_or(|told| told.open);
        told && self.serves() && self.hand == Hand::Enabled && self.weight() > 0
    }
}
