//! Which changes of a configuration a running daemon can apply, and which require a restart.
//!
//! What it is: two configurations compared, with a remark at each option that requires a restart. Each row states
//! whether a reload changes its option; conditional cases are decided here. What it must never depend on: how the other
//! changes are applied.

use crate::model::{
    Action, Configuration, FallbackAnswer, Idempotent, Listener, Pool, Protocol, Shards, Worker,
};
use crate::options::{Opt, Options, Reload};
use crate::remarks::Remark;

/// Returns the changes in `new` that a daemon running with `old` cannot apply, each at its option in `new`. The result
/// is empty if all changes can be applied.
#[must_use]
pub fn restart_required(old: &Configuration, new: &Configuration) -> Vec<Remark> {
    let mut found = Fixed::default();
    found.section("daemon", Some(&old.daemon), Some(&new.daemon), "shards");
    found.section("admin", old.admin.as_ref(), new.admin.as_ref(), "listen");
    found.section("cluster", old.cluster.as_ref(), new.cluster.as_ref(), "nats");
    found.section("access_log", old.access_log.as_ref(), new.access_log.as_ref(), "to");
    let alone = old.daemon.shards == Shards::Count(1);
    let names = |it: &Configuration| it.listeners.iter().map(|it| it.name.clone()).collect();
    found.names("listener", names(old), names(new));
    let smallest = |it: &Configuration| it.listeners.iter().map(|it| it.send_max).min();
    let least = smallest(new);
    let is_smaller = least < smallest(old);
    for (old, new) in pairs(&old.listeners, &new.listeners, |it| &it.name) {
        let has_smallest_output = is_smaller && Some(new.send_max) == least;
        found.listener(old, new, alone, has_smallest_output);
    }
    let names = |it: &Configuration| it.pools.iter().map(|it| it.name.clone()).collect();
    found.names("pool", names(old), names(new));
    for (old, new) in pairs(&old.pools, &new.pools, |it| &it.name) {
        found.pool(old, new, alone);
    }
    found.0
}

/// Whether the programs of a pool must be replaced when its settings change, because they were started with other
/// settings.
#[must_use]
pub fn replaces(before: &Pool, now: &Pool) -> bool {
    let (Worker::Program(old), Worker::Program(new)) = (&before.worker, &now.worker) else {
        return false;
    };
    let repeats = |pool: &Pool| pool.idempotent == Idempotent::All;
    let is_started_otherwise = old.changed(new).iter().any(|option| option.reload != Reload::Live);
    is_started_otherwise || repeats(before) != repeats(now)
}

/// Sorts the listeners and pools of `new` into the order of `old`. Both must have the same names.
pub fn in_order_of(old: &Configuration, new: &mut Configuration) {
    let place = |name: &String| old.listeners.iter().position(|it| it.name == *name);
    new.listeners.sort_by_key(|it| place(&it.name));
    let place = |name: &String| old.pools.iter().position(|it| it.name == *name);
    new.pools.sort_by_key(|it| place(&it.name));
}

