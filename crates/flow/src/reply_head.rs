//! The head of a reply, between worker and client.

use std::cell::RefCell;

use wire::http1::{Asked, Found, Limits, Refusal};

/// The head of a reply, before its parts.
pub use wire::http1::ReplyHead as Head;

/// A boxed head whose memory is reused. A head is several times as large as any other event, so it is not stored
/// in the event itself.
#[derive(Debug)]
pub struct Carried(Box<Head>);

/// Unused boxes that a thread keeps.
const PLACES_MAX: usize = 64;

thread_local! {
    static PLACES: RefCell<Vec<Carried>> = const { RefCell::new(Vec::new()) };
}

impl Carried {
    /// Boxes a head that was not parsed from bytes.
    pub fn new(head: Head) -> Self {
        Self(Box::new(head))
    }

    /// Parses the head that `found` locates in `bytes`, as the reply to the request `asked`.
    ///
    /// # Errors
    /// When the head violates HTTP or exceeds a limit.
    pub fn read(
        bytes: &[u8],
        found: &Found,
        asked: Asked,
        limits: &Limits,
    ) -> Result<Self, Refusal> {
        let place = PLACES.with_borrow_mut(Vec::pop);
        let mut place = place.unwrap_or_else(|| Self(Box::default()));
        match place.0.read(bytes, found, asked, limits) {
            Ok(()) => Ok(place),
            Err(refusal) => {
                place.recycle();
                Err(refusal)
            }
        }
    }

    /// The head itself.
    pub fn head(&mut self) -> &mut Head {
        &mut self.0
    }

    /// Clears the head and keeps its memory for the next one. A thread keeps at most 64.
    pub fn recycle(mut self) {
        self.0.clear();
        PLACES.with_borrow_mut(|places| {
            if places.len() < PLACES_MAX {
                places.push(self);
            }
        });
    }
}
