//! Dead letters.

use std::thread;
use std::time::Duration;

use database::{
    Action, DatabaseError, Job, OnConflict, Query, Record, Retried, StoredLetter, UnknownFields,
};

use crate::place::{Place, hit, insert, serve, statement};
use crate::proxy::{Cut, Proxy};
use crate::server::eventually;

crate::suite!(
    a_refused_row_is_kept_with_its_reason,
    a_letter_is_tried_again_and_is_then_gone_or_still_there,
    letters_are_only_of_the_rows_that_were_refused,
    a_letter_whose_key_is_there_by_now_is_not_counted_as_stored,
    letters_are_not_stored_where_requests_may_tell_rows_apart,
    a_record_that_is_no_row_is_kept_too,
    a_record_with_a_name_that_is_not_used_is_refused_or_its_value_left_out,
    without_its_table_a_letter_is_lost_and_the_rows_are_not,
);

pub(crate) fn keeping() -> Job {
    Job { dead: Some("dead".to_owned()), ..insert() }
}

pub(crate) fn all(letters: &mut database::Letters) -> Vec<StoredLetter> {
    let mut all = Vec::new();
    let each = letters.each(|_, letter| {
        all.push(letter);
        Ok::<(), DatabaseError>(())
    });
    each.unwrap();
    all
}

fn twice() -> String {
    r#"{"id":1,"path":"/'twice' ","status":0}"#.to_owned()
}

fn a_refused_row_is_kept_with_its_reason(place: &Place) {
    place.with_hits();
    let mut handler = place.handler(keeping());
    let null = r#"{"id":3,"path":null,"status":0}"#.to_owned();
    let answers = serve(&mut handler, [hit(1), twice(), hit(2), null]);
    let mut letters = place.options(keeping()).unwrap().letters().unwrap();
    let all = all(&mut letters);
    assert_eq!(all.len(), 2);
    assert_eq!(all[0].row, twice().into_bytes());
    let said = answers[1].strip_prefix("!row ").and_then(|it| it.strip_suffix(')')).unwrap();
    let (text, code) = said.rsplit_once(" (").unwrap();
    assert!(all[0].message.starts_with(text), "{said}: {}", all[0].message);
    assert_eq!(all[0].code, code);
    assert_eq!(all[0].at_us, 1_700_000_000_000_000);
    let codes = match place {
        it if it.is_sqlite() => ["1555", "1299"],
        it if it.is_postgres() => ["23505", "23502"],
        _ => ["1062", "1048"],
    };
    assert_eq!([&*all[0].code, &*all[1].code], codes);
    assert_eq!(letters.remove(all[1].number), Ok(true));
    assert_eq!(letters.remove(all[1].number), Ok(false));
    assert_eq!(place.run("select count(*) from dead"), ["1"]);
}

fn a_letter_is_tried_again_and_is_then_gone_or_still_there(place: &Place) {
    place.with_hits();
    let mut handler = place.handler(keeping());
    serve(&mut handler, [hit(1), twice()]);
    let mut letters = place.options(keeping()).unwrap().letters().unwrap();
    let letter = all(&mut letters).remove(0);
    let again = letters.retry(&letter).unwrap();
    assert_eq!(again, Retried::Refused(letter.message.clone()));
    assert_eq!(place.run("select count(*) from dead"), ["1"]);
    place.run("delete from hits where id = 1");
    assert_eq!(letters.retry(&letter), Ok(Retried::Stored));
    assert_eq!(letters.retry(&letter), Ok(Retried::Absent));
    assert_eq!(place.run("select path from hits"), ["/'twice'"].map(|it| format!("{it} ")));
    assert_eq!(place.run("select count(*) from dead"), ["0"]);
}

