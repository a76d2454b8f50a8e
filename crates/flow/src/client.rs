//! Where a request comes from, and where its reply goes.

use exchange::{ListenerId, Outcome, Peer, RequestId};

use crate::ids::SessionId;

/// Where a request comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    pub peer: Peer,
    /// Its listener; none: it comes from this process.
    pub listener: Option<ListenerId>,
}

impl Source {
    /// This process.
    pub const INSIDE: Self = Self { peer: Peer::Inside, listener: None };

    /// A client of this listener.
    pub const fn of_listener(peer: Peer, listener: ListenerId) -> Self {
        Self { peer, listener: Some(listener) }
    }
}

/// Where the outcome goes.
pub enum Client {
    /// To a session, as its reply number `sequence`.
    Session { session: SessionId, sequence: u64 },
    /// To the sender of a datagram.
    /// `hears_errors`: it is told when its request is refused or fails.
    Datagram { listener: ListenerId, to: Box<event::Origin>, hears_errors: bool },
    /// To a caller in this process.
    Inside(Box<dyn FnOnce(Outcome) + Send>),
    /// To another shard, which knows it by this id; `session`: whose it is there.
    OffShard { request: RequestId, session: Option<SessionId> },
    /// To nobody: a program is told to forget its client.
    Nobody,
}

impl Client {
    /// A connection that asked nothing.
    pub const fn unasked(session: SessionId) -> Self {
        Self::Session { session, sequence: u64::MAX }
    }

    /// The connection that it is of.
    pub const fn session(&self) -> Option<SessionId> {
        match self {
            Self::Session { session, .. } => Some(*session),
            Self::OffShard { session, .. } => *session,
            Self::Datagram { .. } | Self::Inside(_) | Self::Nobody => None,
        }
    }

    /// Whether it is request `number` of this session.
    pub fn is_of(&self, id: SessionId, number: u64) -> bool {
        matches!(self, Self::Session { session, sequence } if *session == id && *sequence == number)
    }

    /// The same, if it takes a reply part by part.
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
