//! Properties of a request besides its bytes.

use wire::Upgrades;

use crate::json_reply::JsonReply;

/// The form of the expected reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResponseKind {
    /// A head and a body.
    #[default]
    Reply,
    /// A head without the body that it describes, as for `HEAD`.
    HeadOnly,
    /// A reply, or a switch to one of these protocols.
    Switch(Upgrades),
}

/// The effect of repeating a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effect {
    /// Unknown: a repetition may have a further effect.
    #[default]
    Unknown,
    /// Idempotent: a repetition has the same effect as one request.
    Once,
    /// Safe: the request has no effect.
    None,
}

/// Identifies the client of a request and the request itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestSource {
    /// The client. It is the same for all requests of a connection, or of one sender of datagrams.
    pub client: u64,
    /// The id of the request on the shard of its client.
    pub request: u64,
}

/// Properties of a request. The default is that of a frame.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestMeta {
    /// The body is not complete. The rest follows in parts.
    pub more: bool,
    /// The effect of repeating the request.
    pub effect: Effect,
    /// The form of the expected reply.
    pub expects: ResponseKind,
    /// Parts of the reply may be forwarded as they arrive.
    pub streams: bool,
    /// How to convert the reply of a worker that does not use the client's protocol.
    pub json_reply: Option<JsonReply>,
    /// The client sends its body only after `100 Continue`.
    pub waits: bool,
    /// The request is the configured `reset`, which a program receives after its connection has ended.
    pub is_reset: bool,
    /// The number of attempts that were returned by a worker.
    pub tries: u8,
    /// The client that sent the request.
    pub asker: RequestSource,
}
