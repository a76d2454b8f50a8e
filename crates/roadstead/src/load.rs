//! The load generator: many connections that send lines of work and account for each line.
//!
//! What it is: one thread with one event loop that opens connections, sends lines when they are due, and evaluates each
//! reply. What it depends on: the client side of the `lines` protocol, and time. What it must never depend on: the
//! implementation behind the listener.
//!
//! Lines are sent on an absolute schedule, independent of the replies, so a slow daemon does not slow down the
//! measurement: the latency of a line counts from the time when it was due. The delay of the load generator itself is
//! reported separately. Without a rate, each connection always keeps its maximum number of lines in flight.
//!
//! ```text
//!   Opening ──all are open──► Sending ──time is over, or stopped──► Waiting ──all replies received──► end
//!      │                         │                                     │
//!      └─ none can be opened ─►  └─ every connection is gone ─► end    └─ WAIT_MAX is over ─► end
//! ```

pub mod cli;

mod account;
mod alarm;
mod client;
mod connection;
mod fleet;
mod pace;
mod reply;
mod run;
mod settings;
mod summary;
#[cfg(test)]
mod tests;

pub use run::{run, run_until};
pub use settings::{
    Lines, LoadSettings, OPENING_MAX, OPENING_TIME_MAX, PROGRESS_EVERY, RATE_MAX, RECONNECT_AFTER,
    RESEND_AFTER, ReplyCheck, WAIT_MAX,
};
pub use summary::{Progress, Quantiles, Summary};
