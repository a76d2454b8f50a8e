//! Programs as workers.

use std::path::PathBuf;
use std::time::Duration;

use crate::options::kinds::GIB;
use crate::options::{Needs, Reload, Value, WorkerKind, options, read_as, settings, words};
use crate::values::Processors;

options! {
    /// A local program on pipes.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Program of Program reload Replace {
        /// Program and its arguments. No shell is used.
        command("program"): Vec<String> as command;
        /// How requests and replies are delimited on the pipes.
        framing: Framing as word = "lines", reload(Reload::Restart);
        /// How replies are matched with requests.
        dispatch: Dispatch as word = "auto", reload(Reload::Restart), needs(Needs::Pipes);
        /// Maximum number of requests in flight to one program.
        pipeline: u32 as count(1, 65_535) = "1", reload(Reload::Restart);
        /// When a program whose replies carry no ids is checked for unsolicited frames before another client is served.
        /// A check is a silence of 10 ms, or of twice the longest latency of the program so far if that is longer, at
        /// most 100 ms (100 ms until a program of the pool has passed a check). The client that was answered last never
        /// waits. A program that prints something during a check is killed, and its pool is checked strictly until the
        /// next reload.
        alignment: Alignment as word = "auto";
        /// Part of a request that its reply must carry unchanged: `{N}` for a word, counted from 1, or `{NAME}` for a
        /// member, if both are JSON objects. A request without it is rejected, and a program whose reply does not carry
        /// it is killed. It replaces the checks of `alignment`.
        carries("match"): Option<MatchKey> as name, reload(Reload::Restart);
        /// With `framing = "lines"` and programs that serve several clients, concurrently or one after the other
        /// (`reset`): how requests that contain a CR, U+0085, U+2028 or U+2029 are treated. Some programs end a line at
        /// these characters too (universal newlines in Python, `readline` in Node.js). Such a program would answer
        /// twice, and another client would receive the second reply. A CR before the LF of a client's line is part of
        /// its line end.
        line_breaks: LineBreaks as word = "reject";
        /// With `dispatch = "session"`: request that clears the state of a program after a connection has ended. Its
        /// reply is discarded. In JSON-RPC it must have an `id`. Without this option, the program is replaced after
        /// each connection. All programs of the pool are replaced instead of reset once one of them sent an unsolicited
        /// frame that cannot be distinguished from a reply (every framing except those of JSON-RPC), or, until the next
        /// reload, once one of them printed something after its reply to this request.
        reset: Option<String> as text, reload(Reload::Restart), needs(Needs::Pipes);
        /// Handshake that a program must complete before it serves.
        handshake: Handshake as word = "off", reload(Reload::Restart), needs(Needs::Pipes);
        /// A reply has many frames, and each is sent to the client as it arrives. Defines what ends the reply.
        stream: Option<Stream> as table, reload(Reload::Restart), needs(Needs::Pipes);
        /// Maximum size of one reply of a program or a query, in bytes. Default with `framing` of `jsonrpc` or
        /// `content-length`: 16MiB.
        reply_max: usize as size(1, GIB) = "1MiB", of(WorkerKind::Any),
            reload(Reload::RestartIf("the pool has a `query`")), needs(Needs::Pipes);
        /// Working directory, relative to that of the daemon. Default: that of the daemon.
        cwd: Option<PathBuf> as name;
        /// Variables added to the daemon's environment. `env:NAME` as a value passes the daemon's variable of that
        /// name. Variables that the configuration names as `env:NAME` are not inherited otherwise.
        env: Vec<(String, String)> as variables;
        /// Maximum time for a program to end after its input was closed, and again after TERM.
        stop_timeout: Duration as time_or_zero = "2s", reload(Reload::Live), former(&["grace"]);
        /// A program that ran for less than this time counts towards the crash loop.
        min_uptime: Duration as time_or_zero = "1s", reload(Reload::Live), former(&["settle"]);
        /// How the program is connected.
        wiring: Wiring;
        /// The restrictions of the program.
        bounds: Bounds;
        /// With `framing = "http"`: socket on which the program serves. The program is ready when it accepts
        /// connections there.
        socket: HttpSocket as word = "inherited";
        /// What a client receives about a program that ended during its request. The log contains everything. What
        /// a program writes about one client only after it was given a request of the next may be shown to the next.
        exit_message: ExitMessage as word = "auto", former(&["last_words"]);
        /// How the program reports that it is ready for requests.
        ready: Ready as word = "start", needs(Needs::Pipes);
        /// Maximum time until a program is ready. Then it is killed, and another one is started.
        start_timeout: Duration as time = "30s", reload(Reload::Live);
        /// Maximum time until the first byte of a reply. `response_timeout` applies in any case.
        first_byte_timeout: Duration as time_or_off = "off", former(&["first_byte"]), needs(Needs::Pipes);
        /// A request that takes longer than this is logged as slow, and continues.
        slowlog_timeout: Duration as time_or_off = "off", former(&["slow"]), needs(Needs::Pipes);
        /// Maximum time in which a program reads nothing of a request that waits for it. `response_timeout` applies in any
        /// case.
        send_timeout: Duration as time_or_off = "off", former(&["write_stall"]), needs(Needs::Pipes);
        /// When a healthy program is replaced. This happens between requests, and only when its replacement is ready.
        recycle: Recycle as table = inner, reload(Reload::Live);
    }
}