fn letters_are_only_of_the_rows_that_were_refused(place: &Place) {
    place.with_hits();
    let mut handler = place.handler(keeping());
    let bodies =
        (0..50).map(|id| if id % 10 == 3 { twice().replace(":1,", ":0,") } else { hit(id) });
    serve(&mut handler, bodies);
    let mut letters = place.options(keeping()).unwrap().letters().unwrap();
    assert_eq!(all(&mut letters).len(), 5);
    let mut job = keeping();
    job.action = Action::Insert {
        table: "hits".to_owned(),
        columns: ["id", "path", "status"].map(str::to_owned).to_vec(),
        on_conflict: OnConflict::Nothing(vec!["id".to_owned()]),
    };
    let mut handler = place.handler(job);
    serve(&mut handler, [hit(0), hit(1)]);
    assert_eq!(all(&mut letters).len(), 5, "a row that is there is none");
    assert!(place.options(insert()).unwrap().letters().is_err(), "without a table there are none");
}

fn a_record_that_is_no_row_is_kept_too(place: &Place) {
    place.with_hits();
    let mut handler = place.handler(keeping());
    let bodies = [
        "no json".to_owned(),
        hit(1),
        r#"{"id":2,"path":"/"}"#.to_owned(),
        r#"{"id":3,"path":"/","status":1,"sttus":2}"#.to_owned(),
        hit(4),
        twice(),
        r#"{"id":"\n","path":"/","status":1}"#.to_owned(),
    ];
    let answers = serve(&mut handler, &bodies);
    assert_eq!([&answers[1], &answers[4]], ["ok 1", "ok 4"]);
    let mut letters = place.options(keeping()).unwrap().letters().unwrap();
    let kept = all(&mut letters);
    let refused = [0, 2, 3, 5, 6];
    assert_eq!(kept.len(), refused.len(), "{answers:?}");
    for (letter, request) in kept.iter().zip(refused) {
        assert_eq!(letter.row, bodies[request].as_bytes());
        assert!(answers[request].starts_with("!r"), "{}", answers[request]);
    }
    let said = |index: usize| format!("!{} {}", kept[index].code, kept[index].message);
    for (letter, request) in [(0, 0), (1, 2), (2, 3), (4, 6)] {
        assert_eq!(said(letter), answers[request]);
    }
    assert_eq!(answers[3], "!record `sttus` of the record is not used here");
    let again = letters.retry(&kept[0]).unwrap();
    assert_eq!(again, Retried::Refused(kept[0].message.clone()));
    // Alone, without other rows.
    assert_eq!(serve(&mut handler, ["no json"]), [&*answers[0]]);
    assert_eq!(all(&mut letters).len(), 6);
    assert_eq!(place.hits(), ["1|/1|200", "4|/4|200"]);
}

