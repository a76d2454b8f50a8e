//! Requests that are larger than the server accepts.

use std::time::Duration;

use database::{Action, Job};

use crate::place::{Place, serve, statement};
use crate::proxy::{Cut, Proxy};
use crate::server::{Kind, Server};

/// A server that accepts packets of 64 KiB, with a table of texts.
fn place() -> Place {
    let mut server = Server::prepare_forever(Kind::Mariadb);
    server.set(&["max-allowed-packet=64K"]);
    server.restart();
    server.database("packets");
    let place = Place::Server(Box::leak(Box::new(server)), "packets".to_owned());
    place
        .run("create table hits (id bigint primary key, path mediumtext not null, status integer)");
    place
}

#[test]
fn a_letter_that_is_kept_is_also_kept_when_it_is_sent_again() {
    let place = place();
    let job = Job {
        dead: Some("dead".to_owned()),
        ..Job::new(Action::insert("hits", ["id", "path", "status"]))
    };
    let proxy = Proxy::to(place.port());
    drop(place.handler_by(&proxy, job.clone()));
    place.run("insert into hits values (1, '', 0)");
    let mut kept = Vec::new();
    for bytes in [40_000, 60_000, 64_000, 64_040, 64_080, 64_120, 64_160, 64_200, 64_600] {
        let rows = |cut| {
            place.run("delete from dead");
            let mut handler = place.handler_by(&proxy, job.clone());
            proxy.cut(cut);
            let answers = serve(&mut handler, [row(1, bytes)]);
            assert!(answers[0].starts_with("!row "), "{bytes}: {answers:?}");
            place.run("select max(length(`row`)), count(*) from dead")
        };
        let again = [rows(Cut::BeforeCommit), rows(Cut::AfterCommit)];
        assert_eq!(again[0], again[1], "{bytes}");
        kept.push(again[0].clone());
    }
    let whole = row(1, 60_000).len();
    assert_eq!(kept[1], [format!("{whole}|1")], "{kept:?}");
    assert_eq!(kept.last().unwrap(), &["NULL|0"], "{kept:?}");
}

fn row(id: usize, bytes: usize) -> String {
    format!(r#"{{"id":{id},"path":"{}","status":200}}"#, "x".repeat(bytes))
}

#[test]
fn packets_hold_batches_of_any_size_and_a_row_that_is_larger_is_refused_alone() {
    let place = place();
    let sql = "insert into hits (id, path, status) values (:id, :path, :status)";
    let insert = Action::insert("hits", ["id", "path", "status"]);
    for action in [insert, statement(sql).action] {
        // A row that is too large has no dead letter, and does not affect the other rows.
        let job = Job {
            ack: "ok {id}".to_owned(),
            dead: Some("dead".to_owned()),
            retry: Duration::ZERO,
            ..Job::new(action)
        };
        let mut handler = place.handler(job);
        place.run("delete from hits; delete from dead");
        let answers = serve(&mut handler, (0..100).map(|id| row(id, 5000)));
        let expected: Vec<String> = (0..100).map(|id| format!("ok {id}")).collect();
        assert_eq!(answers, expected);
        let bodies = [row(100, 5), row(101, 100_000), row(102, 62_000), row(102, 5), row(103, 5)];
        let answers = serve(&mut handler, bodies);
        assert_eq!(answers[1], "!row larger than the max_allowed_packet of the server");
        assert!(answers[3].starts_with("!row Duplicate entry"), "{answers:?}");
        assert_eq!([&*answers[0], &*answers[2], &*answers[4]], ["ok 100", "ok 102", "ok 103"]);
        assert_eq!(place.run("select count(*) from hits"), ["103"]);
        assert_eq!(place.run("select count(*) from dead"), ["1"]);
        // Every size around the limit is either stored or rejected.
        let sizes = (64 * 1024 - 1200..64 * 1024 + 20).step_by(20);
        for (index, bytes) in sizes.enumerate() {
            let answer = serve(&mut handler, [row(1000 + index, bytes), row(2000 + index, 5)]);
            assert!(answer[0].starts_with("ok ") || answer[0].starts_with("!row larger"));
            assert_eq!(answer[1], format!("ok {}", 2000 + index), "{bytes}");
        }
    }
}
