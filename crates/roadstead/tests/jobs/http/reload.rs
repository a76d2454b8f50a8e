//! Reloads while HTTP clients are connected: no connection is closed, and state is kept.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::balance::{ctl, named, who};
use super::{CLOSE, connect, read_until, status, talk};
use crate::daemon::{Daemon, folder, until};
use crate::http_server::Server;

fn configuration(listener: &str, pool: &str) -> String {
    format!(
        "[daemon]\nshards = 1\n[admin]\nlisten = \"127.0.0.1:0\"\n\n[listener.main]\nlisten = \"127.0.0.1:0\"\nprotocol = \"http\"\n\
         pool = \"main\"\n{listener}\n[pool.main]\n{pool}\n"
    )
}

fn servers(servers: &[(&Server, u32)]) -> String {
    let one = |(server, weight): &(&Server, u32)| {
        format!("{{ address = \"127.0.0.1:{}\", weight = {weight} }}", server.port)
    };
    format!("servers = [{}]\n", servers.iter().map(one).collect::<Vec<_>>().join(", "))
}

fn take_over(daemon: &Daemon, folder: &tempfile::TempDir, text: &str) {
    Daemon::rewrite(folder.path(), text);
    daemon.reload().unwrap_or_else(|said| panic!("{said}\n{text}"));
}

