//! The configuration of a listener for framed messages.

use std::time::Duration;

use wire::Marks;

/// The configuration of a listener for framed messages.
#[derive(Debug)]
pub struct FramesConfig {
    /// How messages are delimited.
    pub framing: wire::Framing,
    /// What happens after a message over `frame_max`.
    pub over: wire::OversizePolicy,
    /// How rejections are distinguished from replies.
    pub marks: Marks,
    /// A rejection is not written; it resets the connection.
    pub resets: bool,
    /// A last message without its end mark is accepted.
    pub accepts_last: bool,
    /// The maximum size of a message in bytes, excluding framing.
    pub frame_max: usize,
    /// The maximum number of requests in flight per client. At the limit the client is not read.
    pub in_flight_max: usize,
    /// The maximum size of replies that wait for their turn, in bytes per client.
    pub reply_held_max: usize,
    /// The maximum size of buffered output, in bytes per client.
    pub send_max: usize,
    /// The time in which a message must be complete; `None`: no limit.
    pub read: Option<Duration>,
}

impl FramesConfig {
    /// The word for a message in texts for the client.
    pub(crate) const fn as_str(&self) -> &'static str {
        match self.framing {
            wire::Framing::Lines => "line",
            wire::Framing::JsonRpc | wire::Framing::ContentLength => "message",
            _ => "request",
        }
    }
}
