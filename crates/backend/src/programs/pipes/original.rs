//! The parts of a request that are not in the bytes written to the program.

use exchange::{Peer, Slice};

use flow::payload::Payload;

/// An HTTP request as received from the client; the program receives it as a JSON object. Empty for a frame, which is
/// written unchanged.
#[derive(Debug, Default)]
pub(super) struct Original(Option<Box<Payload>>);

impl Original {
    /// Returns the bytes to write for a request, and the original to keep.
    pub(super) fn of(payload: Payload, peer: Peer) -> (Slice, Self) {
        match payload {
            Payload::Frame(frame) => (frame, Self(None)),
            Payload::Http(request, body) => {
                let object = Slice::from(&request.object(peer, &body)[..]);
                (object, Self(Some(Box::new(Payload::Http(request, body)))))
            }
        }
    }

    /// Returns the original request, so that it can be given back; `written` are the bytes written for it.
    pub(super) fn give_back(self, written: Slice) -> Payload {
        self.0.map_or(Payload::Frame(written), |original| *original)
    }
}
