//! Messages of other threads to a shard.

use std::net::SocketAddr;
use std::sync::Arc;

use exchange::{AddressUse, BindingChange, ListenerId, Outcome, PoolId, Slice};

use crate::reload::Reload;
use engine::shard_message::ShardMessages;
use flow::order::Order;
use flow::worker_report::WorkerReport;
use observe::status::{Explanation, OrderResult, Status, TimedDecisions};

/// Receives the name of a listener and what its clients used since the last report. It is called on the thread of a
/// shard and must not block.
pub type AddressUseReply = Arc<dyn Fn(String, Vec<AddressUse>) + Send + Sync>;

/// One message to a shard.
pub enum ShardMail {
    /// A report of the thread that talks to the supervisor.
    Program(spawn::Report),
    /// A report of a worker.
    Worker(WorkerReport),
    /// A request from within this process.
    Ask {
        /// The pool of the request.
        pool: PoolId,
        /// The request, without a line end.
        line: Slice,
        /// Called once, on the shard's thread; must not block.
        reply: Box<dyn FnOnce(Outcome) + Send>,
    },
    /// An administrative order for a pool.
    Order {
        /// The pool.
        pool: String,
        /// The action.
        order: Order,
        /// Called once every shard has applied the order, on a shard's thread; must not block.
        reply: Box<dyn FnOnce(OrderResult) + Send>,
    },
    /// A query why a request was sent to its worker.
    Explain {
        /// The id of the request.
        id: u64,
        /// Called once, on the shard's thread; must not block.
        reply: Box<dyn FnOnce(Vec<Explanation>) + Send>,
    },
    /// A query for the most recent decisions in a pool, with their requests.
    RecentDecisions {
        /// The pool.
        pool: String,
        /// The maximum number of decisions.
        count: usize,
        /// Called once, on the shard's thread; must not block. `None`: no such pool exists.
        reply: Box<dyn FnOnce(Option<TimedDecisions>) + Send>,
    },
    /// A query for the status.
    Status(Box<dyn FnOnce(Status) + Send>),
    /// An order to replace every worker of a pool, each once its replacement is ready.
    Recycle {
        /// The name of the pool.
        pool: String,
        /// Receives how many will be replaced; `None` if no such pool exists. Called once, on a shard's thread; must
        /// not block.
        reply: Box<dyn FnOnce(Option<u32>) + Send>,
    },
    /// A new configuration.
    Reload {
        /// The part of the configuration for this shard.
        reload: Box<Reload>,
        /// Receives warnings for the operator; `None`: the configuration was not applied, because the daemon is
        /// stopping. Called once every shard has processed the messages of this shard about the reload, on a shard's
        /// thread; must not block.
        reply: Box<dyn FnOnce(Option<Vec<String>>) + Send>,
    },
    /// Open files are short, and no connection of the sending shard is idle.
    MakeRoom,
    /// The address of a named server has changed.
    Moved {
        /// The name with its port, as in the configuration.
        name: Arc<str>,
        /// The new address.
        to: SocketAddr,
    },
    /// Other daemons have bound, used or unbound clients of a pool that this shard owns.
    Bindings {
        /// The pool.
        pool: PoolId,
        /// The changes.
        changes: Vec<BindingChange>,
    },
    /// Another daemon reports that the health of a server has changed. If this daemon checks the server, it does so now.
    CheckNow {
        /// The pool, which this shard owns.
        pool: PoolId,
        /// The name of the server.
        worker: String,
    },
    /// A query for what addresses used, at listeners whose limits are shared with other daemons.
    AskAddressUses(AddressUseReply),
    /// What addresses used at another daemon.
    AddressUses {
        /// The daemon.
        daemon: u64,
        /// The listener.
        listener: ListenerId,
        /// The addresses.
        uses: Arc<[AddressUse]>,
    },
    /// Messages of another shard.
    Shard {
        /// The number of the other shard.
        from: u32,
        /// The messages.
        messages: ShardMessages,
    },
    /// More memory is used than `memory_max`: connections must be closed.
    Memory,
    /// An order to accept no more requests, finish the accepted ones and stop.
    Drain,
    /// An order to stop immediately.
    Stop,
}

impl std::fmt::Debug for ShardMail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Program(_) => "Program",
            Self::Worker(WorkerReport::Handler { .. }) => "Handler",
            Self::Worker(WorkerReport::Checked { .. }) => "Checked",
            Self::Ask { .. } => "Ask",
            Self::Order { .. } => "Order",
            Self::Explain { .. } => "Why",
            Self::RecentDecisions { .. } => "Lately",
            Self::MakeRoom => "MakeRoom",
            Self::Status(_) => "Status",
            Self::Recycle { .. } => "Recycle",
            Self::Reload { .. } => "Reload",
            Self::Moved { .. } => "Moved",
            Self::Bindings { .. } => "Bindings",
            Self::CheckNow { .. } => "CheckNow",
            Self::AskAddressUses(_) => "AskAddressUses",
            Self::AddressUses { .. } => "AddressUses",
            Self::Shard { .. } => "Shard",
            Self::Memory => "Memory",
            Self::Drain => "Drain",
            Self::Stop => "Stop",
        })
    }
}
