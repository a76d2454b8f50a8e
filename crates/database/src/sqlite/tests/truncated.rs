//! Tests in which the write-ahead log or its index is truncated while a connection has it open.

use std::fs;
use std::path::Path;

use super::*;

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn cut(path: &Path, bytes: u64) {
    fs::OpenOptions::new().write(true).open(path).unwrap().set_len(bytes).unwrap();
}

/// Copies the files without closing a connection: the state that a killed process leaves.
fn left_by_a_kill(place: &Place) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.db");
    for suffix in ["", "-wal"] {
        fs::copy(beside(&place.path(), suffix), beside(&copy, suffix)).unwrap();
    }
    (folder, copy)
}

fn query_handler(place: &Place, sql: &str) -> crate::reading::QueryHandler<SqliteDriver> {
    let mut options = place.options.clone();
    options.job.action = Action::Query(crate::Query::new(sql));
    let setup = setup(options).unwrap();
    crate::reading::QueryHandler::open(setup, crate::Query::new(sql)).unwrap()
}

fn ask(handler: &mut crate::reading::QueryHandler<SqliteDriver>) -> String {
    let mut answers = Answers::default();
    handler.serve(&batch(["{}"]), &mut answers, &Stop::default());
    shown(answers.0[0].as_ref().unwrap())
}

#[test]
fn rows_that_are_acknowledged_after_a_truncation_survive_a_kill() {
    for part in [0, 32, 1000] {
        let place = Place::new();
        let mut handler = place.handler();
        for id in 1..=3 {
            assert_eq!(serve(&mut handler, [hit(id)]), [format!("ok {id}")]);
        }
        cut(&beside(&place.path(), "-wal"), part);
        let mut stored = Vec::new();
        for id in 4..=9 {
            match &*serve(&mut handler, [hit(id)])[0] {
                answer if answer == format!("ok {id}") => stored.push(format!("{id} /{id} 200")),
                answer => assert!(answer.starts_with("!database ") && id == 4, "{part}: {answer}"),
            }
        }
        assert_eq!(stored.len(), 5, "{part}: only the first batch fails");
        let (_folder, copy) = left_by_a_kill(&place);
        let found = rows(&copy);
        assert!(stored.iter().all(|row| found.contains(row)), "{part}: {found:?}");
    }
}

#[test]
fn rows_in_the_database_survive_a_truncation_within_a_commit() {
    let place = Place::new();
    let mut handler = place.handler();
    assert_eq!(serve(&mut handler, (1..=50).map(hit)).len(), 50);
    let other = Connection::open(place.path()).unwrap();
    other.query_row("pragma wal_checkpoint(truncate)", [], |_| Ok(())).unwrap();
    drop(other);
    assert_eq!(serve(&mut handler, [hit(51)]), ["ok 51"]);
    let link = handler.connection().slot().as_mut().expect("the connection is open");
    let log = beside(&place.path(), "-wal");
    let cut_log = move || {
        cut(&log, 0);
        false
    };
    link.connection().commit_hook(Some(cut_log)).unwrap();
    assert!(serve(&mut handler, [hit(52)])[0].starts_with("!commit "));
    assert_eq!(serve(&mut handler, [hit(53)]), ["ok 53"]);
    drop(handler);
    let found = place.rows();
    assert_eq!(found.len(), 51, "the 50 of the database and the last: {found:?}");
    let check = "pragma integrity_check";
    let other = Connection::open(place.path()).unwrap();
    assert_eq!(other.query_row(check, [], |row| row.get::<_, String>(0)).unwrap(), "ok");
}

#[test]
fn a_checkpoint_that_truncates_the_log_fails_nothing() {
    let place = Place::new();
    let mut handler = place.handler();
    let other = Connection::open(place.path()).unwrap();
    for mode in ["truncate", "restart", "full", "passive"] {
        for round in 0..5 {
            let id = i64::try_from(place.rows().len()).unwrap() + 1;
            assert_eq!(serve(&mut handler, [hit(id)]), [format!("ok {id}")], "{mode} {round}");
            let sql = format!("pragma wal_checkpoint({mode})");
            other.query_row(&sql, [], |_| Ok(())).unwrap();
            let mut reader = query_handler(&place, "select count(*) as n from hits");
            assert_eq!(ask(&mut reader), format!("[{{\"n\":{id}}}]"));
        }
    }
}

