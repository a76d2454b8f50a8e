// tidy: table
//! The table: every option there is.
//!
//! What it is: data. Defaults stand here and nowhere else, written as in a file.

use std::time::Duration;

use super::balance::{HEALTH, SCHEDULE, SORRY, STICKY};
use super::{Choice, Default, Kind, Of, Opt, Section, Short, Word};
use crate::model::*;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) const fn count(min: u64, max: u64) -> Kind {
    Kind::Count { min, max }
}

/// Bytes from 1.
const fn size(max: u64) -> Kind {
    Kind::Size { min: 1, max }
}

/// A time that must pass.
pub(super) const fn time() -> Kind {
    Kind::Time { min: Duration::from_millis(1), max: DAY }
}

/// A time that may be zero.
pub(super) const fn time_or_zero() -> Kind {
    Kind::Time { min: Duration::ZERO, max: DAY }
}

pub(super) const fn word(name: &'static str, means: Choice, about: &'static str) -> Word {
    Word { name, means, about }
}

pub(super) const fn any(
    name: &'static str,
    kind: Kind,
    default: Default,
    about: &'static str,
) -> Opt {
    Opt::new(name, kind, default, Of::Any, about)
}

const fn program(name: &'static str, kind: Kind, default: Default, about: &'static str) -> Opt {
    Opt::new(name, kind, default, Of::Program, about)
}

const fn database(name: &'static str, kind: Kind, default: Default, about: &'static str) -> Opt {
    Opt::new(name, kind, default, Of::Database, about)
}

const fn handler(name: &'static str, kind: Kind, default: Default, about: &'static str) -> Opt {
    Opt::new(name, kind, default, Of::Handler, about)
}

const fn servers(name: &'static str, kind: Kind, default: Default, about: &'static str) -> Opt {
    Opt::new(name, kind, default, Of::Servers, about)
}

use Default::{Inner, Is, None as Nothing, Required};

/// Every section.
pub(crate) const SECTIONS: &[Section] = &[
    Section { name: "daemon", named: false, about: "The daemon as a whole.", options: DAEMON },
    Section {
        name: "admin",
        named: false,
        about: "The admin address; without this section there is none.",
        options: &[any("listen", Kind::Address, Required, "Where metrics and status are served.")],
    },
    Section {
        name: "listener",
        named: true,
        about: "Where clients connect. There may be many, each with a name.",
        options: LISTENER,
    },
    Section {
        name: "pool",
        named: true,
        about: "Who answers. There may be many, each with a name; a pool has either a `program`, \
                a `database` or `servers`.",
        options: POOL,
    },
];

const DAEMON: &[Opt] = &[
    any("drain", time_or_zero(), Is("30s"), "How long a drain may take before it is cut."),
    any("event", Kind::Word(EVENT), Is("auto"), "What its loops wait for the kernel with."),
];

const LISTENER: &[Opt] = &[
    any("listen", Kind::Address, Required, "Where it listens."),
    any("pool", Kind::Pool, Required, "The pool that answers."),
    any("protocol", Kind::Word(PROTOCOL), Is("lines"), "What its clients speak."),
    any("reply", Kind::Word(REPLY), Is("plain"), "How replies are marked."),
    any(
        "half_close",
        Kind::Word(HALF_CLOSE),
        Is("keep"),
        "What the end of a client's bytes means.",
    ),
    any(
        "last_line",
        Kind::Word(LAST_LINE),
        Is("refuse"),
        "What becomes of a last line, or other frame, whose end mark did not come.",
    ),
    any(
        "connections_max",
        count(1, 1_000_000),
        Is("10000"),
        "Connections at once; one more is refused.",
    ),
    any("frame_max", size(GIB), Is("64KiB"), "Bytes of a request, without what marks its ends."),
    any(
        "frame_over",
        Kind::Word(FRAME_OVER),
        Is("skip"),
        "What becomes of a client that sends a longer one.",
    ),
    any(
        "in_flight_max",
        count(1, 1_000_000),
        Is("64"),
        "Requests of one client at once; at the limit it is not read.",
    ),
    any(
        "reply_held_max",
        size(GIB),
        Is("1MiB"),
        "Bytes of a client's replies that wait for their turn.",
    ),
    any(
        "send_max",
        size(GIB),
        Is("4MiB"),
        "Bytes of output that wait for a client to read them; over it the client is cut.",
    ),
    any(
        "idle",
        time_or_zero(),
        Is("10m"),
        "A client that sends nothing and is owed nothing for so long is closed; `0s`: never.",
    ),
    any(
        "read",
        time_or_zero(),
        Is("10s"),
        "A request that was begun must be complete after so long; `0s`: never.",
    ),
    any(
        "write_stall",
        time_or_zero(),
        Is("30s"),
        "A client that takes none of its output for so long is closed; `0s`: never.",
    ),
    any(
        "head_max",
        Kind::Size { min: 256, max: 65_535 },
        Is("16KiB"),
        "With `http`: bytes of the head of a request.",
    ),
    any("body_max", size(64 * GIB), Is("1MiB"), "With `http`: bytes of the body of a request."),
    any(
        "forwarded",
        Kind::Word(FORWARDED),
        Is("x-forwarded"),
        "With `http`: which fields tell a server who asked.",
    ),
    any(
        "trusted",
        Kind::Names,
        Nothing,
        "With `http`: addresses or networks of clients that are proxies, whose own such fields are kept.",
    ),
    any(
        "backlog",
        count(1, 65_535),
        Is("4096"),
        "Connections that the kernel holds until they are accepted.",
    ),
    any(
        "reuse_address",
        Kind::Switch,
        Is("true"),
        "Listens on an address at once, also where the kernel still remembers former connections.",
    ),
];

