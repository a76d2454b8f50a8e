//! `examples/sticky`: clients that return to their worker, and a fallback page that comes and goes automatically.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;

use rustix::process::{Pid, Signal, kill_process};

use super::{Python, example, perl_has, serve};
use crate::client::Client;
use crate::daemon::{Daemon, folder, stands_still, until};
use crate::http::balance::{ctl, named};
use crate::http_server::Answer;

#[test]
fn sessions_stay_with_their_program_as_their_page_says() {
    assert!(perl_has("strict"), "this test needs perl: apt-get install perl");
    let folder = folder();
    let daemon = serve(folder.path(), "sticky", "sticky.toml");
    let mut client = Client::connect(daemon.listeners.values().next().unwrap());
    for who in ["ann", "bob", "cid", "dan"] {
        let first = client.ask(&format!("{who} hello"));
        let program = first.split(' ').next().unwrap().to_owned();
        assert_eq!(first, format!("{program} {who} 1"));
        assert_eq!(client.ask(&format!("{who} again")), format!("{program} {who} 2"));
    }
    assert!(daemon.stop().success());
}

/// Returns a configuration of the example with ports of the system and with these servers. Health checks run more
/// often, so that the test does not wait, and have a long timeout, so that a slow machine does not exclude a healthy
/// worker.
fn on_ports(file: &str, servers: &[String]) -> String {
    let text = fs::read_to_string(example("sticky").join(file)).unwrap();
    let ports = (8001..).zip(servers).map(|(shipped, port)| (shipped.to_string(), port.clone()));
    let text = ["1s", "2s"].iter().fold(text, |text, interval| {
        text.replace(
            &format!("interval = \"{interval}\""),
            "interval = \"20ms\", timeout = \"30s\"",
        )
    });
    let ours = [7070, 8080, 8081].map(|shipped| (shipped.to_string(), "0".to_owned()));
    ours.into_iter().chain(ports).fold(text, |text, (shipped, port)| {
        text.replace(&format!("\"127.0.0.1:{shipped}\""), &format!("\"127.0.0.1:{port}\""))
    })
}

/// Returns the page without its last line feed.
fn page() -> String {
    let page = fs::read_to_string(example("sticky").join("sorry.html")).unwrap();
    page.trim_end().to_owned()
}

/// Returns the head and the body of the response to a `GET`.
fn get(address: &str, target: &str, lines: &str) -> (String, String) {
    let mut client = TcpStream::connect(address).unwrap();
    let asked = format!("GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{lines}\r\n");
    client.write_all(asked.as_bytes()).unwrap();
    let mut said = String::new();
    client.read_to_string(&mut said).unwrap();
    let (head, body) = said.split_once("\r\n\r\n").unwrap_or((&said, ""));
    (head.to_owned(), body.to_owned())
}

/// The first cookie that a reply sets, as its client sends it back.
fn cookie(head: &str) -> String {
    let set = head.lines().find_map(|line| line.strip_prefix("Set-Cookie: ")).unwrap();
    format!("Cookie: {}\r\n", set.split(';').next().unwrap())
}

