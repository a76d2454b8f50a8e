//! The configuration of programs on pipes.

use std::time::Duration;

use exchange::WorkerIndex;
use settings::{ExitMessage, Processors};

/// The configuration of a pool of programs.
#[derive(Clone, Debug)]
pub struct ProgramConfig {
    /// The program: a path, or a name that is found in `PATH`.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Its working directory; `None`: that of the daemon.
    pub cwd: Option<std::path::PathBuf>,
    /// Additional environment variables.
    pub env: Vec<(String, String)>,
    /// How the processes are connected and restricted.
    pub policy: Box<LaunchPolicy>,
    /// How messages on the pipes are delimited.
    pub framing: wire::Framing,
    /// The programs serve HTTP on a socket; their pipes carry no requests.
    pub is_spawned_http: bool,
    /// How unsolicited output is detected; `None`: it is not.
    pub alignment: Option<settings::Alignment>,
    /// The part of a request that its reply must repeat (`match`).
    pub carries: Option<settings::MatchKey>,
    /// Requests are rejected if they contain characters that some programs treat as line ends.
    pub rejects_line_breaks: bool,
    /// Requests carry ids that the daemon assigns, and replies may arrive in any order.
    pub tagged: bool,
    /// Replies may have several frames; `None`: one frame.
    pub stream: Option<ReplyStreamConfig>,
    /// The daemon performs the handshake with a program before it serves.
    pub needs_handshake: bool,
    /// A program may have requests of several clients in flight.
    pub is_shared: bool,
    /// Each program serves one connection only, which exchanges all messages with it.
    pub is_own: bool,
    /// The maximum number of times a request is sent, if programs exit before they reply; 1: no retry.
    pub tries: u8,
    /// The memory of a program is measured after replies.
    pub watches_memory: bool,
    /// Further timeouts.
    pub times: ProgramTimeouts,
    /// The first frame of a program reports that it is ready.
    pub says_ready: bool,
    /// The maximum size of a reply, in bytes.
    pub reply_max: usize,
    /// The time that a program has to exit, first after its input is closed and again after SIGTERM.
    pub stop_timeout: Duration,
    /// The maximum time to a complete reply. A program that exceeds it is killed.
    pub deadline: Duration,
    /// What clients learn about a program that exited.
    pub last_words: ExitMessage,
}

/// Timeouts of a program, besides its deadline.
#[derive(Clone, Copy, Debug)]
pub struct ProgramTimeouts {
    /// The time in which a program must be ready.
    pub start: Duration,
    /// The maximum time to the first byte of a reply; `None`: no limit.
    pub first_byte: Option<Duration>,
    /// The time after which a slow request is logged; `None`: never.
    pub slow: Option<Duration>,
    /// How long a program may read nothing of its input; `None`: no limit.
    pub send_timeout: Option<Duration>,
}

/// When a reply of several frames is complete.
#[derive(Clone, Debug)]
pub struct ReplyStreamConfig {
    /// The frame that ends a reply.
    pub until: Option<Vec<u8>>,
    /// The silence that ends a reply.
    pub gap: Option<Duration>,
}

/// How processes are connected and restricted.
#[derive(Clone, Debug)]
pub struct LaunchPolicy {
    /// The environment of the daemon is not inherited.
    pub env_clear: bool,
    /// How the standard streams are connected.
    pub wiring: spawn::Wiring,
    /// User, group and resource limits.
    pub bounds: spawn::Bounds,
    /// The processors that the programs may run on.
    pub cpu: Processors,
}

impl LaunchPolicy {
    /// User, group and privileges of the programs, without resource limits.
    pub fn identity(&self) -> spawn::Bounds {
        let spawn::Bounds { user, group, no_new_privs, .. } = self.bounds.clone();
        spawn::Bounds { user, group, no_new_privs, ..spawn::Bounds::default() }
    }

    /// The restrictions of the program with this index. It must be called on the thread of the loop, which is pinned
    /// to its processor when the programs run on the same one.
    pub fn bounds(&self, worker: WorkerIndex) -> spawn::Bounds {
        let cpus = match &self.cpu {
            Processors::Any => Vec::new(),
            Processors::Near => spawn::pin_to_current_cpu().into_iter().collect(),
            Processors::Spread => {
                let allowed = spawn::allowed_cpus();
                allowed
                    .get(worker.get() as usize % allowed.len().max(1))
                    .copied()
                    .into_iter()
                    .collect()
            }
            Processors::List(list) => list.clone(),
        };
        spawn::Bounds { cpus, ..self.bounds.clone() }
    }
}
