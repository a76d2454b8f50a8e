//! Conversion of replies of workers that do not speak HTTP into HTTP replies.

use exchange::{Response, Slice};
use wire::http1::{Method, Refusal, object, response};

use crate::reply_head::BoxedReplyHead;

/// How to convert the reply to one request.
#[derive(Clone, Copy, Debug)]
pub struct JsonReply {
    method: Method,
    /// A plain text also gets a head, which may have to carry the session affinity cookie.
    pub wants_head: bool,
}

/// A converted reply.
#[derive(Debug)]
pub enum Read {
    /// A head and a body.
    Reply(BoxedReplyHead, Slice),
    /// A text, which is forwarded unchanged.
    Text(Slice),
}

impl JsonReply {
    /// For an HTTP request with this method: a reply that is a JSON object becomes a head and a body.
    pub(crate) const fn of_http(method: Method) -> Self {
        Self { method, wants_head: false }
    }

    /// Converts a reply.
    ///
    /// # Errors
    /// When the object contains a status, a field or a value that a worker must not send.
    pub fn read(self, answer: Slice) -> Result<Read, Refusal> {
        let (head, body) = match object::is_object(&answer) {
            true => object::read(&answer, self.method)?,
            false if self.wants_head => object::plain(&answer, self.method)?,
            false => return Ok(Read::Text(answer)),
        };
        Ok(Read::Reply(BoxedReplyHead::new(head), body))
    }

    /// Converts a text of a worker that is never an object.
    ///
    /// # Errors
    /// Never caused by the text.
    pub fn text(self, answer: Slice) -> Result<Read, Refusal> {
        if !self.wants_head {
            return Ok(Read::Text(answer));
        }
        let (head, body) = object::plain(&answer, self.method)?;
        Ok(Read::Reply(BoxedReplyHead::new(head), body))
    }

    /// Converts a response of a handler.
    ///
    /// # Errors
    /// When the response contains a status, a field or a value that a worker must not send.
    pub fn response(self, response: Response) -> Result<Read, Refusal> {
        let (head, body) = response::read(response, self.method)?;
        Ok(Read::Reply(BoxedReplyHead::new(head), body))
    }
}
