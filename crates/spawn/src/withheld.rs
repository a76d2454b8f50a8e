//! Variables of the daemon that no program inherits.
//!
//! A daemon that reads a secret from a variable has it in its environment, which programs inherit. The names
//! are collected for the whole process, as the environment is the whole process's, and only grow: what was a
//! secret before a reload is still one after it.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

static NAMES: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Keeps these variables of the daemon from every program that is started from now on. A program gets
/// one only if [`Command::env`](crate::Command::env) names it.
pub fn withhold(names: impl IntoIterator<Item = String>) {
    NAMES.lock().unwrap_or_else(PoisonError::into_inner).extend(names);
}

/// All names.
pub(crate) fn names() -> Vec<Vec<u8>> {
    let names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    names.iter().map(|name| name.clone().into_bytes()).collect()
}
