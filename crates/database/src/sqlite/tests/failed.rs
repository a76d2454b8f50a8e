use std::thread;

use super::*;

/// Longer than any test may take. With this limit, only another event can end the wait.
const FOREVER: Duration = Duration::from_secs(3600);

/// Another connection that holds the lock for writing.
fn holder(place: &Place) -> Connection {
    let holder = Connection::open(place.path()).unwrap();
    holder.execute_batch("begin immediate; insert into hits values (99, 'held', 0)").unwrap();
    holder
}

#[test]
fn a_lock_that_is_held_too_long_fails_the_batch_and_stores_nothing() {
    for wait in [Duration::ZERO, Duration::from_millis(60)] {
        let mut place = Place::new();
        place.options.job.lock_timeout = wait;
        let mut handler = place.handler();
        let holder = holder(&place);
        let text = format!("!database locked by another connection for more than {wait:?}");
        assert_eq!(serve(&mut handler, [hit(1), hit(2)]), [&*text, &*text]);
        holder.execute_batch("rollback").unwrap();
        assert_eq!(place.rows(), [""; 0]);
        assert_eq!(serve(&mut handler, [hit(1)]), ["ok 1"], "the same connection goes on");
    }
}

#[test]
fn a_lock_that_is_given_back_in_time_costs_only_the_waiting() {
    let mut place = Place::new();
    place.options.job.lock_timeout = FOREVER;
    let mut handler = place.handler();
    let holder = holder(&place);
    let release = thread::spawn(move || holder.execute_batch("commit").unwrap());
    assert_eq!(serve(&mut handler, [hit(1)]), ["ok 1"]);
    release.join().unwrap();
    assert_eq!(place.rows(), ["1 /1 200", "99 held 0"]);
}

#[test]
fn who_waits_for_a_lock_can_be_stopped() {
    let mut place = Place::new();
    place.options.job.lock_timeout = FOREVER;
    let mut handler = place.handler();
    let holder = holder(&place);
    let stop = Stop::default();
    let stopper = thread::spawn({
        let stop = stop.clone();
        move || stop.request()
    });
    let answers = serve_until(&mut handler, &batch([hit(1)]), &stop);
    assert_eq!(answers, ["!database stopped while another connection held the lock"]);
    stopper.join().unwrap();
    drop(holder);
    assert_eq!(serve(&mut handler, [hit(1)]), ["ok 1"]);
}

#[test]
fn a_batch_that_nobody_wants_any_more_is_not_stored() {
    let place = Place::new();
    let mut handler = place.handler();
    let stop = Stop::default();
    stop.request();
    let answers = serve_until(&mut handler, &batch([hit(1), hit(2)]), &stop);
    assert_eq!(answers, ["!database stopped before the commit"; 2]);
    assert_eq!(place.rows(), [""; 0]);
}

#[test]
fn a_statement_without_end_can_be_stopped() {
    let mut place = Place::statement(
        "insert into hits with recursive n (x) as (select 1 union all select x + 1 from n)
         select :id, :path, :status from n where :id < 10 or x < 0 limit iif(:id < 10, 1, -1)",
    );
    place.options.job.lock_timeout = FOREVER;
    let mut handler = place.handler();
    let stop = Stop::default();
    let looker = Connection::open(place.path()).unwrap();
    looker.busy_timeout(Duration::ZERO).unwrap();
    let stopper = thread::spawn({
        let stop = stop.clone();
        move || {
            // When the lock is taken, the statement runs.
            while looker.execute_batch("begin immediate; rollback").is_ok() {
                thread::yield_now();
            }
            stop.request();
        }
    });
    let answers = serve_until(&mut handler, &batch([hit(10), hit(11)]), &stop);
    stopper.join().unwrap();
    for answer in answers {
        // The thread may see the lock a moment before the statement starts.
        let expected =
            ["!database stopped before the commit", "!database stopped while a statement ran (9)"];
        assert!(expected.contains(&&*answer), "{answer}");
    }
    assert_eq!(serve(&mut handler, [hit(1)]), ["ok 1"]);
    assert_eq!(place.rows(), ["1 /1 200"]);
}

fn pragma(handler: &mut SqliteHandler, sql: &str) {
    let link = handler.connection().slot().as_mut().expect("the connection is open");
    let mut statement = link.connection().prepare(sql).unwrap();
    let mut rows = statement.query([]).unwrap();
    while rows.next().unwrap().is_some() {}
}

