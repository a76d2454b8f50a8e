// tidy: table
//! The options of every pool.

use super::balance::{HEALTH, SCHEDULE, SORRY, STICKY};
use super::declare::{GIB, any, count, size, time, time_or_zero, word};
use super::shape::{Choice, Default, Kind, Of, Opt, Short, Word};
use crate::model::*;

use Default::{Inner, Is, None as Nothing};

const fn handler(name: &'static str, kind: Kind, default: Default, about: &'static str) -> Opt {
    Opt::new(name, kind, default, Of::Handler, about)
}

/// What every pool has.
pub(super) const COMMON: &[Opt] = &[
    handler(
        "handler",
        Kind::Text,
        Nothing,
        "A handler that the program which embeds Roadstead has registered under this name.",
    ),
    any("workers", Kind::Group(WORKERS, Short::Span), Inner, "How many workers."),
    any(
        "queue",
        Kind::Group(QUEUE, Short::None),
        Inner,
        "How many requests may wait, and how long.",
    ),
    any(
        "schedule",
        Kind::Word(SCHEDULE),
        Default::Handlers { handler: "first", other: "round-robin" },
        "Which free worker is next. Threads of handlers are woken in their order, so that few stay warm.",
    ),
    any("hash", Kind::Key, Is("source"), "What `schedule = \"hash\"` goes by."),
    any(
        "sticky",
        Kind::Group(STICKY, Short::None),
        Nothing,
        "Binds each client to the worker that had its first request.",
    ),
    any(
        "health",
        Kind::Group(HEALTH, Short::Off),
        Inner,
        "When a worker is left out, and how long; `\"off\"`: never.",
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
        "retries",
        Kind::Group(RETRIES, Short::None),
        Inner,
        "How often a request that a server or a program that serves HTTP had and did not answer is given to \
         another, where it may be made again.",
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
    any(
        "idempotent",
        Kind::Word(IDEMPOTENT),
        Is("methods"),
        "Which requests may be made again, by another worker, though one of servers or programs had them and \
         ended, or answered with what is no reply. `retries` says how often.",
    ),
    any(
        "response_head_max",
        Kind::Size { min: 256, max: 65_535 },
        Is("32KiB"),
        "Of servers and of programs that serve HTTP: bytes of the head of a response, its status line included; \
         over it the response is a 502 (`head-too-long`).",
    ),
    any(
        "response_fields_max",
        count(1, 10_000),
        Is("100"),
        "Of servers and of programs that serve HTTP: header fields of a response; over it the response is a 502 \
         (`too-many-fields`).",
    ),
    any(
        "reply_max",
        size(GIB),
        Is("1MiB"),
        "Bytes of one reply of a program or a query; 16MiB with `framing` of `jsonrpc` or `content-length` unless it is \
         given.",
    ),
];

const RETRIES: &[Opt] = &[
    any(
        "tries",
        count(1, 255),
        Is("3"),
        "Times that one request is given to a server; 1: never again.",
    ),
    any(
        "share",
        count(0, 100),
        Is("10"),
        "Percent of the requests that repeats may be in the long run, so that servers which fail are not asked \
         twice as much.",
    ),
    any("reserve", count(1, 1_000_000), Is("20"), "Repeats that may be made at once beyond that."),
    any(
        "on",
        Kind::Names,
        Nothing,
        "On which failures a request is retried: `connect` (no connection), `reset` (the connection ended before the \
         response), `timeout` (`deadline` passed before the response), `invalid` (not an HTTP response), and \
         statuses of responses from 400 to 599, like `503` or `502..504`. Without it: `connect`, `reset` and \
         `invalid`. A request that a server received is retried only if `idempotent` allows it and its body was \
         complete when it was sent (at most 64 KiB).",
    ),
];

const IDEMPOTENT: &[Word] = &[
    word("none", Choice::Idempotent(Idempotent::None), "None of which a byte reached a worker."),
    word(
        "safe",
        Choice::Idempotent(Idempotent::Safe),
        "Requests of HTTP that ask for no change: GET, HEAD, OPTIONS and TRACE.",
    ),
    word(
        "methods",
        Choice::Idempotent(Idempotent::Methods),
        "Those, and PUT and DELETE, which mean the same when they are made twice.",
    ),
    word(
        "all",
        Choice::Idempotent(Idempotent::All),
        "Every request, whatever its method, and everything that programs on pipes are given.",
    ),
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

const QUEUE: &[Opt] = &[
    any("length", count(1, 10_000_000), Is("10000"), "Requests."),
    any("bytes", size(64 * GIB), Is("64MiB"), "Bytes of memory that they hold."),
    any("wait", time(), Is("5s"), "How long one may wait before it is refused."),
    any(
        "hold",
        time_or_zero(),
        Is("0s"),
        "How long requests wait while workers run but none is fit, and bound clients for their server.",
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
