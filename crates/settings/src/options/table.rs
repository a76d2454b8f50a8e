// tidy: table
//! The table: every option there is.
//!
//! What it is: data. Defaults stand here and nowhere else, written as in a file.

use super::access_log::ACCESS_LOG;
use super::admin::ADMIN;
use super::database::DATABASE;
use super::declare::{GIB, any, time_or_zero, word};
use super::listener::LISTENER;
use super::pool::COMMON;
use super::program::PROGRAM;
use super::servers::SERVERS;
use super::shape::{Choice, Default, Kind, Opt, Section, Word};
use crate::model::EventKernel;

use Default::Is;

/// Every section.
pub(crate) const SECTIONS: &[Section] = &[
    Section { name: "daemon", named: false, about: "The daemon as a whole.", options: DAEMON },
    Section {
        name: "admin",
        named: false,
        about: "The admin address; without this section there is none.",
        options: ADMIN,
    },
    Section {
        name: "access_log",
        named: false,
        about: "The access log, one line a request; without this section there is none.",
        options: ACCESS_LOG,
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
    any(
        "drain_keepalive_timeout",
        time_or_zero(),
        Is("1s"),
        "How long an HTTP connection without a request stays open during a drain, counted from its last \
         activity. A request that arrives in this time is served with `Connection: close`.",
    ),
    any(
        "memory_max",
        Kind::Size { min: 1 << 20, max: 16_384 * GIB },
        Default::None,
        "Bytes of memory that queues, output, held replies, messages between shards and read buffers may occupy \
         together. Over it new requests are rejected, then connections are closed. Without it 80 % of the limit of \
         the control group, or half of the memory where there is none.",
    ),
    any("event", Kind::Word(EVENT), Is("auto"), "What its loops wait for the kernel with."),
    any(
        "shards",
        Kind::CountOrAuto { min: 1, max: 64 },
        Is("1"),
        "Loops, each on a thread of its own; `auto`: as many as there are processors for the daemon. Clients \
         are shared out among them, every limit holds for all together.",
    ),
];

/// The options of a pool: of every one, then of each kind of worker.
const POOL: &[Opt] = &joined::<{ length(POOLS) }>(POOLS);

const POOLS: &[&[Opt]] = &[COMMON, PROGRAM, DATABASE, SERVERS];

const fn length(parts: &[&[Opt]]) -> usize {
    let (mut length, mut part) = (0, 0);
    while part < parts.len() {
        length += parts[part].len();
        part += 1;
    }
    length
}

/// One list of several; a table is made when it is compiled.
const fn joined<const N: usize>(parts: &[&[Opt]]) -> [Opt; N] {
    let mut all = [parts[0][0]; N];
    let (mut next, mut part) = (0, 0);
    while part < parts.len() {
        let mut option = 0;
        while option < parts[part].len() {
            all[next] = parts[part][option];
            next += 1;
            option += 1;
        }
        part += 1;
    }
    all
}

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
