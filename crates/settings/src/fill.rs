//! The typed model, filled from the walk.
//!
//! What it is: names of options to fields of the model, one line each. What it knows: that there
//! was no fault, so every value is there and fits. What it must never know: a default.

use std::path::PathBuf;
use std::time::Duration;

use crate::model::*;
use crate::options::{Choice, Of};
use crate::walk::{Group, Section, Value};

/// The model of sections that were walked and checked without a fault.
pub(crate) fn fill(sections: &[Section]) -> Configuration {
    let of = |name: &'static str| sections.iter().filter(move |section| section.kind.name == name);
    Configuration {
        daemon: of("daemon")
            .map(daemon)
            .next()
            .expect("the walk adds this section where it is missing"),
        admin: of("admin").map(|section| admin(&section.group)).next(),
        access_log: of("access_log").map(access_log).next(),
        listeners: of("listener").map(listener).collect(),
        pools: of("pool").map(pool).collect(),
    }
}

/// A word's meaning; the table sets an option only to meanings of its own type.
macro_rules! choice {
    ($group:expr, $name:literal, $meaning:ident) => {
        match value($group, $name) {
            Value::Word(Choice::$meaning(meaning)) => *meaning,
            other => unreachable!("the table gives {} another kind than {other:?}", $name),
        }
    };
}

fn daemon(section: &Section) -> Daemon {
    let group = &section.group;
    Daemon {
        drain: time(group, "drain"),
        drain_keepalive_timeout: time(group, "drain_keepalive_timeout"),
        memory_max: group.find("memory_max").map(|_| size(group, "memory_max")),
        event: choice!(group, "event", EventKernel),
        shards: match count(group, "shards") {
            0 => Shards::Auto,
            count => Shards::Count(count),
        },
    }
}

fn admin(group: &Group) -> Admin {
    Admin {
        listen: address(group, "listen"),
        token: group.find("token").map(|_| secret(group, "token")),
        group: group.find("group").map(|_| text(group, "group")),
        allowed_hosts: group
            .find("allowed_hosts")
            .map_or_else(Vec::new, |_| texts(group, "allowed_hosts")),
        max_connections: count(group, "max_connections"),
        header_timeout: time(group, "header_timeout"),
    }
}

fn access_log(section: &Section) -> AccessLog {
    let group = &section.group;
    let mut fields: Vec<String> = match group.find("fields") {
        Some(_) => texts(group, "fields").iter().map(|name| name.to_ascii_lowercase()).collect(),
        None => Vec::new(),
    };
    let read = "the checks have read it once";
    AccessLog {
        to: crate::access_log::target(&text(group, "to")).expect(read),
        format: crate::access_log::format(&text(group, "format"), &mut fields).expect(read),
        fields,
    }
}

fn listener(section: &Section) -> Listener {
    let group = &section.group;
    Listener {
        name: section.name.clone(),
        listen: address(group, "listen"),
        protocol: choice!(group, "protocol", Protocol),
        pool: group.find("pool").map(|_| text(group, "pool")),
        reply: choice!(group, "reply", ReplyStyle),
        half_close: half_close(group),
        last_line: choice!(group, "last_line", LastLine),
        connections_max: count(group, "connections_max"),
        frame_max: size(group, "frame_max"),
        frame_over: choice!(group, "frame_over", FrameOver),
        in_flight_max: count(group, "in_flight_max"),
        reply_held_max: size(group, "reply_held_max"),
        send_max: size(group, "send_max"),
        idle: time(group, "idle"),
        first_request_timeout: time(group, "first_request_timeout"),
        read: time(group, "read"),
        write_stall: time(group, "write_stall"),
        send_rate_min: size(group, "send_rate_min"),
        backlog: count(group, "backlog"),
        tcp_keepalive: time(group, "tcp_keepalive"),
        access_log: switch(group, "access_log"),
        addresses: addresses(group),
        http: HttpListener {
            head_max: size(group, "head_max"),
            body_max: size(group, "body_max"),
            bodies_max: size(group, "bodies_max"),
            body_rate_min: size(group, "body_rate_min"),
            tunnel_idle: time(group, "tunnel_idle"),
            forwarded: choice!(group, "forwarded", Forwarded),
            via: Some(text(group, "via")).filter(|via| via != "off"),
            allow_trace: switch(group, "allow_trace"),
            allow_upgrade: switch(group, "allow_upgrade"),
            trusted: networks(group, "trusted"),
            routes: crate::routes::routes(group, &mut Vec::new()),
            authenticate: crate::routes::authenticate(group, &mut Vec::new()),
            request: crate::routes::edits(group, "request_headers", &mut Vec::new()),
            reply: crate::routes::edits(group, "response_headers", &mut Vec::new()),
        },
        reuse_address: switch(group, "reuse_address"),
    }
}

