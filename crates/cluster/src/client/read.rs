//! Reads of many keys: watches and fetches.
//!
//! Each is a consumer of its own, which exists as long as it is read. The server numbers the messages of a consumer, so
//! a gap is visible; then the read ends, and with it the connection.

use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use async_nats::jetstream::stream::Stream;
use futures_util::StreamExt as _;
use tokio::sync::mpsc::Sender;

use super::bucket::Bucket;
use super::change;
use super::messages::Message;
use crate::message::{Event, OperationId};

/// The maximum number of messages that the server sends ahead.
const AHEAD_MAX: usize = 4096;
/// The maximum silence of the server.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// How long the server keeps a consumer that is not read.
const INACTIVE: Duration = Duration::from_secs(60);
/// How often the number of missing changes is reported, in messages.
const BEHIND_EVERY: u64 = 1024;

/// One read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Range {
    /// All keys, from a revision; `None`: the last value of each key. Then live.
    All(Option<u64>),
    /// The last value of each key of a shard.
    Shard(u8),
}

/// The keys to read.
#[derive(Debug)]
pub(super) struct Keys<'a> {
    pub(super) stream: &'a Stream,
    /// The first part of the subject of each key.
    pub(super) prefix: &'a str,
    /// The rest of the subjects.
    pub(super) filter: String,
    pub(super) from: DeliverPolicy,
    /// Whether the read goes on after the end of the stream was reached.
    pub(super) is_live: bool,
}

/// The messages that a read sends.
pub(super) trait Reading {
    /// A key was written. `None`: it is not a key of this version.
    fn change(
        &self,
        name: &str,
        revision: u64,
        headers: Option<&HeaderMap>,
        payload: &[u8],
    ) -> Option<Message>;

    /// The end of the stream, as it was when the read began, was reached.
    fn caught_up(&self, revision: u64) -> Message;

    /// The server has not yet delivered this number of messages.
    fn behind(&self, pending: u64) -> Option<Message>;
}

/// Reads keys of a table until the end: a fetch ends, a watch only fails.
pub(super) async fn read(
    bucket: &Bucket,
    table: usize,
    operation: OperationId,
    range: Range,
    events: &Sender<Message>,
) -> Result<(), String> {
    let (from, filter) = match range {
        Range::All(Some(from)) => {
            (DeliverPolicy::ByStartSequence { start_sequence: from }, ">".to_owned())
        }
        Range::All(None) => (DeliverPolicy::LastPerSubject, ">".to_owned()),
        Range::Shard(shard) => (DeliverPolicy::LastPerSubject, format!("{shard:02x}.*")),
    };
    let is_live = matches!(range, Range::All(_));
    let keys = Keys { stream: &bucket.stream, prefix: &bucket.prefix, filter, from, is_live };
    read_keys(keys, &TableReading { table, operation, range }, events).await
}

/// Reads keys until the end of the stream if the read is not live. A live read only fails.
pub(super) async fn read_keys(
    keys: Keys<'_>,
    reading: &impl Reading,
    events: &Sender<Message>,
) -> Result<(), String> {
    let Keys { stream, prefix, filter, from, is_live } = keys;
    let send = async |message| events.send(message).await.map_err(|_| ENDED.to_owned());
    let state = stream.get_info().await.map_err(|error| error.to_string())?.state;
    let end = state.last_sequence;
    let config = pull::Config {
        deliver_policy: from,
        filter_subject: format!("{prefix}{filter}"),
        ack_policy: AckPolicy::None,
        memory_storage: true,
        num_replicas: 1,
        inactive_threshold: INACTIVE,
        ..pull::Config::default()
    };
    let consumer = stream.create_consumer(config).await;
    let consumer = consumer.map_err(|error| format!("a watch cannot be created: {error}"))?;
    let pending = consumer.cached_info().num_pending;
    let mut is_caught_up = pending == 0;
    if is_caught_up {
        send(reading.caught_up(end)).await?;
    }
    let mut number = 0;
    if is_live || !is_caught_up {
        let messages = consumer
            .stream()
            .max_messages_per_batch(AHEAD_MAX)
            .heartbeat(HEARTBEAT)
            .expires(HEARTBEAT * 6)
            .messages();
        let messages = messages.await;
        let mut messages = messages.map_err(|error| format!("a watch cannot be read: {error}"))?;
        while let Some(message) = messages.next().await {
            let message = message.map_err(|error| format!("a watch was interrupted: {error}"))?;
            let info = message.info().map_err(|error| error.to_string())?;
            number += 1;
            if info.consumer_sequence != number || info.delivered > 1 {
                return Err("a watch has a gap".to_owned());
            }
            let (revision, pending) = (info.stream_sequence, info.pending);
            let name = message.subject.strip_prefix(prefix).unwrap_or_default();
            let headers = message.headers.as_ref();
            if let Some(change) = reading.change(name, revision, headers, &message.payload) {
                send(change).await?;
            }
            if (pending == 0 || number.is_multiple_of(BEHIND_EVERY))
                && let Some(behind) = reading.behind(pending)
            {
                send(behind).await?;
            }
            if !is_caught_up && (pending == 0 || revision >= end) {
                is_caught_up = true;
                send(reading.caught_up(end)).await?;
                if !is_live {
                    break;
                }
            }
        }
    }
    if is_live {
        return Err("a watch has ended".to_owned());
    }
    // If it is not deleted now, the server deletes it later.
    let _ = stream.delete_consumer(&consumer.cached_info().name).await;
    Ok(())
}

const ENDED: &str = "the client has ended";

/// A read of a table.
struct TableReading {
    table: usize,
    operation: OperationId,
    range: Range,
}

impl Reading for TableReading {
    fn change(
        &self,
        name: &str,
        revision: u64,
        headers: Option<&HeaderMap>,
        payload: &[u8],
    ) -> Option<Message> {
        let change = change::change(name, revision, headers, payload)?;
        Some(Message::Event(self.table, Event::Changed { operation: self.operation, change }))
    }

    fn caught_up(&self, revision: u64) -> Message {
        let operation = self.operation;
        let event = match self.range {
            Range::All(_) => Event::CaughtUp { operation, revision },
            Range::Shard(_) => Event::Fetched { operation, revision },
        };
        Message::Event(self.table, event)
    }

    fn behind(&self, pending: u64) -> Option<Message> {
        Some(Message::Behind(self.table, pending))
    }
}
