//! What pools hand to each other: requests for which one is sorry, and replies that go on as requests.

use std::ops::Range;

use super::{http, routes};
use crate::diagnostics::Fault;
use crate::model::{Dispatch, Protocol};
use crate::options::{Choice, Of};
use crate::walk::{Group, Section, Value};

/// What a request has to be for the workers of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    /// A message of HTTP.
    Messages,
    /// A frame; of HTTP, one JSON object.
    Frames,
    /// A record; of HTTP, a body.
    Records,
    /// The parameters of a query.
    Parameters,
}

impl Asked {
    fn of(pool: &Section) -> Option<Self> {
        Some(match pool.worker? {
            Of::Servers => Self::Messages,
            Of::Program if http::serves(pool) => Self::Messages,
            Of::Program | Of::Handler | Of::Any => Self::Frames,
            Of::Database if pool.group.key("query").is_some() => Self::Parameters,
            Of::Database => Self::Records,
        })
    }

    const fn title(self) -> &'static str {
        match self {
            Self::Messages => "in HTTP",
            Self::Frames => "with frames",
            Self::Records => "with records",
            Self::Parameters => "with the parameters of a query",
        }
    }
}

/// Adds a fault for every pool that hands on what the other cannot read.
pub(super) fn check(sections: &[Section], pools: &[&Section], faults: &mut Vec<Fault>) {
    for pool in pools {
        let Some(Value::Group(sorry)) = pool.group.value("sorry") else { continue };
        let Some((other, place)) = named(sorry, "pool", pools) else { continue };
        if same_language(pool, other, &place, sections, faults) {
            own(other, place, faults);
        }
        circle(pool, sorry, pools, faults);
    }
    asked_in_http(sections, pools, faults);
}

/// Where clients speak HTTP, each pool that their requests can come to gives one answer to one object,
/// not only the first.
fn asked_in_http(sections: &[Section], pools: &[&Section], faults: &mut Vec<Fault>) {
    let mut reached: Vec<&Section> = pools.to_vec();
    reached.retain(|pool| is_asked_in_http(pool, sections));
    let mut next = 0;
    while let Some(at) = reached.get(next).copied() {
        next += 1;
        for (other, place) in onward(at, pools) {
            if !http::serves(other)
                && other.worker == Some(Of::Program)
                && let Some(why) = http::takes_no_object(other)
            {
                let mend = "choose such a `framing` without `stream`, or name another pool";
                faults.push(http::no_object(place, &other.name, why).mend(mend));
            }
            if !reached.iter().any(|known| known.name == other.name) {
                reached.push(other);
            }
        }
    }
}

/// The pools that a pool hands requests to, and where it names them.
fn onward<'a>(pool: &Section, pools: &[&'a Section]) -> Vec<(&'a Section, Range<usize>)> {
    let instead = match pool.group.value("sorry") {
        Some(Value::Group(sorry)) => named(sorry, "pool", pools),
        _ => None,
    };
    instead.into_iter().chain(named(&pool.group, "then", pools)).collect()
}

/// The pool that an option names, and where.
fn named<'a>(
    group: &Group,
    option: &str,
    pools: &[&'a Section],
) -> Option<(&'a Section, Range<usize>)> {
    let Some(Value::Text(name)) = group.value(option) else { return None };
    let other = pools.iter().find(|other| other.name == *name)?;
    Some((other, group.place(option)?))
}

/// A request is handed on as the workers of its own pool would have had it.
fn same_language(
    pool: &Section,
    other: &Section,
    place: &Range<usize>,
    sections: &[Section],
    faults: &mut Vec<Fault>,
) -> bool {
    let (Some(from), Some(to)) = (Asked::of(pool), Asked::of(other)) else { return true };
    // Where clients send frames, a frame is a record as well.
    let frames = from != Asked::Messages && to != Asked::Messages;
    if from == to || frames && !is_asked_in_http(pool, sections) {
        return true;
    }
    let message = format!(
        "workers of `[pool.{}]` are asked {}, and those of `[pool.{}]` {}",
        pool.name,
        from.title(),
        other.name,
        to.title(),
    );
    let mend = if from == Asked::Messages {
        "name a pool of servers, or answer with a `line`, a `file` or a `redirect`"
    } else {
        "name a pool of the same kind, or answer with a `line` or a `file`"
    };
    faults.push(
        Fault::at(place.clone(), message).expected("a request is handed on as it is").mend(mend),
    );
    false
}

/// Whether a listener of HTTP, or a route of one, leads there.
fn is_asked_in_http(pool: &Section, sections: &[Section]) -> bool {
    let listeners = sections.iter().filter(|section| section.kind.name == "listener");
    listeners
        .filter(|listener| {
            let protocol = listener.group.value("protocol");
            matches!(protocol, Some(Value::Word(Choice::Protocol(Protocol::Http))))
        })
        .flat_map(routes::with_routes)
        .any(|group| matches!(group.value("pool"), Some(Value::Text(name)) if *name == pool.name))
}

/// Programs that are each a connection's own answer for nobody else.
fn own(other: &Section, place: Range<usize>, faults: &mut Vec<Fault>) {
    let dispatch = other.group.value("dispatch");
    if matches!(dispatch, Some(Value::Word(Choice::Dispatch(Dispatch::Session)))) {
        let name = &other.name;
        let message = format!("the programs of `[pool.{name}]` are each a connection's own");
        faults.push(
            Fault::at(place, message)
                .expected("expected a pool whose workers anybody may ask")
                .mend(format!("name another, or remove `dispatch` from `[pool.{name}]`")),
        );
    }
}

/// A pool that answers for another when that one is sorry does not come back to it, neither because it is
/// sorry itself nor with its replies.
fn circle(pool: &Section, sorry: &Group, pools: &[&Section], faults: &mut Vec<Fault>) {
    let Some((first, place)) = named(sorry, "pool", pools) else { return };
    let mut reached = vec![first];
    let mut next = 0;
    while let Some(at) = reached.get(next).copied() {
        next += 1;
        if at.name == pool.name {
            faults.push(
                Fault::at(place, "`sorry` goes in a circle")
                    .expected("the request would come back to this pool")
                    .mend("answer with a `line` or a `file` in one of them"),
            );
            return;
        }
        for (other, _) in onward(at, pools) {
            if !reached.iter().any(|known| known.name == other.name) {
                reached.push(other);
            }
        }
    }
}
