//! Workers that are servers on the network.
//!
//! A server is a worker from the start of its pool. Connections are opened on demand and kept alive; the one used last
//! is reused first. A server that does not accept connections retires: it gets no further requests, ends when those in
//! flight are answered, and is started again by its pool after a pause.
//!
//! ```text
//!   connection   Connecting ──connected──▶ Busy ◀────request───── Idle
//!                    │                      │ ──complete reply──▶ │
//!                    └── refused, timeout   └── end, timeout, malformed reply: closed, never reused
//! ```

use std::io::ErrorKind;

use event::{Calls, Data, DeadlineName, Reason};
use exchange::plant::{Plant, active};
use exchange::{ByWorker, Outcome, Phase, PoolId, RequestId, Slice, Table, WorkerId};
use wire::http1::Refusal;

use crate::connection_counts::ConnectionCounts;
use flow::backend_event::BackendEvent;
use flow::ids::LinkId;
use flow::payload::Request;
use flow::request_control::RequestControl;
use flow::request_meta::RequestMeta;
use flow::stream_event::StreamEvent;
use flow::stream_owner::{StreamOwner, StreamPurpose};
use observe::status::WorkerStatus;

mod backend;
mod config;
mod fault;
mod link;
mod places;
mod rejected;
mod retry;
mod server;
mod spawned;
mod time;
mod trust;
mod tunnel;
mod unrequested;

pub use config::UpstreamConfig;
use fault::Fault;
use link::{Link, Step};
use retry::{Budget, Declared, Reached, Then};
use server::Server;
use trust::Trust;

/// The deadline of a connection for its next step.
const LINK: DeadlineName = DeadlineName(0);
/// The deadline of a whole exchange.
const TOTAL: DeadlineName = DeadlineName(1);

/// The servers of one pool.
pub(crate) struct Upstream {
    pool: String,
    pool_id: PoolId,
    plan: UpstreamConfig,
    live: ByWorker<Option<Server>>,
    links: Table<LinkId, Link>,
    /// The connection of each request, by the index of the request. It may be stale.
    of_request: Vec<LinkId>,
    budget: Budget,
    /// Connection counts, if other shards connect to the same servers.
    room: Option<ConnectionCounts>,
    /// Whether the connections of each server may be reused.
    trust: ByWorker<Trust>,
    /// Workers with a full listen backlog, once for each slot that remains occupied for it.
    crowded: Vec<WorkerId>,
    /// The full backlog was logged.
    has_crowded: bool,
    /// The buffer for encoding request heads.
    scratch: Vec<u8>,
}

impl Upstream {
    pub(crate) fn new(
        (id, pool): (PoolId, &str),
        plan: UpstreamConfig,
        room: Option<ConnectionCounts>,
    ) -> Self {
        Self {
            pool: pool.to_owned(),
            pool_id: id,
            budget: Budget::new(plan.retries),
            plan,
            live: ByWorker::default(),
            links: Table::default(),
            of_request: Vec::new(),
            room,
            trust: ByWorker::default(),
            crowded: Vec::new(),
            has_crowded: false,
            scratch: Vec::new(),
        }
    }

    fn find(&mut self, worker: WorkerId) -> Option<&mut Server> {
        let server = self.live.get_mut(worker)?;
        server.as_mut().filter(|server| server.worker == worker)
    }

    fn link(&mut self, id: LinkId) -> Option<&mut Link> {
        self.links.get_mut(id)
    }

    /// Starts a server.
    pub(crate) fn start(&mut self, worker: WorkerId, up: &mut Vec<BackendEvent>) {
        // The pool assigns indexes by name, so an index without an address has no server.
        if self.plan.addresses.get(worker).is_none() {
            return up.push(BackendEvent::StartFailed { worker });
        }
        *self.live.at(worker) = Some(Server::new(worker));
        // A new program is another server than the one that had its index.
        if self.plan.is_hosted {
            self.forget_trust(worker.into());
        }
        up.push(BackendEvent::Started { worker });
    }

