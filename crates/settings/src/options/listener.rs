// tidy: table
//! The options of listeners.

use super::addresses::PER_ADDRESS;
use super::declare::{GIB, any, count, frames, size, time_or_zero, word};
use super::route::{AUTHENTICATE, EDITS, ROUTE};
use super::shape::{Choice, Default, Kind, Opt, Short, Word};
use crate::model::*;

use Default::{Is, None as Nothing, Required};

pub(super) const LISTENER: &[Opt] = &[
    any("listen", Kind::Address, Required, "Where it listens."),
    any(
        "pool",
        Kind::Pool,
        Nothing,
        "The pool that answers; with routes, those requests that no route is for.",
    ),
    any("protocol", Kind::Word(PROTOCOL), Is("lines"), "What its clients speak."),
    any("reply", Kind::Word(REPLY), Is("auto"), "How replies are distinguished from rejections."),
    any(
        "half_close",
        Kind::Word(HALF_CLOSE),
        Is("keep"),
        "What the end of a client's bytes means; on `http` it is `left` where nothing is said.",
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
        "Connections at once. One more takes the place of the idle connection that has been silent longest, and is \
         refused where none is idle.",
    ),
    any(
        "frame_max",
        size(GIB),
        Is("64KiB"),
        "Bytes of a request, without what marks its ends; 16MiB with `jsonrpc` and `content-length` unless it is given.",
    ),
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
        "Bytes of output that wait for a client to read them; over it the client is cut. 16MiB with `jsonrpc` and \
         `content-length` unless it is given.",
    ),
    any(
        "idle",
        time_or_zero(),
        Is("10m"),
        "A client that sends nothing and is owed nothing for so long is closed; `0s`: never.",
    ),
    any(
        "first_request_timeout",
        time_or_zero(),
        Is("10s"),
        "A client that has not begun its first request so long after it connected is closed; `0s`: never.",
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
        "send_rate_min",
        Kind::Size { min: 0, max: GIB },
        Is("512B"),
        "Bytes a second that a client must take while output waits for it, taken over each `write_stall`; `0B`: any.",
    ),
    any(
        "head_max",
        Kind::Size { min: 256, max: 65_535 },
        Is("16KiB"),
        "With `http`: bytes of the head of a request.",
    ),
    any("body_max", size(64 * GIB), Is("1MiB"), "With `http`: bytes of the body of a request."),
    any(
        "bodies_max",
        size(64 * GIB),
        Is("64MiB"),
        "With `http`: bytes of all bodies together that are taken whole before a program gets them; over it 503. One client address that is not `trusted` takes at most half of what others leave, but always one body.",
    ),
    any(
        "body_rate_min",
        Kind::Size { min: 0, max: GIB },
        Is("240B"),
        "With `http`: bytes a second that a body must bring, taken over each `read`; `0B`: any.",
    ),
    any(
        "tunnel_idle",
        time_or_zero(),
        Is("1h"),
        "With `http`: a tunnel in which neither side says anything for so long is ended; `0s`: never.",
    ),
    any(
        "forwarded",
        Kind::Word(FORWARDED),
        Is("x-forwarded"),
        "With `http`: which fields tell a server who asked.",
    ),
    any(
        "via",
        Kind::Text,
        Is("roadstead"),
        "With `http`: the name under which requests and replies that are forwarded get a `Via` field (RFC 9110 \
         §7.6.3): a pseudonym, or a host with or without a port; `off`: no field is added.",
    ),
    any(
        "allow_trace",
        Kind::Switch,
        Is("false"),
        "With `http`: requests with the method TRACE are forwarded; otherwise they are rejected with status 501.",
    ),
    any(
        "allow_upgrade",
        Kind::Switch,
        Is("true"),
        "With `http`: a request may ask for another protocol, such as WebSocket; otherwise its `Upgrade` is removed \
         and it is served as a plain request. Upgrades to `h2c`, and those of HEAD, are always removed.",
    ),
    any(
        "trusted",
        Kind::Names,
        Nothing,
        "With `http`: addresses or networks of clients that are proxies, whose own such fields are kept. Those of a \
         Unix socket are kept always: its file says who may connect.",
    ),
    any(
        "allow",
        Kind::Names,
        Nothing,
        "Addresses or networks whose clients are taken, and no others; without it all are.",
    ),
    any(
        "deny",
        Kind::Names,
        Nothing,
        "Addresses or networks whose clients are refused, also those that `allow` has.",
    ),
    any(
        "per_address",
        Kind::Group(PER_ADDRESS, Short::None),
        Nothing,
        "What the clients of one address may do together; without it all that the listener may.",
    ),
    any(
        "access_log",
        Kind::Switch,
        Is("true"),
        "Whether its requests are in the access log, if there is one.",
    ),
    any(
        "route",
        Kind::List(ROUTE, "pool"),
        Nothing,
        "With `http`: which way requests go; the first that fits.",
    ),
    any(
        "authenticate",
        Kind::Group(AUTHENTICATE, Short::None),
        Nothing,
        "With `http`: who is let through; without it, everybody.",
    ),
    any(
        "request_headers",
        Kind::Group(EDITS, Short::None),
        Nothing,
        "With `http`: what is changed in the head of a request.",
    ),
    any(
        "response_headers",
        Kind::Group(EDITS, Short::None),
        Nothing,
        "With `http`: what is changed in the head of a server's reply, and added to answers of routes.",
    ),
    any(
        "backlog",
        count(1, 65_535),
        Is("4096"),
        "Connections that the kernel holds until they are accepted.",
    ),
    any(
        "tcp_keepalive",
        time_or_zero(),
        Is("2m"),
        "A client that says nothing for so long is asked by the kernel whether it is there, and is gone if it \
         does not answer in as long again; `0s`: never.",
    ),
    any(
        "reuse_address",
        Kind::Switch,
        Is("true"),
        "Listens on an address at once, also where the kernel still remembers former connections.",
    ),
];

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
    word(
        "auto",
        Choice::ReplyStyle(ReplyStyle::Auto),
        "`status` with `len1`, `len2`, `len4` and `netstring`, whose replies may be any bytes; `plain` otherwise. On `raw` a \
         rejection or failure adds no bytes: the connection is reset.",
    ),
    word("plain", Choice::ReplyStyle(ReplyStyle::Plain), "As they are; refusals begin with `!`."),
    word(
        "status",
        Choice::ReplyStyle(ReplyStyle::Status),
        "Every reply begins with `+` (answered), `!` (refused) or `-` (failed or unknown).",
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
    word(
        "left",
        Choice::HalfClose(HalfClose::Left),
        "It has left, and what no worker has begun to answer is given up.",
    ),
];

const LAST_LINE: &[Word] = &[
    word("refuse", Choice::LastLine(LastLine::Refuse), "It is refused: it may have been cut off."),
    word("accept", Choice::LastLine(LastLine::Accept), "It is a request like any other."),
];
