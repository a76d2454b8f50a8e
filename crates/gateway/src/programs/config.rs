//! What programs of a pool are started with, how they are asked and what they are held to.

use std::time::Duration;

use exchange::WorkerIndex;
use settings::{LastWords, Processors};

/// What the workers of a program pool are started and held to.
#[derive(Clone, Debug)]
pub(crate) struct ProgramConfig {
    pub(crate) program: String,
    pub(crate) arguments: Vec<String>,
    pub(crate) cwd: Option<std::path::PathBuf>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) policy: Box<LaunchPolicy>,
    pub(crate) framing: wire::Framing,
    /// It serves HTTP on a socket, and its pipes carry nothing.
    pub(crate) is_hosted: bool,
    /// How it is watched for frames that nobody asked for; none where that says nothing.
    pub(crate) alignment: Option<settings::Alignment>,
    /// What of a request its reply must carry.
    pub(crate) carries: Option<settings::Carried>,
    /// Requests that some readers of lines take for several are rejected.
    pub(crate) rejects_line_breaks: bool,
    /// Requests go out with tags, and replies come in any order.
    pub(crate) tagged: bool,
    pub(crate) stream: Option<ReplyStreamConfig>,
    /// It is greeted before it serves.
    pub(crate) greets: bool,
    /// It may have requests of several clients in its hands.
    pub(crate) is_shared: bool,
    /// Each is one connection's own: what either side says is for the other.
    pub(crate) is_own: bool,
    /// Times that what it had when it ended may be given to a program; 1: never again.
    pub(crate) tries: u8,
    /// Its memory is looked at after replies.
    pub(crate) watches_memory: bool,
    pub(crate) times: ProgramTimeouts,
    /// Its first frame says that it is ready.
    pub(crate) says_ready: bool,
    pub(crate) reply_max: usize,
    pub(crate) grace: Duration,
    pub(crate) deadline: Duration,
    pub(crate) last_words: LastWords,
}

/// How long a program may take for this and that, beside the deadline.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProgramTimeouts {
    /// Until it is ready.
    pub(crate) start: Duration,
    /// Until the first byte of a reply.
    pub(crate) first_byte: Option<Duration>,
    /// Until a request is worth a line in the log.
    pub(crate) slow: Option<Duration>,
    /// Without reading what waits for it.
    pub(crate) write_stall: Option<Duration>,
}

/// When a reply of several frames is complete.
#[derive(Clone, Debug)]
pub(crate) struct ReplyStreamConfig {
    pub(crate) until: Option<Vec<u8>>,
    pub(crate) gap: Option<Duration>,
}

/// How programs are connected and what they are held to.
#[derive(Clone, Debug)]
pub(crate) struct LaunchPolicy {
    pub(crate) env_clear: bool,
    pub(crate) wiring: spawn::Wiring,
    pub(crate) bounds: spawn::Bounds,
    pub(crate) cpu: Processors,
}

impl LaunchPolicy {
    /// As whom programs run, without what else they are held to.
    pub(crate) fn identity(&self) -> spawn::Bounds {
        let spawn::Bounds { user, group, no_new_privs, .. } = self.bounds.clone();
        spawn::Bounds { user, group, no_new_privs, ..spawn::Bounds::default() }
    }

    /// What this program of its pool is held to. Called on the loop's thread, which
    /// stays where it is when programs are to be near.
    pub(crate) fn bounds(&self, worker: WorkerIndex) -> spawn::Bounds {
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
