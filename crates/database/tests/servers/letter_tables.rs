//! Dead-letter tables: their requirements, and the handling of dead letters that they do not accept.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use database::DatabaseError;
use exchange::{Factory, Handler};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::with_default;
use tracing::{Event, Level, Metadata, Subscriber};

use crate::letters::{all, keeping, null, with_hits_without_key};
use crate::place::{Place, hit, serve};
use crate::proxy::{Cut, Proxy};

crate::suite!(
    a_table_without_a_key_for_uids_is_rejected_with_what_repairs_it,
    a_table_that_loses_its_uids_loses_letters_and_no_rows,
    a_letter_that_the_table_rejects_takes_no_other_with_it,
);

mod on_servers {
    crate::suite_of_servers!(
        letters_behind_a_lost_commit_are_written_once_whatever_came_before,
        a_letter_that_is_lost_is_counted_once_in_the_log,
    );
    use super::{
        a_letter_that_is_lost_is_counted_once_in_the_log,
        letters_behind_a_lost_commit_are_written_once_whatever_came_before,
    };
}

/// Returns a dead-letter table made by the operator. `uid`: the definition of this column, and of keys.
fn dead_of_ones_own(place: &Place, uid: &str) -> String {
    let columns = match place {
        it if it.is_postgres() => {
            "id bigint generated always as identity primary key, at bigint not null, \
             \"row\" bytea not null, code text not null, message text not null"
        }
        it if it.is_sqlite() => {
            "id integer primary key autoincrement, at integer not null, row blob not null, \
             code text not null, message text not null"
        }
        _ => {
            "id bigint not null auto_increment primary key, at bigint not null, \
             `row` longblob not null, code varchar(20) not null, message text not null"
        }
    };
    format!("create table dead ({columns}{uid})")
}

fn a_table_without_a_key_for_uids_is_rejected_with_what_repairs_it(place: &Place) {
    place.with_hits();
    let mut cases = vec![
        ("", ""),
        (", uid varchar(80)", ""),
        (", uid varchar(80)", "create unique index two on dead (uid, id)"),
        (", uid integer unique", ""),
    ];
    if !place.is_sqlite() {
        cases.extend([(", uid varchar(79) unique", ""), (", uid varchar(9)", "")]);
    }
    match place {
        it if it.is_postgres() => cases.extend([
            (", uid text", "create unique index part on dead (uid) where id > 0"),
            (", uid text", "create unique index other on dead (lower(uid))"),
            (", uid text unique deferrable", ""),
            (", uid text, unique (uid), unique (uid) deferrable initially deferred", ""),
            (", uid bytea unique", ""),
            (
                ", uid text collate passes unique",
                "create collation passes (provider = icu, deterministic = false, \
                 locale = 'und-u-ka-shifted')",
            ),
        ]),
        it if it.is_sqlite() => cases.extend([
            (", uid text", "create unique index part on dead (uid) where id > 0"),
            (", uid text", "create unique index other on dead (lower(uid))"),
            (", uid blob unique", ""),
            (", uid unique", ""),
        ]),
        _ => cases.extend([
            (", uid varchar(100), unique (uid(80))", ""),
            (", uid varbinary(100) unique", ""),
            (", uid binary(80) unique", ""),
        ]),
    }
    for (column, statement) in cases {
        let create = dead_of_ones_own(place, column);
        match statement.contains("collation") {
            true => place.run(&format!("{statement}; {create}")),
            false => place.run(&format!("{create}; {statement}")),
        };
        let options = || place.options(keeping()).unwrap();
        let of_letters = options().letters().map(drop).unwrap_err();
        let of_handler = options().open().map(drop).unwrap_err().to_string();
        let error = options().check().unwrap_err();
        assert!(matches!(&error, DatabaseError::Dead(table, _) if table == "dead"), "{error}");
        assert_eq!((&of_letters, &*of_handler), (&error, &*error.to_string()), "{column}");
        let error = error.to_string();
        let (said, sql) = error.split_once("; repair it with: ").expect(&error);
        assert!(said.ends_with("`uid` of 80 characters or more with a unique key of its own"));
        place.run(sql);
        options().check().unwrap_or_else(|error| panic!("{column}: {sql}: {error}"));
        let answers = serve(&mut place.handler(keeping()), ["no json"]);
        assert!(answers[0].starts_with("!record "), "{answers:?}");
        let kept = "select count(*) from dead where length(uid) between 1 and 80";
        assert_eq!(place.run(kept), ["1"], "{column}: {sql}");
        place.run("drop table dead");
    }
    // Usable tables made by the operator.
    let mut fit = vec![", uid varchar(80) not null unique", ", uid char(200) unique", ", uid text"];
    if place.is_mariadb() {
        fit = vec![fit[0], ", uid varchar(80) character set latin1 collate latin1_bin unique"];
        fit.push(", uid text unique");
    }
    for column in fit {
        place.run(&dead_of_ones_own(place, column));
        if !column.contains("unique") {
            place.run("create unique index one on dead (uid)");
        }
        place.options(keeping()).unwrap().check().unwrap_or_else(|it| panic!("{column}: {it}"));
        place.run("drop table dead");
    }
    if place.is_mariadb() {
        let create = dead_of_ones_own(place, ", uid varchar(80) unique");
        place.run(&format!("{create} with system versioning"));
        assert_eq!(place.options(keeping()).unwrap().check(), Ok(()));
        place.run("drop table dead");
    }
    place.run(&format!(
        "{}; alter table dead rename to kept; create view dead as select * from kept",
        dead_of_ones_own(place, ", uid varchar(80) unique")
    ));
    let error = place.options(keeping()).unwrap().check().unwrap_err().to_string();
    let why = if place.is_sqlite() { "it is a view" } else { "it is no table of its own" };
    assert!(error.contains(why), "{error}");
}

