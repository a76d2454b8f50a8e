//! What workers answer that do not speak the protocol of their clients.

use exchange::{Cause, Outcome, Phase, PoolId, RequestId};

use super::Core;
use crate::request_shape::RequestShape;

impl Core {
    /// The last answer of a request.
    pub(super) fn answer(&mut self, pool: PoolId, id: RequestId, outcome: Outcome) {
        let Some(exchange) = self.exchanges.get_mut(id) else { return };
        let served = &self.pools[pool];
        let read = match (exchange.translation, &outcome) {
            // Another pool may have taken it over, whose answers are no objects.
            (Some(translation), Outcome::Reply(body)) if served.takes == RequestShape::Objects => {
                // Its client may have to be told of its worker.
                translation.reply(body, served.cookies.is_some())
            }
            _ => Ok(None),
        };
        match read {
            Ok(None) => self.end(id, outcome),
            Ok(Some((head, body))) => {
                self.head(pool, id, head);
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
