//! Workers that are servers on the network.
//!
//! A server is a worker from the start of its pool. Connections are opened on demand and kept alive. The connection
//! used last is reused first. A server that does not accept connections retires: it gets no further requests and ends
//! when its requests in flight are answered. Its pool starts it again after a pause.
//!
//! ```text
//!   connection   Connecting ──connected──▶ Busy ◀────request───── Idle
//!                    │                      │ ──complete reply──▶ │
//!                    └── refused, timeout   └── end, timeout, malformed reply: closed, never reused
//! ```

use std::io::ErrorKind;

use event::{Context, Data, DeadlineName, Reason};
use exchange::mutant::{Mutant, active};
use exchange::{ByWorker, Outcome, Phase, PoolId, Slice, Table, WorkerId};
use wire::http1::Refusal;

use crate::backend::BackendContext;
use crate::connection_counts::ConnectionCounts;
use flow::backend_event::BackendEvent;
use flow::ids::ConnectionId;
use flow::request_meta::RequestMeta;
use flow::stream_event::StreamEvent;
use flow::stream_owner::{StreamOwner, StreamPurpose};

mod backend;
mod config;
mod connection;
mod controls;
mod fault;
mod places;
mod rejected;
mod retry;
mod reuse_ban;
mod server;
mod spawned;
mod time;
mod tunnel;
mod unrequested;

pub use config::UpstreamConfig;
use connection::{Connection, Step};
use fault::Fault;
use retry::{Budget, Reached, RetryDecision, RetryRules};
use reuse_ban::ReuseBan;
use server::Server;

/// The deadline of a connection for the next action of the server.
const STEP: DeadlineName = DeadlineName(0);
/// The deadline of the whole exchange.
const TOTAL: DeadlineName = DeadlineName(1);

/// The servers of one pool.
pub(crate) struct Upstream {
    pool: String,
    pool_id: PoolId,
    config: UpstreamConfig,
    live: ByWorker<Option<Server>>,
    connections: Table<ConnectionId, Connection>,
    /// The connection of each request, by the index of the request. It may be stale.
    of_request: Vec<ConnectionId>,
    budget: Budget,
    /// Connection counts, if other shards connect to the same servers.
    room: Option<ConnectionCounts>,
    /// Whether the connections of each server may be reused.
    reuse_ban: ByWorker<ReuseBan>,
    /// Workers with a full listen backlog. A worker occurs once for each of its slots that remains in use because of
    /// this.
    full_backlogs: Vec<WorkerId>,
    /// Whether the full backlog was logged.
    full_backlog_logged: bool,
    /// The buffer for encoding request heads.
    scratch: Vec<u8>,
}

impl Upstream {
    pub(crate) fn new(
        (id, pool): (PoolId, &str),
        config: UpstreamConfig,
        room: Option<ConnectionCounts>,
    ) -> Self {
        Self {
            pool: pool.to_owned(),
            pool_id: id,
            budget: Budget::new(config.retries),
            config,
            live: ByWorker::default(),
            connections: Table::default(),
            of_request: Vec::new(),
            room,
            reuse_ban: ByWorker::default(),
            full_backlogs: Vec::new(),
            full_backlog_logged: false,
            scratch: Vec::new(),
        }
    }

    fn find(&mut self, worker: WorkerId) -> Option<&mut Server> {
        let server = self.live.get_mut(worker)?;
        server.as_mut().filter(|server| server.worker == worker)
    }

    fn connection(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        self.connections.get_mut(id)
    }

    fn connect(&mut self, cx: &mut BackendContext<'_, '_>, worker: WorkerId) -> ConnectionId {
        if self.room.as_ref().is_some_and(|room| room.open(worker)) {
            cx.events.push(BackendEvent::Short { worker });
        }
        let stream = cx.io.connect(&self.config.addresses[worker].0, self.config.limits);
        cx.io.deadline_in(stream, STEP, self.config.connect);
        if let Some(after) = self.config.keepalive {
            cx.io.keep_alive(stream, after);
        }
        let id = ConnectionId(self.connections.insert(Connection::new(stream, worker)));
        let owner =
            StreamOwner::Worker { pool: self.pool_id, purpose: StreamPurpose::Connection(id) };
        cx.io.set_key(stream, owner.key());
        id
    }

