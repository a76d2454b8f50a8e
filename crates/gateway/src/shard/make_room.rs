//! What a shard does if open files are short. Idle connections are closed for new connections and for workers; workers
//! have priority. If no connection is idle, new clients are rejected. The log names the limit to raise.

use std::time::Duration;

use event::{Context, StreamId};
use exchange::{Cause, ListenerId, Outcome, Peer, Phase};

use super::Shard;
use super::shortage::{Among, CLOSE_BATCH, SEARCH_INTERVAL_MS, Shortage};
use crate::descriptors::Supply;
use crate::shard_mail::ShardMail;
use observe::closings::Closing;

/// The minimum time between two log lines.
const LOG_INTERVAL: Duration = Duration::from_secs(10);
impl Shard {
    /// Ensures that a connection which was just accepted leaves enough descriptors for workers. Returns false if the
    /// connection was rejected because no connection is idle.
    pub(super) fn ensure_descriptors(
        &mut self,
        io: &mut Context<'_>,
        stream: StreamId,
        peer: Peer,
        id: ListenerId,
    ) -> bool {
        let number = io.descriptor(stream).unwrap_or(0);
        let supply = self.fleet.descriptors().supply(number);
        if supply == Supply::Enough || self.make_room(io, 1) {
            return true;
        }
        self.shortage.rejected += 1;
        self.note_shortage();
        if supply == Supply::Last {
            // An answer would keep the descriptor in use until the client has read it.
            self.listeners[id].rejections.count(Cause::Connections);
            io.close(stream);
            return false;
        }
        let text = "the daemon has hardly any open file left, and no connection is idle";
        let outcome = Outcome::ended(Cause::Connections, Phase::Receive, text);
        self.refuse_connection(io, stream, peer, id, outcome);
        false
    }

    /// Handles that the system refused a descriptor for a connection that waits to be accepted.
    pub(super) fn lacks_descriptor_to_accept(&mut self, io: &mut Context<'_>) {
        if self.shortage.closed_in != self.turns {
            self.lacks_descriptor(io, CLOSE_BATCH);
        }
    }

    /// Handles that the system refused a descriptor. Closes up to `most` connections.
    pub(super) fn lacks_descriptor(&mut self, io: &mut Context<'_>, most: usize) {
        // If the limit is unknown, it is uncertain whether closing idle clients helps.
        if self.fleet.descriptors().max().is_some() {
            self.make_room(io, most);
        }
        self.note_shortage();
    }

    /// Closes up to `most` idle connections. Connections to servers are closed first, because they are opened again
    /// when they are needed. Then the client connections of any listener that have been silent longest are closed. If
    /// this shard has no idle connection, the other shards are asked to close some, and false is returned.
    pub(super) fn make_room(&mut self, io: &mut Context<'_>, most: usize) -> bool {
        let closed = self.close_idle(io, most);
        let is_alone = self.fleet.length() == 1;
        if !closed && !is_alone && io.tick() >= self.shortage.ask_after {
            self.shortage.ask_after = io.tick() + SEARCH_INTERVAL_MS;
            let shard_link = (0..).take(self.fleet.length());
            for shard in shard_link.filter(|shard| *shard != self.engine.shard_link.me()) {
                self.fleet.mailbox(shard).post(ShardMail::MakeRoom);
            }
        }
        closed
    }

    pub(super) fn close_idle(&mut self, io: &mut Context<'_>, most: usize) -> bool {
        let before = self.shortage.closed;
        for _ in 0..most {
            if self.backends.close_idle_server(io) {
                self.shortage.closed += 1;
                continue;
            }
            let Some(id) = self.longest_idle(io, Among::All) else { break };
            self.count_closing(id, Closing::Displaced);
            self.leave(io, id, Cause::Left);
            self.shortage.closed += 1;
        }
        let closed = self.shortage.closed > before;
        if closed {
            self.shortage.closed_in = self.turns;
            self.note_shortage();
        }
        closed
    }

    fn note_shortage(&mut self) {
        let now = self.engine.now;
        let Shortage { logged, closed, rejected, .. } = &mut self.shortage;
        if logged.is_some_and(|logged| now.duration_since(logged) < LOG_INTERVAL) {
            return;
        }
        *logged = Some(now);
        let (closed, rejected) = (std::mem::take(closed), std::mem::take(rejected));
        let limit = self.fleet.descriptors().max();
        let limit = limit.map_or_else(|| "unknown".to_owned(), |limit| limit.to_string());
        tracing::warn!(
            closed,
            rejected,
            "open files are short (the limit is {limit}): idle connections are closed, and new ones rejected where none \
             is idle; raise the limit (LimitNOFILE= of systemd, ulimit -n) or lower connections_max"
        );
    }
}
