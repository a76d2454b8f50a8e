//! The order of servers, as the servers see it: each schedule, new servers, servers that restart, and another pool in
//! place of one in fallback.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::TcpStream;

use super::balance::{ctl, named};
use super::{CLOSE, connect, read_until, rest, serve_pool, status};
use crate::daemon::{Daemon, folder, until};
use crate::http_server::{Answer, Server};

/// A shard counts only the requests on its own connections.
const ONE_SHARD: &str = "[daemon]\nshards = 1";
/// Frequent checks, so that a test does not wait.
const CHECKED: &str = "interval = \"20ms\", timeout = \"30s\", rise = 1, fall = 1";

/// The option `servers` with these and their weights.
fn weighed(servers: &[(&Server, u32)]) -> String {
    let one = |(server, weight): &(&Server, u32)| {
        format!("{{ address = \"127.0.0.1:{}\", weight = {weight} }}", server.port)
    };
    format!("servers = [{}]", servers.iter().map(one).collect::<Vec<_>>().join(", "))
}

fn name(server: &Server) -> String {
    format!("127.0.0.1:{}", server.port)
}

/// Returns the server that answers. Names of servers end with `>`.
fn who(client: &mut TcpStream, target: &str) -> String {
    client.write_all(format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes()).unwrap();
    let said = read_until(client, ">");
    assert_eq!(status(&said), "200", "{said}");
    said.rsplit("\r\n\r\n").next().unwrap().to_owned()
}

/// Returns the number of requests that each server answers, one after the other.
fn shares(client: &mut TcpStream, requests: u32) -> BTreeMap<String, u32> {
    let mut shares = BTreeMap::new();
    for _ in 0..requests {
        *shares.entry(who(client, "/")).or_default() += 1;
    }
    shares
}

/// Returns a connection with a request in flight.
fn ask(daemon: &Daemon, target: &str, lines: &str) -> TcpStream {
    let mut client = connect(daemon);
    client.write_all(format!("GET {target} HTTP/1.1\r\n{lines}{CLOSE}").as_bytes()).unwrap();
    client
}

#[test]
fn turns_are_exact_by_weight_and_draws_within_five_sigma() {
    let [a, b] = ["<a>", "<b>"].map(named);
    for (schedule, off_max) in [("round-robin", 0), ("random", 44), ("power-of-two", 44)] {
        let pool =
            format!("{}\nbalance = \"{schedule}\"\n{ONE_SHARD}", weighed(&[(&a, 3), (&b, 1)]));
        let (_folder, daemon) = serve_pool("", &pool);
        // Of 400 draws with a probability of 3/4, the mean is 300 with a sigma of 8.7.
        let shares = shares(&mut connect(&daemon), 400);
        let off = shares["<a>"].abs_diff(300);
        assert!(off <= off_max && shares["<a>"] + shares["<b>"] == 400, "{schedule}: {shares:?}");
    }
}

#[test]
fn who_has_something_to_do_is_passed_over_where_that_counts() {
    for schedule in ["least-requests", "power-of-two"] {
        let [a, b] = ["<a>", "<b>"].map(named);
        for server in [&a, &b] {
            server.answer("/hold", Answer::Silence);
        }
        let pool =
            format!("{}\nbalance = \"{schedule}\"\n{ONE_SHARD}", weighed(&[(&a, 1), (&b, 1)]));
        let (_folder, daemon) = serve_pool("", &pool);
        let _held = ask(&daemon, "/hold", "");
        let holds = |server: &Server| server.heads("/hold").len();
        until("one has it", || holds(&a) + holds(&b) == 1);
        let other = if holds(&a) == 1 { "<b>" } else { "<a>" };
        let all = BTreeMap::from([(other.to_owned(), 30)]);
        assert_eq!(shares(&mut connect(&daemon), 30), all, "{schedule}");
    }
}

#[test]
fn of_a_hash_only_the_keys_of_the_server_that_leaves_move_and_they_come_back() {
    let servers = ["<a>", "<b>", "<c>"].map(named);
    let all: Vec<(&Server, u32)> = servers.iter().map(|server| (server, 1)).collect();
    let pool = format!("{}\nbalance = \"hash\"\nhash = \"query:who\"", weighed(&all));
    let (_folder, daemon) = serve_pool("", &pool);
    let mut client = connect(&daemon);
    let mut owners = || -> Vec<String> {
        (0..60).map(|key| who(&mut client, &format!("/?who={key}"))).collect()
    };
    for server in &servers {
        // It answers any path, because the paths contain the keys.
        let name =
            ["<a>", "<b>", "<c>"][servers.iter().position(|it| it.port == server.port).unwrap()];
        for key in 0..60 {
            let reply = format!("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{name}");
            server.answer(&format!("/?who={key}"), Answer::Bytes(reply.into()));
        }
    }
    let before = owners();
    for (server, gone) in servers.iter().zip(["<a>", "<b>", "<c>"]) {
        ctl(&daemon, &["disable", "main", &name(server)]);
        let after = owners();
        for (old, new) in before.iter().zip(&after) {
            assert!(old == new || old == gone && new != gone, "{before:?} {after:?}");
        }
        assert_ne!(before, after, "it had some of 60 keys");
        ctl(&daemon, &["enable", "main", &name(server)]);
        assert_eq!(owners(), before);
    }
}

