//! Requests whose pool has another owner shard, and requests of other shards on this one.

use exchange::{Cause, Outcome, Phase, PoolId, RequestId};

use super::{Engine, refusal};
use crate::exchanges::{Attempt, Exchange, Move, State};
use crate::shard_message::{AWAY_MAX, ForwardedRequest, MAIL_BYTES_MAX, ShardMessage};
use flow::client::{Client, Source};
use flow::payload::{Crossed, Payload};
use flow::reply_event::ReplyEvent;
use flow::request_control::RequestControl;
use flow::request_meta::RequestMeta;
use flow::requests::Requests;
use flow::window::Window;

impl Engine {
    /// Forwards a request to the owner shard of its pool.
    pub(super) fn cross(
        &mut self,
        id: RequestId,
        pool: PoolId,
        owner: u32,
        payload: Payload,
        meta: RequestMeta,
    ) {
        let now = self.now;
        let Some(exchange) = self.exchanges.get_mut(id) else { return };
        // The owner shard may have ended the pool, or itself, after all shards stopped submitting. A request that was
        // with a worker of this shard is waited for.
        if self.shard_link.has_said_serving() && exchange.state == State::Received {
            self.pools[pool].counts.requests += 1;
            return self.end(id, refusal(Cause::Draining, &self.pools[pool].name));
        }
        if self.shard_link.away >= AWAY_MAX {
            self.pools[pool].counts.requests += 1;
            let text = format!("{AWAY_MAX} requests are on their way to other shards");
            return self.end(id, Outcome::ended(Cause::Full, Phase::Queue, &text));
        }
        let payload = payload.compact();
        if !self.shard_link.post_bytes(owner, payload.held()) {
            self.pools[pool].counts.requests += 1;
            let text =
                format!("{MAIL_BYTES_MAX} bytes of requests are on their way to another shard");
            return self.end(id, Outcome::ended(Cause::Full, Phase::Queue, &text));
        }
        payload.cross(Crossed::Leaves);
        self.shard_link.away += 1;
        exchange.pool = pool;
        exchange.step(Move::Cross(owner), now);
        let passed = ForwardedRequest {
            from: id,
            pool,
            peer: exchange.source.peer,
            at_us: exchange.at_us,
            stamps: exchange.stamps,
            listener: exchange.source.listener,
            session: exchange.client.session(),
            log_entry: exchange.log_entry.take(),
            payload,
            meta,
            named: exchange.attempt.named,
            knows: exchange.attempt.knows,
            failed: exchange.attempt.failed,
        };
        self.shard_link.backlog(pool).send(passed.payload.held());
        self.shard_link.send(owner, ShardMessage::Request(Box::new(passed)));
    }

