//! Programs that serve one connection each: the destination of requests, and the return of the program after the
//! connection has ended.

use exchange::{Outcome, Peer, PoolId, RequestId, Slice, Stamps, WorkerId};

use super::session_workers::{Bound, SessionWorkers};
use super::{Engine, QueuedRequest, ServedPool, lost};
use crate::exchanges::{Attempt, Exchange, State};
use crate::session_affinity::{SessionTarget, Slot};
use crate::shard_message::ShardMessage;
use flow::backend_effect::BackendEffect;
use flow::client::{Client, Source};
use flow::ids::SessionId;
use flow::payload::Payload;
use flow::reply_event::ReplyEvent;
use flow::request_meta::RequestMeta;
use flow::window::Window;

impl ServedPool {
    /// The destination of a request of this client.
    pub(super) fn way(&self, client: &Client) -> SessionTarget {
        match (&self.own, client.session()) {
            (Some(own), Some(session)) => own.affinity.way(session),
            _ => SessionTarget::Pool,
        }
    }

    /// Binds a worker to the client of a request, if programs serve one connection each. The client receives
    /// unsolicited messages, unless replies are converted for it or go to another pool.
    pub(super) fn bind(&mut self, worker: WorkerId, exchange: &Exchange) -> Option<Bound> {
        let own = self.own.as_mut()?;
        let is_new = own.affinity.client(worker).is_none();
        own.affinity.dispatched(worker, exchange.client.session());
        let hears = exchange.json_reply.is_none() && self.then.is_none();
        let heard = hears && own.affinity.client(worker).is_some();
        Some(Bound { heard, is_new })
    }

    /// Whether a request that was not delivered may be sent to another worker. A request to a connection's own
    /// program may not.
    pub(super) fn takes_back(&mut self, exchange: &Exchange) -> bool {
        let (Some(own), State::Working(worker)) = (&mut self.own, exchange.state) else {
            return true;
        };
        let session = exchange.client.session();
        own.affinity.returned(worker, session);
        match session {
            Some(session) => own.affinity.way(session) != SessionTarget::Lost,
            None => !matches!(exchange.client, Client::Nobody),
        }
    }

    pub(super) fn slot(&mut self, worker: WorkerId) -> Slot {
        let Some(own) = &mut self.own else { return Slot::Free };
        let is_returning = own.affinity.is_returning(worker);
        match own.affinity.released(worker) {
            Slot::Free if is_returning && own.spoke_after_reset => Slot::Replace,
            slot => slot,
        }
    }

    /// Records that a program sent output after the reply to its reset.
    pub(super) const fn spoke_after_reset(&mut self) {
        if let Some(own) = &mut self.own {
            own.spoke_after_reset = true;
        }
    }

    /// The connection of a program that has exited or is about to.
    pub(super) fn client_of_ended(&self, worker: WorkerId) -> Option<SessionId> {
        let affinity = &self.own.as_ref()?.affinity;
        affinity.client(worker).or_else(|| affinity.client_of_lost(worker))
    }

    pub(super) fn lose(&mut self, worker: WorkerId) {
        if let Some(own) = &mut self.own {
            own.affinity.lost(worker);
        }
    }
}

impl Engine {
    /// Whether a request can still go to its connection's own program. If the program has ended, the request ends, too.
    pub(super) fn is_own(&mut self, pool: PoolId, worker: WorkerId, id: RequestId) -> bool {
        let Some(exchange) = self.exchanges.get_mut(id) else { return false };
        let own = exchange.client.session().is_none()
            || self.pools[pool].way(&exchange.client) == SessionTarget::Worker(worker);
        if !own {
            self.end(id, lost());
        }
        own
    }

    /// Handles the outcome of a reset. If the reset failed, the program is replaced.
    pub(super) fn forgotten(
        &mut self,
        pool: PoolId,
        id: RequestId,
        state: State,
        outcome: Outcome,
    ) {
        if let (Some(own), State::Working(worker)) = (self.pools[pool].own.as_mut(), state) {
            let forgot = match &outcome {
                Outcome::Reply(reply) => !(own.tells_apart && is_error(reply)),
                Outcome::Fallback(..) | Outcome::Ended(..) => false,
            };
            if !forgot {
                own.affinity.spoiled(worker);
            }
        }
        self.end(id, outcome);
    }

    /// Returns the programs of a connection that is closed or submits no more requests.
    pub fn leave(&mut self, session: SessionId) {
        let mut next = 0;
        while let Some(pool) = self.pools.next_id(&mut next) {
            if self.pools[pool].own.is_none() {
                continue;
            }
            match self.shard_link.off_shard(pool) {
                Some(owner) => self.shard_link.send(owner, ShardMessage::Left(session, pool)),
                None => self.leave_pool(pool, session, true),
            }
        }
    }