    /// Handles an event on a connection.
    #[inline]
    pub(crate) fn handle_stream_event(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        id: ConnectionId,
        heard: StreamEvent<'_, '_>,
    ) {
        match heard {
            StreamEvent::Data(data) => self.handle_data(cx, id, data),
            StreamEvent::Connected => self.handle_connected(cx, id),
            StreamEvent::Eof => self.handle_eof(cx, id),
            StreamEvent::Drained => self.handle_drained(id, cx.events),
            StreamEvent::Relayed(count, done) => self.handle_relayed(cx, id, (count, done)),
            StreamEvent::Deadline(name) => self.handle_deadline(cx, id, name),
            StreamEvent::Closed(reason) => self.handle_closed(cx, id, reason),
        }
    }

    fn handle_connected(&mut self, cx: &mut BackendContext<'_, '_>, id: ConnectionId) {
        if let Some(connection) = self.connection(id) {
            connection.connected(cx.events);
            let worker = connection.worker;
            if let Some(server) = self.find(worker) {
                server.reached = true;
            }
            self.restart_timeout(cx.io, id);
        }
    }

    fn handle_data(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        id: ConnectionId,
        data: &mut Data<'_>,
    ) {
        let between = self.config.between;
        let Some(connection) = self.connections.get_mut(id) else {
            return data.consume(data.bytes().len());
        };
        let on_statuses = self.config.retries.on.has_statuses() && self.budget.is_left();
        let again = on_statuses.then(|| RetryRules::of(&self.config));
        match connection.receive(data, &self.config.reply, again, cx.events) {
            Step::More => cx.io.deadline_in(connection.stream, STEP, between),
            Step::Whole { last, keep } => {
                let is_more = !data.bytes().is_empty();
                if is_more {
                    let worker = connection.worker;
                    cx.events.push(BackendEvent::Broken { refusal: Refusal::Unasked });
                    self.ban_reuse(cx, worker);
                }
                self.whole(cx, id, last, keep && !is_more);
            }
            Step::ServerHalfClosed(request) => self.server_half_closed(cx, id, request),
            Step::Unrequested { is_closing_response } => {
                let worker = connection.worker;
                data.consume(data.bytes().len());
                if !is_closing_response {
                    cx.events.push(BackendEvent::Broken { refusal: Refusal::Unasked });
                    self.ban_reuse(cx, worker);
                }
                self.close(cx.io, id);
            }
            Step::Rejected(status) => {
                let whole = connection.discard(data, &self.config.reply);
                data.consume(data.bytes().len());
                self.retry_after(cx, id, status, whole);
            }
            Step::Fault(fault) => {
                data.consume(data.bytes().len());
                self.lose(cx, id, fault);
            }
        }
    }

    /// Completes a reply. The connection is kept unless its state is uncertain.
    fn whole(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        id: ConnectionId,
        last: Slice,
        keep: bool,
    ) {
        let Some(connection) = self.connection(id) else { return };
        let (stream, worker, address_changed) =
            (connection.stream, connection.worker, connection.address_changed);
        let Some(flight) = connection.flight.take() else { return };
        // The server would read the rest of the request, which follows the reply, as the next request.
        let is_early = flight.meta.more || cx.io.queued(stream) > 0;
        if is_early && !flight.is_tunnel() {
            cx.events.push(BackendEvent::Broken { refusal: Refusal::Early });
        }
        let keep = keep && !is_early || active(Mutant::KeptLink);
        cx.events.push(BackendEvent::Answered { id: flight.id, outcome: Outcome::Reply(last) });
        if flight.held {
            cx.io.resume(stream);
        }
        self.keep_or_close(cx.io, id, keep && !address_changed);
        self.release(worker, true, cx.events);
    }

    /// Keeps a connection without a request as idle, or closes it.
    fn keep_or_close(&mut self, io: &mut Context<'_>, id: ConnectionId, keep: bool) {
        let idle = self.config.idle;
        let Some(connection) = self.connection(id) else { return };
        let (stream, worker) = (connection.stream, connection.worker);
        let serves = self.find(worker).is_some_and(|server| server.retired.is_none());
        if keep && serves && self.may_reuse(io.now(), worker) {
            io.deadline_in(stream, STEP, idle);
            io.deadline(stream, TOTAL, None);
            if let Some(server) = self.find(worker) {
                server.idle.push(id);
            }
        } else {
            self.close(io, id);
        }
    }

