//! Requests that a pool passes to another pool: those of a pool in fallback, and replies that become requests (`then`).

use std::ops::Range;

use super::{http, routes};
use crate::fault::Fault;
use crate::model::{Dispatch, Protocol};
use crate::options::WorkerKind;
use crate::options::{Group, Value};
use crate::walk::Section;

/// Whether the workers of a pool receive HTTP messages, not frames.
fn takes_messages(pool: &Section) -> bool {
    match pool.worker {
        Some(WorkerKind::Servers) => true,
        Some(WorkerKind::Program) => http::serves(pool),
        Some(WorkerKind::Handler | WorkerKind::Database | WorkerKind::Any) | None => false,
    }
}

/// Adds a fault for every pool that passes on requests that the other pool cannot read.
pub(super) fn check(sections: &[Section], pools: &[&Section], faults: &mut Vec<Fault>) {
    for pool in pools {
        let Some(fallback) = pool.group.inner("fallback") else { continue };
        let Some((other, place)) = named(fallback, "pool", pools) else { continue };
        if can_read(pool, other, &place, (sections, pools), faults) {
            own(other, place, faults);
        }
        check_fallback_cycle(pool, fallback, pools, faults);
    }
    check_http_pools(sections, pools, faults);
}

/// If clients use HTTP, every pool that their requests can reach must give one answer to one object, not only the first
/// pool.
fn check_http_pools(sections: &[Section], pools: &[&Section], faults: &mut Vec<Fault>) {
    let mut reached: Vec<&Section> = pools.to_vec();
    reached.retain(|pool| is_reached_over_http(pool, sections));
    let mut next = 0;
    while let Some(at) = reached.get(next).copied() {
        next += 1;
        for (other, place) in linked_pools(at, pools) {
            if !http::serves(other)
                && other.worker == Some(WorkerKind::Program)
                && let Some(why) = http::takes_no_object(other)
            {
                let suggestion =
                    "choose one of these `framing`s without `stream`, or name another pool";
                faults.push(http::no_object(place, &other.name, why).suggestion(suggestion));
            }
            if !reached.iter().any(|known| known.name == other.name) {
                reached.push(other);
            }
        }
    }
}

/// Returns the pools that a pool passes requests to, and where it names them.
fn linked_pools<'a>(pool: &Section, pools: &[&'a Section]) -> Vec<(&'a Section, Range<usize>)> {
    let instead = match pool.group.value("fallback") {
        Some(Value::Group(fallback)) => named(fallback, "pool", pools),
        _ => None,
    };
    instead.into_iter().chain(named(&pool.group, "then", pools)).collect()
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
fn can_read(
    pool: &Section,
    other: &Section,
    place: &Range<usize>,
    (sections, pools): (&[Section], &[&Section]),
    faults: &mut Vec<Fault>,
) -> bool {
    if !takes_messages(other) || takes_messages(pool) {
        return true;
    }
    let reached = |leads: &dyn Fn(&Section) -> bool| {
        let mut found: Vec<&Section> = pools.iter().copied().filter(|it| leads(it)).collect();
        let mut next = 0;
        while let Some(at) = found.get(next).copied() {
            next += 1;
            for (linked_pools, _) in linked_pools(at, pools) {
                if !found.iter().any(|known| known.name == linked_pools.name) {
                    found.push(linked_pools);
                }
            }
        }
        found.iter().any(|it| it.name == pool.name)
    };
    let by_frames = reached(&|it| is_reached(it, sections, false));
    let by_replies = pools
        .iter()
        .any(|it| named(&it.group, "then", pools).is_some_and(|(next, _)| next.name == pool.name));
    if !by_frames && !by_replies && reached(&|it| is_reached(it, sections, true)) {
        return true;
    }
    let message = format!(
        "`[pool.{}]` receives frames, but the workers of `[pool.{}]` accept HTTP requests only",
        pool.name, other.name,
    );
    faults.push(
        Fault::at(place.clone(), message)
            .expected("only HTTP requests can be passed on to them")
            .suggestion(
                "name a pool whose workers accept frames, or answer with a `line` or a `file`",
            ),
    );
    false
}

/// Whether an HTTP listener, or a route of one, sends requests to the pool.
fn is_reached_over_http(pool: &Section, sections: &[Section]) -> bool {
    is_reached(pool, sections, true)
}

/// Whether a listener sends requests to the pool: an HTTP listener, or a listener of another protocol.
fn is_reached(pool: &Section, sections: &[Section], in_http: bool) -> bool {
    let listeners = sections.iter().filter(|section| section.kind.name == "listener");
    listeners
        .filter(|listener| listener.group.is("protocol", Protocol::Http) == in_http)
        .flat_map(routes::with_routes)
        .any(|group| matches!(group.value("pool"), Some(Value::Text(name)) if *name == pool.name))
}

/// Programs that each serve one connection cannot answer the requests of another pool.
fn own(other: &Section, place: Range<usize>, faults: &mut Vec<Fault>) {
    if other.group.is("dispatch", Dispatch::Session) {
        let name = &other.name;
        let message = format!("each program of `[pool.{name}]` serves one connection");
        faults.push(
            Fault::at(place, message)
                .expected("expected a pool whose workers serve all clients")
                .suggestion(format!("name another, or remove `dispatch` from `[pool.{name}]`")),
        );
    }
}

/// A pool that is the fallback of another one must not pass requests back to it, neither in its own fallback nor as
/// replies that become requests.
fn check_fallback_cycle(
    pool: &Section,
    fallback: &Group,
    pools: &[&Section],
    faults: &mut Vec<Fault>,
) {
    let Some((first, place)) = named(fallback, "pool", pools) else { return };
    let mut reached = vec![first];
    let mut next = 0;
    while let Some(at) = reached.get(next).copied() {
        next += 1;
        if at.name == pool.name {
            faults.push(
                Fault::at(place, "the `fallback`s of these pools form a cycle")
                    .expected("the request would come back to this pool")
                    .suggestion("answer with a `line` or a `file` in one of them"),
            );
            return;
        }
        for (other, _) in linked_pools(at, pools) {
            if !reached.iter().any(|known| known.name == other.name) {
                reached.push(other);
            }
        }
    }
}
