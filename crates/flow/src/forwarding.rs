//! What a listener of HTTP tells servers of its clients.

use exchange::Peer;
use wire::http1::{Forwarded, ForwardedFor, Version, Via};

/// What servers are told of who asked.
#[derive(Debug, Default)]
pub struct Forwarding {
    pub fields: Forwarded,
    /// What is added to messages that are forwarded.
    pub via: Via,
    /// What a server is told where the client names no host.
    pub host: String,
}

impl Forwarding {
    /// Who asked, for the server. `trusted`: what the client says of those before it is believed.
    pub fn of(&self, peer: Peer, received: Version, trusted: bool) -> ForwardedFor<'_> {
        let client = match peer {
            Peer::Internet(address) => Some(address.ip()),
            Peer::Local | Peer::Inside => None,
        };
        let via = self.via.line(received);
        ForwardedFor { fields: self.fields, trusted, client, secure: false, via }
    }
}
