//! Closures as handlers.

use std::borrow::Cow;

use exchange::{
    Batch, Factory, Handler, HandlerError, Outbox, Outcome, Request, Response, Slice, Stop,
};

/// Returns the body of a request as text. Invalid UTF-8 is replaced.
#[must_use]
pub fn text(request: &Request) -> Cow<'_, str> {
    String::from_utf8_lossy(&request.body)
}

/// The bytes of a reply.
#[derive(Clone, Debug)]
pub struct Bytes(Slice);

impl From<Slice> for Bytes {
    fn from(slice: Slice) -> Self {
        Self(slice)
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Slice::from(&bytes[..]))
    }
}

impl From<String> for Bytes {
    fn from(text: String) -> Self {
        Self(Slice::from(text.as_str()))
    }
}

impl From<&str> for Bytes {
    fn from(text: &str) -> Self {
        Self(Slice::from(text))
    }
}

/// A factory of handlers that are closures.
pub(super) struct Opening<F>(pub(super) F);

impl<F, S> Factory for Opening<F>
where
    F: Fn() -> Result<S, String> + Send + Sync,
    S: FnMut(&Request) -> Bytes + Send + 'static,
{
    fn open(&self) -> Result<Box<dyn Handler>, HandlerError> {
        match (self.0)() {
            Ok(serve) => Ok(Box::new(Answering(serve))),
            Err(why) => Err(HandlerError::Open(why.into())),
        }
    }
}

struct Answering<S>(S);

impl<S: FnMut(&Request) -> Bytes + Send> Handler for Answering<S> {
    fn serve(&mut self, batch: &Batch, outbox: &mut dyn Outbox, _stop: &Stop) {
        for (place, request) in batch.requests.iter().enumerate() {
            let Bytes(reply) = (self.0)(request);
            outbox.answer(place, Outcome::Reply(reply));
        }
    }
}

/// A factory of handlers that are closures and answer with HTTP responses.
pub(super) struct OpeningHttp<F>(pub(super) F);

impl<F, S> Factory for OpeningHttp<F>
where
    F: Fn() -> Result<S, String> + Send + Sync,
    S: FnMut(&Request) -> Response + Send + 'static,
{
    fn open(&self) -> Result<Box<dyn Handler>, HandlerError> {
        match (self.0)() {
            Ok(serve) => Ok(Box::new(Responding(serve))),
            Err(why) => Err(HandlerError::Open(why.into())),
        }
    }
}

struct Responding<S>(S);

impl<S: FnMut(&Request) -> Response + Send> Handler for Responding<S> {
    fn serve(&mut self, batch: &Batch, outbox: &mut dyn Outbox, _stop: &Stop) {
        for (place, request) in batch.requests.iter().enumerate() {
            outbox.respond(place, (self.0)(request));
        }
    }
}