const POOL: &[Opt] = &[
    program(
        "program",
        Kind::Command,
        Nothing,
        "The program and its arguments; no shell is involved.",
    ),
    database(
        "database",
        Kind::Target,
        Nothing,
        "The database, written `sqlite:PATH`, `postgres://USER@HOST:PORT/DATABASE` or \
         `mysql://USER@HOST:PORT/DATABASE`; `?socket=/path` behind it stands for host and port.",
    ),
    database(
        "password",
        Kind::Secret,
        Nothing,
        "What proves to a server who we are: `env:NAME`, a variable of the daemon, or `file:PATH`.",
    ),
    database("tls", Kind::Word(TLS), Is("auto"), "Whether the way to a server is encrypted."),
    database(
        "tls_ca",
        Kind::Text,
        Nothing,
        "A file of the certificates (PEM) that may stand for the server; without it those of the system.",
    ),
    database(
        "connect_wait",
        time(),
        Is("5s"),
        "How long it may take to connect to a server and to prepare what is needed there.",
    ),
    handler(
        "handler",
        Kind::Text,
        Nothing,
        "A handler that the program which embeds Roadstead has registered under this name.",
    ),
    servers(
        "servers",
        Kind::List(SERVERS, "address"),
        Nothing,
        "Servers that speak HTTP, as tables or as addresses alone; each is a worker.",
    ),
    servers(
        "server_requests_max",
        count(1, 65_535),
        Is("1000"),
        "Requests that one server has at once; each has a connection of its own.",
    ),
    servers("connect", time(), Is("5s"), "How long a connection to a server may take."),
    servers("between", time(), Is("30s"), "How long nothing may come of a reply that has begun."),
    servers(
        "total",
        time_or_zero(),
        Is("0s"),
        "How long a request may take in all, its reply included; `0s`: as long as it goes on.",
    ),
    servers(
        "keep",
        time(),
        Is("60s"),
        "How long a connection to a server is kept for the next request.",
    ),
    any("workers", Kind::Group(WORKERS, Short::Span), Inner, "How many workers."),
    any(
        "queue",
        Kind::Group(QUEUE, Short::None),
        Inner,
        "How many requests may wait, and how long.",
    ),
    any("schedule", Kind::Word(SCHEDULE), Is("round-robin"), "Which free worker is next."),
    any("hash", Kind::Key, Is("source"), "What `schedule = \"hash\"` goes by."),
    any(
        "sticky",
        Kind::Group(STICKY, Short::None),
        Nothing,
        "Binds each client to the worker that had its first request.",
    ),
    any(
        "health",
        Kind::Group(HEALTH, Short::None),
        Inner,
        "When a worker is left out, and how long.",
    ),
    any(
        "sorry",
        Kind::Group(SORRY, Short::None),
        Nothing,
        "What it answers, in place of a refusal, when it is over its limits, nobody can answer, a request waited \
         too long, or an operator says so.",
    ),
    any(
        "slots_max",
        count(1, 1_000_000),
        Nothing,
        "Requests that all its workers together may have in their hands at once.",
    ),
    any(
        "slow_start",
        time_or_zero(),
        Is("0s"),
        "How long a new worker takes until it is given its whole share, where the schedule has weights.",
    ),
    any(
        "decisions",
        count(0, 1_000_000),
        Is("256"),
        "Decisions that are kept, for `roadstead ctl why`.",
    ),
    any(
        "deadline",
        time(),
        Is("30s"),
        "How long a worker may take for one request before it is ended; of servers, until the first byte \
         of the reply.",
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
        "reset",
        Kind::Text,
        Nothing,
        "With `dispatch = \"session\"`: a request that makes a program forget the connection that \
         has ended; its reply is discarded. Without it the program is replaced.",
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
    any("reply_max", size(GIB), Is("1MiB"), "Bytes of one reply of a program or a query."),
    program(
        "cwd",
        Kind::Text,
        Nothing,
        "Working folder, relative to the daemon's; without it the daemon's own.",
    ),
    program("env", Kind::Variables, Nothing, "Variables added to the daemon's environment."),
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
        "The user it runs as, by name or number; without it the daemon's own.",
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
    database(
        "insert",
        Kind::Group(INSERT, Short::None),
        Nothing,
        "The row that a request becomes; either this, `statement` or `query`.",
    ),
    database(
        "statement",
        Kind::Text,
        Nothing,
        "Any statement that writes, prepared once, with `:name` parameters.",
    ),
    database(
        "query",
        Kind::Text,
        Nothing,
        "Any statement that reads, prepared once, with `:name` parameters; its rows are the reply.",
    ),
    database("rows", Kind::Word(ROWS), Is("json"), "How the rows of a query are written."),
    database(
        "rows_max",
        count(1, 10_000_000),
        Is("10000"),
        "Rows of the reply to a query; with more it is refused.",
    ),
    database(
        "order",
        Kind::Word(ORDER),
        Is("client"),
        "In which order rows are committed; several workers that write need `any`.",
    ),
    database("create", Kind::Text, Nothing, "Makes a missing table at start."),
    database("record", Kind::Word(RECORD), Is("json"), "How a request is read into named values."),
    database(
        "ack",
        Kind::Template,
        Is("ok"),
        "The reply after the commit, one line; `{name}` stands for a value of the record.",
    ),
    database("sync", Kind::Word(SYNC), Is("full"), "What a commit waits for."),
    database(
        "lock_wait",
        time_or_zero(),
        Is("5s"),
        "How long to wait for a lock that another process holds.",
    ),
    database(
        "retry",
        time_or_zero(),
        Is("10s"),
        "How long a batch that a server is known not to have stored is tried again; `0s`: not at all.",
    ),
    database(
        "dead",
        Kind::Text,
        Nothing,
        "A table that keeps the rows which the database does not accept; it is made where it is missing.",
    ),
    database(
        "batch",
        Kind::Group(BATCH, Short::None),
        Inner,
        "How many requests are committed at once. A batch leaves when a worker is free and it is \
         full or old enough.",
    )
    .instead("a program takes one request at a time; `pipeline` sends it more before it answers"),
];

const SERVERS: &[Opt] = &[
    any(
        "address",
        Kind::Address,
        Required,
        "Where it listens, like `10.0.0.1:8000` or `unix:/run/app.sock`.",
    ),
    any(
        "weight",
        count(0, 256),
        Is("1"),
        "How much it gets compared with the others; 0: nothing new.",
    ),
    any("backup", Kind::Switch, Is("false"), "It serves only when no other can."),
];

const WORKERS: &[Opt] = &[
    any(
        "preset",
        Kind::Word(PRESET),
        Is("elastic"),
        "Other defaults for what is not given; docs/design/elastic.md says which to take when.",
    ),
    any("min", count(0, 10_000), Is("1"), "Never fewer; 0: none until somebody asks."),
    any(
        "max",
        count(1, 10_000),
        Default::Of { program: "4", database: "1" },
        "Never more; when it is not given, at least `min`.",
    ),
    any(
        "spare",
        count(0, 10_000),
        Is("0"),
        "Kept free beyond the busy ones, as far as `max` allows.",
    ),
    any(
        "idle",
        time(),
        Is("30s"),
        "A worker beyond `min` and `spare` that had nothing to do for so long is ended.",
    ),
    any(
        "grow_after",
        time_or_zero(),
        Is("10ms"),
        "A request that waited so long is a reason to start another worker.",
    ),
    any(
        "grow_above",
        count(0, 1_000_000),
        Nothing,
        "More waiting requests than this are a reason to start workers at once; without it only \
         their age is.",
    ),
];

const PRESET: &[Word] = &[
    word("elastic", Choice::Preset(Preset::Elastic), "The defaults of this table."),
    word(
        "static",
        Choice::Preset(Preset::Static),
        "Always as many as `max`, or as `min` when only that is given.",
    ),
    word(
        "prefork",
        Choice::Preset(Preset::Prefork),
        "`spare = 2`, or `max` where that is less: some are ready before they are needed.",
    ),
    word(
        "on-demand",
        Choice::Preset(Preset::OnDemand),
        "`min = 0`: none until somebody asks, and none again after `idle`.",
    ),
    word(
        "queue",
        Choice::Preset(Preset::Queue),
        "`grow_above = 3`: grows as soon as more than three requests wait.",
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

const QUEUE: &[Opt] = &[
    any("length", count(1, 10_000_000), Is("10000"), "Requests."),
    any("bytes", size(64 * GIB), Is("64MiB"), "Bytes of memory that they hold."),
    any("wait", time(), Is("5s"), "How long one may wait before it is refused."),
    any(
        "hold",
        time_or_zero(),
        Is("0s"),
        "How long requests wait while workers run but none is fit.",
    ),
    any(
        "fair",
        Kind::Key,
        Nothing,
        "Those that have this in common take turns: one that asks much does not keep others waiting.",
    ),
    any(
        "priority",
        Kind::Key,
        Nothing,
        "Where a request says how urgent it is: a digit, 0 the most, 5 where there is none.",
    ),
    any(
        "priority_step",
        time(),
        Is("1s"),
        "One level of priority is worth so much waiting: nobody waits for ever.",
    ),
];

const BATCH: &[Opt] = &[
    any("rows", count(1, 100_000), Default::Of { program: "1", database: "1000" }, "Requests."),
    any("bytes", size(256 * MIB), Is("1MiB"), "Bytes of their bodies."),
    any(
        "wait",
        time_or_zero(),
        Is("0s"),
        "How long a batch that is not full waits for more; `0s`: not at all.",
    ),
];

const STREAM: &[Opt] = &[
    any("until", Kind::Text, Nothing, "A frame that is this ends the reply, and belongs to it."),
    any("gap", time(), Nothing, "When nothing came for so long, the reply has ended."),
];

const INSERT: &[Opt] = &[
    any("table", Kind::Text, Required, "The table."),
    any("columns", Kind::Names, Required, "Its columns, which are also the names in the record."),
    any(
        "on_conflict",
        Kind::Word(ON_CONFLICT),
        Is("refuse"),
        "What happens when the row is there already.",
    ),
];

const EVENT: &[Word] = &[
    word("auto", Choice::EventKernel(EventKernel::Auto), "The best of this system: epoll."),
    word(
        "epoll",
        Choice::EventKernel(EventKernel::Epoll),
        "No cost for connections that are idle.",
    ),
    word(
        "poll",
        Choice::EventKernel(EventKernel::Poll),
        "Every turn costs a look at every connection.",
    ),
    word(
        "select",
        Choice::EventKernel(EventKernel::Select),
        "As `poll`, and a client that leaves while it is not read is noticed within a second.",
    ),
];

const fn frames(name: &'static str, framing: Framing, about: &'static str) -> Word {
    word(name, Choice::Protocol(Protocol::Frames(framing)), about)
}

const PROTOCOL: &[Word] = &[
    frames("lines", Framing::Lines, "One request a line, one line a reply."),
    frames("nul", Framing::Nul, "A NUL behind each request and reply."),
    frames("len1", Framing::Len1, "A length of one byte before each."),
    frames("len2", Framing::Len2, "A big-endian length of two bytes before each."),
    frames("len4", Framing::Len4, "A big-endian length of four bytes before each."),
    frames("netstring", Framing::Netstring, "Each as `5:hello,`."),
    frames(
        "content-length",
        Framing::ContentLength,
        "JSON-RPC messages, each behind a head with `Content-Length`, as LSP has it.",
    ),
    frames(
        "jsonrpc",
        Framing::JsonRpc,
        "One JSON-RPC message a line; replies come in any order, found by their ids.",
    ),
    frames("raw", Framing::Raw, "Whatever bytes come together are a request."),
    word(
        "connect",
        Choice::Protocol(Protocol::Connect),
        "The connection is the request, and its body the client's address; the reply is sent as it \
         is, and the connection closed. What the client sends is discarded.",
    ),
    word(
        "datagrams",
        Choice::Protocol(Protocol::Datagrams),
        "UDP, or a Unix socket of datagrams: one is a request, and its reply one to its sender; \
         `connections_max` limits the requests on their way.",
    ),
    word("http", Choice::Protocol(Protocol::Http), "HTTP/1.1 and 1.0, to a pool of servers."),
];

const FORWARDED: &[Word] = &[
    word(
        "x-forwarded",
        Choice::Forwarded(Forwarded::Legacy),
        "`X-Forwarded-For`, `X-Forwarded-Proto` and `X-Forwarded-Host`.",
    ),
    word("standard", Choice::Forwarded(Forwarded::Standard), "`Forwarded` of RFC 7239."),
    word("nothing", Choice::Forwarded(Forwarded::Nothing), "None."),
];

const REPLY: &[Word] = &[
    word("plain", Choice::ReplyStyle(ReplyStyle::Plain), "As they are; refusals begin with `!`."),
    word(
        "status",
        Choice::ReplyStyle(ReplyStyle::Status),
        "Every line begins with `+` (answered), `!` (refused) or `-` (failed or unknown).",
    ),
];

const FRAME_OVER: &[Word] = &[
    word("skip", Choice::FrameOver(FrameOver::Skip), "It is refused and passed over."),
    word(
        "end",
        Choice::FrameOver(FrameOver::End),
        "It is refused, and the client gets what it is owed and no more.",
    ),
];

const HALF_CLOSE: &[Word] = &[
    word("keep", Choice::HalfClose(HalfClose::Keep), "It still wants its replies."),
    word("left", Choice::HalfClose(HalfClose::Left), "It has left."),
];

const LAST_LINE: &[Word] = &[
    word("refuse", Choice::LastLine(LastLine::Refuse), "It is refused: it may have been cut off."),
    word("accept", Choice::LastLine(LastLine::Accept), "It is a request like any other."),
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
];

const HANDSHAKE: &[Word] = &[
    word("none", Choice::Handshake(Handshake::None), "Nothing: it serves as soon as it runs."),
    word(
        "mcp",
        Choice::Handshake(Handshake::Mcp),
        "It is asked to `initialize` as MCP has it; clients that ask the same get its answer.",
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
        "A program serves one connection from its first request to its end.",
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

const RECORD: &[Word] = &[
    word("json", Choice::Record(Record::Json), "One JSON object."),
    word(
        "tsv",
        Choice::Record(Record::Tsv),
        "Values with tabs between, in the order of the columns or of the parameters of the statement; `\\N` is NULL.",
    ),
    word(
        "logfmt",
        Choice::Record(Record::Logfmt),
        "`name=value` with blanks between; a name alone is NULL.",
    ),
];

const SYNC: &[Word] = &[
    word(
        "full",
        Choice::Sync(Sync::Full),
        "The disk has it: nothing acknowledged is lost when power fails.",
    ),
    word(
        "normal",
        Choice::Sync(Sync::Normal),
        "The operating system has it: nothing acknowledged is lost when the daemon dies.",
    ),
];

const ROWS: &[Word] = &[
    word("json", Choice::RowFormat(RowFormat::Json), "One line: an array with an object a row."),
    word(
        "lines",
        Choice::RowFormat(RowFormat::Lines),
        "A line with an object for each row; several of them need a framing that carries line feeds.",
    ),
    word(
        "tsv",
        Choice::RowFormat(RowFormat::Tsv),
        "A line of values with tabs between for each row, `\\N` for NULL; several of them need a framing that \
         carries line feeds.",
    ),
];

const ORDER: &[Word] = &[
    word("client", Choice::Order(Order::Client), "The rows of one client in its order."),
    word("any", Choice::Order(Order::Any), "Batches overtake each other."),
];

const TLS: &[Word] = &[
    word("auto", Choice::Tls(Tls::Auto), "Unless the server is this machine."),
    word("on", Choice::Tls(Tls::On), "Always, with a certificate that is valid for its name."),
    word("off", Choice::Tls(Tls::Off), "Never."),
];

const ON_CONFLICT: &[Word] = &[
    word("refuse", Choice::OnConflict(OnConflict::Refuse), "The row is refused."),
    word(
        "nothing",
        Choice::OnConflict(OnConflict::Nothing),
        "The row that is there stays, and the request is acknowledged.",
    ),
];
