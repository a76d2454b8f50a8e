//! What workers answer that do not speak the protocol of their clients.

use exchange::{Cause, Outcome, Phase, RequestId};

use super::Core;
use crate::plan::Takes;

impl Core {
    /// The last answer of a request.
    pub(super) fn answer(&mut self, place: usize, id: RequestId, outcome: Outcome) {
        let Some(exchange) = self.exchanges.get_mut(id) else { return };
        let read = match (exchange.translation, &outcome) {
            // Another pool may have taken it over, whose answers are no objects.
            (Some(translation), Outcome::Reply(body))
                if self.pools[place].takes == Takes::Objects =>
            {
                translation.reply(body)
            }
            _ => Ok(None),
        };
        match read {
            Ok(None) => self.end(id, outcome),
            Ok(Some((head, body))) => {
                self.head(place, id, head);
                self.end(id, Outcome::Reply(body));
            }
            Err(refusal) => {
                self.rejects.count_reply(refusal);
                let text = format!("a program answers against the rules: {refusal}");
                self.end(id, Outcome::ended(Cause::Garbled, Phase::Reply, &text));
            }
        }
    }
}