words! {
    /// What a client receives about a program that ended during its request. The log contains everything.
    pub enum ExitMessage {
        /// How the program exited, and up to 200 characters of the last line on its standard error since it received a
        /// request of this client. The line is omitted if the program can work for several clients concurrently, and
        /// over HTTP, whose clients are often strangers.
        Auto = "auto",
        /// Only that the program ended.
        Off = "off",
        /// As `auto`, but the last line is also sent over HTTP and for programs that can work for several clients
        /// concurrently.
        Line = "line",
        /// As `line`; over HTTP, where a reply can have many lines, the last 8 KiB.
        Tail = "tail",
    }
}

options! {
    /// How a program is connected.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Wiring of Program reload Replace {
        /// Channel for requests and replies.
        io: Io as word = "auto", needs(Needs::Pipes);
        /// File descriptors of the program for requests and replies.
        fds: Fds as word = "0/1", needs(Needs::Pipes);
        /// How the output of a program that buffers it is flushed. `roadstead doctor` detects such programs.
        unbuffer: Unbuffer as word = "off", needs(Needs::Pipes);
    }
}

words! {
    /// The channel for requests and replies of a program.
    pub enum Io {
        /// Unix sockets, also for standard error, if the program has a `user`; otherwise pipes.
        Auto = "auto",
        /// Pipes, which every program supports, also for standard error. A program can hang the daemon through them (`splice`):
        /// use them only for programs that are trusted.
        Pipe = "pipe",
        /// Unix sockets, which buffer more before a side must wait. Standard error is a pipe, unless the program has a
        /// `user`.
        Socket = "socket",
    }
}

words! {
    /// The file descriptors of a program for requests and replies.
    pub enum Fds {
        /// Standard input and output.
        Standard = "0/1",
        /// 3 and 4, as with Erlang's `nouse_stdio`. The standard output of the program goes to the log.
        ThreeFour = "3/4",
    }
}

words! {
    /// How buffered output of a program is flushed.
    pub enum Unbuffer {
        /// No change.
        Off = "off",
        /// The C library flushes every line. Has no effect on Perl, Python, Node, Go or static binaries.
        Stdbuf = "stdbuf",
        /// The output is a terminal. Programs that flush for interactive users then flush. With a `user`, it requires
        /// `io = "pipe"`, because a program can hang the daemon through a terminal.
        Pty = "pty",
    }
}

