//! Batches that cannot be stored, and waits that can be stopped.

use std::thread;
use std::time::Duration;

use database::{Action, Host, Job, OnConflict, Server, Tls};
use exchange::{Factory, Stop};

use crate::place::{Place, Session, batch, hit, insert, options_of, serve, serve_until, statement};
use crate::server::{self, Kind, eventually};

crate::suite!(
    whoever_waits_for_a_lock_can_be_stopped,
    a_batch_that_nobody_wants_any_more_is_not_stored,
    a_table_that_vanishes_fails_the_batch_and_is_no_fault_of_the_rows,
);

/// Starts a session that stores row 1 and does not commit. It sleeps when it holds the lock.
fn holder(place: &Place) -> Session {
    asleep(place, place.session("begin; insert into hits values (1, '/held', 0)"))
}

/// Returns the session when it sleeps.
fn asleep(place: &Place, session: Session) -> Session {
    let asleep = match place {
        it if it.is_sqlite() => return session,
        it if it.is_postgres() => {
            "select count(*) from pg_stat_activity \
             where datname = current_database() and wait_event = 'PgSleep'"
        }
        // Not `innodb_trx`: it shows no new data to clients that read it more than ten times a second.
        _ => {
            "select count(*) from information_schema.processlist \
             where db = database() and id <> connection_id() and info like 'select sleep(%'"
        }
    };
    eventually("the other session holds its lock", || place.run(asleep) == ["1"]);
    session
}

/// The only lock of SQLite covers all rows.
#[test]
fn sqlite_a_lock_that_is_held_too_long_fails_the_batch_and_stores_nothing() {
    let place = Place::sqlite();
    place.with_hits();
    let mut handler = place.handler(Job { lock_timeout: Duration::from_millis(100), ..insert() });
    let session = holder(&place);
    let answers = serve(&mut handler, [hit(2), hit(1)]);
    assert!(answers.iter().all(|it| it.starts_with("!database ")), "{answers:?}");
    drop(session);
    assert_eq!(serve(&mut handler, [hit(1)]), ["ok 1"]);
    assert_eq!(place.hits(), ["1|/1|200"]);
}

mod on_servers {
    crate::suite_of_servers!(
        a_table_that_is_locked_while_a_connection_is_opened_is_waited_for,
        a_row_that_is_locked_too_long_fails_alone,
        a_table_that_is_locked_too_long_fails_the_batch,
        a_batch_that_takes_longer_than_a_statement_may_is_stored_in_parts,
    );
    use super::{
        a_batch_that_takes_longer_than_a_statement_may_is_stored_in_parts,
        a_row_that_is_locked_too_long_fails_alone, a_table_that_is_locked_too_long_fails_the_batch,
        a_table_that_is_locked_while_a_connection_is_opened_is_waited_for,
    };
}

fn a_row_that_is_locked_too_long_fails_alone(place: &Place) {
    place.with_hits();
    let sql = "insert into hits (id, path, status) values (:id, :path, :status)";
    let mut keyed = insert();
    if let Action::Insert { on_conflict, .. } = &mut keyed.action {
        *on_conflict = OnConflict::Nothing(vec!["id".to_owned()]);
    }
    for job in [insert(), statement(sql), keyed] {
        place.run("delete from hits");
        let mut handler = place.handler(Job { lock_timeout: Duration::from_millis(1000), ..job });
        let session = holder(place);
        for first in [1, 100] {
            let ids = (first..first + 20).chain([1]).chain(first + 20..first + 40);
            let ids: Vec<usize> = ids.collect();
            let answers = serve(&mut handler, ids.iter().map(|id| hit(*id)));
            for (id, answer) in ids.iter().zip(&answers) {
                match id {
                    1 => assert!(answer.starts_with("!database "), "{answers:?}"),
                    _ => assert_eq!(*answer, format!("ok {id}"), "{answers:?}"),
                }
            }
        }
        drop(session);
        // The next rows wait as long as before.
        assert_eq!(serve(&mut handler, [hit(1)]), ["ok 1"]);
        assert_eq!(place.run("select count(*) from hits"), ["80"]);
    }
}

fn a_table_that_is_locked_too_long_fails_the_batch(place: &Place) {
    place.with_hits();
    let mut handler = place.handler(Job { lock_timeout: Duration::from_millis(1000), ..insert() });
    let lock = match place.is_postgres() {
        true => "begin; lock table hits in exclusive mode",
        false => "lock tables hits write",
    };
    let session = asleep(place, place.session(lock));
    let answers = serve(&mut handler, (0..300).map(hit));
    assert!(answers.iter().all(|it| it.starts_with("!database ")), "{answers:?}");
    drop(session);
    assert_eq!(serve(&mut handler, [hit(1)]), ["ok 1"]);
    assert_eq!(place.hits(), ["1|/1|200"]);
}

