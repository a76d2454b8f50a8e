//! Programs as workers, as they are configured.

use std::path::PathBuf;
use std::time::Duration;

use crate::options::kinds::GIB;
use crate::options::{Of, Reload, Value, options, read_as, settings, words};
use crate::values::Processors;

options! {
    /// A local program on pipes.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Program of Program reload Replace {
        /// The program and its arguments; no shell is involved.
        command("program"): Vec<String> as command;
        /// How requests and replies are told apart on the pipes.
        framing: Framing as word = "lines", reload(Reload::Restart);
        /// How replies find their requests.
        dispatch: Dispatch as word = "auto", reload(Reload::Restart);
        /// Requests in flight at once to one program.
        pipeline: u32 as count(1, 65_535) = "1", reload(Reload::Restart);
        /// When a program whose replies carry no ids is watched for frames that nobody asked for before another
        /// client is served: a silence of 10 ms, or of twice its longest latency so far if that is longer, at most
        /// 100 ms (100 ms until a program of the pool has passed a check). The client that was answered last never
        /// waits. A program that prints something meanwhile is killed, and its pool is checked strictly until the
        /// next reload.
        alignment: Alignment as word = "auto";
        /// What of a request its reply must carry unchanged: `{N}` for a word, from 1, or `{NAME}` for a member of
        /// the JSON object that both are. A request without it is rejected, and a program whose reply does not carry
        /// it is killed. It replaces the checks of `alignment`.
        carries("match"): Option<MatchKey> as name, reload(Reload::Restart);
        /// With `framing = "lines"` and programs that serve several clients, at once or one after the other
        /// (`reset`): requests with a CR, U+0085, U+2028 or U+2029 in them, at which some programs end a line too
        /// (universal newlines in Python, `readline` in Node.js). Such a program would answer twice, and another
        /// client would get the second reply. A CR before the LF of a client's line is part of its line end.
        line_breaks: LineBreaks as word = "reject";
        /// With `dispatch = "session"`: a request that makes a program forget the connection that has ended; its
        /// reply is discarded. In JSON-RPC it has an `id`. Without it the program is replaced, as all of the pool are
        /// once one spoke unasked where that cannot be told from a reply (every framing but those of JSON-RPC), or
        /// until the next reload once one printed something after its reply to this.
        reset: Option<String> as text, reload(Reload::Restart);
        /// What a program must say before it serves.
        handshake: Handshake as word = "off", reload(Reload::Restart);
        /// A reply has many frames, each of which goes to the client as it comes; what ends it.
        stream: Option<Stream> as table, reload(Reload::Restart);
        /// Bytes of one reply of a program or a query; 16MiB with `framing` of `jsonrpc` or `content-length` unless
        /// it is given.
        reply_max: usize as size(1, GIB) = "1MiB", of(Of::Any),
            reload(Reload::RestartIf("the pool has a `query`"));
        /// Working folder, relative to the daemon's; without it the daemon's own.
        cwd: Option<PathBuf> as name;
        /// Variables added to the daemon's environment. `env:NAME` as a value passes the daemon's variable of that
        /// name. Variables that the configuration names as `env:NAME` are not inherited otherwise.
        env: Vec<(String, String)> as variables;
        /// How long a program may take to end after its input was closed, and again after TERM.
        stop_timeout: Duration as time_or_zero = "2s", reload(Reload::Live);
        /// A program that lived shorter than this counts towards the crash loop.
        min_uptime: Duration as time_or_zero = "1s", reload(Reload::Live);
        /// How it is connected.
        wiring: Wiring;
        /// What it is held to.
        bounds: Bounds;
        /// With `framing = "http"`: where the program serves; it is ready once it accepts connections there.
        socket: HttpSocket as word = "inherited";
        /// What a client is told of a program that ended with its request; the log has all of it.
        exit_message: ExitMessage as word = "auto";
        /// How it says that it is ready for requests.
        ready: Ready as word = "start";
        /// How long it may take until it is ready; then it is killed, and another is tried.
        start_timeout: Duration as time = "30s", reload(Reload::Live);
        /// Maximum time until the first byte of a reply. `response_timeout` applies in any case.
        first_byte_timeout: Duration as time_or_off = "off";
        /// A request that takes longer is logged as slow, and continues.
        slowlog_timeout: Duration as time_or_off = "off";
        /// Maximum time in which a program reads nothing of a request that waits for it. `response_timeout` applies in any
        /// case.
        send_timeout: Duration as time_or_off = "off";
        /// When a program is replaced though nothing is wrong with it: between requests, and only once another is
        /// ready.
        recycle: Recycle as table = inner, reload(Reload::Live);
    }
}

