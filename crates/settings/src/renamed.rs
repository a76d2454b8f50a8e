// tidy: table
//! Options under their former names, with their new names.
//!
//! What it is: one table, which is used when an option is unknown. What it must never depend on: a value.

/// What replaced an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Now {
    /// The option has this name now.
    Name(&'static str),
    /// The option was removed. The text says what to do instead.
    Removed(&'static str),
}

/// The replacements, by the section or table of the option, and its former name.
const RENAMED: &[(&str, &[(&str, Now)])] = &[
    ("daemon", &[("drain", Now::Name("drain_timeout"))]),
    (
        "listener",
        &[
            ("idle", Now::Name("idle_timeout")),
            ("read", Now::Name("request_read_timeout")),
            ("write_stall", Now::Name("send_timeout")),
            ("tunnel_idle", Now::Name("tunnel_timeout")),
            ("tcp_keepalive", Now::Name("tcp_keepalive_interval")),
            ("reuse_address", Now::Removed("remove it: addresses are always reused")),
        ],
    ),
    ("route", &[("fixed", Now::Name("respond"))]),
    (
        "pool",
        &[
            ("deadline", Now::Name("response_timeout")),
            ("schedule", Now::Name("balance")),
            ("health", Now::Name("health_check")),
            ("fallback", Now::Name("fallback")),
            ("slots_max", Now::Name("max_concurrent")),
            ("server_requests_max", Now::Name("upstream.max_concurrent")),
            ("decisions", Now::Name("trace_max")),
            ("grace", Now::Name("stop_timeout")),
            ("settle", Now::Name("min_uptime")),
            ("first_byte", Now::Name("first_byte_timeout")),
            ("slow", Now::Name("slowlog_timeout")),
            ("write_stall", Now::Name("send_timeout")),
            ("cpu", Now::Name("cpu_affinity")),
            ("last_words", Now::Name("exit_message")),
            ("connect", Now::Name("connect_timeout")),
            ("connect_wait", Now::Name("connect_timeout")),
            ("between", Now::Name("read_timeout")),
            ("total", Now::Name("request_timeout")),
            ("keep", Now::Name("keepalive_timeout")),
            ("resolve", Now::Name("resolve_interval")),
            ("tcp_keepalive", Now::Name("tcp_keepalive_interval")),
            ("lock_wait", Now::Name("lock_timeout")),
            ("retry", Now::Name("retry_timeout")),
            ("dead", Now::Name("dead_letter_table")),
            ("sync", Now::Name("durability")),
            ("record", Now::Name("input_format")),
            ("rows", Now::Name("output_format")),
            ("path", Now::Name("http_path")),
        ],
    ),
    (
        "workers",
        &[
            ("idle", Now::Name("idle_timeout")),
            (
                "preset",
                Now::Removed(
                    "write `min`, `max`, `spare` and `grow_above`; see docs/design/elastic.md",
                ),
            ),
        ],
    ),
    (
        "queue",
        &[
            ("wait", Now::Name("timeout")),
            ("length", Now::Name("max_requests")),
            ("bytes", Now::Name("max_bytes")),
            ("hold", Now::Name("hold_timeout")),
            (
                "priority_step",
                Now::Removed("remove it: one level of priority is worth 1s of waiting"),
            ),
        ],
    ),
    (
        "health_check",
        &[
            ("errors", Now::Name("max_fails")),
            ("failing", Now::Name("unhealthy_status")),
            ("slow", Now::Name("unhealthy_latency")),
            ("eject", Now::Name("fail_duration")),
            ("eject_max", Now::Removed("remove it: a worker is left out for 5m at most")),
        ],
    ),
    ("sticky", &[("gone", Now::Name("redispatch"))]),
    ("retries", &[("share", Now::Name("budget")), ("reserve", Now::Name("min_retries"))]),
    ("stream", &[("gap", Now::Name("idle_timeout"))]),
    ("limits", &[("cpu", Now::Name("cpu_time"))]),
    (
        "recycle",
        &[
            ("requests", Now::Name("max_requests")),
            ("age", Now::Name("max_age")),
            ("memory", Now::Name("max_memory")),
        ],
    ),
    ("servers", &[("slots", Now::Name("max_concurrent"))]),
    ("batch", &[("wait", Now::Name("timeout"))]),
];

/// Returns the replacement of the option `old` in the table of this title, like `[pool.x]`, or `queue` in backticks.
pub(crate) fn option(title: &str, old: &str) -> Option<Now> {
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
                    Now::Name(new) => {
                        assert!(find(options, new).is_some(), "`{new}` is no option of `{name}`");
                        format!("write `{new}` instead of `{old}`")
                    }
                    Now::Removed(advice) => (*advice).to_owned(),
                };
                assert_eq!(error.mend.as_ref(), Some(&wanted), "{errors}");
            }
        }
    }
}