#[test]
fn programs_that_know_nothing_of_http_have_the_cookie_the_checks_and_the_page_of_servers() {
    assert!(perl_has("strict"), "this test needs perl: apt-get install perl");
    let folder = folder();
    for file in ["visits.pl", "sorry.html"] {
        fs::copy(example("sticky").join(file), folder.path().join(file)).unwrap();
    }
    let daemon = Daemon::serve(folder.path(), &on_ports("visits.toml", &[]));
    until("all serve", || daemon.metric("roadstead_workers", &["state=\"idle\""]) == 3);
    let get = |lines: &str| get(daemon.address(), "/", lines);
    let ask = |lines: &str| {
        let (head, body) = get(lines);
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}\n{body}");
        let (process, count) = body.trim().split_once(' ').unwrap();
        (head, process.parse::<u32>().unwrap(), count.parse::<u32>().unwrap())
    };
    let clients: Vec<_> = (0..3).map(|_| ask("")).collect();
    let processes: BTreeSet<u32> = clients.iter().map(|client| client.1).collect();
    assert_eq!(processes.len(), 3, "each in its turn");
    for (head, process, count) in &clients {
        for more in 1..4 {
            let (again, same, now) = ask(&cookie(head));
            assert_eq!((same, now), (*process, count + more));
            assert!(!again.contains("Set-Cookie"), "it knows already: {again}");
        }
    }
    // The command switches the page on and off immediately, also for clients with a cookie.
    ctl(&daemon, &["fallback", "visits", "on"]);
    let (head, body) = get(&cookie(&clients[0].0));
    assert!(head.starts_with("HTTP/1.1 503 ") && head.contains("Retry-After: 30"), "{head}");
    assert!(head.contains("Content-Type: text/html"), "{head}");
    assert_eq!(body, page());
    ctl(&daemon, &["fallback", "visits", "off"]);
    assert_eq!(ask(&cookie(&clients[0].0)).1, clients[0].1);
    // An unhealthy worker is replaced, and its clients get another one. Clients of the other workers keep theirs.
    fs::write(folder.path().join("ill-0"), "").unwrap();
    let ill = *processes.iter().find(|process| **process == daemon.programs()[0]).unwrap();
    until("it is gone", || !daemon.programs().contains(&ill));
    fs::remove_file(folder.path().join("ill-0")).unwrap();
    until("there are three again", || daemon.metric("roadstead_workers_serving", &[]) == 3);
    for (head, process, _) in &clients {
        let (moved, now, _) = ask(&cookie(head));
        if *process == ill {
            assert_ne!(now, ill);
            assert_eq!(ask(&cookie(&moved)).1, now);
        } else {
            assert_eq!(now, *process);
        }
    }
    let (head, _) = get("X-Priority: 0\r\n");
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert!(daemon.stop().success());
}

#[test]
fn a_cookie_brings_clients_back_and_the_page_comes_and_goes_with_the_servers() {
    let servers = ["a", "b", "backup"].map(named);
    let ports = servers.each_ref().map(|server| server.port.to_string());
    let text = on_ports("web.toml", &ports);
    let folder = folder();
    fs::copy(example("sticky").join("sorry.html"), folder.path().join("sorry.html")).unwrap();
    let daemon = Daemon::serve(folder.path(), &text);
    let get = |lines: &str| get(daemon.address(), "/", lines);

    let (head, own) = get("");
    assert!(own == "a" || own == "b", "{own}: the third is a backup");
    let cookie = head.lines().find_map(|line| line.strip_prefix("Set-Cookie: ")).unwrap();
    let cookie = format!("Cookie: {}\r\n", cookie.split(';').next().unwrap());
    for _ in 0..4 {
        assert_eq!(get(&cookie).1, own);
    }

    let health = |status: &str| {
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
        servers.iter().for_each(|one| one.answer("/healthz", Answer::Bytes(answer.clone().into())));
    };
    health("500 Internal Server Error");
    until("the page is there", || {
        let (head, body) = get(&cookie);
        if head.starts_with("HTTP/1.1 200 ") {
            return false;
        }
        assert!(head.starts_with("HTTP/1.1 503 ") && head.contains("Retry-After: 30"), "{head}");
        assert!(head.contains("Content-Type: text/html"), "{head}");
        assert_eq!(body, page());
        true
    });
    assert_eq!(daemon.metric("roadstead_fallback_active", &[]), 1);
    health("200 OK");
    until("it goes, and its client is back at its own server", || get(&cookie).1 == own);
    until("nobody is sorry", || daemon.metric("roadstead_fallback_active", &[]) == 0);
    assert!(daemon.stop().success());
}

/// The process that answers this client, and how often it has answered it.
fn count(address: &str, who: &str) -> (u32, u32) {
    let (head, body) = get(address, &format!("/?who={who}"), "");
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}\n{body}");
    let words: Vec<&str> = body.split_whitespace().collect();
    assert_eq!(words[1], who);
    (words[0].parse().unwrap(), words[2].parse().unwrap())
}

fn signal(processes: &BTreeSet<u32>, signal: Signal) {
    for process in processes {
        let process = Pid::from_raw(i32::try_from(*process).unwrap()).unwrap();
        kill_process(process, signal).unwrap();
    }
}

