//! The order in which rows are committed, and the effect of a rejected row on the rows beside it, through the daemon
//! into each database.

use std::path::Path;

use rusqlite::Connection;

use crate::daemon::{Daemon, folder, one_pool};
use crate::proxy::{Cut, Proxy};
use crate::server::{Kind, Server, eventually};

const KINDS: [Kind; 2] = [Kind::Postgres, Kind::Mariadb];

const INSERT: &str = "insert = { table = \"hits\", columns = [\"id\", \"path\"], on_conflict = \
                      \"nothing\", key = [\"id\"] }\nack = \"ok {id}\"\n";

fn lines(ids: impl IntoIterator<Item = usize>) -> String {
    ids.into_iter().map(|id| format!("{{\"id\":{id},\"path\":\"/{id}\"}}\n")).collect()
}

/// Returns a table that records the order of its rows.
fn ordered(kind: Kind) -> &'static str {
    match kind {
        Kind::Postgres => {
            "create table hits (came bigint generated always as identity, \
             id bigint not null unique, path varchar(20) not null)"
        }
        Kind::Mariadb => {
            "create table hits (came bigint auto_increment primary key, \
             id bigint not null unique, path varchar(20) not null)"
        }
    }
}

#[test]
fn rows_of_a_client_are_committed_in_its_order_wherever_the_way_is_cut() {
    for kind in KINDS {
        let server = Server::start(kind, &[]);
        let proxy = Proxy::to(server.port);
        let target = server.database("hits");
        let target = target.replace(&format!(":{}/", server.port), &format!(":{}/", proxy.port()));
        server.run("hits", ordered(kind));
        let folder = folder();
        let pool = format!(
            "database = \"{target}\"\n{INSERT}batch = {{ rows = 7 }}\nretry_timeout = \"60s\"\n"
        );
        let daemon = Daemon::serve(folder.path(), &one_pool("", &pool));
        let mut client = daemon.connect();
        for (round, cut) in Cut::ALL.into_iter().enumerate() {
            let ids = round * 60..(round + 1) * 60;
            let before = proxy.cuts();
            proxy.cut(cut);
            client.send(lines(ids.clone()));
            for id in ids {
                assert_eq!(client.line(), format!("ok {id}"), "{kind:?} {cut:?}");
            }
            assert_eq!(proxy.cuts(), before + 1, "{kind:?} {cut:?}");
        }
        let came = server.run("hits", "select id from hits order by came");
        let sent: Vec<String> = (0..60 * Cut::ALL.len()).map(|id| id.to_string()).collect();
        assert_eq!(came, sent, "{kind:?}");
        assert!(daemon.stop().success());
    }
}

#[test]
fn in_any_order_a_batch_overtakes_one_that_waits_and_replies_keep_theirs() {
    for kind in KINDS {
        let server = Server::start(kind, &[]);
        let target = server.database("hits");
        server.run("hits", ordered(kind));
        let folder = folder();
        let pool = format!(
            "database = \"{target}\"\n{INSERT}workers = 2\norder = \"any\"\n\
             batch = {{ rows = 1 }}\nlock_timeout = \"1h\"\nresponse_timeout = \"1h\"\n"
        );
        let daemon = Daemon::serve(folder.path(), &one_pool("", &pool));
        let mut client = daemon.connect();
        assert_eq!(client.ask(lines([1]).trim_end()), "ok 1");
        let (sleep, asleep, wake) = match kind {
            Kind::Postgres => (
                "select pg_sleep(3600)",
                "select count(*) from pg_stat_activity where wait_event = 'PgSleep'",
                "select pg_terminate_backend(pid) from pg_stat_activity \
                 where wait_event = 'PgSleep'",
            ),
            Kind::Mariadb => (
                "select sleep(3600)",
                "select count(*) from information_schema.processlist \
                 where info like 'select sleep(3600)'",
                "select concat('kill ', id) from information_schema.processlist \
                 where info like 'select sleep(3600)'",
            ),
        };
        // Another transaction is about to store row 2, and has not committed.
        let hold = format!("begin; insert into hits (id, path) values (2, '/held'); {sleep}");
        let mut holder = server.session("hits", &hold);
        eventually("row 2 is held", || server.run("hits", asleep) == ["1"]);
        client.send(lines([2, 3, 4]));
        let rows = || server.run("hits", "select id from hits order by id");
        eventually("rows 3 and 4 have overtaken row 2", || rows() == ["1", "3", "4"]);
        for kill in server.run("hits", wake) {
            if kind == Kind::Mariadb {
                server.run("hits", &kill);
            }
        }
        let _ = holder.wait();
        // The replies still arrive in the order of the requests.
        assert_eq!([client.line(), client.line(), client.line()], ["ok 2", "ok 3", "ok 4"]);
        let stored = server.run("hits", "select id, path from hits where id = 2");
        assert_eq!(stored, ["2|/2"], "{kind:?}: what was held was never committed");
        assert!(daemon.stop().success());
    }
}

/// Batches of five rows, one of which is rejected, at each position.
fn poison_in_each_place(folder: &Path, target: &str, stored: &dyn Fn() -> Vec<String>) {
    const ROWS: usize = 5;
    // The batch is sent when it is full and not before.
    let pool = format!(
        "database = \"{target}\"\ninsert = {{ table = \"hits\", columns = [\"id\", \"path\"] }}\n\
         ack = \"ok {{id}}\"\nbatch = {{ rows = {ROWS}, timeout = \"1h\" }}\nqueue = {{ timeout = \"1h\" }}\n"
    );
    let daemon = Daemon::serve(folder, &one_pool("", &pool));
    let mut client = daemon.connect();
    let mut expected = Vec::new();
    for place in 0..ROWS {
        let ids = place * ROWS..(place + 1) * ROWS;
        let poison = place * ROWS + place;
        let right = format!("{{\"id\":{poison},\"path\":\"/{poison}\"}}");
        let wrong = format!("{{\"id\":{poison},\"path\":null}}");
        client.send(lines(ids.clone()).replace(&right, &wrong));
        for id in ids {
            let reply = client.line();
            if id == poison {
                assert!(reply.starts_with("!row "), "{target}, place {place}: {reply}");
            } else {
                assert_eq!(reply, format!("ok {id}"), "{target}, place {place}");
                expected.push(id.to_string());
            }
        }
    }
    assert_eq!(stored(), expected, "{target}");
    assert_eq!(daemon.metric("roadstead_batches_total", &[]), ROWS as u64, "{target}");
    assert!(daemon.stop().success());
}

#[test]
fn a_poison_row_in_every_place_of_a_batch_is_refused_alone_on_each_database() {
    const TABLE: &str = "create table hits (id bigint primary key, path varchar(20) not null)";
    const SQL: &str = "select id from hits order by id";
    let own = folder();
    let file = own.path().join("hits.db");
    let database = Connection::open(&file).unwrap();
    database.execute_batch(TABLE).unwrap();
    poison_in_each_place(own.path(), &format!("sqlite:{}", file.display()), &|| {
        let mut statement = database.prepare(SQL).unwrap();
        let ids = statement.query_map([], |row| row.get::<_, i64>(0)).unwrap();
        ids.map(|id| id.unwrap().to_string()).collect()
    });
    for kind in KINDS {
        let server = Server::start(kind, &[]);
        let target = server.database("hits");
        server.run("hits", TABLE);
        poison_in_each_place(folder().path(), &target, &|| server.run("hits", SQL));
    }
}
