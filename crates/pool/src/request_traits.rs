//! The properties of a request that matter to its pool, besides its bytes.

/// The number of priorities. Priority 0 is served first.
pub const PRIORITIES: u8 = 10;
/// The priority of a request that specifies none.
pub const PRIORITY_DEFAULT: u8 = 5;

/// The requirements of a request. The code that reads the client's protocol fills them in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestTraits<'a> {
    /// The id by which `why` finds the request.
    pub id: u64,
    /// The affinity key of the client. The client is bound to a worker by it.
    pub key: Option<&'a [u8]>,
    /// The position on the hash ring ([`hash`](crate::hash)); `None`: the position of the key.
    pub hash: Option<u64>,
    /// The affinity target ([`Pool::affinity_target`](crate::Pool::affinity_target)) that the client names in a cookie.
    pub named: Option<u64>,
    /// The priority, from 0 (the most urgent) to 9.
    pub priority: u8,
    /// The group of the request for fair queueing. All groups with waiting requests receive equal shares.
    pub share: Option<u64>,
    /// The client of the request. A worker may be reserved for one client
    /// ([`Pool::handle_reserved`](crate::Pool::handle_reserved)).
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