#[test]
fn a_key_of_which_much_is_asked_goes_on_to_the_next_server_of_its_circle() {
    let servers = ["<a>", "<b>"].map(named);
    servers.iter().for_each(|server| server.answer("/hold?who=k", Answer::Silence));
    let pool = format!(
        "{}\nbalance = \"hash\"\nhash = \"query:who\"\n{ONE_SHARD}",
        weighed(&[(&servers[0], 1), (&servers[1], 1)])
    );
    let (_folder, daemon) = serve_pool("", &pool);
    let holds = || servers.each_ref().map(|server| server.heads("/hold?who=k").len());
    // Its limit is 5/4 of its fair share of three requests, which is two after rounding: the third request is one too
    // many.
    let mut held = Vec::new();
    for expected in [[0, 1], [0, 2], [1, 2]] {
        held.push(ask(&daemon, "/hold?who=k", ""));
        until("it is with a server", || {
            let mut holds = holds();
            holds.sort_unstable();
            holds == expected
        });
    }
}

/// A whole configuration of a pool of servers that are checked.
fn checked(servers: &[&Server], more: &str) -> String {
    let all: Vec<(&Server, u32)> = servers.iter().map(|server| (*server, 1)).collect();
    format!(
        "[admin]\nlisten = \"127.0.0.1:0\"\n[listener.main]\nlisten = \"127.0.0.1:0\"\nprotocol = \"http\"\n\
         pool = \"main\"\n[pool.main]\n{}\n{more}\n",
        weighed(&all)
    )
}

fn is_held_to_be(daemon: &Daemon, place: usize, health: &str) {
    until(health, || daemon.status()["pools"][0]["places"][place]["health"] == health);
}

