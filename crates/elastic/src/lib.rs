//! How many workers a pool should have.
//!
//! What it is: one policy that grows and shrinks whatever can be started and ended: programs,
//! threads, connections. What it knows: counts and times, both given to it. What it must never
//! know: what a worker is, who starts it, why a start failed, a clock.

mod policy;
mod sizing;

pub use policy::{Advice, Load, Policy};
pub use sizing::{QUEUE_GROWS_ABOVE, Sizing};
