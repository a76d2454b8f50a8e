//! Builds the settings of load balancing: for the pool, for the code that finds keys in requests, and for the fallback.

use exchange::PoolId;
use std::collections::BTreeMap;

use super::{check, cookie};
use crate::error::BuildError;
use backend::health_checks::CheckConfig;
use engine::balance::BalanceConfig;
use engine::request_keys::PoolKeys;

/// What the balancing settings need from their pool and from others.
pub(super) struct Whole<'a> {
    pub(super) name: &'a str,
    pub(super) places: &'a BTreeMap<String, PoolId>,
    pub(super) servers: &'a [(event::Address, String)],
    /// The base of the command for a health check program.
    pub(super) program: spawn::Command,
    /// The secret of cookies for which no secret is configured.
    pub(super) drawn: &'a [u8],
    /// The secret of the cluster, from which the keys of shared bindings are made.
    pub(super) secret: Option<(u64, u64)>,
}

/// Adds the `balancing` settings to the settings of a pool. Returns the rest of them, and the configuration of the
/// health checks.
pub(super) fn balance(
    whole: Whole<'_>,
    balance: settings::BalanceMethod,
    balancing: settings::Balancing,
    to: &mut pool::Settings,
) -> Result<(BalanceConfig, Option<CheckConfig>), BuildError> {
    let Whole { name, places, servers, program, drawn, secret } = whole;
    let settings::Balancing {
        concurrent_max,
        hash,
        sticky,
        slow_start,
        health_check,
        fallback,
        fair,
        priority,
        hold_timeout,
        // The backends of servers use it.
        retries: _,
        trace_max,
    } = balancing;
    let settings::HealthCheck {
        fails_max,
        fail_rate,
        unhealthy_latency,
        unhealthy_status,
        fail_duration,
        check,
    } = health_check;
    to.schedule = order(balance);
    to.slots_all = concurrent_max;
    to.slow_start = slow_start;
    let fail_rate = fail_rate.map(|rate| {
        let settings::FailRate { percent, window, requests_min } = rate;
        pool::FailRate { percent, window, requests_min }
    });
    let judges = fails_max > 0 || fail_rate.is_some();
    to.health = pool::HealthSettings {
        errors: fails_max,
        fail_rate,
        slow: unhealthy_latency,
        eject: fail_duration,
        ..to.health
    };
    let check = check.map(|check| check::check(check, program, servers, &mut to.health));
    to.hold = hold_timeout;
    to.decisions = trace_max;
    let (mut cookie, mut shared_with) = (None, None);
    let sticky = sticky.map(|settings::Sticky { by, lifetime, entries, redispatch, shared }| {
        shared_with = secret.filter(|_| shared);
        // A cookie that names its worker needs no table. The minimum is one entry, because the memory of the table is
        // allocated at the start.
        let told = matches!(&by, settings::KnownBy::Cookie(cookie) if cookie.mode != settings::CookieMode::Passive);
        let entries = if told { 1 } else { entries };
        to.sticky = Some(pool::Sticky {
            limits: pool::AffinityLimits { lifetime, entries },
            gone: if redispatch { pool::Gone::Reschedule } else { pool::Gone::Refuse },
            shared: shared_with.is_some(),
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
    let fallback = match fallback {
        None => None,
        Some(settings::Fallback { answer, until, steady, http }) => {
            to.fallback = Some(pool::FallbackSettings { until, steady });
            Some(super::fallback::answer(name, answer, http, places)?)
        }
    };
    let hash = (balance == settings::BalanceMethod::Hash).then_some(hash);
    let keys = PoolKeys { sticky, shared: shared_with, hash, fair, priority };
    Ok((BalanceConfig { keys, fallback, judges, failing: unhealthy_status, cookie }, check))
}

const fn order(balance: settings::BalanceMethod) -> pool::Schedule {
    match balance {
        // The pool observes weights as soon as they differ.
        settings::BalanceMethod::RoundRobin => pool::Schedule::RoundRobin,
        settings::BalanceMethod::LeastRequests => pool::Schedule::LeastRequests,
        settings::BalanceMethod::PowerOfTwo => pool::Schedule::PowerOfTwo,
        settings::BalanceMethod::Random => pool::Schedule::Random,
        settings::BalanceMethod::Hash => pool::Schedule::Hash,
        settings::BalanceMethod::First => pool::Schedule::First,
    }
}
