//! Commands of operators that the machines of a site share over NATS servers.

use std::path::Path;

use serde_json::Value;

use crate::balance::ctl;
use crate::client::Client;
use crate::daemon::{Daemon, folder, until};
use crate::http_server::{Answer, Server};
use crate::nats::Nats;

/// Variables with the secret.
const SECRET: &[(&str, &str)] = &[("CLUSTER_SECRET", "0123456789abcdef")];

fn configuration(machine: &str, nats: &[String], servers: &[String], more: &str) -> String {
    format!(
        "[admin]\nlisten = \"127.0.0.1:0\"\n\
         [cluster]\nnats = {nats:?}\nsecret = \"env:CLUSTER_SECRET\"\nmachine = \"{machine}\"\n{more}\
         [listener.web]\nlisten = \"127.0.0.1:0\"\nprotocol = \"http\"\npool = \"web\"\n\
         [pool.web]\nservers = {servers:?}\nbalance = \"round-robin\"\n\
         fallback = {{ line = \"sorry\" }}\n"
    )
}

fn serve(folder: &Path, machine: &str, nats: &Nats, servers: &[String]) -> Daemon {
    Daemon::serve_with(folder, &configuration(machine, &nats.urls(), servers, ""), SECRET)
}

/// Servers that answer with their number, and their names in the configuration.
fn servers(count: usize) -> (Vec<Server>, Vec<String>) {
    let answer = |number: usize| {
        let text = format!("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{number}");
        Server::start(&[("/", Answer::Bytes(text.into_bytes()))])
    };
    let servers: Vec<_> = (0..count).map(answer).collect();
    let names = servers.iter().map(|server| format!("127.0.0.1:{}", server.port)).collect();
    (servers, names)
}

/// The body of a response.
fn get(daemon: &Daemon) -> String {
    let mut connection = Client::connect(&daemon.listeners["web"]);
    connection.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    connection.rest().pop().unwrap()
}

/// Asserts that only this server answers.
#[track_caller]
fn only(daemon: &Daemon, server: &str) {
    let answers: Vec<_> = (0..6).map(|_| get(daemon)).collect();
    assert!(answers.iter().all(|answer| answer == server), "{answers:?}");
}

/// The state and the weight of a server at a daemon.
fn state(daemon: &Daemon, server: &str) -> (String, Value) {
    let status = daemon.status();
    let places = status["pools"][0]["places"].as_array().unwrap();
    let place = places.iter().find(|place| place["name"] == server).unwrap();
    (place["admin_state"].as_str().unwrap().to_owned(), place["weight_set"].clone())
}

fn cluster(daemon: &Daemon) -> Value {
    let (is_done, text) = ctl(daemon, &["cluster", "status"]);
    assert!(is_done, "{text}");
    serde_json::from_str(&text).unwrap()
}

/// Gives a command that succeeds. Returns the answer.
#[track_caller]
fn done(daemon: &Daemon, words: &[&str]) -> String {
    let (is_done, text) = ctl(daemon, words);
    assert!(is_done, "{words:?}: {text}");
    text
}

/// Kills the only NATS server and waits until a daemon has noticed it.
fn kill(nats: &mut Nats, daemon: &Daemon) {
    until("it is connected", || cluster(daemon)["commands"]["is_read"] == true);
    nats.kill(0);
    until("the connection is lost", || cluster(daemon)["server"].is_null());
}

/// Gives a command until no other machine is faster.
#[track_caller]
fn insist(daemon: &Daemon, words: &[&str]) {
    loop {
        let (is_done, text) = ctl(daemon, words);
        if is_done {
            return;
        }
        assert!(text.contains("at the same time: nothing was changed"), "{text}");
    }
}

