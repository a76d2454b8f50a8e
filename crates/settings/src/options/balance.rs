//! The options of balancing.

use super::declare::{any, count, time, time_or_zero, word};
use super::shape::{Choice, Default, Kind, Opt, Word};
use crate::model::{CheckKind, CookieMode, CookieValue, Gone, SameSite, Schedule};

use Default::{Is, None as Nothing};

pub(super) const STICKY: &[Opt] = &[
    any(
        "key",
        Kind::Key,
        Nothing,
        "What a client is known by; either this or `cookie`. `connection` works on every listener but \
         one of datagrams, on Unix sockets too.",
    ),
    any(
        "cookie",
        Kind::Text,
        Nothing,
        "The name of a cookie of HTTP that says which server is the client's own.",
    ),
    any("mode", Kind::Word(MODE), Is("insert"), "How the client gets the cookie."),
    any("value", Kind::Word(VALUE), Is("opaque"), "What its value is made of; never an address."),
    any(
        "secret",
        Kind::Secret,
        Nothing,
        "What values are made with, the same on machines that share clients; without it clients are bound \
         anew after a restart.",
    ),
    any("path", Kind::Text, Is("/"), "`Path` of a cookie that is inserted."),
    any("max_age", time_or_zero(), Is("0s"), "Its `Max-Age`; `0s`: until the client ends."),
    any("http_only", Kind::Switch, Is("true"), "Whether it is `HttpOnly`."),
    any("secure", Kind::Switch, Is("false"), "Whether it is `Secure`."),
    any("same_site", Kind::Word(SAME_SITE), Is("lax"), "Its `SameSite`."),
    any(
        "lifetime",
        time(),
        Is("1h"),
        "A client that did not ask for so long is no longer bound; with a cookie it goes with `value = \"signed\"` or \
         `mode = \"passive\"`.",
    ),
    any(
        "entries",
        count(1, 10_000_000),
        Is("100000"),
        "Clients bound at once, some 58 bytes each, which are taken at the start; beyond it the one that rested \
         longest is let go. With a cookie it goes with `mode = \"passive\"` alone.",
    ),
    any(
        "gone",
        Kind::Word(GONE),
        Is("reschedule"),
        "What becomes of a client whose worker is gone.",
    ),
];

const MODE: &[Word] = &[
    word("insert", Choice::Mode(CookieMode::Insert), "One of ours is added to replies."),
    word(
        "rewrite",
        Choice::Mode(CookieMode::Rewrite),
        "The value that the server gives to a cookie of this name is replaced by ours.",
    ),
    word(
        "prefix",
        Choice::Mode(CookieMode::Prefix),
        "Ours and a `~` stand before the server's value, and are taken off before it sees them.",
    ),
    word(
        "passive",
        Choice::Mode(CookieMode::Passive),
        "Nothing is changed; the value that the server gives is learnt.",
    ),
];

const VALUE: &[Word] = &[
    word("opaque", Choice::Value(CookieValue::Opaque), "A digest of the server's name."),
    word(
        "signed",
        Choice::Value(CookieValue::Signed),
        "The digest and the time, signed: it cannot be made up, nor used beyond `lifetime`.",
    ),
];

const SAME_SITE: &[Word] = &[
    word("strict", Choice::SameSite(SameSite::Strict), "Sent by pages of this site alone."),
    word("lax", Choice::SameSite(SameSite::Lax), "Sent also when somebody follows a link to it."),
    word("none", Choice::SameSite(SameSite::None), "Always sent; browsers want `secure` with it."),
];

const GONE: &[Word] = &[
    word("reschedule", Choice::Gone(Gone::Reschedule), "It is bound to another."),
    word("refuse", Choice::Gone(Gone::Refuse), "Its requests are refused as `gone`."),
];