fn a_record_with_a_name_that_is_not_used_is_refused_or_its_value_left_out(place: &Place) {
    place.with_hits();
    let more = r#"{"id":1,"more":true,"path":"/1","status":200}"#;
    let reject = "!record `more` of the record is not used here";
    assert_eq!(serve(&mut place.handler(insert()), [more]), [reject]);
    let logfmt = Job { record: Record::Logfmt, ..insert() };
    let line = "id=1 path=/1 status=200 more=";
    assert_eq!(serve(&mut place.handler(logfmt), [line]), [reject]);
    assert!(place.hits().is_empty());
    let ignore = Job { unknown_fields: UnknownFields::Ignore, ..insert() };
    assert_eq!(serve(&mut place.handler(ignore), [more]), ["ok 1"]);
    assert_eq!(place.hits(), ["1|/1|200"]);
    // A name that only the acknowledgement uses is known, and a query loses nothing.
    let acked = Job { ack: "{more}".to_owned(), ..insert() };
    let other = more.replace(":1,", ":2,");
    assert_eq!(serve(&mut place.handler(acked), [other]), ["true"]);
    let query = Query::new("select id from hits where id = :id");
    let mut query = place.handler(Job::new(Action::Query(query)));
    assert_eq!(serve(&mut query, [more]), [r#"[{"id":1}]"#]);
}

fn without_its_table_a_letter_is_lost_and_the_rows_are_not(place: &Place) {
    place.with_hits();
    let mut handler = place.handler(keeping());
    place.run("drop table dead");
    let answers = serve(&mut handler, [hit(1), "no json".to_owned(), twice(), hit(2)]);
    assert_eq!([&answers[0], &answers[3]], ["ok 1", "ok 2"]);
    assert!(answers[1].starts_with("!record ") && answers[2].starts_with("!row "), "{answers:?}");
    assert_eq!(place.hits(), ["1|/1|200", "2|/2|200"]);
    // An existing table that is not a dead-letter table is an error at startup.
    place.run("create table dead (a integer)");
    let error = place.options(keeping()).unwrap().check().unwrap_err();
    assert!(matches!(error, DatabaseError::Dead(..)), "{error}");
    let error = place.options(keeping()).unwrap().letters().map(drop).unwrap_err();
    assert!(error.to_string().starts_with("the dead-letter table `dead`"), "{error}");
}

#[test]
fn a_letter_that_meets_a_conflict_behind_a_refused_commit_leaves_no_transaction_open() {
    let place = Place::postgres();
    place.run(
        "create table hits (id bigint, path varchar(20) not null, status integer, \
         unique (id) deferrable initially deferred)",
    );
    let mut handler = place.handler(keeping());
    place.run(
        "create function f() returns trigger language plpgsql as $$ begin \
         raise exception 'met another' using errcode = '40001'; end $$; \
         create trigger t before insert on dead for each row execute function f()",
    );
    assert_eq!(serve(&mut handler, [hit(1)]), ["ok 1"]);
    let answers = serve(&mut handler, [twice()]);
    // No dead letter was written, so the row is not rejected.
    assert!(answers[0].starts_with("!database "), "{answers:?}");
    assert_eq!(serve(&mut handler, [hit(2)]), ["ok 2"]);
    assert_eq!(place.hits(), ["1|/1|200", "2|/2|200"]);
}

#[test]
fn a_row_is_not_refused_while_its_letter_waits_for_a_lock() {
    let place = Place::postgres();
    place.with_hits();
    let job = Job { lock_timeout: Duration::from_millis(50), ..keeping() };
    let mut handler = place.handler(job);
    let session = place.session("begin; lock table dead in access exclusive mode");
    let locks = |count: &str| {
        let sql = "select count(*) from pg_locks where relation = 'dead'::regclass";
        eventually("the table is locked or free", || place.run(sql) == [count]);
    };
    locks("1");
    let rows = || [hit(1), "no json".to_owned(), twice(), hit(2)];
    let answers = serve(&mut handler, rows());
    assert_eq!([&answers[0], &answers[3]], ["ok 1", "ok 2"], "{answers:?}");
    for answer in &answers[1..3] {
        assert!(answer.starts_with("!database ") && answer.ends_with("(55P03)"), "{answers:?}");
    }
    assert_eq!(place.hits(), ["1|/1|200", "2|/2|200"]);
    drop(session);
    locks("0");
    assert_eq!(place.run("select count(*) from dead"), ["0"]);
    let answers = serve(&mut handler, [twice(), "no json".to_owned()]);
    assert!(answers[0].starts_with("!row ") && answers[1].starts_with("!record "), "{answers:?}");
    assert_eq!(place.run("select count(*) from dead"), ["2"]);
}

#[test]
fn a_letter_that_is_lost_behind_a_refused_commit_is_written_again() {
    let place = Place::postgres();
    place.run(
        "create table hits (id bigint, path varchar(20) not null, status integer, \
         unique (id) deferrable initially deferred)",
    );
    let proxy = Proxy::to(place.port());
    let mut handler = place.handler_by(&proxy, keeping());
    assert_eq!(serve(&mut handler, [hit(1)]), ["ok 1"]);
    proxy.cut(Cut::BeforeLetter);
    let answers = serve(&mut handler, [twice()]);
    assert_eq!(proxy.cuts(), 1);
    assert!(answers[0].starts_with("!row "), "{answers:?}");
    assert_eq!(place.run("select count(*) from dead"), ["1"]);
    // Without time for another attempt it is not rejected.
    let mut handler = place.handler_by(&proxy, Job { retry: Duration::ZERO, ..keeping() });
    proxy.cut(Cut::BeforeLetter);
    let answers = serve(&mut handler, [twice()]);
    assert!(answers[0].starts_with("!database "), "{answers:?}");
    assert_eq!(place.run("select count(*) from dead"), ["1"]);
}

mod on_servers {
    crate::suite_of_servers!(
        a_refused_row_whose_commit_is_lost_is_refused_and_has_one_letter,
        a_letter_whose_commit_comes_late_is_written_once,
        a_row_stays_refused_when_its_letter_cannot_be_written_again,
        equal_rows_of_two_batches_have_a_letter_each,
    );
    use super::{
        a_letter_whose_commit_comes_late_is_written_once,
        a_refused_row_whose_commit_is_lost_is_refused_and_has_one_letter,
        a_row_stays_refused_when_its_letter_cannot_be_written_again,
        equal_rows_of_two_batches_have_a_letter_each,
    };
}

pub(crate) fn null() -> String {
    r#"{"id":2,"path":null,"status":0}"#.to_owned()
}

/// The usual table without a key.
pub(crate) fn with_hits_without_key(place: &Place) {
    place.run("create table hits (id bigint, path varchar(20) not null, status integer)");
}

/// Whether a session of this database waits for a lock.
fn waits(place: &Place) -> bool {
    let sql = match place.is_postgres() {
        true => {
            "select count(*) > 0 from pg_stat_activity \
             where datname = current_database() and wait_event_type = 'Lock'"
        }
        false => {
            // The data of InnoDB itself is cached while clients read it often.
            "select if(count(*) > 0, 't', 'f') from information_schema.processlist \
             where db = database() and info like 'insert into `dead`%' and time_ms > 50"
        }
    };
    place.run(sql) == ["t"]
}

fn a_letter_whose_commit_comes_late_is_written_once(place: &Place) {
    with_hits_without_key(place);
    let isolation = match place.is_postgres() {
        true => "set session characteristics as transaction isolation level",
        false => "set session transaction isolation level",
    };
    let levels = ["read uncommitted", "read committed", "repeatable read", "serializable"];
    for level in levels {
        let job = Job { create: Some(format!("{isolation} {level}")), ..keeping() };
        let proxy = Proxy::to(place.port());
        let mut handler = place.handler_by(&proxy, job);
        place.run("delete from dead");
        proxy.cut(Cut::LateCommit);
        let served = thread::spawn(move || serve(&mut handler, [null(), null()]));
        eventually("the letters wait", || served.is_finished() || waits(place));
        proxy.release();
        let answers = served.join().unwrap();
        assert_eq!(proxy.cuts(), 1);
        assert!(answers.iter().all(|it| it.starts_with("!row ")), "{level}: {answers:?}");
        assert_eq!(place.run("select count(*) from dead"), ["2"], "{level}");
    }
}

fn a_row_stays_refused_when_its_letter_cannot_be_written_again(place: &Place) {
    with_hits_without_key(place);
    let job = Job { lock_timeout: Duration::from_millis(50), ..keeping() };
    let proxy = Proxy::to(place.port());
    let mut handler = place.handler_by(&proxy, job);
    proxy.cut(Cut::LateCommit);
    // The session whose COMMIT is late holds a lock on the dead letter.
    let answers = serve(&mut handler, [null()]);
    assert_eq!(proxy.cuts(), 1);
    assert!(answers[0].starts_with("!row "), "{answers:?}");
    proxy.release();
    eventually("the letter is there", || place.run("select count(*) from dead") == ["1"]);
    let answers = serve(&mut handler, [hit(1), null()]);
    assert!(answers[0] == "ok 1" && answers[1].starts_with("!row "), "{answers:?}");
    assert_eq!(place.run("select count(*) from dead"), ["2"]);
}

fn equal_rows_of_two_batches_have_a_letter_each(place: &Place) {
    with_hits_without_key(place);
    let proxy = Proxy::to(place.port());
    for (number, cut) in [Cut::BeforeCommit, Cut::AfterCommit].into_iter().enumerate() {
        let mut handler = place.handler_by(&proxy, keeping());
        let kept = |batches: usize| [(4 * number + 2 * batches).to_string()];
        serve(&mut handler, [null(), null()]);
        assert_eq!(place.run("select count(*) from dead"), kept(1), "{cut:?}");
        proxy.cut(cut);
        let answers = serve(&mut handler, [null(), null()]);
        assert!(answers.iter().all(|it| it.starts_with("!row ")), "{cut:?}: {answers:?}");
        assert_eq!(place.run("select count(*) from dead"), kept(2), "{cut:?}");
    }
}

fn a_refused_row_whose_commit_is_lost_is_refused_and_has_one_letter(place: &Place) {
    with_hits_without_key(place);
    let sql = "insert into hits (id, path, status) values (:id, :path, :status)";
    let unsent = Job { resend: false, ..insert() };
    for (job, kept) in [insert(), unsent, statement(sql)].into_iter().flat_map(|job| {
        let keeping = Job { dead: Some("dead".to_owned()), ..job.clone() };
        [(keeping, "3"), (job, "0")]
    }) {
        let proxy = Proxy::to(place.port());
        let mut handler = place.handler_by(&proxy, job.clone());
        for cut in [Cut::BeforeCommit, Cut::AfterCommit] {
            place.run("delete from hits; delete from dead");
            proxy.cut(cut);
            let rows = [hit(1), null(), "no json".to_owned(), hit(3), null()];
            let answers = serve(&mut handler, rows);
            let expected = ["!commit ", "!row ", "!record ", "!commit ", "!row "];
            for (answer, expected) in answers.iter().zip(expected) {
                assert!(answer.starts_with(expected), "{cut:?} {job:?}: {answers:?}");
            }
            assert_eq!(place.run("select count(*) from dead"), [kept], "{cut:?} {job:?}");
            let stored = if cut == Cut::AfterCommit { "2" } else { "0" };
            assert_eq!(place.run("select count(*) from hits"), [stored], "{cut:?} {job:?}");
            assert_eq!(serve(&mut handler, [hit(4)]), ["ok 4"]);
        }
        // Without time for another attempt it is rejected as well, because its client must not send it again.
        let mut handler = place.handler_by(&proxy, Job { retry: Duration::ZERO, ..job });
        proxy.cut(Cut::AfterCommit);
        let answers = serve(&mut handler, [null(), hit(1)]);
        assert!(
            answers[0].starts_with("!row ") && answers[1].starts_with("!commit "),
            "{answers:?}"
        );
        // The next job begins with empty tables.
        eventually("its commit is done", || place.run("select count(*) from hits") == ["4"]);
    }
}

/// A row that every connection except the first accepts.
#[test]
fn a_row_that_has_a_letter_is_not_stored_when_it_would_be_accepted_by_now() {
    let place = Place::postgres();
    place.run(
        "create sequence first; \
         create function accepts(id bigint) returns boolean language plpgsql as $$ begin \
         if not (select is_called from first) then perform setval('first', pg_backend_pid()); end if; \
         return id <> 2 or pg_backend_pid() <> (select last_value from first); end $$; \
         create table hits (id bigint primary key, path varchar(20), status integer, \
         check (accepts(id)))",
    );
    let mut job = keeping();
    if let Action::Insert { on_conflict, .. } = &mut job.action {
        *on_conflict = OnConflict::Nothing(vec!["id".to_owned()]);
    }
    for cut in [Cut::BeforeCommit, Cut::AfterCommit] {
        place.run("delete from hits; drop table if exists dead; alter sequence first restart");
        let proxy = Proxy::to(place.port());
        let mut handler = place.handler_by(&proxy, job.clone());
        proxy.cut(cut);
        let answers = serve(&mut handler, [hit(1), hit(2), hit(3)]);
        assert_eq!([&answers[0], &answers[2]], ["ok 1", "ok 3"], "{cut:?}: {answers:?}");
        assert!(answers[1].starts_with("!row "), "{cut:?}: {answers:?}");
        assert_eq!(place.run("select id from hits order by id"), ["1", "3"], "{cut:?}");
        assert_eq!(place.run("select count(*) from dead"), ["1"], "{cut:?}");
    }
}

fn a_letter_whose_key_is_there_by_now_is_not_counted_as_stored(place: &Place) {
    place.with_hits();
    let mut job = keeping();
    if let Action::Insert { on_conflict, .. } = &mut job.action {
        *on_conflict = OnConflict::Nothing(vec!["id".to_owned()]);
    }
    let null = |id: usize| format!(r#"{{"id":{id},"path":null,"status":0}}"#);
    serve(&mut place.handler(job.clone()), [null(1), null(2), null(3)]);
    place.run("insert into hits values (1, '/first', 1)");
    let bytes = match place {
        it if it.is_postgres() => {
            "convert_to(replace(convert_from(\"row\", 'utf8'), 'null', '\"/\"'), 'utf8')"
        }
        it if it.is_sqlite() => "cast(replace(cast(\"row\" as text), 'null', '\"/\"') as blob)",
        _ => "replace(`row`, 'null', '\"/\"')",
    };
    let column = if place.is_mariadb() { "`row`" } else { "\"row\"" };
    place.run(&format!("update dead set {column} = {bytes} where id < 3"));
    let mut letters = place.options(job).unwrap().letters().unwrap();
    let kept = all(&mut letters);
    assert_eq!(letters.retry(&kept[0]), Ok(Retried::Present));
    assert_eq!(letters.retry(&kept[1]), Ok(Retried::Stored));
    assert!(matches!(letters.retry(&kept[2]), Ok(Retried::Refused(_))));
    assert_eq!(place.hits(), ["1|/first|1", "2|/|0"]);
    assert_eq!(place.run("select count(*) from dead"), ["1"]);
}

/// The retried rows have no id and no client, so all but the first could be taken for existing rows.
fn letters_are_not_stored_where_requests_may_tell_rows_apart(place: &Place) {
    place.run(
        "create table asked (_id bigint not null, _client varchar(40) not null, \
         _at bigint not null, v integer not null unique, unique (_at, _id), unique (_client))",
    );
    let insert = |key: &[&str]| Action::Insert {
        table: "asked".to_owned(),
        columns: ["_id", "_client", "_at", "v"].map(str::to_owned).to_vec(),
        on_conflict: match key {
            [] => OnConflict::Refuse,
            key => OnConflict::Nothing(key.iter().map(|&it| it.to_owned()).collect()),
        },
    };
    let job = |action: Action| Job { action, ack: "ok".to_owned(), ..keeping() };
    serve(&mut place.handler(job(insert(&[]))), [r#"{"v":null}"#; 3]);
    let sql = "insert into asked (_id, _client, _at, v) values (:_id, :_client, :_at, :v)";
    let replacing = match place.is_mariadb() {
        true => " on duplicate key update v = :v",
        false => " on conflict (_client) do update set v = excluded.v",
    };
    let column = if place.is_mariadb() { "`row`" } else { "\"row\"" };
    let bytes = match place {
        it if it.is_postgres() => "convert_to('{\"v\":1}', 'utf8')",
        it if it.is_sqlite() => "cast('{\"v\":1}' as blob)",
        _ => "'{\"v\":1}'",
    };
    place.run(&format!("update dead set {column} = {bytes}"));
    // A trigger that replaces, a function, a clause of the table: the SQL may not show it.
    let plain = Action::Statement(sql.to_owned());
    let replacing = Action::Statement(format!("{sql}{replacing}"));
    for action in [insert(&["v"]), insert(&[]), plain, replacing] {
        let mut letters = place.options(job(action.clone())).unwrap().letters().unwrap();
        let kept = all(&mut letters);
        let error = letters.retry(&kept[0]).unwrap_err().to_string();
        assert!(error.contains("the pool stores `_id` or `_client`"), "{action:?}: {error}");
        assert_eq!(place.run("select count(*) from asked"), ["0"], "{action:?}");
        assert_eq!(place.run("select count(*) from dead"), ["3"], "{action:?}");
    }
    // A pool that stores neither.
    let sql = "insert into asked (_id, _client, _at, v) values (0, '', :_at, :v)";
    let job = job(Action::Statement(sql.to_owned()));
    let mut letters = place.options(job).unwrap().letters().unwrap();
    let kept = all(&mut letters);
    assert_eq!(letters.retry(&kept[0]), Ok(Retried::Stored));
    assert!(matches!(letters.retry(&kept[1]), Ok(Retried::Refused(_))));
    assert_eq!(place.run("select count(*) from dead"), ["2"]);
}