    /// Sends a request on the idle connection used last, or on a new one.
    pub(crate) fn dispatch(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        request: Request,
        meta: RequestMeta,
        up: &mut Vec<BackendEvent>,
    ) {
        self.budget.earn(self.plan.retries);
        let Some(server) = self.find(worker).filter(|server| server.retired.is_none()) else {
            return up.push(BackendEvent::Retry {
                id: request.id,
                payload: request.payload,
                meta,
                failed: None,
            });
        };
        server.in_flight += 1;
        if !self.may_reuse(calls.now(), worker) {
            // Another shard may have detected unrequested bytes.
            self.close_idle(calls, worker);
        }
        let idle = self.find(worker).and_then(|server| server.idle.pop());
        let id = match idle {
            Some(id) => id,
            None => self.connect(calls, worker, up),
        };
        if self.of_request.len() <= request.id.index() {
            self.of_request.resize(request.id.index() + 1, id);
        }
        self.of_request[request.id.index()] = id;
        let (deadline, total) = (self.plan.deadline, self.plan.total);
        let Some(link) = self.links.get_mut(id) else { return };
        if idle.is_some() {
            // Bytes that have already arrived would be taken for the reply.
            calls.expect_silence(link.stream);
        }
        link.send(calls, request, meta, &mut self.scratch, up);
        // A new connection has the connect timeout first.
        if idle.is_some() {
            calls.deadline_in(link.stream, LINK, deadline);
        }
        if let Some(total) = total {
            calls.deadline_in(link.stream, TOTAL, total);
        }
    }

    fn connect(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        up: &mut Vec<BackendEvent>,
    ) -> LinkId {
        if self.room.as_ref().is_some_and(|room| room.open(worker)) {
            up.push(BackendEvent::Short { worker });
        }
        let stream = calls.connect(&self.plan.addresses[worker].0, self.plan.limits);
        calls.deadline_in(stream, LINK, self.plan.connect);
        if let Some(after) = self.plan.keepalive {
            calls.keep_alive(stream, after);
        }
        let id = LinkId(self.links.insert(Link::new(stream, worker)));
        let owner = StreamOwner::Worker { pool: self.pool_id, purpose: StreamPurpose::Link(id) };
        calls.set_key(stream, owner.key());
        id
    }

    /// Handles an event on a connection.
    #[inline]
    pub(crate) fn hear(
        &mut self,
        calls: &mut Calls<'_>,
        id: LinkId,
        heard: StreamEvent<'_, '_>,
        up: &mut Vec<BackendEvent>,
    ) {
        match heard {
            StreamEvent::Data(data) => self.handle_data(calls, id, data, up),
            StreamEvent::Connected => self.handle_connected(calls, id, up),
            StreamEvent::Eof => self.handle_eof(calls, id, up),
            StreamEvent::Drained => self.handle_drained(id, up),
            StreamEvent::Relayed(count, done) => self.handle_relayed(calls, id, (count, done), up),
            StreamEvent::Deadline(name) => self.handle_deadline(calls, id, name, up),
            StreamEvent::Closed(reason) => self.handle_closed(calls, id, reason, up),
        }
    }

    fn handle_connected(&mut self, calls: &mut Calls<'_>, id: LinkId, up: &mut Vec<BackendEvent>) {
        if let Some(link) = self.link(id) {
            link.connected(up);
            let worker = link.worker;
            if let Some(server) = self.find(worker) {
                server.reached = true;
            }
            self.owes_from_now(calls, id);
        }
    }

    fn handle_data(
        &mut self,
        calls: &mut Calls<'_>,
        id: LinkId,
        data: &mut Data<'_>,
        up: &mut Vec<BackendEvent>,
    ) {
        let between = self.plan.between;
        let Some(link) = self.links.get_mut(id) else {
            return data.consume(data.bytes().len());
        };
        let on_statuses = self.plan.retries.on.has_statuses() && self.budget.is_left();
        let again = on_statuses.then(|| Declared::of(&self.plan));
        match link.receive(data, &self.plan.reply, again, up) {
            Step::More => calls.deadline_in(link.stream, LINK, between),
            Step::Whole { last, keep } => {
                let is_more = !data.bytes().is_empty();
                if is_more {
                    let worker = link.worker;
                    up.push(BackendEvent::Broken { refusal: Refusal::Unasked });
                    self.distrust_replies(calls, worker, up);
                }
                self.whole(calls, id, last, keep && !is_more, up);
            }
            Step::SaidAll(request) => self.said_all(calls, id, request, up),
            Step::Unrequested { is_farewell } => {
                let worker = link.worker;
                data.consume(data.bytes().len());
                if !is_farewell {
                    up.push(BackendEvent::Broken { refusal: Refusal::Unasked });
                    self.distrust_replies(calls, worker, up);
                }
                self.close(calls, id);
            }
            Step::Rejected(status) => {
                let whole = link.discard(data, &self.plan.reply);
                data.consume(data.bytes().len());
                self.retry_after(calls, id, status, whole, up);
            }
            Step::Fault(fault) => {
                data.consume(data.bytes().len());
                self.lose(calls, id, fault, up);
            }
        }
    }