/// Statements may take half a second. A statement that stores more than 60 rows takes longer, and so does one
/// particular row alone.
fn a_batch_that_takes_longer_than_a_statement_may_is_stored_in_parts(place: &Place) {
    place.with_hits();
    let Place::Server(server, name) = place else { unreachable!("it is a server") };
    let mut way = place.login();
    if place.is_postgres() {
        place.run(&format!(
            "alter database {name} set statement_timeout = '500ms'; \
             create function f() returns trigger language plpgsql as $$ begin \
             if (select count(*) > 60 or bool_or(status = 13) from new_rows) then \
             perform pg_sleep(3600); end if; return null; end $$; \
             create trigger t after insert on hits referencing new table as new_rows \
             for each statement execute function f()"
        ));
    } else {
        // The time is the same for all rows of a statement.
        place.run(
            "create trigger t before insert on hits for each row begin \
             if @at <=> now(6) then set @n = @n + 1; else set @n = 1, @at = now(6); end if; \
             if @n > 60 or new.status = 13 then do sleep(3600); end if; end",
        );
        for host in ["localhost", "127.0.0.1"] {
            place.run(&format!("create user {name}@'{host}' with max_statement_time 0.5"));
            place.run(&format!("grant all on {name}.* to {name}@'{host}'"));
        }
        way.user.clone_from(name);
    }
    let mut handler = options_of(server.kind, way, insert()).unwrap().open().unwrap();
    let expected: Vec<String> = (0..100).map(|id| format!("ok {id}")).collect();
    assert_eq!(serve(&mut handler, (0..100).map(hit)), expected);
    let slow = hit(101).replace("200", "13");
    let answers = serve(&mut handler, [hit(100), slow, hit(102), hit(103)]);
    assert!(answers[1].starts_with("!database "), "{answers:?}");
    assert_eq!([&*answers[0], &*answers[2], &*answers[3]], ["ok 100", "ok 102", "ok 103"]);
    assert_eq!(place.run("select count(*) from hits"), ["103"]);
}

fn whoever_waits_for_a_lock_can_be_stopped(place: &Place) {
    place.with_hits();
    let mut handler = place.handler(Job { lock_timeout: Duration::from_secs(3600), ..insert() });
    let session = holder(place);
    let stop = Stop::default();
    let stopper = thread::spawn({
        let stop = stop.clone();
        move || stop.request()
    });
    let answers = serve_until(handler.as_mut(), &batch([hit(2), hit(1)]), &stop);
    stopper.join().unwrap();
    assert!(answers.iter().all(|it| it.starts_with("!database stopped")), "{answers:?}");
    drop(session);
    assert_eq!(serve(&mut handler, [hit(1)]), ["ok 1"]);
    assert_eq!(place.hits(), ["1|/1|200"]);
}

fn a_batch_that_nobody_wants_any_more_is_not_stored(place: &Place) {
    let mut handler = place.with_hits().handler(insert());
    let stop = Stop::default();
    stop.request();
    let answers = serve_until(handler.as_mut(), &batch([hit(1), hit(2)]), &stop);
    assert_eq!(answers, ["!database stopped before the commit"; 2]);
    assert_eq!(serve(&mut handler, [hit(3)]), ["ok 3"]);
    assert_eq!(place.hits(), ["3|/3|200"]);
}

fn a_table_that_vanishes_fails_the_batch_and_is_no_fault_of_the_rows(place: &Place) {
    place.with_hits();
    let sql = "insert into hits (id, path, status) values (:id, :path, :status)";
    for job in [insert(), statement(sql)] {
        let mut handler = place.handler(job);
        place.run("drop table hits");
        let answers = serve(&mut handler, [hit(1), hit(2)]);
        assert!(answers.iter().all(|it| it.starts_with("!database ")), "{answers:?}");
        place.with_hits();
        assert_eq!(serve(&mut handler, [hit(1)]), ["ok 1"]);
    }
}

fn a_table_that_is_locked_while_a_connection_is_opened_is_waited_for(place: &Place) {
    place.with_hits();
    let lock = match place.is_postgres() {
        true => "begin; lock table hits in access exclusive mode",
        false => "lock tables hits write",
    };
    let session = asleep(place, place.session(lock));
    let job = Job { lock_timeout: Duration::from_millis(10), ..insert() };
    let error = place.options(job).unwrap().check().unwrap_err();
    assert!(error.is_for_now(), "{error}");
    drop(session);
}

#[test]
fn rows_whose_commit_waits_too_long_for_a_backup_are_not_stored() {
    // A separate server, because the backup blocks all its clients.
    let server = server::Server::start(Kind::Mariadb, &[]);
    server.database("d");
    server.run("d", "create table hits (id bigint, path text, status integer)");
    let login = Server {
        host: Host::Internet("127.0.0.1".to_owned(), server.port),
        user: "root".to_owned(),
        password: None,
        database: "d".to_owned(),
        tls: Tls::Off,
        connect_timeout: Duration::from_secs(10),
    };
    let job = Job { lock_timeout: Duration::ZERO, ..insert() };
    let mut handler = options_of(Kind::Mariadb, login, job).unwrap().open().unwrap();
    assert_eq!(serve(&mut handler, [hit(1)]), ["ok 1"]);
    let stages =
        ["start", "flush", "block_ddl", "block_commit"].map(|it| format!("backup stage {it}; "));
    let mut backup = server.session("d", &format!("{}select sleep(3600)", stages.concat()));
    let waiting = "select id from information_schema.processlist where info = 'select sleep(3600)'";
    eventually("the backup holds its lock", || server.run("d", waiting).len() == 1);
    let commits = || server.run("d", "show global status like 'Com_commit'");
    let before = commits();
    let answers = serve(&mut handler, (2..9).map(hit));
    for answer in &answers {
        assert!(answer.starts_with("!database ") && answer.ends_with("(1205)"), "{answers:?}");
    }
    // The number of rows does not matter: none is tried alone.
    let number = |lines: &[String]| lines[0].rsplit('|').next().unwrap().parse::<u64>().unwrap();
    assert_eq!(number(&commits()) - number(&before), 1);
    server.run("d", &format!("kill {}", server.run("d", waiting)[0]));
    backup.wait().unwrap();
    assert_eq!(serve(&mut handler, [hit(2)]), ["ok 2"]);
    assert_eq!(server.run("d", "select id from hits order by id"), ["1", "2"]);
}
