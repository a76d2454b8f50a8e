//! Clients bound to programs, the fallback response that comes and goes, and commands at run time.

use std::fs;
use std::io::Write;
use std::process::Command;

use crate::daemon::{BINARY, Daemon, folder, one_pool, read_log, until};

/// Programs that answer with their process number.
const TELLS_PID: &str = r#"program = ["sh", "-c", "while read -r line; do echo $$; done"]
workers = 3
"#;

pub(crate) fn ctl(daemon: &Daemon, words: &[&str]) -> (bool, String) {
    let mut command = Command::new(BINARY);
    let out = command.arg("ctl").args(["--admin", &daemon.admin]).args(words).output().unwrap();
    let text = [out.stdout, out.stderr].concat();
    (out.status.success(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn a_client_comes_back_to_its_program_and_gets_another_when_that_dies() {
    let folder = folder();
    let pool = format!("{TELLS_PID}sticky = {{ key = \"word:1\" }}\nmin_uptime = \"0s\"\n");
    let daemon = Daemon::serve(folder.path(), &one_pool("", &pool));
    let mut client = daemon.connect();
    let first: Vec<String> = (0..9).map(|who| client.ask(&format!("client{who} a"))).collect();
    for (who, program) in first.iter().enumerate() {
        for word in ["b", "c"] {
            assert_eq!(&client.ask(&format!("client{who} {word}")), program);
        }
    }
    let (_, why) = ctl(&daemon, &["why", "main"]);
    assert!(why.contains("(bound)"), "{why}");
    let killed = Command::new("sh").args(["-c", &format!("kill -9 {}", first[0])]).status();
    assert!(killed.unwrap().success());
    until("it is replaced", || daemon.metric("roadstead_worker_starts_total", &[]) > 3);
    let next = client.ask("client0 d");
    assert_ne!(next, first[0]);
    assert_eq!(client.ask("client0 e"), next);
}

/// Sends four lines over each of six connections of every listener. Returns which program answered each.
fn programs_of_connections(connect: impl Fn() -> crate::client::Client) -> Vec<Vec<String>> {
    let mut clients: Vec<_> = (0..6).map(|_| connect()).collect();
    let mut said = vec![Vec::new(); clients.len()];
    for round in 0..4 {
        for (client, said) in clients.iter_mut().zip(&mut said) {
            said.push(client.ask(&format!("line {round}")));
        }
    }
    said
}

#[test]
fn a_connection_keeps_its_program_on_a_port_and_on_a_unix_socket() {
    let folder = folder();
    let path = folder.path().join("socket");
    let pool =
        format!("{TELLS_PID}sticky = {{ key = \"connection\" }}\nbalance = \"round-robin\"\n");
    let unix = format!(
        "[listener.local]\nlisten = \"unix:{}\"\nprotocol = \"lines\"\npool = \"main\"\n",
        path.display()
    );
    for shards in [1, 2] {
        let text = format!("{}{unix}[daemon]\nshards = {shards}\n", one_pool("", &pool));
        let daemon = Daemon::serve(folder.path(), &text);
        until("all serve", || daemon.metric("roadstead_workers_serving", &[]) == 3);
        let port = programs_of_connections(|| daemon.connect());
        let local = programs_of_connections(|| crate::client::Client::local(&path));
        for said in [&port, &local] {
            for one in said {
                assert!(one.iter().all(|program| *program == one[0]), "{said:?}");
            }
            assert!(said.iter().any(|one| one[0] != said[0][0]), "and not all the same: {said:?}");
        }
        assert!(daemon.stop().success());
    }
}

/// Returns the last decision about a request of the pool.
fn last_decision(daemon: &Daemon) -> String {
    let (_, why) = ctl(daemon, &["why", "main"]);
    why.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn beyond_its_limit_the_table_of_clients_lets_go_of_who_rested_longest() {
    let folder = folder();
    let pool = format!("{TELLS_PID}sticky = {{ key = \"word:1\", entries = 2 }}\n");
    let daemon = Daemon::serve(folder.path(), &one_pool("", &pool));
    until("all run", || daemon.metric("roadstead_workers", &["state=\"idle\""]) == 3);
    let mut client = daemon.connect();
    let mut is_bound = |who: &str| {
        client.ask(who);
        last_decision(&daemon).contains("(bound)")
    };
    assert_eq!(["ann", "bob"].map(&mut is_bound), [false; 2]);
    // Ann sent the last request: there is no room for Bob beside her and Cid.
    assert_eq!(
        ["ann", "cid", "ann", "cid", "bob"].map(&mut is_bound),
        [true, false, true, true, false]
    );
    assert_eq!(["cid", "bob", "ann"].map(&mut is_bound), [true, true, false]);
    until("there are two", || daemon.metric("roadstead_bound_clients", &[]) == 2);
}

#[test]
fn a_client_that_did_not_ask_for_its_lifetime_is_no_longer_bound() {
    let folder = folder();
    let pool = format!("{TELLS_PID}sticky = {{ key = \"word:1\", lifetime = \"200ms\" }}\n");
    let daemon = Daemon::serve(folder.path(), &one_pool("", &pool));
    let mut client = daemon.connect();
    client.ask("ann");
    // Requests of the other clients displace her.
    until("she is forgotten", || {
        client.ask("bob");
        daemon.metric("roadstead_bound_clients", &[]) == 1
    });
    client.ask("ann");
    assert!(last_decision(&daemon).contains("(scheduled)"), "{}", last_decision(&daemon));
}

#[test]
fn fallback_by_hand_holds_for_connections_that_are_open_and_is_taken_back() {
    let folder = folder();
    let pool = format!("{TELLS_PID}fallback = {{ line = \"we are sorry\" }}\n");
    let daemon = Daemon::serve(folder.path(), &one_pool("", &pool));
    let mut client = daemon.connect();
    assert!(client.ask("a").parse::<u32>().is_ok());
    let (done, told) = ctl(&daemon, &["fallback", "main", "on"]);
    assert!(done, "{told}");
    assert_eq!(client.ask("b"), "we are sorry");
    assert_eq!(daemon.metric("roadstead_fallback_active", &[]), 1);
    assert!(ctl(&daemon, &["fallback", "main", "off"]).0);
    assert!(client.ask("c").parse::<u32>().is_ok());
    assert_eq!(daemon.metric("roadstead_fallback_responses_total", &[]), 1);
    assert!(!ctl(&daemon, &["fallback", "nobody", "on"]).0);
}

#[test]
fn over_its_limit_a_pool_is_fallback_until_there_is_room_again() {
    let folder = folder();
    let gate = folder.path().join("gate");
    assert!(Command::new("mkfifo").arg(&gate).status().unwrap().success());
    let script = "while read -r line; do read -r go < gate; echo \\\"$line\\\"; done";
    let pool = format!(
        "program = [\"sh\", \"-c\", \"{script}\"]\nworkers = 1\nqueue = {{ max_requests = 1, timeout = \"30s\" }}\n\
         fallback = {{ line = \"we are sorry\", until = \"0%\" }}\n"
    );
    let daemon = Daemon::serve(folder.path(), &one_pool("", &pool));
    // The gate is open for reading and writing, so that no reader sees its end, and each line lets one request
    // continue.
    let mut gate = fs::OpenOptions::new().read(true).write(true).open(&gate).unwrap();
    let (mut one, mut two, mut three) = (daemon.connect(), daemon.connect(), daemon.connect());
    one.send("1\n");
    until("it works", || daemon.metric("roadstead_workers", &["state=\"busy\""]) == 1);
    two.send("2\n");
    until("one waits", || daemon.metric("roadstead_queue_length", &[]) == 1);
    assert_eq!(three.ask("3"), "we are sorry");
    gate.write_all(b"go\n").unwrap();
    assert_eq!(one.line(), "1");
    assert_eq!(three.ask("4"), "we are sorry", "one slot of two places is still taken");
    gate.write_all(b"go\n").unwrap();
    assert_eq!(two.line(), "2");
    until("it is sorry no longer", || daemon.metric("roadstead_fallback_active", &[]) == 0);
    three.send("5\n");
    gate.write_all(b"go\n").unwrap();
    assert_eq!(three.line(), "5");
}

#[test]
fn a_worker_that_is_disabled_gets_nothing_and_a_wrong_name_is_told_the_right_ones() {
    let folder = folder();
    let daemon = Daemon::serve(folder.path(), &one_pool("", TELLS_PID));
    until("all run", || daemon.metric("roadstead_workers", &["state=\"idle\""]) == 3);
    let mut client = daemon.connect();
    for worker in ["0", "1"] {
        assert!(ctl(&daemon, &["disable", "main", worker]).0);
    }
    let only = client.ask("a");
    for _ in 0..5 {
        assert_eq!(client.ask("a"), only);
    }
    let (done, told) = ctl(&daemon, &["weight", "main", "7", "3"]);
    assert!(!done && told.contains("its workers are 0, 1, 2"), "{told}");
    assert!(ctl(&daemon, &["enable", "main", "0"]).0);
    let answers: Vec<String> = (0..4).map(|_| client.ask("a")).collect();
    assert!(answers.iter().any(|answer| *answer != only), "{answers:?}");
}

#[test]
fn a_program_that_answers_its_checks_wrongly_is_replaced_and_the_others_stay() {
    let folder = folder();
    let script =
        "while read -r line; do if [ -e ill-$$ ]; then echo ill; else echo well $$; fi; done";
    let pool = format!(
        "program = [\"sh\", \"-c\", \"{script}\"]\nworkers = 2\nmin_uptime = \"0s\"\nhealth_check = {{ check = \"line\", \
         send = \"ping\", expect = \"well\", interval = \"20ms\", fall = 2 }}\n"
    );
    let daemon = Daemon::serve(folder.path(), &one_pool("", &pool));
    let mut client = daemon.connect();
    assert!(client.ask("a").starts_with("well "));
    until("they are checked", || daemon.metric("roadstead_health_checks_total", &[]) > 4);
    let before = daemon.programs();
    let ill = before[0];
    fs::write(folder.path().join(format!("ill-{ill}")), "").unwrap();
    until("it is replaced", || {
        let now = daemon.programs();
        now.len() == 2 && !now.contains(&ill)
    });
    assert!(daemon.programs().contains(&before[1]), "the other was well");
    assert!(client.ask("a").starts_with("well "));
}

#[test]
fn a_program_that_is_checked_first_serves_after_its_first_good_answer() {
    let folder = folder();
    let script = "while read -r line; do echo $$ $line; done";
    let pool = format!(
        "program = [\"sh\", \"-c\", \"{script}\"]\nworkers = 2\nmin_uptime = \"0s\"\nhealth_check = {{ check = \"line\", \
         send = \"ping\", interval = \"20ms\", checked_first = true }}\n"
    );
    let daemon = Daemon::serve(folder.path(), &one_pool("", &pool));
    until("both are well", || daemon.metric("roadstead_workers_serving", &[]) == 2);
    let mut client = daemon.connect();
    assert!(client.ask("a").ends_with(" a"));
    assert!(daemon.stop().success());
}

#[test]
fn a_program_that_owes_the_answer_to_its_check_is_replaced() {
    let folder = folder();
    // It answers its clients and is silent when it is checked.
    let script = "while read -r line; do [ $line = ping ] || echo $$; done";
    let pool = format!(
        "program = [\"sh\", \"-c\", \"{script}\"]\nworkers = 1\nmin_uptime = \"0s\"\nstop_timeout = \"100ms\"\n\
         health_check = {{ check = \"line\", send = \"ping\", interval = \"20ms\", timeout = \"20ms\", fall = 2 }}\n"
    );
    let daemon = Daemon::serve(folder.path(), &one_pool("", &pool));
    until("it is replaced", || daemon.metric("roadstead_worker_starts_total", &[]) > 2);
    assert!(daemon.metric("roadstead_health_check_failures_total", &[]) >= 2);
}

#[test]
fn a_worker_has_one_name_for_itself_in_status_in_the_log_and_for_ctl() {
    let folder = folder();
    let script =
        "program = [\"sh\", \"-c\", \"while read -r line; do echo $ROADSTEAD_WORKER; done\"]\n";
    let daemon = Daemon::serve(folder.path(), &one_pool("", script));
    let name = daemon.connect().ask("who");
    assert_eq!(
        (name.as_str(), &daemon.status()["pools"][0]["workers"][0]["name"]),
        ("main/0", &name.as_str().into())
    );
    assert!(ctl(&daemon, &["disable", "main", &name]).0);
    assert_eq!(daemon.status()["pools"][0]["places"][0]["admin_state"], "disabled");
    assert!(ctl(&daemon, &["enable", "main", "0"]).0, "without its pool, which is named already");
    let (done, said) = ctl(&daemon, &["disable", "main", "other/0"]);
    assert!(!done && said.contains("no worker other/0"), "{said}");
    assert!(daemon.stop().success());
    let health = "health_check = { check = \"line\", send = \"x\", expect = \"never\", fall = 1, interval = \"20ms\" }\n";
    let daemon = Daemon::serve(folder.path(), &one_pool("", &format!("{script}{health}")));
    until("it is found down", || read_log(folder.path()).contains("is down"));
    let log = read_log(folder.path());
    let line = log.lines().find(|line| line.contains("is down")).unwrap();
    assert!(line.contains("worker=\"main/"), "{line}");
    assert!(daemon.stop().success());
}
