//! What is known of a request beyond its bytes, for workers to which it is a message and not a frame.

use wire::Upgrades;

use crate::json_reply::JsonReply;

/// What its reply may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResponseKind {
    /// A head and a body.
    #[default]
    Reply,
    /// A head that tells of a body which does not come.
    HeadOnly,
    /// Perhaps a head behind which both sides speak one of these protocols.
    Switch(Upgrades),
}

/// What it does when it is made twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effect {
    /// Nobody knows.
    #[default]
    Unknown,
    /// The same as when it is made once.
    Once,
    /// Nothing.
    None,
}

/// Whose a request is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asker {
    /// Its client: the same for all requests of a connection, or of an address that sends datagrams.
    pub client: u64,
    /// The id of the request where its client is.
    pub request: u64,
}

/// The form of a request. That of a frame is the default.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestMeta {
    /// More of it comes behind what is there, in parts.
    pub more: bool,
    /// What it does when it is made twice.
    pub effect: Effect,
    /// What its reply may be.
    pub expects: ResponseKind,
    /// Parts of its reply may be sent on as they come.
    pub streams: bool,
    /// How what a worker answers becomes a reply, where it does not speak its client's protocol.
    pub json_reply: Option<JsonReply>,
    /// Its client waits with its body until the worker says that it may come.
    pub waits: bool,
    /// It makes a program forget the connection that has ended: `reset`.
    pub is_reset: bool,
    /// How often it was given to a worker and came back.
    pub tries: u8,
    pub asker: Asker,
}
