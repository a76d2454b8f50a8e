//! The steps of a drain; `drain.rs` has the diagram.

use super::Shard;
use crate::drain::{DrainLimits, Stage};
use event::Context;
use frontend::session::Session;

impl Shard {
    pub(super) fn begin_drain(&mut self, io: &mut Context<'_>) {
        self.drain.begin(io);
    }

    fn close_listeners(&mut self, io: &mut Context<'_>) {
        for listener in self.listeners.values_mut() {
            if let Some(id) = listener.id.take() {
                io.close_listener(id);
            }
        }
    }

    pub(super) fn drain_timer(&mut self, io: &mut Context<'_>) {
        if self.drain.stage == Stage::Closing {
            let unread = self.sessions.values().filter(|session| session.is_unread(io)).count();
            self.drain.result.unread += unread;
            return io.stop();
        }
        self.drain.result.cut = self.engine.exchanges_to_end();
        tracing::error!(requests = self.drain.result.cut, "the drain took too long and is cut");
        self.engine.end_all();
        self.backends.interrupt();
        self.close_sessions(io);
    }

    fn close_sessions(&mut self, io: &mut Context<'_>) {
        self.drain.close(io);
        self.hand_out(io);
        for session in self.sessions.values_mut() {
            let mut cx = session_context!(self, io);
            session.flush_and_finish(&mut cx);
        }
        if self.sessions.is_empty() {
            io.stop();
        }
    }

    /// Performs one step of the drain, at the end of a turn.
    pub(super) fn drain_on(&mut self, io: &mut Context<'_>) {
        match self.drain.stage {
            Stage::Running => {}
            Stage::Asked => self.drain.stage = Stage::LastRead,
            Stage::LastRead => {
                self.drain.stage = Stage::LastRequests;
                self.close_listeners(io);
                let DrainLimits { within: _, keepalive_timeout } = self.drain.limits;
                self.engine.drain_keepalive_timeout = Some(keepalive_timeout);
                for session in self.sessions.values_mut() {
                    let mut cx = session_context!(self, io);
                    session.begin_drain(&mut cx);
                }
                self.end_requests(io);
            }
            Stage::LastRequests => self.end_requests(io),
            Stage::Serving => self.stop_pools(io),
            Stage::Closing => {
                if self.sessions.is_empty() {
                    io.stop();
                }
            }
        }
    }

    /// Notifies the other shards once no client can submit a request any more.
    fn end_requests(&mut self, io: &mut Context<'_>) {
        if self.sessions.values().any(Session::may_ask) {
            return;
        }
        self.drain.stage = Stage::Serving;
        self.engine.shard_link.say_serving();
        self.stop_pools(io);
    }

    /// Ends the workers of pools that no request can reach any more. When all have ended, the connections of clients
    /// are closed.
    fn stop_pools(&mut self, io: &mut Context<'_>) {
        if self.engine.shard_link.all_serve() {
            self.engine.leave_all();
        }
        let owing = self.sessions.values().any(Session::is_owed) || self.has_datagrams_in_flight();
        if self.engine.stop_idle_pools() && self.backends.is_empty() && !owing {
            self.close_sessions(io);
        }
    }
}