/// A browser that closes has left; whoever speaks messages may have said all.
fn half_close(group: &Group) -> HalfClose {
    let http = choice!(group, "protocol", Protocol) == Protocol::Http;
    match choice!(group, "half_close", HalfClose) {
        _ if http && group.key("half_close").is_none() => HalfClose::Left,
        given => given,
    }
}

fn pool(section: &Section) -> Pool {
    let group = &section.group;
    let worker = match section.worker {
        Some(Of::Database) => Worker::Database(Box::new(database(group))),
        Some(Of::Handler) => Worker::Handler(text(group, "handler")),
        Some(Of::Servers) => Worker::Servers(servers(group)),
        _ => Worker::Program(Box::new(program(group))),
    };
    Pool {
        name: section.name.clone(),
        worker,
        workers: workers(inner(group, "workers")),
        queue: queue(inner(group, "queue")),
        schedule: choice!(group, "schedule", Schedule),
        batch: match group.find("query") {
            Some(_) => alone(inner(group, "batch")),
            None => batch(inner(group, "batch")),
        },
        then: group.find("then").map(|_| text(group, "then")),
        deadline: time(group, "deadline"),
        idempotent: choice!(group, "idempotent", Idempotent),
        response: ResponseLimits {
            head_max: size(group, "response_head_max"),
            fields_max: count(group, "response_fields_max"),
        },
        balance: balance(group),
    }
}

fn balance(group: &Group) -> Balance {
    let queue = inner(group, "queue");
    Balance {
        slots_max: group.find("slots_max").map(|_| count(group, "slots_max")),
        hash: key(group, "hash"),
        sticky: group.find("sticky").map(|_| sticky(inner(group, "sticky"))),
        slow_start: time(group, "slow_start"),
        health: health(inner(group, "health")),
        sorry: group.find("sorry").map(|_| sorry(inner(group, "sorry"))),
        fair: queue.find("fair").map(|_| key(queue, "fair")),
        priority: queue.find("priority").map(|_| key(queue, "priority")),
        priority_step: time(queue, "priority_step"),
        hold: time(queue, "hold"),
        retries: retries(inner(group, "retries")),
        decisions: count(group, "decisions"),
    }
}

fn retries(group: &Group) -> Retries {
    Retries {
        // The table lets no more than 255 through.
        tries: u8::try_from(count(group, "tries")).unwrap_or(u8::MAX),
        share: count(group, "share"),
        reserve: count(group, "reserve"),
        on: match group.value("on") {
            // The checks let no other word through.
            Some(Value::Texts(entries)) => RetryOn::read(entries).unwrap_or_default(),
            _ => RetryOn::default(),
        },
    }
}

fn sticky(group: &Group) -> Sticky {
    Sticky {
        by: match group.find("cookie") {
            Some(_) => KnownBy::Cookie(cookie(group)),
            None => KnownBy::Key(key(group, "key")),
        },
        lifetime: time(group, "lifetime"),
        entries: count(group, "entries"),
        gone: choice!(group, "gone", Gone),
    }
}

fn cookie(group: &Group) -> Cookie {
    Cookie {
        name: text(group, "cookie"),
        mode: choice!(group, "mode", Mode),
        value: choice!(group, "value", Value),
        secret: group.find("secret").map(|_| secret(group, "secret")),
        path: text(group, "path"),
        max_age: Some(time(group, "max_age")).filter(|age| !age.is_zero()),
        http_only: switch(group, "http_only"),
        secure: switch(group, "secure"),
        same_site: choice!(group, "same_site", SameSite),
    }
}

