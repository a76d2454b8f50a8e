//! Errors with the code of a server error that are caused by a row: the other rows are stored.

use std::time::{Duration, Instant};

use database::{Action, Job, OnConflict};
use exchange::Factory;

use crate::place::{Place, serve, serve_soon};
use crate::server::{Kind, Server};

crate::suite_of_servers!(
    a_row_with_the_code_of_a_server_fault_fails_alone,
    many_such_rows_fail_alone_wherever_they_are,
    a_batch_is_tried_again_before_its_rows_are_tried_alone,
    a_server_that_accepts_no_row_is_not_tried_with_each_of_them,
    a_row_that_fails_alone_leaves_the_next_rows_their_connection,
    a_row_that_ends_its_connection_fails_alone,
    a_row_that_ends_its_connection_fails_alone_beside_other_workers,
    rows_behind_many_that_end_their_connection_are_stored,
    rows_beside_one_whose_time_runs_out_are_stored,
    a_row_that_fails_for_long_does_not_hold_up_the_others,
    a_client_reads_no_message_about_the_row_of_another,
);

mod on_postgres {
    #[test]
    fn a_row_that_fails_with_such_a_code_at_commit_fails_alone() {
        super::at_commit(&crate::place::Place::postgres());
    }
}

/// Creates a table whose trigger raises this code for rows with `v = 13`.
fn raises(place: &Place, code: &str) {
    if place.is_postgres() {
        place.run(&format!(
            "create or replace function f() returns trigger language plpgsql as $$ begin \
             if new.v = 13 then raise exception 'unlucky' using errcode = '{code}'; end if; \
             return new; end $$"
        ));
        place.run(
            "create or replace trigger t before insert on kinds for each row execute function f()",
        );
    } else {
        place.run(&format!(
            "create or replace trigger t before insert on kinds for each row if new.v = 13 then \
             signal sqlstate '45000' set mysql_errno = {code}, message_text = 'unlucky'; end if"
        ));
    }
}

/// An insert, and a statement that does the same.
fn jobs(retry: Duration) -> [Job; 2] {
    let sql = "insert into kinds (id, v) values (:id, :v)";
    let insert = Job { retry, ..Job::new(Action::insert("kinds", ["id", "v"])) };
    let statement = Job { action: Action::Statement(sql.to_owned()), ..insert.clone() };
    [insert, statement]
}

