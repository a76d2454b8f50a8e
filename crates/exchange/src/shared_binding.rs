//! What several daemons share: bindings of clients, and the use of limits by addresses. These are the messages between
//! the tables of a daemon and the part that exchanges them with other daemons.

/// The key of a client or an address in a shared table: a hash keyed by a secret that all daemons have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SharedKey(pub [u8; 16]);

/// A request was sent to the worker that its client is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BindingUse {
    /// The client.
    pub key: SharedKey,
    /// What the table had before; `None`: the client was not bound. If it equals `target`, the binding was only used.
    pub before: Option<u64>,
    /// The worker, by a number that is the same in all daemons.
    pub target: u64,
}

/// Another daemon has bound, used or unbound a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BindingChange {
    /// The client.
    pub key: SharedKey,
    /// The worker, by a number that is the same in all daemons; `None`: the client is not bound any more.
    pub target: Option<u64>,
}

/// What the clients of one address used at a daemon since its last report, and how many connections they have there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressUse {
    /// The address.
    pub key: SharedKey,
    /// New connections.
    pub connects: u32,
    /// Requests.
    pub requests: u32,
    /// Open connections.
    pub open: u32,
}
