// tidy: table
//! Options under their former names, with their new names.
//!
//! What it is: one table, which is used when an option is unknown. What it must never depend on: a value.

/// What replaced an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replacement {
    /// The option has this name now.
    Name(&'static str),
    /// The option was removed. The text says what to do instead.
    Removed(&'static str),
}

/// The replacements, by the section or table of the option, and its former name.
const RENAMED: &[(&str, &[(&str, Replacement)])] = &[
    ("daemon", &[("drain", Replacement::Name("drain_timeout"))]),
    (
        "listener",
        &[
            ("idle", Replacement::Name("idle_timeout")),
            ("read", Replacement::Name("request_read_timeout")),
            ("write_stall", Replacement::Name("send_timeout")),
            ("tunnel_idle", Replacement::Name("tunnel_timeout")),
            ("tcp_keepalive", Replacement::Name("tcp_keepalive_interval")),
            ("reuse_address", Replacement::Removed("remove it: addresses are always reused")),
        ],
    ),
    ("route", &[("fixed", Replacement::Name("respond"))]),
    (
        "pool",
        &[
            ("deadline", Replacement::Name("response_timeout")),
            ("schedule", Replacement::Name("balance")),
            ("health", Replacement::Name("health_check")),
            ("sorry", Replacement::Name("fallback")),
            ("slots_max", Replacement::Name("max_concurrent")),
            ("server_requests_max", Replacement::Name("upstream.max_concurrent")),
            ("decisions", Replacement::Name("trace_max")),
            ("grace", Replacement::Name("stop_timeout")),
            ("settle", Replacement::Name("min_uptime")),
            ("first_byte", Replacement::Name("first_byte_timeout")),
            ("slow", Replacement::Name("slowlog_timeout")),
            ("write_stall", Replacement::Name("send_timeout")),
            ("cpu", Replacement::Name("cpu_affinity")),
            ("last_words", Replacement::Name("exit_message")),
            ("connect", Replacement::Name("connect_timeout")),
            ("connect_wait", Replacement::Name("connect_timeout")),
            ("between", Replacement::Name("read_timeout")),
            ("total", Replacement::Name("request_timeout")),
            ("keep", Replacement::Name("keepalive_timeout")),
            ("resolve", Replacement::Name("resolve_interval")),
            ("tcp_keepalive", Replacement::Name("tcp_keepalive_interval")),
            ("lock_wait", Replacement::Name("lock_timeout")),
            ("retry", Replacement::Name("retry_timeout")),
            ("dead", Replacement::Name("dead_letter_table")),
            ("sync", Replacement::Name("durability")),
            ("record", Replacement::Name("input_format")),
            ("rows", Replacement::Name("output_format")),
            ("path", Replacement::Name("http_path")),
        ],
    ),
    (
        "workers",
        &[
            ("idle", Replacement::Name("idle_timeout")),
            (
                "preset",
                Replacement::Removed(
                    "write `min`, `max`, `spare` and `grow_above`; see docs/design/elastic.md",
                ),
            ),
        ],
    ),
    (
        "queue",
        &[
            ("wait", Replacement::Name("timeout")),
            ("length", Replacement::Name("max_requests")),
            ("bytes", Replacement::Name("max_bytes")),
            ("hold", Replacement::Name("hold_timeout")),
            (
                "priority_step",
                Replacement::Removed("remove it: one level of priority is worth 1s of waiting"),
            ),
        ],
    ),
    (
        "health_check",
        &[
            ("errors", Replacement::Name("max_fails")),
            ("failing", Replacement::Name("unhealthy_status")),
            ("slow", Replacement::Name("unhealthy_latency")),
            ("eject", Replacement::Name("fail_duration")),
            ("eject_max", Replacement::Removed("remove it: a worker is ejected for at most 5m")),
        ],
    ),
    ("sticky", &[("gone", Replacement::Name("redispatch"))]),
    (
        "retries",
        &[("share", Replacement::Name("budget")), ("reserve", Replacement::Name("min_retries"))],
    ),
    ("stream", &[("gap", Replacement::Name("idle_timeout"))]),
    ("limits", &[("cpu", Replacement::Name("cpu_time"))]),
    (
        "recycle",
        &[
            ("requests", Replacement::Name("max_requests")),
            ("age", Replacement::Name("max_age")),
            ("memory", Replacement::Name("max_memory")),
        ],
    ),
    ("servers", &[("slots", Replacement::Name("max_concurrent"))]),
    ("batch", &[("wait", Replacement::Name("timeout"))]),
];

/// Returns the replacement of the option `old` in the table of this title, like `[pool.x]`, or `queue` in backticks.
pub(crate) fn option(title: &str, old: &str) -> Option<Replacement> {
    let title = title.trim_matches(['`', '[', ']']);
    let table = title.split('.').next().unwrap_or(title);
    let (_, options) = RENAMED.iter().find(|(name, _)| *name == table)?;
    options.iter().find(|(name, _)| *name == old).map(|(_, now)| *now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Opt, find};
    use crate::table::SECTIONS;
    use crate::{Source, parse};

    /// Returns the rows of a table, and a file that can contain a line of it.
    fn table(name: &str) -> (&'static [Opt], String) {
        let section = |wanted: &str| SECTIONS.iter().find(|it| it.name == wanted).unwrap().options;
        let inner = |outer: &str| find(section(outer), name).map(|option| option.inner());
        let file = match name {
            "daemon" => "[daemon]\nLINE\n",
            "listener" => "[listener.a]\nlisten = \":1\"\npool = \"a\"\nLINE\n",
            "route" => "[[listener.a.route]]\nLINE\n",
            "pool" => "[pool.a]\nLINE\n",
            "servers" => "[[pool.a.servers]]\nLINE\n",
            other => &format!("[pool.a.{other}]\nLINE\n"),
        };
        let options = match name {
            "daemon" | "listener" | "pool" => section(name),
            "route" => inner("listener").unwrap(),
            _ => inner("pool").unwrap_or_else(|| panic!("no table `{name}`")),
        };
        (options, file.to_owned())
    }

    #[test]
    fn check_on_a_former_name_gives_the_name_of_today() {
        for (name, renamed) in RENAMED {
            let (options, file) = table(name);
            for (old, now) in *renamed {
                assert!(find(options, old).is_none(), "`{old}` is still an option of `{name}`");
                let text = file.replace("LINE", &format!("{old} = 1"));
                let source = Source { name: "x.toml".into(), text };
                let errors = parse(&source, &|_| None).expect_err("the name is unknown");
                let error = errors.iter().find(|error| error.word == *old).unwrap();
                let wanted = match now {
                    Replacement::Name(new) => {
                        assert!(find(options, new).is_some(), "`{new}` is no option of `{name}`");
                        format!("write `{new}` instead of `{old}`")
                    }
                    Replacement::Removed(advice) => (*advice).to_owned(),
                };
                assert_eq!(error.suggestion.as_ref(), Some(&wanted), "{errors}");
            }
        }
    }
}
