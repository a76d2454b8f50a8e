//! Reads of many keys: watches and fetches.
//!
//! Each is a consumer of its own, which exists as long as it is read. The server numbers the messages of a consumer, so
//! a gap is visible; then the read ends, and with it the connection.

use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
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

/// Reads until the end: a fetch ends, a watch only fails.
pub(super) async fn read(
    bucket: &Bucket,
    table: usize,
    operation: OperationId,
    range: Range,
    events: &Sender<Message>,
) -> Result<(), String> {
    let state = bucket.stream.get_info().await.map_err(|error| error.to_string())?.state;
    let end = state.last_sequence;
    let (deliver_policy, filter) = match range {
        Range::All(Some(from)) => (DeliverPolicy::ByStartSequence { start_sequence: from }, ">"),
        Range::All(None) => (DeliverPolicy::LastPerSubject, ">"),
        Range::Shard(_) => (DeliverPolicy::LastPerSubject, "*"),
    };
    let filter_subject = match range {
        Range::All(_) => format!("{}{filter}", bucket.prefix),
        Range::Shard(shard) => format!("{}{shard:02x}.{filter}", bucket.prefix),
    };
    let config = pull::Config {
        deliver_policy,
        filter_subject,
        ack_policy: AckPolicy::None,
        memory_storage: true,
        num_replicas: 1,
        inactive_threshold: INACTIVE,
        ..pull::Config::default()
    };
    let consumer = bucket.stream.create_consumer(config).await;
    let consumer = consumer.map_err(|error| format!("a watch cannot be created: {error}"))?;
    let pending = consumer.cached_info().num_pending;
    let read = Read { table, operation, range, end, events };
    let mut is_caught_up = pending == 0;
    if is_caught_up {
        read.caught_up().await?;
    }
    let mut number = 0;
    if !(is_caught_up && matches!(range, Range::Shard(_))) {
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
            let name = message.subject.strip_prefix(&*bucket.prefix).unwrap_or_default();
            let headers = message.headers.as_ref();
            if let Some(change) = change::change(name, revision, headers, &message.payload) {
                read.send(Event::Changed { operation, change }).await?;
            }
            if pending == 0 || number.is_multiple_of(BEHIND_EVERY) {
                let behind = Message::Behind(table, pending);
                events.send(behind).await.map_err(|_| ENDED.to_owned())?;
            }
            if !is_caught_up && (pending == 0 || revision >= end) {
                is_caught_up = true;
                read.caught_up().await?;
                if matches!(range, Range::Shard(_)) {
                    break;
                }
            }
        }
    }
    if matches!(range, Range::All(_)) {
        return Err("a watch has ended".to_owned());
    }
    // If it is not deleted now, the server deletes it later.
    let _ = bucket.stream.delete_consumer(&consumer.cached_info().name).await;
    Ok(())
}

const ENDED: &str = "the client has ended";

struct Read<'a> {
    table: usize,
    operation: OperationId,
    range: Range,
    /// The last sequence of the stream before the read began.
    end: u64,
    events: &'a Sender<Message>,
}

impl Read<'_> {
    async fn send(&self, event: Event) -> Result<(), String> {
        let sent = self.events.send(Message::Event(self.table, event)).await;
        sent.map_err(|_| ENDED.to_owned())
    }

    async fn caught_up(&self) -> Result<(), String> {
        let (operation, revision) = (self.operation, self.end);
        self.send(match self.range {
            Range::All(_) => Event::CaughtUp { operation, revision },
            Range::Shard(_) => Event::Fetched { operation, revision },
        })
        .await
    }
}
