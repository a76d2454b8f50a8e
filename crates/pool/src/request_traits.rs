//! What a pool must be told of a request besides its bytes.

/// Priorities there are; 0 goes first.
pub const PRIORITIES: u8 = 10;
/// The priority of a request that has none.
pub const PRIORITY_DEFAULT: u8 = 5;

/// What a request asks of its pool. All of it is found by whoever speaks the client's protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestTraits<'a> {
    /// What `why` finds it by.
    pub id: u64,
    /// What its client is known by: it is bound to a worker by it.
    pub key: Option<&'a [u8]>,
    /// Where it stands on the circle of a hash ([`hash`](crate::hash)); none: where its key does.
    pub hash: Option<u64>,
    /// What its client says that it is bound to ([`Pool::affinity_target`](crate::Pool::affinity_target)), by a cookie.
    pub named: Option<u64>,
    /// From 0, the most urgent, to 9.
    pub priority: u8,
    /// With whom it shares: each of those who wait is given the same.
    pub share: Option<u64>,
    /// Whose it is: a worker may be kept for one client ([`Pool::handle_reserved`](crate::Pool::handle_reserved)).
    pub client: Option<u64>,
}

impl Default for RequestTraits<'_> {
    fn default() -> Self {
        Self {
            id: 0,
            key: None,
            hash: None,
            named: None,
            priority: PRIORITY_DEFAULT,
            share: None,
            client: None,
        }
    }
}
