//! Rules for the options of the access log.

use crate::fault::Fault;
use crate::model::{log_format, log_target};
use crate::walk::Section;

/// Adds a fault for every invalid value.
pub(super) fn check(section: &Section, faults: &mut Vec<Fault>) {
    let group = &section.group;
    let bad = [
        ("to", group.text("to").and_then(|text| log_target(text).err())),
        ("format", group.text("format").and_then(|text| log_format(text, &mut Vec::new()).err())),
    ];
    for (name, bad) in bad {
        if let (Some(bad), Some(place)) = (bad, group.place(name)) {
            let fault = Fault::at(place, format!("`{name}` {}", bad.why));
            faults.push(fault.suggested(bad.suggestion));
        }
    }
}
