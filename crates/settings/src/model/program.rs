//! Programs as workers, as they are configured.

use std::path::PathBuf;
use std::time::Duration;

/// A local program on pipes.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// The program and its arguments; no shell is involved.
    pub command: Vec<String>,
    /// How requests and replies are told apart on the pipes.
    pub framing: Framing,
    /// How replies find their requests.
    pub dispatch: Dispatch,
    /// Requests in flight at once.
    pub pipeline: u32,
    /// How it is watched for output that nobody asked for.
    pub alignment: Alignment,
    /// What becomes of requests that some readers of lines take for several.
    pub line_breaks: LineBreaks,
    /// What of a request its reply must carry.
    pub carries: Option<Carried>,
    /// What makes a program forget the connection that it served; without it, it is replaced.
    pub reset: Option<String>,
    /// What a program must say before it serves.
    pub handshake: Handshake,
    /// A reply has many frames, and this ends it; without it, one frame.
    pub stream: Option<Stream>,
    /// Bytes of one reply.
    pub reply_max: usize,
    /// Working folder; the daemon's own when none is given.
    pub cwd: Option<PathBuf>,
    /// Variables added to the daemon's environment.
    pub env: Vec<(String, String)>,
    /// How long a program may take to end after its input was closed, and again after TERM.
    pub grace: Duration,
    /// A program that lived shorter than this counts towards the crash loop.
    pub settle: Duration,
    /// How it is connected.
    pub wiring: Wiring,
    /// What it is held to.
    pub bounds: Bounds,
    /// When it is replaced though nothing is wrong with it.
    pub recycle: Recycle,
    /// Where one that serves HTTP does so.
    pub socket: HttpSocket,
    /// How it says that it is ready.
    pub ready: Ready,
    /// How long it may take until it is ready.
    pub start_timeout: Duration,
    /// How long it may take for the first byte of a reply; zero: as long as for all of it.
    pub first_byte: Duration,
    /// A request that takes so long is logged; zero: never.
    pub slow: Duration,
    /// How long it may read nothing of what waits for it; zero: as long as the deadline allows.
    pub write_stall: Duration,
    /// What a client is told of a program that ended with its request.
    pub last_words: LastWords,
}

/// What a client is told of a program that ended with its request. The log has all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastWords {
    /// How it exited; and what it said last, but not over HTTP, whose clients are often strangers.
    Auto,
    /// That it ended.
    None,
    /// How it exited, and the last line on its standard error.
    Line,
    /// The same, and over HTTP the last 8 KiB of it.
    Tail,
}

/// How a program is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wiring {
    /// What requests and replies go through.
    pub io: Io,
    /// Which of its descriptors they are.
    pub fds: Fds,
    /// What is done about output that it keeps in a buffer.
    pub unbuffer: Unbuffer,
}

/// What requests and replies of a program go through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Io {
    /// Pipes.
    Pipe,
    /// Unix sockets.
    Socket,
}

/// Which descriptors of a program its requests and replies are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fds {
    /// 0 and 1.
    Standard,
    /// 3 and 4.
    ThreeFour,
}

/// What is done about output that a program keeps in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unbuffer {
    /// Nothing.
    No,
    /// The C library is told to flush every line.
    Stdbuf,
    /// Its output is a terminal.
    Pty,
}

/// What a program is held to. What is not given is as the daemon's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// It starts without the daemon's variables.
    pub env_clear: bool,
    /// The user it runs as.
    pub user: Option<String>,
    /// The group it runs as.
    pub group: Option<String>,
    /// It can gain no rights by what it executes.
    pub no_new_privs: bool,
    /// What it may use.
    pub limits: Limits,
    /// Where it runs.
    pub cpu: Processors,
    /// How much less urgent than the daemon it is; 0 to 19.
    pub nice: u32,
    /// Where its control group is made.
    pub cgroup: Cgroup,
}

/// What one process of a program may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Open descriptors.
    pub files: Option<u64>,
    /// Processes and threads of its user.
    pub processes: Option<u64>,
    /// Bytes of a core file.
    pub core: Option<u64>,
    /// Processor time, whole seconds.
    pub cpu: Option<Duration>,
    /// Bytes of memory.
    pub memory: Option<u64>,
    /// Bytes of address space.
    pub address_space: Option<u64>,
    /// Bytes of a file.
    pub file_size: Option<u64>,
    /// Bytes of a stack.
    pub stack: Option<u64>,
}

