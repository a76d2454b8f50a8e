//! What a load is: its settings, and the times and limits that are not for the user to choose.

use std::path::PathBuf;
use std::time::Duration;

use event::Address;

/// Connections that are being opened at once, so that the listener's backlog holds them.
pub const OPENING_MAX: usize = 128;

/// How long the opening of connections may take before the run begins with those that are open.
pub const OPENING_TIME_MAX: Duration = Duration::from_secs(10);

/// How long replies are waited for after the last line; the rest is unknown.
pub const WAIT_MAX: Duration = Duration::from_secs(10);

/// How long a lost connection waits before it is opened again: the first time, and at most.
pub const RECONNECT_AFTER: (Duration, Duration) =
    (Duration::from_millis(10), Duration::from_secs(1));

/// How long a refused line waits before it is sent again.
pub const RESEND_AFTER: Duration = Duration::from_millis(10);

/// How often progress is told.
pub const PROGRESS_EVERY: Duration = Duration::from_millis(200);

/// The id of the first line.
pub(super) const ID_FIRST: u64 = 1;

/// What to send, where, and how fast.
#[derive(Clone, Debug)]
pub struct LoadSettings {
    /// The listener.
    pub to: Address,
    /// How many connections, at least 1.
    pub connections: usize,
    /// Lines a second of each connection, above 0 and at most [`RATE_MAX`]. None: as fast as
    /// `in_flight` allows.
    pub rate: Option<f64>,
    /// Lines of one connection that may be on their way at once, at least 1. A line that is due
    /// when there are as many waits, which counts as latency.
    pub in_flight: u32,
    /// How long lines are sent.
    pub duration: Duration,
    /// How the lines look.
    pub lines: Lines,
    /// Which replies acknowledge a line.
    pub reply: ReplyCheck,
    /// Where to keep the account of every line.
    pub ledger: Option<PathBuf>,
    /// Makes the contents of the lines; the same seed makes the same.
    pub seed: u64,
    /// Open a connection again after it was lost. Its lines that had no reply are never sent
    /// again: whether they took effect is unknown.
    pub reconnect: bool,
    /// Send a line again after it was refused, for as long as lines are sent.
    pub resend_refused: bool,
}

/// Lines a second of one connection that can be asked for.
pub const RATE_MAX: f64 = 1e6;

/// How lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Lines {
    /// ID AT PATH STATUS
    Work,
    /// {"id":…,"at":…,"path":"…","status":…}
    Json,
}

/// Which replies acknowledge a line. Whatever the choice, a reply that begins with `!` or `-` does
/// not, and a `+` before any other is passed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ReplyCheck {
    /// `ok ID` with the line's own id
    #[value(name = "ack")]
    AckWithId,
    /// The line's own record, as a line or as JSON
    Echo,
    /// Any reply
    Any,
}

/// How long a run waits for others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    pub(super) opening: Duration,
    pub(super) replies: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { opening: OPENING_TIME_MAX, replies: WAIT_MAX }
    }
}
