//! One shard: the owners of its streams, and the steps of a turn of the loop.
//!
//! First, events are processed: sessions submit requests, and workers answer. Then [`EventHandler::on_events_done`]
//! carries out the effects of the pools and delivers outcomes to their clients. [`EventHandler::on_iteration_end`]
//! flushes the sessions that changed and publishes the metrics. After that, the loop sends the output.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use event::{Context, Event, EventHandler, Fd, OwnerKey, SocketId, TimerId};
use exchange::{Cause, ListenerId, Outcome, Table};
use settings::Configuration;
use spawn::Spawn;

use crate::assembly::{Admission, Assembly};
use crate::build::{self, BuildContext, HandlerRegistry};
use crate::client_limits::ListenerLimits;
use crate::drain::{Drain, DrainLimits, DrainResult, Stage};
use crate::error::BuildError;
use crate::fleet::Fleet;
use crate::shard_mail::ShardMail;
use backend::backends::Backends;
use backend::system::ThreadSpawner;
use engine::engine::Engine;
use engine::shard_message::ShardMessage;
use flow::client::Client;
use flow::ids::SessionId;
use flow::permit::Grant;
use flow::reply_event::ReplyEvent;
use flow::stream_event::StreamEvent;
use flow::stream_owner::{StreamOwner, TimerOwner};
use frontend::listener::ListenerConfig;
use frontend::session::{Scratch, Session};
use observe::access_log::{AccessLog, AccessLogConfig, LogSink};
use observe::closings::Closings;
use observe::metrics::Metrics;
use observe::rejections::Rejections;

/// Creates the context of a session. A method would borrow the whole shard, and the session is a part of it.
macro_rules! session_context {
    ($shard:ident, $io:expr) => {
        frontend::session::SessionContext::new(
            $io,
            &mut $shard.engine,
            &mut $shard.listener_limits,
            &mut $shard.scratch,
        )
    };
}

mod address_uses;
mod assemble;
mod clients;
mod datagrams;
mod displace;
mod ending;
mod mail;
mod make_room;
mod memory;
mod refused;
mod refused_connections;
mod reload;
mod shortage;
mod streams;
mod workers;

use refused_connections::RefusedConnections;
use shortage::{IdleFound, Shortage};

/// The parts of a shard.
pub struct Parts {
    /// The configuration to serve.
    pub configuration: Configuration,
    /// A bound socket for each listener for which this shard listens, by its name. The first shard listens for all
    /// listeners except datagram listeners.
    pub sockets: Vec<(String, Fd)>,
    /// Creates the handlers of its pools.
    pub handler_registry: Arc<dyn HandlerRegistry>,
    /// Starts its programs.
    pub spawner: Box<dyn Spawn>,
    /// Starts the threads of its handlers.
    pub runner: Box<dyn ThreadSpawner>,
    /// All shards of the daemon.
    pub fleet: Arc<Fleet>,
    /// The number of this shard. The shard must run on the loop of the fleet's mailbox with this number.
    pub shard: u32,
    /// Its metrics.
    pub metrics: Arc<Metrics>,
    /// The same moment on both clocks.
    pub started: (Instant, SystemTime),
    /// The seed of all random numbers.
    pub seed: u64,
    /// Decides about each connection before any other step; `None`: all are admitted.
    pub admission: Option<Admission>,
    /// Receives the lines of its access log; `None`: none are written.
    pub access_log: Option<LogSink>,
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts").field("seed", &self.seed).finish_non_exhaustive()
    }
}

struct Listener {
    id: Option<event::ListenerId>,
    /// The socket of a datagram listener. `id` is then unused.
    datagrams: Option<SocketId>,
    /// The number of requests of datagrams in flight.
    datagrams_in_flight: u32,
    socket: Option<Fd>,
    config: Arc<ListenerConfig>,
    open: u32,
    accepted: u64,
    rejections: Rejections,
    closings: Closings,
    /// Idle connections that may be closed for others.
    idle_found: IdleFound,
    accept_failed: u64,
}

/// One shard of the data plane.
pub struct Shard {
    engine: Engine,
    backends: Backends,
    fleet: Arc<Fleet>,
    listeners: Table<ListenerId, Listener>,
    /// The client limits per listener.
    listener_limits: ListenerLimits,
    sessions: Table<SessionId, Session>,
    dirty: Vec<SessionId>,
    /// Paused clients that may send again, each with the number of requests granted.
    woken: Vec<(SessionId, Grant)>,
    refused: RefusedConnections,
    shortage: Shortage,
    /// Buffers that sessions use during a call.
    scratch: Scratch,
    pool_timer: Option<(TimerId, Option<Instant>)>,
    drain: Drain,
    metrics: Arc<Metrics>,
    admission: Option<Admission>,
    turns: u64,
    supervisor_lost: u64,
    /// The seed for random numbers of later configurations.
    seed: u64,
}

