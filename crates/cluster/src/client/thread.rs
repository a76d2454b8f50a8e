//! The loop of the client.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use exchange::Random;
use tokio::runtime::Builder;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Interval, MissedTickBehavior};

use super::check;
use super::clock::Clock;
use super::config::{ClusterConfig, CommandReply, Sharing, TableConfig};
use super::hints::Hints;
use super::limits::Limits;
use super::machines::Machines;
use super::messages::{Message, Order};
use super::operator::OperatorClient;
use super::session::{Reader, Session, SessionConfig, TableName};
use super::status::{CheckReport, ClusterStatus};
use super::table::Table;
use crate::message::{Command, Event, Origin};
use crate::operator::{CommandRequest, OperatorCommand, OperatorEvent};

/// The maximum number of messages of the connection that wait. Then the tasks of the connection wait.
const MESSAGES_MAX: usize = 4096;
/// The maximum number of messages that are handled in one round.
const MESSAGES_PER_ROUND: usize = 1024;
/// How often the reports of the shards are taken. It bounds the delay of a binding, because shards do not wake the
/// thread.
const TICK: Duration = Duration::from_millis(10);
/// How often the status is published.
const STATUS_INTERVAL_MS: u64 = 500;
/// The time to the next attempt to connect: at least, and at most. Together with an attempt that fails because of a
/// request without an answer (5 s), it is less than the 10 s in which daemons agree after a fault.
const RETRY_MS: (u64, u64) = (100, 2000);

pub(super) fn start(
    config: ClusterConfig,
    tables: Vec<TableConfig>,
    sharing: Sharing,
    seed: u64,
    orders: mpsc::UnboundedReceiver<Order>,
    status: Arc<Mutex<ClusterStatus>>,
) -> io::Result<JoinHandle<()>> {
    let mut random = Random::new(seed);
    let origin = Origin(random.draw());
    let secret = config.secret;
    let tables = tables.into_iter().map(|it| Table::new(it, secret, origin, random.draw()));
    let Sharing { operator, health, limits } = sharing;
    let client = Client {
        tables: tables.collect(),
        operator: operator.map(OperatorClient::new),
        hints: health.map(Hints::new),
        limits: limits.map(Limits::new),
        config: Arc::new(config),
        origin,
        machines: Machines::default(),
        clock: Clock::new(),
        random,
        orders,
        waiters: Vec::new(),
        connection: Connection::default(),
        status,
        status_due_ms: 0,
    };
    // The first runtime is created here, so that its error can be returned.
    let first = runtime()?;
    std::thread::Builder::new().name("cluster".to_owned()).spawn(move || client.run(first))
}

/// A runtime for one connection.
fn runtime() -> io::Result<tokio::runtime::Runtime> {
    Builder::new_current_thread().enable_io().enable_time().build()
}

struct Client {
    config: Arc<ClusterConfig>,
    tables: Vec<Table>,
    operator: Option<OperatorClient>,
    hints: Option<Hints>,
    limits: Option<Limits>,
    origin: Origin,
    machines: Machines,
    clock: Clock,
    random: Random,
    orders: mpsc::UnboundedReceiver<Order>,
    /// Those who wait until all tables are in sync.
    waiters: Vec<std::sync::mpsc::Sender<()>>,
    connection: Connection,
    status: Arc<Mutex<ClusterStatus>>,
    status_due_ms: u64,
}

/// The connection, and what happened to earlier ones.
#[derive(Debug, Default)]
struct Connection {
    session: Option<Arc<Session>>,
    /// Receives the session once it is open.
    opening: Option<oneshot::Receiver<Arc<Session>>>,
    /// The watch of each table.
    watches: Vec<Option<Reader>>,
    /// The watch of the settings of operators.
    operator_watch: Option<Reader>,
    /// What the server has complained about on this connection.
    complaint: Option<String>,
    failures: u32,
    reconnects: u64,
    trouble: Option<String>,
}

impl Connection {
    /// The server complains, for example of a missing permission. The connection may stay.
    fn note_complaint(&mut self, reason: String) {
        let is_known = self.trouble.as_ref().is_some_and(|trouble| trouble.contains(&reason));
        if !is_known {
            tracing::warn!("cluster: {reason}");
            self.trouble = Some(reason.clone());
        }
        self.complaint = Some(reason);
    }

