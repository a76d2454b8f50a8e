//! How what a program answers becomes a reply. To a client that speaks HTTP an object is a head and a body, so
//! that from here on it is a reply like that of a server.

use exchange::{Cause, Outcome, Phase, RequestId, Slice};

use flow::form::Form;
use flow::translation::Read;
use flow::upward::Upward;

/// Reports the whole answer to a request of this form.
pub(super) fn answered(id: RequestId, form: Form, answer: Slice, up: &mut Vec<Upward>) {
    let outcome = match form.translation {
        None => Outcome::Reply(answer),
        Some(translation) => match translation.read(answer) {
            Ok(Read::Text(text)) => Outcome::Reply(text),
            Ok(Read::Reply(head, body)) => {
                up.push(Upward::Head { id, head });
                Outcome::Reply(body)
            }
            Err(refusal) => {
                up.push(Upward::Broken { refusal });
                let text = format!("a program answers against the rules: {refusal}");
                Outcome::ended(Cause::Garbled, Phase::Reply, &text)
            }
        },
    };
    up.push(Upward::Answered { id, outcome });
}
