//! A listener of framed messages.

use std::time::Duration;

use wire::Marks;

/// What a front of frames needs to know.
#[derive(Debug)]
pub(crate) struct FramesConfig {
    pub(crate) framing: wire::Framing,
    pub(crate) over: wire::Over,
    pub(crate) marks: Marks,
    /// A rejection adds no bytes: it resets the connection.
    pub(crate) resets: bool,
    pub(crate) accepts_last: bool,
    pub(crate) frame_max: usize,
    pub(crate) in_flight_max: usize,
    pub(crate) reply_held_max: usize,
    pub(crate) send_max: usize,
    pub(crate) read: Option<Duration>,
}

impl FramesConfig {
    /// What a frame is called in a text for its client.
    pub(crate) const fn word(&self) -> &'static str {
        match self.framing {
            wire::Framing::Lines => "line",
            wire::Framing::JsonRpc | wire::Framing::ContentLength => "message",
            _ => "request",
        }
    }
}
