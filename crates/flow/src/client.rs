//! The origin of a request and the destination of its reply.

use exchange::{ListenerId, Outcome, Peer, RequestId};

use crate::ids::SessionId;

/// The origin of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// The address of the client.
    pub peer: Peer,
    /// The listener that received the request; `None`: this process made it.
    pub listener: Option<ListenerId>,
}

impl Source {
    /// A request that this process made.
    pub const INSIDE: Self = Self { peer: Peer::Inside, listener: None };

    /// A request of a client of this listener.
    pub const fn of_listener(peer: Peer, listener: ListenerId) -> Self {
        Self { peer, listener: Some(listener) }
    }
}

/// The destination of an outcome.
pub enum Client {
    /// A session of a client.
    Session {
        /// The session.
        session: SessionId,
        /// The position of the reply among the replies of the session.
        sequence: u64,
    },
    /// The sender of a datagram.
    Datagram {
        /// The listener that received the datagram.
        listener: ListenerId,
        /// The address of the sender.
        to: Box<event::Origin>,
        /// Whether the sender also receives rejections and errors.
        hears_errors: bool,
    },
    /// A callback of this process.
    Inside(Box<dyn FnOnce(Outcome) + Send>),
    /// Another shard, which received the request.
    OffShard {
        /// The id of the request on that shard.
        request: RequestId,
        /// The session of the request on that shard.
        session: Option<SessionId>,
    },
    /// No destination: the request is the reset of a program.
    Nobody,
}

impl Client {
    /// The destination of messages that belong to no request of the session.
    pub const fn unasked(session: SessionId) -> Self {
        Self::Session { session, sequence: u64::MAX }
    }

    /// The session, unless the destination is a datagram or internal.
    pub const fn session(&self) -> Option<SessionId> {
        match self {
            Self::Session { session, .. } => Some(*session),
            Self::OffShard { session, .. } => *session,
            Self::Datagram { .. } | Self::Inside(_) | Self::Nobody => None,
        }
    }

    /// Whether this is the reply at position `number` of session `id`.
    pub fn is_of(&self, id: SessionId, number: u64) -> bool {
        matches!(self, Self::Session { session, sequence } if *session == id && *sequence == number)
    }

    /// A copy, if the destination accepts a reply in parts.
    pub const fn streamed(&self) -> Option<Self> {
        match self {
            Self::Session { session, sequence } => {
                Some(Self::Session { session: *session, sequence: *sequence })
            }
            Self::OffShard { request, session } => {
                Some(Self::OffShard { request: *request, session: *session })
            }
            Self::Datagram { .. } | Self::Inside(_) | Self::Nobody => None,
        }
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Session { session, sequence } => write!(f, "{session:?}#{sequence}"),
            Self::Datagram { listener, to, .. } => write!(f, "{to:?} of listener {listener}"),
            Self::Inside(_) => f.write_str("inside"),
            Self::OffShard { request, .. } => write!(f, "{request:?} of another shard"),
            Self::Nobody => f.write_str("nobody"),
        }
    }
}
