//! Admission of a client of a message protocol to its pool.
//!
//! ```text
//!   Free ──no room, or others wait──▶ Waiting ──its turn, and room──▶ Granted ──all used, or no more requests──▶ Free
//!                                      ▲   ▲                           │   │
//!                                      │   └──────── no room ──────────┘   │
//!                                 it can be read                    it cannot be read
//!                                      └────────────── Parked ◀────────────┘
//! ```
//!
//! The session owns the permit; the engine changes it. A client keeps its ticket until it is `Free`.

/// Whether a client may send requests to its pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Permit {
    /// The client may send while the pool has room and no other client waits.
    #[default]
    Free,
    /// The client waits, under this ticket.
    Waiting(u64),
    /// The client would wait, but its session cannot be read at the moment.
    Parked(Grant),
    /// The client may send although others wait. The room is reserved.
    Granted(Grant),
}

/// Room that is reserved for one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The position in the order of waiting clients: the lowest ticket is first.
    pub ticket: u64,
    /// The number of requests that the client may send.
    pub requests: u32,
    /// The maximum memory of its next request, in bytes.
    pub bytes: usize,
}

impl Permit {
    /// Whether the client waits for room in the pool.
    pub const fn is_waiting(self) -> bool {
        matches!(self, Self::Waiting(_) | Self::Parked(_))
    }
}
