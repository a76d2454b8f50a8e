//! What programs of a pool are started with, how they are asked and what they are held to.

use std::time::Duration;

use exchange::WorkerIndex;
use settings::{LastWords, Processors};

/// What the workers of a program pool are started and held to.
#[derive(Clone, Debug)]
pub struct ProgramConfig {
    pub program: String,
    pub arguments: Vec<String>,
    pub cwd: Option<std::path::PathBuf>,
    pub env: Vec<(String, String)>,
    pub policy: Box<LaunchPolicy>,
    pub framing: wire::Framing,
    /// It serves HTTP on a socket, and its pipes carry nothing.
    pub is_hosted: bool,
    /// How it is watched for frames that nobody asked for; none where that says nothing.
    pub alignment: Option<settings::Alignment>,
    /// What of a request its reply must carry.
    pub carries: Option<settings::Carried>,
    /// Requests that some readers of lines take for several are rejected.
    pub rejects_line_breaks: bool,
    /// Requests go out with tags, and replies come in any order.
    pub tagged: bool,
    pub stream: Option<ReplyStreamConfig>,
    /// It is greeted before it serves.
    pub greets: bool,
    /// It may have requests of several clients in its hands.
    pub is_shared: bool,
    /// Each is one connection's own: what either side says is for the other.
    pub is_own: bool,
    /// Times that what it had when it ended may be given to a program; 1: never again.
    pub tries: u8,
    /// Its memory is looked at after replies.
    pub watches_memory: bool,
    pub times: ProgramTimeouts,
    /// Its first frame says that it is ready.
    pub says_ready: bool,
    pub reply_max: usize,
    pub grace: Duration,
    pub deadline: Duration,
    pub last_words: LastWords,
}

/// How long a program may take for this and that, beside the deadline.
#[derive(Clone, Copy, Debug)]
pub struct ProgramTimeouts {
    /// Until it is ready.
    pub start: Duration,
    /// Until the first byte of a reply.
    pub first_byte: Option<Duration>,
    /// Until a request is worth a line in the log.
    pub slow: Option<Duration>,
    /// Without reading what waits for it.
    pub write_stall: Option<Duration>,
}

/// When a reply of several frames is complete.
#[derive(Clone, Debug)]
pub struct ReplyStreamConfig {
    pub until: Option<Vec<u8>>,
    pub gap: Option<Duration>,
}

/// How programs are connected and what they are held to.
#[derive(Clone, Debug)]
pub struct LaunchPolicy {
    pub env_clear: bool,
    pub wiring: spawn::Wiring,
    pub bounds: spawn::Bounds,
    pub cpu: Processors,
}

impl LaunchPolicy {
    /// As whom programs run, without what else they are held to.
    pub fn identity(&self) -> spawn::Bounds {
        let spawn::Bounds { user, group, no_new_privs, .. } = self.bounds.clone();
        spawn::Bounds { user, group, no_new_privs, ..spawn::Bounds::default() }
    }

    /// What this program of its pool is held to. Called on the loop's thread, which
    /// stays where it is when programs are to be near.
    pub fn bounds(&self, worker: WorkerIndex) -> spawn::Bounds {
        let cpus = match &self.cpu {
            Processors::Any => Vec::new(),
            Processors::Near => spawn::stay_here().into_iter().collect(),
            Processors::Spread => {
                let allowed = spawn::allowed();
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
