//! The settings of a load, and the times and limits that are not configurable.

use std::path::PathBuf;
use std::time::Duration;

use event::Address;

/// The maximum number of connections that are being opened at the same time, so that the backlog of the listener does
/// not overflow.
pub const OPENING_MAX: usize = 128;

/// The maximum time for opening connections. After it, the run begins with the open ones.
pub const OPENING_TIME_MAX: Duration = Duration::from_secs(10);

/// How long to wait for replies after the last line. Lines without a reply are then unknown.
pub const WAIT_MAX: Duration = Duration::from_secs(10);

/// How long to wait before a lost connection is reopened: the first time, and at most.
pub const RECONNECT_AFTER: (Duration, Duration) =
    (Duration::from_millis(10), Duration::from_secs(1));

/// How long to wait before a refused line is sent again.
pub const RESEND_AFTER: Duration = Duration::from_millis(10);

/// How often progress is reported.
pub const PROGRESS_EVERY: Duration = Duration::from_millis(200);

/// The id of the first line.
pub(super) const ID_FIRST: u64 = 1;

/// What to send, to which address, and how fast.
#[derive(Clone, Debug)]
pub struct LoadSettings {
    /// The listener.
    pub to: Address,
    /// The number of connections, at least 1.
    pub connections: usize,
    /// Lines per second on each connection, above 0 and at most [`RATE_MAX`]. `None`: as fast as `in_flight` allows.
    pub rate: Option<f64>,
    /// The maximum number of lines in flight per connection, at least 1. At this limit a line that is due waits, which
    /// counts as latency.
    pub in_flight: u32,
    /// How long lines are sent.
    pub duration: Duration,
    /// The format of the lines.
    pub lines: Lines,
    /// Which replies acknowledge a line.
    pub reply: ReplyCheck,
    /// The file for the ledger.
    pub ledger: Option<PathBuf>,
    /// The seed for the contents of the lines. The same seed generates the same contents.
    pub seed: u64,
    /// Reopen a connection after it was lost. Its lines without a reply are never sent again, because their outcome is
    /// unknown.
    pub reconnect: bool,
    /// Send a line again after it was refused, until the sending time is over.
    pub resend_refused: bool,
}

/// The maximum number of lines per second on one connection.
pub const RATE_MAX: f64 = 1e6;

/// The format of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Lines {
    /// ID AT PATH STATUS
    Work,
    /// {"id":…,"at":…,"path":"…","status":…}
    Json,
}

/// Which replies acknowledge a line. With every value, a reply that begins with `!` or `-` does not acknowledge, and a
/// leading `+` is skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ReplyCheck {
    /// `ok ID` with the id of the line
    #[value(name = "ack")]
    AckWithId,
    /// The record of the line, as a line or as JSON
    Echo,
    /// Any reply
    Any,
}

/// How long a run waits for connections and replies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeouts {
    pub(super) opening: Duration,
    pub(super) replies: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { opening: OPENING_TIME_MAX, replies: WAIT_MAX }
    }
}
