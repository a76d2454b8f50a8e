//! Addresses of servers: reloads, changed addresses of names, and notifications from other shards.

use exchange::{ByWorker, WorkerId, WorkerIndex};

use super::Upstream;
use super::config::UpstreamConfig;
use crate::backend::BackendContext;
use crate::connection_counts::ConnectionCounts;

impl Upstream {
    /// Applies new settings to the workers with these names. A server whose name is not configured is being removed and
    /// keeps its address.
    pub(crate) fn handle_config(
        &mut self,
        mut config: UpstreamConfig,
        names: &ByWorker<Option<String>>,
        room: Option<ConnectionCounts>,
    ) {
        if room.is_some() {
            self.room = room;
        }
        let (before, now) = (&self.config.addresses, &config.addresses);
        let of = |(server, name): (WorkerIndex, &Option<String>)| {
            let called = |it: &&(event::Address, String)| Some(&it.1) == name.as_ref();
            // The address in the configuration may be older than the last resolved address.
            let found = before.values().find(called).or_else(|| now.values().find(called));
            let kept = || before.get(server).or_else(|| now.values().next());
            found.or_else(kept).expect("a pool has a server").clone()
        };
        config.addresses = names.iter().map(of).collect();
        let moved = config.addresses.iter().filter(|(server, to)| before.get(*server) != Some(to));
        let moved: Vec<WorkerIndex> = moved.map(|(server, _)| server).collect();
        self.config = config;
        for server in moved {
            self.reset_reuse_ban(server);
        }
    }

    /// Applies new settings to workers whose addresses are assigned at their start.
    pub(crate) fn handle_tuning(&mut self, config: UpstreamConfig) {
        let addresses = std::mem::take(&mut self.config.addresses);
        self.config = UpstreamConfig { addresses, ..config };
    }

    /// Stops using a server to which another shard could not connect, or which the owner shard considers down. Idle
    /// connections are closed. Only the owner shard retires the server.
    pub(crate) fn stop_using(&mut self, cx: &mut BackendContext<'_, '_>, worker: WorkerId) {
        if !self.config.is_member_shard {
            self.retire(cx, worker);
            return self.try_end(worker, false, cx.events);
        }
        self.close_idle(cx.io, worker);
    }
}