#[test]
fn a_command_on_one_machine_applies_to_all_and_to_those_that_start_later() {
    let Some(nats) = Nats::start(3) else { return };
    let (_servers, names) = servers(2);
    let folders = [folder(), folder(), folder()];
    let one = serve(folders[0].path(), "one", &nats, &names);
    let two = serve(folders[1].path(), "two", &nats, &names);
    let text = done(&one, &["disable", "web", &names[0]]);
    let expected =
        format!("server {} of pool web is disabled on all machines of site roadstead\n", names[0]);
    assert_eq!(text, expected);
    assert_eq!(state(&one, &names[0]).0, "disabled", "it is in force when the answer arrives");
    only(&one, "1");
    until("the other machine follows", || state(&two, &names[0]).0 == "disabled");
    only(&two, "1");
    // The name with that of the pool is accepted. A weight is kept when the state changes.
    done(&two, &["weight", "web", &format!("web/{}", names[0]), "7"]);
    until("the weight", || state(&one, &names[0]) == ("disabled".to_owned(), 7.into()));
    let status = cluster(&one);
    let commands = &status["commands"];
    assert_eq!((&commands["is_read"], &commands["state"]), (&true.into(), &"in-sync".into()));
    let entry = &commands["entries"][0];
    assert_eq!((&entry["server"], &entry["machine"]), (&(&*names[0]).into(), &"two".into()));
    assert!(entry["who"].as_str().unwrap().starts_with("uid "), "{entry}");
    assert!(entry["when"].as_str().unwrap().ends_with('Z'), "{entry}");
    assert_eq!(one.metric("roadstead_cluster_command_entries", &[]), 1);
    // A daemon that starts has the state before it serves.
    let three = serve(folders[2].path(), "three", &nats, &names);
    assert_eq!(state(&three, &names[0]), ("disabled".to_owned(), 7.into()));
    only(&three, "1");
    done(&three, &["enable", "web", &names[0]]);
    done(&three, &["weight", "web", &names[0], "default"]);
    done(&three, &["drain", "web", &names[1]]);
    for daemon in [&one, &two] {
        let is_followed = || {
            state(daemon, &names[0]) == ("enabled".to_owned(), Value::Null)
                && state(daemon, &names[1]).0 == "drained"
        };
        until("all follow", is_followed);
        only(daemon, "0");
    }
    done(&two, &["fallback", "web", "on"]);
    for daemon in [&one, &three] {
        until("the fallback is on", || {
            daemon.status()["pools"][0]["fallback"]["reason"] == "operator"
        });
    }
    done(&one, &["fallback", "web", "off"]);
    until("the fallback is off", || three.status()["pools"][0]["fallback"].is_null());
    let (is_done, text) = ctl(&one, &["disable", "web", "10.0.0.1:80"]);
    assert!(!is_done && text.contains("has no worker 10.0.0.1:80"), "{text}");
    let (is_done, text) = ctl(&one, &["disable", "none", "10.0.0.1:80"]);
    assert!(!is_done && text.contains("there is no pool none"), "{text}");
    // `--local` changes only this daemon. The next shared command for the server replaces its state everywhere.
    done(&one, &["disable", "web", &names[0], "--local"]);
    assert_eq!(
        (state(&one, &names[0]).0.as_str(), state(&two, &names[0]).0.as_str()),
        ("disabled", "enabled")
    );
    done(&two, &["enable", "web", &names[0]]);
    until("it is enabled again", || state(&one, &names[0]).0 == "enabled");
}

#[test]
fn two_operators_at_once_lose_no_command() {
    let Some(nats) = Nats::start(3) else { return };
    let (_servers, names) = servers(1);
    let folders = [folder(), folder()];
    let one = serve(folders[0].path(), "one", &nats, &names);
    let two = serve(folders[1].path(), "two", &nats, &names);
    // One operator changes the weight, the other one the state of the same server.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for weight in 1..=12 {
                insist(&one, &["weight", "web", &names[0], &weight.to_string()]);
            }
        });
        for round in 0..12 {
            let verb = if round % 2 == 0 { "disable" } else { "drain" };
            insist(&two, &[verb, "web", &names[0]]);
        }
    });
    for daemon in [&one, &two] {
        until("the last of both", || state(daemon, &names[0]) == ("drained".to_owned(), 12.into()));
    }
    println!("{}", one.metric("roadstead_cluster_command_conflicts_total", &[]));
}