    /// Like [`Self::leave`], for one pool that this shard owns. `gone`: the connection is closed.
    pub(super) fn leave_pool(&mut self, pool: PoolId, session: SessionId, gone: bool) {
        let Some(own) = &mut self.pools[pool].own else { return };
        if let SessionTarget::Worker(worker) = own.affinity.way(session) {
            let replaced = own.order().is_none();
            if replaced {
                own.affinity.replace(worker);
            }
            let leave = BackendEffect::Leave { worker, gone, replaced };
            self.effects.urgent.push_back((pool, leave));
            self.effects.throttles.push_back((pool, worker, false));
        }
        match own.affinity.left(session) {
            Some((worker, Slot::Replace)) => self.effects.to_replace.push_back((pool, worker)),
            Some((worker, _)) => self.give_up(pool, worker),
            None => {}
        }
    }

    /// Handles an unsolicited message of a connection's own program.
    pub(super) fn said(&mut self, pool: PoolId, worker: WorkerId, frame: Slice) {
        let ServedPool { own, counts, .. } = &mut self.pools[pool];
        let Some(own) = own else { return };
        if !own.tells_apart {
            own.affinity.replace(worker);
            own.has_spoken = true;
        }
        match own.affinity.client(worker) {
            Some(session) => {
                if session.shard != self.shard_link.me()
                    && own.affinity.send(worker, frame.len(), self.shard_link.window())
                {
                    self.effects.throttles.push_back((pool, worker, true));
                }
                self.receive_frame(session, pool, frame);
            }
            None => counts.discarded += 1,
        }
    }

    /// Sends a message to all clients of a pool. The same message again in the same turn, also of another program, is
    /// dropped.
    pub(crate) fn announce(&mut self, pool: PoolId, frame: Slice) {
        if !self.announced.iter().any(|(of, said)| *of == pool && said[..] == frame[..]) {
            self.announced.push((pool, frame));
        }
    }

    /// Sends an unsolicited message to a client, after everything that was sent to it before.
    pub(super) fn receive_frame(&mut self, session: SessionId, pool: PoolId, frame: Slice) {
        self.finished.push((Client::unasked(session), ReplyEvent::Unsolicited(pool, frame)));
    }

    /// Pauses or resumes the output of a connection's own program.
    pub(crate) fn pause_program(&mut self, pool: PoolId, session: SessionId, hush: bool) {
        if let Some(owner) = self.shard_link.off_shard(pool) {
            return self.shard_link.send(owner, ShardMessage::PauseProgram(session, pool, hush));
        }
        let Some(own) = &mut self.pools[pool].own else { return };
        if let Some(worker) = own.affinity.want(session, !hush, self.shard_link.window()) {
            self.effects.throttles.push_back((pool, worker, hush));
        }
    }

    /// Another shard has consumed bytes of unsolicited messages.
    pub(super) fn count_read(&mut self, pool: PoolId, session: SessionId, bytes: usize) {
        let Some(own) = &mut self.pools[pool].own else { return };
        if let Some(worker) = own.affinity.credit(session, bytes, self.shard_link.window()) {
            self.effects.throttles.push_back((pool, worker, false));
        }
    }

    /// Returns the programs of all connections, because no more requests are submitted.
    pub fn leave_all(&mut self) {
        let mut sessions = Vec::new();
        for (pool, served) in self.pools.entries_mut() {
            if let Some(own) = &mut served.own {
                own.affinity.close();
                sessions.extend(own.affinity.sessions().into_iter().map(|it| (pool, it)));
            }
        }
        for (pool, session) in sessions {
            self.leave_pool(pool, session, false);
        }
    }

    /// Returns a connection's own program: it is reset or replaced.
    pub(super) fn give_up(&mut self, pool: PoolId, worker: WorkerId) {
        let order = self.pools[pool].own.as_ref().and_then(SessionWorkers::order);
        let Some(body) = order else { return self.effects.to_replace.push_back((pool, worker)) };
        let (at_us, peer) = (self.at_us(), Peer::Inside);
        let id = self.exchanges.insert(Exchange {
            attempt: Attempt::default(),
            json_reply: None,
            client: Client::Nobody,
            source: Source { peer, listener: None },
            at_us,
            stamps: Stamps::received(self.now),
            body_end: None,
            log_entry: None,
            parts: Vec::new(),
            window: Window::default(),
            pool,
            state: State::Received,
        });
        let payload = Payload::Frame(body);
        let meta = RequestMeta { is_reset: true, ..RequestMeta::default() };
        self.effects.pinned.push_back((
            pool,
            worker,
            QueuedRequest { id, peer, at_us, payload, meta },
        ));
    }
}

/// Whether a JSON-RPC reply is an error.
fn is_error(reply: &[u8]) -> bool {
    let error = wire::jsonrpc::scan(reply).ok().and_then(|message| message.error);
    error.is_some_and(|place| reply[place] != *b"null")
}
