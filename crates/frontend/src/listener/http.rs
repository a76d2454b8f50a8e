//! The configuration of an HTTP listener.

use std::sync::Arc;
use std::time::Duration;

use exchange::Peer;
use wire::http1::{ForwardedFor, Version};

use crate::bodies::{Bodies, BodyLimits, BodyShare};
use crate::routing::RoutingConfig;
use flow::forwarding::Forwarding;

/// The configuration of an HTTP listener.
#[derive(Debug)]
pub struct HttpConfig {
    /// Limits of request heads and bodies.
    pub limits: wire::http1::Limits,
    /// Bytes of the request bodies that are being buffered, shared by all shards.
    pub bodies: Arc<Bodies>,
    /// Limits of those bytes.
    pub body_limits: BodyLimits,
    /// The minimum rate of a request body, in bytes per second over each `request_read_timeout`.
    pub body_rate_min: usize,
    /// How long a tunnel may be idle; `None`: no limit.
    pub tunnel_idle: Option<Duration>,
    /// Forwarding headers for servers.
    pub forwarding: Arc<Forwarding>,
    /// `TRACE` requests are accepted.
    pub allow_trace: bool,
    /// Upgrades to another protocol are accepted on requests without a route of their own.
    pub allow_upgrade: bool,
    /// Networks of proxies whose forwarding headers are trusted.
    pub trusted: Vec<settings::Network>,
    /// The time in which a request head must be complete; `None`: no limit.
    pub read: Option<Duration>,
    /// Routes; `None`: all requests go to one pool unchanged.
    pub routing: Option<RoutingConfig>,
}

impl HttpConfig {
    /// Whether the forwarding headers of this client are trusted.
    pub(crate) fn trusts(&self, client: std::net::IpAddr) -> bool {
        self.trusted.iter().any(|network| network.contains(client))
    }

    /// The account of a buffered body of this client. A trusted proxy has no limit of its own, since it forwards
    /// requests of many clients.
    pub(crate) fn share(&self, peer: Peer) -> BodyShare {
        let address = match peer {
            Peer::Internet(address) => Some(address.ip()),
            Peer::Local | Peer::Inside => None,
        };
        self.bodies.share(address.filter(|address| !self.trusts(*address)))
    }

    /// The values of the forwarding headers for a request.
    pub(crate) fn forwarded_for(&self, peer: Peer, received: Version) -> ForwardedFor<'_> {
        let trusted = match peer {
            Peer::Internet(address) => self.trusts(address.ip()),
            Peer::Local | Peer::Inside => true,
        };
        self.forwarding.of(peer, received, trusted)
    }
}
