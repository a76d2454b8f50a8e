//! Errors that an operator receives at startup.

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use database::sqlite::{SqliteOptions, factory};
use database::{Action, DatabaseError, Job, OnConflict};
use exchange::{Factory, HandlerError};

const CREATE: &str = "create table if not exists hits (id integer primary key, path text)";

fn insert(table: &str, columns: &[&str]) -> Action {
    Action::insert(table, columns.iter().copied())
}

fn options(path: &Path, action: Action, create: Option<&str>) -> SqliteOptions {
    SqliteOptions {
        path: path.to_owned(),
        job: Job {
            create: create.map(str::to_owned),
            lock_timeout: Duration::ZERO,
            ..Job::new(action)
        },
    }
}

fn checked(options: SqliteOptions) -> Result<(), DatabaseError> {
    factory(options)?.check()
}

fn told(options: SqliteOptions) -> String {
    checked(options).expect_err("it must be refused").to_string()
}

#[test]
fn create_makes_the_file_and_the_table_once_and_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hits.db");
    let options = options(&path, insert("hits", &["id", "PATH"]), Some(CREATE));
    assert_eq!(checked(options.clone()), Ok(()));
    assert_eq!(checked(options), Ok(()));
}

#[test]
fn commands_beside_the_daemon_make_no_file_and_say_that_there_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hits.db");
    let mut options = options(&path, insert("hits", &["id"]), Some(CREATE));
    options.job.dead = Some("dead".to_owned());
    let database = factory(options).unwrap();
    let absent = format!("`{}` does not exist; the daemon makes it when it starts", path.display());
    let doubts = database.doubts().unwrap();
    assert_eq!(doubts, [format!("{absent}; until then nothing can be checked there")]);
    assert_eq!(database.letters().unwrap_err().to_string(), absent);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    database.check().unwrap();
    assert_eq!(database.doubts(), Ok(Vec::new()));
    assert_eq!(database.letters().map(drop), Ok(()));
}

#[test]
fn a_file_that_the_daemon_cannot_make_is_an_error_before_it_starts() {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("no/hits.db");
    let missing = factory(options(&path, insert("hits", &["id"]), Some(CREATE))).unwrap();
    let error = missing.doubts().unwrap_err().to_string();
    assert!(error.contains("its directory: No such file or directory"), "{error}");
    let shared = folder.path().join("shared");
    std::fs::create_dir(&shared).unwrap();
    set_permissions(&shared, Permissions::from_mode(0o1777)).unwrap();
    let path = shared.join("hits.db");
    let open = factory(options(&path, insert("hits", &["id"]), Some(CREATE))).unwrap();
    let error = open.doubts().unwrap_err().to_string();
    assert!(error.contains("(mode 1777): use a directory that only this user"), "{error}");
}

/// Otherwise a new row removes an acknowledged one that has the same value in another column.
#[test]
fn a_table_that_replaces_rows_keeps_none_and_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hits.db");
    let create =
        "create table if not exists hits (id integer primary key, u unique on conflict replace)";
    let insert = insert("hits", &["id", "u"]);
    let plain = factory(options(&path, insert.clone(), Some(create))).unwrap();
    plain.check().unwrap();
    let doubts = plain.doubts().unwrap();
    assert!(doubts.len() == 1 && doubts[0].contains("`on conflict replace`"), "{doubts:?}");
    let Action::Insert { table, columns, .. } = insert else { unreachable!() };
    let on_conflict = OnConflict::Nothing(vec!["id".to_owned()]);
    let keeping = Action::Insert { table, columns, on_conflict };
    let text = told(options(&path, keeping, Some(create)));
    assert!(text.contains("`on conflict replace`") && text.ends_with("of table `hits`"), "{text}");
}

#[test]
fn a_path_is_only_ever_a_path() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["file:x?mode=memory", "a b'\"%20#", "-", ":memory:"] {
        let path = folder.path().join(name);
        assert_eq!(checked(options(&path, insert("hits", &["id"]), Some(CREATE))), Ok(()));
        assert!(path.is_file(), "{name}");
    }
    for path in ["", ":memory:"] {
        let text = told(options(Path::new(path), insert("hits", &["id"]), Some(CREATE)));
        assert_eq!(text, format!("`{path}` is not a file: a database needs a path"));
    }
}

