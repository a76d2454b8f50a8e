//! Visitors: what they ask, and what they understand of the answers.

use std::time::Duration;

use crate::happening::Moment;
use crate::http::message::{Manner, Reply};
use crate::http::tunnels::Parting;

/// One request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask {
    pub(crate) id: u64,
    pub(crate) is_post: bool,
    pub(crate) length: usize,
    pub(crate) chunked: bool,
    pub(crate) manner: Manner,
    /// It says so much of it, in thousandths, and no more.
    pub(crate) stalls: Option<usize>,
}

impl Ask {
    /// Whether its body is longer than one may be.
    pub(crate) const fn is_too_long(&self, body_max: usize) -> bool {
        self.is_post && self.length > body_max
    }
}

#[derive(Debug)]
pub(crate) struct Visitor {
    pub(crate) asks: Vec<Ask>,
    /// Those that were begun.
    pub(crate) begun: usize,
    /// One for each that was answered, the last perhaps in part.
    pub(crate) answers: Vec<Reply>,
    /// When each was begun, and answered.
    pub(crate) times: Vec<(Moment, Moment)>,
    /// It asks that many before it wants an answer.
    pub(crate) window: usize,
    pub(crate) pace: Duration,
    pub(crate) pause_until: Moment,
    /// It resets the connection then.
    pub(crate) resets_at: Option<Moment>,
    /// The body of its last request, which waits for a word of the gateway, or until then.
    pub(crate) held: Option<(Vec<u8>, Moment)>,
    /// How it ends a tunnel, once it is in one, and whether it has said all there.
    pub(crate) parting: Option<Parting>,
    pub(crate) is_silent: bool,
}