/// Sends one request on a persistent connection, and returns its reply with this end.
fn ask(client: &mut TcpStream, path: &str, end: &str) -> String {
    write!(client, "GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    read_until(client, end)
}

/// Stops the clients, also when a test fails.
struct Stops<'a>(&'a AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn servers_come_and_go_under_load_and_no_request_fails() {
    come_and_go(1);
}

#[test]
fn servers_that_several_shards_serve_come_and_go_under_load_and_no_request_fails() {
    come_and_go(2);
    come_and_go(4);
}

fn come_and_go(shards: u32) {
    let [a, b, c] = ["a", "b", "c"].map(|name| named(&format!("<{name}>")));
    let folder = folder();
    let text = |pool: &str| {
        let text = configuration("", &format!("balance = \"least-requests\"\n{pool}"));
        text.replacen("shards = 1", &format!("shards = {shards}"), 1)
    };
    let daemon = Daemon::serve(folder.path(), &text(&servers(&[(&a, 1), (&b, 1)])));
    let (stop, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for number in 0..6 {
            let (daemon, stop, answered) = (&daemon, &stop, &answered);
            scope.spawn(move || {
                let mut client = connect(daemon);
                while !stop.load(Ordering::Relaxed) {
                    let said = match number % 2 {
                        0 => ask(&mut client, "/", ">"),
                        _ => talk(daemon, format!("GET / HTTP/1.1\r\n{CLOSE}")),
                    };
                    assert_eq!(status(&said), "200", "{said}");
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let _stops = Stops(&stop);
        let variants = [
            servers(&[(&b, 1), (&c, 1)]),
            servers(&[(&c, 3)]),
            servers(&[(&a, 1), (&c, 1), (&b, 7)]),
            servers(&[(&a, 1)]) + "health_check = { check = \"tcp\", interval = \"20ms\" }\n",
            servers(&[(&b, 1), (&a, 2)]) + "upstream.max_concurrent = 1\n",
            servers(&[(&a, 1), (&b, 1)]) + "sticky = { cookie = \"worker\" }\n",
        ];
        for variant in variants.iter().cycle().take(60) {
            let seen = answered.load(Ordering::Relaxed);
            take_over(&daemon, &folder, &text(variant));
            until("requests go on", || answered.load(Ordering::Relaxed) > seen + 6);
        }
    });
    take_over(&daemon, &folder, &text(&servers(&[(&c, 1)])));
    until("the others are gone", || {
        let places = &daemon.status()["pools"][0]["workers"];
        places.as_array().is_some_and(|workers| workers.len() == 1)
    });
    assert!((0..6).all(|_| who(&daemon) == "<c>"));
    assert_eq!(daemon.metric("roadstead_requests_finished_total", &["verdict=\"failed\""]), 0);
    assert_eq!(daemon.metric("roadstead_requests_finished_total", &["verdict=\"refused\""]), 0);
    assert_eq!(daemon.metric("roadstead_requests_finished_total", &["verdict=\"unknown\""]), 0);
    assert!(daemon.stop().success());
}

#[test]
fn what_cannot_be_taken_over_is_named_at_its_line_and_nothing_of_the_file_is() {
    let [a, b] = ["a", "b"].map(named);
    let folder = folder();
    let both = servers(&[(&a, 1), (&b, 1)]);
    let text = configuration("", &both);
    let daemon = Daemon::serve(folder.path(), &text);
    let only_a = servers(&[(&a, 1)]);
    let other = configuration("", &only_a);
    let cases = [
        (other.replace("[pool.main]", "[pool.main]\nschedul = \"first\""), "`balance`"),
        (other.replacen("http\"", "lines\"", 1), "protocol"),
        (other.clone() + "[pool.more]\nprogram = [\"cat\"]\n", "pool `more` is new"),
        (other.clone() + "fallback = { file = \"nowhere.html\" }\n", "nowhere.html"),
        (other.replacen("[daemon]", "[daemon]\nevent = \"poll\"", 1), "`event` cannot change"),
    ];
    for (text, wanted) in cases {
        Daemon::rewrite(folder.path(), &text);
        let said = daemon.reload().unwrap_err();
        assert!(said.contains(wanted) && said.contains("roadstead.toml:"), "{said}");
        let mut seen: Vec<String> = (0..4).map(|_| who(&daemon)).collect();
        seen.sort();
        assert_eq!(seen, ["a", "a", "b", "b"], "{said}");
    }
    std::fs::remove_file(folder.path().join("roadstead.toml")).unwrap();
    assert!(daemon.reload().is_err());
    take_over(&daemon, &folder, &other);
    assert_eq!([who(&daemon), who(&daemon)], ["a", "a"]);
}

#[test]
fn a_pipe_in_place_of_a_page_or_a_secret_is_refused_and_stops_nobody() {
    let [a, b] = ["a", "b"].map(named);
    let folder = folder();
    let text = configuration("", &servers(&[(&a, 1), (&b, 1)]));
    let daemon = Daemon::serve(folder.path(), &text);
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let listener = "[listener.main]\n";
    for other in [
        text.clone() + "fallback = { file = \"pipe\" }\n",
        text.clone() + "sticky = { cookie = \"c\", secret = \"file:pipe\" }\n",
        text.replace(listener, &format!("{listener}authenticate = {{ basic = \"file:pipe\" }}\n")),
    ] {
        // No process writes into it: opening it for reading would block forever.
        Daemon::rewrite(folder.path(), &other);
        let said = daemon.reload().unwrap_err();
        assert!(said.contains("it is not a regular file"), "{said}");
        let checked = std::process::Command::new(crate::daemon::BINARY)
            .arg("check")
            .arg("roadstead.toml")
            .current_dir(folder.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&checked.stderr).into_owned();
        assert!(!checked.status.success() && said.contains("it is not a regular file"), "{said}");
        assert_ne!(who(&daemon), "");
    }
    assert!(daemon.stop().success());
}

#[test]
fn what_is_known_of_workers_and_clients_stays_known() {
    let [a, b, c] = ["a", "b", "c"].map(named);
    let folder = folder();
    let more = "sticky = { cookie = \"worker\" }\nfallback = { line = \"later\" }\n";
    let all = |list: &[(&Server, u32)]| configuration("", &(servers(list) + more));
    let first = all(&[(&a, 1), (&b, 1), (&c, 1)]);
    let daemon = Daemon::serve(folder.path(), &first);
    let cookie_of = |name: &str| {
        let replies = (0..9).map(|_| talk(&daemon, format!("GET / HTTP/1.1\r\n{CLOSE}")));
        let reply = replies.into_iter().find(|reply| reply.ends_with(name)).unwrap();
        let line = reply.lines().find_map(|line| line.strip_prefix("Set-Cookie: ")).unwrap();
        line.split(';').next().unwrap().to_owned()
    };
    let of_b = cookie_of("b");
    let at = |server: &Server| format!("127.0.0.1:{}", server.port);
    ctl(&daemon, &["disable", "main", &at(&a)]);
    ctl(&daemon, &["weight", "main", &at(&c), "7"]);
    let orders = [
        all(&[(&c, 1), (&b, 1), (&a, 1)]),
        all(&[(&b, 1), (&a, 1)]),
        all(&[(&a, 1), (&c, 2), (&b, 1)]),
        first,
    ];
    for text in orders.iter().cycle().take(12) {
        take_over(&daemon, &folder, text);
        let said = talk(&daemon, format!("GET / HTTP/1.1\r\nCookie: {of_b}\r\n{CLOSE}"));
        assert!(said.ends_with('b') && !said.contains("Set-Cookie"), "{said}");
        let status = daemon.status();
        let places = status["pools"][0]["places"].as_array().unwrap().clone();
        let place = |server: &Server| places.iter().find(|it| it["name"] == at(server)).cloned();
        assert_eq!(place(&a).unwrap()["admin_state"], "disabled");
    }
    ctl(&daemon, &["fallback", "main", "on"]);
    take_over(&daemon, &folder, &orders[0].replace("later", "much later"));
    let said = talk(&daemon, format!("GET / HTTP/1.1\r\n{CLOSE}"));
    assert!(said.starts_with("HTTP/1.1 503 ") && said.ends_with("much later"), "{said}");
    ctl(&daemon, &["fallback", "main", "off"]);
    assert!(["b", "c"].contains(&&*who(&daemon)));
}

#[test]
fn checks_begin_and_end_and_one_that_was_down_is_forgiven_without_them() {
    let [a, b] = ["a", "b"].map(named);
    let folder = folder();
    let both = servers(&[(&a, 1), (&b, 1)]);
    let with = |health: &str| configuration("", &format!("{both}health_check = {health}\n"));
    let daemon = Daemon::serve(folder.path(), &with("\"off\""));
    let checks = || daemon.metric("roadstead_health_checks_total", &[]);
    for _ in 0..3 {
        take_over(&daemon, &folder, &with("\"off\""));
    }
    assert_eq!(checks(), 0, "off stays off");
    let checked =
        with("{ check = \"http\", path = \"/nothing\", status = \"204\", interval = \"10ms\" }");
    take_over(&daemon, &folder, &checked);
    let down = || daemon.metric("roadstead_workers_serving", &[]) == 0;
    until("both are down", down);
    take_over(&daemon, &folder, &checked);
    assert!(down(), "what is known of them stays");
    take_over(&daemon, &folder, &with("\"off\""));
    assert_eq!(status(&talk(&daemon, format!("GET / HTTP/1.1\r\n{CLOSE}"))), "200");
}

#[test]
fn a_client_that_is_there_follows_other_routes_with_its_next_request() {
    let a = named("a");
    let folder = folder();
    let text = |listener: &str| configuration(listener, &servers(&[(&a, 1)]));
    let daemon = Daemon::serve(folder.path(), &text(""));
    let mut client = connect(&daemon);
    assert!(ask(&mut client, "/", "a").starts_with("HTTP/1.1 200"));
    let route = "route = [{ prefix = \"/\", respond = { status = 418, body = \"tea\" } }]";
    take_over(&daemon, &folder, &text(route));
    assert!(ask(&mut client, "/", "tea").starts_with("HTTP/1.1 418"));
    take_over(&daemon, &folder, &text("deny = [\"127.0.0.0/8\"]"));
    assert!(ask(&mut client, "/", "a").starts_with("HTTP/1.1 200"), "it is in");
    assert_eq!(status(&talk(&daemon, format!("GET / HTTP/1.1\r\n{CLOSE}"))), "403");
    take_over(&daemon, &folder, &text(""));
    assert_eq!(who(&daemon), "a");
}

#[test]
fn a_client_that_rests_is_held_to_an_idle_time_that_was_none_before() {
    let a = named("<a>");
    let folder = folder();
    let daemon = Daemon::serve(
        folder.path(),
        &configuration("idle_timeout = \"off\"", &servers(&[(&a, 1)])),
    );
    let (mut silent, mut client) = (connect(&daemon), connect(&daemon));
    assert_eq!(status(&ask(&mut client, "/", ">")), "200");
    take_over(&daemon, &folder, &configuration("idle_timeout = \"50ms\"", &servers(&[(&a, 1)])));
    for rests in [&mut silent, &mut client] {
        assert_eq!(rests.read(&mut [0; 9]).unwrap(), 0, "it is told the end");
    }
}

/// A weight that was set at run time is kept by a reload. If the file changes the same weight, a warning is printed.
#[test]
fn a_reload_warns_of_a_weight_that_was_set_at_run_time() {
    for shards in [1, 2] {
        let [a, b] = ["a", "b"].map(|name| named(&format!("<{name}>")));
        let folder = folder();
        let text = |weight| {
            let text = configuration("", &servers(&[(&a, weight), (&b, 3)]));
            text.replace("shards = 1", &format!("shards = {shards}"))
        };
        let daemon = Daemon::serve(folder.path(), &text(3));
        let name = format!("127.0.0.1:{}", a.port);
        let weights = || {
            let status = daemon.status();
            let places = status["pools"][0]["places"].as_array().unwrap().clone();
            let place = places.into_iter().find(|place| place["name"] == *name).unwrap();
            ["weight", "weight_configured", "weight_set"].map(|key| place[key].as_u64())
        };
        assert_eq!(weights(), [Some(3), Some(3), None]);
        ctl(&daemon, &["weight", "main", &name, "7"]);
        assert_eq!(weights(), [Some(7), Some(3), Some(7)]);
        Daemon::rewrite(folder.path(), &text(3));
        let said = daemon.reload().unwrap();
        assert!(!said.contains("warning"), "the file has not changed: {said}");
        Daemon::rewrite(folder.path(), &text(5));
        let said = daemon.reload().unwrap();
        let warning = format!("warning: worker {name} of pool main keeps the weight 7");
        assert_eq!(said.matches(&warning).count(), 1, "{said}");
        assert!(said.contains("the file says 5 now, and said 3 before"), "{said}");
        assert_eq!(weights(), [Some(7), Some(5), Some(7)]);
        ctl(&daemon, &["weight", "main", &name, "default"]);
        assert_eq!(weights(), [Some(5), Some(5), None]);
    }
}