words! {
    /// What a client is told of a program that ended with its request. The log has all of it.
    pub enum ExitMessage {
        /// How it exited, and the last line on its standard error, 200 characters of it, since it was given a request
        /// of this client; nothing that it said if it can work for several clients at once, or over HTTP, whose
        /// clients are often strangers.
        Auto = "auto",
        /// That it ended.
        Off = "off",
        /// As `auto`, with the last line also over HTTP and of programs that can work for several clients at once.
        Line = "line",
        /// `line`; over HTTP, where a reply can have many lines, the last 8 KiB.
        Tail = "tail",
    }
}

options! {
    /// How a program is connected.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Wiring of Program reload Replace {
        /// What requests and replies go through.
        io: Io as word = "pipe";
        /// Which descriptors of the program they are.
        fds: Fds as word = "0/1";
        /// What is done for a program that keeps its output in a buffer; `roadstead doctor` tells.
        unbuffer: Unbuffer as word = "off";
    }
}

words! {
    /// What requests and replies of a program go through.
    pub enum Io {
        /// Pipes, which every program can cope with.
        Pipe = "pipe",
        /// Unix sockets, which hold more before a side must wait.
        Socket = "socket",
    }
}

words! {
    /// Which descriptors of a program its requests and replies are.
    pub enum Fds {
        /// Standard input and output.
        Standard = "0/1",
        /// 3 and 4, as with Erlang's `nouse_stdio`; what it prints to standard output goes to the log.
        ThreeFour = "3/4",
    }
}

words! {
    /// What is done about output that a program keeps in a buffer.
    pub enum Unbuffer {
        /// Nothing.
        Off = "off",
        /// The C library flushes every line; not for Perl, Python, Node, Go or static binaries.
        Stdbuf = "stdbuf",
        /// Its output is a terminal; programs that flush for people then flush.
        Pty = "pty",
    }
}

options! {
    /// What a program is held to. What is not given is as the daemon's own.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Bounds of Program reload Replace {
        /// Starts without the daemon's variables, with those of `env` alone.
        env_clear: bool as switch = "false";
        /// The user it runs as, by name or number; without it the daemon's own. `HOME`, `USER` and `LOGNAME` follow
        /// it.
        user: Option<String> as name;
        /// The group it runs as, and no other; without it all groups of `user`.
        group: Option<String> as name;
        /// It can gain no rights by what it executes (set-user-id files).
        no_new_privs: bool as switch = "false";
        /// What one process of the program may use; what is not given is as the daemon's own.
        limits: Limits as table = inner;
        /// Where it runs: `any` processor, `near` (the loop's own, on which the loop then stays), `spread` (each
        /// program on another), or those of a list.
        cpu_affinity: Processors as processors = "any";
        /// How much less urgent than the daemon it is for the kernel.
        nice: u32 as count(0, 19) = "0";
        /// Where its control group is made: `auto` (in the daemon's own where that was delegated to it), `off`, or a
        /// folder of a cgroup2 file system.
        cgroup: Cgroup as name = "auto";
    }
}

options! {
    /// What one process of a program may use.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Limits of Any reload Replace {
        /// Open descriptors.
        files: Option<u64> as count(3, 1_000_000);
        /// Processes and threads of its user, wherever they run; root is not held to it.
        processes: Option<u64> as count(1, 4_000_000);
        /// Bytes of memory that it writes to; with a control group that counts memory, all its processes together.
        memory: Option<u64> as size(1, 512 * GIB);
        /// Bytes of address space; Node, Go and Java reserve far more than they use.
        address_space: Option<u64> as size(1, 512 * GIB);
        /// Processor time.
        cpu_time: Option<Duration> as seconds;
        /// Bytes of a core file; 0: none.
        core: Option<u64> as size(0, 512 * GIB);
        /// Bytes of a file that it writes.
        file_size: Option<u64> as size(1, 512 * GIB);
        /// Bytes of a stack.
        stack: Option<u64> as size(1, GIB);
    }
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
    /// How requests and replies are told apart in a stream.
    pub enum Framing {
        /// One line each.
        Lines = "lines",
        /// A NUL behind each.
        Nul = "nul",
        /// A length of one byte before each.
        Len1 = "len1",
        /// A big-endian length of two bytes before each, as Erlang's `{packet, 2}`.
        Len2 = "len2",
        /// A big-endian length of four bytes before each, as Erlang's `{packet, 4}`.
        Len4 = "len4",
        /// Each as `5:hello,`.
        Netstring = "netstring",
        /// JSON-RPC messages behind a head with `Content-Length`, as LSP has it.
        ContentLength = "content-length",
        /// One JSON-RPC message a line, as the stdio transport of MCP.
        JsonRpc = "jsonrpc",
        /// Bytes as they come; `stream` says when a reply has ended.
        Raw = "raw",
        /// A process a request: its input ends with the request, the reply with its output.
        Oneshot = "oneshot",
        /// It serves HTTP/1 on a socket (see `socket`), on as many connections at once as `pipeline` says; what it
        /// prints goes to the log.
        Http = "http",
    }
}