    /// Completes a reply. The connection is kept, unless its state is uncertain.
    fn whole(
        &mut self,
        calls: &mut Calls<'_>,
        id: LinkId,
        last: Slice,
        keep: bool,
        up: &mut Vec<BackendEvent>,
    ) {
        let Some(link) = self.link(id) else { return };
        let (stream, worker, leaves) = (link.stream, link.worker, link.leaves);
        let Some(flight) = link.flight.take() else { return };
        // The rest of a request after its reply would be read as the next one.
        let is_early = flight.meta.more || calls.queued(stream) > 0;
        if is_early && !flight.is_tunnel() {
            up.push(BackendEvent::Broken { refusal: Refusal::Early });
        }
        let keep = keep && !is_early || active(Plant::KeptLink);
        up.push(BackendEvent::Answered { id: flight.id, outcome: Outcome::Reply(last) });
        if flight.held {
            calls.resume(stream);
        }
        self.keep_or_close(calls, id, keep && !leaves);
        self.release(worker, true, up);
    }

    /// Keeps a connection without a request as idle, or closes it.
    fn keep_or_close(&mut self, calls: &mut Calls<'_>, id: LinkId, keep: bool) {
        let idle = self.plan.idle;
        let Some(link) = self.link(id) else { return };
        let (stream, worker) = (link.stream, link.worker);
        let serves = self.find(worker).is_some_and(|server| server.retired.is_none());
        if keep && serves && self.may_reuse(calls.now(), worker) {
            calls.deadline_in(stream, LINK, idle);
            calls.deadline(stream, TOTAL, None);
            if let Some(server) = self.find(worker) {
                server.idle.push(id);
            }
        } else {
            self.close(calls, id);
        }
    }

    /// Counts a request that has left this server.
    fn release(&mut self, worker: WorkerId, served: bool, up: &mut Vec<BackendEvent>) {
        let Some(server) = self.find(worker) else { return };
        server.in_flight -= 1;
        server.served += u64::from(served);
        match server.retired {
            None => up.push(BackendEvent::Released { worker }),
            Some(expected) => self.try_end(worker, expected, up),
        }
    }

    /// Ends a retired server that has no request in flight.
    fn try_end(&mut self, worker: WorkerId, expected: bool, up: &mut Vec<BackendEvent>) {
        let Some(server) = self.find(worker).filter(|server| server.in_flight == 0) else { return };
        let reached = server.reached;
        *self.live.at(worker) = None;
        up.push(BackendEvent::Ended { worker, expected, reached });
    }

    fn close(&mut self, calls: &mut Calls<'_>, id: LinkId) {
        if let Some(link) = self.links.remove(id) {
            calls.close(link.stream);
            if let Some(room) = &self.room {
                room.close(link.worker);
            }
            if let Some(server) = self.find(link.worker) {
                server.idle.retain(|it| *it != id);
            }
        }
    }

