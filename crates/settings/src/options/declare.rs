//! How the table declares options: kinds with the usual ranges, words, and options of every worker.

use std::time::Duration;

use super::shape::{Choice, Default, Kind, Of, Opt, Word};
use crate::model::{Framing, Protocol};

pub(super) const MIB: u64 = 1 << 20;
pub(super) const GIB: u64 = 1 << 30;
pub(super) const DAY: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) const fn count(min: u64, max: u64) -> Kind {
    Kind::Count { min, max }
}

/// Bytes from 1.
pub(super) const fn size(max: u64) -> Kind {
    Kind::Size { min: 1, max }
}

/// A time that must pass.
pub(super) const fn time() -> Kind {
    Kind::Time { min: Duration::from_millis(1), max: DAY }
}

/// A time that may be zero.
pub(super) const fn time_or_zero() -> Kind {
    Kind::Time { min: Duration::ZERO, max: DAY }
}

pub(super) const fn word(name: &'static str, means: Choice, about: &'static str) -> Word {
    Word { name, means, about }
}

pub(super) const fn any(
    name: &'static str,
    kind: Kind,
    default: Default,
    about: &'static str,
) -> Opt {
    Opt::new(name, kind, default, Of::Any, about)
}

pub(super) const fn frames(name: &'static str, framing: Framing, about: &'static str) -> Word {
    word(name, Choice::Protocol(Protocol::Frames(framing)), about)
}