words! {
    /// Which requests a program may have in its hands at once, and how replies find them.
    pub enum Dispatch {
        /// `tagged` for `jsonrpc` and `content-length`, `in-order` for the others.
        Auto = "auto",
        /// Replies come in the order of the requests.
        InOrder = "in-order",
        /// JSON-RPC messages whose ids are rewritten and restored; replies come in any order.
        Tagged = "tagged",
        /// A program serves one connection from its first request to its end; what it says unasked, and what it asks,
        /// is for that client.
        Session = "session",
    }
}

words! {
    /// How a program whose replies come in order is watched for frames that nobody asked for.
    pub enum Alignment {
        /// After each of its first 16 replies, then once per 33 times the silence of a check (330 ms to 3.3 s) of
        /// busy time, which is 3 % of it.
        Auto = "auto",
        /// After every reply; not with `pipeline` above 1.
        Strict = "strict",
        /// Never: frames that nobody asked for are noticed while it is idle only.
        Off = "off",
    }
}

words! {
    /// What becomes of requests with a CR, U+0085, U+2028 or U+2029 for programs on lines.
    pub enum LineBreaks {
        /// Rejected (`!record`).
        Reject = "reject",
        /// Passed on as they are: for programs that end lines at LF alone.
        Keep = "keep",
    }
}

/// What of a request its reply must carry, as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MatchKey {
    /// A word, from 1; blanks and tabs stand between.
    Word(u32),
    /// A member of the JSON object that both are.
    Member(String),
}

impl MatchKey {
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

impl std::fmt::Display for MatchKey {
    /// As it is written.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Word(number) => write!(f, "{{{number}}}"),
            Self::Member(name) => write!(f, "{{{name}}}"),
        }
    }
}

words! {
    /// What a program must say before it serves.
    pub enum Handshake {
        /// Nothing: it serves as soon as it runs.
        Off = "off",
        /// It is asked to `initialize` as MCP has it; clients that ask the same get its answer.
        Mcp = "mcp",
    }
}

options! {
    /// When a reply of several frames is complete. One of the two at least.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Stream of Any reload Restart {
        /// A frame that is this ends the reply, and belongs to it.
        until: Option<String> as text;
        /// When nothing came for so long, the reply has ended.
        idle_timeout: Option<Duration> as time;
    }
}

words! {
    /// Where a program that serves HTTP does so.
    pub enum HttpSocket {
        /// A listening Unix socket that is its descriptor 3, told by `LISTEN_FDS` and `LISTEN_PID` as systemd does.
        Inherited = "inherited",
        /// A Unix socket that it makes itself: at `ROADSTEAD_SOCKET`, or `{socket}` in its arguments.
        Path = "path",
        /// A port of 127.0.0.1 that is kept for it: `PORT`, or `{port}` in its arguments.
        Port = "port",
    }
}

words! {
    /// How a program says that it is ready.
    pub enum Ready {
        /// It is as soon as it runs.
        Start = "start",
        /// By its first frame (a line, with `lines`), which is then no reply.
        Line = "line",
    }
}

options! {
    /// When a worker is replaced though nothing is wrong with it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Recycle of Any reload Live {
        /// After so many requests.
        requests_max("max_requests"): Option<u64> as count(1, 4_000_000_000);
        /// When it has served for so long.
        age_max("max_age"): Option<Duration> as days;
        /// When it occupies more than so many bytes after a reply, looked at once a second at most.
        memory_max("max_memory"): Option<u64> as size(1, 512 * GIB);
        /// By how much each of these may be less for one program, so that not all are replaced together.
        jitter: u32 as percent = "15%";
        /// The part of the pool's programs that may be replaced at once; at least one.
        share: u32 as percent = "20%";
    }
}
