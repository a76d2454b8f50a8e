//! Datagram listeners: one datagram is one request, and its reply is one datagram to its sender.
//!
//! There is no connection. `connections_max` limits the requests in flight. A request is served even if its sender is
//! gone.
//!
//! The address of a sender may be forged, so that two daemons send to each other. Therefore a datagram that begins like
//! one of our errors is never answered with an error, and a datagram over the limits of its address is not answered at
//! all.

use event::{Context, Origin, SocketId};
use exchange::{Cause, ListenerId, Outcome, Peer, Phase, Slice};

use super::Shard;
use crate::drain::Stage;
use flow::client::{Client, Source};
use flow::reply_event::ReplyEvent;
use flow::request_meta::RequestMeta;
use frontend::listener::ListenerConfig;
use observe::access_log::AccessEntry;
use observe::closings::Closing;

/// The maximum payload of UDP over IPv4, in bytes.
const DATAGRAM_MAX: usize = 65_507;
/// The first byte of an error.
const ERROR: u8 = b'!';

impl Shard {
    pub(super) fn datagram(
        &mut self,
        io: &mut Context<'_>,
        socket: SocketId,
        from: &Origin,
        bytes: &[u8],
    ) {
        let found = self.listeners.entries().find(|(_, it)| it.datagrams == Some(socket));
        let Some((id, _)) = found else { return };
        let peer = from.internet().map_or(Peer::Local, Peer::Internet);
        let source = Source::of_listener(peer, id);
        let listener = &mut self.listeners[id];
        let config = std::sync::Arc::clone(&listener.config);
        if self.admission.as_mut().is_some_and(|admits| !admits(&config.name, &peer)) {
            listener.rejections.count_admission();
            return;
        }
        let admission = self.listener_limits.at(id).datagram(self.engine.now, peer);
        if admission == Err(Cause::Denied) {
            // The answer would go to the address in the datagram, which may be forged.
            listener.rejections.count(Cause::Denied);
            return;
        }
        let hears_errors = bytes.first() != Some(&ERROR);
        let (max, frame_max) = (config.connections_max, config.datagram_max);
        let refusal =
            if matches!(self.drain.stage, Stage::LastRequests | Stage::Serving | Stage::Closing) {
                Some((Cause::Draining, "the daemon is about to end".to_owned()))
            } else if bytes.len() > frame_max {
                Some((Cause::TooLong, format!("a datagram has at most {frame_max} bytes")))
            } else if listener.datagrams_in_flight >= max {
                Some((Cause::Connections, format!("listener {} has {max} requests", config.name)))
            } else {
                admission.err().map(|cause| (cause, cause.meaning().to_owned()))
            };
        if let Some((cause, text)) = refusal {
            listener.rejections.count(cause);
            let outcome = Outcome::ended(cause, Phase::Receive, &text);
            let entry = self.begin_entry(&config, bytes);
            self.engine.refused_at_receipt(config.connection.pool, source, &outcome, entry);
            if hears_errors && cause != Cause::Rate {
                self.answer(io, id, from, outcome);
            }
            return;
        }
        listener.accepted += 1;
        listener.datagrams_in_flight += 1;
        let client = Client::Datagram { listener: id, to: Box::new(from.clone()), hears_errors };
        let entry = self.begin_entry(&config, bytes);
        let request = (Slice::copy_of(bytes).into(), RequestMeta::default());
        self.engine.submit(client, source, request, config.connection.pool, entry);
    }

    fn begin_entry(
        &mut self,
        config: &std::sync::Arc<ListenerConfig>,
        bytes: &[u8],
    ) -> Option<Box<AccessEntry>> {
        let mut entry = self.engine.access_log.begin(config.connection.logged.as_ref())?;
        entry.bytes_in = bytes.len() as u64;
        Some(entry)
    }

    /// Sends the outcome of a datagram.
    pub(super) fn deliver_datagram(
        &mut self,
        io: &mut Context<'_>,
        id: ListenerId,
        (to, hears_errors): (&Origin, bool),
        reply_event: ReplyEvent,
    ) {
        if let ReplyEvent::End(outcome) = reply_event {
            self.listeners[id].datagrams_in_flight -= 1;
            if hears_errors || !matches!(outcome, Outcome::Ended(..)) {
                self.answer(io, id, to, outcome);
            }
        }
    }

    fn answer(&mut self, io: &mut Context<'_>, id: ListenerId, to: &Origin, outcome: Outcome) {
        let outcome = match outcome {
            Outcome::Reply(body) if body.len() > DATAGRAM_MAX => {
                let text = format!("a datagram carries at most {DATAGRAM_MAX} bytes");
                Outcome::ended(Cause::Reply, Phase::Reply, &text)
            }
            // The request was rejected in both cases, and for the same reason.
            Outcome::Fallback(end, body) if body.len() > DATAGRAM_MAX => {
                let text = format!("the answer in its place has more than {DATAGRAM_MAX} bytes");
                Outcome::Ended(end, Slice::from(text.as_str()))
            }
            outcome => outcome,
        };
        let Some(socket) = self.listeners[id].datagrams else { return };
        let taken = match &outcome {
            Outcome::Reply(body) | Outcome::Fallback(_, body) => io.send_datagram(socket, to, body),
            Outcome::Ended(..) => {
                self.scratch.bytes.clear();
                self.listeners[id]
                    .config
                    .protocol_config
                    .write_refusal(&outcome, &mut self.scratch.bytes);
                io.send_datagram(socket, to, &self.scratch.bytes)
            }
        };
        // The output buffer is full, or the sender has no address.
        if !taken {
            self.listeners[id].closings.count(Closing::Stalled);
        }
    }

    /// Whether requests of datagrams are in flight.
    pub(super) fn has_datagrams_in_flight(&self) -> bool {
        self.listeners.values().any(|listener| listener.datagrams_in_flight > 0)
    }
}
