//! Rows, tables and logins that fail while a daemon serves.

use std::time::Duration;

use crate::daemon::{Daemon, folder, one_pool, read_log, until};
use crate::questions::{ask, web};
use crate::server::{Kind, Server};

const KINDS: [Kind; 2] = [Kind::Postgres, Kind::Mariadb];

const INSERT: &str = "insert = { table = \"kinds\", columns = [\"id\", \"v\"] }\n\
                      ack = \"ok {id}\"\nworkers = 1\n";

#[test]
fn a_row_with_the_code_of_a_server_fault_does_not_fail_the_rows_of_other_clients() {
    for kind in KINDS {
        let server = Server::start(kind, &[]);
        let target = server.database("faults");
        server.run("faults", "create table kinds (id bigint primary key, v integer)");
        server.run(
            "faults",
            match kind {
                Kind::Postgres => {
                    "create function f() returns trigger language plpgsql as $$ begin \
                     if new.v = 13 then raise exception 'unlucky' using errcode = '25006'; end if; \
                     return new; end $$; \
                     create trigger t before insert on kinds for each row execute function f()"
                }
                Kind::Mariadb => {
                    "create trigger t before insert on kinds for each row if new.v = 13 then \
                     signal sqlstate '45000' set mysql_errno = 1213, message_text = 'unlucky'; end if"
                }
            },
        );
        let folder = folder();
        let pool = format!("database = \"{target}\"\n{INSERT}retry_timeout = \"100ms\"\n");
        let daemon = Daemon::serve(folder.path(), &one_pool("", &pool));
        let mut clients: Vec<_> = (0..9).map(|_| daemon.connect()).collect();
        for (number, client) in clients.iter_mut().enumerate() {
            let lines = (0..11).map(|row| {
                let id = number * 11 + row;
                format!("{{\"id\":{id},\"v\":{}}}\n", if id == 61 { 13 } else { 1 })
            });
            client.send(lines.collect::<String>());
            client.finish();
        }
        for (number, client) in clients.iter_mut().enumerate() {
            for (row, reply) in client.rest().iter().enumerate() {
                let id = number * 11 + row;
                match id {
                    61 => assert!(reply.contains("database unlucky"), "{kind:?}: {reply}"),
                    _ => assert_eq!(*reply, format!("ok {id}"), "{kind:?}"),
                }
            }
        }
        assert_eq!(server.run("faults", "select count(*) from kinds"), ["98"], "{kind:?}");
        assert!(daemon.stop().success());
    }
}

#[test]
fn a_daemon_follows_a_migration() {
    for kind in KINDS {
        let server = Server::start(kind, &[]);
        let target = server.database("faults");
        server.run("faults", "create table kinds (id bigint primary key, v integer)");
        let folder = folder();
        let pool = format!("database = \"{target}\"\n{INSERT}");
        let daemon = Daemon::serve(folder.path(), &one_pool("", &pool));
        let mut client = daemon.connect();
        assert_eq!(client.ask("{\"id\":1,\"v\":1}"), "ok 1");
        server.run(
            "faults",
            match kind {
                Kind::Postgres => "alter table kinds alter column v type bigint",
                Kind::Mariadb => "alter table kinds modify column v bigint",
            },
        );
        assert_eq!(client.ask("{\"id\":2,\"v\":3000000000}"), "ok 2", "{kind:?}");
        assert!(daemon.stop().success());

        let query = "query = \"select * from kinds where id = :id\"\nworkers = 1";
        let daemon = Daemon::serve(folder.path(), &web(&target, query));
        let mut client = daemon.connect();
        let whole = ask(&mut client, "GET /?id=2 HTTP/1.1");
        assert_eq!(
            (whole.status, &*whole.body),
            (200, "[{\"id\":2,\"v\":3000000000}]"),
            "{kind:?}"
        );
        server.run("faults", "alter table kinds drop column v");
        let rest = ask(&mut client, "GET /?id=2 HTTP/1.1");
        assert_eq!((rest.status, &*rest.body), (200, "[{\"id\":2}]"), "{kind:?}");
        assert!(daemon.stop().success());
    }
}

#[test]
fn a_denied_login_is_tried_and_logged_seldom_and_serves_again_when_it_is_allowed() {
    let server = Server::start(Kind::Postgres, &["log_connections=on"]);
    let target = server.database("faults");
    server.run("faults", "create table kinds (id bigint primary key, v integer)");
    let folder = folder();
    let pool = format!(
        "database = \"{target}\"\n{}",
        INSERT.replace("workers = 1", "workers = 4\norder = \"any\"")
    );
    let daemon = Daemon::serve(folder.path(), &one_pool("", &pool));
    let mut client = daemon.connect();
    assert_eq!(client.ask("{\"id\":1,\"v\":1}"), "ok 1");
    server.run("postgres", "alter database faults allow_connections false");
    let end = "select pg_terminate_backend(pid) from pg_stat_activity where datname = 'faults'";
    server.run("postgres", end);
    let logins = || server.log().matches("connection received").count();
    let (before, since) = (logins(), std::time::Instant::now());
    for id in 2..302 {
        let reply = client.ask(&format!("{{\"id\":{id},\"v\":1}}"));
        assert!(reply.starts_with('!') && reply.contains("database"), "{reply}");
    }
    // The pauses double from 20 ms, shortened by up to half, to 10 s.
    let allowed = 14 + usize::try_from(since.elapsed().as_secs() / 5).unwrap();
    let made = logins() - before;
    assert!(made <= allowed, "{made} logins in {:?}", since.elapsed());
    let log = read_log(folder.path());
    let lines = log.lines().filter(|line| line.contains("/faults denies access")).count();
    assert!((1..=2).contains(&lines), "{log}");
    server.run("postgres", "alter database faults allow_connections true");
    let mut id = 1000;
    until("rows are stored again", || {
        id += 1;
        std::thread::park_timeout(Duration::from_millis(20));
        client.ask(&format!("{{\"id\":{id},\"v\":1}}")) == format!("ok {id}")
    });
    assert_eq!(
        read_log(folder.path()).matches("connection to the database works again").count(),
        1,
        "{log}"
    );
    assert!(daemon.stop().success());
}
