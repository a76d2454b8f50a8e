//! Options: how they are declared, and the values that a file gives them.
//!
//! The rows are in `model`, each at the field that it fills. What this must never depend on: a particular option.

mod declare;
mod found;
pub(crate) mod kinds;
mod setting;
mod shape;

pub(crate) use declare::{change, default, filled, option_name, options, part, words};
pub(crate) use found::{Found, Group, Value};
pub(crate) use setting::{Options, Setting, read_as, settings};
pub(crate) use shape::{
    Default, Kind, Needs, Opt, Reload, Section, Shorthand, Shows, Unit, Word, WorkerKind, find,
    find_for, formerly, joined, length,
};
