//! Errors and doubts that an operator receives at startup.

use database::{About, Action, DatabaseError, Job, OnConflict, Query, Sync};

use crate::place::Place;

crate::suite!(
    a_missing_table_or_column_is_named_with_those_that_exist,
    a_statement_is_checked_against_the_real_tables,
    a_create_that_fails_is_told_in_the_words_of_the_database,
    what_a_column_does_not_take_is_told_before_the_first_row,
    what_a_power_failure_could_take_is_told,
);

fn told(place: &Place, job: Job) -> DatabaseError {
    place.options(job).and_then(|database| database.check()).expect_err("it must be refused")
}

fn a_missing_table_or_column_is_named_with_those_that_exist(place: &Place) {
    place.with_hits();
    let error = told(place, Job::new(Action::insert("hit", ["id"])));
    assert_eq!(error.to_string(), "no table `hit`; the database has `hits`");
    assert_eq!(error.about(), About::Table);
    let error = told(place, Job::new(Action::insert("hits", ["id", "pfad"])));
    let expected = "no column `pfad` in table `hits`; it has `id`, `path`, `status`";
    assert_eq!(error.to_string(), expected);
    assert_eq!(error.about(), About::Column("pfad"));
}

fn a_statement_is_checked_against_the_real_tables(place: &Place) {
    place.with_hits();
    for (sql, word) in [
        ("insert into hit (id) values (:a)", "hit"),
        ("insert into hits (pfad) values (:a)", "pfad"),
        ("update hits set path = ", "syntax"),
        ("insert into hits (id) values (:a); delete from hits", "more than one statement"),
        ("commit", "begins with `commit`"),
    ] {
        let error = told(place, Job::new(Action::Statement(sql.to_owned())));
        let text = error.to_string();
        let syntax = word == "syntax" && text.contains("incomplete");
        assert!(text.starts_with("`statement`: ") && (text.contains(word) || syntax), "{text}");
        assert_eq!(error.about(), About::Statement);
    }
    if place.is_mariadb() {
        for sql in [
            "insert ignore into hits (id, path) values (:id, :path)",
            "update /*! ignore */ hits set path = :path where id = :id",
        ] {
            let text = told(place, Job::new(Action::Statement(sql.to_owned()))).to_string();
            assert!(text.starts_with("`statement`: `ignore` is not supported here"), "{text}");
        }
    }
    let error = told(place, Job::new(Action::Query(Query::new("select pfad from hits"))));
    assert!(error.to_string().contains("pfad"), "{error}");
}

fn a_create_that_fails_is_told_in_the_words_of_the_database(place: &Place) {
    let create = Some("create tabel hits".to_owned());
    let error = told(place, Job { create, ..Job::new(Action::insert("hits", ["id"])) });
    assert!(error.to_string().starts_with("`create` failed: "), "{error}");
    assert!(error.to_string().contains("syntax"), "{error}");
    assert_eq!(error.about(), About::Create);
}

fn what_a_column_does_not_take_is_told_before_the_first_row(place: &Place) {
    place.run("create table asked (id bigint not null, at timestamp null, n smallint)");
    let error = told(place, Job::new(Action::insert("asked", ["n"])));
    let unset = "column `id` of table `asked` must have a value and is not inserted";
    assert!(error.to_string().starts_with(unset), "{error}");
    assert_eq!(error.about(), About::Insert);
    // In SQLite only strict tables enforce types, and they have no type for a time.
    if !place.is_sqlite() {
        let sql = "update asked set n = :n, at = :_at where id = :id".to_owned();
        let error = told(place, Job::new(Action::Statement(sql)));
        let unfit = "of type timestamp, which does not take a number of microseconds";
        assert!(error.to_string().contains(unfit), "{error}");
    }
    if place.is_postgres() {
        let sql = "insert into asked (id, at) values (1, :_at)".to_owned();
        let error = told(place, Job::new(Action::Statement(sql)));
        assert!(error.to_string().contains("`to_timestamp(:_at::bigint / 1e6)`"), "{error}");
        let sql = "insert into asked (id, n) values (1, 'x' || :a)".to_owned();
        let error = told(place, Job::new(Action::Statement(sql)));
        assert!(error.to_string().contains("is of type smallint"), "{error}");
    }
}

fn what_a_power_failure_could_take_is_told(place: &Place) {
    place.with_hits();
    let told = |job: Job| place.options(job).unwrap().doubts().unwrap();
    let insert = || Job::new(Action::insert("hits", ["id", "path"]));
    let update = || Job::new(Action::Statement("update hits set path = :path".to_owned()));
    assert_eq!(told(insert()), [""; 0]);
    assert_eq!(told(update()), [""; 0]);
    let doubt = if place.is_postgres() {
        place.run("alter table hits set unlogged");
        "the table `hits` is unlogged: "
    } else if place.is_mariadb() {
        // No other test reads this setting of this server.
        place.run("set global innodb_flush_log_at_trx_commit = 2");
        "the server has `innodb_flush_log_at_trx_commit = 2`: "
    } else {
        return;
    };
    let doubts = told(insert());
    assert!(doubts.len() == 1 && doubts[0].starts_with(doubt), "{doubts:?}");
    assert_eq!(told(update()).len(), 1);
    assert_eq!(told(Job { sync: Sync::Normal, ..insert() }), [""; 0]);
    let query = Action::Query(Query::new("select path from hits"));
    assert_eq!(told(Job::new(query)), [""; 0], "what reads stores nothing");
    if place.is_postgres() {
        place.run(
            "alter table hits set logged; \
             create table parted (id bigint, path text) partition by range (id); \
             create unlogged table part partition of parted for values from (0) to (9); \
             create unlogged table dead (id bigint generated always as identity primary key, \
             at bigint not null, row bytea not null, code text not null, message text not null, \
             uid text unique)",
        );
        let of_letters = Job { dead: Some("dead".to_owned()), ..insert() };
        let of_parts = Job::new(Action::insert("parted", ["id", "path"]));
        for (job, table) in [(of_letters, "dead"), (of_parts, "part")] {
            let doubts = told(job);
            let doubt = format!("the table `{table}` is unlogged: ");
            assert!(doubts.len() == 1 && doubts[0].starts_with(&doubt), "{doubts:?}");
        }
    }
}

