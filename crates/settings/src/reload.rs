//! What a daemon that serves can take over from another configuration, and what it cannot.
//!
//! What it is: two configurations compared, with a remark at each option that needs another start.
//! What it must never know: how the rest is taken over.

use crate::model::{
    Configuration, Daemon, Idempotent, Listener, Pool, Program, Protocol, Shards, SorryAnswer,
    Worker,
};
use crate::remarks::Remark;

/// What of `new` cannot be taken over by a daemon that serves `old`, each at its option of `new`.
/// Empty: all of it can.
#[must_use]
pub fn fixed(old: &Configuration, new: &Configuration) -> Vec<Remark> {
    let mut found = Fixed::default();
    let Daemon { drain: _, drain_keepalive_timeout: _, memory_max: _, event, shards } = &old.daemon;
    found.option(["daemon", "event"], *event == new.daemon.event);
    found.option(["daemon", "shards"], *shards == new.daemon.shards);
    found.option(["admin", "listen"], old.admin == new.admin);
    found.option(["access_log", "to"], old.access_log == new.access_log);
    let alone = *shards == Shards::Count(1);
    let names = |it: &Configuration| it.listeners.iter().map(|it| it.name.clone()).collect();
    found.names("listener", names(old), names(new));
    for (old, new) in pairs(&old.listeners, &new.listeners, |it| &it.name) {
        found.listener(old, new, alone);
    }
    let smallest = |it: &Configuration| it.listeners.iter().map(|it| it.send_max).min();
    if let Some(now) = smallest(new)
        && !alone
        && smallest(old).is_some_and(|before| now < before)
        && let Some(listener) = new.listeners.iter().find(|it| it.send_max == now)
    {
        found.option(["listener", &listener.name, "send_max"], false);
    }
    let names = |it: &Configuration| it.pools.iter().map(|it| it.name.clone()).collect();
    found.names("pool", names(old), names(new));
    for (old, new) in pairs(&old.pools, &new.pools, |it| &it.name) {
        found.pool(old, new, alone);
    }
    found.0
}

/// Whether the programs of a pool are to be replaced when its settings become others: what they
/// were started with is not what they would be started with now.
#[must_use]
pub fn replaces(before: &Pool, now: &Pool) -> bool {
    let (Worker::Program(old), Worker::Program(new)) = (&before.worker, &now.worker) else {
        return false;
    };
    let repeats = |pool: &Pool| pool.idempotent == Idempotent::All;
    let started = |program: &Program| Program {
        // What is looked at anew each time.
        grace: new.grace,
        settle: new.settle,
        recycle: new.recycle,
        start_timeout: new.start_timeout,
        ..program.clone()
    };
    started(old) != started(new) || repeats(before) != repeats(now)
}

/// Puts listeners and pools into the order that they have in `old`. Both must have the same names.
pub fn in_order_of(old: &Configuration, new: &mut Configuration) {
    let place = |name: &String| old.listeners.iter().position(|it| it.name == *name);
    new.listeners.sort_by_key(|it| place(&it.name));
    let place = |name: &String| old.pools.iter().position(|it| it.name == *name);
    new.pools.sort_by_key(|it| place(&it.name));
}

/// Those of both that have the same name.
fn pairs<'a, T>(
    old: &'a [T],
    new: &'a [T],
    name: impl Fn(&T) -> &String,
) -> impl Iterator<Item = (&'a T, &'a T)> {
    old.iter().filter_map(move |old| Some((old, new.iter().find(|new| name(new) == name(old))?)))
}

#[derive(Default)]
struct Fixed(Vec<Remark>);

impl Fixed {
    fn say(&mut self, path: &[&str], message: String) {
        self.0.push(Remark { path: path.iter().map(|&key| key.to_owned()).collect(), message });
    }

    /// An option that must be as it was.
    fn option<const N: usize>(&mut self, path: [&str; N], same: bool) {
        if !same {
            let name = path[N - 1];
            self.say(&path, format!("`{name}` cannot change while the daemon serves: restart it"));
        }
    }

