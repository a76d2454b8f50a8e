//! Requests that a pool passes to another pool: those of a pool in fallback, and replies that become requests (`then`).

use std::ops::Range;

use super::{http, routes};
use crate::fault::{Fault, reject};
use crate::model::{Dispatch, Protocol};
use crate::options::{Group, WorkerKind};
use crate::walk::Section;

/// Whether the workers of a pool receive HTTP messages, not frames.
fn takes_messages(pool: &Section) -> bool {
    pool.worker == Some(WorkerKind::Servers) || http::serves(pool)
}

/// Adds a fault for every pool that passes on requests that the other pool cannot read.
pub(super) fn check(sections: &[Section], pools: &[&Section], faults: &mut Vec<Fault>) {
    for pool in pools {
        let Some((other, place)) = fallback_of(pool, pools) else { continue };
        let name = &other.name;
        let can_read = can_read(pool, other, (sections, pools));
        // Programs that each serve one connection cannot answer the requests of another pool.
        let is_session = other.group.is("dispatch", Dispatch::Session);
        // A pool must not pass requests back to the pool whose fallback it is, neither in its own fallback nor as
        // replies that become requests.
        let is_cycle = reached(vec![other], pools).iter().any(|it| it.name == pool.name);
        reject! { faults;
            Some(place.clone()), if !can_read => format!(
                "`[pool.{}]` receives frames, but the workers of `[pool.{name}]` accept HTTP requests only",
                pool.name,
            ),
                expected "only HTTP requests can be passed on to them",
                help "name a pool whose workers accept frames, or answer with a `line` or a `file`";
            Some(place.clone()), if can_read && is_session
                => format!("each program of `[pool.{name}]` serves one connection"),
                expected "expected a pool whose workers serve all clients",
                help format!("name another, or remove `dispatch` from `[pool.{name}]`");
            Some(place), if is_cycle => "the `fallback`s of these pools form a cycle",
                expected "the request would come back to this pool",
                help "answer with a `line` or a `file` in one of them";
        }
    }
    check_http_pools(sections, pools, faults);
}

/// If clients use HTTP, every pool that their requests can reach must give one answer to one object, not only the first
/// pool.
fn check_http_pools(sections: &[Section], pools: &[&Section], faults: &mut Vec<Fault>) {
    let first = pools.iter().copied().filter(|pool| is_reached(pool, sections, true));
    for pool in reached(first.collect(), pools) {
        for (other, place) in linked_pools(pool, pools) {
            if !http::serves(other)
                && other.worker == Some(WorkerKind::Program)
                && let Some(why) = http::takes_no_object(other)
            {
                let suggestion =
                    "choose one of these `framing`s without `stream`, or name another pool";
                faults.push(http::no_object(place, &other.name, why).suggestion(suggestion));
            }
        }
    }
}

/// Returns these pools, and those that their requests can reach.
fn reached<'a>(mut found: Vec<&'a Section>, pools: &[&'a Section]) -> Vec<&'a Section> {
    let mut next = 0;
    while let Some(at) = found.get(next).copied() {
        next += 1;
        for (other, _) in linked_pools(at, pools) {
            if !found.iter().any(|known| known.name == other.name) {
                found.push(other);
            }
        }
    }
    found
}

/// Returns the pools that a pool passes requests to, and where it names them.
fn linked_pools<'a>(pool: &Section, pools: &[&'a Section]) -> Vec<(&'a Section, Range<usize>)> {
    fallback_of(pool, pools).into_iter().chain(named(&pool.group, "then", pools)).collect()
}

fn fallback_of<'a>(pool: &Section, pools: &[&'a Section]) -> Option<(&'a Section, Range<usize>)> {
    named(pool.group.inner("fallback")?, "pool", pools)
}

/// Returns the pool that an option names, and the location.
fn named<'a>(
    group: &Group,
    option: &str,
    pools: &[&'a Section],
) -> Option<(&'a Section, Range<usize>)> {
    let name = group.text(option)?;
    let other = pools.iter().find(|other| other.name == *name)?;
    Some((other, group.place(option)?))
}

/// HTTP requests can be passed to any pool, in the form that its workers receive. A frame cannot be passed to workers
/// that receive HTTP messages.
fn can_read(pool: &Section, other: &Section, (sections, pools): (&[Section], &[&Section])) -> bool {
    if !takes_messages(other) || takes_messages(pool) {
        return true;
    }
    let is_reached_by = |in_http: bool| {
        let first = pools.iter().copied().filter(|it| is_reached(it, sections, in_http));
        reached(first.collect(), pools).iter().any(|it| it.name == pool.name)
    };
    let by_replies = pools
        .iter()
        .any(|it| named(&it.group, "then", pools).is_some_and(|(next, _)| next.name == pool.name));
    !is_reached_by(false) && !by_replies && is_reached_by(true)
}

/// Whether a listener sends requests to the pool: an HTTP listener, or a listener of another protocol.
fn is_reached(pool: &Section, sections: &[Section], in_http: bool) -> bool {
    let listeners = sections.iter().filter(|section| section.kind.name == "listener");
    listeners
        .filter(|listener| listener.group.is("protocol", Protocol::Http) == in_http)
        .flat_map(routes::with_routes)
        .any(|group| group.text("pool") == Some(&pool.name))
}
