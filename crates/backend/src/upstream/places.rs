//! Addresses of servers: reloads, changed addresses of names, and notifications from other shards.

use std::net::SocketAddr;

use event::Context;
use exchange::{ByWorker, WorkerId, WorkerIndex};

use super::config::UpstreamConfig;
use super::fault::Fault;
use super::{ConnectionId, Upstream};
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

    /// Applies a new address of a named server. Idle connections are closed. Busy connections are closed after their
    /// request. New connections use the new address. If a connection is not established yet, its request also goes to
    /// the new address.
    pub(crate) fn handle_moved(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        name: &str,
        to: SocketAddr,
    ) {
        let to = event::Address::Internet(to);
        for index in self.config.addresses.indices() {
            let Some((address, shown)) = self.config.addresses.get_mut(index) else { continue };
            if shown != name || *address == to {
                continue;
            }
            *address = to.clone();
            self.reset_reuse_ban(index);
            let Some(server) = self.live.get_mut(index).and_then(Option::as_mut) else { continue };
            let worker = server.worker;
            for id in std::mem::take(&mut server.idle) {
                self.close(cx.io, id);
            }
            for id in self.connections.places().into_iter().map(ConnectionId) {
                let Some(connection) =
                    self.connection(id).filter(|connection| connection.worker == worker)
                else {
                    continue;
                };
                connection.address_changed = true;
                // If the client has already been asked for the body, the request cannot be retried.
                let whole = connection.flight.as_ref().is_none_or(|flight| !flight.passed);
                if connection.is_connecting() && whole {
                    self.lose(cx, id, Fault::Moved);
                }
            }
        }
    }

    /// Closes the connection to this server that has been idle longest, because another shard needs a connection.
    pub(crate) fn close_idle_for_shard(&mut self, io: &mut Context<'_>, server: WorkerIndex) {
        let short = self.room.as_ref().is_some_and(|room| room.is_short(server));
        let server = self.live.get(server).and_then(Option::as_ref);
        let resting = server.filter(|_| short).and_then(|server| server.idle.first().copied());
        if let Some(id) = resting {
            self.close(io, id);
        }
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
