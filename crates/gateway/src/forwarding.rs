//! What a listener of HTTP tells servers of its clients.

use exchange::Peer;
use wire::http1::{Forwarded, ForwardedFor, Version, Via};

/// What servers are told of who asked.
#[derive(Debug, Default)]
pub(crate) struct Forwarding {
    pub(crate) fields: Forwarded,
    /// What is added to messages that are forwarded.
    pub(crate) via: Via,
    /// What a server is told where the client names no host.
    pub(crate) host: String,
}

impl Forwarding {
    /// Who asked, for the server. `trusted`: what the client says of those before it is believed.
    pub(crate) fn of(&self, peer: Peer, received: Version, trusted: bool) -> ForwardedFor<'_> {
        let client = match peer {
            Peer::Internet(address) => Some(address.ip()),
            Peer::Local | Peer::Inside => None,
        };
        let via = self.via.line(received);
        ForwardedFor { fields: self.fields, trusted, client, secure: false, via }
    }
}
