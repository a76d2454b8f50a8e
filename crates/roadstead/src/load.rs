//! The client side: many connections that send lines of work and keep account of every one.
//!
//! What it is: one thread with one event loop that opens connections, sends lines when they are
//! due, and judges each reply. What it knows: the `lines` protocol from the client's side, and
//! time. What it must never know: what stands behind the listener.
//!
//! Lines are sent by an absolute schedule, whatever the replies do, so that a slow daemon does not
//! slow down its own measurement: the latency of a line counts from when it was due. How late the
//! load itself was is reported beside it. Without a rate, each connection keeps as many lines on
//! their way as it may.
//!
//! ```text
//!   Opening ──all are open──► Sending ──time is over, or stopped──► Waiting ──nothing is owed──► end
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
