//! The implementation of [`Backend`] for servers.

use std::any::Any;
use std::net::SocketAddr;

use event::{Context, StreamId};
use exchange::{ByWorker, RequestId, WorkerId, WorkerIndex};

use super::fault::Fault;
use super::server::Server;
use super::{STEP, TOTAL, Upstream, UpstreamConfig};
use crate::backend::{Backend, BackendContext};
use crate::connection_counts::ConnectionCounts;
use flow::backend_event::BackendEvent;
use flow::ids::ConnectionId;
use flow::payload::Request;
use flow::request_control::RequestControl;
use flow::request_meta::RequestMeta;
use flow::stream_event::StreamEvent;
use flow::stream_owner::StreamPurpose;
use observe::status::WorkerStatus;

impl Backend for Upstream {
    fn configure(
        &mut self,
        config: Box<dyn Any>,
        names: &ByWorker<Option<String>>,
        connections: Option<ConnectionCounts>,
    ) {
        if let Ok(config) = config.downcast::<UpstreamConfig>() {
            self.handle_config(*config, names, connections);
        }
    }

    /// Starts a server.
    fn start(&mut self, cx: &mut BackendContext<'_, '_>, worker: WorkerId) {
        // The pool assigns indexes by name, so an index without an address has no server.
        if self.config.addresses.get(worker).is_none() {
            return cx.events.push(BackendEvent::StartFailed { worker });
        }
        *self.live.at(worker) = Some(Server::new(worker));
        // A new program is a different server from the one that had this index before.
        if self.config.is_spawned_http {
            self.reset_reuse_ban(worker.into());
        }
        cx.events.push(BackendEvent::Started { worker });
    }

    /// Stops an idle server.
    fn stop(&mut self, cx: &mut BackendContext<'_, '_>, worker: WorkerId) {
        let Some(server) = self.find(worker) else { return };
        server.retired = Some(true);
        for id in std::mem::take(&mut server.idle) {
            self.close(cx.io, id);
        }
        self.try_end(worker, true, cx.events);
    }

    fn retire(&mut self, cx: &mut BackendContext<'_, '_>, worker: WorkerId) {
        self.stop_using(cx, worker);
    }

    /// Sends a request on the idle connection used last, or on a new one.
    fn dispatch(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
        request: Request,
        meta: RequestMeta,
        _more_follow: bool,
    ) {
        self.budget.earn(self.config.retries);
        let Some(server) = self.find(worker).filter(|server| server.retired.is_none()) else {
            return cx.events.push(BackendEvent::Retry {
                id: request.id,
                payload: request.payload,
                meta,
                failed: None,
            });
        };
        server.in_flight += 1;
        if !self.may_reuse(cx.io.now(), worker) {
            // Another shard may have detected unrequested bytes.
            self.close_idle(cx.io, worker);
        }
        let idle = self.find(worker).and_then(|server| server.idle.pop());
        let id = match idle {
            Some(id) => id,
            None => self.connect(cx, worker),
        };
        if self.of_request.len() <= request.id.index() {
            self.of_request.resize(request.id.index() + 1, id);
        }
        self.of_request[request.id.index()] = id;
        let (deadline, total) = (self.config.deadline, self.config.total);
        let Some(connection) = self.connections.get_mut(id) else { return };
        if idle.is_some() {
            // Bytes that have already arrived would be taken for the reply.
            cx.io.expect_silence(connection.stream);
        }
        connection.send(cx, request, meta, &mut self.scratch);
        // A new connection has the connect timeout first.
        if idle.is_some() {
            cx.io.deadline_in(connection.stream, STEP, deadline);
        }
        if let Some(total) = total {
            cx.io.deadline_in(connection.stream, TOTAL, total);
        }
    }

    fn control(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        worker: WorkerId,
        id: RequestId,
        control: RequestControl,
    ) {
        self.control(cx, worker, id, control);
    }

    /// Servers have no timers: their timeouts are deadlines of connections.
    fn on_stream(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        (_, purpose): (StreamId, StreamPurpose),
        event: StreamEvent<'_, '_>,
    ) {
        if let StreamPurpose::Connection(connection) = purpose {
            self.handle_stream_event(cx, connection, event);
        }
    }

    /// Applies a new address of a named server. Idle connections are closed. Busy connections are closed after their
    /// request. New connections use the new address. If a connection is not established yet, its request also goes to
    /// the new address.
    fn on_moved(&mut self, cx: &mut BackendContext<'_, '_>, name: &str, to: SocketAddr) {
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
    fn release_idle(&mut self, io: &mut Context<'_>, server: WorkerIndex) {
        let short = self.room.as_ref().is_some_and(|room| room.is_short(server));
        let server = self.live.get(server).and_then(Option::as_ref);
        let resting = server.filter(|_| short).and_then(|server| server.idle.first().copied());
        if let Some(id) = resting {
            self.close(io, id);
        }
    }

    /// Closes an idle connection to any server. Returns `false` if there is none.
    fn close_one_idle(&mut self, io: &mut Context<'_>) -> bool {
        let idle = self
            .live
            .iter()
            .filter_map(|(_, it)| it.as_ref())
            .find_map(|server| server.idle.first().copied());
        idle.inspect(|id| self.close(io, *id)).is_some()
    }

    fn is_empty(&self) -> bool {
        self.live.values().all(Option::is_none)
    }

    fn status(&self) -> Vec<WorkerStatus> {
        let live = self.live.values().flatten();
        live.map(|server| server.status(format!("{}/{}", self.pool, self.shown(server.worker))))
            .collect()
    }
}