    /// Handles a message of another shard.
    pub fn handle_crossing(&mut self, from: u32, message: ShardMessage) {
        if message.pool().is_some_and(|pool| self.pools.get(pool).is_none()) {
            if let ShardMessage::Request(passed) = message {
                self.shard_link.take_bytes(passed.payload.held());
                let text = "its pool has been removed";
                let outcome = Outcome::ended(Cause::NoPool, Phase::Receive, text);
                self.shard_link
                    .send(from, ShardMessage::ReplyEvent(passed.from, ReplyEvent::End(outcome)));
            }
            return;
        }
        match message {
            ShardMessage::Request(passed) => self.take_in(*passed),
            ShardMessage::Control(id, word) => self.guest_says(id, word),
            ShardMessage::Cancel(id) => {
                if let Some(id) = self.shard_link.from_shard(id) {
                    self.cancel(id);
                }
            }
            ShardMessage::Abandon(id, cause, told) => {
                if let Some(id) = self.shard_link.from_shard(id) {
                    self.abandon_answered(id, cause, told, "");
                }
            }
            ShardMessage::ReplyEvent(id, reply_event) => self.brought(id, reply_event),
            ShardMessage::Unsolicited(session, pool, frame) => {
                self.shard_link.send(from, ShardMessage::Consumed(session, pool, frame.len()));
                self.receive_frame(session, pool, frame);
            }
            ShardMessage::Finished(session) => {
                self.finished.push((Client::unasked(session), ReplyEvent::Finished));
            }
            ShardMessage::Consumed(session, pool, bytes) => self.count_read(pool, session, bytes),
            ShardMessage::Announced(pool, frame) => self.announce(pool, frame),
            ShardMessage::PauseProgram(session, pool, hush) => {
                self.pause_program(pool, session, hush);
            }
            ShardMessage::PartsConsumed(id, bytes) => self.credit(id, bytes),
            ShardMessage::Left(session, pool) => self.leave_pool(pool, session, true),
            ShardMessage::Serving => self.shard_link.note_serving(from),
            ShardMessage::Token(pool, worker) => {
                self.pools[pool].dirty = true;
                self.pools[pool].pool.handle_token(self.now, worker);
            }
            ShardMessage::Update(pool, update) => self.handle_update(pool, &update),
            // Waiting clients are woken at the end of each turn.
            ShardMessage::Room => {}
            ShardMessage::Barrier(barrier) => self.barriers.hold(barrier),
            ShardMessage::Spare(pool, worker) => self.effects.surplus.push_back((pool, worker)),
            ShardMessage::Unreached(pool, worker) => self.unreached_from_branch(pool, worker),
            ShardMessage::Judged { pool, worker, good, took } => {
                self.pools[pool].dirty = true;
                self.pools[pool].pool.handle_result(self.now, worker, good, took);
            }
            ShardMessage::Ended(pool) => {
                let member_shards = &mut self.pools[pool].member_shards;
                *member_shards = member_shards.saturating_sub(1);
            }
        }
    }

    /// Admits a request of another shard.
    fn take_in(&mut self, passed: ForwardedRequest) {
        let ForwardedRequest {
            from,
            pool,
            peer,
            at_us,
            stamps,
            session,
            log_entry,
            payload,
            meta,
            ..
        } = passed;
        let bytes = payload.held();
        self.shard_link.take_bytes(bytes);
        payload.cross(Crossed::Arrives);
        let id = self.exchanges.insert(Exchange {
            client: Client::OffShard { request: from, session },
            source: Source { peer, listener: passed.listener },
            at_us,
            stamps,
            body_end: None,
            parts: Vec::new(),
            window: Window::default(),
            pool,
            attempt: Attempt {
                named: passed.named,
                knows: passed.knows,
                failed: passed.failed,
                ..Attempt::default()
            },
            json_reply: None,
            log_entry,
            state: State::Received,
        });
        self.shard_link.invite(from, id);
        self.admit(id, pool, payload, meta);
        self.has_arrived(pool, bytes);
    }

    fn guest_says(&mut self, from: RequestId, word: RequestControl) {
        let window = self.shard_link.window();
        let Some(id) = self.shard_link.from_shard(from) else { return };
        let Some(exchange) = self.exchanges.get_mut(id) else { return };
        let told = match &word {
            RequestControl::Pause => exchange.window.want(false, window),
            RequestControl::Resume => exchange.window.want(true, window),
            RequestControl::Body(part, _) => {
                if let Some(bytes) = exchange.window.take(part.len(), window) {
                    self.shard_link.send(from.shard(), ShardMessage::PartsConsumed(from, bytes));
                }
                true
            }
            RequestControl::BodyEnd | RequestControl::Abandoned => true,
            // A stream belongs to one loop.
            RequestControl::Splice(_) => false,
        };
        match word {
            word @ RequestControl::Body(..) => self.control(id, word),
            word if told => self.control_worker(id, word),
            RequestControl::Pause
            | RequestControl::Resume
            | RequestControl::BodyEnd
            | RequestControl::Abandoned
            | RequestControl::Splice(_) => {}
        }
    }

