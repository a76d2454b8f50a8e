// tidy: table
//! The options of pools of programs.

use std::time::Duration;

use super::declare::{DAY, GIB, any, count, size, time, time_or_zero, word};
use super::shape::{Choice, Default, Kind, Of, Opt, Short, Word};
use crate::model::*;

use Default::{Inner, Is, None as Nothing};

const fn program(name: &'static str, kind: Kind, default: Default, about: &'static str) -> Opt {
    Opt::new(name, kind, default, Of::Program, about)
}

/// What only a pool of programs has.
pub(super) const PROGRAM: &[Opt] = &[
    program(
        "program",
        Kind::Command,
        Nothing,
        "The program and its arguments; no shell is involved.",
    ),
    program("then", Kind::Pool, Nothing, "The pool that a reply goes to as a request."),
    program(
        "framing",
        Kind::Word(FRAMING),
        Is("lines"),
        "How requests and replies are told apart on the pipes.",
    ),
    program("dispatch", Kind::Word(DISPATCH), Is("auto"), "How replies find their requests."),
    program("pipeline", count(1, 65_535), Is("1"), "Requests in flight at once to one program."),
    program(
        "alignment",
        Kind::Word(ALIGNMENT),
        Is("auto"),
        "When a program whose replies carry no ids is watched for frames that nobody asked for before another \
         client is served: a silence of 10 ms, or of twice its longest latency so far if that is longer, at most \
         100 ms (100 ms until a program of the pool has passed a check). The client that was answered last never \
         waits. A program that prints something meanwhile is killed, and its pool is checked strictly until the \
         next reload.",
    ),
    program(
        "match",
        Kind::Text,
        Nothing,
        "What of a request its reply must carry unchanged: `{N}` for a word, from 1, or `{NAME}` for a member of \
         the JSON object that both are. A request without it is rejected, and a program whose reply does not \
         carry it is killed. It replaces the checks of `alignment`.",
    ),
    program(
        "line_breaks",
        Kind::Word(LINE_BREAKS),
        Is("reject"),
        "With `framing = \"lines\"` and programs that serve several clients, at once or one after the \
         other (`reset`): requests with a CR, U+0085, U+2028 or U+2029 \
         in them, at which some programs end a line too (universal newlines in Python, `readline` in \
         Node.js). Such a program would answer twice, and another client would get the second reply. A CR \
         before the LF of a client's line is part of its line end.",
    ),
    program(
        "reset",
        Kind::Text,
        Nothing,
        "With `dispatch = \"session\"`: a request that makes a program forget the connection that \
         has ended; its reply is discarded. In JSON-RPC it has an `id`. Without it the program is replaced, as all of \
         the pool are once one spoke unasked where that cannot be told from a reply (every framing \
         but those of JSON-RPC), or until the next reload once one printed something after its \
         reply to this.",
    ),
    program(
        "handshake",
        Kind::Word(HANDSHAKE),
        Is("none"),
        "What a program must say before it serves.",
    ),
    program(
        "stream",
        Kind::Group(STREAM, Short::None),
        Nothing,
        "A reply has many frames, each of which goes to the client as it comes; what ends it.",
    ),
    program(
        "cwd",
        Kind::Text,
        Nothing,
        "Working folder, relative to the daemon's; without it the daemon's own.",
    ),
    program(
        "env",
        Kind::Variables,
        Nothing,
        "Variables added to the daemon's environment. `env:NAME` as a value passes the daemon's variable of \
         that name. Variables that the configuration names as `env:NAME` are not inherited otherwise.",
    ),
    program(
        "grace",
        time_or_zero(),
        Is("2s"),
        "How long a program may take to end after its input was closed, and again after TERM.",
    ),
    program(
        "settle",
        time_or_zero(),
        Is("1s"),
        "A program that lived shorter than this counts towards the crash loop.",
    ),
    program(
        "env_clear",
        Kind::Switch,
        Is("false"),
        "Starts without the daemon's variables, with those of `env` alone.",
    ),
    program("io", Kind::Word(IO), Is("pipe"), "What requests and replies go through."),
    program("fds", Kind::Word(FDS), Is("0/1"), "Which descriptors of the program they are."),
    program(
        "unbuffer",
        Kind::Word(UNBUFFER),
        Is("no"),
        "What is done for a program that keeps its output in a buffer; `roadstead doctor` tells.",
    ),
    program(
        "user",
        Kind::Text,
        Nothing,
        "The user it runs as, by name or number; without it the daemon's own. `HOME`, `USER` and `LOGNAME` follow it.",
    ),
    program(
        "group",
        Kind::Text,
        Nothing,
        "The group it runs as, and no other; without it all groups of `user`.",
    ),
    program(
        "no_new_privs",
        Kind::Switch,
        Is("false"),
        "It can gain no rights by what it executes (set-user-id files).",
    ),
    program(
        "limits",
        Kind::Group(LIMITS, Short::None),
        Inner,
        "What one process of the program may use; what is not given is as the daemon's own.",
    ),
    program(
        "socket",
        Kind::Word(SOCKET),
        Is("inherited"),
        "With `framing = \"http\"`: where the program serves; it is ready once it accepts connections there.",
    ),
    program(
        "last_words",
        Kind::Word(LAST_WORDS),
        Is("auto"),
        "What a client is told of a program that ended with its request; the log has all of it.",
    ),
    program("ready", Kind::Word(READY), Is("start"), "How it says that it is ready for requests."),
    program(
        "start_timeout",
        time(),
        Is("30s"),
        "How long it may take until it is ready; then it is killed, and another is tried.",
    ),
    program(
        "first_byte",
        time_or_zero(),
        Is("0s"),
        "How long it may take for the first byte of a reply; `0s`: as long as for all of it (`deadline`).",
    ),
    program(
        "slow",
        time_or_zero(),
        Is("0s"),
        "A request that takes it so long is logged, and goes on; `0s`: never.",
    ),
    program(
        "write_stall",
        time_or_zero(),
        Is("0s"),
        "How long it may read nothing of what waits for it; `0s`: as long as `deadline` allows.",
    ),
    program(
        "recycle",
        Kind::Group(RECYCLE, Short::None),
        Inner,
        "When a program is replaced though nothing is wrong with it: between requests, and only once another \
         is ready.",
    ),
    program(
        "cpu",
        Kind::Processors,
        Is("any"),
        "Where it runs: `any` processor, `near` (the loop's own, on which the loop then stays), `spread` (each \
         program on another), or those of a list.",
    ),
    program(
        "nice",
        count(0, 19),
        Is("0"),
        "How much less urgent than the daemon it is for the kernel.",
    ),
    program(
        "cgroup",
        Kind::Text,
        Is("auto"),
        "Where its control group is made: `auto` (in the daemon's own where that was delegated to it), \
         `off`, or a folder of a cgroup2 file system.",
    ),
];

