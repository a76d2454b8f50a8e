//! The state of a program in the supervisor.

use super::cgroup::Group;
use super::child::Executing;

/// A program, from its fork until it is reaped.
pub(super) struct Program {
    pub(super) token: u64,
    /// The value of [`START_MARK`](super::child::START_MARK) in its environment.
    pub(super) mark: String,
    /// A time before its start, in clock ticks since boot.
    pub(super) started: u64,
    /// Whether it and its children remain the user that the start requested: they gain no rights from files.
    pub(super) keeps_user: bool,
    pub(super) group: Option<Group>,
    pub(super) state: State,
}

/// `Executing → Running` or `Executing → Failed`. Both end when the process is reaped.
pub(super) enum State {
    /// The result of execve is not known yet.
    Executing(Executing),
    Running,
    /// The failure was reported; the process is about to exit.
    Failed,
}