    /// The connection is lost, perhaps because of what the server complained about. A reason that is repeated at each
    /// attempt is logged once.
    fn note_loss(&mut self, reason: String) {
        let reason = match self.complaint.take() {
            Some(complaint) => format!("{complaint}; after that: {reason}"),
            None => reason,
        };
        if self.trouble.as_ref() != Some(&reason) {
            tracing::warn!("cluster: {reason}");
        }
        self.trouble = Some(reason);
    }
}

/// Why a round ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Round {
    Continue,
    /// There is more to do now.
    Busy,
    Lost,
    End,
}

impl Client {
    fn run(mut self, first: tokio::runtime::Runtime) {
        let mut next = Some(first);
        loop {
            let Some(runtime) = next.take().or_else(|| runtime().ok()) else {
                tracing::error!("the cluster needs a descriptor for its connection: it has ended");
                return;
            };
            let is_over = runtime.block_on(self.connect());
            self.connection.watches.clear();
            self.connection.operator_watch = None;
            self.connection.session = None;
            // This ends all tasks of the connection, with everything that they wanted to send.
            runtime.shutdown_background();
            if is_over {
                return;
            }
        }
    }

    /// Opens a connection and serves it until it is lost. `true`: the thread has to end.
    async fn connect(&mut self) -> bool {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        if self.pause(&mut tick).await {
            return true;
        }
        let (sender, mut messages) = mpsc::channel(MESSAGES_MAX);
        let names = self
            .tables
            .iter()
            .map(|table| TableName { name: table.name.clone(), settings: table.settings });
        let (opened, session) = oneshot::channel();
        self.connection.opening = Some(session);
        let opening = Session::open(
            SessionConfig {
                cluster: Arc::clone(&self.config),
                shares_operator: self.operator.is_some(),
            },
            names.collect(),
            self.origin,
            sender.clone(),
            opened,
        );
        tokio::spawn(async move {
            if let Err(reason) = opening.await {
                let _ = sender.send(Message::Lost(reason)).await;
            }
        });
        let mut batch = Vec::new();
        let mut is_busy = false;
        loop {
            let end = self.round(&mut messages, &mut batch, &mut tick, is_busy).await;
            match end {
                Round::Continue | Round::Busy => is_busy = end == Round::Busy,
                Round::Lost => {
                    self.lost();
                    return false;
                }
                Round::End => return true,
            }
        }
    }

    /// Waits before an attempt to connect. The reports of the shards are taken meanwhile. `true`: the thread has to end.
    async fn pause(&mut self, tick: &mut Interval) -> bool {
        if self.connection.failures == 0 && self.connection.reconnects == 0 {
            return false;
        }
        let (least, most) = RETRY_MS;
        let longest = (least << self.connection.failures.min(6)).min(most);
        let wait = least + self.random.draw() % longest;
        let until = self.clock.now_ms() + wait;
        let (_sender, mut messages) = mpsc::channel(1);
        while self.clock.now_ms() < until {
            if self.round(&mut messages, &mut Vec::new(), tick, false).await == Round::End {
                return true;
            }
        }
        false
    }

    /// Waits for something to do, and does it.
    async fn round(
        &mut self,
        messages: &mut mpsc::Receiver<Message>,
        batch: &mut Vec<Message>,
        tick: &mut Interval,
        is_busy: bool,
    ) -> Round {
        batch.clear();
        let mut order = None;
        if is_busy {
            tokio::task::yield_now().await;
            while batch.len() < MESSAGES_PER_ROUND
                && let Ok(message) = messages.try_recv()
            {
                batch.push(message);
            }
        } else {
            tokio::select! {
                _ = messages.recv_many(batch, MESSAGES_PER_ROUND) => {}
                received = self.orders.recv() => order = Some(received.unwrap_or(Order::End)),
                _ = tick.tick() => {}
            }
        }
        let now_ms = self.clock.now_ms();
        match order {
            Some(Order::End) => return Round::End,
            Some(Order::WhenInSync(sender)) => self.waiters.push(sender),
            Some(Order::Check(reply)) => self.check(now_ms, reply),
            Some(Order::Command(request, reply)) => self.command(now_ms, request, reply),
            None => {}
        }
        let mut is_lost = false;
        for message in batch.drain(..) {
            // Later reasons are consequences of the first one.
            if !(is_lost && matches!(message, Message::Lost(_))) {
                is_lost |= self.handle(now_ms, message);
            }
        }
        let round = if is_lost { Round::Lost } else { self.poll(now_ms) };
        self.end_of_round(now_ms);
        while !self.send_changes() {
            // The shard takes no changes: the server waits with it.
            if !self.wait_for_shards(tick).await {
                return Round::End;
            }
        }
        round
    }

