//! What programs answer to requests of HTTP: an object becomes a head and a body, anything else is a
//! text.

use exchange::{Cause, Outcome, Phase, RequestId};
use wire::http1::object;

use super::Core;
use crate::plan::Takes;
use crate::upward::Carried;

impl Core {
    /// The last answer of a request.
    pub(super) fn answer(&mut self, place: usize, id: RequestId, outcome: Outcome) {
        let Some(exchange) = self.exchanges.get_mut(id) else { return };
        let (method, body) = match (exchange.method, &outcome) {
            (Some(method), Outcome::Reply(body))
                if self.pools[place].takes == Takes::Objects && object::is_object(body) =>
            {
                (method, body)
            }
            _ => return self.end(id, outcome),
        };
        match object::read(body, method) {
            Ok((head, body)) => {
                self.head(place, id, Carried::new(head));
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
