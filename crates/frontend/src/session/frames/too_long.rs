//! Rejection of frames over the limit.

use exchange::{Cause, Outcome, Phase};

use super::Frames;
use crate::context::SessionContext;
use crate::session::reply_queue::Name;
use crate::transport::Transport;

impl Frames {
    /// Ends a message that was too long, if there is one.
    pub(super) fn finish_too_long(
        &mut self,
        transport: &Transport,
        cx: &mut SessionContext<'_, '_>,
    ) {
        if let Some(skimmed) = self.decoder.finish_skimming() {
            self.refuse_too_long(transport, Name::of(skimmed), cx);
        }
    }

    /// Rejects a frame that is too long. A message is rejected by its id, if that is found.
    pub(super) fn refuse_too_long(
        &mut self,
        transport: &Transport,
        name: Name,
        cx: &mut SessionContext<'_, '_>,
    ) {
        let (what, max) = (self.config.as_str(), self.config.frame_max);
        let text = format!("a {what} has at most {max} bytes");
        let outcome = Outcome::ended(Cause::TooLong, Phase::Receive, &text);
        self.refuse(transport, outcome, name, cx);
    }
}