/// The table is changed while a connection is open that has checked it before.
fn a_table_that_loses_its_uids_loses_letters_and_no_rows(place: &Place) {
    place.with_hits();
    let database = place.options(keeping()).unwrap();
    let mut handler = database.open().unwrap();
    let mut id = 0;
    let mut refuse = |handler: &mut Box<dyn Handler>, letters: usize| {
        id += 1;
        let answers = serve(handler, ["no json".to_owned(), hit(id)]);
        assert!(answers[0].starts_with("!record "), "{answers:?}");
        assert_eq!(answers[1], format!("ok {id}"));
        assert_eq!(place.run("select count(*) from dead"), [letters.to_string()], "{id}");
    };
    refuse(&mut handler, 1);
    let (change, before) = match place.is_sqlite() {
        // SQLite cannot drop a column with a key.
        true => (
            "alter table dead rename to old; create table dead (id integer primary key \
             autoincrement, at integer, row blob, code text, message text)",
            0,
        ),
        false => ("alter table dead drop column uid", 1),
    };
    place.run(change);
    // On the old connection, and on those that find the error.
    (0..3).for_each(|_| refuse(&mut handler, before));
    let error = database.check().unwrap_err().to_string();
    let (_, sql) = error.split_once("; repair it with: ").expect(&error);
    // Another handler of a running pool.
    let mut handler = database.open().unwrap();
    refuse(&mut handler, before);
    assert!(place.options(keeping()).unwrap().open().is_err(), "one that starts does not");
    place.run(sql);
    (1..3).for_each(|more| refuse(&mut database.open().unwrap(), before + more));
}

