//! What the access log can be told.

use crate::access_log;
use crate::diagnostics::Fault;
use crate::walk::{Section, Value};

/// Adds a fault for every value that is none.
pub(super) fn check(section: &Section, faults: &mut Vec<Fault>) {
    let group = &section.group;
    let text = |name| match group.value(name) {
        Some(Value::Text(text)) => Some(text),
        _ => None,
    };
    let bad = [
        ("to", text("to").and_then(|text| access_log::target(text).err())),
        ("format", text("format").and_then(|text| access_log::format(text, &mut Vec::new()).err())),
    ];
    for (name, bad) in bad {
        let (Some(bad), Some(place)) = (bad, group.place(name)) else { continue };
        let fault = Fault::at(place, format!("`{name}` {}", bad.why));
        faults.push(match bad.mend {
            Some(mend) => fault.mend(mend),
            None => fault,
        });
    }
}
