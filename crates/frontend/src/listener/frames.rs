//! A listener of framed messages.

use std::time::Duration;

use wire::Marks;

/// What a front of frames needs to know.
#[derive(Debug)]
pub struct FramesConfig {
    pub framing: wire::Framing,
    pub over: wire::Over,
    pub marks: Marks,
    /// A rejection adds no bytes: it resets the connection.
    pub resets: bool,
    pub accepts_last: bool,
    pub frame_max: usize,
    pub in_flight_max: usize,
    pub reply_held_max: usize,
    pub send_max: usize,
    pub read: Option<Duration>,
}

impl FramesConfig {
    /// What a frame is called in a text for its client.
    pub const fn word(&self) -> &'static str {
        match self.framing {
            wire::Framing::Lines => "line",
            wire::Framing::JsonRpc | wire::Framing::ContentLength => "message",
            _ => "request",
        }
    }
}