impl std::fmt::Debug for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shard").field("sessions", &self.sessions.len()).finish_non_exhaustive()
    }
}

impl Shard {
    /// Creates a shard that serves this configuration after [`Self::start`] was called.
    ///
    /// # Errors
    /// A name cannot be resolved to a pool or socket, or handlers cannot be created.
    pub fn new(parts: Parts) -> Result<Self, BuildError> {
        let Parts {
            configuration,
            mut sockets,
            handler_registry,
            spawner,
            runner,
            fleet,
            shard,
            metrics,
            started,
            seed,
            admission,
            access_log: sink,
        } = parts;
        let places = fleet.pool_ids();
        let Configuration { daemon, access_log, listeners, pools, .. } = configuration;
        let drawn = fleet.secret().map_err(|why| BuildError::NoSecret(why.to_string()))?;
        let handler_registry = handler_registry.as_ref();
        let site = BuildContext {
            places: &places,
            handler_registry,
            drawn: &drawn,
            names: fleet.names(),
            bindings: fleet.bindings(),
        };
        let pools = pools.into_iter().map(|pool| {
            let found = fleet.find(&pool.name);
            let (id, owner) = found.ok_or_else(|| BuildError::NoPool(pool.name.clone()))?;
            let (config, backend) = match (owner == shard, fleet.shared(id)) {
                (true, _) => build::pool(pool, site)?,
                (false, Some(_)) => build::member_shard(pool, site)?,
                (false, None) => build::off_shard(pool, site),
            };
            Ok((id, config, backend))
        });
        let listeners = listeners.into_iter().map(|listener| {
            let found = fleet.listener(&listener.name);
            let id = found.ok_or_else(|| BuildError::NoSocket(listener.name.clone()))?;
            let config = build::listener(listener, (id, fleet.bodies(id)), &places)?;
            let found = sockets.iter().position(|(name, _)| *name == config.name);
            let socket = found.map(|found| sockets.swap_remove(found).1);
            if socket.is_none() && fleet.listens(shard, &config.name) {
                return Err(BuildError::NoSocket(config.name));
            }
            Ok((config, socket))
        });
        let listeners = listeners.collect::<Result<_, BuildError>>()?;
        let pools = pools.collect::<Result<_, BuildError>>()?;
        let log = access_log.map(|settings::AccessLog { to: _, format, fields }| AccessLogConfig {
            format,
            fields,
        });
        Ok(Self::assemble(Assembly {
            listeners,
            pools,
            spawner,
            runner,
            fleet,
            shard,
            metrics,
            started,
            seed,
            admission,
            access_log: AccessLog::new(log, sink),
            drain: DrainLimits::of(&daemon),
        }))
    }

    /// Opens the listeners and starts the first workers.
    pub fn start(&mut self, io: &mut Context<'_>) {
        for listener in self.listeners.values_mut() {
            let Some(socket) = listener.socket.take() else { continue };
            if listener.config.protocol_config.is_datagrams() {
                listener.datagrams = Some(io.datagram(socket));
            } else {
                listener.id = Some(io.accept_from(socket));
            }
        }
        self.pool_timer = Some((io.timer_of(TimerOwner::Pools.key(), io.now()), None));
        // Another shard may have clients before the first turn of this shard. Their requests must find the same workers
        // as later ones.
        self.engine.now = io.now();
        self.pump(io);
    }

    /// Ends the shard after the loop has stopped, and returns the result of the drain.
    pub fn end(&mut self) -> DrainResult {
        self.engine.end_error_logs();
        let DrainResult { cut, unread } = self.drain.result;
        DrainResult { cut: cut + self.engine.exchanges_here(), unread }
    }

    /// Checks every invariant, between two turns; for tests and simulation.
    ///
    /// # Panics
    /// If an invariant is violated.
    pub fn check(&self) {
        self.engine.check();
        let open: usize = self.listeners.values().map(|listener| listener.open as usize).sum();
        assert_eq!(open, self.sessions.len(), "sessions are counted");
        self.sessions.values().for_each(Session::check);
    }

    /// Returns the owner of a stream.
    fn owner(&self, key: OwnerKey) -> StreamOwner {
        StreamOwner::of(key, self.engine.shard_link.me())
    }

    fn session(&mut self, id: SessionId) -> Option<&mut Session> {
        self.sessions.get_mut(id)
    }