#[test]
fn a_file_that_cannot_be_written_fails_the_batch_and_is_opened_anew() {
    let place = Place::new();
    let mut handler = place.handler();
    // SQLite reports the same for a file that has become read-only; root may write any file.
    pragma(&mut handler, "pragma query_only = on");
    let text = "!database attempt to write a readonly database (8)";
    assert_eq!(serve(&mut handler, [hit(1), hit(2)]), [text, text]);
    assert!(handler.connection().is_spoiled());
    assert_eq!(serve(&mut handler, [hit(1)]), ["ok 1"]);
    assert_eq!(place.rows(), ["1 /1 200"]);
}

#[test]
fn a_full_disk_fails_the_rows_that_do_not_fit_and_smaller_ones_are_stored() {
    let place = Place::new();
    let mut handler = place.handler();
    assert_eq!(serve(&mut handler, [hit(1)]), ["ok 1"]);
    // Reported as SQLITE_FULL, like a full disk.
    pragma(&mut handler, "pragma max_page_count = 20");
    let large = |id| format!(r#"{{"id":{id},"path":"{}","status":0}}"#, "x".repeat(100_000));
    let bodies: Vec<_> = (2..9).map(large).chain(["x".to_owned(), hit(9)]).collect();
    let answers = serve(&mut handler, bodies);
    assert_eq!(answers[..7], ["!database database or disk is full (13)"; 7]);
    assert!(answers[7].starts_with("!record "), "it was refused before: {}", answers[7]);
    assert_eq!(answers[8], "ok 9");
    assert_eq!(place.rows(), ["1 /1 200", "9 /9 200"]);
    assert_eq!(serve(&mut handler, [hit(2)]), ["ok 2"]);
}

#[test]
fn a_disk_that_takes_no_row_at_all_fails_the_batch_whole() {
    let place = Place::new();
    let mut handler = place.handler();
    pragma(&mut handler, "pragma max_page_count = 20");
    let large = |id| format!(r#"{{"id":{id},"path":"{}","status":0}}"#, "x".repeat(100_000));
    let answers = serve(&mut handler, (0..200).map(large));
    assert_eq!(answers, ["!database database or disk is full (13)"; 200]);
    assert_eq!(place.rows(), [""; 0]);
    assert_eq!(serve(&mut handler, [hit(2)]), ["ok 2"]);
}

#[test]
fn a_row_too_many_in_a_poisoned_batch_fails_alone() {
    let place = Place::new();
    let mut handler = place.handler();
    pragma(&mut handler, "pragma max_page_count = 20");
    let poison = r#"{"id":1,"path":null,"status":0}"#.to_owned();
    let large = format!(r#"{{"id":3,"path":"{}","status":0}}"#, "x".repeat(100_000));
    let answers = serve(&mut handler, [hit(2), poison, large]);
    assert_eq!(answers[0], "ok 2");
    assert!(answers[1].starts_with("!row "), "{answers:?}");
    assert_eq!(answers[2], "!database database or disk is full (13)");
    assert_eq!(place.rows(), ["2 /2 200"]);
}

#[test]
fn a_table_that_vanishes_fails_the_batch_and_is_no_fault_of_the_rows() {
    let place = Place::new();
    let mut handler = place.handler();
    let other = Connection::open(place.path()).unwrap();
    other.execute_batch("drop table hits").unwrap();
    let text = "!database no such table: hits (1)";
    assert_eq!(serve(&mut handler, [hit(1), hit(2)]), [text, text]);
    assert_eq!(serve(&mut handler, [hit(1)]), [text], "also when it is known before");
    other.execute_batch(CREATE).unwrap();
    assert_eq!(serve(&mut handler, [hit(1)]), ["ok 1"]);
}

#[test]
fn a_file_that_is_no_longer_a_database_fails_each_batch_until_it_is_mended() {
    let place = Place::new();
    let mut handler = place.handler();
    *handler.connection().slot() = None;
    for part in ["-wal", "-shm", ""] {
        let mut path = place.path().into_os_string();
        path.push(part);
        let _ = std::fs::remove_file(path);
    }
    std::fs::write(place.path(), "these are not the pages of a database ".repeat(200)).unwrap();
    let answers = serve(&mut handler, [hit(1), "x".to_owned()]);
    assert_eq!(answers[0], "!database the database cannot be opened");
    assert!(answers[1].starts_with("!record "), "it needs no database: {answers:?}");
    std::fs::remove_file(place.path()).unwrap();
    assert_eq!(serve(&mut handler, [hit(1)]), ["ok 1"]);
}
