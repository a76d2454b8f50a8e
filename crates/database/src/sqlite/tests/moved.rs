//! Tests in which the file is removed, replaced or truncated while a connection has it open.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::*;

/// A table that only the test creates, so that a missing file stays missing.
fn without_create() -> Place {
    let mut place = Place::new();
    let made = Connection::open(place.path()).unwrap();
    made.execute_batch(CREATE).unwrap();
    place.options.job.create = None;
    place
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn remove(path: &Path) {
    for suffix in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(beside(path, suffix));
    }
}

/// Moves another database with the same table to `path`, next to the log of the old one.
fn replace_without_log(path: &Path) {
    let new = beside(path, ".new");
    let made = Connection::open(&new).unwrap();
    made.execute_batch(CREATE).unwrap();
    drop(made);
    fs::rename(new, path).unwrap();
}

/// The same, and removes the old log.
fn replace(path: &Path) {
    replace_without_log(path);
    fs::remove_file(beside(path, "-wal")).unwrap();
    fs::remove_file(beside(path, "-shm")).unwrap();
}

fn folder_replaced(path: &Path) {
    let folder = path.parent().unwrap();
    fs::rename(folder, beside(folder, ".old")).unwrap();
    fs::create_dir(folder).unwrap();
}

fn truncated(path: &Path) {
    fs::OpenOptions::new().write(true).open(path).unwrap().set_len(0).unwrap();
}

fn cut(path: &Path, part: u64) {
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(file.metadata().unwrap().len() / part).unwrap();
}

/// A change of the file between two batches.
type Change = fn(&Path);

const CHANGES: [(&str, Change); 10] = [
    ("its log truncated", |path| truncated(&beside(path, "-wal"))),
    ("its log cut to a half", |path| cut(&beside(path, "-wal"), 2)),
    ("removed", remove),
    ("only the file removed", |path| fs::remove_file(path).unwrap()),
    ("replaced", replace),
    ("replaced without its log", replace_without_log),
    ("truncated", truncated),
    ("its folder replaced", folder_replaced),
    ("its log removed", |path| fs::remove_file(beside(path, "-wal")).unwrap()),
    ("its index removed", |path| fs::remove_file(beside(path, "-shm")).unwrap()),
];

/// Moves the file into a subdirectory of the test's directory.
fn in_a_folder(mut place: Place) -> Place {
    let folder = place.path().with_file_name("folder");
    fs::create_dir(&folder).unwrap();
    let path = folder.join("hits.db");
    if place.options.job.create.is_none() {
        fs::rename(place.path(), &path).unwrap();
    }
    place.options.path = path;
    place
}

#[test]
fn no_row_is_acknowledged_in_a_file_that_is_no_longer_at_its_path() {
    for (what, change) in CHANGES {
        let place = in_a_folder(without_create());
        let mut handler = place.handler();
        assert_eq!(serve(&mut handler, [hit(1)]), ["ok 1"], "{what}");
        change(&place.path());
        for answer in serve(&mut handler, [hit(2), hit(3)]) {
            assert!(answer.starts_with("!database "), "{what}: {answer}");
        }
        assert!(handler.connection().is_spoiled(), "{what}");
    }
}

#[test]
fn a_file_that_is_replaced_within_a_commit_leaves_its_rows_unknown() {
    for (what, change) in CHANGES {
        let place = in_a_folder(without_create());
        let mut handler = place.handler();
        assert_eq!(serve(&mut handler, [hit(1)]), ["ok 1"], "{what}");
        let link = handler.connection().slot().as_mut().expect("the connection is open");
        let path = Arc::new(place.path());
        link.connection()
            .commit_hook(Some(move || {
                change(&path);
                false
            }))
            .unwrap();
        for answer in serve(&mut handler, [hit(2), hit(3)]) {
            assert!(answer.starts_with("!commit "), "{what}: {answer}");
        }
        assert!(handler.connection().is_spoiled(), "{what}");
    }
}

