//! The client of the server: one thread with one connection for all shared tables.
//!
//! What it is: it moves reports of the pools' tables into the [`Replica`](crate::Replica)s, changes of other daemons
//! back to the tables, and commands and events between the replicas and NATS. What it depends on: async-nats and a
//! runtime of its own. What it must never depend on: a pool, a shard.
//!
//! ```text
//!   shard ──uses (a channel, read every 10 ms)──▶ ┌─────────────────┐ ──Command──▶ ┌─────────┐
//!         ◀──changes (a message to the shard)──── │ replica / table │              │ session │ ◀──▶ NATS
//!                                                 └─────────────────┘ ◀───Event─── └─────────┘
//! ```
//!
//! A shard never wakes this thread, so it makes no system call for a binding. If a shard does not take changes, no more
//! events are read, and the server waits.
//!
//! # Connections
//!
//! Each connection has a runtime of its own. When the connection, a watch or an acknowledgement is lost, all replicas
//! are notified and the runtime is dropped: nothing that waited in the library can reach the server on the next
//! connection.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the replicas are pure; their client has a clock, files and a thread"
)]

mod bucket;
mod change;
mod check;
mod clock;
mod config;
mod explain;
mod hints;
mod limits;
mod machines;
mod messages;
mod operator;
mod operator_bucket;
mod read;
mod session;
mod status;
mod table;
mod thread;
mod write;

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;

pub use config::{
    AddressUses, ApplySetting, Changes, CheckNow, ClusterConfig, CommandReply, HealthHints,
    LimitSharing, Sharing, TableConfig, TlsFiles, Uses, uses,
};
pub use status::{
    CheckReport, CheckedKey, ClusterStatus, HintCounters, LimitCounters, MachineStatus,
    OperatorStatus, TableStatus,
};

use crate::operator::CommandRequest;
use messages::Order;

/// The thread that shares the tables of this daemon with others. Dropping it ends the thread.
#[derive(Debug)]
pub struct Cluster {
    orders: mpsc::UnboundedSender<Order>,
    status: Arc<Mutex<ClusterStatus>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Cluster {
    /// Starts the thread. It connects, and connects again whenever the connection is lost, until it is dropped.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(config: ClusterConfig, tables: Vec<TableConfig>, seed: u64) -> io::Result<Self> {
        Self::start_sharing(config, tables, Sharing::default(), seed)
    }

    /// Like [`Cluster::start`], and shares more than tables.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start_sharing(
        config: ClusterConfig,
        tables: Vec<TableConfig>,
        sharing: Sharing,
        seed: u64,
    ) -> io::Result<Self> {
        let (orders, inbox) = mpsc::unbounded_channel();
        let status = Arc::new(Mutex::new(ClusterStatus::default()));
        let thread = thread::start(config, tables, sharing, seed, inbox, Arc::clone(&status))?;
        Ok(Self { orders, status, thread: Some(thread) })
    }

    /// The state of all tables, at most one second old.
    #[must_use]
    pub fn status(&self) -> ClusterStatus {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until all tables and the settings of operators are in sync. `false`: they are not after this time.
    #[must_use]
    pub fn wait_in_sync(&self, timeout: Duration) -> bool {
        let (sender, receiver) = std::sync::mpsc::channel();
        let _ = self.orders.send(Order::WhenInSync(sender));
        receiver.recv_timeout(timeout).is_ok()
    }

    /// Stores a command of an operator. `reply` is called once it applies at this daemon, or when it was not stored.
    pub fn command(&self, request: CommandRequest, reply: CommandReply) {
        // If the thread has ended, the reply is dropped.
        let _ = self.orders.send(Order::Command(request, reply));
    }

    /// Compares all tables with those of the other daemons, key by key. `reply` is called once, on the thread of the
    /// cluster; it must not block.
    pub fn check(&self, reply: Box<dyn FnOnce(CheckReport) + Send>) {
        // If the thread has ended, the reply is dropped.
        let _ = self.orders.send(Order::Check(reply));
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = self.orders.send(Order::End);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was reported when it happened.
            let _ = thread.join();
        }
    }
}