    /// Sections of one kind must have the names that they had.
    fn names(&mut self, kind: &str, old: Vec<String>, new: Vec<String>) {
        for name in new.iter().filter(|name| !old.contains(name)) {
            let message = format!("{kind} `{name}` is new, which needs a restart of the daemon");
            self.say(&[kind, name], message);
        }
        for name in old.iter().filter(|name| !new.contains(name)) {
            let message =
                format!("{kind} `{name}` is missing: to take it away, restart the daemon");
            self.say(&[kind, name], message);
        }
    }

    fn listener(&mut self, old: &Listener, new: &Listener, alone: bool) {
        let at = |option| ["listener", new.name.as_str(), option];
        self.option(at("listen"), old.listen == new.listen);
        self.option(at("protocol"), old.protocol == new.protocol);
        self.option(at("backlog"), old.backlog == new.backlog);
        self.option(at("tcp_keepalive"), old.tcp_keepalive == new.tcp_keepalive);
        self.option(at("reuse_address"), old.reuse_address == new.reuse_address);
        if old.protocol == Protocol::Datagrams {
            self.option(at("frame_max"), old.frame_max == new.frame_max);
        }
        // Addresses are counted on one shard, which alone listens then.
        let counted = old.addresses.limits.is_some() == new.addresses.limits.is_some();
        self.option(at("per_address"), alone || counted);
    }

    fn pool(&mut self, old: &Pool, new: &Pool, alone: bool) {
        let at = |option| ["pool", new.name.as_str(), option];
        // Pools that hand on to each other are at home together, from the start.
        self.option(at("then"), alone || old.then == new.then);
        let other = |pool: &Pool| match pool.balance.sorry.as_ref().map(|it| it.answer.clone()) {
            Some(SorryAnswer::Pool(name)) => Some(name),
            Some(SorryAnswer::Line(_) | SorryAnswer::File(_) | SorryAnswer::Redirect(_)) | None => {
                None
            }
        };
        let sorry = alone || other(new).is_none() || other(old) == other(new);
        self.option(at("sorry"), sorry);
        match (&old.worker, &new.worker) {
            (Worker::Program(before), Worker::Program(program)) => {
                self.program(before, program, &at);
            }
            (Worker::Servers(_), Worker::Servers(_)) if alone => {}
            (Worker::Servers(_), Worker::Servers(_)) => self.servers(old, new, &at),
            (Worker::Database(old), Worker::Database(new)) => {
                self.option(at("database"), old == new);
            }
            (Worker::Handler(old), Worker::Handler(new)) => self.option(at("handler"), old == new),
            (_, new) => self.option(at(kind(new)), false),
        }
    }

    /// Servers are served by all shards or by one, from the start.
    fn servers<'a>(&mut self, old: &Pool, new: &Pool, at: &impl Fn(&'static str) -> [&'a str; 3]) {
        if old.needs_one_place() != new.needs_one_place() {
            self.option(at("slots_max"), old.balance.slots_max == new.balance.slots_max);
            self.option(at("sticky"), old.balance.sticky == new.balance.sticky);
            self.option(at("batch"), old.batch == new.batch);
        }
    }

    /// How a program is spoken to is what its link was made for.
    fn program<'a>(
        &mut self,
        old: &Program,
        new: &Program,
        at: &impl Fn(&'static str) -> [&'a str; 3],
    ) {
        self.option(at("framing"), old.framing == new.framing);
        self.option(at("dispatch"), old.dispatch == new.dispatch);
        self.option(at("pipeline"), old.pipeline == new.pipeline);
        self.option(at("handshake"), old.handshake == new.handshake);
        self.option(at("stream"), old.stream == new.stream);
        self.option(at("reset"), old.reset == new.reset);
        self.option(at("match"), old.carries == new.carries);
    }
}