    /// Handles that a request has left this server.
    fn release(&mut self, worker: WorkerId, served: bool, events: &mut Vec<BackendEvent>) {
        let Some(server) = self.find(worker) else { return };
        server.in_flight -= 1;
        server.served += u64::from(served);
        match server.retired {
            None => events.push(BackendEvent::Released { worker }),
            Some(expected) => self.try_end(worker, expected, events),
        }
    }

    /// Ends a retired server that has no request in flight.
    fn try_end(&mut self, worker: WorkerId, expected: bool, events: &mut Vec<BackendEvent>) {
        let Some(server) = self.find(worker).filter(|server| server.in_flight == 0) else { return };
        let reached = server.reached;
        *self.live.at(worker) = None;
        events.push(BackendEvent::Ended { worker, expected, reached });
    }

    fn close(&mut self, io: &mut Context<'_>, id: ConnectionId) {
        if let Some(connection) = self.connections.remove(id) {
            io.close(connection.stream);
            if let Some(room) = &self.room {
                room.close(connection.worker);
            }
            if let Some(server) = self.find(connection.worker) {
                server.idle.retain(|it| *it != id);
            }
        }
    }

    /// Closes a connection after a fault. Its request is retried or ends.
    fn lose(&mut self, cx: &mut BackendContext<'_, '_>, id: ConnectionId, fault: Fault) {
        let Some(connection) = self.connection(id) else { return };
        let (worker, address_changed) = (connection.worker, connection.address_changed);
        let (reached, is_cut) = (connection.reached(cx.io), connection.owes_body());
        if connection.ends_by_reset() {
            cx.io.reset(connection.stream);
        }
        let flight = connection.flight.take();
        self.close(cx.io, id);
        let address = self.address(worker);
        if self.config.is_spawned_http && fault == Fault::Connect(ErrorKind::WouldBlock) {
            return self.backlog_full(worker, flight, cx.events);
        }
        // A failure at an old address does not count against the server.
        if !address_changed
            && matches!(fault, Fault::Connect(_) | Fault::ConnectLate | Fault::Taken)
        {
            if !self.config.checked || fault == Fault::Taken {
                tracing::warn!(server = address, pool = self.pool, "{}", fault.text(&address));
            }
            let is_looked_at = self.config.checked || self.config.is_member_shard;
            if is_looked_at && fault != Fault::Taken {
                cx.events.push(BackendEvent::Unreached { worker });
            } else {
                self.retire(cx, worker);
            }
        }
        let refusal = match fault {
            Fault::Broken(refusal) => Some(refusal),
            Fault::Ended => is_cut.then_some(Refusal::Truncated),
            _ => None,
        };
        cx.events.extend(refusal.map(|refusal| BackendEvent::Broken { refusal }));
        let Some(flight) = flight else { return };
        // A request that must not be retried does not use the retry budget.
        let declared = RetryRules::of(&self.config);
        let is_retried = retry::is_retried(&fault, reached, declared.on);
        let may = is_retried
            && retry::decide(reached, flight.passed, flight.meta, declared, true)
                == RetryDecision::Retry;
        let costs = may && reached == Reached::Server;
        let budget = costs && self.budget.spend();
        let mut again = match is_retried {
            true => retry::decide(reached, flight.passed, flight.meta, declared, budget),
            false => RetryDecision::End,
        };
        // Idle connections were closed to free descriptors. If there were none, the attempts must be limited.
        if fault == Fault::NoDescriptor && flight.meta.tries.saturating_add(1) >= declared.tries {
            again = RetryDecision::End;
        }
        if active(Mutant::AskedTwice) && reached == Reached::Server && !flight.passed {
            again = RetryDecision::Retry;
        }
        if active(Mutant::GaveUp) {
            again = RetryDecision::End;
        }
        if again == RetryDecision::Retry && !flight.abandoned {
            // An attempt counts if a server received bytes of the request, or if no descriptor was free.
            let counts = reached == Reached::Server || fault == Fault::NoDescriptor;
            let tries = flight.meta.tries.saturating_add(u8::from(counts));
            let meta = RequestMeta { tries, ..flight.meta };
            // A connection that had ended before anything was sent does not count against its server. An old address
            // does not count either.
            let says_nothing = matches!(fault, Fault::Ended | Fault::Moved | Fault::NoDescriptor);
            let failed = reached == Reached::Server || !says_nothing;
            let failed = failed.then(|| (worker, fault.cause()));
            cx.events.push(BackendEvent::Retry {
                id: flight.id,
                payload: flight.payload,
                meta,
                failed,
            });
        } else if !flight.abandoned {
            let speaks = reached == Reached::Reply || matches!(fault, Fault::Broken(_));
            let phase = if speaks { Phase::Reply } else { Phase::Work };
            let mut text = fault.text(&address);
            if costs && !budget {
                text.push_str("; not retried: the budget of `retries` is used up");
            }
            let outcome = Outcome::ended(fault.cause(), phase, &text);
            cx.events.push(BackendEvent::Answered { id: flight.id, outcome });
        }
        self.release(worker, false, cx.events);
    }

