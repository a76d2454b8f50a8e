//! Tables without transactions, which MariaDB cannot roll back.

use database::{Action, DatabaseError, Job, OnConflict};
use exchange::Factory;

use crate::place::{Place, hit, insert, serve, statement};
use crate::proxy::{Cut, Proxy};
use crate::server::{Kind, Server};

const INSERT: &str = "insert into hits (id, path, status) values (:id, :path, :status)";

/// Serves twenty rows, the seventh of which is a duplicate, twice.
fn check(place: &Place, job: Job, what: &str) {
    let mut handler = place.handler(job);
    let body = |id: usize| if id == 7 { hit(1) } else { hit(id) };
    let answers = serve(&mut handler, (1..=20).map(body));
    for answer in &answers {
        assert!(answer.starts_with("!commit "), "{what}: {answers:?}");
    }
    assert_eq!(serve(&mut handler, [hit(30)]), ["ok 30"], "{what}, afterwards");
}

#[test]
fn rows_that_cannot_be_rolled_back_have_no_known_outcome() {
    let place = Place::mariadb();
    // Through a view, and through an unparsed statement.
    place
        .with_hits()
        .run("alter table hits engine = MyISAM; create view seen as select * from hits");
    let view = Job { action: Action::insert("seen", ["id", "path", "status"]), ..insert() };
    let hidden = statement("insert into hits set id = :id, path = :path, status = :status");
    for (job, what) in [(view, "a view"), (hidden, "a statement")] {
        place.run("delete from hits");
        check(&place, job, what);
        // Nothing is sent again.
        let ids = place.run("select id from hits order by id");
        assert_eq!(ids, ["1", "2", "3", "4", "5", "6", "30"], "{what}");
    }
}

#[test]
fn what_a_trigger_writes_without_a_transaction_has_no_known_outcome() {
    let place = Place::mariadb();
    place.with_hits().run("create table audit (id bigint) engine = MyISAM");
    place.run(
        "create trigger t before insert on hits for each row insert into audit values (new.id)",
    );
    let mut keyed = insert();
    if let Action::Insert { on_conflict, .. } = &mut keyed.action {
        *on_conflict = OnConflict::Nothing(vec!["id".to_owned()]);
    }
    for job in [insert(), statement(INSERT)] {
        place.run("delete from hits; delete from audit");
        check(&place, job, "a trigger");
        assert_eq!(place.run("select id from hits"), ["30"]);
        let repeated = "select id from audit where id <> 1 group by id having count(*) > 1";
        assert_eq!(place.run(repeated), [""; 0]);
    }
    // A row that is rejected for a reason that is found later.
    place.run("delete from hits; alter table hits add check (status < 999)");
    let bad = r#"{"id":2,"path":"/","status":1000}"#.to_owned();
    let answers = serve(&mut place.handler(keyed), [hit(1), bad]);
    assert!(answers.iter().all(|it| it.starts_with("!commit ")), "{answers:?}");
}

