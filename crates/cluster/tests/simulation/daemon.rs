//! One daemon of a world: its replica and its connection.

use std::collections::{BTreeMap, BTreeSet};

use cluster::{Event, Key, OperationId, Replica, Target};

use crate::reader::Reader;

/// Messages of one of these arrive in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Order {
    Read(OperationId),
    Answers,
    Digests,
}

#[derive(Debug)]
pub(crate) struct Daemon {
    pub(crate) replica: Replica,
    /// The start of its monotonic clock.
    pub(crate) clock_ms: u64,
    /// The connection that the server knows.
    pub(crate) connection: Option<u32>,
    pub(crate) connections: u32,
    pub(crate) is_connecting: bool,
    pub(crate) is_cut: bool,
    pub(crate) is_paused: bool,
    pub(crate) paused_ms: u64,
    /// What arrived during a pause.
    pub(crate) held: Vec<Event>,
    /// When the last message of each order arrives.
    pub(crate) arrivals: BTreeMap<Order, u64>,
    pub(crate) down: BTreeSet<Target>,
    /// The last use of each client here.
    pub(crate) uses: BTreeMap<Key, u64>,
    pub(crate) poll_at: Option<u64>,
    /// The table of the pool, if the plan has one.
    pub(crate) reader: Reader,
}

impl Daemon {
    pub(crate) fn new(replica: Replica, clock_ms: u64) -> Self {
        Self {
            replica,
            clock_ms,
            connection: None,
            connections: 0,
            is_connecting: false,
            is_cut: false,
            is_paused: false,
            paused_ms: 0,
            held: Vec::new(),
            arrivals: BTreeMap::new(),
            down: BTreeSet::new(),
            uses: BTreeMap::new(),
            poll_at: None,
            reader: Reader::default(),
        }
    }
}