options! {
    /// The restrictions of a program. Without an option, the value of the daemon applies.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Bounds of Program reload Replace {
        /// Whether the program starts without the daemon's environment variables, with only those of `env`.
        env_clear: bool as switch = "false";
        /// User that the program runs as, by name or number. Default: the user of the daemon. `HOME`, `USER` and
        /// `LOGNAME` are set accordingly.
        user: Option<String> as name;
        /// The only group that the program runs as. Default: all groups of `user`.
        group: Option<String> as name;
        /// Whether the program is prevented from gaining privileges by executing files (set-user-id files).
        no_new_privs: bool as switch = "false";
        /// Resource limits of one process of the program. An option that is not set leaves the limit of the daemon.
        limits: Limits as table = inner;
        /// Processors on which the program runs: `any`, `near` (the processor of the event loop, to which the loop is
        /// then pinned), `spread` (each program on another processor), or a list.
        cpu_affinity: Processors as processors = "any", former(&["cpu"]);
        /// Nice value of the program relative to the daemon; a higher value means a lower priority.
        nice: u32 as count(0, 19) = "0";
        /// Where the control group of the program is created: `auto` (in the control group of the daemon, if that was
        /// delegated to it), `off`, or a directory of a cgroup2 file system.
        cgroup: Cgroup as name = "auto";
    }
}

options! {
    /// Resource limits of one process of a program.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Limits of Any reload Replace {
        /// Maximum number of open file descriptors.
        files: Option<u64> as count(3, 1_000_000);
        /// Maximum number of processes and threads of its user, on the whole machine. It does not apply to root.
        processes: Option<u64> as count(1, 4_000_000);
        /// Maximum number of bytes of memory that each process may allocate for data (RLIMIT_DATA), used or not. With a
        /// control group that counts memory: maximum memory in use of all its processes together.
        memory: Option<u64> as size(1, 512 * GIB);
        /// Maximum number of bytes of address space. Node, Go and Java reserve far more than they use.
        address_space: Option<u64> as size(1, 512 * GIB);
        /// Maximum processor time.
        cpu_time: Option<Duration> as seconds, former(&["cpu"]);
        /// Maximum size of a core file, in bytes; 0: no core file.
        core: Option<u64> as size(0, 512 * GIB);
        /// Maximum size of a file that it writes, in bytes.
        file_size: Option<u64> as size(1, 512 * GIB);
        /// Maximum size of a stack, in bytes.
        stack: Option<u64> as size(1, GIB);
    }
}

/// Where control groups of programs are created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cgroup {
    /// In the control group of the daemon, if it was delegated.
    Auto,
    /// No control groups.
    Off,
    /// In this directory.
    Under(PathBuf),
}

settings! {
    Cgroup, read_as::Text: Some(Value::Text(text)) => match text.as_str() {
        "auto" => Self::Auto,
        "off" => Self::Off,
        folder => Self::Under(folder.into()),
    };
    MatchKey, read_as::Text:
        Some(Value::Text(text)) => Self::parse(text).expect("the checks have read it once");
}

words! {
    /// How requests and replies are delimited in a stream.
    pub enum Framing {
        /// One line per message.
        Lines = "lines",
        /// A NUL after each message.
        Nul = "nul",
        /// A length of one byte before each message.
        Len1 = "len1",
        /// A big-endian length of two bytes before each message, as Erlang's `{packet, 2}`.
        Len2 = "len2",
        /// A big-endian length of four bytes before each message, as Erlang's `{packet, 4}`.
        Len4 = "len4",
        /// Each message in the form `5:hello,`.
        Netstring = "netstring",
        /// JSON-RPC messages after a head with `Content-Length`, as in LSP.
        ContentLength = "content-length",
        /// One JSON-RPC message per line, as in the stdio transport of MCP.
        JsonRpc = "jsonrpc",
        /// Bytes without framing. `stream` defines when a reply has ended.
        Raw = "raw",
        /// One process per request. Its input ends with the request, and the reply ends with its output.
        Oneshot = "oneshot",
        /// The program serves HTTP/1 on a socket (see `socket`), on up to `pipeline` concurrent connections. Its output
        /// goes to the log.
        Http = "http",
    }
}

