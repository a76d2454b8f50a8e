//! The head of a reply on its way from a worker to its client.

use std::cell::RefCell;

use wire::http1::{Asked, Found, Limits, Refusal};

/// The head of a reply, before its parts.
pub use wire::http1::ReplyHead as Head;

/// A head on its way, in a place that is used again, with its memory: it is several times as large as
/// anything else that is reported, and would make every report as large.
#[derive(Debug)]
pub struct Carried(Box<Head>);

/// Places that a thread keeps.
const PLACES_MAX: usize = 64;

thread_local! {
    static PLACES: RefCell<Vec<Carried>> = const { RefCell::new(Vec::new()) };
}

impl Carried {
    /// A head that was made here.
    pub fn new(head: Head) -> Self {
        Self(Box::new(head))
    }

    /// Reads the head that was found in the reply to what was asked.
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

    pub fn head(&mut self) -> &mut Head {
        &mut self.0
    }

    /// It was sent on, or nobody wants it: its place is kept.
    pub fn recycle(mut self) {
        self.0.clear();
        PLACES.with_borrow_mut(|places| {
            if places.len() < PLACES_MAX {
                places.push(self);
            }
        });
    }
}
