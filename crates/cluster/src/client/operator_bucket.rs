//! The bucket with the settings of operators: its creation, and reads and writes of its keys.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::context::CreateStreamErrorKind;
use async_nats::jetstream::stream::{
    Config, DiscardPolicy, LastRawMessageErrorKind, StorageType, Stream,
};
use async_nats::jetstream::{Context, ErrorCode};
use async_nats::{Client, HeaderMap};
use tokio::sync::mpsc::Sender;

use super::change::{MARKER_REASON, OPERATION};
use super::explain;
use super::messages::Message;
use super::read::{Keys, Reading, read_keys};
use super::write::{Answer, put};
use crate::message::OperationId;
use crate::operator::{Entry, History, OperatorCommand, OperatorEvent, OperatorKey, Stored};

/// The name of the bucket, after that of the site.
const NAME: &str = "operator";
/// Earlier values of each key that are kept, for people.
const HISTORY: i64 = 5;
/// The maximum size of the bucket: about 10,000 servers.
const BYTES_MAX: i64 = 16 << 20;
/// The maximum size of a message with its headers, in bytes.
const MESSAGE_MAX: i32 = 4096;
/// The time until the bucket is opened again.
const RETRY: Duration = Duration::from_secs(5);

/// The bucket, on one connection.
#[derive(Debug)]
pub(super) struct OperatorBucket {
    client: Client,
    stream: Stream,
    /// The first part of the subject of each key, with its dot.
    prefix: String,
    events: Sender<Message>,
}

/// The stream of the bucket. It is in files: a command stays in force when all servers restart.
fn stream_config(bucket: &str, replicas: usize) -> Config {
    Config {
        name: format!("KV_{bucket}"),
        subjects: vec![format!("$KV.{bucket}.>")],
        max_messages_per_subject: HISTORY,
        max_bytes: BYTES_MAX,
        max_message_size: MESSAGE_MAX,
        storage: StorageType::File,
        discard: DiscardPolicy::New,
        num_replicas: replicas,
        allow_rollup: true,
        deny_delete: true,
        ..Config::default()
    }
}

impl OperatorBucket {
    /// Opens the bucket, and creates it if it does not exist. It is tried again until it succeeds: shared bindings do
    /// not depend on it. `None`: the connection has ended.
    pub(super) async fn open(
        client: &Client,
        context: &Context,
        (site, replicas): (&str, usize),
        events: &Sender<Message>,
    ) -> Option<(Arc<Self>, OperatorEvent)> {
        let bucket = format!("{site}_{NAME}");
        loop {
            let opened = open_stream(context, &bucket, replicas).await;
            let reason = match opened {
                Ok((stream, event)) => {
                    let prefix = format!("$KV.{bucket}.");
                    let (client, events) = (client.clone(), events.clone());
                    return Some((Arc::new(Self { client, stream, prefix, events }), event));
                }
                Err(reason) => reason,
            };
            events.send(Message::OperatorTrouble(reason)).await.ok()?;
            tokio::time::sleep(RETRY).await;
        }
    }

    /// Carries out a command. Its event is sent to the loop.
    pub(super) async fn carry_out(&self, command: OperatorCommand) {
        let event = match command {
            OperatorCommand::Watch { operation } => {
                let keys = Keys {
                    stream: &self.stream,
                    prefix: &self.prefix,
                    filter: ">".to_owned(),
                    from: DeliverPolicy::LastPerSubject,
                    is_live: true,
                };
                if let Err(reason) =
                    read_keys(keys, &OperatorReading(operation), &self.events).await
                {
                    let _ = self.events.send(Message::Lost(reason)).await;
                }
                return;
            }
            OperatorCommand::Get { operation, key } => match self.get(&key).await {
                Ok(found) => OperatorEvent::Got { operation, found },
                Err(()) => OperatorEvent::Unanswered { operation },
            },
            OperatorCommand::Write { operation, key, entry, expect } => {
                let subject = format!("{}{}", self.prefix, key.name());
                let payload = bytes::Bytes::from(entry.encode());
                match put(&self.client, subject, HeaderMap::new(), payload, expect).await {
                    Some(Answer::Accepted(revision)) => {
                        OperatorEvent::Written { operation, revision }
                    }
                    Some(Answer::LostRace) => OperatorEvent::LostRace { operation },
                    Some(Answer::Rejected(reason)) => OperatorEvent::Rejected { operation, reason },
                    None => OperatorEvent::Unanswered { operation },
                }
            }
        };
        let _ = self.events.send(Message::Operator(event)).await;
    }

    /// Reads the last value of a key, from the leader of the stream.
    async fn get(&self, key: &OperatorKey) -> Result<Option<(u64, Stored)>, ()> {
        let subject = format!("{}{}", self.prefix, key.name());
        match self.stream.get_last_raw_message_by_subject(&subject).await {
            Ok(message) => {
                let stored = stored(key, Some(&message.headers), &message.payload);
                Ok(Some((message.sequence, stored)))
            }
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
            Err(_) => Err(()),
        }
    }
}

async fn open_stream(
    context: &Context,
    bucket: &str,
    replicas: usize,
) -> Result<(Stream, OperatorEvent), String> {
    let config = stream_config(bucket, replicas);
    let stream = match context.create_stream(config.clone()).await {
        Ok(stream) => stream,
        Err(error) => {
            let in_use = matches!(
                error.kind(),
                CreateStreamErrorKind::JetStream(ref error)
                    if error.error_code() == ErrorCode::STREAM_NAME_EXIST
            );
            if !in_use {
                return Err(explain::create(bucket, &error));
            }
            let opened = context.get_stream(&config.name).await;
            opened.map_err(|error| format!("the bucket `{bucket}` cannot be opened: {error}"))?
        }
    };
    let info = stream.get_info().await;
    let info = info.map_err(|error| format!("the bucket `{bucket}` cannot be read: {error}"))?;
    let known = &info.config;
    if known.storage != StorageType::File || !known.max_age.is_zero() {
        return Err(format!(
            "the bucket `{bucket}` exists and has another purpose: it is not in files, or its entries expire"
        ));
    }
    if known.num_replicas != replicas {
        tracing::warn!(
            "the bucket `{bucket}` is stored by {} servers instead of {replicas}",
            known.num_replicas
        );
    }
    let history = History(info.created.unix_timestamp_nanos());
    Ok((stream, OperatorEvent::Connected { history, last: info.state.last_sequence }))
}

fn stored(key: &OperatorKey, headers: Option<&HeaderMap>, payload: &[u8]) -> Stored {
    let has = |name| headers.is_some_and(|headers| headers.get(name).is_some());
    if has(OPERATION) || has(MARKER_REASON) {
        return Stored::Deleted;
    }
    Entry::decode(key, payload).map_or(Stored::Unreadable, Stored::Put)
}

/// The watch of the bucket.
struct OperatorReading(OperationId);

impl Reading for OperatorReading {
    fn change(
        &self,
        name: &str,
        revision: u64,
        headers: Option<&HeaderMap>,
        payload: &[u8],
    ) -> Option<Message> {
        let key = OperatorKey::from_name(name)?;
        let stored = stored(&key, headers, payload);
        let operation = self.0;
        Some(Message::Operator(OperatorEvent::Changed { operation, key, revision, stored }))
    }

    fn caught_up(&self, revision: u64) -> Message {
        Message::Operator(OperatorEvent::CaughtUp { operation: self.0, revision })
    }

    fn behind(&self, _: u64) -> Option<Message> {
        None
    }
}