/// The type comes from the place that the server reads first.
#[test]
fn a_parameter_that_the_server_reads_as_another_type_is_refused() {
    let place = Place::postgres();
    place.run(
        "create domain whole as integer; create table kept (id bigint primary key, n numeric(20,4), \
         r real, d double precision, i integer, w whole, v text, c varchar(9), day date, at timestamptz, b bytea, a integer[])",
    );
    for (sql, of) in [
        ("insert into kept (id, day, at) values (:id, :x::date, :x)", "timestamp with time zone"),
        ("update kept set n = :x where id = :id and r < :x", "numeric"),
        (
            "insert into kept (id, d) values (:id, :x) on conflict (id) do update set n = :x",
            "numeric",
        ),
        ("insert into kept (id, i) values (:id, :x) on conflict (id) do update set v = :x", "text"),
        (
            "update kept set at = :x where id = :id and :x > localtimestamp",
            "timestamp with time zone",
        ),
    ] {
        let text = told(&place, Job::new(Action::Statement(sql.to_owned()))).to_string();
        assert!(text.contains("but the server reads it as "), "{sql}: {text}");
        assert!(text.contains(&format!("write `:x::{of}` at its other places")), "{sql}: {text}");
    }
    for sql in [
        "insert into kept (id, day, at) values (:id, :x::timestamptz::date, :x)",
        "update kept set n = :x where id = :id and r < :x::numeric",
        "insert into kept (id, w, a, b, c) values (:id, :w, :a, :b, :c)",
        "insert into kept (id, i) values (:id, :i) on conflict (id) do update set n = :i, w = :i",
        "insert into kept (id, v) values (:id, :v) on conflict (id) do update set c = :v",
        "update kept set v = :c where c = :c",
    ] {
        let job = Job::new(Action::Statement(sql.to_owned()));
        place.options(job).unwrap().check().unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
}

#[test]
fn a_statement_of_postgres_whose_values_are_not_checked_is_told() {
    let place = Place::postgres();
    place.with_hits();
    let doubts = |sql: &str| {
        let job = Job::new(Action::Statement(sql.to_owned()));
        let doubts = place.options(Job { sync: Sync::Normal, ..job }).unwrap().doubts().unwrap();
        doubts.iter().filter(|it| it.contains("not compared with the type")).count()
    };
    for (sql, expected) in [
        ("insert into hits (id, path) select :id, :path", 1),
        ("update hits set (path, status) = (:path, :status) where id = :id", 1),
        ("insert into hits (id, path) values (:id, coalesce(:path, ''))", 1),
        ("insert into hits (id, path) values (:id, :path)", 0),
        ("update hits set path = :path where id = :id", 0),
        ("delete from hits where id = :id", 0),
        ("select length(:path)", 0),
    ] {
        assert_eq!(doubts(sql), expected, "{sql}");
    }
}

#[test]
fn a_statement_whose_values_are_not_checked_is_told() {
    let place = Place::mariadb();
    place.with_hits();
    let doubts = |sql: &str| {
        let job = Job::new(Action::Statement(sql.to_owned()));
        let doubts = place.options(Job { sync: Sync::Normal, ..job }).unwrap().doubts().unwrap();
        doubts.iter().filter(|it| it.contains("not compared with the type")).count()
    };
    for sql in [
        "insert into hits set id = :id, path = :path",
        "insert hits (id, path) values (:id, :path)",
        "insert into hits (id, path) values (:id, :path), (:id + 1, :path)",
        "insert into hits (id, path) values (:id, coalesce(:path, ''))",
        "insert into hits (id, path) values (:id, :path) on duplicate key update path = concat(path, :path)",
    ] {
        assert_eq!(doubts(sql), 1, "{sql}");
    }
    for sql in [
        "insert into hits (id, path) values (:id, :path)",
        "insert into hits (id, path) values (:id, concat(:_id, '')) on duplicate key update path = :path",
        "update hits set path = :path where id = :id",
        "delete from hits where id = :id",
    ] {
        assert_eq!(doubts(sql), 0, "{sql}");
    }
}

/// They run for the update that leaves such a row unchanged.
#[test]
fn a_trigger_that_runs_for_rows_that_exist_already_is_told() {
    let place = Place::mariadb();
    place.with_hits().run("create trigger i after insert on hits for each row set @a = 1");
    let mut action = Action::insert("hits", ["id", "path"]);
    if let Action::Insert { on_conflict, .. } = &mut action {
        *on_conflict = OnConflict::Nothing(vec!["id".to_owned()]);
    }
    let doubts = |action: &Action| {
        let job = Job { sync: Sync::Normal, ..Job::new(action.clone()) };
        place.options(job).unwrap().doubts().unwrap()
    };
    assert_eq!(doubts(&action), [""; 0]);
    place.run("create trigger u after update on hits for each row set @a = 1");
    let expected = "the trigger `u` of the table `hits` also runs for a row that exists already: \
                    `on_conflict` updates it with its own values";
    assert_eq!(doubts(&action), [expected]);
    assert_eq!(doubts(&Action::insert("hits", ["id", "path"])), [""; 0]);
}