    fn address(&mut self, worker: WorkerId) -> String {
        let found = self.find(worker).is_some();
        if found { self.shown(worker).to_owned() } else { String::new() }
    }

    /// Retires a server. It gets no further requests until its pool starts it again.
    pub(crate) fn retire(&mut self, cx: &mut BackendContext<'_, '_>, worker: WorkerId) {
        let Some(server) = self.find(worker) else { return };
        if server.retired.is_some() {
            return;
        }
        server.retired = Some(false);
        let idle = std::mem::take(&mut server.idle);
        cx.events.push(BackendEvent::Retired { worker });
        for id in idle {
            self.close(cx.io, id);
        }
    }

    /// Handles that the server has shut down its sending direction.
    fn handle_eof(&mut self, cx: &mut BackendContext<'_, '_>, id: ConnectionId) {
        let Some(connection) = self.connection(id) else { return };
        match connection.ended() {
            Step::Whole { last, .. } => self.whole(cx, id, last, false),
            Step::ServerHalfClosed(request) => self.server_half_closed(cx, id, request),
            Step::Fault(_) if active(Mutant::ShortBody) => {
                self.whole(cx, id, Slice::default(), false);
            }
            Step::Fault(fault) => self.lose(cx, id, fault),
            Step::More | Step::Unrequested { .. } | Step::Rejected(_) => self.close(cx.io, id),
        }
    }

    fn handle_closed(&mut self, cx: &mut BackendContext<'_, '_>, id: ConnectionId, reason: Reason) {
        let Some(connection) = self.connection(id) else { return };
        if connection.flight.is_none() {
            return self.close(cx.io, id);
        }
        // The server has sent everything and accepts no more bytes of the client.
        if connection.has_server_half_closed() {
            return self.whole(cx, id, Slice::default(), false);
        }
        if reason == Reason::NotSilent {
            let worker = connection.worker;
            cx.events.push(BackendEvent::Broken { refusal: Refusal::Unasked });
            self.ban_reuse(cx, worker);
        }
        let fault = match reason {
            Reason::ConnectFailed(error) => match error.kind() {
                ErrorKind::QuotaExceeded => Fault::NoDescriptor,
                kind => Fault::Connect(kind),
            },
            _ => Fault::Ended,
        };
        self.lose(cx, id, fault);
    }

    /// Handles that bytes of a reply were forwarded directly to the client's stream.
    fn handle_relayed(
        &mut self,
        cx: &mut BackendContext<'_, '_>,
        id: ConnectionId,
        (count, done): (u64, bool),
    ) {
        let between = self.config.between;
        if let Some(connection) = self.connection(id) {
            connection.relayed(count, done, cx.events);
            cx.io.deadline_in(connection.stream, STEP, between);
        }
    }

    /// Handles that the output buffer has space again.
    fn handle_drained(&mut self, id: ConnectionId, events: &mut Vec<BackendEvent>) {
        if let Some(flight) = self.connection(id).and_then(|connection| connection.flight.as_ref())
            && flight.meta.more
        {
            events.push(BackendEvent::BodyWanted { id: flight.id, wanted: true });
        }
    }

    /// Returns the display form of the address of a worker.
    fn shown(&self, worker: WorkerId) -> &str {
        self.config.addresses.get(worker).map_or("", |address| &address.1)
    }
}