pub(super) const HEALTH: &[Opt] = &[
    any("check", Kind::Word(CHECK), Is("off"), "How a worker is looked at while nobody asks it."),
    any(
        "interval",
        time(),
        Is("2s"),
        "Time between two checks of a worker; at most 5 s while its checks fail.",
    ),
    any("timeout", time(), Is("1s"), "A check that takes longer is a bad one."),
    any("rise", count(1, 1000), Is("2"), "Good checks in a row until a worker serves again."),
    any("fall", count(1, 1000), Is("3"), "Bad checks in a row until a worker is left out."),
    any(
        "checked_first",
        Kind::Switch,
        Is("false"),
        "Whether a new worker serves nobody before its checks were good.",
    ),
    any("port", count(1, 65_535), Nothing, "Another port of the server, for its checks."),
    any("method", Kind::Text, Is("GET"), "The method of `check = \"http\"`."),
    any("path", Kind::Text, Is("/"), "What `check = \"http\"` asks for."),
    any("host", Kind::Text, Nothing, "The host it names; without it the server's address."),
    any("status", Kind::Text, Is("200..399"), "The statuses that are good, as a range or one."),
    any("body", Kind::Text, Nothing, "What stands in the first 64 KiB of a good body."),
    any("send", Kind::Text, Nothing, "The line that `check = \"line\"` sends."),
    any("expect", Kind::Text, Nothing, "How a good answer to it begins; any will do without it."),
    any(
        "command",
        Kind::Command,
        Nothing,
        "What `check = \"program\"` runs, with the worker's name in `ROADSTEAD_WORKER`; exit code 0 is good.",
    ),
    any(
        "user",
        Kind::Text,
        Nothing,
        "The user that `command` runs as; without it `user` of the pool's programs, or the daemon's own.",
    ),
    any(
        "group",
        Kind::Text,
        Nothing,
        "The group that `command` runs as; without it the groups of `user`, or those of the pool's programs.",
    ),
    any(
        "errors",
        count(0, 1_000_000),
        Is("0"),
        "Requests that fail at a worker in a row until it is left out; 0: they do not count.",
    ),
    any(
        "fail_rate",
        Kind::Percent,
        Nothing,
        "The share of failed requests over `fail_window` that takes a worker out; without it only `errors` counts.",
    ),
    any("fail_window", time(), Is("10s"), "The time over which `fail_rate` is measured."),
    any(
        "fail_min_requests",
        count(1, 1_000_000),
        Is("20"),
        "`fail_rate` does not apply while a worker has had fewer requests in the window.",
    ),
    any("slow", time(), Nothing, "A request that takes longer counts as failed."),
    any(
        "failing",
        Kind::Text,
        Nothing,
        "Statuses of replies that count as failed, as a range or one, like `500..599`; without it none do.",
    ),
    any(
        "eject",
        time(),
        Is("10s"),
        "How long a worker is left out the first time; soon after, twice as long.",
    ),
    any("eject_max", time(), Is("5m"), "How long at most."),
];

const CHECK: &[Word] = &[
    word("off", Choice::Check(CheckKind::Off), "Not at all."),
    word("tcp", Choice::Check(CheckKind::Tcp), "A server takes a connection."),
    word("http", Choice::Check(CheckKind::Http), "A server answers a request of HTTP/1.1."),
    word(
        "line",
        Choice::Check(CheckKind::Line),
        "A server, or a program, answers a line with another.",
    ),
    word("program", Choice::Check(CheckKind::Program), "A program of yours says so."),
];

pub(super) const SORRY: &[Opt] = &[
    any(
        "line",
        Kind::Text,
        Nothing,
        "It answers with this. `{request_id}`, `{cause}` and `{pool}` in it stand for these values of the request.",
    ),
    any(
        "file",
        Kind::Text,
        Nothing,
        "It answers with what is in this file, read at start, with the same variables.",
    ),
    any("pool", Kind::Pool, Nothing, "It gives the request to this pool."),
    any("redirect", Kind::Text, Nothing, "It sends clients of HTTP there."),
    any(
        "status",
        count(200, 599),
        Nothing,
        "The status over HTTP; without it 503, and 302 with `redirect`.",
    ),
    any(
        "type",
        Kind::Text,
        Nothing,
        "What the answer is, over HTTP; without it, as the name of `file` ends.",
    ),
    any(
        "retry_after",
        time_or_zero(),
        Is("10s"),
        "When clients of HTTP are told to come again; `0s`: not at all.",
    ),
    any(
        "until",
        Kind::Percent,
        Is("50%"),
        "It is sorry until no more than this part of its slots and its queue is taken.",
    ),
    any("steady", time_or_zero(), Is("0s"), "How long that must hold."),
];

pub(super) const SCHEDULE: &[Word] = &[
    word(
        "round-robin",
        Choice::Schedule(Schedule::RoundRobin),
        "Each in its turn; as `weighted-round-robin` as soon as a weight is above 1 or there is a `slow_start`.",
    ),
    word(
        "weighted-round-robin",
        Choice::Schedule(Schedule::WeightedRoundRobin),
        "Each in its turn, as often as its weight says, evenly spread.",
    ),
    word(
        "least-outstanding",
        Choice::Schedule(Schedule::LeastOutstanding),
        "The one with the fewest requests in its hands, for its weight.",
    ),
    word(
        "two-choices",
        Choice::Schedule(Schedule::TwoChoices),
        "Of two drawn by chance, the one with fewer requests in its hands, for its weight.",
    ),
    word("random", Choice::Schedule(Schedule::Random), "Drawn by chance, by weight."),
    word(
        "hash",
        Choice::Schedule(Schedule::Hash),
        "The one that the key in `hash` belongs to, unless it has more than 5/4 of its due.",
    ),
    word("first", Choice::Schedule(Schedule::First), "The first that is free."),
];
