//! The head of a reply, between worker and client.

use std::cell::RefCell;

use wire::http1::{Found, Limits, Refusal, RequestInfo};

use crate::recycler::Recycler;

/// The head of a reply, before its parts.
pub use wire::http1::ReplyHead as Head;

/// A boxed head whose memory is reused. A head is several times as large as any other event, so it is not stored
/// in the event itself.
#[derive(Debug)]
pub struct BoxedReplyHead(Option<Box<Head>>);

thread_local! {
    /// The unused boxes of a thread.
    static UNUSED: RefCell<Recycler<Box<Head>>> = const { RefCell::new(Recycler::new()) };
}

impl BoxedReplyHead {
    /// Boxes a head that was not parsed from bytes.
    pub fn new(head: Head) -> Self {
        UNUSED.with_borrow_mut(Recycler::arrive);
        Self(Some(Box::new(head)))
    }

    /// Parses the head that `found` locates in `bytes`, as the reply to the request `asked`.
    ///
    /// # Errors
    /// When the head violates HTTP or exceeds a limit.
    pub fn read(
        bytes: &[u8],
        found: &Found,
        asked: RequestInfo,
        limits: &Limits,
    ) -> Result<Self, Refusal> {
        let place = UNUSED.with_borrow_mut(Recycler::take);
        let mut head = Self(Some(place.unwrap_or_default()));
        head.head().read(bytes, found, asked, limits)?;
        Ok(head)
    }

    /// The head itself.
    pub fn head(&mut self) -> &mut Head {
        self.0.as_mut().expect("a head is there until it is dropped")
    }

    /// The head is no longer needed.
    pub fn recycle(self) {
        drop(self);
    }

    /// The head goes to another thread.
    pub fn leave(&self) {
        UNUSED.with_borrow_mut(Recycler::leave);
    }

    /// The head has come from another thread.
    pub fn arrive(&self) {
        UNUSED.with_borrow_mut(Recycler::arrive);
    }
}

impl Drop for BoxedReplyHead {
    /// Clears the head and keeps its memory for the next one, as [`Recycler`] describes.
    fn drop(&mut self) {
        let Some(mut head) = self.0.take() else { return };
        head.clear();
        // A thread that is ending keeps none.
        let _ = UNUSED.try_with(|places| places.borrow_mut().give(head));
    }
}
