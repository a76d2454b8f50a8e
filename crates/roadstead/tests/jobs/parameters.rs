//! Values that are too many, too long, of the wrong type, null, or look like SQL, through the daemon into a server.
//! Each request gets its own rejection; the requests beside it are stored.

use crate::daemon::{Daemon, folder, one_pool};
use crate::server::{Kind, Server};

const KINDS: [Kind; 2] = [Kind::Postgres, Kind::Mariadb];

/// A request, and the beginning of its reply.
struct Case {
    line: String,
    postgres: &'static str,
    mariadb: &'static str,
}

fn both(line: impl Into<String>, reply: &'static str) -> Case {
    Case { line: line.into(), postgres: reply, mariadb: reply }
}

fn each(line: impl Into<String>, postgres: &'static str, mariadb: &'static str) -> Case {
    Case { line: line.into(), postgres, mariadb }
}

fn record(id: &str, path: &str, status: &str) -> String {
    format!("{{\"id\":{id},\"path\":{path},\"status\":{status}}}")
}

fn cases() -> Vec<Case> {
    let with = |id: u32, further: u32| {
        let members: String = (0..further).map(|it| format!(",\"m{it}\":0")).collect();
        format!("{{\"id\":{id},\"path\":\"/b\",\"status\":2{members}}}")
    };
    let long = format!("\"{}\"", "x".repeat(60_000));
    vec![
        both(record("1", "\"/a\"", "1"), "ok 1"),
        // Additional members are ignored.
        both(with(2, 500), "ok 2"),
        both(with(22, 5000), "!record not a JSON record: more than 1000 members"),
        both("{\"id\":3}", "!row the record has no `path`"),
        both(record("4", &long, "4"), "!row "),
        both(record("5", "\"/e\"", "\"five\""), "!row "),
        both(record("6", "\"/f\"", "[6]"), "!row "),
        both(record("7", "\"/g\"", "{\"a\":7}"), "!row "),
        both(record("99999999999999999999", "\"/h\"", "8"), "!row "),
        both(record("9", "\"/i\"", "1e400"), "!row "),
        both(record("10", "null", "10"), "!row "),
        both(record("11", "\"/k\"", "null"), "ok 11"),
        each(record("12", "\"a\\u0000b\"", "12"), "!row ", "ok 12"),
        both(record("13", "\"\\ud800\"", "13"), "!record "),
        both(record("14", "\"'; drop table hits\"", "14"), "ok 14"),
        both(record("15", "\"') , (1,'x',1) -- \"", "15"), "ok 15"),
        both(record("16", "\"\\\\'; commit; \"", "16"), "ok 16"),
        both(record("17", "\"{1,2}$1 ? :id\"", "17"), "ok 17"),
        both("[1]", "!record "),
        both("{\"id\":19,\"id\":20,\"path\":\"/t\",\"status\":1}", "!"),
        both(record("21", "\"/u\"", "21"), "ok 21"),
    ]
}

const STORED: [&str; 8] = ["1", "2", "11", "14", "15", "16", "17", "21"];

#[test]
fn each_row_that_does_not_fit_is_refused_alone_whatever_it_is() {
    for kind in KINDS {
        let server = Server::start(kind, &[]);
        let target = server.database("hits");
        server.run(
            "hits",
            "create table hits (id bigint not null, path varchar(20) not null, status integer)",
        );
        for action in [
            "insert = { table = \"hits\", columns = [\"id\", \"path\", \"status\"] }",
            "statement = \"insert into hits (id, path, status) values (:id, :path, :status)\"",
        ] {
            server.run("hits", "delete from hits");
            let pool = format!(
                "database = \"{target}\"\n{action}\nack = \"ok {{id}}\"\n\
                 batch = {{ rows = 100, timeout = \"100ms\" }}\nunknown_fields = \"ignore\"\n"
            );
            let folder = folder();
            let daemon = Daemon::serve(folder.path(), &one_pool("", &pool));
            let mut client = daemon.connect();
            let cases = cases();
            client.send(cases.iter().map(|case| format!("{}\n", case.line)).collect::<String>());
            client.finish();
            let replies = client.rest();
            assert_eq!(replies.len(), cases.len(), "{kind:?} {replies:?}");
            for (case, reply) in cases.iter().zip(&replies) {
                let expected = if kind == Kind::Postgres { case.postgres } else { case.mariadb };
                let line: String = case.line.chars().take(100).collect();
                assert!(reply.starts_with(expected), "{kind:?} {action}: {line}: {reply}");
            }
            let mut stored: Vec<&str> = STORED.to_vec();
            if kind == Kind::Mariadb {
                stored.insert(3, "12");
            }
            assert_eq!(server.run("hits", "select id from hits order by id"), stored);
            let said = server.run("hits", "select path from hits where id in (14, 16) order by id");
            assert_eq!(said[0], "'; drop table hits");
            assert!(daemon.stop().success());
        }
    }
}

#[test]
fn a_line_of_values_has_as_many_as_there_are_columns() {
    for kind in KINDS {
        let server = Server::start(kind, &[]);
        let target = server.database("hits");
        server.run("hits", "create table hits (id bigint not null, path varchar(20))");
        let pool = format!(
            "database = \"{target}\"\ninput_format = \"tsv\"\nack = \"ok {{id}}\"\n\
             insert = {{ table = \"hits\", columns = [\"id\", \"path\"] }}\n"
        );
        let folder = folder();
        let daemon = Daemon::serve(folder.path(), &one_pool("", &pool));
        let mut client = daemon.connect();
        let many = vec!["1"; 10_000].join("\t");
        client.send(format!("1\t/a\n2\n3\t/c\t3\n{many}\n\n\\N\t/n\n7\t\\N\n"));
        client.finish();
        let replies = client.rest();
        assert_eq!((&*replies[0], &*replies[6]), ("ok 1", "ok 7"), "{replies:?}");
        assert!(replies[1..6].iter().all(|it| it.starts_with('!')), "{replies:?}");
        assert_eq!(server.run("hits", "select id from hits order by id"), ["1", "7"]);
    }
}

#[test]
fn a_batch_may_have_more_values_than_a_statement_takes() {
    for kind in KINDS {
        let server = Server::start(kind, &[]);
        let target = server.database("hits");
        let columns: Vec<String> = (0..100).map(|it| format!("c{it}")).collect();
        let table = columns.join(" bigint, ");
        server.run("hits", &format!("create table hits (id bigint, {table} bigint)"));
        let named = columns.join("\", \"");
        // A thousand rows of 101 values; both servers take 65,535 parameters at most.
        let pool = format!(
            "database = \"{target}\"\ninput_format = \"tsv\"\nack = \"ok {{id}}\"\n\
             insert = {{ table = \"hits\", columns = [\"id\", \"{named}\"] }}\n\
             batch = {{ rows = 1000, timeout = \"1s\" }}\nworkers = 1\n"
        );
        let folder = folder();
        let daemon = Daemon::serve(folder.path(), &one_pool("in_flight_max = 1000\n", &pool));
        let mut client = daemon.connect();
        let values = vec!["7"; 100].join("\t");
        client.send((0..1000).map(|id| format!("{id}\t{values}\n")).collect::<String>());
        client.finish();
        for (id, reply) in client.rest().iter().enumerate() {
            assert_eq!(*reply, format!("ok {id}"), "{kind:?}");
        }
        let sum = server.run("hits", "select count(*), sum(c99) from hits");
        assert_eq!(sum, ["1000|7000"], "{kind:?}");
    }
}