    /// Marks the session to be flushed at the end of the turn.
    fn touch(&mut self, id: SessionId) {
        if let Some(session) = self.session(id)
            && !session.set_dirty(true)
        {
            self.dirty.push(id);
        }
    }

    /// Delivers parts and outcomes to their clients.
    fn hand_out(&mut self, io: &mut Context<'_>) {
        if self.engine.finished.is_empty() {
            return self.announce(io);
        }
        let mut finished = std::mem::take(&mut self.engine.finished);
        let mut reply_events = finished.drain(..);
        while let Some((client, reply_event)) = reply_events.next() {
            match (client, reply_event) {
                (Client::Inside(reply), ReplyEvent::End(outcome)) => reply(outcome),
                (Client::Inside(_) | Client::Nobody, _) => {}
                (Client::Datagram { listener, to, hears_errors }, reply_event) => {
                    self.deliver_datagram(io, listener, (&to, hears_errors), reply_event);
                }
                (Client::OffShard { request, .. }, reply_event) => {
                    if let ReplyEvent::Head(head) = &reply_event {
                        head.leave();
                    }
                    let reply_event = ShardMessage::ReplyEvent(request, reply_event);
                    self.engine.shard_link.send(request.shard(), reply_event);
                }
                (Client::Session { session, .. }, ReplyEvent::Finished)
                    if session.shard != self.engine.shard_link.me() =>
                {
                    self.engine.shard_link.send(session.shard, ShardMessage::Finished(session));
                }
                // It is sent in its order among the replies to that shard.
                (Client::Session { session, .. }, ReplyEvent::Unsolicited(pool, frame))
                    if session.shard != self.engine.shard_link.me() =>
                {
                    let said = ShardMessage::Unsolicited(session, pool, frame);
                    self.engine.shard_link.send(session.shard, said);
                }
                (Client::Session { session: id, sequence }, reply_event) => {
                    let found = self.sessions.get_mut(id);
                    let Some(session) = found else { continue };
                    // Only a head can be followed by the rest of its reply, so other events need no look-ahead.
                    let end = match reply_event {
                        ReplyEvent::Head(_) => end_behind(&mut reply_events, id, sequence),
                        _ => None,
                    };
                    let mut cx = session_context!(self, io);
                    match (reply_event, end) {
                        (ReplyEvent::Head(head), Some(outcome)) => {
                            session.deliver_whole(sequence, head, outcome, &mut cx);
                        }
                        (reply_event, _) => session.deliver(sequence, reply_event, &mut cx),
                    }
                    // Like `touch`, for a session that is already looked up.
                    if !session.set_dirty(true) {
                        self.dirty.push(id);
                    }
                }
            }
        }
        drop(reply_events);
        self.engine.finished = finished;
        self.announce(io);
    }

    /// Sets the timer to the next time at which a pool or a backend needs to run.
    fn arm(&mut self, io: &mut Context<'_>) {
        let Some((timer, armed)) = &mut self.pool_timer else { return };
        let next = [self.engine.next_time(), self.backends.next_time()].into_iter().flatten().min();
        if next != *armed {
            match next {
                Some(at) => io.set_timer(*timer, at),
                None => io.disarm_timer(*timer),
            }
            *armed = next;
        }
    }

    fn publish(&mut self) {
        self.turns += 1;
        self.engine.publish(&self.metrics);
        self.backends.publish(&self.metrics);
        for (id, listener) in self.listeners.entries() {
            let to = self.metrics.listener(id);
            to.open.set(u64::from(listener.open));
            to.accepted.set(listener.accepted);
            to.set_rejections(&listener.rejections);
            let (known, forgotten) = self.listener_limits.at(id).counts();
            to.addresses.set(known);
            to.addresses_forgotten.set(forgotten);
            to.accept_failed.set(listener.accept_failed);
            to.set_closings(&listener.closings);
        }
        let to = self.metrics.shard();
        to.turns.set(self.turns);
        to.draining.set(u64::from(self.drain.stage != Stage::Running));
        to.supervisor_lost.set(self.supervisor_lost);
        let memory = self.fleet.memory();
        to.memory.set(self.fleet.held() as u64);
        to.memory_max.set(memory.max() as u64);
        to.memory_over.set(u64::from(memory.is_over()));
        to.memory_exceeded.set(memory.exceeded());
    }
}

/// Removes and returns the end of this reply, if it is the next event.
fn end_behind(
    reply_events: &mut std::vec::Drain<'_, (Client, ReplyEvent)>,
    id: SessionId,
    sequence: u64,
) -> Option<Outcome> {
    match reply_events.as_slice().first() {
        Some((client, ReplyEvent::End(_))) if client.is_of(id, sequence) => {
            match reply_events.next() {
                Some((_, ReplyEvent::End(outcome))) => Some(outcome),
                _ => None,
            }
        }
        _ => None,
    }
}