words! {
    /// Which requests can be in flight to a program together, and how replies are matched with them.
    pub enum Dispatch {
        /// `tagged` for `jsonrpc` and `content-length`, `in-order` for the others.
        Auto = "auto",
        /// Replies come in the order of the requests.
        InOrder = "in-order",
        /// JSON-RPC messages whose ids are rewritten and restored. Replies come in any order.
        Tagged = "tagged",
        /// A program serves one connection from its first request to its end. Unsolicited output and requests of the
        /// program are sent to that client.
        Session = "session",
    }
}

words! {
    /// How a program whose replies come in order is checked for unsolicited frames.
    pub enum Alignment {
        /// After each of the first 16 replies of a program, then once per busy time of 33 times the silence of a check
        /// (330 ms to 3.3 s). Checks then take 3 % of the busy time.
        Auto = "auto",
        /// After every reply. Not possible with `pipeline` above 1.
        Strict = "strict",
        /// Never. Unsolicited frames are noticed only while the program is idle.
        Off = "off",
    }
}

words! {
    /// How requests with a CR, U+0085, U+2028 or U+2029 for programs on lines are treated.
    pub enum LineBreaks {
        /// Rejected (`!record`).
        Reject = "reject",
        /// Passed on unchanged: for programs that end lines only at LF.
        Keep = "keep",
    }
}

/// The part of a request that its reply must carry unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MatchKey {
    /// A word, counted from 1. Words are separated by blanks and tabs.
    Word(u32),
    /// A member of the JSON object, if request and reply are JSON objects.
    Member(String),
}

impl MatchKey {
    /// Parses `{2}` or `{id}`.
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

impl std::fmt::Display for MatchKey {
    /// Writes the form that [`Self::parse`] reads.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Word(number) => write!(f, "{{{number}}}"),
            Self::Member(name) => write!(f, "{{{name}}}"),
        }
    }
}

words! {
    /// The handshake that a program must complete before it serves.
    pub enum Handshake {
        /// No handshake: the program serves as soon as it runs.
        Off = "off",
        /// An MCP `initialize` request is sent to the program. Clients that send the same request receive its answer.
        Mcp = "mcp",
    }
}

options! {
    /// When a reply of several frames is complete. At least one of the two is required.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Stream of Any reload Restart {
        /// Frame that ends the reply. It belongs to the reply.
        until: Option<String> as text;
        /// Time without output after which the reply has ended.
        idle_timeout: Option<Duration> as time, former(&["gap"]);
    }
}

words! {
    /// The socket on which a program serves HTTP.
    pub enum HttpSocket {
        /// A listening Unix socket as file descriptor 3, announced by `LISTEN_FDS` and `LISTEN_PID` as systemd does.
        Inherited = "inherited",
        /// A Unix socket that the program creates, at `ROADSTEAD_SOCKET` or `{socket}` in its arguments.
        Path = "path",
        /// A port of 127.0.0.1 that is reserved for the program: `PORT`, or `{port}` in its arguments.
        Port = "port",
    }
}

words! {
    /// How a program reports that it is ready.
    pub enum Ready {
        /// The program is ready as soon as it runs.
        Start = "start",
        /// By its first frame (a line, with `lines`), which is not treated as a reply.
        Line = "line",
    }
}

options! {
    /// When a healthy worker is replaced.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Recycle of Any reload Live {
        /// Number of requests after which a worker is replaced.
        requests_max("max_requests"): Option<u64> as count(1, 4_000_000_000), former(&["requests"]);
        /// Age at which a worker is replaced.
        age_max("max_age"): Option<Duration> as days, former(&["age"]);
        /// Bytes of memory above which a worker is replaced. The memory is measured after a reply, at most once per
        /// second.
        memory_max("max_memory"): Option<u64> as size(1, 512 * GIB), former(&["memory"]);
        /// Maximum random reduction of each of these limits for one program, so that not all are replaced together.
        jitter: u32 as percent = "15%";
        /// Maximum share of the programs of the pool that are replaced at the same time; at least one.
        share: u32 as percent = "20%";
    }
}