    /// `false`: a shard takes no changes now.
    fn send_changes(&mut self) -> bool {
        let full = self.tables.iter_mut().filter_map(|table| (!table.send_changes()).then_some(()));
        full.count() == 0
    }

    /// Waits for a moment. `false`: the thread has to end.
    async fn wait_for_shards(&mut self, tick: &mut Interval) -> bool {
        tokio::select! {
            received = self.orders.recv() => match received {
                Some(Order::End) | None => return false,
                Some(Order::WhenInSync(sender)) => self.waiters.push(sender),
                // It is answered with an error, because it is dropped.
                Some(Order::Check(_)) => {}
                Some(Order::Command(request, reply)) => {
                    self.command(self.clock.now_ms(), request, reply);
                }
            },
            _ = tick.tick() => {}
        }
        true
    }

    /// Handles a message of the connection. `true`: the connection is lost.
    fn handle(&mut self, now_ms: u64, message: Message) -> bool {
        match message {
            Message::Opened => {
                let opening = self.connection.opening.take();
                let Some(session) = opening.and_then(|mut it| it.try_recv().ok()) else {
                    return true;
                };
                tracing::info!("cluster: connected to the NATS server {}", session.server);
                self.connection.session = Some(session);
                self.connection.watches = self.tables.iter().map(|_| None).collect();
                self.connection.failures = 0;
                self.connection.trouble = None;
            }
            Message::Lost(reason) => {
                self.connection.note_loss(reason);
                return true;
            }
            Message::Trouble(reason) => self.connection.note_complaint(reason),
            Message::Event(table, event) => self.tables[table].handle(now_ms, event),
            Message::Behind(table, behind) => self.tables[table].behind = behind,
            Message::Heard(table, heard) => {
                if heard.digest.origin != self.origin {
                    self.machines.heard(now_ms, table, &heard);
                    let event = Event::Digest(Box::new(heard.digest));
                    self.tables[table].handle(now_ms, event);
                }
            }
            Message::Operator(event) => {
                if let Some(operator) = &mut self.operator {
                    operator.handle(now_ms, event);
                }
            }
            Message::OperatorTrouble(reason) => {
                if let Some(operator) = &mut self.operator {
                    operator.handle_trouble(reason);
                }
            }
            Message::Hint(hint) => {
                if let Some(hints) = &mut self.hints {
                    hints.follow(now_ms, &hint);
                }
            }
            Message::Limits(report) => {
                if let Some(limits) = &mut self.limits {
                    limits.handle(report);
                }
            }
            Message::Ask(table, question) => self.tables[table].answer(question),
        }
        false
    }

    /// Takes the reports of the shards and carries out commands.
    fn poll(&mut self, now_ms: u64) -> Round {
        let mut commands = Vec::new();
        let mut is_busy = false;
        for (number, table) in self.tables.iter_mut().enumerate() {
            table.take_uses(now_ms);
            is_busy |= table.poll(now_ms, &mut commands);
            for command in commands.drain(..) {
                if command == Command::Reconnect {
                    self.connection.note_loss("the server has not answered in time".to_owned());
                    return Round::Lost;
                }
                // Without a connection, replicas have no commands.
                let Some(session) = &self.connection.session else { continue };
                let is_watch = matches!(command, Command::Watch { .. });
                let reader = session.command(number, command);
                if is_watch {
                    self.connection.watches[number] = reader;
                }
            }
        }
        self.poll_operator(now_ms);
        self.send_hints(now_ms);
        self.send_limits(now_ms);
        if is_busy { Round::Busy } else { Round::Continue }
    }