    /// The other shard has consumed bytes of parts.
    fn credit(&mut self, named: RequestId, bytes: usize) {
        let (window, ours) = (self.shard_link.window(), named.shard() == self.shard_link.me());
        let id = if ours { Some(named) } else { self.shard_link.from_shard(named) };
        let Some(exchange) = id.and_then(|id| self.exchanges.get_mut(id)) else { return };
        if !exchange.window.credit(bytes, window) {
            return;
        }
        match (id, &exchange.client) {
            // Parts of a reply: the worker resumes.
            (Some(id), Client::OffShard { .. }) => self.control_worker(id, RequestControl::Resume),
            // Parts of a request body: the client resumes.
            (Some(id), _) => self.flow(id, true),
            (None, _) => {}
        }
    }

    /// Handles an event about a request that is on another shard.
    fn brought(&mut self, id: RequestId, reply_event: ReplyEvent) {
        if let ReplyEvent::Head(head) = &reply_event {
            head.arrive();
        }
        let window = self.shard_link.window();
        let Some(exchange) = self.exchanges.get_mut(id) else { return };
        let (pool, owner) = (exchange.pool, exchange.state.owner());
        match reply_event {
            ReplyEvent::Head(head) => self.head(pool, id, head),
            ReplyEvent::BodyWanted(wanted) => {
                if exchange.window.want(wanted, window) {
                    self.flow(id, wanted);
                }
            }
            ReplyEvent::Page(page) => {
                let client = exchange.client.streamed();
                self.finished.extend(client.map(|client| (client, ReplyEvent::Page(page))));
            }
            ReplyEvent::PlainReply(told) => {
                let client = exchange.client.streamed();
                self.finished.extend(client.map(|client| (client, ReplyEvent::PlainReply(told))));
            }
            ReplyEvent::Part(part) => {
                if let (Some(bytes), Some(owner)) =
                    (exchange.window.take(part.len(), window), owner)
                {
                    self.shard_link.send(owner, ShardMessage::PartsConsumed(id, bytes));
                }
                self.part(pool, id, part);
            }
            ReplyEvent::ReplyEnd => self.said_all(id),
            ReplyEvent::End(outcome) => self.deliver_end(id, outcome),
            ReplyEvent::SpliceOffer(_) | ReplyEvent::Spliced(..) => {}
            ReplyEvent::Unsolicited(..) | ReplyEvent::Finished => {}
        }
    }

    /// Forwards a control message to the owner shard. When the window is full, the client must pause its body.
    pub(super) fn tell_away(&mut self, id: RequestId, owner: u32, word: RequestControl) {
        let window = self.shard_link.window();
        let stop = match (&word, self.exchanges.get_mut(id)) {
            (RequestControl::Body(part, _), Some(exchange)) => {
                exchange.window.send(part.len(), window)
            }
            _ => false,
        };
        self.shard_link.send(owner, ShardMessage::Control(id, word));
        if stop {
            self.flow(id, false);
        }
    }

    /// Counts a part of a reply to another shard. When the window is full, the worker must pause.
    pub(super) fn window_fills(&mut self, id: RequestId, bytes: usize) {
        let window = self.shard_link.window();
        let fills = |exchange: &mut Exchange| {
            matches!(exchange.client, Client::OffShard { .. })
                && exchange.window.send(bytes, window)
        };
        if self.exchanges.get_mut(id).is_some_and(fills) {
            self.control_worker(id, RequestControl::Pause);
        }
    }

    /// Removes an exchange, and updates the number of those on other shards.
    pub(super) fn take_out(&mut self, id: RequestId) -> Option<Exchange> {
        let exchange = self.exchanges.remove(id)?;
        if exchange.state.owner().is_some() {
            self.shard_link.away -= 1;
        }
        Some(exchange)
    }

    /// The number of exchanges that this shard must end.
    pub fn exchanges_to_end(&self) -> usize {
        self.exchanges.len() - self.shard_link.away as usize
    }

    /// The number of exchanges of this shard's clients.
    pub fn exchanges_here(&self) -> usize {
        self.exchanges.len() - self.exchanges.from_shards()
    }
}