#[test]
fn a_missing_file_is_not_made_without_create() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hits.db");
    let text = told(options(&path, insert("hits", &["id"]), None));
    assert!(
        text.ends_with("does not exist; `create = \"create table if not exists …\"` would make it")
    );
    assert!(!path.exists());
}

#[test]
fn what_cannot_be_opened_is_told_with_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none/hits.db");
    let text = told(options(&path, insert("hits", &["id"]), Some(CREATE)));
    assert!(
        text.starts_with(&format!("cannot open `{}`: unable to open", path.display())),
        "{text}"
    );
    let text = told(options(folder.path(), insert("hits", &["id"]), Some(CREATE)));
    assert!(text.starts_with("cannot open"), "{text}");

    let path = folder.path().join("text.db");
    std::fs::write(&path, "this is a text and no database at all".repeat(100)).unwrap();
    let text = told(options(&path, insert("hits", &["id"]), Some(CREATE)));
    assert_eq!(text, format!("cannot open `{}`: file is not a database", path.display()));
}

/// Other users could replace the file, or create its log, between the check of the path and its opening.
#[test]
fn a_file_where_others_can_make_files_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hits.db");
    let options = options(&path, insert("hits", &["id"]), Some(CREATE));
    for mode in [0o777, 0o1777] {
        set_permissions(folder.path(), Permissions::from_mode(mode)).unwrap();
        let text = told(options.clone());
        assert!(text.starts_with(&format!("cannot open `{}`: `", path.display())), "{text}");
        assert!(text.contains("use a directory that only this user can change"), "{text}");
        assert!(!path.exists());
    }
    set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    assert_eq!(checked(options.clone()), Ok(()));
    // A link that no other user can have created leads to the file.
    let link = folder.path().join("link.db");
    std::os::unix::fs::symlink("hits.db", &link).unwrap();
    assert_eq!(checked(SqliteOptions { path: link, ..options }), Ok(()));
}

#[test]
fn a_missing_table_or_column_is_named_with_those_that_exist() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hits.db");
    let told =
        |table, columns: &[&str], create| told(options(&path, insert(table, columns), create));
    assert_eq!(told("hits", &["id"], Some("")), "no table `hits`; the database has none");
    assert_eq!(told("hit", &["id"], Some(CREATE)), "no table `hit`; the database has `hits`");
    assert_eq!(
        told("hits", &["id", "pfad"], None),
        "no column `pfad` in table `hits`; it has `id`, `path`"
    );
}

#[test]
fn a_create_that_fails_is_told_in_the_words_of_the_database() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hits.db");
    let text = told(options(&path, insert("hits", &["id"]), Some("create tabel hits")));
    assert_eq!(text, "`create` failed: near \"tabel\": syntax error");
}

#[test]
fn a_statement_is_checked_against_the_real_tables() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hits.db");
    let told = |sql: &str| told(options(&path, Action::Statement(sql.to_owned()), Some(CREATE)));
    assert_eq!(told("insert into hit values (:a)"), "`statement`: no such table: hit");
    assert_eq!(
        told("insert into hits (pfad) values (:a)"),
        "`statement`: table hits has no column named pfad"
    );
    assert_eq!(
        told("insert into hits values (?, :a)"),
        "`statement`: parameter 1 has no name; write it as `:name`"
    );
    assert_eq!(
        told("insert into hits values (:a, :b); delete from hits"),
        "`statement`: more than one statement; a row runs one"
    );
    assert_eq!(told("with x as (select 1) select * from x"), "`statement`: it does not write");
}

#[test]
fn a_handler_that_cannot_be_opened_says_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hits.db");
    let factory = factory(options(&path, insert("hits", &["id"]), None)).unwrap();
    let error = factory.check().unwrap_err();
    match factory.open() {
        Err(HandlerError::Open(text)) => assert_eq!(*text, *error.to_string()),
        _ => panic!("there is no file"),
    }
}
