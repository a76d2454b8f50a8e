//! What other threads send to a shard.

use std::net::SocketAddr;
use std::sync::Arc;

use exchange::{Outcome, PoolId, Slice};

use crate::reload::Reload;
use engine::shard_message::ShardMessages;
use flow::order::Order;
use flow::worker_report::WorkerReport;
use observe::status::{LatelyAt, Status, Told, Why};

/// One message to a shard.
pub enum ShardMail {
    /// From the thread that talks to the keeper.
    Program(spawn::Report),
    /// From a worker.
    Worker(WorkerReport),
    /// A request from within this process.
    Ask {
        /// Its pool.
        pool: PoolId,
        /// The request, without a line end.
        line: Slice,
        /// Called once, on the shard's thread; must not block.
        reply: Box<dyn FnOnce(Outcome) + Send>,
    },
    /// An order of an operator, for a pool.
    Order {
        /// The pool.
        pool: String,
        /// What is to be done.
        order: Order,
        /// Called once every shard follows it, on a shard's thread; must not block.
        reply: Box<dyn FnOnce(Told) + Send>,
    },
    /// Why a request went where it went.
    Why {
        /// The request.
        id: u64,
        /// Called once, on the shard's thread; must not block.
        reply: Box<dyn FnOnce(Vec<Why>) + Send>,
    },
    /// What was decided lately in a pool: at most so many decisions, with their requests.
    Lately {
        /// The pool.
        pool: String,
        /// How many.
        count: usize,
        /// Called once, on the shard's thread; must not block. None: there is no such pool.
        reply: Box<dyn FnOnce(Option<LatelyAt>) + Send>,
    },
    /// What is going on.
    Status(Box<dyn FnOnce(Status) + Send>),
    /// Replace every worker of a pool, each once another is ready.
    Recycle {
        /// The pool's name.
        pool: String,
        /// How many will be replaced; `None` when there is no such pool. Called once, on a shard's
        /// thread; must not block.
        reply: Box<dyn FnOnce(Option<u32>) + Send>,
    },
    /// Other settings from now on.
    Reload {
        /// What they mean for this shard.
        reload: Box<Reload>,
        /// What an operator should know of it; none: they were not taken over, because the daemon is about
        /// to end. Called once every shard follows
        /// what this one has told of it, on a shard's thread; must not block.
        reply: Box<dyn FnOnce(Option<Vec<String>>) + Send>,
    },
    /// Open files are short, and no connection of the shard that says so is idle.
    MakeRoom,
    /// A server that has a name has another address.
    Moved {
        /// The name with its port, as the settings have it.
        name: Arc<str>,
        /// Where it listens now.
        to: SocketAddr,
    },
    /// From another shard.
    Shard {
        /// Which.
        from: u32,
        /// What it tells us.
        messages: ShardMessages,
    },
    /// More memory is held than `memory_max`: connections are to be closed.
    Memory,
    /// Take no more requests, finish those that are there, then end.
    Drain,
    /// End at once.
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
            Self::Why { .. } => "Why",
            Self::Lately { .. } => "Lately",
            Self::MakeRoom => "MakeRoom",
            Self::Status(_) => "Status",
            Self::Recycle { .. } => "Recycle",
            Self::Reload { .. } => "Reload",
            Self::Moved { .. } => "Moved",
            Self::Shard { .. } => "Shard",
            Self::Memory => "Memory",
            Self::Drain => "Drain",
            Self::Stop => "Stop",
        })
    }
}
