//! How answers of workers that do not speak their client's protocol become replies in it.

use exchange::Slice;
use wire::http1::{Method, Refusal, object};

use crate::reply_head::Carried;

/// What it takes to read the answer to one request as a reply to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Translation(Method);

impl Translation {
    /// Of a request of HTTP with this method that was made an object: an answer that is one becomes a
    /// head and a body.
    pub(crate) const fn of_objects(method: Method) -> Self {
        Self(method)
    }

    /// The head and the body that an answer is. None: it is a text, and goes on as it is, unless a head
    /// is wanted of that too.
    ///
    /// # Errors
    /// When it says what a worker must not say.
    pub(crate) fn reply(
        self,
        answer: &Slice,
        wants_head: bool,
    ) -> Result<Option<(Carried, Slice)>, Refusal> {
        let (head, body) = match object::is_object(answer) {
            true => object::read(answer, self.0)?,
            false if wants_head => object::plain(answer, self.0)?,
            false => return Ok(None),
        };
        Ok(Some((Carried::new(head), body)))
    }
}
