//! A listener of HTTP.

use std::sync::Arc;
use std::time::Duration;

use exchange::Peer;
use wire::http1::{ForwardedFor, Version};

use crate::bodies::{Bodies, BodyLimits, BodyShare};
use crate::routing::RoutingConfig;
use flow::forwarding::Forwarding;

/// What a front of HTTP needs to know.
#[derive(Debug)]
pub struct HttpConfig {
    pub limits: wire::http1::Limits,
    /// Bytes of the bodies that are being taken whole, of all shards, and the most there may be.
    pub bodies: Arc<Bodies>,
    pub body_limits: BodyLimits,
    /// Bytes a second that a body must bring over each `read`.
    pub body_rate_min: usize,
    /// A tunnel in which neither side says anything for so long is ended.
    pub tunnel_idle: Option<Duration>,
    /// What servers are told of clients.
    pub forwarding: Arc<Forwarding>,
    pub allow_trace: bool,
    pub allow_upgrade: bool,
    pub trusted: Vec<settings::Network>,
    pub read: Option<Duration>,
    /// None where all goes to one pool as it comes.
    pub routing: Option<RoutingConfig>,
}

impl HttpConfig {
    /// Whether what this client says of those before it is believed.
    pub fn trusts(&self, client: std::net::IpAddr) -> bool {
        self.trusted.iter().any(|network| network.contains(client))
    }

    /// What a body of this client takes. A proxy that is trusted speaks for many.
    pub fn share(&self, peer: Peer) -> BodyShare {
        let address = match peer {
            Peer::Internet(address) => Some(address.ip()),
            Peer::Local | Peer::Inside => None,
        };
        self.bodies.share(address.filter(|address| !self.trusts(*address)))
    }

    /// Who asked, for the server.
    pub(crate) fn forwarded_for(&self, peer: Peer, received: Version) -> ForwardedFor<'_> {
        let trusted = match peer {
            Peer::Internet(address) => self.trusts(address.ip()),
            Peer::Local | Peer::Inside => true,
        };
        self.forwarding.of(peer, received, trusted)
    }
}