#[test]
fn servers_and_programs_do_the_same_by_the_same_words() {
    let servers = [(); 2].map(|()| Python::start("sticky/count.py"));
    let ports = servers.each_ref().map(|server| server.1.clone());
    let text = on_ports("both.toml", &ports);
    for word in ["sticky", "health_check", "fallback", "queue", "max_concurrent"] {
        let start = format!("{word} = ");
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with(&start)).collect();
        assert!(lines.len() == 2 && lines[0] == lines[1], "{lines:?}");
    }
    let folder = folder();
    for file in ["count.py", "sorry.html"] {
        fs::copy(example("sticky").join(file), folder.path().join(file)).unwrap();
    }
    let daemon = Daemon::serve(folder.path(), &text);
    for (pool, worker) in [("servers", format!("127.0.0.1:{}", ports[0])), ("programs", "0".into())]
    {
        let processes = clients_come_back_to_theirs(&daemon, pool);
        the_page_comes_and_goes(&daemon, pool, &processes);
        the_ill_is_left_out(
            &daemon,
            pool,
            &folder.path().join(format!("ill-{worker}")),
            &processes,
        );
    }
    assert!(daemon.stop().success());
}

/// Gives the processes that answer.
fn clients_come_back_to_theirs(daemon: &Daemon, pool: &str) -> BTreeSet<u32> {
    let address = &daemon.listeners[pool];
    until("both serve", || {
        let state = format!("pool=\"{pool}\"");
        daemon.metric("roadstead_workers", &[&state, "state=\"idle\""]) == 2
    });
    let processes = ["ann", "bob", "cid", "dan"].map(|who| {
        let (process, first) = count(address, who);
        assert_eq!(first, 1, "{who}");
        assert_eq!(count(address, who), (process, 2), "{who}");
        process
    });
    let processes = BTreeSet::from(processes);
    assert_eq!(processes.len(), 2);
    processes
}

fn the_page_comes_and_goes(daemon: &Daemon, pool: &str, processes: &BTreeSet<u32>) {
    let address = &daemon.listeners[pool];
    let label = format!("pool=\"{pool}\"");
    let (ann, _) = count(address, "ann");
    signal(processes, Signal::STOP);
    until("they have stopped", || processes.iter().all(|process| stands_still(*process)));
    let ask = |who: usize| {
        let address = address.clone();
        thread::spawn(move || count(&address, &format!("one{who}")))
    };
    let waiting: Vec<_> = (0..4).map(ask).collect();
    until("two are served and two wait", || {
        daemon.metric("roadstead_queue_length", &[&label]) == 2
    });
    let (head, body) = get(address, "/?who=ann", "");
    assert!(head.starts_with("HTTP/1.1 503 "), "{head}");
    assert_eq!(body, page());
    assert_eq!(daemon.metric("roadstead_fallback_active", &[&label]), 1);
    signal(processes, Signal::CONT);
    waiting.into_iter().for_each(|one| assert_eq!(one.join().unwrap().1, 1));
    until("it goes", || daemon.metric("roadstead_fallback_active", &[&label]) == 0);
    assert_eq!(count(address, "ann"), (ann, 4), "{pool}: the server of a client is kept");
}

fn the_ill_is_left_out(
    daemon: &Daemon,
    pool: &str,
    ill: &std::path::Path,
    processes: &BTreeSet<u32>,
) {
    let address = &daemon.listeners[pool];
    let mut client = 0;
    let mut who_answers = || {
        let mut answered = BTreeSet::new();
        for _ in 0..4 {
            client += 1;
            answered.insert(count(address, &format!("new{client}")).0);
        }
        answered
    };
    fs::write(ill, "").unwrap();
    until("one of them answers nobody", || processes.difference(&who_answers()).count() == 1);
    // Clients that were bound to it have another worker, and no client is rejected.
    for who in ["ann", "bob", "cid", "dan"] {
        count(address, who);
    }
    fs::remove_file(ill).unwrap();
    until("there are two again", || who_answers().len() == 2);
}