#[test]
fn checkpoints_under_load_fail_nothing() {
    let place = Place::new();
    let mut handler = place.handler();
    let stop = Stop::default();
    let checkpoints = std::thread::spawn({
        let (path, stop) = (place.path(), stop.clone());
        move || {
            let other = Connection::open(path).unwrap();
            while !stop.requested() {
                let _ = other.query_row("pragma wal_checkpoint(truncate)", [], |_| Ok(()));
            }
        }
    });
    for id in 1..=300 {
        // A lock that is held in between is not a failure of the log.
        loop {
            let answer = serve(&mut handler, [hit(id)]).remove(0);
            if !answer.starts_with("!database locked") {
                assert_eq!(answer, format!("ok {id}"));
                break;
            }
        }
    }
    stop.request();
    checkpoints.join().unwrap();
    assert_eq!(place.rows().len(), 300);
}

#[test]
fn the_log_is_checkpointed_when_it_has_grown() {
    let mut place = Place::new();
    place.options.job.create = Some(format!("{CREATE}; pragma wal_autocheckpoint = 10"));
    let mut handler = place.handler();
    for id in 1..=60 {
        assert_eq!(serve(&mut handler, [hit(id)]), [format!("ok {id}")]);
    }
    let frames = fs::metadata(beside(&place.path(), "-wal")).unwrap().len() / 4096;
    assert!(frames < 20, "{frames}");
}

#[test]
fn a_query_in_a_truncated_log_fails_or_reads_what_is_left() {
    let place = Place::new();
    let mut writer = place.handler();
    assert_eq!(serve(&mut writer, [hit(1)]), ["ok 1"]);
    let mut reader = query_handler(&place, "select id from hits");
    assert_eq!(ask(&mut reader), r#"[{"id":1}]"#);
    cut(&beside(&place.path(), "-wal"), 0);
    assert!(ask(&mut reader).starts_with("!database "), "the writer holds the old index");
    assert!(serve(&mut writer, [hit(2)])[0].starts_with("!database "));
    assert_eq!(serve(&mut writer, [hit(3)]), ["ok 3"]);
    assert_eq!(ask(&mut reader), r#"[{"id":3}]"#);
}

#[test]
fn a_truncated_index_fails_one_batch_and_loses_nothing() {
    for bytes in [0, 3, 4096] {
        let place = Place::new();
        let mut handler = place.handler();
        assert_eq!(serve(&mut handler, [hit(1)]), ["ok 1"]);
        cut(&beside(&place.path(), "-shm"), bytes);
        assert!(serve(&mut handler, [hit(2)])[0].starts_with("!database "), "{bytes}");
        assert_eq!(serve(&mut handler, [hit(3)]), ["ok 3"], "{bytes}");
        assert_eq!(place.rows(), ["1 /1 200", "3 /3 200"], "{bytes}");
    }
}

#[test]
fn a_truncated_index_is_not_used_while_another_handler_holds_it() {
    let place = Place::new();
    let (mut one, mut other) = (place.handler(), place.handler());
    assert_eq!(serve(&mut one, [hit(1)]), ["ok 1"]);
    cut(&beside(&place.path(), "-shm"), 0);
    for id in 2..=4 {
        assert!(serve(&mut one, [hit(id)])[0].starts_with("!database "), "{id}");
    }
    assert!(serve(&mut other, [hit(5)])[0].starts_with("!database "));
    assert_eq!(serve(&mut one, [hit(6)]), ["ok 6"]);
    assert_eq!(serve(&mut other, [hit(7)]), ["ok 7"]);
    assert_eq!(place.rows(), ["1 /1 200", "6 /6 200", "7 /7 200"]);
}

#[test]
fn a_query_survives_a_truncated_index() {
    let place = Place::new();
    let mut writer = place.handler();
    assert_eq!(serve(&mut writer, [hit(1)]), ["ok 1"]);
    drop(writer);
    let mut reader = query_handler(&place, "select id from hits");
    assert_eq!(ask(&mut reader), r#"[{"id":1}]"#);
    cut(&beside(&place.path(), "-shm"), 0);
    assert_eq!(ask(&mut reader), r#"[{"id":1}]"#);
}