fn health(group: &Group) -> Health {
    Health {
        errors: count(group, "errors"),
        fail_rate: group.find("fail_rate").map(|_| FailRate {
            percent: count(group, "fail_rate"),
            window: time(group, "fail_window"),
            requests_min: count(group, "fail_min_requests"),
        }),
        slow: group.find("slow").map(|_| time(group, "slow")),
        failing: group.find("failing").map(|_| statuses(&text(group, "failing"))),
        eject: time(group, "eject"),
        eject_max: time(group, "eject_max"),
        check: check(group),
    }
}

fn check(group: &Group) -> Option<Check> {
    let optional = |name| group.find(name).map(|_| text(group, name));
    let probe = match choice!(group, "check", Check) {
        CheckKind::Off => return None,
        CheckKind::Tcp => Probe::Tcp,
        CheckKind::Http => Probe::Http(HttpProbe {
            method: text(group, "method"),
            path: text(group, "path"),
            host: optional("host"),
            status: statuses(&text(group, "status")),
            body: optional("body"),
        }),
        CheckKind::Line => Probe::Line {
            send: text(group, "send"),
            expect: optional("expect").unwrap_or_default(),
        },
        CheckKind::Program => Probe::Program {
            command: texts(group, "command"),
            user: optional("user"),
            group: optional("group"),
        },
    };
    Some(Check {
        probe,
        interval: time(group, "interval"),
        timeout: time(group, "timeout"),
        rise: count(group, "rise"),
        fall: count(group, "fall"),
        checked_first: switch(group, "checked_first"),
        port: group.find("port").and_then(|_| u16::try_from(count(group, "port")).ok()),
    })
}

/// The checks have read it once.
fn statuses(range: &str) -> (u16, u16) {
    let (from, to) = crate::quantities::span(range).unwrap_or((200, 399));
    (u16::try_from(from).unwrap_or(u16::MAX), u16::try_from(to).unwrap_or(u16::MAX))
}

fn sorry(group: &Group) -> Sorry {
    Sorry {
        answer: if group.find("line").is_some() {
            SorryAnswer::Line(text(group, "line"))
        } else if group.find("file").is_some() {
            SorryAnswer::File(text(group, "file"))
        } else if group.find("redirect").is_some() {
            SorryAnswer::Redirect(text(group, "redirect"))
        } else {
            SorryAnswer::Pool(text(group, "pool"))
        },
        until: count(group, "until"),
        steady: time(group, "steady"),
        http: SorryHttp {
            status: group.find("status").and_then(|_| u16::try_from(count(group, "status")).ok()),
            content_type: group.find("type").map(|_| text(group, "type")),
            retry_after: time(group, "retry_after"),
        },
    }
}

fn servers(group: &Group) -> Servers {
    let Value::Groups(list) = value(group, "servers") else {
        unreachable!("the table gives servers no other kind")
    };
    Servers {
        servers: list
            .iter()
            .map(|one| Server {
                address: address(one, "address"),
                weight: count(one, "weight"),
                slots: one.find("slots").map(|_| count(one, "slots")),
                backup: switch(one, "backup"),
            })
            .collect(),
        requests_max: count(group, "server_requests_max"),
        connect: time(group, "connect"),
        between: time(group, "between"),
        tcp_keepalive: time(group, "tcp_keepalive"),
        total: time(group, "total"),
        keep: time(group, "keep"),
        resolve: time(group, "resolve"),
    }
}

/// The checks have read them once.
fn networks(group: &Group, name: &str) -> Vec<Network> {
    let texts = group.find(name).map_or_else(Vec::new, |_| texts(group, name));
    texts.iter().filter_map(|text| crate::values::network(text).ok()).collect()
}

fn addresses(group: &Group) -> Addresses {
    let limits = group.find("per_address").map(|_| inner(group, "per_address"));
    Addresses {
        allow: networks(group, "allow"),
        deny: networks(group, "deny"),
        limits: limits.map(address_limits),
    }
}

