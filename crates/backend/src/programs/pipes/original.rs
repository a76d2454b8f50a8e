//! What a program was asked, beyond the bytes that were written to it.

use exchange::{Peer, Slice};

use flow::payload::Payload;

/// A request of HTTP as its client made it: its program has it as an object. Nothing of a frame, which is
/// what was written.
#[derive(Debug, Default)]
pub(super) struct Original(Option<Box<Payload>>);

impl Original {
    /// What is written for a request, and what is kept of it besides.
    pub(super) fn of(payload: Payload, peer: Peer) -> (Slice, Self) {
        match payload {
            Payload::Frame(frame) => (frame, Self(None)),
            Payload::Http(request, body) => {
                let object = Slice::from(&request.object(peer, &body)[..]);
                (object, Self(Some(Box::new(Payload::Http(request, body)))))
            }
        }
    }

    /// The request as it came, to be given back; `written`: what was written for it.
    pub(super) fn give_back(self, written: Slice) -> Payload {
        self.0.map_or(Payload::Frame(written), |original| *original)
    }
}