    /// Closes a connection after a fault. Its request is retried or ends.
    fn lose(
        &mut self,
        calls: &mut Calls<'_>,
        id: LinkId,
        fault: Fault,
        up: &mut Vec<BackendEvent>,
    ) {
        let Some(link) = self.link(id) else { return };
        let (worker, leaves) = (link.worker, link.leaves);
        let (reached, is_cut) = (link.reached(calls), link.owes_body());
        if link.ends_by_reset() {
            calls.reset(link.stream);
        }
        let flight = link.flight.take();
        self.close(calls, id);
        let address = self.address(worker);
        if self.plan.is_hosted && fault == Fault::Connect(ErrorKind::WouldBlock) {
            return self.backlog_full(worker, flight, up);
        }
        // A failure at an old address does not count against the server.
        if !leaves && matches!(fault, Fault::Connect(_) | Fault::ConnectLate | Fault::Taken) {
            if !self.plan.checked || fault == Fault::Taken {
                tracing::warn!(server = address, pool = self.pool, "{}", fault.text(&address));
            }
            let is_looked_at = self.plan.checked || self.plan.is_branch;
            if is_looked_at && fault != Fault::Taken {
                up.push(BackendEvent::Unreached { worker });
            } else {
                self.retire(calls, worker, up);
            }
        }
        let refusal = match fault {
            Fault::Broken(refusal) => Some(refusal),
            Fault::Ended => is_cut.then_some(Refusal::Truncated),
            _ => None,
        };
        up.extend(refusal.map(|refusal| BackendEvent::Broken { refusal }));
        let Some(flight) = flight else { return };
        // A request that must not be retried does not use the retry budget.
        let declared = Declared::of(&self.plan);
        let is_retried = retry::is_retried(&fault, reached, declared.on);
        let may = is_retried
            && retry::then(reached, flight.passed, flight.meta, declared, true) == Then::Again;
        let costs = may && reached == Reached::Server;
        let budget = costs && self.budget.spend();
        let mut again = match is_retried {
            true => retry::then(reached, flight.passed, flight.meta, declared, budget),
            false => Then::End,
        };
        // Idle connections were closed to free descriptors. If there are none, the attempts must be limited.
        if fault == Fault::NoDescriptor && flight.meta.tries.saturating_add(1) >= declared.tries {
            again = Then::End;
        }
        if active(Plant::AskedTwice) && reached == Reached::Server && !flight.passed {
            again = Then::Again;
        }
        if active(Plant::GaveUp) {
            again = Then::End;
        }
        if again == Then::Again && !flight.abandoned {
            // An attempt counts if a server received bytes of the request, or no descriptor was free.
            let counts = reached == Reached::Server || fault == Fault::NoDescriptor;
            let tries = flight.meta.tries.saturating_add(u8::from(counts));
            let meta = RequestMeta { tries, ..flight.meta };
            // A connection that had ended before anything was sent does not count against its server,
            // nor does an old address.
            let says_nothing = matches!(fault, Fault::Ended | Fault::Moved | Fault::NoDescriptor);
            let failed = reached == Reached::Server || !says_nothing;
            let failed = failed.then(|| (worker, fault.cause()));
            up.push(BackendEvent::Retry { id: flight.id, payload: flight.payload, meta, failed });
        } else if !flight.abandoned {
            let speaks = reached == Reached::Reply || matches!(fault, Fault::Broken(_));
            let phase = if speaks { Phase::Reply } else { Phase::Work };
            let outcome = Outcome::ended(fault.cause(), phase, &fault.text(&address));
            up.push(BackendEvent::Answered { id: flight.id, outcome });
        }
        self.release(worker, false, up);
    }

    fn address(&mut self, worker: WorkerId) -> String {
        let found = self.find(worker).is_some();
        if found { self.shown(worker).to_owned() } else { String::new() }
    }

    /// Retires a server. It gets no further requests until its pool starts it again.
    pub(crate) fn retire(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        up: &mut Vec<BackendEvent>,
    ) {
        let Some(server) = self.find(worker) else { return };
        if server.retired.is_some() {
            return;
        }
        server.retired = Some(false);
        let idle = std::mem::take(&mut server.idle);
        up.push(BackendEvent::Retired { worker });
        for id in idle {
            self.close(calls, id);
        }
    }

    /// The server has shut down its sending direction.
    fn handle_eof(&mut self, calls: &mut Calls<'_>, id: LinkId, up: &mut Vec<BackendEvent>) {
        let Some(link) = self.link(id) else { return };
        match link.ended() {
            Step::Whole { last, .. } => self.whole(calls, id, last, false, up),
            Step::SaidAll(request) => self.said_all(calls, id, request, up),
            Step::Fault(_) if active(Plant::ShortBody) => {
                self.whole(calls, id, Slice::default(), false, up);
            }
            Step::Fault(fault) => self.lose(calls, id, fault, up),
            Step::More | Step::Unrequested { .. } | Step::Rejected(_) => self.close(calls, id),
        }
    }

