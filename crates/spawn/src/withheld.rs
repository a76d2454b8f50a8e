//! Variables of the daemon that programs do not inherit.
//!
//! A daemon that reads a secret from a variable has the secret in its environment, which programs inherit. The names of
//! such variables are collected for the whole process, because the environment belongs to the whole process. Names are
//! never removed: a variable that was a secret before a reload remains a secret after it.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Mutex, PoisonError};

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

static NAMES: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Withholds these variables of the daemon from all programs that are started later. A program gets such a variable
/// only if [`Command::env`](crate::Command::env) sets it.
///
/// After the first name, other programs of the same user can neither read the environment of this process nor trace
/// this process, and this process writes no core file.
///
/// # Errors
/// The system does not protect this process. The names are withheld nevertheless.
pub fn withhold(names: impl IntoIterator<Item = String>) -> io::Result<()> {
    let mut all = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    all.extend(names);
    if !all.is_empty() {
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    }
    Ok(())
}

/// Returns all names.
pub(crate) fn names() -> Vec<Vec<u8>> {
    let names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    names.iter().map(|name| name.clone().into_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use rustix::process::dumpable_behavior;

    use super::*;

    /// The other tests of this process do not withhold any variable.
    #[test]
    fn a_process_is_protected_from_the_first_variable_on_that_is_withheld() {
        withhold([]).expect("nothing is done");
        assert_eq!(dumpable_behavior().expect("it is known"), DumpableBehavior::Dumpable);
        withhold(["SECRET".to_owned()]).expect("it is protected");
        assert_eq!(dumpable_behavior().expect("it is known"), DumpableBehavior::NotDumpable);
        assert_eq!(names(), [b"SECRET"]);
    }
}
