//! Variables of the daemon that no program inherits.
//!
//! A daemon that reads a secret from a variable has it in its environment, which programs inherit. The names
//! are collected for the whole process, as the environment is the whole process's, and only grow: what was a
//! secret before a reload is still one after it.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Mutex, PoisonError};

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

static NAMES: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Keeps these variables of the daemon from every program that is started from now on. A program gets
/// one only if [`Command::env`](crate::Command::env) names it.
///
/// From the first name on, other programs of the same user can neither read the environment of this process
/// nor trace it, and it writes no core file.
///
/// # Errors
/// When the system does not protect this process. The names are withheld all the same.
pub fn withhold(names: impl IntoIterator<Item = String>) -> io::Result<()> {
    let mut all = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    all.extend(names);
    if !all.is_empty() {
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    }
    Ok(())
}

/// All names.
pub(crate) fn names() -> Vec<Vec<u8>> {
    let names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    names.iter().map(|name| name.clone().into_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use rustix::process::dumpable_behavior;

    use super::*;

    /// The other tests of this process do not withhold anything.
    #[test]
    fn a_process_is_protected_from_the_first_variable_on_that_is_withheld() {
        withhold([]).expect("nothing is done");
        assert_eq!(dumpable_behavior().expect("it is known"), DumpableBehavior::Dumpable);
        withhold(["SECRET".to_owned()]).expect("it is protected");
        assert_eq!(dumpable_behavior().expect("it is known"), DumpableBehavior::NotDumpable);
        assert_eq!(names(), [b"SECRET"]);
    }
}