    fn handle_closed(
        &mut self,
        calls: &mut Calls<'_>,
        id: LinkId,
        reason: Reason,
        up: &mut Vec<BackendEvent>,
    ) {
        let Some(link) = self.link(id) else { return };
        if link.flight.is_none() {
            return self.close(calls, id);
        }
        // The server has sent everything, and accepts no more bytes of the client.
        if link.has_said_all() {
            return self.whole(calls, id, Slice::default(), false, up);
        }
        if reason == Reason::NotSilent {
            let worker = link.worker;
            up.push(BackendEvent::Broken { refusal: Refusal::Unasked });
            self.distrust_replies(calls, worker, up);
        }
        let fault = match reason {
            Reason::ConnectFailed(ErrorKind::QuotaExceeded) => Fault::NoDescriptor,
            Reason::ConnectFailed(why) => Fault::Connect(why),
            _ => Fault::Ended,
        };
        self.lose(calls, id, fault, up);
    }

    /// Bytes of a reply were forwarded directly to the client's stream.
    fn handle_relayed(
        &mut self,
        calls: &mut Calls<'_>,
        id: LinkId,
        (count, done): (u64, bool),
        up: &mut Vec<BackendEvent>,
    ) {
        let between = self.plan.between;
        if let Some(link) = self.link(id) {
            link.relayed(count, done, up);
            calls.deadline_in(link.stream, LINK, between);
        }
    }

    /// The output buffer has room again.
    fn handle_drained(&mut self, id: LinkId, up: &mut Vec<BackendEvent>) {
        if let Some(flight) = self.link(id).and_then(|link| link.flight.as_ref())
            && flight.meta.more
        {
            up.push(BackendEvent::BodyWanted { id: flight.id, wanted: true });
        }
    }

    /// The connection of an abandoned request. The index of the request may belong to a newer one, which was dispatched
    /// before this call.
    fn link_of(&mut self, worker: WorkerId, request: RequestId) -> Option<LinkId> {
        let mut ids = self.links.places().into_iter().map(LinkId);
        ids.find(|id| self.link(*id).is_some_and(|link| link.serves(worker, request)))
    }

    /// Handles a control message for a request in flight.
    pub(crate) fn tell(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        request: RequestId,
        word: RequestControl,
        up: &mut Vec<BackendEvent>,
    ) {
        let Some(&noted) = self.of_request.get(request.index()) else { return };
        let serves = self.link(noted).is_some_and(|link| link.serves(worker, request));
        let id = match word {
            _ if serves => noted,
            RequestControl::Abandoned => match self.link_of(worker, request) {
                Some(id) => id,
                None => return,
            },
            _ => return,
        };
        let high = self.plan.limits.send_high;
        let Some(link) = self.links.get_mut(id) else { return };
        match word {
            RequestControl::Pause => link.hold(calls, true),
            RequestControl::Resume => {
                link.hold(calls, false);
                self.owes_from_now(calls, id);
            }
            RequestControl::Body(part, _) => {
                let queued = link.pass(calls, part);
                self.owes_from_now(calls, id);
                if queued > high {
                    up.push(BackendEvent::BodyWanted { id: request, wanted: false });
                }
            }
            RequestControl::BodyEnd => {
                link.pass_end(calls);
                self.end_if_over(calls, id, up);
            }
            RequestControl::Splice(to) => link.relay(calls, to),
            RequestControl::Abandoned => {
                // An abandoned reply cannot be cancelled in HTTP/1, so its connection is closed.
                self.cut(calls, id);
                self.release(worker, false, up);
            }
        }
    }

    /// Stops an idle server.
    pub(crate) fn stop(
        &mut self,
        calls: &mut Calls<'_>,
        worker: WorkerId,
        up: &mut Vec<BackendEvent>,
    ) {
        let Some(server) = self.find(worker) else { return };
        server.retired = Some(true);
        for id in std::mem::take(&mut server.idle) {
            self.close(calls, id);
        }
        self.try_end(worker, true, up);
    }

    /// The display form of the address of a worker.
    fn shown(&self, worker: WorkerId) -> &str {
        self.plan.addresses.get(worker).map_or("", |address| &address.1)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.live.values().all(Option::is_none)
    }

    pub(crate) fn status(&self) -> Vec<WorkerStatus> {
        let live = self.live.values().flatten();
        live.map(|server| server.status(format!("{}/{}", self.pool, self.shown(server.worker))))
            .collect()
    }
}