#[test]
fn a_server_that_comes_back_is_given_little_at_first() {
    let [a, b] = ["<a>", "<b>"].map(named);
    let healthz = |status: &str| {
        Answer::Bytes(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").into())
    };
    for server in [&a, &b] {
        server.answer("/healthz", healthz("200 OK"));
    }
    let text = |slow_start: &str| {
        let health =
            format!("health_check = {{ check = \"http\", path = \"/healthz\", {CHECKED} }}");
        checked(&[&a, &b], &format!("{health}\nslow_start = \"{slow_start}\"\n{ONE_SHARD}"))
    };
    let folder = folder();
    let daemon = Daemon::serve(folder.path(), &text("off"));
    // Servers that existed before are not in slow start.
    Daemon::rewrite(folder.path(), &text("24h"));
    daemon.reload().unwrap();
    let mut client = connect(&daemon);
    let before = shares(&mut client, 100);
    assert!((49..=51).contains(&before["<b>"]), "{before:?}");
    b.answer("/healthz", healthz("500 Internal Server Error"));
    is_held_to_be(&daemon, 1, "down");
    b.answer("/healthz", healthz("200 OK"));
    is_held_to_be(&daemon, 1, "up");
    let after = shares(&mut client, 170);
    assert!((8..=12).contains(&after["<b>"]), "a sixteenth of the other's: {after:?}");
}

#[test]
fn requests_are_held_while_the_only_server_restarts() {
    let server = named("<a>");
    let health = format!("health_check = {{ check = \"tcp\", {CHECKED} }}");
    let folder = folder();
    let queue = "queue = { hold_timeout = \"1h\", timeout = \"1h\" }";
    let daemon = Daemon::serve(folder.path(), &checked(&[&server], &format!("{health}\n{queue}")));
    assert_eq!(who(&mut connect(&daemon), "/"), "<a>");
    let port = server.kill();
    is_held_to_be(&daemon, 0, "down");
    let mut waiting = ask(&daemon, "/", "");
    until("it waits", || daemon.metric("roadstead_queue_length", &[]) == 1);
    let reply = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n<new>";
    let _server = Server::start_at(port, &[("/", Answer::Bytes(reply.into()))]);
    let said = rest(&mut waiting);
    assert!(said.starts_with("HTTP/1.1 200 ") && said.ends_with("<new>"), "{said}");
}

#[test]
fn a_client_is_held_for_its_own_server_while_others_are_served() {
    let [a, b] = ["<a>", "<b>"].map(named);
    let health = format!("health_check = {{ check = \"tcp\", {CHECKED} }}");
    let queue =
        "queue = { hold_timeout = \"1h\", timeout = \"1h\" }\nsticky = { cookie = \"worker\" }";
    let folder = folder();
    let daemon = Daemon::serve(folder.path(), &checked(&[&a, &b], &format!("{health}\n{queue}")));
    let (mut cookie, mut tries) = (None, 0);
    while cookie.is_none() {
        let said = rest(&mut ask(&daemon, "/", ""));
        tries += 1;
        assert!(tries < 9, "{said}");
        let set = said.lines().find_map(|line| line.strip_prefix("Set-Cookie: ")).unwrap();
        let ours = format!("Cookie: {}\r\n", set.split(';').next().unwrap());
        cookie = said.ends_with("<a>").then_some(ours);
    }
    let port = a.kill();
    is_held_to_be(&daemon, 0, "down");
    let mut waiting = ask(&daemon, "/", &cookie.unwrap());
    until("it waits", || daemon.metric("roadstead_queue_length", &[]) == 1);
    let mut others = connect(&daemon);
    for _ in 0..5 {
        assert_eq!(who(&mut others, "/"), "<b>");
    }
    let reply = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n<new>";
    let _server = Server::start_at(port, &[("/", Answer::Bytes(reply.into()))]);
    let said = rest(&mut waiting);
    assert!(said.starts_with("HTTP/1.1 200 ") && said.ends_with("<new>"), "{said}");
}

#[test]
fn another_pool_answers_while_one_is_fallback_and_no_longer() {
    let [main, spare] = ["<main>", "<spare>"].map(named);
    main.answer("/hold", Answer::Silence);
    let pool = format!(
        "servers = [\"{}\"]\nupstream.max_concurrent = 1\nqueue = {{ max_requests = 1, timeout = \"1h\" }}\n\
         fallback = {{ pool = \"spare\", until = \"0%\" }}\n[pool.spare]\nservers = [\"{}\"]",
        name(&main),
        name(&spare)
    );
    let (_folder, daemon) = serve_pool("half_close = \"left\"", &pool);
    let mut client = connect(&daemon);
    let of_main = ["pool=\"main\""];
    for _ in 0..3 {
        assert_eq!(who(&mut client, "/"), "<main>");
        let held = ask(&daemon, "/hold", "");
        until("its only slot is taken", || daemon.status()["pools"][0]["places"][0]["in_use"] == 1);
        let waiting = ask(&daemon, "/hold", "");
        until("its queue is full", || daemon.metric("roadstead_queue_length", &of_main) == 1);
        assert_eq!(who(&mut client, "/"), "<spare>");
        assert_eq!(daemon.metric("roadstead_fallback_active", &of_main), 1);
        // The queue is empty again, but the slot is still in use, so the fallback stays active.
        drop(waiting);
        until("nobody waits", || daemon.metric("roadstead_queue_length", &of_main) == 0);
        assert_eq!(who(&mut client, "/"), "<spare>");
        drop(held);
        until("it is over", || daemon.metric("roadstead_fallback_active", &of_main) == 0);
    }
    assert_eq!(who(&mut client, "/"), "<main>");
    // The same if no server can answer.
    ctl(&daemon, &["fallback", "main", "on"]);
    assert_eq!(who(&mut client, "/"), "<spare>");
    ctl(&daemon, &["fallback", "main", "off"]);
    assert_eq!(who(&mut client, "/"), "<main>");
    let port = main.kill();
    assert_eq!(who(&mut client, "/"), "<spare>");
    let reply = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<back>";
    let _main = Server::start_at(port, &[("/", Answer::Bytes(reply.into()))]);
    until("it is back", || who(&mut client, "/") == "<back>");
    until("nobody is sorry", || daemon.metric("roadstead_fallback_active", &of_main) == 0);
}

#[test]
fn why_tells_from_whom_a_request_came_back_and_how_often() {
    let [a, b] = ["<a>", "<b>"].map(named);
    a.answer("/", Answer::Reset);
    let (_folder, daemon) = serve_pool("", &weighed(&[(&a, 1), (&b, 1)]));
    let mut client = connect(&daemon);
    until("one was retried", || {
        assert_eq!(who(&mut client, "/"), "<b>");
        daemon.page("/pools/main/why").contains("waits again")
    });
    let lately = daemon.page("/pools/main/why");
    let line = lately.lines().find(|line| line.contains("waits again")).unwrap();
    let id = line.strip_prefix("request ").unwrap().split(':').next().unwrap();
    let why = daemon.page(&format!("/why/{id}"));
    let failed = format!("worker {} failed it (died: ", name(&a));
    assert!(why.contains(&failed) && why.contains("and it waits again (retry 1)"), "{why}");
    for server in [&a, &b] {
        assert!(why.contains(&format!("given to worker {} (", name(server))), "{why}");
    }
}