/// Processors for the programs of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Processors {
    /// Wherever the kernel puts them.
    Any,
    /// On the one of the loop, which stays on it.
    Near,
    /// Each on another, in turn.
    Spread,
    /// On these.
    List(Vec<usize>),
}

/// Where control groups of programs are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cgroup {
    /// In the daemon's own, if it was delegated.
    Auto,
    /// Nowhere.
    Off,
    /// In this folder.
    Under(PathBuf),
}

/// How requests and replies are told apart in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// One line each.
    Lines,
    /// A NUL behind each.
    Nul,
    /// A length of one byte before each.
    Len1,
    /// A big-endian length of two bytes before each.
    Len2,
    /// A big-endian length of four bytes before each.
    Len4,
    /// `5:hello,`
    Netstring,
    /// A head with `Content-Length`, as the Language Server Protocol has it.
    ContentLength,
    /// One JSON-RPC message a line, as the stdio transport of the Model Context Protocol.
    JsonRpc,
    /// Bytes as they come.
    Raw,
    /// One request, up to the end of the stream.
    Oneshot,
    /// The program serves HTTP/1 on a socket; its pipes carry nothing.
    Http,
}

/// Which requests a program may have in its hands at once, and how replies find them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dispatch {
    /// `Tagged` where frames are JSON-RPC, `InOrder` elsewhere.
    Auto,
    /// Replies come in the order of the requests.
    InOrder,
    /// Requests carry ids, and replies come in any order.
    Tagged,
    /// A program serves one connection, in order, until that ends.
    Session,
}

/// How a program whose replies come in order is watched for frames that nobody asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alignment {
    /// After its first replies before it is given to another client, and from time to time afterwards.
    Auto,
    /// After each reply before it is given to another client.
    Strict,
    /// It is not watched.
    Off,
}

/// What becomes of requests with a CR, U+0085, U+2028 or U+2029 for programs on lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineBreaks {
    /// They are rejected.
    Reject,
    /// They are passed on.
    Keep,
}

/// What of a request its reply must carry, as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Carried {
    /// A word, from 1; blanks and tabs stand between.
    Word(u32),
    /// A member of the JSON object that both are.
    Member(String),
}

impl Carried {
    /// Reads `{2}` or `{id}`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let name = text.strip_prefix('{')?.strip_suffix('}')?;
        if name.is_empty() || name.contains(['{', '}']) {
            return None;
        }
        match name.parse() {
            Ok(0) => None,
            Ok(number) => Some(Self::Word(number)),
            Err(_) if name.bytes().all(|byte| byte.is_ascii_digit()) => None,
            Err(_) => Some(Self::Member(name.to_owned())),
        }
    }
}

impl std::fmt::Display for Carried {
    /// As it is written.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Word(number) => write!(f, "{{{number}}}"),
            Self::Member(name) => write!(f, "{{{name}}}"),
        }
    }
}

/// What a program must say before it serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handshake {
    /// Nothing.
    None,
    /// It answers `initialize` of the Model Context Protocol.
    Mcp,
}

/// When a reply of several frames is complete. One of the two at least.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    /// This frame ends it, and belongs to it.
    pub until: Option<String>,
    /// Silence of this length ends it.
    pub gap: Option<Duration>,
}

/// Where a program that serves HTTP does so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpSocket {
    /// On a listening Unix socket that it inherits.
    Inherited,
    /// On a Unix socket that it makes at a path which it is told.
    Path,
    /// On a port of 127.0.0.1 which it is told.
    Port,
}

/// How a program says that it is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// It is as soon as it runs.
    Start,
    /// By its first frame.
    Line,
}

/// When a worker is replaced though nothing is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recycle {
    /// After so many requests.
    pub requests: Option<u64>,
    /// When it has served for so long.
    pub age: Option<Duration>,
    /// When it occupies more than so many bytes.
    pub memory: Option<u64>,
    /// By how many percent each of these may be less for one worker.
    pub jitter: u32,
    /// How many percent of the workers may be replaced at once.
    pub share: u32,
}