/// Returns the pairs of items that have the same name.
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

    /// Reports an option that cannot change.
    fn option(&mut self, path: &[&str]) {
        let name = path.last().unwrap_or(&"");
        self.say(path, format!("`{name}` cannot change while the daemon serves: restart it"));
    }

    /// Reports those of the changed options that cannot change. `is_case` decides for an option with
    /// [`Reload::RestartIf`] whether its case applies.
    fn options(&mut self, at: &[&str], changed: &[&Opt], is_case: impl Fn(&str) -> bool) {
        for option in changed {
            let is_fixed = match option.reload {
                Reload::Live | Reload::Replace => false,
                Reload::Restart => true,
                Reload::RestartIf(_) => is_case(option.name),
            };
            if is_fixed {
                self.option(&[at, &[option.name]].concat());
            }
        }
    }

    /// Compares a section without a name. A section that exists only in one configuration is reported at the option
    /// `first`.
    fn section<T: Options>(&mut self, name: &str, old: Option<&T>, new: Option<&T>, first: &str) {
        match (old, new) {
            (Some(old), Some(new)) => self.options(&[name], &old.changed(new), |_| true),
            (None, None) => {}
            _ => self.option(&[name, first]),
        }
    }

    /// Reports sections of one kind that are new or missing: the names must stay the same.
    fn names(&mut self, kind: &str, old: Vec<String>, new: Vec<String>) {
        for name in new.iter().filter(|name| !old.contains(name)) {
            let message = format!("{kind} `{name}` is new: restart the daemon to add it");
            self.say(&[kind, name], message);
        }
        for name in old.iter().filter(|name| !new.contains(name)) {
            let message = format!("{kind} `{name}` is missing: restart the daemon to remove it");
            self.say(&[kind, name], message);
        }
    }

    fn listener(&mut self, old: &Listener, new: &Listener, alone: bool, has_smallest_output: bool) {
        self.options(&["listener", &new.name], &old.changed(new), |option| match option {
            "frame_max" => old.protocol == Protocol::Datagrams,
            "send_max" => !alone && has_smallest_output,
            // Addresses are counted on one shard, and only this shard listens then.
            "per_address" => {
                !alone && old.addresses.limits.is_some() != new.addresses.limits.is_some()
            }
            _ => unreachable!("`{option}` of a listener has no rule"),
        });
    }

    fn pool(&mut self, old: &Pool, new: &Pool, alone: bool) {
        let other = |pool: &Pool| match pool.balancing.fallback.as_ref().map(|it| it.answer.clone())
        {
            Some(FallbackAnswer::Pool(name)) => Some(name),
            Some(
                FallbackAnswer::Line(_) | FallbackAnswer::File(_) | FallbackAnswer::Redirect(_),
            )
            | None => None,
        };
        let is_moved =
            new.servers().is_some() && !alone && old.needs_one_place() != new.needs_one_place();
        // The bucket of shared bindings has these limits.
        let shared = |pool: &Pool| {
            let sticky = pool.balancing.sticky.as_ref().filter(|sticky| sticky.shared)?;
            Some((sticky.lifetime, sticky.entries))
        };
        let mut changed = old.changed(new);
        // Workers are compared below.
        changed.retain(|option| option.name != "handler");
        self.options(&["pool", &new.name], &changed, |option| match option {
            // Pools that pass requests to each other have the same owner shard, which is fixed at startup.
            "then" => !alone,
            "fallback" => !alone && other(new).is_some() && other(old) != other(new),
            // Servers are served by all shards or by one. This is fixed at startup.
            "sticky" => is_moved || shared(old) != shared(new),
            "max_concurrent" => is_moved,
            _ => unreachable!("`{option}` of a pool has no rule"),
        });
        let at = ["pool", &new.name];
        match (&old.worker, &new.worker) {
            // The `reply_max` of a program may change, that of a query may not.
            (Worker::Program(old), Worker::Program(new)) => {
                self.options(&at, &old.changed(new), |_| false);
            }
            (Worker::Servers(old), Worker::Servers(new)) => {
                self.options(&at, &old.changed(new), |_| true);
            }
            (Worker::Database(old), Worker::Database(new)) => {
                let mut changed = old.changed(new);
                changed.retain(|option| option.name != "insert");
                self.options(&at, &changed, |_| true);
                if old.action != new.action {
                    self.option(&[&at[..], &[action(&new.action)]].concat());
                }
            }
            (Worker::Handler(old), Worker::Handler(new)) if old == new => {}
            (_, new) => self.option(&[&at[..], &[kind(new)]].concat()),
        }
    }
}