    fn poll_operator(&mut self, now_ms: u64) {
        let Some(operator) = &mut self.operator else { return };
        let mut commands = Vec::new();
        operator.poll(now_ms, &mut commands);
        for command in commands {
            // Without a connection, the replica has no commands.
            let Some(session) = &self.connection.session else { return };
            let is_watch = matches!(command, OperatorCommand::Watch { .. });
            let reader = session.operator_command(command);
            if is_watch {
                self.connection.operator_watch = reader;
            }
        }
    }

    /// Reports changes of the health of servers to the other daemons. Without a connection they are not reported.
    fn send_hints(&mut self, now_ms: u64) {
        let Some(hints) = &mut self.hints else { return };
        let tables = &mut self.tables;
        // Bindings to servers that are down are not adopted from other daemons.
        let found = hints.take_notices(now_ms, |pool, target, is_down| {
            for table in tables.iter_mut().filter(|table| table.name == pool) {
                table.replica.set_down(target, is_down);
            }
        });
        for hint in found {
            if let Some(session) = &self.connection.session {
                session.send_hint(&hint, self.origin);
                hints.count_sent();
            }
        }
    }

    /// Reports what addresses used to the other daemons. Without a connection it is not reported.
    fn send_limits(&mut self, now_ms: u64) {
        let Some(limits) = &mut self.limits else { return };
        for message in limits.take_messages(now_ms, self.origin) {
            if let Some(session) = &self.connection.session {
                session.send_limits(message);
                limits.count_sent();
            }
        }
    }

    fn command(&mut self, now_ms: u64, request: CommandRequest, reply: CommandReply) {
        // Without shared settings the reply is dropped.
        if let Some(operator) = &mut self.operator {
            operator.ask(now_ms, request, reply);
        }
    }

    fn is_in_sync(&self) -> bool {
        let has_settings = self.operator.as_ref().is_none_or(OperatorClient::is_in_sync);
        has_settings && self.tables.iter().all(Table::is_in_sync)
    }

    fn end_of_round(&mut self, now_ms: u64) {
        if !self.waiters.is_empty() && self.is_in_sync() {
            // A waiter that has gone needs no answer.
            for waiter in self.waiters.drain(..) {
                let _ = waiter.send(());
            }
        }
        let has_changed = self.operator.as_mut().is_some_and(OperatorClient::take_changed);
        if has_changed || now_ms >= self.status_due_ms {
            self.status_due_ms = now_ms + STATUS_INTERVAL_MS;
            self.publish_status(now_ms);
        }
    }

    fn lost(&mut self) {
        let now_ms = self.clock.now_ms();
        self.connection.reconnects += u64::from(self.connection.session.is_some());
        self.connection.session = None;
        self.connection.failures = self.connection.failures.saturating_add(1);
        for table in &mut self.tables {
            table.handle(now_ms, Event::Disconnected);
        }
        if let Some(operator) = &mut self.operator {
            operator.handle(now_ms, OperatorEvent::Disconnected);
        }
        self.publish_status(now_ms);
    }

    fn publish_status(&self, now_ms: u64) {
        let tables = self.tables.iter().enumerate();
        let tables = tables.map(|(number, table)| table.status(now_ms, number, &self.machines));
        let connection = &self.connection;
        let status = ClusterStatus {
            site: self.config.site.clone(),
            machine: self.config.machine.clone(),
            origin: self.origin.0,
            server: connection.session.as_ref().map(|session| session.server.clone()),
            reconnects: connection.reconnects,
            trouble: connection.trouble.clone(),
            tables: tables.collect(),
            operator: self.operator.as_ref().map(OperatorClient::status),
            hints: self.hints.as_ref().map(Hints::counters).unwrap_or_default(),
            limits: self.limits.as_ref().map(Limits::counters),
        };
        *self.status.lock().unwrap_or_else(PoisonError::into_inner) = status;
    }

    fn check(&self, now_ms: u64, reply: Box<dyn FnOnce(CheckReport) + Send>) {
        let Some(session) = &self.connection.session else {
            return reply(CheckReport::without_connection());
        };
        let tables = self.tables.iter().enumerate().map(|(number, table)| {
            let others = self.machines.of_table(now_ms, number);
            check::CheckedTable {
                number,
                name: table.name.clone(),
                others: others.map(|(origin, machine)| (origin, machine.name.clone())).collect(),
            }
        });
        let check = check::check(Arc::clone(session), tables.collect());
        tokio::spawn(async move { reply(check.await) });
    }
}