const RECYCLE: &[Opt] = &[
    any("requests", count(1, 4_000_000_000), Nothing, "After so many requests."),
    any("age", time(), Nothing, "When it has served for so long."),
    any(
        "memory",
        size(512 * GIB),
        Nothing,
        "When it occupies more than so many bytes after a reply, looked at once a second at most.",
    ),
    any(
        "jitter",
        count(0, 100),
        Is("15"),
        "Percent by which each of these may be less for one program, so that not all go together.",
    ),
    any(
        "share",
        count(1, 100),
        Is("20"),
        "Percent of the pool's programs that may be replaced at once; at least one.",
    ),
];

const LIMITS: &[Opt] = &[
    any("files", count(3, 1_000_000), Nothing, "Open descriptors."),
    any(
        "processes",
        count(1, 4_000_000),
        Nothing,
        "Processes and threads of its user, wherever they run; root is not held to it.",
    ),
    any(
        "memory",
        size(512 * GIB),
        Nothing,
        "Bytes of memory that it writes to; with a control group that counts memory, all its processes \
         together.",
    ),
    any(
        "address_space",
        size(512 * GIB),
        Nothing,
        "Bytes of address space; Node, Go and Java reserve far more than they use.",
    ),
    any("cpu", Kind::Time { min: Duration::from_secs(1), max: DAY }, Nothing, "Processor time."),
    any("core", Kind::Size { min: 0, max: 512 * GIB }, Nothing, "Bytes of a core file; 0: none."),
    any("file_size", size(512 * GIB), Nothing, "Bytes of a file that it writes."),
    any("stack", size(GIB), Nothing, "Bytes of a stack."),
];

const STREAM: &[Opt] = &[
    any("until", Kind::Text, Nothing, "A frame that is this ends the reply, and belongs to it."),
    any("gap", time(), Nothing, "When nothing came for so long, the reply has ended."),
];

const FRAMING: &[Word] = &[
    word("lines", Choice::Framing(Framing::Lines), "One line each."),
    word("nul", Choice::Framing(Framing::Nul), "A NUL behind each."),
    word("len1", Choice::Framing(Framing::Len1), "A length of one byte before each."),
    word(
        "len2",
        Choice::Framing(Framing::Len2),
        "A big-endian length of two bytes before each, as Erlang's `{packet, 2}`.",
    ),
    word(
        "len4",
        Choice::Framing(Framing::Len4),
        "A big-endian length of four bytes before each, as Erlang's `{packet, 4}`.",
    ),
    word("netstring", Choice::Framing(Framing::Netstring), "Each as `5:hello,`."),
    word(
        "content-length",
        Choice::Framing(Framing::ContentLength),
        "JSON-RPC messages behind a head with `Content-Length`, as LSP has it.",
    ),
    word(
        "jsonrpc",
        Choice::Framing(Framing::JsonRpc),
        "One JSON-RPC message a line, as the stdio transport of MCP.",
    ),
    word(
        "raw",
        Choice::Framing(Framing::Raw),
        "Bytes as they come; `stream` says when a reply has ended.",
    ),
    word(
        "oneshot",
        Choice::Framing(Framing::Oneshot),
        "A process a request: its input ends with the request, the reply with its output.",
    ),
    word(
        "http",
        Choice::Framing(Framing::Http),
        "It serves HTTP/1 on a socket (see `socket`), on as many connections at once as `pipeline` says; what \
         it prints goes to the log.",
    ),
];