fn address_limits(group: &Group) -> AddressLimits {
    let of = |name| group.find(name).map(|_| count(group, name));
    let rate = |name, burst| {
        let per_second = of(name)?;
        Some(Rate { per_second, burst: of(burst).unwrap_or(per_second) })
    };
    let bits = |name| u8::try_from(count(group, name)).expect("the table allows 128 at most");
    AddressLimits {
        connections: of("connections"),
        connects: rate("connects", "connects_burst"),
        requests: rate("requests", "requests_burst"),
        ipv4_bits: bits("ipv4_bits"),
        ipv6_bits: bits("ipv6_bits"),
        entries: count(group, "entries"),
    }
}

fn program(group: &Group) -> Program {
    Program {
        command: texts(group, "program"),
        framing: choice!(group, "framing", Framing),
        dispatch: choice!(group, "dispatch", Dispatch),
        reset: group.find("reset").map(|_| text(group, "reset")),
        handshake: choice!(group, "handshake", Handshake),
        pipeline: count(group, "pipeline"),
        alignment: choice!(group, "alignment", Alignment),
        line_breaks: choice!(group, "line_breaks", LineBreaks),
        carries: group.find("match").and_then(|_| Carried::parse(&text(group, "match"))),
        stream: group.find("stream").map(|_| stream(inner(group, "stream"))),
        reply_max: size(group, "reply_max"),
        cwd: group.find("cwd").map(|_| PathBuf::from(text(group, "cwd"))),
        env: match group.find("env") {
            Some(_) => variables(group, "env"),
            None => Vec::new(),
        },
        grace: time(group, "grace"),
        settle: time(group, "settle"),
        wiring: Wiring {
            io: choice!(group, "io", Io),
            fds: choice!(group, "fds", Fds),
            unbuffer: choice!(group, "unbuffer", Unbuffer),
        },
        bounds: bounds(group),
        recycle: recycle(inner(group, "recycle")),
        socket: choice!(group, "socket", HttpSocket),
        ready: choice!(group, "ready", Ready),
        last_words: choice!(group, "last_words", LastWords),
        start_timeout: time(group, "start_timeout"),
        first_byte: time(group, "first_byte"),
        slow: time(group, "slow"),
        write_stall: time(group, "write_stall"),
    }
}

fn bounds(group: &Group) -> Bounds {
    let optional = |name| group.find(name).map(|_| text(group, name));
    Bounds {
        env_clear: switch(group, "env_clear"),
        user: optional("user"),
        group: optional("group"),
        no_new_privs: switch(group, "no_new_privs"),
        limits: limits(inner(group, "limits")),
        cpu: processors(group, "cpu"),
        nice: count(group, "nice"),
        cgroup: match text(group, "cgroup").as_str() {
            "auto" => Cgroup::Auto,
            "off" => Cgroup::Off,
            folder => Cgroup::Under(folder.into()),
        },
    }
}

fn recycle(group: &Group) -> Recycle {
    Recycle {
        requests: group.find("requests").map(|_| number(group, "requests")),
        age: group.find("age").map(|_| time(group, "age")),
        memory: group.find("memory").map(|_| number(group, "memory")),
        jitter: count(group, "jitter"),
        share: count(group, "share"),
    }
}

fn limits(group: &Group) -> Limits {
    let of = |name| group.find(name).map(|_| number(group, name));
    Limits {
        files: of("files"),
        processes: of("processes"),
        core: of("core"),
        cpu: group.find("cpu").map(|_| time(group, "cpu")),
        memory: of("memory"),
        address_space: of("address_space"),
        file_size: of("file_size"),
        stack: of("stack"),
    }
}

