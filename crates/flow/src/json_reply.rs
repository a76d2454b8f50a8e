//! How answers of workers that do not speak their client's protocol become replies in it.

use exchange::Slice;
use wire::http1::{Method, Refusal, object};

use crate::reply_head::Carried;

/// What it takes to read the answer to one request as a reply to it.
#[derive(Clone, Copy, Debug)]
pub struct JsonReply {
    method: Method,
    /// A head is wanted of a text too: its client may have to be told of its worker.
    pub wants_head: bool,
}

/// What an answer is.
#[derive(Debug)]
pub enum Read {
    /// A head, and the body behind it.
    Reply(Carried, Slice),
    /// A text, which goes on as it is.
    Text(Slice),
}

impl JsonReply {
    /// Of a request of HTTP with this method: an answer that is an object becomes a head and a body.
    pub(crate) const fn of_http(method: Method) -> Self {
        Self { method, wants_head: false }
    }

    /// What an answer is.
    ///
    /// # Errors
    /// When it says what a worker must not say.
    pub fn read(self, answer: Slice) -> Result<Read, Refusal> {
        let (head, body) = match object::is_object(&answer) {
            true => object::read(&answer, self.method)?,
            false if self.wants_head => object::plain(&answer, self.method)?,
            false => return Ok(Read::Text(answer)),
        };
        Ok(Read::Reply(Carried::new(head), body))
    }
}
