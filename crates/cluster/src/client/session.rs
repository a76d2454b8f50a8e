//! One connection to the server, with the buckets of all tables.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_nats::jetstream::Context;
use async_nats::{Client, ConnectOptions, Event as Notice, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt as _;
use tokio::sync::mpsc::Sender;
use tokio::sync::oneshot;

use super::bucket::{self, Bucket};
use super::config::{ClusterConfig, TlsFiles};
use super::explain;
use super::hints::Hint;
use super::limits::LimitReport;
use super::machines::Heard;
use super::messages::{Message, Question};
use super::operator_bucket::OperatorBucket;
use super::read::{self, Range};
use super::write;
use crate::digest::Digest;
use crate::digest_format::encode_list;
use crate::message::{Command, Event, Origin};
use crate::operator::OperatorCommand;
use crate::settings::Settings;

/// The maximum time to connect to one server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// The maximum time of a request. The replica gives a connection up earlier.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// How often the connection is tested. After three tests without an answer it is given up.
const PING_INTERVAL: Duration = Duration::from_secs(2);
/// The library must not connect again by itself: it would send what was written for the lost connection.
const NEVER: Duration = Duration::from_secs(86_400 * 365);
/// The maximum size of an answer to another daemon, in bytes.
const ANSWER_MAX: usize = 900_000;

/// A table, as far as a connection needs it.
#[derive(Clone, Debug)]
pub(super) struct TableName {
    pub(super) name: String,
    pub(super) settings: Settings,
}

/// What a connection is opened with.
#[derive(Clone, Debug)]
pub(super) struct SessionConfig {
    pub(super) cluster: Arc<ClusterConfig>,
    /// Whether the settings of operators are shared.
    pub(super) shares_operator: bool,
}

#[derive(Debug)]
pub(super) struct Session {
    pub(super) client: Client,
    pub(super) server: String,
    site: String,
    machine: String,
    names: Vec<TableName>,
    buckets: Vec<Arc<Bucket>>,
    events: Sender<Message>,
    /// The bucket with the settings of operators, once it is open.
    operator: OnceLock<Arc<OperatorBucket>>,
}

impl Session {
    /// Connects, opens the buckets and reports their state. It is reported to be opened before any other event.
    pub(super) async fn open(
        config: SessionConfig,
        names: Vec<TableName>,
        origin: Origin,
        events: Sender<Message>,
        opened: oneshot::Sender<Arc<Self>>,
    ) -> Result<(), String> {
        let client = connect(&config.cluster, events.clone()).await?;
        let mut context = async_nats::jetstream::new(client.clone());
        context.set_timeout(REQUEST_TIMEOUT);
        let mut buckets = Vec::new();
        for TableName { name, settings } in &names {
            let name = bucket::bucket_name(&config.cluster.site, name);
            let replicas = config.cluster.replicas;
            buckets
                .push(Arc::new(Bucket::open(&client, &context, &name, settings, replicas).await?));
        }
        let session = Arc::new(Self {
            server: client.server_info().server_name,
            site: config.cluster.site.clone(),
            machine: config.cluster.machine.clone(),
            names,
            buckets,
            events,
            client,
            operator: OnceLock::new(),
        });
        session.subscribe(origin).await?;
        let ended = |_| "the client has ended".to_owned();
        // If nobody waits for it, the next line fails.
        let _ = opened.send(Arc::clone(&session));
        session.events.send(Message::Opened).await.map_err(ended)?;
        if config.shares_operator {
            tokio::spawn(Arc::clone(&session).open_operator(context, config.cluster.replicas));
        }
        for (table, bucket) in session.buckets.iter().enumerate() {
            let event = bucket.connected().await?;
            session.events.send(Message::Event(table, event)).await.map_err(ended)?;
        }
        Ok(())
    }

    /// Opens the bucket with the settings of operators.
    async fn open_operator(self: Arc<Self>, context: Context, replicas: usize) {
        let site = (&*self.site, replicas);
        let opened = OperatorBucket::open(&self.client, &context, site, &self.events).await;
        let Some((bucket, event)) = opened else { return };
        // It is opened once.
        let _ = self.operator.set(bucket);
        let _ = self.events.send(Message::Operator(event)).await;
    }

    /// Carries out a command for the settings of operators.
    pub(super) fn operator_command(&self, command: OperatorCommand) -> Option<Reader> {
        let bucket = Arc::clone(self.operator.get()?);
        let is_watch = matches!(command, OperatorCommand::Watch { .. });
        let task = tokio::spawn(async move { bucket.carry_out(command).await });
        is_watch.then(|| Reader(task))
    }

    /// Tells the other daemons that the health of a server has changed.
    pub(super) fn send_hint(self: &Arc<Self>, hint: &Hint, origin: Origin) {
        let (session, payload) = (Arc::clone(self), hint.encode(origin));
        tokio::spawn(async move {
            let _ = session.client.publish(session.health_subject(), payload.into()).await;
        });
    }

    /// Reports to the other daemons what addresses used.
    pub(super) fn send_limits(self: &Arc<Self>, payload: Vec<u8>) {
        let session = Arc::clone(self);
        tokio::spawn(async move {
            let _ = session.client.publish(session.limits_subject(), payload.into()).await;
        });
    }

    fn limits_subject(&self) -> String {
        format!("roadstead.{}.limits", self.site)
    }

    fn health_subject(&self) -> String {
        format!("roadstead.{}.health", self.site)
    }

    /// Receives digests, questions, hints and reports of other daemons.
    async fn subscribe(self: &Arc<Self>, origin: Origin) -> Result<(), String> {
        for (table, TableName { name, .. }) in self.names.iter().enumerate() {
            let digests = self.client.subscribe(self.digest_subject(name)).await;
            let digests = digests.map_err(|error| error.to_string())?;
            tokio::spawn(receive_digests(digests, table, self.events.clone()));
            let questions = self.client.subscribe(self.ask_subject(table, origin)).await;
            let questions = questions.map_err(|error| error.to_string())?;
            tokio::spawn(Arc::clone(self).answer(questions, table));
        }
        let hints = self.client.subscribe(self.health_subject()).await;
        let hints = hints.map_err(|error| error.to_string())?;
        tokio::spawn(receive_hints(hints, origin, self.events.clone()));
        let reports = self.client.subscribe(self.limits_subject()).await;
        let reports = reports.map_err(|error| error.to_string())?;
        tokio::spawn(receive_limits(reports, origin, self.events.clone()));
        Ok(())
    }

    fn digest_subject(&self, table: &str) -> String {
        format!("roadstead.{}.digest.{table}", self.site)
    }

    fn ask_subject(&self, table: usize, origin: Origin) -> String {
        format!("roadstead.{}.ask.{}.{:016x}", self.site, self.names[table].name, origin.0)
    }

    /// Answers questions of other daemons about a table.
    async fn answer(self: Arc<Self>, mut questions: Subscriber, table: usize) {
        while let Some(message) = questions.next().await {
            let Some(to) = message.reply else { continue };
            let answer = match *message.payload {
                [] => self.ask_digest(table).await.map(|digest| digest.encode()),
                [shard] => self.ask_list(table, shard).await,
                _ => None,
            };
            if let Some(answer) = answer.filter(|answer| answer.len() <= ANSWER_MAX) {
                let _ = self.client.publish(to, Bytes::from(answer)).await;
            }
        }
    }

    pub(super) async fn ask_digest(&self, table: usize) -> Option<Digest> {
        let (reply, answer) = oneshot::channel();
        self.events.send(Message::Ask(table, Question::Digest(reply))).await.ok()?;
        answer.await.ok()?
    }

    async fn ask_list(&self, table: usize, shard: u8) -> Option<Vec<u8>> {
        let (reply, answer) = oneshot::channel();
        self.events.send(Message::Ask(table, Question::Listing(shard, reply))).await.ok()?;
        Some(encode_list(&answer.await.ok()?))
    }

    /// The entries of a shard at this daemon.
    pub(super) async fn list(&self, table: usize, shard: u8) -> Option<Vec<crate::digest::Listed>> {
        let (reply, answer) = oneshot::channel();
        self.events.send(Message::Ask(table, Question::Listing(shard, reply))).await.ok()?;
        answer.await.ok()
    }

    /// Asks another daemon.
    pub(super) async fn ask(
        &self,
        table: usize,
        origin: Origin,
        question: Vec<u8>,
    ) -> Result<Bytes, String> {
        let subject = self.ask_subject(table, origin);
        let answer = self.client.request(subject, question.into()).await;
        answer.map(|message| message.payload).map_err(|error| error.to_string())
    }

    /// Carries out a command. It must not be [`Command::Reconnect`].
    pub(super) fn command(self: &Arc<Self>, table: usize, command: Command) -> Option<Reader> {
        let range = match &command {
            Command::Watch { from, .. } => Range::All(*from),
            Command::Fetch { shard, .. } => Range::Shard(*shard),
            _ => {
                tokio::spawn(Arc::clone(self).carry_out(table, command));
                return None;
            }
        };
        let (Command::Watch { operation, .. } | Command::Fetch { operation, .. }) = command else {
            return None;
        };
        let session = Arc::clone(self);
        let task = tokio::spawn(async move {
            let bucket = &session.buckets[table];
            let read = read::read(bucket, table, operation, range, &session.events).await;
            if let Err(reason) = read {
                let _ = session.events.send(Message::Lost(reason)).await;
            }
        });
        matches!(range, Range::All(_)).then(|| Reader(task))
    }

    async fn carry_out(self: Arc<Self>, table: usize, command: Command) {
        let bucket = &self.buckets[table];
        let event = match command {
            Command::Get { operation, subject } => match bucket.get(subject).await {
                Ok(change) => Some(Event::Got { operation, change }),
                // Without an answer the replica gives the connection up.
                Err(_) => None,
            },
            Command::Write { operation, subject, value, expect } => {
                write::write(bucket, operation, subject, value, expect).await
            }
            Command::PublishDigest(digest) => {
                let payload = Heard::encode(&self.machine, &digest);
                let subject = self.digest_subject(&self.names[table].name);
                let _ = self.client.publish(subject, payload.into()).await;
                None
            }
            Command::Watch { .. } | Command::Fetch { .. } | Command::Reconnect => None,
        };
        if let Some(event) = event {
            let _ = self.events.send(Message::Event(table, event)).await;
        }
    }
}

/// A watch. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Reader(tokio::task::JoinHandle<()>);

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn receive_digests(mut digests: Subscriber, table: usize, events: Sender<Message>) {
    while let Some(message) = digests.next().await {
        if let Some(heard) = Heard::decode(&message.payload)
            && events.send(Message::Heard(table, heard)).await.is_err()
        {
            return;
        }
    }
}

async fn receive_hints(mut hints: Subscriber, origin: Origin, events: Sender<Message>) {
    while let Some(message) = hints.next().await {
        if let Some(hint) = Hint::decode(&message.payload, origin)
            && events.send(Message::Hint(hint)).await.is_err()
        {
            return;
        }
    }
}

async fn receive_limits(mut reports: Subscriber, origin: Origin, events: Sender<Message>) {
    while let Some(message) = reports.next().await {
        if let Some(report) = LimitReport::decode(&message.payload, origin)
            && events.send(Message::Limits(report)).await.is_err()
        {
            return;
        }
    }
}

async fn connect(config: &ClusterConfig, events: Sender<Message>) -> Result<Client, String> {
    let is_connected = Arc::new(AtomicBool::new(false));
    let was_connected = Arc::clone(&is_connected);
    let delay = move |_| {
        if was_connected.load(Ordering::Relaxed) { NEVER } else { Duration::ZERO }
    };
    let notice = move |notice| {
        let events = events.clone();
        async move {
            let lost = |reason: &str| Message::Lost(reason.to_owned());
            let message = match notice {
                Notice::Disconnected | Notice::Closed => lost("the connection was lost"),
                Notice::LameDuckMode => lost("the server is stopping"),
                Notice::SlowConsumer(_) => lost("messages were dropped"),
                // For example a missing permission. If the server ends the connection, that is a notice of its own.
                Notice::ServerError(error) => Message::Trouble(explain::server_error(&error)),
                Notice::Connected | Notice::Draining | Notice::ClientError(_) => return,
            };
            let _ = events.send(message).await;
        }
    };
    let mut options = ConnectOptions::new()
        .name(format!("roadstead {}", config.machine))
        .connection_timeout(CONNECT_TIMEOUT)
        .request_timeout(Some(REQUEST_TIMEOUT))
        .ping_interval(PING_INTERVAL)
        .ignore_discovered_servers()
        .reconnect_delay_callback(delay)
        .event_callback(notice);
    if let Some(path) = &config.credentials {
        let unusable = |error| explain::credentials(path, &error);
        let text = std::fs::read_to_string(path).map_err(unusable)?;
        options = options.credentials(&text).map_err(unusable)?;
    }
    if let Some(TlsFiles { ca, certificate }) = &config.tls {
        options = options.require_tls(true);
        if let Some(ca) = ca {
            options = options.add_root_certificates(ca.clone());
        }
        if let Some((certificate, key)) = certificate {
            options = options.add_client_certificate(certificate.clone(), key.clone());
        }
    }
    let client = options.connect(&config.servers[..]).await;
    let client = client.map_err(|error| explain::connect(config, &error))?;
    is_connected.store(true, Ordering::Relaxed);
    Ok(client)
}