impl Listener {
    fn new(config: ListenerConfig, socket: Option<Fd>) -> Self {
        Self {
            id: None,
            datagrams: None,
            datagrams_in_flight: 0,
            socket,
            config: Arc::new(config),
            open: 0,
            accepted: 0,
            rejections: Rejections::default(),
            closings: Closings::default(),
            idle_found: IdleFound::default(),
            accept_failed: 0,
        }
    }
}

impl EventHandler for Shard {
    type Mail = ShardMail;

    fn handle(&mut self, io: &mut Context<'_>, event: Event<'_, ShardMail>) {
        self.engine.now = io.now();
        match event {
            Event::Data { stream, key, data } => self.data(io, (stream, key), data),
            Event::Accepted { listener, stream, peer } => {
                self.accepted(io, listener, stream, peer);
            }
            Event::AcceptFailed { listener, error } => {
                self.accept_failed(io, listener, error);
            }
            Event::Eof { stream, key } => self.eof(io, (stream, key)),
            Event::Datagram { socket, from, bytes } => self.datagram(io, socket, from, bytes),
            Event::DatagramsFailed { socket, error } => {
                tracing::error!("a socket of datagrams cannot be used: {error}");
                let found = self.listeners.values_mut().find(|it| it.datagrams == Some(socket));
                if let Some(listener) = found {
                    listener.datagrams = None;
                    listener.accept_failed += 1;
                }
            }
            Event::Drained { stream, key } => match self.owner(key) {
                StreamOwner::Session(id) => self.touch(id),
                owner => self.handle_stream_event(io, stream, owner, StreamEvent::Drained),
            },
            Event::Relayed { stream, key, count, done } => {
                self.handle_stream_event(
                    io,
                    stream,
                    self.owner(key),
                    StreamEvent::Relayed(count, done),
                );
            }
            Event::Connected { stream, key } => {
                self.handle_stream_event(io, stream, self.owner(key), StreamEvent::Connected);
            }
            Event::Hangup { key, .. } => {
                if let StreamOwner::Session(id) = self.owner(key)
                    && self.session(id).is_some_and(|session| session.handle_hangup(io))
                {
                    self.leave(io, id, Cause::Left);
                }
            }
            Event::EndAhead { key, .. } => {
                if let StreamOwner::Session(id) = self.owner(key) {
                    self.end_ahead(io, id);
                }
            }
            // Streams of workers are paused because of clients. They are resumed when the clients have read or
            // disconnected.
            Event::Broken { key, .. } => {
                if let StreamOwner::Session(id) = self.owner(key) {
                    if self.session(id).is_some_and(|session| session.handle_broken(io)) {
                        self.leave(io, id, Cause::Left);
                    } else {
                        // Replies that waited behind others can be discarded now.
                        self.touch(id);
                    }
                }
            }
            // No stream is released.
            Event::Released { .. } => {}
            Event::Closed { stream, key, reason } => self.closed(io, (stream, key), reason),
            Event::Deadline { stream, key, name } => self.deadline(io, (stream, key), name),
            Event::Timer { timer, key } => self.timer(io, timer, key),
            Event::Mail(mail) => self.mail(io, mail),
        }
        self.carry_out_urgent(io);
    }

    fn on_events_done(&mut self, io: &mut Context<'_>) {
        self.engine.now = io.now();
        self.pump(io);
        self.hand_out(io);
        self.wake_paused();
    }

    fn on_iteration_end(&mut self, io: &mut Context<'_>) {
        self.engine.now = io.now();
        self.flush(io);
        // Sessions may have paused or resumed workers.
        self.pump(io);
        self.watch_memory(io);
        if self.drain.stage != Stage::Running {
            self.drain_on(io);
            self.pump(io);
            // Workers that end immediately cause no event that would start another turn.
            if self.drain.stage == Stage::Serving {
                self.drain_on(io);
            }
        }
        // The last effects may have freed space in a queue, and no event may follow. Clients that cannot be read return
        // their grants, so other clients may have space then.
        while self.wake_paused() {
            self.flush(io);
        }
        self.engine.tell_room();
        self.engine.tell_news();
        self.engine.send_binding_uses();
        self.arm(io);
        // A request is counted before its client can read the answer, including clients of other shards.
        self.publish();
        let from = self.engine.shard_link.me();
        for (shard, messages) in self.engine.shard_link.outgoing() {
            self.fleet.mailbox(shard).post(ShardMail::Shard { from, messages });
        }
        self.engine.barriers.let_go();
    }
}