fn database(group: &Group) -> Database {
    Database {
        target: target(group, "database"),
        action: match group.find("insert") {
            Some(_) => Action::Insert(insert(inner(group, "insert"))),
            None if group.find("query").is_some() => Action::Query(query(group)),
            None => Action::Statement(text(group, "statement")),
        },
        create: group.find("create").map(|_| text(group, "create")),
        record: choice!(group, "record", Record),
        ack: text(group, "ack"),
        sync: choice!(group, "sync", Sync),
        lock_wait: time(group, "lock_wait"),
        retry: time(group, "retry"),
        resend: switch(group, "resend"),
        dead: group.find("dead").map(|_| text(group, "dead")),
        affected: choice!(group, "affected", Affected),
        unknown_fields: match group.find("unknown_fields") {
            Some(_) => choice!(group, "unknown_fields", UnknownFields),
            None if group.find("query").is_some() => UnknownFields::Ignore,
            None => UnknownFields::Reject,
        },
        log_error_details: switch(group, "log_error_details"),
        password: group.find("password").map(|_| secret(group, "password")),
        tls: choice!(group, "tls", Tls),
        tls_ca: group.find("tls_ca").map(|_| PathBuf::from(text(group, "tls_ca"))),
        connect_wait: time(group, "connect_wait"),
    }
}

fn query(group: &Group) -> Query {
    Query {
        sql: text(group, "query"),
        rows: choice!(group, "rows", RowFormat),
        rows_max: count(group, "rows_max"),
        reply_max: size(group, "reply_max"),
        path: group.find("path").map(|_| text(group, "path")),
    }
}

fn stream(group: &Group) -> Stream {
    Stream {
        until: group.find("until").map(|_| text(group, "until")),
        gap: group.find("gap").map(|_| time(group, "gap")),
    }
}

fn insert(group: &Group) -> Insert {
    Insert {
        table: text(group, "table"),
        columns: texts(group, "columns"),
        on_conflict: choice!(group, "on_conflict", OnConflict),
        key: group.find("key").map(|_| texts(group, "key")).unwrap_or_default(),
    }
}

fn workers(group: &Group) -> Workers {
    Workers {
        min: count(group, "min"),
        max: count(group, "max"),
        spare: count(group, "spare"),
        idle: time(group, "idle"),
        grow_after: time(group, "grow_after"),
        grow_above: group.find("grow_above").map(|_| count(group, "grow_above")),
    }
}

fn queue(group: &Group) -> Queue {
    Queue { length: count(group, "length"), bytes: size(group, "bytes"), wait: time(group, "wait") }
}

fn batch(group: &Group) -> Batch {
    Batch { rows: count(group, "rows"), bytes: size(group, "bytes"), wait: time(group, "wait") }
}

/// Queries are answered one by one: several at once would only wait for each other, unless somebody
/// wants that.
fn alone(group: &Group) -> Batch {
    let batch = batch(group);
    if group.place("rows").is_some() { batch } else { Batch { rows: 1, ..batch } }
}

fn value<'a>(group: &'a Group, name: &str) -> &'a Value {
    group.value(name).expect("without a fault every option that is read has a value")
}

/// A reader for one kind of value.
macro_rules! reader {
    ($name:ident, $kind:ident, $type:ty) => {
        fn $name(group: &Group, name: &str) -> $type {
            match value(group, name) {
                Value::$kind(value) => value.clone(),
                other => unreachable!("the table gives {name} another kind than {other:?}"),
            }
        }
    };
}

reader!(number, Number, u64);
reader!(switch, Switch, bool);
reader!(processors, Processors, Processors);
reader!(time, Time, Duration);
reader!(address, Address, Address);
reader!(text, Text, String);
reader!(texts, Texts, Vec<String>);
reader!(variables, Variables, Vec<(String, String)>);
reader!(target, Target, Target);
reader!(secret, Secret, Secret);
reader!(key, Key, Key);

fn count(group: &Group, name: &str) -> u32 {
    u32::try_from(number(group, name)).expect("the ranges of the table lie within 32 bits")
}

/// A limit beyond the address space is none.
fn size(group: &Group, name: &str) -> usize {
    usize::try_from(number(group, name)).unwrap_or(usize::MAX)
}

fn inner<'a>(group: &'a Group, name: &str) -> &'a Group {
    match value(group, name) {
        Value::Group(inner) => inner,
        other => unreachable!("the table gives {name} another kind than {other:?}"),
    }
}
