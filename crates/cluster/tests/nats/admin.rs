//! An administrator of the NATS servers, who changes a bucket behind the daemons.

use std::time::Duration;

use async_nats::jetstream::stream::{Config, Stream};
use async_nats::jetstream::{self, Context};
use futures_util::StreamExt as _;

use crate::daemon::wait_for;

/// The stream of the bucket of the tests.
pub(crate) const STREAM: &str = "KV_site_web";

pub(crate) struct Admin {
    runtime: tokio::runtime::Handle,
    context: Context,
    /// The runtime ends when this is dropped.
    _end: tokio::sync::oneshot::Sender<()>,
}

/// A message of the stream.
pub(crate) struct Copied {
    subject: async_nats::Subject,
    headers: async_nats::HeaderMap,
    payload: bytes::Bytes,
}

impl Admin {
    pub(crate) fn connect(urls: &[String]) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let handle = runtime.handle().clone();
        let (end, is_over) = tokio::sync::oneshot::channel();
        // Another thread answers the pings of the server.
        std::thread::spawn(move || drop(runtime.block_on(is_over)));
        let options = async_nats::ConnectOptions::new().retry_on_initial_connect();
        let client = handle.block_on(options.connect(urls)).unwrap();
        let _entered = handle.enter();
        let mut context = jetstream::new(client);
        context.set_timeout(Duration::from_secs(10));
        Self { runtime: handle.clone(), context, _end: end }
    }

    fn stream(&self) -> Stream {
        self.runtime.block_on(self.context.get_stream(STREAM)).unwrap()
    }

    pub(crate) fn config(&self) -> Config {
        self.stream().cached_info().config.clone()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.stream().cached_info().state.bytes
    }

    pub(crate) fn messages(&self) -> u64 {
        self.stream().cached_info().state.messages
    }

    pub(crate) fn create(&self, config: Config) {
        // For a moment after its deletion, the servers may still have the old one.
        wait_for("the stream can be created", Duration::from_secs(60), || {
            self.runtime.block_on(self.context.create_stream(config.clone())).is_ok()
        });
    }

    pub(crate) fn update(&self, change: impl FnOnce(&mut Config)) {
        let mut config = self.config();
        change(&mut config);
        self.runtime.block_on(self.context.update_stream(config)).unwrap();
    }

    pub(crate) fn purge(&self) {
        self.runtime.block_on(async { self.stream_now().await.purge().await }).unwrap();
    }

    pub(crate) fn delete(&self) {
        self.runtime.block_on(self.context.delete_stream(STREAM)).unwrap();
    }

    async fn stream_now(&self) -> Stream {
        self.context.get_stream(STREAM).await.unwrap()
    }

    /// Copies all messages, in their order.
    pub(crate) fn copy(&self) -> Vec<Copied> {
        self.runtime.block_on(async {
            let stream = self.stream_now().await;
            let count = usize::try_from(stream.cached_info().state.messages).unwrap();
            let config = jetstream::consumer::pull::OrderedConfig::default();
            let consumer = stream.create_consumer(config).await.unwrap();
            let messages = consumer.messages().await.unwrap().take(count);
            let copied = messages.map(|message| {
                let message = message.unwrap();
                let mut headers = message.headers.clone().unwrap_or_default();
                // It is a condition of the original write.
                headers = headers
                    .iter()
                    .filter(|(name, _)| !name.to_string().starts_with("Nats-Expected"))
                    .flat_map(|(name, values)| {
                        values.iter().map(move |it| (name.clone(), it.clone()))
                    })
                    .collect();
                Copied {
                    subject: message.subject.clone(),
                    headers,
                    payload: message.payload.clone(),
                }
            });
            copied.collect().await
        })
    }

    /// Publishes copied messages again.
    pub(crate) fn publish(&self, messages: Vec<Copied>) {
        for Copied { subject, headers, payload } in messages {
            // For a moment after its creation, the servers may not know the stream.
            wait_for("a message is stored", Duration::from_secs(60), || {
                let (subject, headers) = (subject.clone(), headers.clone());
                let publish = self.context.publish_with_headers(subject, headers, payload.clone());
                self.runtime.block_on(async { publish.await.ok()?.await.ok() }).is_some()
            });
        }
    }
}
