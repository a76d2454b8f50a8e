//! The settings of balancing, for the pool and for whoever looks for keys and answers when it is
//! sorry.

use exchange::PoolId;
use std::collections::BTreeMap;

use super::{check, cookie, fallback};
use crate::error::BuildError;
use backend::health_checks::CheckConfig;
use engine::balance::BalanceConfig;
use engine::request_keys::PoolKeys;

/// What balancing has to know of its pool and of others.
pub(super) struct Whole<'a> {
    pub(super) name: &'a str,
    pub(super) places: &'a BTreeMap<String, PoolId>,
    pub(super) servers: &'a [(event::Address, String)],
    /// What a program of its checks starts from.
    pub(super) program: spawn::Command,
    /// What cookies are made with where nobody gave a secret.
    pub(super) drawn: &'a [u8],
}

/// Adds to a pool's settings what `balance` says, and gives what is left of it, and how its workers are checked.
pub(super) fn balance(
    whole: Whole<'_>,
    schedule: settings::Schedule,
    balance: settings::Balance,
    to: &mut pool::Settings,
) -> Result<(BalanceConfig, Option<CheckConfig>), BuildError> {
    let Whole { name, places, servers, program, drawn } = whole;
    let settings::Balance {
        slots_max,
        hash,
        sticky,
        slow_start,
        health,
        sorry,
        fair,
        priority,
        priority_step,
        hold,
        // It is for who gives requests to servers.
        retries: _,
        decisions,
    } = balance;
    let settings::Health { errors, fail_rate, slow, failing, eject, eject_max, check } = health;
    to.schedule = order(schedule);
    to.slots_all = slots_max;
    to.slow_start = slow_start;
    let fail_rate = fail_rate.map(|rate| {
        let settings::FailRate { percent, window, requests_min } = rate;
        pool::FailRate { percent, window, requests_min }
    });
    let judges = errors > 0 || fail_rate.is_some();
    to.health = pool::HealthSettings { errors, fail_rate, slow, eject, eject_max, ..to.health };
    let check = check.map(|check| check::check(check, program, servers, &mut to.health));
    to.priority_step = priority_step;
    to.hold = hold;
    to.decisions = decisions;
    let mut cookie = None;
    let sticky = sticky.map(|settings::Sticky { by, lifetime, entries, gone }| {
        // A cookie that names its worker needs no table, and one takes its room at the start.
        let told = matches!(&by, settings::KnownBy::Cookie(cookie) if cookie.mode != settings::CookieMode::Passive);
        let entries = if told { 1 } else { entries };
        to.sticky = Some(pool::Sticky {
            limits: pool::AffinityLimits { lifetime, entries },
            gone: match gone {
                settings::Gone::Reschedule => pool::Gone::Reschedule,
                settings::Gone::Refuse => pool::Gone::Refuse,
            },
        });
        match by {
            settings::KnownBy::Key(key) => Some(key),
            settings::KnownBy::Cookie(settings) => {
                let passive = settings.mode == settings::CookieMode::Passive;
                let key = settings::Key::Cookie(settings.name.clone());
                cookie = Some((settings, lifetime));
                passive.then_some(key)
            }
        }
    });
    let sticky = sticky.flatten();
    let cookie = match cookie {
        Some((settings, lifetime)) => {
            Some(cookie::cookie(name, settings, lifetime, servers, drawn)?)
        }
        None => None,
    };
    let sorry = match sorry {
        None => None,
        Some(settings::Sorry { answer, until, steady, http }) => {
            to.sorry = Some(pool::SorrySettings { until, steady });
            Some(fallback::answer(name, answer, http, places)?)
        }
    };
    let hash = (schedule == settings::Schedule::Hash).then_some(hash);
    let keys = PoolKeys { sticky, hash, fair, priority };
    Ok((BalanceConfig { keys, sorry, judges, failing, cookie }, check))
}

const fn order(schedule: settings::Schedule) -> pool::Schedule {
    match schedule {
        settings::Schedule::RoundRobin => pool::Schedule::RoundRobin,
        settings::Schedule::WeightedRoundRobin => pool::Schedule::WeightedRoundRobin,
        settings::Schedule::LeastOutstanding => pool::Schedule::LeastOutstanding,
        settings::Schedule::TwoChoices => pool::Schedule::TwoChoices,
        settings::Schedule::Random => pool::Schedule::Random,
        settings::Schedule::Hash => pool::Schedule::Hash,
        settings::Schedule::First => pool::Schedule::First,
    }
}