#[test]
fn a_replaced_file_is_opened_and_gets_the_next_rows() {
    let place = without_create();
    let mut handler = place.handler();
    assert_eq!(serve(&mut handler, [hit(1)]), ["ok 1"]);
    replace(&place.path());
    let gone = "!database the database file was replaced by another file";
    assert_eq!(serve(&mut handler, [hit(2)]), [gone]);
    assert_eq!(serve(&mut handler, [hit(3)]), ["ok 3"]);
    assert_eq!(place.rows(), ["3 /3 200"]);
}

#[test]
fn the_log_of_a_replaced_file_is_not_applied_to_the_new_one() {
    let place = without_create();
    let mut handler = place.handler();
    assert_eq!(serve(&mut handler, [hit(1)]), ["ok 1"]);
    replace_without_log(&place.path());
    for id in 2..=4 {
        assert!(serve(&mut handler, [hit(id)])[0].starts_with("!database "), "{id}");
    }
    for suffix in ["-wal", "-shm"] {
        fs::rename(beside(&place.path(), suffix), beside(&place.path(), ".old")).unwrap();
    }
    assert_eq!(serve(&mut handler, [hit(5)]), ["ok 5"]);
    assert_eq!(place.rows(), ["5 /5 200"]);
}

#[test]
fn a_file_is_not_made_again_while_the_log_of_the_old_one_is_there() {
    let place = Place::new();
    let mut handler = place.handler();
    assert_eq!(serve(&mut handler, [hit(1)]), ["ok 1"]);
    let (path, old) = (place.path(), beside(&place.path(), ".old"));
    fs::rename(&path, &old).unwrap();
    for id in 2..=3 {
        assert!(serve(&mut handler, [hit(id)])[0].starts_with("!database "), "{id}");
        assert!(beside(&path, "-wal").exists() && !path.exists());
    }
    for suffix in ["-wal", "-shm"] {
        fs::rename(beside(&path, suffix), beside(&old, suffix)).unwrap();
    }
    assert_eq!(serve(&mut handler, [hit(4)]), ["ok 4"]);
    assert_eq!(rows(&old), ["1 /1 200"]);
    assert_eq!(place.rows(), ["4 /4 200"]);
}

#[test]
fn a_file_that_is_moved_away_and_back_is_used_again_with_its_log() {
    for place in [Place::new(), without_create()] {
        let mut handler = place.handler();
        assert_eq!(serve(&mut handler, [hit(1)]), ["ok 1"]);
        let (path, old) = (place.path(), beside(&place.path(), ".old"));
        fs::rename(&path, &old).unwrap();
        for id in 2..=3 {
            assert!(serve(&mut handler, [hit(id)])[0].starts_with("!database "), "{id}");
        }
        fs::rename(&old, &path).unwrap();
        assert_eq!(serve(&mut handler, [hit(4)]), ["ok 4"]);
        assert_eq!(place.rows(), ["1 /1 200", "4 /4 200"]);
    }
}

#[test]
fn a_symbolic_link_to_another_file_counts_as_a_replacement() {
    let mut place = without_create();
    let (link, other) = (beside(&place.path(), ".link"), beside(&place.path(), ".other"));
    Connection::open(&other).unwrap().execute_batch(CREATE).unwrap();
    std::os::unix::fs::symlink(place.path(), &link).unwrap();
    place.options.path = link.clone();
    let mut handler = place.handler();
    assert_eq!(serve(&mut handler, [hit(1)]), ["ok 1"]);
    fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(&other, &link).unwrap();
    assert!(serve(&mut handler, [hit(2)])[0].starts_with("!database "));
    assert_eq!(serve(&mut handler, [hit(3)]), ["ok 3"]);
    assert_eq!(rows(&other), ["3 /3 200"]);
}

