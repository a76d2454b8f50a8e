//! Rules for the names by which pools are referenced.

use crate::fault::{Fault, Trust};
use crate::nearest::nearest;
use crate::options::Group;
use crate::walk::Section;

/// Every pool that is named must exist.
pub(super) fn check(group: &Group, pools: &[&Section], faults: &mut Vec<Fault>) {
    for option in ["pool", "then"] {
        let Some((name, place)) = group.given_text(option) else {
            continue;
        };
        if pools.iter().any(|pool| pool.name == *name) {
            continue;
        }
        let names = || pools.iter().map(|pool| pool.name.as_str());
        let fault = Fault::at(place, format!("there is no pool `{name}`")).trust(Trust::Absent);
        faults.push(match nearest(name, names()) {
            Some(nearest) => fault
                .expected(format!("did you mean `{nearest}`?"))
                .suggestion(format!("write `{option} = \"{nearest}\"`, or add `[pool.{name}]`")),
            None => fault
                .expected("expected the name of a pool")
                .suggestion(format!("add a section `[pool.{name}]`")),
        });
    }
}
