//! How the answer of a program becomes a reply. For a client that speaks HTTP, a JSON object is converted to a head and
//! a body, so that the rest of the code handles it like a reply of a server.

use exchange::{Cause, Outcome, Phase, RequestId, Slice};

use flow::backend_event::BackendEvent;
use flow::json_reply::Read;
use flow::request_meta::RequestMeta;

/// Reports the complete answer to a request of this form.
pub(super) fn answered(
    id: RequestId,
    meta: RequestMeta,
    answer: Slice,
    events: &mut Vec<BackendEvent>,
) {
    let outcome = match meta.json_reply {
        None => Outcome::Reply(answer),
        Some(json_reply) => match json_reply.read(answer) {
            Ok(Read::Text(text)) => Outcome::Reply(text),
            Ok(Read::Reply(head, body)) => {
                events.push(BackendEvent::Head { id, head });
                Outcome::Reply(body)
            }
            Err(refusal) => {
                events.push(BackendEvent::Broken { refusal });
                let text = format!("a program answers against the rules: {refusal}");
                Outcome::ended(Cause::Garbled, Phase::Reply, &text)
            }
        },
    };
    events.push(BackendEvent::Answered { id, outcome });
}