fn row(id: usize, bad: bool) -> String {
    format!(r#"{{"id":{id},"v":{}}}"#, if bad { 13 } else { 1 })
}

/// Serves `count` rows, of which these are bad.
fn check(place: &Place, job: &Job, count: usize, bad: &[usize], what: &str) {
    place.run("delete from kinds");
    let mut handler = place.handler(job.clone());
    let answers = serve(&mut handler, (0..count).map(|id| row(id, bad.contains(&id))));
    for (id, answer) in answers.iter().enumerate() {
        if bad.contains(&id) {
            assert!(answer.starts_with("!database "), "{what}, {id}: {answer}");
            assert!(answer.contains("unlucky"), "{what}, {id}: {answer}");
        } else {
            assert_eq!(answer, "ok", "{what}, {id} beside {bad:?}");
        }
    }
    let stored = place.run("select count(*), count(case when v = 13 then 1 end) from kinds");
    assert_eq!(stored, [format!("{}|0", count - bad.len())], "{what}");
    assert_eq!(serve(&mut handler, [row(count, false)]), ["ok"], "{what}, afterwards");
}

fn a_row_with_the_code_of_a_server_fault_fails_alone(place: &Place) {
    place.run("create table kinds (id bigint primary key, v integer)");
    let codes: &[&str] = if place.is_postgres() {
        &[
            "XX000", "40001", "40P01", "53200", "53100", "25006", "57P01", "57014", "55P03",
            "55000", "58030", "08006", "28000", "42501", "26000", "HV00N",
        ]
    } else {
        // Locks, a deadlock, a conflict, read-only, shutdown, memory, disk, an engine, a table.
        &[
            "1205", "1213", "1020", "1290", "1836", "1053", "1927", "1037", "1021", "1030", "1105",
            "1146", "1317", "2013",
        ]
    };
    for code in codes {
        raises(place, code);
        for job in jobs(Duration::from_millis(30)) {
            check(place, &job, 99, &[61], code);
        }
    }
}

fn many_such_rows_fail_alone_wherever_they_are(place: &Place) {
    place.run("create table kinds (id bigint primary key, v integer)");
    raises(place, if place.is_postgres() { "XX000" } else { "1105" });
    for job in jobs(Duration::ZERO) {
        // So many consecutive rows that the database could be the cause.
        for bad in [(0..60).collect::<Vec<_>>(), (70..150).collect(), (139..199).collect()] {
            check(place, &job, 200, &bad, "many in a row");
        }
        for bad in [&[0][..], &[98], &[0, 1, 2, 3, 50, 51, 97, 98], &[0, 2, 4, 6, 8, 10]] {
            check(place, &job, 99, bad, "many");
        }
    }
}

fn a_batch_is_tried_again_before_its_rows_are_tried_alone(place: &Place) {
    place.run("create table kinds (id bigint primary key, v integer)");
    place.run("create sequence tries");
    // Two attempts meet a deadlock, the third one does not. A sequence is not rolled back.
    if place.is_postgres() {
        place.run(
            "create function f() returns trigger language plpgsql as $$ begin \
             if new.v = 13 and nextval('tries') < 3 then \
             raise exception 'unlucky' using errcode = '40P01'; end if; return new; end $$; \
             create trigger t before insert on kinds for each row execute function f()",
        );
    } else {
        place.run(
            "create trigger t before insert on kinds for each row \
             if new.v = 13 and nextval(tries) < 3 then \
             signal sqlstate '45000' set mysql_errno = 1213, message_text = 'unlucky'; end if",
        );
    }
    let [insert, _] = jobs(Duration::from_secs(60));
    let mut handler = place.handler(insert);
    assert_eq!(serve(&mut handler, (0..9).map(|id| row(id, id == 4))), ["ok"; 9]);
    assert_eq!(place.run("select count(*) from kinds"), ["9"]);
}

fn a_server_that_accepts_no_row_is_not_tried_with_each_of_them(place: &Place) {
    place.run("create table kinds (id bigint primary key, v integer)");
    place.run("create sequence tries");
    if place.is_postgres() {
        place.run(
            "create function f() returns trigger language plpgsql as $$ begin \
             perform nextval('tries'); \
             raise exception 'unlucky' using errcode = '53100'; end $$; \
             create trigger t before insert on kinds for each row execute function f()",
        );
    } else {
        place.run(
            "create trigger t before insert on kinds for each row if nextval(tries) > 0 then \
             signal sqlstate '45000' set mysql_errno = 1021, message_text = 'unlucky'; end if",
        );
    }
    let [insert, _] = jobs(Duration::ZERO);
    let mut handler = place.handler(insert);
    let answers = serve(&mut handler, (0..1000).map(|id| row(id, false)));
    assert!(answers.iter().all(|it| it.starts_with("!database ")), "{answers:?}");
    let next =
        if place.is_postgres() { "select nextval('tries')" } else { "select nextval(tries)" };
    let tries: usize = place.run(next).concat().parse().unwrap();
    assert!(tries < 200, "{tries} attempts");
}

fn a_row_that_fails_alone_leaves_the_next_rows_their_connection(place: &Place) {
    place.run("create table kinds (id bigint primary key, v integer)");
    // Read-only, and a shutdown: another connection may reach a better server.
    for code in if place.is_postgres() { ["25006", "57P01"] } else { ["1290", "1053"] } {
        raises(place, code);
        for job in jobs(Duration::ZERO) {
            let mut handler = place.handler(job);
            // The rows that follow have no time to wait for a login.
            for round in 0..3 {
                place.run("delete from kinds");
                let bad = serve(&mut handler, [row(0, true)]);
                assert!(bad[0].contains("unlucky"), "{code}: {bad:?}");
                assert_eq!(serve(&mut handler, [row(1, false)]), ["ok"], "{code}, {round}");
                let last = serve(&mut handler, [row(2, false), row(3, true)]);
                assert_eq!(last[0], "ok", "{code}, {round}");
                assert_eq!(serve(&mut handler, [row(4, false)]), ["ok"], "{code}, {round}");
            }
        }
    }
}

/// Creates a table with a trigger that ends the connection of rows with `v = 13`.
fn ends(place: &Place) {
    if place.is_postgres() {
        place.run(
            "create function f() returns trigger language plpgsql as $$ begin \
             if new.v = 13 then perform pg_terminate_backend(pg_backend_pid()); end if; \
             return new; end $$; \
             create trigger t before insert on kinds for each row execute function f()",
        );
    } else {
        place.run(
            "create trigger t before insert on kinds for each row \
             if new.v = 13 then kill connection_id(); end if",
        );
    }
}

fn a_row_that_ends_its_connection_fails_alone(place: &Place) {
    place.run("create table kinds (id bigint primary key, v integer)");
    ends(place);
    for job in jobs(Duration::from_secs(60)) {
        for bad in [&[7][..], &[0], &[19], &[3, 4, 11]] {
            place.run("delete from kinds");
            let mut handler = place.handler(job.clone());
            let answers = serve(&mut handler, (0..20).map(|id| row(id, bad.contains(&id))));
            for (id, answer) in answers.iter().enumerate() {
                match bad.contains(&id) {
                    true => assert!(answer.starts_with("!database "), "{bad:?}: {answers:?}"),
                    false => assert_eq!(answer, "ok", "{id} beside {bad:?}: {answers:?}"),
                }
            }
            let stored = (20 - bad.len()).to_string();
            assert_eq!(place.run("select count(*) from kinds"), [stored], "{bad:?}");
            assert_eq!(serve(&mut handler, [row(20, false)]), ["ok"], "{bad:?}");
        }
        let mut handler = place.handler(job);
        let alone = serve(&mut handler, [row(21, true)]);
        assert!(alone[0].starts_with("!database "), "{alone:?}");
    }
}

/// The workers of a pool share the pauses between their logins.
fn a_row_that_ends_its_connection_fails_alone_beside_other_workers(place: &Place) {
    const WORKERS: usize = 4;
    place.run("create table kinds (id bigint primary key, v integer)");
    ends(place);
    for job in jobs(Duration::from_secs(60)) {
        place.run("delete from kinds");
        let database = place.options(job).unwrap();
        let serve_all = |worker: usize| {
            let mut handler = database.open().unwrap_or_else(|error| panic!("{error}"));
            for from in (0..4).map(|batch| (batch * WORKERS + worker) * 100) {
                let bad = |id: usize| id % 100 == 7 || id % 100 == 19;
                let rows: Vec<_> = (from..from + 20).map(|id| row(id, bad(id))).collect();
                for (id, answer) in (from..).zip(serve_soon(&mut handler, &rows)) {
                    match bad(id) {
                        true => assert!(answer.starts_with("!database "), "{id}: {answer}"),
                        false => assert_eq!(answer, "ok", "{id}"),
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            let serve = &serve_all;
            (0..WORKERS).for_each(|worker| drop(scope.spawn(move || serve(worker))));
        });
        assert_eq!(place.run("select count(*) from kinds"), [(WORKERS * 4 * 18).to_string()]);
    }
}

/// Also if their time has run out in between.
fn rows_behind_many_that_end_their_connection_are_stored(place: &Place) {
    place.run("create table kinds (id bigint primary key, v integer)");
    ends(place);
    for job in jobs(Duration::from_millis(200)) {
        place.run("delete from kinds");
        let mut handler = place.handler(job);
        for from in [0, 100] {
            let bad = |id: usize| id % 100 < 30 || id % 100 == 35;
            let rows: Vec<_> = (from..from + 40).map(|id| row(id, bad(id))).collect();
            let since = Instant::now();
            let answers = serve_soon(&mut handler, &rows);
            for (id, answer) in (from..).zip(&answers) {
                match bad(id) {
                    true => assert!(answer.starts_with("!database "), "{id}: {answers:?}"),
                    false => assert_eq!(answer, "ok", "{id}: {answers:?}"),
                }
            }
            assert!(since.elapsed() < Duration::from_secs(20), "{:?}", since.elapsed());
        }
        assert_eq!(place.run("select count(*) from kinds"), ["18"]);
    }
}

#[test]
fn a_row_that_ends_its_connection_at_commit_is_unknown_alone() {
    let place = Place::postgres();
    place.run("create table kinds (id bigint primary key, v integer)");
    ends(&place);
    place.run(
        "drop trigger t on kinds; \
         create constraint trigger t after insert on kinds deferrable initially deferred \
         for each row execute function f()",
    );
    let [mut keyed, _] = jobs(Duration::from_secs(60));
    if let Action::Insert { on_conflict, .. } = &mut keyed.action {
        *on_conflict = OnConflict::Nothing(vec!["id".to_owned()]);
    }
    let mut handler = place.handler(keyed);
    let answers = serve(&mut handler, (0..20).map(|id| row(id, id == 7)));
    for (id, answer) in answers.iter().enumerate() {
        match id {
            7 => assert!(answer.starts_with("!commit "), "{answers:?}"),
            _ => assert_eq!(answer, "ok", "{id}: {answers:?}"),
        }
    }
    assert_eq!(place.run("select count(*) from kinds"), ["19"]);
}

fn at_commit(place: &Place) {
    place.run("create table kinds (id bigint primary key, v integer)");
    for code in ["XX000", "40001", "25006", "57P01"] {
        place.run(&format!(
            "create or replace function f() returns trigger language plpgsql as $$ begin \
             if new.v = 13 then raise exception 'unlucky' using errcode = '{code}'; end if; \
             return new; end $$; drop trigger if exists t on kinds; \
             create constraint trigger t after insert on kinds deferrable initially deferred \
             for each row execute function f()"
        ));
        for job in jobs(Duration::from_millis(30)) {
            check(place, &job, 99, &[61], code);
        }
    }
}

/// The time runs out between the fault and the wait for another attempt.
fn rows_beside_one_whose_time_runs_out_are_stored(place: &Place) {
    place.run("create table kinds (id bigint primary key, v integer)");
    for code in if place.is_postgres() { ["40001", "08001"] } else { ["1213", "1290"] } {
        raises(place, code);
        for job in jobs(Duration::from_nanos(1)) {
            check(place, &job, 20, &[7], code);
        }
    }
}

fn a_row_that_fails_for_long_does_not_hold_up_the_others(place: &Place) {
    place.run("create table kinds (id bigint primary key, v integer)");
    let codes: &[&str] = if place.is_postgres() {
        &["40001", "40P01", "08001", "57P03", "53400", "53300", "53100", "25006"]
    } else {
        &["1213", "1020", "1429", "1053", "1040", "1021", "1290"]
    };
    raises(place, codes[0]);
    let [insert, _] = jobs(Duration::from_secs(3600));
    let mut handler = place.handler(insert);
    for code in codes {
        raises(place, code);
        for (count, bad) in [(30, &[17, 20][..]), (1, &[0]), (2, &[0]), (2, &[1])] {
            place.run("delete from kinds");
            let rows: Vec<_> = (0..count).map(|id| row(id, bad.contains(&id))).collect();
            let answers = serve_soon(&mut handler, &rows);
            for (id, answer) in answers.iter().enumerate() {
                match bad.contains(&id) {
                    true => assert!(answer.contains("database unlucky"), "{code}: {answers:?}"),
                    false => assert_eq!(answer, "ok", "{code}, {id}: {answers:?}"),
                }
            }
            let stored = (count - bad.len()).to_string();
            assert_eq!(place.run("select count(*) from kinds"), [stored], "{code}");
        }
    }
}

#[test]
fn rows_of_a_partition_whose_server_is_down_do_not_hold_up_the_others() {
    let place = Place::postgres();
    let server = Server::start(Kind::Postgres, &[]);
    let Place::Server(_, name) = &place else { unreachable!("it is a server") };
    server.run("postgres", &format!("create database {name}"));
    server.run(name, "create table far (id bigint, v integer)");
    place.run(&format!(
        "create extension postgres_fdw; \
         create server far foreign data wrapper postgres_fdw \
         options (host '127.0.0.1', port '{}', dbname '{name}'); \
         create user mapping for current_user server far options (user 'roadstead'); \
         create table kinds (id bigint, v integer) partition by list (v); \
         create table near partition of kinds for values in (1); \
         create foreign table far partition of kinds for values in (13) server far \
         options (table_name 'far')",
        server.port
    ));
    let mut server = server;
    let [insert, statement] = jobs(Duration::from_secs(3600));
    for job in [insert, statement] {
        let mut handler = place.handler(job);
        let bad = [0, 7, 8, 19];
        let rows: Vec<_> = (0..20).map(|id| row(id, bad.contains(&id))).collect();
        assert_eq!(serve_soon(&mut handler, &rows), ["ok"; 20]);
        place.run("delete from near");
        server.kill();
        let answers = serve_soon(&mut handler, &rows);
        for (id, answer) in answers.iter().enumerate() {
            match bad.contains(&id) {
                true => assert!(answer.starts_with("!database "), "{answers:?}"),
                false => assert_eq!(answer, "ok", "{id}: {answers:?}"),
            }
        }
        assert_eq!(place.run("select count(*) from near"), ["16"]);
        let alone = serve_soon(&mut handler, &rows[..1]);
        assert!(alone[0].starts_with("!database ") && alone[0].ends_with("(08001)"), "{alone:?}");
        assert_eq!(serve_soon(&mut handler, &rows[1..3]), ["ok"; 2]);
        server.restart();
        assert_eq!(serve_soon(&mut handler, &rows), ["ok"; 20]);
    }
}

/// A batch in which every row is rejected with a message that cites it.
fn a_client_reads_no_message_about_the_row_of_another(place: &Place) {
    place.run("create table kinds (id bigint primary key, v integer)");
    let codes: &[&str] = if place.is_postgres() {
        &[
            "55P03", "57014", "53400", "53100", "25006", "57P01", "08006", "40001", "XX000",
            "42501", "26000",
        ]
    } else {
        &["1205", "1317", "1021", "1290", "1053", "1927", "1213", "1105", "1146"]
    };
    for code in codes {
        if place.is_postgres() {
            place.run(&format!(
                "create or replace function f() returns trigger language plpgsql as $$ begin \
                 raise exception 'card <%>', new.id using errcode = '{code}'; end $$; \
                 create or replace trigger t before insert on kinds \
                 for each row execute function f()"
            ));
        } else {
            place.run(&format!(
                "create or replace trigger t before insert on kinds for each row begin \
                 declare said varchar(50) default concat('card <', new.id, '>'); \
                 signal sqlstate '45000' set mysql_errno = {code}, message_text = said; end"
            ));
        }
        // More rows than are tried alone.
        for job in jobs(Duration::ZERO) {
            let mut handler = place.handler(job);
            let answers = serve(&mut handler, (0..40).map(|id| row(id, false)));
            for (id, answer) in answers.iter().enumerate() {
                assert!(answer.starts_with("!database "), "{code}, {id}: {answer}");
                assert!(answer.ends_with(&format!("({code})")), "{code}, {id}: {answer}");
                let own = answer.replace(&format!("<{id}>"), "");
                assert!(!own.contains('<'), "{code}, {id}: {answer}");
            }
            let alone = serve(&mut handler, [row(99, false)]);
            assert!(!alone[0].replace("<99>", "").contains('<'), "{code}: {alone:?}");
        }
    }
}

/// A deferred trigger behind a foreign table rejects a row when its own server commits.
#[test]
fn an_unknown_commit_cites_no_row_of_another() {
    let place = Place::postgres();
    let Place::Server(server, name) = &place else { unreachable!("it is a server") };
    place.run(&format!(
        "create table near (id bigint, v integer); \
         create function f() returns trigger language plpgsql as $$ begin \
         if new.v = 13 then raise exception 'card <%>', new.id; end if; return new; end $$; \
         create constraint trigger t after insert on near deferrable initially deferred \
         for each row execute function f(); \
         create extension postgres_fdw; \
         create server own foreign data wrapper postgres_fdw \
         options (host '127.0.0.1', port '{}', dbname '{name}'); \
         create user mapping for current_user server own options (user 'roadstead'); \
         create foreign table kinds (id bigint, v integer) server own \
         options (table_name 'near')",
        server.port
    ));
    let [insert, _] = jobs(Duration::ZERO);
    let mut handler = place.handler(insert.clone());
    let answers = serve(&mut handler, (0..4).map(|id| row(id, id == 2)));
    for answer in &answers {
        assert!(answer.starts_with("!commit ") && !answer.contains('<'), "{answers:?}");
    }
    let alone = serve(&mut place.handler(insert), [row(7, true)]);
    assert!(alone[0].starts_with("!commit ") && alone[0].contains("<7>"), "{alone:?}");
}