#[test]
fn without_nats_a_shared_command_changes_nothing_and_a_local_one_is_possible() {
    let Some(mut nats) = Nats::start(1) else { return };
    let (_servers, names) = servers(2);
    let folders = [folder(), folder()];
    let one = serve(folders[0].path(), "one", &nats, &names);
    let two = serve(folders[1].path(), "two", &nats, &names);
    kill(&mut nats, &one);
    let (is_done, text) = ctl(&one, &["disable", "web", &names[0]]);
    assert!(!is_done, "{text}");
    assert!(text.contains("the NATS servers cannot be reached: nothing was changed"), "{text}");
    assert!(text.contains("`--local` changes only this machine"), "{text}");
    assert_eq!(state(&one, &names[0]).0, "enabled");
    let text = done(&one, &["disable", "web", &names[0], "--local"]);
    assert_eq!(text, format!("worker {} of pool web is disabled\n", names[0]));
    only(&one, "1");
    nats.run(0);
    nats.wait_until_ready();
    until("all is read again", || cluster(&two)["commands"]["is_read"] == true);
    assert_eq!(state(&two, &names[0]).0, "enabled");
    done(&two, &["disable", "web", &names[1]]);
    until("the other follows", || state(&one, &names[1]).0 == "disabled");
    assert_eq!(state(&one, &names[0]).0, "disabled", "the state of another server is kept");
}

#[test]
fn the_state_survives_when_the_nats_servers_lose_everything() {
    let Some(mut nats) = Nats::start(1) else { return };
    let (_servers, names) = servers(2);
    let folders = [folder(), folder(), folder()];
    let one = serve(folders[0].path(), "one", &nats, &names);
    let two = serve(folders[1].path(), "two", &nats, &names);
    done(&one, &["disable", "web", &names[0]]);
    until("both have it", || state(&two, &names[0]).0 == "disabled");
    kill(&mut nats, &one);
    nats.wipe(0);
    nats.run(0);
    nats.wait_until_ready();
    let restored =
        |daemon: &Daemon| daemon.metric("roadstead_cluster_commands_restored_total", &[]);
    until("the state is stored again", || restored(&one) + restored(&two) > 0);
    for daemon in [&one, &two] {
        until("it is read", || cluster(daemon)["commands"]["is_read"] == true);
        assert_eq!(state(daemon, &names[0]).0, "disabled");
    }
    let three = serve(folders[2].path(), "three", &nats, &names);
    assert_eq!(state(&three, &names[0]).0, "disabled");
    only(&three, "1");
}

#[test]
fn a_server_that_a_reload_adds_has_its_stored_state() {
    let Some(nats) = Nats::start(1) else { return };
    let (_servers, names) = servers(2);
    let folders = [folder(), folder()];
    let one = serve(folders[0].path(), "one", &nats, &names[..1]);
    let two = serve(folders[1].path(), "two", &nats, &names);
    done(&two, &["disable", "web", &names[1]]);
    done(&two, &["weight", "web", &names[0], "3"]);
    until("the weight", || state(&one, &names[0]).1 == 3);
    Daemon::rewrite(folders[0].path(), &configuration("one", &nats.urls(), &names, ""));
    one.reload().unwrap();
    assert_eq!(state(&one, &names[1]).0, "disabled");
    assert_eq!(state(&one, &names[0]).1, 3);
    only(&one, "0");
}

#[test]
fn commands_are_local_if_they_are_not_shared() {
    let Some(nats) = Nats::start(1) else { return };
    let (_servers, names) = servers(1);
    let folders = [folder(), folder()];
    let more = "share_commands = false\n";
    let text = configuration("one", &nats.urls(), &names, more);
    let one = Daemon::serve_with(folders[0].path(), &text, SECRET);
    let two = serve(folders[1].path(), "two", &nats, &names);
    let text = done(&one, &["disable", "web", &names[0]]);
    assert_eq!(text, format!("worker {} of pool web is disabled\n", names[0]));
    assert!(cluster(&one)["commands"].is_null());
    assert_eq!(state(&two, &names[0]).0, "enabled");
    done(&two, &["drain", "web", &names[0]]);
    assert_eq!(state(&one, &names[0]).0, "disabled");
}
