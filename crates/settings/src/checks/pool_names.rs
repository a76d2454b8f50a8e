//! Rules for the names by which pools are referenced.

use crate::fault::{Fault, Trust};
use crate::nearest::nearest;
use crate::options::Group;
use crate::walk::Section;

/// The maximum number of pools that an error lists.
const LISTED_MAX: usize = 8;

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
            None => {
                let mut known: Vec<_> =
                    names().take(LISTED_MAX).map(|it| format!("`{it}`")).collect();
                if pools.len() > LISTED_MAX {
                    known.push("…".to_owned());
                }
                fault
                    .expected(format!("the pools are {}", known.join(", ")))
                    .suggestion(format!("add a section `[pool.{name}]`"))
            }
        });
    }
}
