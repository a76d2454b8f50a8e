//! The bucket of one table: its creation, its state, and the read of one key.

use async_nats::Client;
use async_nats::jetstream::stream::{
    Config, DiscardPolicy, LastRawMessageErrorKind, StorageType, Stream,
};
use async_nats::jetstream::{Context, ErrorCode};
use std::time::Duration;

use super::change;
use super::explain;
use crate::message::{Change, ChangeKind, Event, Subject, Value};
use crate::settings::Settings;

/// Memory of the servers per entry, in bytes: its subject, its headers, its value and the index of the server.
const BYTES_PER_ENTRY: u64 = 320;
/// The maximum size of a message with its headers, in bytes.
const MESSAGE_MAX: i32 = 512;

/// The bucket of one table, on one connection.
#[derive(Debug)]
pub(super) struct Bucket {
    pub(super) client: Client,
    pub(super) stream: Stream,
    /// The first part of the subject of each key, with its dot.
    pub(super) prefix: String,
}

/// The name of the bucket of a table.
pub(super) fn bucket_name(site: &str, table: &str) -> String {
    format!("{site}_{table}")
}

/// The stream of the bucket. It is in memory: bindings live as long as one of the servers that store them.
fn stream_config(bucket: &str, settings: &Settings, replicas: usize) -> Config {
    let max_age = Duration::from_millis(settings.max_age_ms());
    let bytes = u64::from(settings.entries_max) * BYTES_PER_ENTRY + (1 << 20);
    Config {
        name: format!("KV_{bucket}"),
        subjects: vec![format!("$KV.{bucket}.>")],
        max_messages_per_subject: 1,
        max_bytes: i64::try_from(bytes).unwrap_or(i64::MAX),
        max_message_size: MESSAGE_MAX,
        max_age,
        // Long enough for a daemon that continues after a short interruption.
        subject_delete_marker_ttl: Some((max_age / 2).max(Duration::from_secs(1))),
        allow_message_ttl: true,
        duplicate_window: max_age.min(Duration::from_secs(2)),
        storage: StorageType::Memory,
        discard: DiscardPolicy::New,
        num_replicas: replicas,
        allow_rollup: true,
        deny_delete: true,
        ..Config::default()
    }
}

impl Bucket {
    /// Opens the bucket of a table, and creates it if it does not exist. An existing bucket gets the lifetime and the
    /// size of this daemon's settings.
    pub(super) async fn open(
        client: &Client,
        context: &Context,
        bucket: &str,
        settings: &Settings,
        replicas: usize,
    ) -> Result<Self, String> {
        let config = stream_config(bucket, settings, replicas);
        let prefix = format!("$KV.{bucket}.");
        let opened = |stream| Self { client: client.clone(), stream, prefix };
        let error = match context.create_stream(config.clone()).await {
            Ok(stream) => return Ok(opened(stream)),
            Err(error) => error,
        };
        let in_use = matches!(
            error.kind(),
            async_nats::jetstream::context::CreateStreamErrorKind::JetStream(ref error)
                if error.error_code() == ErrorCode::STREAM_NAME_EXIST
        );
        if !in_use {
            return Err(explain::create(bucket, &error));
        }
        let stream = context
            .get_stream(&config.name)
            .await
            .map_err(|error| format!("the bucket `{bucket}` cannot be opened: {error}"))?;
        let known = &stream.cached_info().config;
        if (known.max_age, known.max_bytes) != (config.max_age, config.max_bytes) {
            tracing::warn!(
                "the bucket `{bucket}` was created with other limits ({:?}, {} bytes) and gets those of this daemon \
                 ({:?}, {} bytes): all daemons should have the same `lifetime` and `entries`",
                known.max_age,
                known.max_bytes,
                config.max_age,
                config.max_bytes,
            );
            let update = Config {
                max_age: config.max_age,
                max_bytes: config.max_bytes,
                subject_delete_marker_ttl: config.subject_delete_marker_ttl,
                duplicate_window: config.duplicate_window,
                ..known.clone()
            };
            context
                .update_stream(update)
                .await
                .map_err(|error| format!("the bucket `{bucket}` cannot be changed: {error}"))?;
        }
        if known.num_replicas != replicas {
            tracing::warn!(
                "the bucket `{bucket}` is stored by {} servers instead of {replicas}",
                known.num_replicas
            );
        }
        Ok(opened(stream))
    }

    /// Reads the state of the stream and the epoch.
    pub(super) async fn connected(&self) -> Result<Event, String> {
        let state = self.stream.get_info().await.map_err(|error| error.to_string())?.state;
        let epoch = match self.get(Subject::Epoch).await? {
            Some(Change { revision, kind: ChangeKind::Put(Value::Epoch(epoch)), .. }) => {
                Some((epoch, revision))
            }
            _ => None,
        };
        Ok(Event::Connected { epoch, first: state.first_sequence, last: state.last_sequence })
    }

    /// Reads the last change of a key, from the leader of the stream: another server may be behind.
    pub(super) async fn get(&self, subject: Subject) -> Result<Option<Change>, String> {
        let name = change::name(subject);
        let subject = format!("{}{name}", self.prefix);
        match self.stream.get_last_raw_message_by_subject(&subject).await {
            Ok(message) => Ok(change::change(
                &name,
                message.sequence,
                Some(&message.headers),
                &message.payload,
            )),
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(format!("a key cannot be read: {error}")),
        }
    }
}