#[test]
fn a_removed_file_is_made_again_only_where_create_is_set() {
    let place = without_create();
    let mut handler = place.handler();
    remove(&place.path());
    for id in 1..=2 {
        assert!(serve(&mut handler, [hit(id)])[0].starts_with("!database "));
        assert!(!place.path().exists(), "nothing makes it");
    }
    let place = Place::new();
    let mut handler = place.handler();
    assert_eq!(serve(&mut handler, [hit(1)]), ["ok 1"]);
    remove(&place.path());
    assert!(serve(&mut handler, [hit(2)])[0].starts_with("!database "));
    assert_eq!(serve(&mut handler, [hit(3)]), ["ok 3"]);
    assert_eq!(place.rows(), ["3 /3 200"]);
}

#[test]
fn closing_a_replaced_file_leaves_the_log_of_the_new_one() {
    let place = without_create();
    let mut handler = place.handler();
    assert_eq!(serve(&mut handler, [hit(1)]), ["ok 1"]);
    remove(&place.path());
    let other = Connection::open(place.path()).unwrap();
    other.pragma_update(None, "journal_mode", "wal").unwrap();
    other.execute_batch(CREATE).unwrap();
    other.execute_batch("insert into hits values (7, '/7', 200)").unwrap();
    assert!(serve(&mut handler, [hit(2)])[0].starts_with("!database "));
    assert_eq!(serve(&mut handler, [hit(3)]), ["ok 3"]);
    assert!(beside(&place.path(), "-wal").exists());
    assert_eq!(place.rows(), ["3 /3 200", "7 /7 200"]);
}

#[test]
fn a_row_with_a_key_is_stored_in_the_new_file_after_an_unknown_commit() {
    let mut place = Place::new();
    place.options.job.retry = Duration::from_secs(3600);
    let Action::Insert { on_conflict, .. } = &mut place.options.job.action else { unreachable!() };
    *on_conflict = OnConflict::Nothing(vec!["id".to_owned()]);
    let mut handler = place.handler();
    let link = handler.connection().slot().as_mut().expect("the connection is open");
    let path = Arc::new(place.path());
    link.connection()
        .commit_hook(Some(move || {
            remove(&path);
            false
        }))
        .unwrap();
    assert_eq!(serve(&mut handler, [hit(1), hit(2)]), ["ok 1", "ok 2"]);
    assert_eq!(place.rows(), ["1 /1 200", "2 /2 200"]);
}

#[test]
fn a_row_whose_key_is_made_of_null_is_not_sent_again() {
    let mut place = Place::new();
    place.options.job.retry = Duration::from_secs(3600);
    let Action::Insert { on_conflict, .. } = &mut place.options.job.action else { unreachable!() };
    *on_conflict = OnConflict::Nothing(vec!["id".to_owned()]);
    let mut handler = place.handler();
    let link = handler.connection().slot().as_mut().expect("the connection is open");
    let (path, moved) = (Arc::new(place.path()), beside(&place.path(), ".old"));
    link.connection()
        .commit_hook(Some(move || {
            for suffix in ["", "-wal", "-shm"] {
                let _ = fs::rename(beside(&path, suffix), beside(&moved, suffix));
            }
            false
        }))
        .unwrap();
    let made = r#"{"id":null,"path":"/made","status":200}"#.to_owned();
    let answers = serve(&mut handler, [hit(1), made, hit(3)]);
    assert!(answers[1].starts_with("!commit "), "{answers:?}");
    assert_eq!([&*answers[0], &*answers[2]], ["ok 1", "ok 3"]);
    assert_eq!(place.rows(), ["1 /1 200", "3 /3 200"]);
}

