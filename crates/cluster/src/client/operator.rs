//! The settings of operators in the client: the replica, and the commands that wait for their answer.

use std::collections::BTreeMap;

use super::config::{ApplySetting, CommandReply};
use super::status::OperatorStatus;
use crate::operator::{
    CommandId, CommandRequest, OperatorCommand, OperatorEvent, OperatorReplica, OperatorUpdate,
};
use crate::state::State;

pub(super) struct OperatorClient {
    replica: OperatorReplica,
    apply: ApplySetting,
    replies: BTreeMap<CommandId, CommandReply>,
    /// Why the bucket cannot be used.
    trouble: Option<String>,
    /// A setting has changed since the last call of [`OperatorClient::take_changed`].
    has_changed: bool,
}

impl OperatorClient {
    pub(super) fn new(apply: ApplySetting) -> Self {
        let replica = OperatorReplica::default();
        Self { replica, apply, replies: BTreeMap::new(), trouble: None, has_changed: false }
    }

    pub(super) fn ask(&mut self, now_ms: u64, request: CommandRequest, reply: CommandReply) {
        let id = self.replica.ask(now_ms, request);
        self.replies.insert(id, reply);
        self.take_updates();
    }

    pub(super) fn handle(&mut self, now_ms: u64, event: OperatorEvent) {
        if matches!(event, OperatorEvent::CaughtUp { .. }) {
            self.trouble = None;
        }
        self.replica.handle(now_ms, event);
        self.take_updates();
    }

    /// The bucket cannot be opened. It is tried again.
    pub(super) fn handle_trouble(&mut self, reason: String) {
        if self.trouble.as_ref() != Some(&reason) {
            tracing::warn!("cluster: commands of operators are not shared: {reason}");
        }
        self.trouble = Some(reason);
    }

    /// Appends the commands that are due.
    pub(super) fn poll(&mut self, now_ms: u64, commands: &mut Vec<OperatorCommand>) {
        commands.extend(std::iter::from_fn(|| self.replica.poll(now_ms)));
        self.take_updates();
    }

    fn take_updates(&mut self) {
        while let Some(update) = self.replica.poll_update() {
            self.has_changed = true;
            match update {
                OperatorUpdate::Apply { key, setting, author, commands } => {
                    let replies = commands.iter().filter_map(|id| self.replies.remove(id));
                    (self.apply)(&key, setting, author.as_ref(), replies.collect());
                }
                OperatorUpdate::Failed { command, error } => {
                    if let Some(reply) = self.replies.remove(&command) {
                        let trouble = self.trouble.as_ref();
                        let reason = trouble.map_or_else(|| error.to_string(), Clone::clone);
                        reply(Err((error, reason)));
                    }
                }
            }
        }
    }

    /// Whether a setting has changed since the last call: then the status is published at once.
    pub(super) const fn take_changed(&mut self) -> bool {
        std::mem::replace(&mut self.has_changed, false)
    }

    pub(super) fn is_in_sync(&self) -> bool {
        self.replica.state() == State::InSync
    }

    pub(super) fn status(&self) -> OperatorStatus {
        let set = self.replica.entries().filter(|(_, entry, _)| !entry.setting.is_default());
        OperatorStatus {
            state: self.replica.state(),
            revision: self.replica.revision(),
            counters: *self.replica.counters(),
            entries: set.map(|(key, entry, _)| (key.clone(), entry.clone())).collect(),
            trouble: self.trouble.clone(),
        }
    }
}
