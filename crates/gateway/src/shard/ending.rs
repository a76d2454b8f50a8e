//! The steps of a drain, as `drain.rs` draws them.

use super::Shard;
use crate::drain::{DrainLimits, Stage};
use event::Calls;
use frontend::session::{Session, SessionContext};

impl Shard {
    pub(super) fn begin_drain(&mut self, calls: &mut Calls<'_>) {
        self.drain.begin(calls);
    }

    fn close_listeners(&mut self, calls: &mut Calls<'_>) {
        for listener in self.listeners.values_mut() {
            if let Some(id) = listener.id.take() {
                calls.close_listener(id);
            }
        }
    }

    pub(super) fn drain_timer(&mut self, calls: &mut Calls<'_>) {
        if self.drain.stage == Stage::Closing {
            let unread = self.sessions.values().filter(|session| session.is_unread(calls)).count();
            self.drain.result.unread += unread;
            return calls.stop();
        }
        self.drain.result.cut = self.engine.exchanges_to_end();
        tracing::error!(requests = self.drain.result.cut, "the drain took too long and is cut");
        self.engine.end_all();
        self.backends.interrupt();
        self.close_sessions(calls);
    }

    fn close_sessions(&mut self, calls: &mut Calls<'_>) {
        self.drain.close(calls);
        self.hand_out(calls);
        for session in self.sessions.values_mut() {
            let mut cx = SessionContext::new(&mut self.engine, &mut self.doors, &mut self.scratch);
            session.flush_and_finish(calls, &mut cx);
        }
        if self.sessions.is_empty() {
            calls.stop();
        }
    }

    /// One step of the drain, at the end of a turn.
    pub(super) fn drain_on(&mut self, calls: &mut Calls<'_>) {
        match self.drain.stage {
            Stage::Running => {}
            Stage::Asked => self.drain.stage = Stage::LastRead,
            Stage::LastRead => {
                self.drain.stage = Stage::LastRequests;
                self.close_listeners(calls);
                let DrainLimits { within: _, keepalive_timeout } = self.drain.limits;
                self.engine.drain_keepalive_timeout = Some(keepalive_timeout);
                for session in self.sessions.values_mut() {
                    let mut cx =
                        SessionContext::new(&mut self.engine, &mut self.doors, &mut self.scratch);
                    session.begin_drain(calls, &mut cx);
                }
                self.end_requests(calls);
            }
            Stage::LastRequests => self.end_requests(calls),
            Stage::Serving => self.stop_pools(calls),
            Stage::Closing => {
                if self.sessions.is_empty() {
                    calls.stop();
                }
            }
        }
    }

    /// Once no client can submit a request any more, the other shards are notified.
    fn end_requests(&mut self, calls: &mut Calls<'_>) {
        if self.sessions.values().any(Session::may_ask) {
            return;
        }
        self.drain.stage = Stage::Serving;
        self.engine.shard_link.say_serving();
        self.stop_pools(calls);
    }

    /// Pools that nothing can reach any more end their workers; when all have, clients are told.
    fn stop_pools(&mut self, calls: &mut Calls<'_>) {
        if self.engine.shard_link.all_serve() {
            self.engine.leave_all();
        }
        let owing = self.sessions.values().any(Session::is_owed) || self.datagrams_asking();
        if self.engine.stop_idle_pools() && self.backends.is_empty() && !owing {
            self.close_sessions(calls);
        }
    }
}