#[test]
fn a_server_that_keeps_no_warnings_changes_nothing() {
    let place = Place::mariadb();
    place.run("set global max_error_count = 0");
    place.with_hits().run("create table audit (id bigint) engine = MyISAM");
    place.run(
        "create trigger t before insert on hits for each row insert into audit values (new.id)",
    );
    let answers = serve(&mut place.handler(insert()), [hit(1), hit(2), hit(1)]);
    assert!(answers.iter().all(|it| it.starts_with("!commit ")), "{answers:?}");
    place.run("drop trigger t; delete from hits");
    let mut handler = place.handler(insert());
    // Too long, not a number, out of range.
    let bad = [
        format!(r#"{{"id":1,"path":"{}","status":1}}"#, "x".repeat(21)),
        r#"{"id":2,"path":"/","status":"12abc"}"#.to_owned(),
        r#"{"id":3,"path":"/","status":99999999999}"#.to_owned(),
    ];
    let answers = serve(&mut handler, bad.into_iter().chain([hit(4)]));
    assert!(answers[..3].iter().all(|it| it.starts_with("!row ")), "{answers:?}");
    assert_eq!(place.hits(), ["4|/4|200"]);
    place.run("set global max_error_count = default");
}

#[test]
fn a_server_that_ends_connections_behind_a_rollback_keeps_ours() {
    let place = Place::mariadb();
    place.with_hits();
    for global in ["RELEASE", "CHAIN"] {
        place.run(&format!("delete from hits; set global completion_type = '{global}'"));
        let proxy = Proxy::to(place.port());
        let mut handler = place.handler_by(&proxy, insert());
        let connections = proxy.connections();
        let bad = r#"{"id":2,"path":"/","status":"12abc"}"#.to_owned();
        let answers = serve(&mut handler, [hit(1), bad, hit(3)]);
        assert!(answers[1].starts_with("!row "), "{global}: {answers:?}");
        assert_eq!(place.hits(), ["1|/1|200", "3|/3|200"], "{global}: {answers:?}");
        assert_eq!(proxy.connections(), connections, "{global}: {answers:?}");
    }
    place.run("set global completion_type = default");
}

#[test]
fn rows_on_their_way_into_such_a_table_are_not_sent_again() {
    let place = Place::mariadb();
    place
        .with_hits()
        .run("alter table hits engine = MyISAM; create view seen as select * from hits");
    let view = Job { action: Action::insert("seen", ["id", "path", "status"]), ..insert() };
    place.run("alter table hits drop primary key");
    let proxy = Proxy::to(place.port());
    let mut handler = place.handler_by(&proxy, view);
    proxy.cut(Cut::AfterRows);
    let answers = serve(&mut handler, [hit(1), hit(2)]);
    assert_eq!(proxy.cuts(), 1);
    assert!(answers.iter().all(|it| it.starts_with("!commit ")), "{answers:?}");
    assert_eq!(place.run("select id from hits order by id"), ["1", "2"]);
}

#[test]
fn a_table_without_transactions_is_named_at_start() {
    let place = Place::mariadb();
    place.with_hits().run(
        "create table other (id bigint, path varchar(20), status integer) engine = MyISAM; \
         create view seen as select * from other",
    );
    let said = |job: Job| place.options(job).and_then(|it| it.doubts());
    let of_engine = |is_statement: bool| {
        let (table, engine) = ("other".to_owned(), "MyISAM".to_owned());
        DatabaseError::Engine { table, engine, is_statement }
    };
    for sql in ["insert into other (id) values (:id)", "update other set id = :id"] {
        let error = said(statement(sql)).unwrap_err();
        assert_eq!(error, of_engine(true), "{sql}");
        assert!(error.to_string().starts_with("`statement`: table `other`"), "{error}");
    }
    let columns = ["id", "path", "status"];
    assert_eq!(said(Job::new(Action::insert("other", columns))).unwrap_err(), of_engine(false));
    let names = |job: Job| {
        let doubts = said(job).unwrap();
        doubts.iter().filter(|it| it.contains("`other`") && it.contains("MyISAM")).count()
    };
    assert_eq!(names(Job::new(Action::insert("seen", columns))), 1);
    assert_eq!(names(statement("insert into seen (id) values (:id)")), 1);
    assert_eq!(names(statement("insert into other set id = :id")), 1);
    assert_eq!(names(statement(INSERT)), 0);
    assert_eq!(names(insert()), 0);
    place.run(
        "create trigger t after insert on hits for each row insert into other (id) values (1)",
    );
    assert_eq!(names(statement(INSERT)), 1);
    assert_eq!(names(insert()), 1);
}

/// A dead letter that is retried is removed together with the stored rows, or not at all.
#[test]
fn a_table_of_letters_without_transactions_is_rejected() {
    let place = Place::mariadb();
    let keeping = || Job { dead: Some("dead".to_owned()), ..insert() };
    place.with_hits();
    let mut handler = place.handler(keeping());
    let answers = serve(&mut handler, [r#"{"id":7,"path":null,"status":0}"#]);
    assert!(answers[0].starts_with("!row "), "{answers:?}");
    for engine in ["MyISAM", "Aria"] {
        place.run(&format!("alter table dead engine = {engine}"));
        let options = || place.options(keeping()).unwrap();
        for error in [options().check().unwrap_err(), options().letters().map(drop).unwrap_err()] {
            assert!(matches!(&error, DatabaseError::Dead(table, _) if table == "dead"), "{error}");
            assert!(error.to_string().contains(engine), "{error}");
        }
        assert_eq!(place.run("select count(*) from dead"), ["1"], "{engine}");
    }
    // A running pool keeps no dead letters there, but stores rows.
    place.run("alter table dead engine = InnoDB; delete from dead");
    let database = place.options(keeping()).unwrap();
    database.check().unwrap();
    place.run("alter table dead engine = MyISAM");
    let answers = serve(&mut database.open().unwrap(), ["no json".to_owned(), hit(8)]);
    assert!(answers[0].starts_with("!record ") && answers[1] == "ok 8", "{answers:?}");
    assert_eq!(place.run("select count(*) from dead"), ["0"]);
}

#[test]
fn rows_on_their_way_when_their_table_lost_its_transactions_have_no_known_outcome() {
    let place = Place::mariadb();
    let statement = || statement(INSERT);
    place.run("create table audit (id bigint)");
    for job in [insert(), statement()] {
        for is_target in [true, false] {
            place.run("drop table if exists hits; create or replace table audit (id bigint)");
            place.run("create table hits (id bigint, path varchar(20), status integer)");
            place.run(
                "create trigger t before insert on hits for each row \
                 insert into audit values (new.id)",
            );
            let proxy = Proxy::to(place.port());
            let mut handler = place.handler_by(&proxy, job.clone());
            assert_eq!(serve(&mut handler, [hit(0)]), ["ok 0"]);
            let table = if is_target { "hits" } else { "audit" };
            place.run(&format!("alter table {table} engine = MyISAM"));
            proxy.cut(Cut::AfterRows);
            let answers = serve(&mut handler, [hit(1), hit(2)]);
            assert_eq!(proxy.cuts(), 1);
            assert!(answers.iter().all(|it| it.starts_with("!commit ")), "{table}: {answers:?}");
            let twice = format!("select id from {table} group by id having count(*) > 1");
            assert_eq!(place.run(&twice), [""; 0], "{table}");
            if is_target {
                // The next rows are known not to be stored.
                let answers = serve(&mut handler, [hit(3)]);
                assert!(answers[0].starts_with("!database "), "{answers:?}");
            }
        }
    }
}

/// Otherwise a login takes longer with each table of the server, and fails with a thousand of them.
#[test]
fn a_login_opens_no_tables_that_it_does_not_write() {
    const TABLES: u64 = 80;
    let mut server = Server::prepare_forever(Kind::Mariadb);
    server.restart();
    server.database("many");
    let tables = (0..TABLES).map(|it| format!("create table t{it} (id bigint) engine = MyISAM"));
    server.run("many", &tables.collect::<Vec<_>>().join(";"));
    server.run("many", "create view seen as select * from t0");
    server.database("own");
    let place = Place::Server(Box::leak(Box::new(server)), "own".to_owned());
    place.with_hits();
    let keeping = || Job { dead: Some("dead".to_owned()), ..insert() };
    place.options(keeping()).unwrap().check().unwrap();
    let opened = || {
        let said = place.run("show global status like 'Opened_table_definitions'");
        said[0].split_once('|').unwrap().1.parse::<u64>().unwrap()
    };
    for job in [keeping(), statement(INSERT)] {
        place.run("flush tables");
        let before = opened();
        place.options(job).unwrap().check().unwrap();
        let count = opened() - before;
        assert!(count < TABLES / 2, "{count} tables were opened");
    }
    // A table of another schema is found by its name, also behind a view.
    let doubts = place.options(statement("insert into many.seen set id = :id")).unwrap().doubts();
    assert!(doubts.unwrap().iter().any(|it| it.contains("`t0`") && it.contains("MyISAM")));
}

/// FEDERATED declares transactions, but undoes nothing if its remote table has none or its connection was opened again.
#[test]
fn a_table_on_another_server_is_rejected_or_named_at_start() {
    let place = Place::mariadb();
    place.run("install plugin if not exists federated soname 'ha_federatedx'");
    let (port, name) = (place.port(), place.login().database);
    let columns = "(id bigint, path varchar(20), status integer)";
    place.with_hits().run(&format!(
        "create table remote {columns}; create table other {columns} engine = FEDERATED \
         connection = 'mysql://root@127.0.0.1:{port}/{name}/remote'; \
         create view seen as select * from other; create table letters (id bigint not null \
         auto_increment primary key, at bigint not null, `row` longblob not null, \
         code varchar(20) not null, message text not null, uid varchar(80) unique); \
         create table dead (id bigint not null auto_increment primary key, at bigint not null, \
         `row` longblob not null, code varchar(20) not null, message text not null, \
         uid varchar(80) unique) engine = FEDERATED connection = 'mysql://root@127.0.0.1:{port}/{name}/letters'"
    ));
    let said = |job: Job| place.options(job).and_then(|it| it.doubts());
    let names = ["id", "path", "status"];
    for job in
        [Job::new(Action::insert("other", names)), statement(&INSERT.replace("hits", "other"))]
    {
        let error = said(job).unwrap_err();
        assert!(matches!(error, DatabaseError::Engine { .. }), "{error}");
        assert!(error.to_string().contains("FEDERATED, which stores rows on another"), "{error}");
    }
    let doubts = said(Job::new(Action::insert("seen", names))).unwrap();
    assert!(doubts.iter().any(|it| it.contains("`other`")), "{doubts:?}");
    let error = said(Job { dead: Some("dead".to_owned()), ..insert() }).unwrap_err();
    assert!(matches!(error, DatabaseError::Dead(..)), "{error}");
    // Other tests change settings of this server for a moment, which is a doubt too.
    let doubts = said(insert()).unwrap();
    assert!(!doubts.iter().any(|it| it.contains("`other`")), "{doubts:?}");
}