fn a_letter_that_the_table_rejects_takes_no_other_with_it(place: &Place) {
    place.run("create table hits (id bigint, path varchar(200) not null, status integer)");
    let check = if place.is_mariadb() {
        "check (length(`row`) < 100)"
    } else {
        "check (length(\"row\") < 100)"
    };
    place.run(&dead_of_ones_own(place, &format!(", uid varchar(80) unique, {check}")));
    let long = |id: usize| format!(r#"{{"id":{id},"path":null,"status":"{}"}}"#, "x".repeat(200));
    let short = |id: usize| format!(r#"{{"id":{id},"path":null,"status":0}}"#);
    let mut handler = place.handler(keeping());
    for long_ones in [&[0][..], &[29], &[3, 4, 17], &(0..30).collect::<Vec<_>>()] {
        place.run("delete from hits; delete from dead");
        let is_long = |id: &usize| long_ones.contains(id);
        let rows =
            (0..30).flat_map(|id| [if is_long(&id) { long(id) } else { short(id) }, hit(id)]);
        let answers = serve(&mut handler, rows);
        for (index, pair) in answers.chunks(2).enumerate() {
            assert!(pair[0].starts_with("!row ") && pair[1] == format!("ok {index}"), "{pair:?}");
        }
        assert_eq!(place.run("select count(*) from hits"), ["30"]);
        let mut letters = place.options(keeping()).unwrap().letters().unwrap();
        let kept: Vec<Vec<u8>> = all(&mut letters).into_iter().map(|letter| letter.row).collect();
        let expected = (0..30).filter(|id| !is_long(id)).map(|id| short(id).into_bytes());
        assert_eq!(kept, expected.collect::<Vec<_>>());
    }
}

/// Dead letters were lost before: the table was missing for a moment, one dead letter violated a constraint of the
/// table, one had a text that the table's encoding lacks.
fn letters_behind_a_lost_commit_are_written_once_whatever_came_before(place: &Place) {
    with_hits_without_key(place);
    let row = if place.is_postgres() { "\"row\"" } else { "`row`" };
    let check = format!(", uid varchar(80) unique, check (length({row}) < 100)");
    place.run(&dead_of_ones_own(place, &check));
    if place.is_mariadb() {
        place.run("alter table dead modify message text character set latin1 not null");
    }
    let long = format!(r#"{{"id":2,"path":null,"status":"{}"}}"#, "x".repeat(200));
    let foreign = r#"{"id":2,"path":"/","status":1,"日":2}"#.to_owned();
    type Before<'a> = &'a dyn Fn(&mut Box<dyn Handler>);
    let renamed: Before<'_> = &|handler| {
        place.run("alter table dead rename to away");
        serve(handler, [null()]);
        place.run("alter table away rename to dead");
    };
    let rejected: Before<'_> = &|handler| drop(serve(handler, [long.clone(), null()]));
    let unwritable: Before<'_> = &|handler| drop(serve(handler, [foreign.clone(), null()]));
    for (before, kept) in [(renamed, 0), (rejected, 1), (unwritable, 2)] {
        for cut in [Cut::BeforeCommit, Cut::AfterCommit] {
            place.run("delete from dead");
            let proxy = Proxy::to(place.port());
            let mut handler = place.handler_by(&proxy, keeping());
            before(&mut handler);
            assert_eq!(place.run("select count(*) from dead"), [kept.to_string()]);
            proxy.cut(cut);
            let answers = serve(&mut handler, [null(), null()]);
            assert_eq!(proxy.cuts(), 1);
            assert!(answers.iter().all(|it| it.starts_with("!row ")), "{cut:?}: {answers:?}");
            assert_eq!(place.run("select count(*) from dead"), [(kept + 2).to_string()], "{cut:?}");
            assert_eq!(place.run("select count(*) from dead where uid is null"), ["0"]);
        }
    }
}

/// Adds up the `count` of all errors in the log.
#[derive(Default)]
struct Counted(AtomicU64);

impl Subscriber for Counted {
    fn enabled(&self, event: &Metadata<'_>) -> bool {
        *event.level() == Level::ERROR
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut &*self);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

impl Visit for &Counted {
    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "count" {
            self.0.fetch_add(value, Relaxed);
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn Debug) {}
}

/// The table rejects the dead letter, and then the COMMIT of the others is lost.
fn a_letter_that_is_lost_is_counted_once_in_the_log(place: &Place) {
    with_hits_without_key(place);
    let row = if place.is_postgres() { "\"row\"" } else { "`row`" };
    let check = format!(", uid varchar(80) unique, check (length({row}) < 100)");
    place.run(&dead_of_ones_own(place, &check));
    let long = format!(r#"{{"id":2,"path":null,"status":"{}"}}"#, "x".repeat(200));
    for cut in [Cut::BeforeCommit, Cut::AfterCommit] {
        place.run("delete from dead");
        let proxy = Proxy::to(place.port());
        let mut handler = place.handler_by(&proxy, keeping());
        proxy.cut(cut);
        let counted = Arc::new(Counted::default());
        let answers = with_default(Arc::clone(&counted), || {
            serve(&mut handler, [long.clone(), null(), null()])
        });
        assert!(answers.iter().all(|it| it.starts_with("!row ")), "{cut:?}: {answers:?}");
        assert_eq!(
            (proxy.cuts(), place.run("select count(*) from dead")),
            (1, vec!["2".to_owned()])
        );
        assert_eq!(counted.0.load(Relaxed), 1, "{cut:?}");
    }
}

#[test]
fn a_key_that_comes_to_be_deferrable_or_short_costs_letters_and_no_rows() {
    let place = Place::postgres();
    with_hits_without_key(&place);
    for change in [
        "alter column uid type varchar(36)",
        "add constraint other unique (uid) deferrable initially deferred",
    ] {
        place.run("drop table if exists dead");
        let mut handler = place.handler(keeping());
        place.run(&format!("alter table dead {change}"));
        for id in 1..4 {
            let answers = serve(&mut handler, [hit(id), null()]);
            assert!(answers[0] == format!("ok {id}") && answers[1].starts_with("!row "));
            assert_eq!(place.run("select count(*) from dead"), ["0"], "{change}");
        }
    }
}

/// The error message cites a name that the encoding of the database lacks.
#[test]
fn a_letter_in_a_database_of_another_encoding_is_kept_with_its_text_escaped() {
    let place = Place::postgres();
    let name = place.login().database;
    let latin = format!("{name}_latin1");
    place.run(&format!(
        "create database {latin} encoding 'LATIN1' lc_collate 'C' lc_ctype 'C' template template0"
    ));
    let Place::Server(server, _) = place else { unreachable!("it is PostgreSQL") };
    let place = Place::Server(server, latin);
    place.with_hits();
    let row = |name: &str| format!(r#"{{"id":1,"path":"/","status":1,"{name}":2}}"#);
    let answers = serve(&mut place.handler(keeping()), [row("é"), null(), row("日"), null()]);
    assert_eq!(answers[2], "!record `日` of the record is not used here");
    let mut letters = place.options(keeping()).unwrap().letters().unwrap();
    let kept = all(&mut letters);
    assert_eq!(kept.len(), 4, "{kept:?}");
    assert_eq!(kept[0].message, "`é` of the record is not used here");
    assert_eq!(kept[2].message, "`\\u{65e5}` of the record is not used here");
    assert_eq!(kept[2].row, row("日").into_bytes());
}
