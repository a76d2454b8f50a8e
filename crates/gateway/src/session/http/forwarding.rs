//! Who asked, as the server is told.

use exchange::Peer;
use wire::http1::{ForwardedFor, Version};

use crate::listener::HttpConfig;

/// Who asked, for the server.
pub(super) fn forwarded_for(plan: &HttpConfig, peer: Peer, received: Version) -> ForwardedFor<'_> {
    let client = match peer {
        Peer::Internet(address) => Some(address.ip()),
        Peer::Local | Peer::Inside => None,
    };
    let trusted = client.is_none_or(|client| plan.trusts(client));
    let via = plan.via.line(received);
    ForwardedFor { fields: plan.forwarded, trusted, client, secure: false, via }
}