const HANDSHAKE: &[Word] = &[
    word("none", Choice::Handshake(Handshake::None), "Nothing: it serves as soon as it runs."),
    word(
        "mcp",
        Choice::Handshake(Handshake::Mcp),
        "It is asked to `initialize` as MCP has it; clients that ask the same get its answer.",
    ),
];

const LINE_BREAKS: &[Word] = &[
    word("reject", Choice::LineBreaks(LineBreaks::Reject), "Rejected (`!record`)."),
    word(
        "keep",
        Choice::LineBreaks(LineBreaks::Keep),
        "Passed on as they are: for programs that end lines at LF alone.",
    ),
];

const ALIGNMENT: &[Word] = &[
    word(
        "auto",
        Choice::Alignment(Alignment::Auto),
        "After each of its first 16 replies, then once per 33 times the silence of a check (330 ms to 3.3 s) of \
         busy time, which is 3 % of it.",
    ),
    word(
        "strict",
        Choice::Alignment(Alignment::Strict),
        "After every reply; not with `pipeline` above 1.",
    ),
    word(
        "off",
        Choice::Alignment(Alignment::Off),
        "Never: frames that nobody asked for are noticed while it is idle only.",
    ),
];

const DISPATCH: &[Word] = &[
    word(
        "auto",
        Choice::Dispatch(Dispatch::Auto),
        "`tagged` for `jsonrpc` and `content-length`, `in-order` for the others.",
    ),
    word(
        "in-order",
        Choice::Dispatch(Dispatch::InOrder),
        "Replies come in the order of the requests.",
    ),
    word(
        "tagged",
        Choice::Dispatch(Dispatch::Tagged),
        "JSON-RPC messages whose ids are rewritten and restored; replies come in any order.",
    ),
    word(
        "session",
        Choice::Dispatch(Dispatch::Session),
        "A program serves one connection from its first request to its end; what it says unasked, and \
         what it asks, is for that client.",
    ),
];

const LAST_WORDS: &[Word] = &[
    word(
        "auto",
        Choice::LastWords(LastWords::Auto),
        "How it exited, and the last line on its standard error, 200 characters of it, since it was given a request of \
         this client; nothing that it said if it can work for several clients at once, or over HTTP, whose clients are \
         often strangers.",
    ),
    word("none", Choice::LastWords(LastWords::None), "That it ended."),
    word(
        "line",
        Choice::LastWords(LastWords::Line),
        "As `auto`, with the last line also over HTTP and of programs that can work for several clients at once.",
    ),
    word(
        "tail",
        Choice::LastWords(LastWords::Tail),
        "`line`; over HTTP, where a reply can have many lines, the last 8 KiB.",
    ),
];

const SOCKET: &[Word] = &[
    word(
        "inherited",
        Choice::HttpSocket(HttpSocket::Inherited),
        "A listening Unix socket that is its descriptor 3, told by `LISTEN_FDS` and `LISTEN_PID` as systemd \
         does.",
    ),
    word(
        "path",
        Choice::HttpSocket(HttpSocket::Path),
        "A Unix socket that it makes itself: at `ROADSTEAD_SOCKET`, or `{socket}` in its arguments.",
    ),
    word(
        "port",
        Choice::HttpSocket(HttpSocket::Port),
        "A port of 127.0.0.1 that is kept for it: `PORT`, or `{port}` in its arguments.",
    ),
];

const READY: &[Word] = &[
    word("start", Choice::Ready(Ready::Start), "It is as soon as it runs."),
    word(
        "line",
        Choice::Ready(Ready::Line),
        "By its first frame (a line, with `lines`), which is then no reply.",
    ),
];

const IO: &[Word] = &[
    word("pipe", Choice::Io(Io::Pipe), "Pipes, which every program can cope with."),
    word(
        "socket",
        Choice::Io(Io::Socket),
        "Unix sockets, which hold more before a side must wait.",
    ),
];

const FDS: &[Word] = &[
    word("0/1", Choice::Fds(Fds::Standard), "Standard input and output."),
    word(
        "3/4",
        Choice::Fds(Fds::ThreeFour),
        "3 and 4, as with Erlang's `nouse_stdio`; what it prints to standard output goes to the log.",
    ),
];

const UNBUFFER: &[Word] = &[
    word("no", Choice::Unbuffer(Unbuffer::No), "Nothing."),
    word(
        "stdbuf",
        Choice::Unbuffer(Unbuffer::Stdbuf),
        "The C library flushes every line; not for Perl, Python, Node, Go or static binaries.",
    ),
    word(
        "pty",
        Choice::Unbuffer(Unbuffer::Pty),
        "Its output is a terminal; programs that flush for people then flush.",
    ),
];
