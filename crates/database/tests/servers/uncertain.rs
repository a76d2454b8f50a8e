//! Rows that are sent again, or that already exist under a key that the database changed.

use database::{Action, Host, Job, OnConflict, Server};

use crate::place::{Place, hit, insert, options_of, serve, statement};
use crate::proxy::{Cut, Proxy};
use crate::server::Kind;

/// Serves rows with these `id`s, the first time without an answer to COMMIT.
fn serve_in_doubt(place: &Place, ids: &[&str]) -> Vec<String> {
    let proxy = Proxy::to(place.port());
    let mut handler = place.handler_by(&proxy, Job { ack: "ok".to_owned(), ..keyed() });
    place.run("delete from hits");
    proxy.cut(Cut::AfterCommit);
    let rows = ids.iter().map(|id| format!(r#"{{"id":{id},"path":"/","status":1}}"#));
    let answers = serve(&mut handler, rows);
    assert_eq!(proxy.cuts(), 1);
    let count = ids.len().to_string();
    assert_eq!(place.run("select count(*) from hits"), [count], "{ids:?}: {answers:?}");
    answers
}

#[test]
fn rows_whose_key_the_server_makes_of_null_or_0_are_not_sent_again() {
    let place = Place::mariadb();
    place
        .run("create table hits (id bigint auto_increment primary key, path text, status integer)");
    // 0 is a normal key: the session sets NO_AUTO_VALUE_ON_ZERO.
    for made in ["null"] {
        let answers = serve_in_doubt(&place, &["1001", "1002", made, made]);
        for (answer, expected) in answers.iter().zip(["ok", "ok", "!commit ", "!commit "]) {
            assert!(answer.starts_with(expected), "{made}: {answers:?}");
        }
    }
    assert_eq!(serve_in_doubt(&place, &["7", "-8", r#""9""#]), ["ok"; 3]);
    place.run(
        "drop table hits; create table hits (id timestamp(6) not null default current_timestamp(6), \
         path text, status integer, unique (id))",
    );
    let answers = serve_in_doubt(&place, &["null", r#""2026-01-01 10:00:00""#]);
    assert!(answers[0].starts_with("!commit ") && answers[1] == "ok", "{answers:?}");
}

#[test]
fn rows_whose_key_is_the_present_time_are_not_sent_again() {
    let place = Place::postgres();
    place.run("create table hits (id timestamptz primary key, path text, status integer)");
    let answers = serve_in_doubt(&place, &[r#""2026-01-01""#, r#""now""#]);
    assert!(answers[0] == "ok" && answers[1].starts_with("!commit "), "{answers:?}");
}

#[test]
fn rows_whose_commit_at_the_server_of_a_foreign_table_is_lost_are_not_sent_again() {
    let (place, remote) = (Place::postgres(), Place::postgres());
    remote.run("create table hits (id bigint, path text, status integer)");
    let proxy = Proxy::to(remote.port());
    let (port, name) = (proxy.port(), remote.login().database);
    place.run(&format!(
        "create extension postgres_fdw; create server remote foreign data wrapper postgres_fdw \
         options (host '127.0.0.1', port '{port}', dbname '{name}'); \
         create user mapping for public server remote \
         options (user 'roadstead', password_required 'false'); \
         create foreign table hits (id bigint, path text, status integer) server remote"
    ));
    let mut handler = place.handler(insert());
    assert_eq!(serve(&mut handler, [hit(1)]), ["ok 1"]);
    proxy.cut(Cut::AfterForeignCommit);
    let answers = serve(&mut handler, [hit(2), hit(3)]);
    assert_eq!(proxy.cuts(), 1);
    assert!(answers.iter().all(|it| it.starts_with("!commit ")), "{answers:?}");
    assert_eq!(remote.run("select id from hits order by id"), ["1", "2", "3"]);
    assert_eq!(serve(&mut handler, [hit(4)]), ["ok 4"]);
}

/// Creates partitions of the usual table on two other servers, by `status`: 1 on the first, 2 on the second, which
/// checks its key at COMMIT.
fn with_foreign_partitions(place: &Place, remotes: &[Place; 2]) {
    let columns = "id bigint, path text, status integer";
    remotes[0].run(&format!("create table hits ({columns})"));
    remotes[1]
        .run(&format!("create table hits ({columns}, unique (id) deferrable initially deferred)"));
    place.run(&format!(
        "create extension postgres_fdw; create table hits ({columns}) partition by list (status)"
    ));
    for (number, remote) in remotes.iter().enumerate() {
        let (port, name, status) = (remote.port(), remote.login().database, number + 1);
        place.run(&format!(
            "create server r{status} foreign data wrapper postgres_fdw \
             options (host '127.0.0.1', port '{port}', dbname '{name}', parallel_commit 'true'); \
             create user mapping for public server r{status} \
             options (user 'roadstead', password_required 'false'); \
             create foreign table hits{status} partition of hits for values in ({status}) \
             server r{status} options (table_name 'hits')"
        ));
    }
}

#[test]
fn rows_that_another_server_may_have_committed_are_not_sent_again() {
    let (place, remotes) = (Place::postgres(), [Place::postgres(), Place::postgres()]);
    let sql = "insert into hits (id, path, status) values (:id, :path, :status)";
    let keeping = || Some("dead".to_owned());
    // A connection that is older than the servers, and one that is newer.
    place.run("create table hits (id bigint, path text, status integer)");
    let older = place.handler(Job { dead: keeping(), ..statement(sql) });
    place.run("drop table hits");
    with_foreign_partitions(&place, &remotes);
    let insert = place.handler(Job { dead: keeping(), ..insert() });
    for (mut handler, what) in [(older, "older"), (insert, "insert")] {
        remotes.iter().for_each(|remote| drop(remote.run("truncate hits")));
        let row = |id: usize, at: usize| format!(r#"{{"id":{id},"path":"/","status":{at}}}"#);
        let rows = [row(1, 1), row(2, 1), row(10, 2), row(10, 2), row(3, 1), row(11, 2)];
        let answers = serve(&mut handler, rows);
        let said = "!commit the batch failed: a row was rejected (23505)";
        assert!(answers.iter().all(|it| it == said), "{what}: {answers:?}");
        let twice = "select id from hits group by id having count(*) > 1";
        assert_eq!(remotes[0].run(twice), [""; 0], "{what}: {answers:?}");
        assert_eq!(place.run("select count(*) from dead"), ["0"], "{what}");
        assert_eq!(serve(&mut handler, [row(4, 1), row(4, 2)]), ["ok 4"; 2], "{what}");
    }
}

#[test]
fn a_deferred_constraint_of_this_server_refuses_a_row_alone_beside_foreign_tables() {
    let place = Place::postgres();
    place.run(
        "create table hits (id bigint, path text, status integer, \
         unique (id) deferrable initially deferred); \
         create extension postgres_fdw; \
         create server remote foreign data wrapper postgres_fdw",
    );
    let answers = serve(&mut place.handler(insert()), [hit(1), hit(2), hit(1), hit(3)]);
    assert_eq!([&answers[1], &answers[3]], ["ok 2", "ok 3"], "{answers:?}");
    assert!(answers[2].starts_with("!row "), "{answers:?}");
    assert_eq!(place.hits(), ["1|/1|200", "2|/2|200", "3|/3|200"]);
}

/// The key of the row does not cover what its trigger wrote.
#[test]
fn rows_with_a_trigger_are_not_sent_again_beside_foreign_tables() {
    let place = Place::postgres();
    place.with_hits().run(
        "create table log (id bigint); \
         create function f() returns trigger language plpgsql as $$ begin \
         insert into log values (new.id); return null; end $$; \
         create trigger t after insert on hits for each row execute function f()",
    );
    let proxy = Proxy::to(place.port());
    let server = "create foreign data wrapper w; create server r foreign data wrapper w";
    for (server, answer) in [("select 1", "ok "), (server, "!commit ")] {
        place.run(server);
        place.run("delete from hits");
        let mut handler = place.handler_by(&proxy, keyed());
        proxy.cut(Cut::BeforeCommit);
        let answers = serve(&mut handler, [hit(1)]);
        assert!(answers[0].starts_with(answer), "{server}: {answers:?}");
    }
}

#[test]
fn rows_whose_begin_failed_are_stored_once() {
    let place = Place::postgres();
    place.with_hits();
    let sql = "insert into hits (id, path, status) values (:id, :path, :status)";
    let poison = || r#"{"id":7,"path":null,"status":0}"#.to_owned();
    // Without a key, only the transaction prevents a second insert of a row.
    place.run("alter table hits drop constraint hits_pkey");
    for (job, bodies) in [
        (insert(), vec![hit(1), hit(2)]),
        (statement(sql), vec![hit(1), hit(2)]),
        (statement(sql), vec![hit(1), poison(), hit(2)]),
    ] {
        // The answer arrives, or is lost with the connection.
        for cut in [Cut::FailedBegin, Cut::LostFailedBegin] {
            place.run("delete from hits");
            let proxy = Proxy::to(place.port());
            let mut handler = place.handler_by(&proxy, job.clone());
            proxy.cut(cut);
            let answers = serve(&mut handler, bodies.clone());
            assert_eq!(proxy.cuts(), 1);
            assert_eq!(place.hits(), ["1|/1|200", "2|/2|200"], "{cut:?}: {answers:?}");
            for (body, answer) in bodies.iter().zip(&answers) {
                let expected = if body.contains("null") { "!row " } else { "ok " };
                assert!(answer.starts_with(expected), "{cut:?}: {answers:?}");
            }
            assert_eq!(serve(&mut handler, [hit(3)]), ["ok 3"]);
        }
    }
}

#[test]
fn rows_whose_begin_failed_may_be_stored_where_the_session_may_write_without_it() {
    let place = Place::postgres();
    place.with_hits();
    // A pooler that shares a session among several clients could do this.
    let statement = statement(
        "insert into hits (id, path, status) select :id, :path, :status \
         from set_config('default_transaction_read_only', 'off', false)",
    );
    let proxy = Proxy::to(place.port());
    let mut handler = place.handler_by(&proxy, statement);
    assert_eq!(serve(&mut handler, [hit(0)]), ["ok 0"]);
    proxy.cut(Cut::FailedBegin);
    let answers = serve(&mut handler, [hit(1), hit(2)]);
    assert!(answers.iter().all(|it| it.starts_with("!commit ")), "{answers:?}");
    assert_eq!(place.run("select count(*) from hits"), ["3"]);
    assert_eq!(serve(&mut handler, [hit(3)]), ["ok 3"]);
}

#[test]
fn a_letter_stays_when_its_begin_failed() {
    let place = Place::postgres();
    place.with_hits();
    let job = Job { dead: Some("dead".to_owned()), ..insert() };
    let mut handler = place.handler(job.clone());
    let answers = serve(&mut handler, [r#"{"id":7,"path":null,"status":0}"#]);
    assert!(answers[0].starts_with("!row "), "{answers:?}");
    for remove in [true, false] {
        let proxy = Proxy::to(place.port());
        let host = Host::Internet("127.0.0.1".to_owned(), proxy.port());
        let server = Server { host, ..place.login() };
        let options = options_of(Kind::Postgres, server, job.clone()).unwrap();
        let mut letters = options.letters().unwrap();
        proxy.cut(Cut::FailedBegin);
        let done = letters.each(|letters, letter| match remove {
            true => letters.remove(letter.number).map(drop),
            false => letters.retry(&letter).map(drop),
        });
        assert!(done.is_err() && proxy.cuts() == 1);
        assert_eq!(place.run("select count(*) from dead"), ["1"], "{remove}");
    }
}

mod on_servers {
    crate::suite_of_servers!(
        rows_are_not_sent_again_past_a_trigger_that_may_change_their_key,
        the_number_of_rows_is_not_that_of_a_second_attempt,
    );
    use super::{
        rows_are_not_sent_again_past_a_trigger_that_may_change_their_key,
        the_number_of_rows_is_not_that_of_a_second_attempt,
    };
}

fn the_number_of_rows_is_not_that_of_a_second_attempt(place: &Place) {
    place.with_hits();
    for cut in [Cut::BeforeCommit, Cut::AfterCommit] {
        place.run("delete from hits; insert into hits values (2, '/2', 7)");
        let proxy = Proxy::to(place.port());
        let job = Job { ack: "{id} {rows}".to_owned(), ..keyed() };
        let mut handler = place.handler_by(&proxy, job);
        proxy.cut(cut);
        let answers = serve(&mut handler, [hit(1), hit(2), hit(3)]);
        assert_eq!(proxy.cuts(), 1);
        assert_eq!(place.hits(), ["1|/1|200", "2|/2|7", "3|/3|200"], "{cut:?}");
        assert_eq!(answers[1], "2 0", "{cut:?}: {answers:?}");
        // For rows that exist now it is unknown who stored them.
        for (answer, certain) in [(&answers[0], "1 1"), (&answers[2], "3 1")] {
            match cut {
                Cut::BeforeCommit => assert_eq!(answer, certain, "{answers:?}"),
                _ => assert!(answer.starts_with("!commit "), "{answers:?}"),
            }
        }
        assert_eq!(serve(&mut handler, [hit(1), hit(4)]), ["1 0", "4 1"], "{cut:?}");
    }
}

/// An insert into the usual table. A row with the same `id` may already exist.
fn keyed() -> Job {
    let mut job = insert();
    if let Action::Insert { on_conflict, .. } = &mut job.action {
        *on_conflict = OnConflict::Nothing(vec!["id".to_owned()]);
    }
    job
}

#[test]
fn a_key_is_found_as_its_column_stores_it() {
    let place = Place::postgres();
    for (of, value) in [
        ("numeric(10,2)", "1.0"),
        ("timestamp(0)", "2026-01-01 10:00:00.0"),
        ("timestamp(3)", "2026-01-01 10:00:00.120000"),
        ("timestamptz(0)", "2026-01-01 11:00:00+01"),
        ("time(0)", "10:00"),
        ("interval(0)", "1.6 s"),
        ("varchar(3)", "ab "),
        ("char(3)", "a"),
        ("numeric(10,2)[]", "{1.005}"),
    ] {
        place.run(&format!("create table kinds (id {of} primary key, v integer)"));
        let mut job =
            Job { ack: "ok".to_owned(), ..Job::new(Action::insert("kinds", ["id", "v"])) };
        if let Action::Insert { on_conflict, .. } = &mut job.action {
            *on_conflict = OnConflict::Nothing(vec!["id".to_owned()]);
        }
        let mut handler = place.handler(job);
        let row = || format!(r#"{{"id":"{value}","v":1}}"#);
        assert_eq!(serve(&mut handler, [row()]), ["ok"], "{of}");
        assert_eq!(serve(&mut handler, [row(), row()]), ["ok"; 2], "{of}");
        assert_eq!(place.run("select count(*) from kinds"), ["1"], "{of}");
        place.run("drop table kinds");
    }
}

#[test]
fn a_key_without_a_value_is_found_where_such_keys_are_equal() {
    let place = Place::postgres();
    place.run(
        "create table hits (id bigint, path varchar(20), status integer, \
         unique nulls not distinct (id))",
    );
    let row = || r#"{"id":null,"path":"/","status":1}"#;
    let mut handler = place.handler(keyed());
    assert_eq!(serve(&mut handler, [row()]), ["ok "]);
    assert_eq!(serve(&mut handler, [row().to_owned(), hit(1), hit(1)]), ["ok ", "ok 1", "ok 1"]);
    assert_eq!(place.run("select count(*) from hits"), ["2"]);
}

fn rows_are_not_sent_again_past_a_trigger_that_may_change_their_key(place: &Place) {
    place.with_hits().run("create sequence numbers");
    for change in ["new.id + 100", "nextval"] {
        place.run(&match (place.is_postgres(), change) {
            (true, "nextval") => trigger("nextval('numbers')"),
            (true, change) => trigger(change),
            (false, "nextval") => mariadb_trigger("nextval(numbers)"),
            (false, change) => mariadb_trigger(change),
        });
        place.run("delete from hits");
        let proxy = Proxy::to(place.port());
        let mut handler = place.handler_by(&proxy, keyed());
        proxy.cut(Cut::AfterCommit);
        let answers = serve(&mut handler, [hit(1), hit(2)]);
        assert_eq!(proxy.cuts(), 1);
        assert!(answers.iter().all(|it| it.starts_with("!commit ")), "{change}: {answers:?}");
        assert_eq!(place.run("select count(*) from hits"), ["2"], "{change}");
    }
}

fn trigger(change: &str) -> String {
    format!(
        "create or replace function f() returns trigger language plpgsql as $$ begin \
         new.id = {change}; return new; end $$; \
         create or replace trigger t before insert on hits for each row execute function f()"
    )
}

fn mariadb_trigger(change: &str) -> String {
    format!("create or replace trigger t before insert on hits for each row set new.id = {change}")
}

/// A statement-level trigger, which changes no row, may still reject a second attempt.
#[test]
fn a_row_that_may_be_stored_is_never_refused() {
    let place = Place::postgres();
    place.with_hits().run(
        "create sequence tries; \
         create function f() returns trigger language plpgsql as $$ begin \
         if nextval('tries') > 1 then raise exception 'unlucky'; end if; return null; end $$; \
         create trigger t before insert on hits for each statement execute function f()",
    );
    let job = Job { dead: Some("dead".to_owned()), ..keyed() };
    for cut in [Cut::BeforeCommit, Cut::AfterCommit] {
        place.run("delete from hits; alter sequence tries restart");
        let proxy = Proxy::to(place.port());
        let mut handler = place.handler_by(&proxy, job.clone());
        proxy.cut(cut);
        let answers = serve(&mut handler, [hit(1), hit(2)]);
        assert_eq!(proxy.cuts(), 1);
        assert!(answers.iter().all(|it| it.starts_with("!commit ")), "{cut:?}: {answers:?}");
        let stored = if cut == Cut::AfterCommit { "2" } else { "0" };
        assert_eq!(place.run("select count(*) from hits"), [stored], "{cut:?}");
        assert_eq!(place.run("select count(*) from dead"), ["0"], "{cut:?}");
    }
}
