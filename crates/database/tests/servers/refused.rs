//! Rows that the database does not accept, among others that it does.

use database::{Action, Job};

use crate::place::{Place, hit, insert, is_refused, serve, statement};

crate::suite!(
    a_poison_row_in_every_position_is_refused_alone,
    ten_poison_rows_are_refused_and_no_others,
    a_batch_of_nothing_but_poison_stores_nothing,
    each_kind_of_poison_has_its_own_words,
    a_row_that_a_trigger_raises_against_is_refused,
    a_statement_refuses_its_rows_too,
    a_record_that_is_none_is_refused_before_the_database,
);

/// Refused by every database: the path must not be NULL.
fn poison(id: usize) -> String {
    format!(r#"{{"id":{id},"path":null,"status":0}}"#)
}

fn check(place: &Place, job: Job, bad: &[usize], count: usize) {
    place.run("delete from hits");
    let mut handler = place.handler(job);
    let bodies = (0..count).map(|id| if bad.contains(&id) { poison(id) } else { hit(id) });
    let answers = serve(&mut handler, bodies);
    for (id, answer) in answers.iter().enumerate() {
        if bad.contains(&id) {
            assert!(is_refused(answer), "{id} of {count} with {bad:?}: {answer}");
        } else {
            assert_eq!(*answer, format!("ok {id}"), "{count} with {bad:?}");
        }
    }
    let good = (0..count).filter(|id| !bad.contains(id)).map(|id| format!("{id}|/{id}|200"));
    assert_eq!(place.hits().len(), count - bad.len());
    assert!(good.eq(place.hits()), "{count} with {bad:?}");
}

fn a_poison_row_in_every_position_is_refused_alone(place: &Place) {
    place.with_hits();
    // `id` orders text and numbers alike only up to here.
    for position in 0..9 {
        check(place, insert(), &[position], 9);
    }
}

fn ten_poison_rows_are_refused_and_no_others(place: &Place) {
    place.with_hits();
    check(place, insert(), &[0, 1, 2, 17, 31, 32, 50, 77, 98, 99], 100);
}

fn a_batch_of_nothing_but_poison_stores_nothing(place: &Place) {
    place.with_hits();
    check(place, insert(), &[0, 1, 2, 3, 4], 5);
    check(place, insert(), &[0], 1);
}

fn each_kind_of_poison_has_its_own_words(place: &Place) {
    place.with_hits();
    let mut handler = place.handler(insert());
    let record = |id: &str, path: &str, status: &str| {
        format!(r#"{{"id":{id},"path":{path},"status":{status}}}"#)
    };
    let long = format!("\"{}\"", "x".repeat(21));
    let answers = serve(
        &mut handler,
        [
            hit(1),
            record("1", "\"/twice\"", "0"),
            record("2", "\"/2\"", "\"no number\""),
            record("3", &long, "0"),
            record("99999999999999999999999", "\"/4\"", "0"),
            hit(5),
        ],
    );
    assert_eq!((&*answers[0], &*answers[5]), ("ok 1", "ok 5"));
    assert!(is_refused(&answers[1]), "{answers:?}");
    if place.is_sqlite() {
        // Without `strict` SQLite stores what it is given; its own tests have the rest.
        return;
    }
    for answer in &answers[1..5] {
        assert!(is_refused(answer), "{answers:?}");
    }
    let words = if place.is_postgres() {
        ["duplicate key value", "invalid input syntax", "value too long", "out of range"]
    } else {
        ["Duplicate entry", "Incorrect integer value", "Data too long", "Out of range value"]
    };
    for (answer, words) in answers[1..5].iter().zip(words) {
        assert!(answer.contains(words), "{answer} has {words}");
    }
    assert_eq!(place.hits(), ["1|/1|200", "5|/5|200"]);
}

fn a_row_that_a_trigger_raises_against_is_refused(place: &Place) {
    place.with_hits();
    if place.is_sqlite() {
        place.run(
            "create trigger t before insert on hits when new.status = 13 \
             begin select raise(abort, 'unlucky'); end",
        );
    } else if place.is_postgres() {
        place.run(
            "create function f() returns trigger language plpgsql as $$ begin \
             if new.status = 13 then raise exception 'unlucky'; end if; return new; end $$; \
             create trigger t before insert on hits for each row execute function f()",
        );
    } else {
        place.run(
            "create trigger t before insert on hits for each row \
             if new.status = 13 then signal sqlstate '45000' set message_text = 'unlucky'; end if",
        );
    }
    let mut handler = place.handler(insert());
    let unlucky = r#"{"id":2,"path":"/2","status":13}"#.to_owned();
    assert_eq!(serve(&mut handler, [hit(1), unlucky, hit(3)]), ["ok 1", "!row unlucky", "ok 3"]);
    assert_eq!(place.hits(), ["1|/1|200", "3|/3|200"]);
}

fn a_statement_refuses_its_rows_too(place: &Place) {
    place.with_hits();
    let sql = "insert into hits (id, path, status) values (:id, :path, :status)";
    for bad in [&[0][..], &[8], &[3, 4], &[0, 2, 4, 6, 8]] {
        check(place, statement(sql), bad, 9);
    }
    // More than are on their way at once, where that is how they go.
    check(place, statement(sql), &[0, 255, 256, 299], 300);
}

fn a_record_that_is_none_is_refused_before_the_database(place: &Place) {
    place.run("create table one (id bigint)");
    let mut handler = place.handler(Job::new(Action::insert("one", ["id"])));
    let answers =
        serve(&mut handler, ["", "x", "[]", r#"{"i":1}"#, r#"{"id":1,"id":2}"#, r#"{"id":3}"#]);
    assert!(
        answers[..5].iter().all(|it| it.starts_with("!record ") || is_refused(it)),
        "{answers:?}"
    );
    assert_eq!(answers[3], "!row the record has no `id`");
    assert_eq!(answers[5], "ok");
    assert_eq!(place.run("select count(*) from one"), ["1"]);
}
