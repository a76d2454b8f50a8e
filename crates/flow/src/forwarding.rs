//! Forwarding headers that an HTTP listener adds for its clients.

use exchange::Peer;
use wire::http1::{Forwarded, ForwardedFor, Version, Via};

/// Settings of the forwarding headers of a listener.
#[derive(Debug, Default)]
pub struct Forwarding {
    /// Which forwarding headers are sent.
    pub fields: Forwarded,
    /// The `Via` header that is added to forwarded messages.
    pub via: Via,
    /// The `Host` that is sent when the client's request has none.
    pub host: String,
}

impl Forwarding {
    /// The values for one request. `trusted`: the forwarding headers that the client sent are kept.
    pub fn of(&self, peer: Peer, received: Version, trusted: bool) -> ForwardedFor<'_> {
        let client = match peer {
            Peer::Internet(address) => Some(address.ip()),
            Peer::Local | Peer::Inside => None,
        };
        let via = self.via.line(received);
        ForwardedFor { fields: self.fields, trusted, client, secure: false, via }
    }
}