#[test]
fn a_query_reads_the_file_that_is_there() {
    let place = without_create();
    let mut options = place.options.clone();
    options.job.action = Action::Query(crate::Query::new("select id from hits order by id"));
    let mut handler = crate::reading::QueryHandler::open(
        setup(options).unwrap(),
        crate::Query::new("select id from hits order by id"),
    )
    .unwrap();
    let mut ask = || {
        let mut answers = Answers::default();
        handler.serve(&batch(["{}"]), &mut answers, &Stop::default());
        shown(answers.0[0].as_ref().unwrap())
    };
    assert_eq!(ask(), "[]");
    remove(&place.path());
    let other = Connection::open(place.path()).unwrap();
    other.execute_batch(CREATE).unwrap();
    other.execute_batch("insert into hits values (7, '/7', 200)").unwrap();
    drop(other);
    assert_eq!(ask(), r#"[{"id":7}]"#);
}

#[test]
fn a_log_beside_a_missing_database_is_kept_by_connections_that_did_not_see_the_move() {
    let place = Place::new();
    let path = place.path();
    // A log that no process has open, as a killed daemon leaves it.
    let log = beside(&path, "-wal");
    fs::write(&log, b"rows that were acknowledged").unwrap();
    let error = factory(place.options).unwrap().check().unwrap_err().to_string();
    assert!(error.contains("belongs to a database file that was moved away"), "{error}");
    assert_eq!(fs::read(&log).unwrap(), b"rows that were acknowledged");
    assert!(!path.exists(), "no database is made beside it");
}

#[test]
fn another_pool_does_not_use_the_log_of_a_file_that_was_replaced() {
    for is_noticed in [false, true] {
        let place = Place::new();
        let (path, log) = (place.path(), beside(&place.path(), "-wal"));
        let mut first = place.handler();
        assert_eq!(serve(&mut first, [hit(1)]), ["ok 1"]);
        let old = beside(&path, ".old");
        fs::rename(&path, &old).unwrap();
        replace_without_log(&path);
        let bytes = fs::read(&log).unwrap();
        if is_noticed {
            // The connection of this pool is closed, and nothing else of the pool is left.
            assert!(serve(&mut first, [hit(2)])[0].starts_with("!database "));
            drop(first);
            first = Place::new().handler();
        }
        let open = || factory(place.options.clone()).unwrap().check();
        let error = open().unwrap_err().to_string();
        assert!(error.contains("belongs to a database file that was moved away"), "{error}");
        assert_eq!(fs::read(&log).unwrap(), bytes);
        fs::rename(&old, &path).unwrap();
        open().unwrap();
        drop(first);
        let opened = Connection::open(&path).unwrap();
        let ids: i64 = opened.query_row("select id from hits", [], |row| row.get(0)).unwrap();
        assert_eq!(ids, 1, "the row is there with its log");
    }
}

#[test]
fn a_file_with_two_names_is_not_opened() {
    let place = without_create();
    let other = beside(&place.path(), ".other");
    fs::hard_link(place.path(), &other).unwrap();
    let error = factory(place.options.clone()).unwrap().check().unwrap_err().to_string();
    assert!(error.contains("2 names (hard links)") && error.contains("symbolic link"), "{error}");
    fs::remove_file(&other).unwrap();
    let mut handler = place.handler();
    assert_eq!(serve(&mut handler, [hit(1)]), ["ok 1"]);
    assert_eq!(place.rows(), ["1 /1 200"]);
}

/// The log of the moved file is still at its old path, with rows that are only there.
#[test]
fn a_file_that_another_pool_has_open_is_not_opened_at_a_new_path() {
    let (one, two) = (without_create(), without_create());
    let mut handler = one.handler();
    assert_eq!(serve(&mut handler, [hit(1)]), ["ok 1"]);
    let mut other = two.handler();
    assert_eq!(serve(&mut other, [hit(2)]), ["ok 2"]);
    remove(&two.path());
    fs::rename(one.path(), two.path()).unwrap();
    let is_refused = |handler: &mut SqliteHandler, id| {
        let answers = serve(handler, [hit(id)]);
        assert!(answers[0].starts_with("!database "), "{id}: {answers:?}");
    };
    is_refused(&mut other, 3);
    is_refused(&mut other, 4);
    // This closes the connection that had the file open.
    is_refused(&mut handler, 5);
    is_refused(&mut other, 7);
    fs::rename(two.path(), one.path()).unwrap();
    assert_eq!(serve(&mut handler, [hit(6)]), ["ok 6"]);
    assert_eq!(one.rows(), ["1 /1 200", "6 /6 200"]);
}