const fn kind(worker: &Worker) -> &'static str {
    match worker {
        Worker::Program(_) => "program",
        Worker::Database(_) => "database",
        Worker::Handler(_) => "handler",
        Worker::Servers(_) => "servers",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;
    use crate::remarks::placed;
    use crate::source::Source;

    const TEXT: &str = r#"
[daemon]
shards = 1
[listener.main]
listen = "127.0.0.1:7000"
protocol = "http"
pool = "api"
[listener.jobs]
listen = "127.0.0.1:7001"
pool = "jobs"
[pool.api]
servers = ["127.0.0.1:1", "127.0.0.1:2"]
sticky = { cookie = "berth" }
[pool.jobs]
program = ["cat"]
"#;

    fn read(text: &str) -> (Source, Configuration) {
        let source = Source { name: "x.toml".into(), text: text.into() };
        let read = parse(&source, &|_| None);
        let read = read.unwrap_or_else(|faults| panic!("{faults}"));
        (source, read)
    }

    /// What is said of this change, with its line.
    fn changed(from: &str, to: &str) -> Vec<(usize, String)> {
        let (_, old) = read(TEXT);
        let (source, new) = read(&TEXT.replacen(from, to, 1));
        let remarks = fixed(&old, &new);
        if remarks.is_empty() {
            return Vec::new();
        }
        let placed = placed(&source, &remarks);
        placed.iter().map(|it| (it.line, it.message.clone())).collect()
    }

    #[test]
    fn what_a_daemon_that_serves_takes_over() {
        for (from, to) in [
            ("\"127.0.0.1:1\", ", ""),
            ("\"127.0.0.1:1\"", "{ address = \"127.0.0.1:9\", weight = 7 }"),
            ("sticky = { cookie = \"berth\" }", "schedule = \"hash\"\nsorry = { line = \"x\" }"),
            ("sticky", "health = { check = \"tcp\" }\nsticky"),
            ("pool = \"api\"", "pool = \"api\"\nallow = [\"10.0.0.0/8\"]\nidle = \"1s\""),
            ("pool = \"api\"", "pool = \"api\"\nper_address = { connections = 1 }"),
            ("[\"cat\"]", "[\"cat\", \"-u\"]\nworkers = { max = 9 }"),
            ("shards = 1", "shards = 1\ndrain = \"1s\""),
        ] {
            assert_eq!(changed(from, to), [], "{to}");
        }
    }

    #[test]
    fn what_needs_a_restart_is_named_at_its_line() {
        let word =
            |option: &str| format!("`{option}` cannot change while the daemon serves: restart it");
        let cases = [
            ("shards = 1", "shards = 2", 3, word("shards")),
            ("127.0.0.1:7000", "127.0.0.1:7009", 5, word("listen")),
            ("[pool.jobs]", "[pool.jobs]\nframing = \"nul\"", 15, word("framing")),
            ("[pool.jobs]", "[pool.jobs]\npipeline = 4", 15, word("pipeline")),
            ("program = [\"cat\"]", "handler = \"x\"", 15, word("handler")),
            (
                "[pool.jobs]",
                "[pool.new]\nprogram = [\"x\"]\n[pool.jobs]",
                14,
                "pool `new` is new, which needs a restart of the daemon".to_owned(),
            ),
            ("[pool.api]", "[access_log]\nto = \"stderr\"\n[pool.api]", 12, word("to")),
        ];
        for (from, to, line, message) in cases {
            assert_eq!(changed(from, to), [(line, message)], "{to}");
        }
        let (_, old) = read(TEXT);
        let (at, _) = TEXT.split_once("[listener.jobs]").unwrap();
        let (_, rest) = TEXT.split_once("pool = \"jobs\"").unwrap();
        let (_, new) = read(&[at, rest].concat());
        let said: Vec<_> = fixed(&old, &new).into_iter().map(|it| it.message).collect();
        assert_eq!(said, ["listener `jobs` is missing: to take it away, restart the daemon"]);
    }

    #[test]
    fn on_several_shards_servers_are_served_by_all_or_by_one_from_the_start() {
        let text = TEXT.replacen("shards = 1", "shards = 2", 1);
        let text = format!("{text}\n[pool.spare]\nservers = [\"127.0.0.1:9\"]\n");
        let (_, old) = read(&text);
        let cookie = "sticky = { cookie = \"berth\" }";
        for written in [
            "schedule = \"hash\"",
            "queue = { length = 9, hold = \"9s\", fair = \"source\" }",
            "slow_start = \"9s\"\nhealth = { check = \"tcp\" }",
            "sorry = { line = \"x\" }",
            "server_requests_max = 3",
        ] {
            let (_, new) = read(&text.replacen(cookie, written, 1));
            assert_eq!(fixed(&old, &new), [], "{written}");
        }
        let fewer = text.replacen("\"127.0.0.1:1\", ", "", 1);
        assert_eq!(fixed(&old, &read(&fewer).1), []);
        for (option, written) in [
            ("slots_max", "sticky = { cookie = \"berth\" }\nslots_max = 3"),
            ("sticky", "sticky = { key = \"source\" }"),
            ("sorry", "sticky = { cookie = \"berth\" }\nsorry = { pool = \"spare\" }"),
        ] {
            let (_, new) = read(&text.replacen(cookie, written, 1));
            let remarks = fixed(&old, &new);
            let said: Vec<_> = remarks.iter().map(|it| it.path.last().unwrap()).collect();
            assert_eq!(said, [option], "{written}");
        }
        let one = text.replacen(cookie, "slots_max = 3", 1);
        let (_, one_new) = read(&one.replacen("slots_max = 3", "slots_max = 9", 1));
        assert_eq!(fixed(&read(&one).1, &one_new), [], "its home alone serves it");
    }

    #[test]
    fn programs_are_replaced_when_they_would_be_started_otherwise() {
        let (_, old) = read(TEXT);
        let jobs = |text: &str| {
            let (_, new) = read(&TEXT.replacen("program = [\"cat\"]", text, 1));
            replaces(&old.pools[1], &new.pools[1])
        };
        assert!(!jobs("program = [\"cat\"]\ngrace = \"9s\"\nqueue = { length = 3 }"));
        assert!(jobs("program = [\"cat\", \"-u\"]"));
        assert!(jobs("program = [\"cat\"]\nenv = { A = \"b\" }"));
    }

    #[test]
    fn of_programs_that_serve_http_all_but_their_connections_may_change() {
        let serves = |more: &str| {
            let framing = if more.contains("framing") { "" } else { "framing = \"http\"\n" };
            let pool = format!("program = [\"./app\"]\n{framing}{more}");
            let http = "protocol = \"http\"\npool = \"jobs\"";
            let text = TEXT.replacen("pool = \"jobs\"", http, 1);
            read(&text.replacen("program = [\"cat\"]", &pool, 1)).1
        };
        let old = serves("");
        for (more, replaced) in [
            ("socket = \"port\"", true),
            ("env = { A = \"b\" }", true),
            ("cwd = \"/\"", true),
            ("user = \"nobody\"", true),
            ("deadline = \"1s\"", false),
            ("grace = \"9s\"\nstart_timeout = \"9s\"", false),
            ("recycle = { requests = 9 }\nworkers = 3", false),
        ] {
            let new = serves(more);
            assert_eq!(fixed(&old, &new), [], "{more}");
            assert_eq!(replaces(&old.pools[1], &new.pools[1]), replaced, "{more}");
        }
        for (more, option) in [("pipeline = 9", "pipeline"), ("framing = \"lines\"", "framing")] {
            let remarks = fixed(&old, &serves(more));
            let said: Vec<_> = remarks.iter().map(|it| it.path.last().unwrap()).collect();
            assert_eq!(said, [option], "{more}");
        }
    }

    #[test]
    fn the_order_of_a_file_is_nothing_to_a_daemon() {
        let (_, old) = read(TEXT);
        let (before, jobs) = TEXT.split_once("[pool.jobs]").unwrap();
        let text = before.replacen("[pool.api]", &format!("[pool.jobs]{jobs}[pool.api]"), 1);
        let (_, mut new) = read(&text);
        assert_ne!(old, new);
        assert_eq!(fixed(&old, &new), []);
        in_order_of(&old, &mut new);
        assert_eq!(old, new);
    }
}