const fn action(action: &Action) -> &'static str {
    match action {
        Action::Insert(_) => "insert",
        Action::Statement(_) => "statement",
        Action::Query(_) => "query",
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
sticky = { cookie = "worker" }
[pool.jobs]
program = ["cat"]
"#;

    fn read(text: &str) -> (Source, Configuration) {
        let source = Source { name: "x.toml".into(), text: text.into() };
        let read = parse(&source, &|_| None);
        let read = read.unwrap_or_else(|faults| panic!("{faults}"));
        (source, read)
    }

    /// Returns the remarks about this change, each with its line.
    fn changed(from: &str, to: &str) -> Vec<(usize, String)> {
        let (_, old) = read(TEXT);
        let (source, new) = read(&TEXT.replacen(from, to, 1));
        let remarks = restart_required(&old, &new);
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
            ("sticky = { cookie = \"worker\" }", "balance = \"hash\"\nfallback = { line = \"x\" }"),
            ("sticky", "health_check = { check = \"tcp\" }\nsticky"),
            ("pool = \"api\"", "pool = \"api\"\nallow = [\"10.0.0.0/8\"]\nidle_timeout = \"1s\""),
            ("pool = \"api\"", "pool = \"api\"\nper_address = { connections = 1 }"),
            ("[\"cat\"]", "[\"cat\", \"-u\"]\nworkers = { max = 9 }"),
            ("shards = 1", "shards = 1\ndrain_timeout = \"1s\""),
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
                "pool `new` is new: restart the daemon to add it".to_owned(),
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
        let said: Vec<_> = restart_required(&old, &new).into_iter().map(|it| it.message).collect();
        assert_eq!(said, ["listener `jobs` is missing: restart the daemon to remove it"]);
    }

    #[test]
    fn on_several_shards_servers_are_served_by_all_or_by_one_from_the_start() {
        let text = TEXT.replacen("shards = 1", "shards = 2", 1);
        let text = format!("{text}\n[pool.spare]\nservers = [\"127.0.0.1:9\"]\n");
        let (_, old) = read(&text);
        let cookie = "sticky = { cookie = \"worker\" }";
        for written in [
            "balance = \"hash\"",
            "queue = { max_requests = 9, hold_timeout = \"9s\", fair = \"source\" }",
            "slow_start = \"9s\"\nhealth_check = { check = \"tcp\" }",
            "fallback = { line = \"x\" }",
            "upstream.max_concurrent = 3",
        ] {
            let (_, new) = read(&text.replacen(cookie, written, 1));
            assert_eq!(restart_required(&old, &new), [], "{written}");
        }
        let fewer = text.replacen("\"127.0.0.1:1\", ", "", 1);
        assert_eq!(restart_required(&old, &read(&fewer).1), []);
        for (option, written) in [
            ("max_concurrent", "sticky = { cookie = \"worker\" }\nmax_concurrent = 3"),
            ("sticky", "sticky = { key = \"source\" }"),
            ("fallback", "sticky = { cookie = \"worker\" }\nfallback = { pool = \"spare\" }"),
        ] {
            let (_, new) = read(&text.replacen(cookie, written, 1));
            let remarks = restart_required(&old, &new);
            let said: Vec<_> = remarks.iter().map(|it| it.path.last().unwrap()).collect();
            assert_eq!(said, [option], "{written}");
        }
        let one = text.replacen(cookie, "max_concurrent = 3", 1);
        let (_, one_new) = read(&one.replacen("max_concurrent = 3", "max_concurrent = 9", 1));
        assert_eq!(restart_required(&read(&one).1, &one_new), [], "its home alone serves it");
    }

    #[test]
    fn programs_are_replaced_when_they_would_be_started_otherwise() {
        let (_, old) = read(TEXT);
        let jobs = |text: &str| {
            let (_, new) = read(&TEXT.replacen("program = [\"cat\"]", text, 1));
            replaces(&old.pools[1], &new.pools[1])
        };
        assert!(!jobs("program = [\"cat\"]\nstop_timeout = \"9s\"\nqueue = { max_requests = 3 }"));
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
            ("response_timeout = \"1s\"", false),
            ("stop_timeout = \"9s\"\nstart_timeout = \"9s\"", false),
            ("recycle = { max_requests = 9 }\nworkers = 3", false),
        ] {
            let new = serves(more);
            assert_eq!(restart_required(&old, &new), [], "{more}");
            assert_eq!(replaces(&old.pools[1], &new.pools[1]), replaced, "{more}");
        }
        for (more, option) in [("pipeline = 9", "pipeline"), ("framing = \"lines\"", "framing")] {
            let remarks = restart_required(&old, &serves(more));
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
        assert_eq!(restart_required(&old, &new), []);
        in_order_of(&old, &mut new);
        assert_eq!(old, new);
    }
}
